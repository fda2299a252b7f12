"""What the commands do, once the command line is understood."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from policies.adjacency import AnyRecord, Sensitive
from policies.catalogue import CATALOGUE, make_policy
from policies.problem import DecisionProblem
from policysim import choice_screen, screen
from policysim.audit import (
    Finding,
    audit,
    audit_document,
    audit_table,
    exceeds,
    table_adjacency,
)
from policysim.audit_screen import audit_screen, table_heading
from policysim.choose import choose, number_of_steps
from policysim.comparison import REFERENCES, applies, compare, number_of_jobs
from policysim.findings import find
from policysim.findings import number_of_steps as number_of_findings
from policysim.options import UsageError, applicable, chosen_study, chosen_wish, output_folder, parse_epsilons
from policysim.output import check_writable, write_files
from policysim.prices import number_of_prices, price_list
from policysim.probability_table import read_probability_table
from policysim.problem import build_problem
from policysim.text import wrap
from policysim.words import hidden

# Work that is done sooner shows no progress bar.
PATIENCE_SECONDS = 2
EXIT_CHECK = 4


def run(chosen: argparse.Namespace) -> int:
    """Run one command; returns the exit code."""
    commands = {"compare": run_compare, "choose": run_choose, "audit": run_audit, "sensitivity": run_sensitivity}
    return commands[chosen.command](chosen)


def run_compare(chosen: argparse.Namespace) -> int:
    """`policysim compare`."""
    study = chosen_study(chosen)
    folder = output_folder(chosen, study)
    check_writable(folder)
    problem = build_problem(study)
    study, left_out = applicable(study, problem, chosen)
    # What others are measured against is in every table and figure.
    evaluated = tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *study.policies]))
    steps = number_of_jobs(evaluated, study.epsilons) + number_of_findings(study)
    steps += number_of_prices(study) if chosen.price_list else 0
    with _progress(steps) as advance:
        table = compare(problem, policies=evaluated, epsilons=study.epsilons, by=study.by, advance=advance)
        findings = find(study, problem, table, advance)
        prices = price_list(study, problem, advance) if chosen.price_list else None
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.report import build_manifest, report_files  # noqa: PLC0415

    write_files(folder, report_files(study, problem, table, findings, prices))
    report = (folder / "report.html").as_posix()
    if chosen.json:
        _print_json(
            {
                "manifest": build_manifest(study, problem),
                "findings": asdict(findings),
                "comparison": table.to_dict(orient="records"),
                **({} if prices is None else {"prices": prices.to_dict(orient="records")}),
                "report": report,
            }
        )
    else:
        sys.stdout.write(screen.comparison_screen(study, problem, findings, report) + "\n")
        for reason in left_out:
            sys.stdout.write("\n".join(wrap(f"Left out: {reason}")) + "\n")
        if prices is not None:
            sys.stdout.write("\n" + "\n".join(screen.price_lines(prices)) + "\n")
    return 0


def run_choose(chosen: argparse.Namespace) -> int:
    """`policysim choose`; 4 if no mechanism can do what is asked for."""
    study = chosen_study(chosen)
    wish = chosen_wish(chosen)
    folder = output_folder(chosen, study)
    problem = build_problem(study)
    study, _ = applicable(study, problem, chosen)
    for name in chosen.policy or ():
        if name != "all" and not CATALOGUE[name].uses_epsilon:
            raise UsageError(f"{name} has no ε to choose")
    policies = [name for name in study.policies if CATALOGUE[name].uses_epsilon and applies(make_policy(name), problem)]
    with _progress(number_of_steps(policies)) as advance:
        choices = choose(problem, wish, policies, advance)
    written = None
    if choices.certificate is not None:
        check_writable(folder)
        write_files(folder, {"certificate.json": _json_text(choices.certificate).encode()})
        written = (folder / "certificate.json").as_posix()
    if chosen.json:
        _print_json({"study": study.name, **asdict(choices), "possible": choices.possible, "certificate_file": written})
    else:
        sys.stdout.write(choice_screen.choices_screen(study, choices, written) + "\n")
    return 0 if choices.possible else EXIT_CHECK


def run_audit(chosen: argparse.Namespace) -> int:
    """`policysim audit`; exit code 4 if a claim does not hold."""
    findings, heading, about = _audit_of_table(chosen) if chosen.table else _audit_of_study(chosen)
    if chosen.json:
        _print_json({**about, **audit_document(findings)})
    else:
        sys.stdout.write(audit_screen(findings, heading) + "\n")
    return EXIT_CHECK if exceeds(findings) else 0


def _audit_of_study(chosen: argparse.Namespace) -> tuple[list[Finding], list[str], dict[str, Any]]:
    if chosen.actions is not None:
        raise UsageError("--actions only goes with --table")
    study = chosen_study(chosen)
    with _progress(number_of_jobs(study.policies, study.epsilons)) as advance:
        problem = build_problem(study)
        findings = audit(problem, study.policies, study.epsilons, advance)
    heading = [
        study.title,
        f"Hidden: {hidden(study)}. {problem.n_records:,} records, {problem.n_actions} actions; exact, over all pairs.",
    ]
    return findings, heading, {"study": study.name, "adjacency": study.adjacency, "sensitive": list(study.sensitive)}


def _audit_of_table(chosen: argparse.Namespace) -> tuple[list[Finding], list[str], dict[str, Any]]:
    if chosen.policy:
        raise UsageError("--policy does not go with --table: the table is the policy")
    claims = [] if chosen.epsilon is None else parse_epsilons(chosen.epsilon)
    if chosen.epsilon is not None and (len(claims) != 1 or not claims[0] >= 0):
        raise UsageError(f"--epsilon must be one number >= 0 with --table, got {chosen.epsilon!r}")
    actions = None if chosen.actions is None else [name.strip() for name in chosen.actions.split(",")]
    table = read_probability_table(Path(chosen.table), actions)
    sensitive = chosen.sensitive or []
    name = chosen.adjacency or (Sensitive.name if sensitive else AnyRecord.name)
    try:
        adjacency = table_adjacency(table, name, sensitive)
    except ValueError as error:
        raise UsageError(str(error)) from None
    about = {"table": chosen.table, "adjacency": name, "sensitive": sensitive}
    return audit_table(table, adjacency, *claims), table_heading(table, adjacency), about


def run_sensitivity(chosen: argparse.Namespace) -> int:
    """`policysim sensitivity`."""
    study = chosen_study(chosen)
    problem = build_problem(study)
    if chosen.json:
        _print_json({"study": study.name, "adjacency": study.adjacency, **_sensitivity_document(problem)})
    else:
        sys.stdout.write(screen.sensitivity_screen(study, problem) + "\n")
    return 0


def _sensitivity_document(problem: DecisionProblem) -> dict[str, Any]:
    found = problem.sensitivity
    witnesses = {
        "witness": found.witness,
        "range_witness": found.range_witness,
        "monotone_witness": found.monotone_witness,
    }
    return {
        "value": found.value,
        "range": found.range,
        "monotone": found.monotone,
        **{
            name: witness
            and {
                "record": problem.records.describe(witness.record),
                "neighbour": problem.records.describe(witness.neighbour),
                "actions": [problem.actions[action] for action in witness.actions],
            }
            for name, witness in witnesses.items()
        },
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], object]]:
    """A progress bar on stderr, if that is a terminal and the work takes long enough to wonder."""
    # disable=None: tqdm itself asks whether stderr is a terminal.
    with tqdm(total=total, delay=PATIENCE_SECONDS, disable=None, leave=False, unit="run", file=sys.stderr) as bar:
        yield bar.update


def _print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(_json_text(document))


def _json_text(document: dict[str, Any]) -> str:
    return json.dumps(_plain(document), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: null and "inf" stand for them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value

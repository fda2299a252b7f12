"""`policysim audit`: claimed and exact privacy loss."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from policysim.cli.options import Commands, add_policies, add_study, as_usage, chosen_study, epsilons, names

if TYPE_CHECKING:
    from policysim.decision.audit import Finding
    from policysim.report.screen import Screen

    # What a JSON document says of the question, the findings, and their words.
    Audited: TypeAlias = tuple[dict[str, Any], list[Finding], Screen]


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "audit",
        help="compare the claimed privacy loss of policies with the exact one, and name the records that attain it",
        description="Compare the claimed privacy loss with the exact one, and name the two records that attain it. "
        "Exit code 4 if a claim does not hold.",
    )
    add_study(parser)
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="audit the probabilities in this CSV file instead of a study"
    )
    parser.add_argument(
        "--actions", type=names, metavar="A,B", help="the file's action columns (default: those named p_<action>)"
    )
    parser.add_argument(
        "--epsilon",
        type=epsilons,
        metavar="0.1,1,10",
        help="the values of ε, in place of the study's; with --table, the claimed loss",
    )
    add_policies(parser)


def run(chosen: argparse.Namespace) -> int:
    """Audit, and print; exit code 4 if a claim does not hold."""
    from policysim.decision.audit import exceeds
    from policysim.errors import EXIT_CHECK
    from policysim.files.terminal import print_json, say

    about, findings, screen = audited_study(chosen) if chosen.table is None else audited_table(chosen)
    if chosen.json:
        listed = [{**asdict(finding), "holds": finding.holds} for finding in findings]
        print_json({**about, "holds": not exceeds(findings), "findings": listed})
    else:
        say(screen.text())
    return EXIT_CHECK if exceeds(findings) else 0


def audited_study(chosen: argparse.Namespace) -> Audited:
    """The policies of a study, over all pairs of neighbours."""
    from policysim.decision.audit import audit
    from policysim.decision.audit_words import audit_screen
    from policysim.errors import UsageError
    from policysim.files.terminal import progress_bar
    from policysim.numbers import several
    from policysim.study.labels import hidden
    from policysim.study.study_problem import build_problem

    if chosen.actions is not None:
        raise UsageError("--actions only goes with --table")
    study = chosen_study(chosen, epsilons=chosen.epsilon, policies=chosen.policy)
    problem = build_problem(study)
    with progress_bar() as progress:
        findings = audit(problem, [study.policy(name) for name in study.policies], study.epsilons, progress)
    about: dict[str, Any] = {"study": study.name, "adjacency": study.adjacency, "sensitive": list(study.sensitive)}
    about |= {"public": list(study.public)} if study.public else {}
    sizes = f"{several(problem.n_records, 'record')}, {several(problem.n_actions, 'treatment')}"
    text = f"Secret: {hidden(study)}. {sizes}; all pairs of neighbours are compared, exactly."
    return about, findings, audit_screen(findings, study.title, [text])


def audited_table(chosen: argparse.Namespace) -> Audited:
    """Probabilities that were made elsewhere."""
    from policies.adjacency import AnyRecord, Sensitive
    from policysim.decision.audit import audit_table, table_adjacency
    from policysim.decision.audit_words import about_table, audit_screen
    from policysim.errors import UsageError
    from policysim.files.probability_table import read_probability_table

    if chosen.policy:
        raise UsageError("--policy does not go with --table: the table is the policy")
    claims = chosen.epsilon or [None]
    if len(claims) > 1:
        listed = ",".join(f"{claim:g}" for claim in claims)
        raise UsageError(f"--epsilon must be one number >= 0 with --table, got {listed!r}")
    table = read_probability_table(chosen.table, chosen.actions, option="--actions")
    name = chosen.adjacency or (Sensitive.name if chosen.sensitive else AnyRecord.name)
    with as_usage():
        adjacency = table_adjacency(table, name, chosen.sensitive or ())
    findings = audit_table(table, adjacency, claims[0])
    about = {"table": str(chosen.table), "adjacency": name, "sensitive": list(chosen.sensitive or ())}
    return about, findings, audit_screen(findings, table.source, list(about_table(table, adjacency)))

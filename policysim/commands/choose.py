"""`policysim choose`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from policies.catalogue import CATALOGUE, make_policy
from policies.problem import DecisionProblem
from policysim import choice_screen
from policysim.choose import Choices, Verdict, choose, number_of_steps
from policysim.comparison import applies
from policysim.console import EXIT_CHECK, json_text, print_json, progress
from policysim.options import UsageError, applicable, chosen_study, chosen_wish, output_folder
from policysim.output import check_writable, write_files
from policysim.problem import build_problem
from policysim.record import page
from policysim.record.methods import methods
from policysim.record.price import price_of
from policysim.study import Study

CERTIFICATE = "certificate.json"


def run(chosen: argparse.Namespace) -> int:
    """`policysim choose`; 4 if no mechanism can do what is asked for, or none is known to."""
    study = chosen_study(chosen)
    wish = chosen_wish(chosen)
    folder = output_folder(chosen, study)
    if chosen.decision_record:
        check_writable(folder)
    problem = build_problem(study)
    study, _ = applicable(study, problem, chosen)
    for name in chosen.policy or ():
        if name != "all" and not CATALOGUE[name].uses_epsilon:
            raise UsageError(f"{name} has no ε to choose")
    policies = [name for name in study.policies if CATALOGUE[name].uses_epsilon and applies(make_policy(name), problem)]
    with progress(number_of_steps(policies)) as advance:
        choices = choose(problem, wish, policies, advance)
    written = _write(folder, _files(study, problem, choices, chosen.decision_record))
    if chosen.json:
        print_json(_document(study, problem, choices, written))
    else:
        sys.stdout.write(choice_screen.choices_screen(study, choices, written.get(CERTIFICATE)) + "\n")
        if chosen.decision_record:
            sys.stdout.write(f"Decision record: {written[page.FILE]}\n")
    return 0 if choices.verdict in (Verdict.CAN, Verdict.MAY) else EXIT_CHECK


def _files(study: Study, problem: DecisionProblem, choices: Choices, wants_record: bool) -> dict[str, bytes]:
    """What is written, by name: the proof if there is one, and the record if it is asked for."""
    files = {}
    if choices.certificate is not None:
        files[CERTIFICATE] = json_text(choices.certificate).encode()
    if wants_record:
        files[page.FILE] = page.decision_record(study, problem, choices, price_of(study, problem, choices)).encode()
    return files


def _write(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write the files, if any, and return their paths by name."""
    if files:
        check_writable(folder)
        write_files(folder, files)
    return {name: (folder / name).as_posix() for name in files}


def _document(
    study: Study, problem: DecisionProblem, choices: Choices, written: Mapping[str, str]
) -> dict[str, object]:
    """What --json prints."""
    return {
        "study": study.name,
        **asdict(choices),
        "verdict": choices.verdict.value,
        "possible": choices.possible,
        "certificate_file": written.get(CERTIFICATE),
        "decision_record": written.get(page.FILE),
        "methods": asdict(methods(study, problem, choices, price_of(study, problem, choices))),
    }

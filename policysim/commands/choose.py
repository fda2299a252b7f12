"""`policysim choose`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from policies.catalogue import CATALOGUE, make_policy
from policysim import choice_screen
from policysim.choose import choose, number_of_steps
from policysim.comparison import applies
from policysim.console import EXIT_CHECK, json_text, print_json, progress
from policysim.options import UsageError, applicable, chosen_study, chosen_wish, output_folder
from policysim.output import check_writable, write_files
from policysim.problem import build_problem


def run(chosen: argparse.Namespace) -> int:
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
    with progress(number_of_steps(policies)) as advance:
        choices = choose(problem, wish, policies, advance)
    written = None
    if choices.certificate is not None:
        check_writable(folder)
        write_files(folder, {"certificate.json": json_text(choices.certificate).encode()})
        written = (folder / "certificate.json").as_posix()
    if chosen.json:
        print_json({"study": study.name, **asdict(choices), "possible": choices.possible, "certificate_file": written})
    else:
        sys.stdout.write(choice_screen.choices_screen(study, choices, written) + "\n")
    return 0 if choices.possible else EXIT_CHECK

"""`policysim compare` of policies on a log."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace

from policies.catalogue import make_policy
from policysim.comparison import REFERENCES, applies
from policysim.console import print_json, progress
from policysim.example_patients import number_of_examples
from policysim.figure_files import chosen_figures
from policysim.logged.findings import find
from policysim.logged.fitting import problem_of_log
from policysim.logged.held_out import compare_log, number_of_steps
from policysim.logged.screen import logged_screen
from policysim.logs.trial import load_log
from policysim.options import UsageError, applicable, output_folder
from policysim.output import check_writable, write_files
from policysim.reproduce.manifest import finished, study_command
from policysim.study import LoggedStudy
from policysim.text import wrap


def run(chosen: argparse.Namespace, study: LoggedStudy) -> int:
    """Compute, print and write."""
    if chosen.price_list:
        raise UsageError(f"--price-list does not go with {study.name}: prices are exact, and a log only has estimates")
    wanted = chosen_figures(chosen)
    folder = output_folder(chosen, study)
    check_writable(folder)
    log = load_log(study.log)
    problem = problem_of_log(study, log)
    study, left_out = applicable(study, problem, chosen)
    usable = tuple(name for name in study.policies if applies(make_policy(name), problem))
    left_out += [f"{name}: only bounds of it could be computed" for name in study.policies if name not in usable]
    study = replace(study, policies=usable)
    # What others are measured against is in every table and figure.
    evaluated = tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *study.policies]))
    steps = number_of_steps([make_policy(name) for name in evaluated], study.epsilons)
    steps += number_of_examples(evaluated, study.epsilons)
    with progress(steps) as advance:
        table = compare_log(replace(study, policies=evaluated), log, advance)
        findings = find(study, log, table)
        # matplotlib is the slowest import of all; everything before may still fail without it.
        from policysim.logged.report import build_logged_manifest, logged_files  # noqa: PLC0415

        command = study_command(chosen)
        files = logged_files(study, problem, table, findings, wanted=wanted, command=command, advance=advance)
    write_files(folder, finished(files, chosen))
    report = (folder / "report.html").as_posix()
    if chosen.json:
        print_json(
            {
                "unread_checks": study.log.unread,
                "manifest": build_logged_manifest(study, problem),
                "findings": asdict(findings),
                "comparison": table.to_dict(orient="records"),
                "report": report,
            }
        )
    else:
        sys.stdout.write(logged_screen(study, findings, report) + "\n")
        for reason in left_out:
            sys.stdout.write("\n".join(wrap(f"Left out: {reason}")) + "\n")
    return 0

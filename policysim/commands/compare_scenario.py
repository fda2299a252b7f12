"""`policysim compare` of policies on a scenario."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from policysim import screen
from policysim.comparison import REFERENCES, compare, number_of_jobs
from policysim.console import print_json, progress
from policysim.example_patients import number_of_examples
from policysim.figure_files import chosen_figures
from policysim.findings import find
from policysim.findings import number_of_steps as number_of_findings
from policysim.options import applicable, output_folder
from policysim.output import check_writable, write_files
from policysim.prices import number_of_prices, price_list
from policysim.problem import build_problem
from policysim.reproduce.manifest import finished, study_command
from policysim.study import ScenarioStudy
from policysim.text import wrap


def run(chosen: argparse.Namespace, study: ScenarioStudy) -> int:
    """Compute, print and write."""
    wanted = chosen_figures(chosen)
    folder = output_folder(chosen, study)
    check_writable(folder)
    problem = build_problem(study)
    study, left_out = applicable(study, problem, chosen)
    # What others are measured against is in every table and figure.
    evaluated = tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *study.policies]))
    steps = number_of_jobs(evaluated, study.epsilons) + number_of_findings(study)
    steps += number_of_prices(study) if chosen.price_list else 0
    steps += number_of_examples(evaluated, study.epsilons)
    with progress(steps) as advance:
        table = compare(problem, policies=evaluated, epsilons=study.epsilons, by=study.by, advance=advance)
        findings = find(study, problem, table, advance)
        prices = price_list(study, problem, advance) if chosen.price_list else None
        # matplotlib is the slowest import of all; everything before may still fail without it.
        from policysim.report import build_manifest, report_files  # noqa: PLC0415
        from policysim.report.answer import answer  # noqa: PLC0415

        command = study_command(chosen)
        files = report_files(study, problem, table, findings, prices, wanted=wanted, command=command, advance=advance)
    write_files(folder, finished(files, chosen))
    report = (folder / "report.html").as_posix()
    if chosen.json:
        print_json(
            {
                "manifest": build_manifest(study, problem),
                "findings": asdict(findings),
                "comparison": table.to_dict(orient="records"),
                **({} if prices is None else {"prices": prices.to_dict(orient="records")}),
                "report": report,
            }
        )
    else:
        first = answer(findings, table)[0].striptags()
        sys.stdout.write(screen.comparison_screen(study, problem, findings, report, answer=first) + "\n")
        for reason in left_out:
            sys.stdout.write("\n".join(wrap(f"Left out: {reason}")) + "\n")
        if prices is not None:
            sys.stdout.write("\n" + "\n".join(screen.price_lines(prices, deaths=bool(findings.deaths))) + "\n")
    return 0

"""`policysim compare`."""

from __future__ import annotations

import argparse
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

from policysim import screen
from policysim.commands import compare_days
from policysim.comparison import REFERENCES, compare, number_of_jobs
from policysim.console import print_json, progress
from policysim.findings import find
from policysim.findings import number_of_steps as number_of_findings
from policysim.options import applicable, chosen_study, output_folder
from policysim.output import check_writable, write_files
from policysim.prices import number_of_prices, price_list
from policysim.problem import build_problem
from policysim.study import study_path
from policysim.text import wrap


def run(chosen: argparse.Namespace) -> int:
    """`policysim compare`: of a study of a source document, or of policies."""
    path = study_path(chosen.study)
    if _is_source_study(path):
        # Only such a study needs these modules.
        from policysim.sources.run import run_source_study  # noqa: PLC0415

        return run_source_study(chosen, path)
    if chosen.horizon is not None:
        return compare_days.run(chosen)
    compare_days.refuse_without_horizon(chosen)
    study = chosen_study(chosen)
    folder = output_folder(chosen, study)
    check_writable(folder)
    problem = build_problem(study)
    study, left_out = applicable(study, problem, chosen)
    # What others are measured against is in every table and figure.
    evaluated = tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *study.policies]))
    steps = number_of_jobs(evaluated, study.epsilons) + number_of_findings(study)
    steps += number_of_prices(study) if chosen.price_list else 0
    with progress(steps) as advance:
        table = compare(problem, policies=evaluated, epsilons=study.epsilons, by=study.by, advance=advance)
        findings = find(study, problem, table, advance)
        prices = price_list(study, problem, advance) if chosen.price_list else None
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.report import build_manifest, report_files  # noqa: PLC0415

    write_files(folder, report_files(study, problem, table, findings, prices))
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
        sys.stdout.write(screen.comparison_screen(study, problem, findings, report) + "\n")
        for reason in left_out:
            sys.stdout.write("\n".join(wrap(f"Left out: {reason}")) + "\n")
        if prices is not None:
            sys.stdout.write("\n" + "\n".join(screen.price_lines(prices)) + "\n")
    return 0


def _is_source_study(path: Path) -> bool:
    """Whether a file is a study of a source document; False for a file that cannot be read."""
    try:
        return "analysis" in tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False

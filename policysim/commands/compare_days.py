"""`policysim compare --horizon`: treatment over days."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from policies.optimal import Optimal
from policysim.console import print_json, progress
from policysim.days.comparison import DaysQuestion, compare_days, number_of_days
from policysim.days.screen import best_mechanisms, days_screen
from policysim.figure_files import chosen_figures
from policysim.options import UsageError, applicable, chosen_scenario_study, parse_epsilons
from policysim.output import check_writable, write_files
from policysim.problem import build_problem
from policysim.processes.step_problems import OPTIMAL_DAILY, catalogue_name
from policysim.processes.treatment_course import require_any_record
from policysim.reproduce.manifest import finished, study_command
from policysim.text import wrap

TOTALS = "1,5,10"
# Exact planning keeps every day's Q-values: more than a year of days is surely a mistake.
MOST_DAYS = 366
DAYS_ONLY = ("total_epsilon", "delta", "length_public")
NOT_OVER_DAYS = ("epsilon", "price_list")


def refuse_without_horizon(chosen: argparse.Namespace) -> None:
    """UsageError for an option that only goes with --horizon."""
    for name in DAYS_ONLY:
        if getattr(chosen, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} only goes with --horizon")


def run(chosen: argparse.Namespace) -> int:
    """Compare policies over the days of a course."""
    for name in NOT_OVER_DAYS:
        if getattr(chosen, name):
            hint = "; give --total-epsilon, the budget of all days" if name == "epsilon" else ""
            raise UsageError(f"--{name.replace('_', '-')} does not go with --horizon{hint}")
    asked = with_catalogue_names(chosen)
    study = chosen_scenario_study(asked)
    question = _question(chosen)
    wanted = chosen_figures(chosen)
    try:
        require_any_record(study)
    except ValueError as error:
        raise UsageError(str(error)) from None
    study, left_out = applicable(study, build_problem(study), asked)
    folder = Path(chosen.out) if chosen.out else Path("reports") / f"{study.name}-{question.horizon}-days"
    check_writable(folder)
    with progress(number_of_days(study, question), unit="day") as advance:
        table = compare_days(study, question, advance)
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.days.report import build_days_manifest, days_files  # noqa: PLC0415

    write_files(folder, finished(days_files(study, question, table, wanted, study_command(chosen)), chosen))
    report = (folder / "report.html").as_posix()
    if chosen.json:
        print_json(
            {
                "manifest": build_days_manifest(study, question),
                "best": best_mechanisms(table).to_dict(orient="records"),
                "comparison": table.to_dict(orient="records"),
                "report": report,
            }
        )
    else:
        sys.stdout.write(days_screen(study, question, table, report) + "\n")
        for reason in left_out:
            sys.stdout.write("\n".join(wrap(f"Left out: {reason}")) + "\n")
    return 0


def with_catalogue_names(chosen: argparse.Namespace) -> argparse.Namespace:
    """The options with the policies' names in the catalogue; a line on stderr for "optimal" on the command line.

    A study's own list is shared with the question about one decision, where "optimal" is the right name: over days it
    means optimal-daily without a word.
    """
    names = [chosen.policy] if isinstance(chosen.policy, str) else chosen.policy or []
    if Optimal.name in names:
        sys.stderr.write(
            f"policysim: over days the policy {Optimal.name} is called {OPTIMAL_DAILY}: the best private choice of "
            "each day, not of the course\n"
        )
    renamed = [catalogue_name(name) for name in names]
    policy = renamed[0] if isinstance(chosen.policy, str) else renamed or None
    return argparse.Namespace(**{**vars(chosen), "policy": policy})


def _question(chosen: argparse.Namespace) -> DaysQuestion:
    text = TOTALS if chosen.total_epsilon is None else chosen.total_epsilon
    totals = parse_epsilons(text, "--total-epsilon")
    if not totals or not all(total >= 0 for total in totals):
        raise UsageError(f"--total-epsilon must be numbers >= 0 separated by commas, got {text!r}")
    return DaysQuestion(
        horizon=parse_horizon(chosen.horizon),
        totals=tuple(sorted(set(totals))),
        delta=_delta(chosen.delta),
        length_public=chosen.length_public,
    )


def parse_horizon(text: str) -> int:
    """A whole number of days; UsageError for anything else."""
    return parse_whole("--horizon", text, 1, MOST_DAYS)


def parse_whole(option: str, text: str, least: int, most: int) -> int:
    """A whole number within bounds; UsageError for anything else."""
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not digits or not least <= int(text) <= most:
        raise UsageError(f"{option} must be a whole number from {least} to {most}, got {text!r}")
    return int(text)


def _delta(text: str | None) -> float:
    try:
        delta = 0.0 if text is None else float(text)
    except ValueError:
        delta = -1.0
    if not 0 <= delta < 1:
        raise UsageError(f"--delta must be a number in [0, 1), got {text!r}")
    return delta

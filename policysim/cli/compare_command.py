"""`policysim compare`: which question a study and its options ask."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from envs.toml_reader import peek
from policysim.cli.options import chosen_figures, chosen_study, parse_epsilons, parse_whole, study_command
from policysim.question.protocol import Question, UsageError, refuse
from policysim.report.deliver import deliver
from policysim.study.declared import LoggedStudy, require_scenario
from policysim.study.study_file import study_path

TOTALS = "1,5,10"
# Exact planning keeps every day's Q-values: more than a year of days is surely a mistake.
MOST_DAYS = 366


def run(chosen: argparse.Namespace) -> int:
    """Ask, answer, print and write."""
    wanted = chosen_figures(chosen)
    question = question_of(chosen)
    out = Path(chosen.out) if chosen.out else None
    return deliver(question, command=study_command(chosen), out=out, wanted=wanted, as_json=chosen.json)


def question_of(chosen: argparse.Namespace) -> Question:
    """What is asked: of a source document, over days, of a log, or of a scenario.

    The modules of each kind are only imported for it.
    """
    path = study_path(chosen.study)
    if peek(path, "analysis") is not None:
        from policysim.sources.source_question import SourceQuestion  # noqa: PLC0415

        refuse(SourceQuestion, vars(chosen))
        return SourceQuestion.of(path, chosen.seed)
    if chosen.horizon is not None:
        return _over_days(chosen)
    study = chosen_study(chosen)
    if isinstance(study, LoggedStudy):
        from policysim.trials.trial_question import TrialQuestion  # noqa: PLC0415

        refuse(TrialQuestion, vars(chosen))
        return TrialQuestion(study, named=_named(chosen))
    from policysim.decision.decision_question import DecisionQuestion  # noqa: PLC0415

    refuse(DecisionQuestion, vars(chosen))
    return DecisionQuestion(require_scenario(study), named=_named(chosen), prices=chosen.price_list)


def _over_days(chosen: argparse.Namespace) -> Question:
    from policysim.course.course_question import CourseQuestion  # noqa: PLC0415
    from policysim.course.days import DaysQuestion  # noqa: PLC0415
    from policysim.course.treatment_course import require_any_record  # noqa: PLC0415

    refuse(CourseQuestion, vars(chosen))
    text = TOTALS if chosen.total_epsilon is None else chosen.total_epsilon
    totals = parse_epsilons(text, "--total-epsilon")
    if not totals or not all(total >= 0 for total in totals):
        raise UsageError(f"--total-epsilon must be numbers >= 0 separated by commas, got {text!r}")
    question = DaysQuestion(
        horizon=parse_horizon(chosen.horizon),
        totals=tuple(sorted(set(totals))),
        delta=_delta(chosen.delta),
        length_public=chosen.length_public,
    )
    try:
        study = require_scenario(chosen_study(with_catalogue_names(chosen)))
        require_any_record(study)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return CourseQuestion(study, question, named=_named(chosen))


def with_catalogue_names(chosen: argparse.Namespace) -> argparse.Namespace:
    """The options with the policies' names in the catalogue; a line on stderr for "optimal" on the command line.

    A study's own list is shared with the question about one decision, where "optimal" is the right name: over days it
    means optimal-daily without a word.
    """
    from policies.optimal.optimum import (  # noqa: PLC0415
        OPTIMAL_DAILY,
        Optimal,
        catalogue_name,
    )

    names = [chosen.policy] if isinstance(chosen.policy, str) else chosen.policy or []
    if Optimal.name in names:
        sys.stderr.write(
            f"policysim: over days the policy {Optimal.name} is called {OPTIMAL_DAILY}: the best private choice of "
            "each day, not of the course\n"
        )
    renamed = [catalogue_name(name) for name in names]
    policy = renamed[0] if isinstance(chosen.policy, str) else renamed or None
    return argparse.Namespace(**{**vars(chosen), "policy": policy})


def parse_horizon(text: str) -> int:
    """A whole number of days; UsageError for anything else."""
    return parse_whole("--horizon", text, 1, MOST_DAYS)


def _named(chosen: argparse.Namespace) -> bool:
    """Whether each policy was asked for by name, in the study or on the command line."""
    return "all" not in (chosen.policy or ())


def _delta(text: str | None) -> float:
    try:
        delta = 0.0 if text is None else float(text)
    except ValueError:
        delta = -1.0
    if not 0 <= delta < 1:
        raise UsageError(f"--delta must be a number in [0, 1), got {text!r}")
    return delta

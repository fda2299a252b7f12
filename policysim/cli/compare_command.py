"""`policysim compare`: policies over ε; which question a study and its options ask."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING

from policysim.cli.options import (
    add_bounds,
    add_learning,
    add_policies,
    add_study,
    add_workers,
    as_usage,
    chosen_bounds,
    chosen_study,
    chosen_workers,
    epsilons,
    folder,
    names,
    number,
    whole,
)
from policysim.cli.parser import Commands, TextParser, parse
from policysim.files.terminal import complain

if TYPE_CHECKING:
    from policysim.question.protocol import Question
    from policysim.report.deliver import FigureFiles

TOTALS = (1.0, 2.0, 5.0, 10.0)
# Exact planning keeps every day's Q-values: more than a year of days is surely a mistake.
MOST_DAYS = 366
# A number of days.
horizon = whole(1, MOST_DAYS)
# Of a command line: what to run, and what changes no number; everything else that a command was given belongs to it.
APART = ("command", "arguments", "study", "out", "json", "resume")
# Who counts a log changes no number, but that it is counted does.
COUNTS, COUNTED = ("workers", "cluster"), ("--workers", "1")


def formats(text: str) -> tuple[str, ...]:
    """Kinds of figure files, separated by commas, in the order of `FORMATS`."""
    from policysim.report.deliver import FORMATS

    asked = [part.strip() for part in text.split(",")]
    for name in asked:
        if name not in FORMATS:
            raise ArgumentTypeError(f"must be among {', '.join(FORMATS)}, separated by commas, got {name!r}")
    return tuple(kind for kind in FORMATS if kind in asked)


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "compare",
        help="compare policies over ε; prints a screen and writes a report",
        description="Compare policies over ε: print one screen and write a table, figures and a report. Numbers are "
        "exact for a scenario and have intervals for a log. A study of a source document (sock-groups, adult-age-sex, "
        "common-disease, marital-status) is set beside its source.",
    )
    add_study(parser)
    parser.add_argument("--epsilon", type=epsilons, metavar="0.1,1,10", help="the values of ε, in place of the study's")
    add_policies(parser)
    add_bounds(parser, "what optimal-safe keeps, in place of the study's: the most of an outcome expected per patient")
    parser.add_argument(
        "--by",
        type=names,
        action="extend",
        metavar="FEATURE",
        help="report each level of these features: one, or one,two",
    )
    parser.add_argument("--out", type=folder, metavar="DIR", help="where to write (default: reports/STUDY)")
    parser.add_argument(
        "--format", type=formats, metavar="svg,png,pdf", help="the kinds of figure files (default: svg,png)"
    )
    parser.add_argument(
        "--figure-size",
        choices=("page", "column", "slide"),
        metavar="NAME",
        help="page, column or slide: what the figures are sized for",
    )
    parser.add_argument(
        "--price-list", action="store_true", help="also print what hiding each single feature costs at best"
    )
    add_learning(parser)
    add_workers(parser)
    parser.add_argument(
        "--horizon", type=horizon, metavar="14", help="treat over this many days, within one total ε for all of them"
    )
    parser.add_argument(
        "--total-epsilon",
        type=epsilons,
        metavar="1,2,5,10",
        help="with --horizon: the total ε of the course (default: these)",
    )
    parser.add_argument(
        "--delta",
        type=number("a number in [0, 1)", lambda value: 0 <= value < 1),
        metavar="1e-6",
        help="with --horizon: the δ of (ε, δ)-privacy (default: 0)",
    )
    parser.add_argument(
        "--length-public",
        action="store_true",
        help="with --horizon: the end of a stay is public, and need not be hidden",
    )


def run(chosen: argparse.Namespace) -> int:
    """Ask, answer, print and write."""
    from policysim.report.deliver import deliver

    question, wanted = asked(chosen)
    command = study_command(chosen.arguments)
    return deliver(question, command=command, out=chosen.out, wanted=wanted, as_json=chosen.json)


def asked(chosen: argparse.Namespace) -> tuple[Question, FigureFiles]:
    """The question, and the figure files that are wanted."""
    from policysim.report.deliver import DEFAULT, FigureFiles

    wanted = FigureFiles(chosen.format or DEFAULT.formats, chosen.figure_size or DEFAULT.size)
    return _question(chosen), wanted


def _question(chosen: argparse.Namespace) -> Question:
    """What is asked: of a source document, over days, of a log, or of a scenario.

    The modules of each kind are only imported for it.
    """
    from dataclasses import replace

    from envs.toml_reader import peek
    from policysim.question.protocol import refuse
    from policysim.report.deliver import REPORTS
    from policysim.study.declared import LoggedStudy, require_scenario
    from policysim.study.study_file import name_of_study, study_path

    path = study_path(chosen.study)
    if peek(path, "analysis") is not None:
        from policysim.sources.source_question import SourceQuestion

        refuse(SourceQuestion, vars(chosen), name_of_study(path))
        return SourceQuestion.of(path, chosen.seed)
    if chosen.horizon is not None:
        return _over_days(chosen)
    study = chosen_study(chosen, epsilons=chosen.epsilon, policies=chosen.policy, by=chosen.by)
    if isinstance(study, LoggedStudy):
        from policysim.trials.trial_question import TrialQuestion

        refuse(TrialQuestion, vars(chosen), study.name)
        out = REPORTS / study.name if chosen.out is None else chosen.out
        workers = chosen_workers(chosen, out.with_name(f"{out.name}.counts"))
        return TrialQuestion(study, named=_named(chosen), learn_epsilon=chosen.learn_epsilon, workers=workers)
    from policysim.decision.decision_question import DecisionQuestion

    refuse(DecisionQuestion, vars(chosen))
    scenario = require_scenario(study)
    if chosen.at_most:
        scenario = replace(scenario, at_most=chosen_bounds(chosen, scenario))
    return DecisionQuestion(scenario, named=_named(chosen), prices=chosen.price_list)


def _over_days(chosen: argparse.Namespace) -> Question:
    from policysim.course.course_question import CourseQuestion
    from policysim.course.days import DaysQuestion
    from policysim.course.public_classes import public_over_days
    from policysim.question.protocol import refuse
    from policysim.study.declared import require_scenario

    refuse(CourseQuestion, vars(chosen))
    question = DaysQuestion(
        horizon=chosen.horizon,
        totals=tuple(sorted(set(chosen.total_epsilon or TOTALS))),
        delta=chosen.delta or 0.0,
        length_public=chosen.length_public,
    )
    policies = in_catalogue(chosen.policy or []) or None
    with as_usage():
        study = require_scenario(chosen_study(chosen, policies=policies, by=chosen.by))
        public_over_days(study)
    return CourseQuestion(study, question, named=_named(chosen))


def in_catalogue(policies: Sequence[str]) -> list[str]:
    """Names of policies over days as the catalogue has them; a line on stderr for "optimal" on the command line.

    A study's own list is shared with the question about one decision, where "optimal" is the right name: over days it
    means optimal-daily without a word.
    """
    from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, catalogue_name

    if Optimal.name in policies:
        complain(
            f"over days the policy {Optimal.name} is called {OPTIMAL_DAILY}: the best private choice of each day, not "
            "of the course"
        )
    return [catalogue_name(name) for name in policies]


def _named(chosen: argparse.Namespace) -> bool:
    """Whether each policy was asked for by name, in the study or on the command line."""
    return "all" not in (chosen.policy or ())


def study_command(arguments: Sequence[str]) -> list[str]:
    """The command line that means the same in any folder: without --out, own studies as the study.toml beside.

    Examples
    --------
    >>> study_command(["compare", "--seed=0", "covid", "--price-list", "--epsilon", "0.10,1", "--out", "here"])
    ['compare', 'covid', '--seed', '0', '--epsilon', '0.10,1', '--price-list']
    """
    from policysim.study.study_file import STUDY, study_names

    # Values as they were written: 1e-6 is not to become 1e-06.
    given = parse(arguments, [add], TextParser)
    words = [given.command, given.study if given.study in study_names() else STUDY]
    words += COUNTED if any(getattr(given, name) is not None for name in COUNTS) else ()
    for name, value in vars(given).items():
        if name in (*APART, *COUNTS) or value is None or value is False:
            continue
        option = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list) else [value]:
            words += [option] if item is True else [option, item]
    return words

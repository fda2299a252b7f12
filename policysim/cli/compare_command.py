"""`policysim compare`: policies over ε; one decision, days or a log by the study and its options."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from policysim.cli.kinds import DAYS, arguments_again, figure_names, kind_of, of_its_kind, report_of_study
from policysim.cli.options import (
    Commands,
    add_bounds,
    add_policies,
    add_show_values,
    add_study,
    add_workers,
    as_usage,
    asks_to_count,
    chosen_bounds,
    chosen_executor,
    epsilons,
    folder,
    names,
    number,
    whole,
)
from policysim.errors import UsageError
from policysim.words import MOST_DAYS, PLAN_ONCE, PLAN_TREE

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from policysim.progress import Progress
    from policysim.report.folder import FigureFiles
    from policysim.report.report import Report
    from policysim.study.declared import Study

# A number of days.
horizon = whole(1, MOST_DAYS)


def formats(text: str) -> tuple[str, ...]:
    """Kinds of figure files, separated by commas, in the order of `FORMATS`."""
    from policysim.report.folder import FORMATS

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
        "exact for a scenario, and have 95 % intervals for a log.",
    )
    add_study(parser)
    parser.add_argument(
        "--epsilon",
        type=epsilons,
        metavar="0.1,1,10",
        help="the values of ε, in place of the study's; write 0.5, as 0,5 is refused",
    )
    add_policies(parser)
    add_show_values(parser)
    add_bounds(
        parser, "the bounds of optimal-safe, in place of the study's: the most of an outcome per patient, on average"
    )
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
        help="the size of figures: page, column or slide",
    )
    parser.add_argument(
        "--figures",
        type=names,
        metavar="NAME,NAME",
        help="the figures to draw and write, such as frontier (default: all)",
    )
    parser.add_argument(
        "--price-list",
        action="store_true",
        help="also find the least cost of hiding each single feature: a table of the report, and of --full",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--full", action="store_true", help="also print the tables behind the screen")
    length.add_argument("--brief", action="store_true", help="print the title and the labelled lines alone")
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
        type=number("a number in [0, 1)", lambda value: 0 <= value < 1, sized=False),
        metavar="1e-6",
        help="with --horizon: the δ of (ε, δ)-privacy (default: 0)",
    )
    parser.add_argument(
        "--length-public",
        action="store_true",
        help="with --horizon: the end of a stay is public, not hidden",
    )


def run(chosen: argparse.Namespace) -> int:
    """Compare, write the report and print its screen."""
    from dataclasses import replace

    from policysim.files.terminal import progress_bar
    from policysim.files.whole_files import check_writable
    from policysim.report.folder import REPORTS, folder_files, print_report, write_report
    from policysim.study.study_reader import load_study

    study, wanted = as_asked(load_study(chosen.study), chosen), figure_files(chosen)
    days = "" if chosen.horizon is None else f"-{chosen.horizon}-days"
    folder_path = chosen.out or REPORTS / f"{study.name}{days}"
    # Before anything is computed.
    check_writable(folder_path)
    study.data.check_key()
    with chosen_executor(chosen) as executor, progress_bar() as progress:
        report = report_of(chosen, study, progress, executor)
        report = replace(report, arguments=arguments_again(chosen))
        files = folder_files(report, wanted, folder_path, progress)
    write_report(folder_path, report, files)
    print_report(report, files, folder_path, as_json=chosen.json, full=chosen.full, brief=chosen.brief)
    return report.exit_code


def as_asked(study: Study, chosen: argparse.Namespace) -> Study:
    """A study with the options that are its own; UsageError for what does not exist or does not go with its kind."""
    from policies.optimal.optimum import catalogue_name
    from policysim.study.declared import ScenarioStudy

    study = of_its_kind(study, chosen)
    kind, policies = kind_of(study, chosen), chosen.policy
    known = figure_names(kind) if chosen.figures else ()
    for name in chosen.figures or ():
        if name not in known:
            raise UsageError(f"--figures: must be among {', '.join(known)}, separated by commas, got {name!r}")
    if policies and kind == DAYS:
        policies = [catalogue_name(name) for name in policies if name not in (PLAN_ONCE, PLAN_TREE)]
    with as_usage():
        # The report takes these itself: here only their names are looked at, before anything is computed.
        study.with_choices(policies=policies, epsilons=chosen.epsilon)
        study = study.with_choices(
            by=chosen.by, adjacency=chosen.adjacency, sensitive=chosen.sensitive, seed=chosen.seed
        )
        if isinstance(study, ScenarioStudy) and kind_of(study, chosen) == DAYS:
            from policysim.course.treatment_course import public_over_days

            public_over_days(study)
    bounds = chosen_bounds(chosen, study)
    return study.within(bounds) if bounds else study


def figure_files(chosen: argparse.Namespace) -> FigureFiles:
    """The figure files that are asked for."""
    from policysim.report.folder import DEFAULT, FigureFiles

    return FigureFiles(
        chosen.format or DEFAULT.formats, chosen.figure_size or DEFAULT.size, tuple(chosen.figures or ())
    )


def report_of(chosen: argparse.Namespace, study: Study, progress: Progress, executor: Executor | None = None) -> Report:
    """The report of a study that has been asked for (`as_asked`)."""
    return report_of_study(
        study,
        policies=chosen.policy,
        epsilons=chosen.epsilon,
        horizon=chosen.horizon,
        total_epsilons=chosen.total_epsilon,
        delta=chosen.delta or 0.0,
        length_public=chosen.length_public,
        price_list=chosen.price_list,
        counted=asks_to_count(chosen),
        executor=executor,
        progress=progress,
    )

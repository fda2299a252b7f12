"""`policysim choose`: the least ε that is good enough."""

from __future__ import annotations

import argparse
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from policysim.cli.kinds import arguments_again, of_its_kind
from policysim.cli.options import (
    Commands,
    add_bounds,
    add_policies,
    add_show_values,
    add_study,
    as_usage,
    chosen_bounds,
    folder,
    number,
    share,
)
from policysim.errors import UsageError

if TYPE_CHECKING:
    from policysim.progress import Progress
    from policysim.report.folder import FigureFiles
    from policysim.report.report import Report
    from policysim.study.declared import Study

LEAD_PER = 100_000


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "choose",
        help="find the least ε at which a policy meets your demands",
        description="Find the least ε at which each policy meets all demands, and whether any private draw can meet "
        "them. Exit code 4 if none can.",
    )
    add_study(parser)
    parser.add_argument(
        "--keep",
        type=share("at most 1 or 100%", high=1),
        metavar="80%",
        help="the least share of the possible gain: 0 %% is the same treatment for everyone, 100 %% the best for each",
    )
    parser.add_argument(
        "--max-loss",
        type=share(">= 0", low=0),
        metavar="0.2",
        help="the largest normalised loss: 0 is the best for each, 1 equal odds for all treatments",
    )
    parser.add_argument(
        "--max-extra-lead",
        type=number("a number", math.isfinite, sized=False),
        metavar="5",
        help="the most of the leading outcome (such as deaths) per 100,000, beyond the best treatment for everyone",
    )
    parser.add_argument(
        "--max-guess",
        type=share("between 50% (blind) and 100%", 0.5, 1),
        metavar="65%",
        help="how often two patients may be told apart, by any mechanism; sets the largest ε (73%% is ε = 1)",
    )
    parser.add_argument(
        "--max-guess-rate",
        type=share("between 50% (blind) and 100%", 0.5, 1),
        metavar="65%",
        help="the same for the chosen mechanism and one decision; its ε is printed, too",
    )
    add_bounds(
        parser,
        "the most of an outcome per patient, on average; death=one-for-all: as under the best treatment for everyone",
    )
    add_policies(parser)
    add_show_values(parser)
    parser.add_argument(
        "--out",
        type=folder,
        metavar="DIR",
        help="also write a report there: the choice, and the comparison at its ε (without it, only a certificate is "
        "written, into reports/STUDY)",
    )


def run(chosen: argparse.Namespace) -> int:
    """Choose, write what was asked for and print the screen; exit code 4 if no mechanism meets the demands."""
    from dataclasses import replace

    from policysim.files.terminal import progress_bar
    from policysim.files.whole_files import check_writable, write_files
    from policysim.report.folder import REPORTS, folder_files, print_report, write_report
    from policysim.study.study_reader import load_study

    study = as_asked(load_study(chosen.study), chosen)
    folder_path = chosen.out or REPORTS / study.name
    if chosen.out:
        check_writable(folder_path)
        study.data.check_key()
    with progress_bar() as progress:
        report = report_of(chosen, study, progress, compared=chosen.out is not None)
        report = replace(report, arguments=arguments_again(chosen))
        if chosen.out:
            files = folder_files(report, figure_files(chosen), folder_path, progress)
        else:
            # A certificate alone.
            files = {name: content for name, content in report.files.items() if name in report.named.values()}
    if chosen.out:
        write_report(folder_path, report, files)
    elif files:
        write_files(folder_path, files, report.data.files)
    print_report(report, files, folder_path, as_json=chosen.json)
    return report.exit_code


def as_asked(study: Study, chosen: argparse.Namespace) -> Study:
    """A study with the options that are its own; UsageError for what does not exist, and without a demand."""
    from policysim.study.declared import LoggedStudy

    study = of_its_kind(study, chosen)
    if not chosen.at_most and chosen.keep is None and chosen.max_loss is None and chosen.max_extra_lead is None:
        raise UsageError("choose needs at least one of --keep, --max-loss, --max-extra-lead and --at-most")
    if chosen.max_extra_lead is not None and isinstance(study, LoggedStudy):
        raise UsageError(
            f"--max-extra-lead needs an outcome that leads, and a log has none ({study.name}): demand --keep or "
            "--max-loss of its outcome"
        )
    with as_usage():
        # The report takes the policies itself: here only their names are looked at, before anything is computed.
        study.with_choices(policies=chosen.policy)
        return study.with_choices(adjacency=chosen.adjacency, sensitive=chosen.sensitive, seed=chosen.seed)


def figure_files(_: argparse.Namespace) -> FigureFiles:
    """The figure files of a choice's report."""
    from policysim.report.folder import DEFAULT

    return DEFAULT


def report_of(chosen: argparse.Namespace, study: Study, progress: Progress, *, compared: bool = True) -> Report:
    """The choice for a study that has been asked for (`as_asked`), and what `compare` finds at its ε."""
    from policysim.decision import choose_report
    from policysim.decision.choose import Wish
    from policysim.study.declared import LoggedStudy

    wish = Wish(
        keep=chosen.keep,
        max_loss=chosen.max_loss,
        max_extra_lead=None if chosen.max_extra_lead is None else chosen.max_extra_lead / LEAD_PER,
        max_guess=chosen.max_guess,
        max_guess_rate=chosen.max_guess_rate,
        at_most=chosen_bounds(chosen, study),
    )
    judge: Any = None
    comparison: Any
    if isinstance(study, LoggedStudy):
        # Whoever has no log needs none of the packages that read and fit one.
        from policysim.trials import trial_report

        judge, comparison = trial_report.judged_on_held_out, trial_report.report
    else:
        from policysim.decision import report as decision_report

        comparison = decision_report.report
    return choose_report.report(
        study,
        wish,
        policies=chosen.policy,
        judge=judge,
        compared=partial(comparison, policies=chosen.policy, progress=progress) if compared else None,
        progress=progress,
    )

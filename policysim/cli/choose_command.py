"""`policysim choose`: the least ε that is good enough."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from policysim.cli.options import (
    Commands,
    add_bounds,
    add_policies,
    add_study,
    chosen_bounds,
    chosen_study,
    folder,
    number,
    share,
)

if TYPE_CHECKING:
    from policysim.decision.choose_report import Judge
    from policysim.report.report import Report
    from policysim.study.declared import Study

LEAD_PER = 100_000


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "choose",
        help="the least ε of each policy that meets what you ask for",
        description="Find the least ε of each policy that meets all demands, and whether any private choice can.",
    )
    add_study(parser)
    parser.add_argument(
        "--keep",
        type=share("at most 1 or 100%", high=1),
        metavar="80%",
        help="least benefit kept: 0 is one treatment for all, 1 best for each",
    )
    parser.add_argument(
        "--max-loss",
        type=share(">= 0", low=0),
        metavar="0.2",
        help="largest normalised loss: 0 is best for each, 1 uniform",
    )
    parser.add_argument(
        "--max-extra-lead",
        type=number("a number", math.isfinite),
        metavar="5",
        help="most of the outcome that leads (deaths in a scenario) per 100,000, beyond the best treatment for all",
    )
    parser.add_argument(
        "--max-guess",
        type=share("between 50% (blind) and 100%", 0.5, 1),
        metavar="65%",
        help="how often a guess between two neighbours may be right; sets the largest ε",
    )
    parser.add_argument(
        "--max-guess-rate",
        type=share("between 50% (blind) and 100%", 0.5, 1),
        metavar="65%",
        help="the same under the mechanism that is chosen, for one decision; its ε stands beside it",
    )
    add_bounds(parser, "the most of an outcome that is expected per patient; death=one-for-all: as under that")
    add_policies(parser)
    parser.add_argument(
        "--out",
        type=folder,
        metavar="DIR",
        help="also write a report there: the choice, and what compare finds at its ε (without it only a certificate is "
        "written, into reports/STUDY)",
    )


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if no mechanism can do what is asked for."""
    from policysim.decision.choose import Wish
    from policysim.decision.choose_report import report
    from policysim.errors import UsageError
    from policysim.files.terminal import progress_bar
    from policysim.report.folder import REPORTS, folder_files, print_report, write_report

    study = chosen_study(chosen, policies=chosen.policy)
    if not chosen.at_most and chosen.keep is None and chosen.max_loss is None and chosen.max_extra_lead is None:
        raise UsageError("choose needs at least one of --keep, --max-loss, --max-extra-lead and --at-most")
    wish = Wish(
        keep=chosen.keep,
        max_loss=chosen.max_loss,
        max_extra_lead=None if chosen.max_extra_lead is None else chosen.max_extra_lead / LEAD_PER,
        max_guess=chosen.max_guess,
        max_guess_rate=chosen.max_guess_rate,
        at_most=chosen_bounds(chosen, study),
    )
    folder = chosen.out or REPORTS / study.name
    with progress_bar() as progress:
        known = {"policies": chosen.policy, "progress": progress}
        judge, compared = judge_and_comparison(study, **known)
        made = report(study, wish, judge=judge, compared=compared if chosen.out else None, **known)
        # Without a folder only a certificate is written.
        files = dict(made.files) if chosen.out is None else folder_files(made, folder=folder, progress=progress)
    if files:
        write_report(folder, made, files)
    print_report(made, files, folder, as_json=chosen.json)
    return made.exit_code


def judge_and_comparison(study: Study, **known: Any) -> tuple[Judge | None, Callable[[Study], Report] | None]:
    """Who judges the policies of a log, on patients held out; and what makes the report of `compare`."""
    from policysim.study.declared import LoggedStudy

    if isinstance(study, LoggedStudy):
        # Without a log, none of the packages that read and fit one are needed.
        from policysim.trials.trial_question import judged_on_held_out

        return judged_on_held_out, None
    from policysim.decision.report import report as compare

    return None, partial(compare, **known)

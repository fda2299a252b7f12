"""`policysim choose`: the least ε that is good enough."""

from __future__ import annotations

import argparse
import math
from argparse import ArgumentTypeError
from dataclasses import replace
from typing import TYPE_CHECKING

from policysim.cli.options import (
    Commands,
    add_bounds,
    add_policies,
    add_study,
    chosen_bounds,
    chosen_study,
    folder,
    iso_date,
    number,
    share,
)

if TYPE_CHECKING:
    from policysim.decision.choice_record import Adoption

DEATHS_PER = 100_000


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
        "--max-extra-deaths",
        type=number("a number", math.isfinite),
        metavar="5",
        help="most extra deaths per 100,000, beyond those of the best treatment for all; see --at-most",
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
    add_bounds(parser, "the most of an outcome that is expected per patient; deaths=one-for-all: as under that")
    add_policies(parser)
    parser.add_argument(
        "--out",
        type=folder,
        metavar="DIR",
        help="where a certificate or the decision record is written (default: reports/STUDY)",
    )
    parser.add_argument(
        "--decision-record", action="store_true", help="also write decision-record.html into --out: what was decided"
    )
    record = parser.add_argument_group("with --decision-record")
    record.add_argument("--institution", metavar="TEXT", help="who decides (left out: a line to write on)")
    record.add_argument(
        "--date", type=iso_date, metavar="YYYY-MM-DD", help="of the decision (left out: a line to write on)"
    )
    record.add_argument(
        "--valid-until", type=iso_date, metavar="YYYY-MM-DD", help="when it ends (left out: a line to write on)"
    )
    record.add_argument(
        "--accept",
        type=accepted,
        metavar="deaths=N",
        help="decide although up to N of 100,000 patients more die than under the safest treatment for all",
    )


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if no mechanism can do what is asked for."""
    from policysim.decision.choice_question import ChoiceQuestion
    from policysim.decision.choose import Wish
    from policysim.output.deliver import deliver
    from policysim.question.protocol import UsageError
    from policysim.study.declared import LoggedStudy

    study = chosen_study(chosen, policies=chosen.policy)
    if not chosen.at_most and chosen.keep is None and chosen.max_loss is None and chosen.max_extra_deaths is None:
        raise UsageError("choose needs at least one of --keep, --max-loss, --max-extra-deaths and --at-most")
    wish = Wish(
        keep=chosen.keep,
        max_loss=chosen.max_loss,
        max_extra_deaths=None if chosen.max_extra_deaths is None else chosen.max_extra_deaths / DEATHS_PER,
        max_guess=chosen.max_guess,
        max_guess_rate=chosen.max_guess_rate,
        at_most=chosen_bounds(chosen, study),
    )
    question = ChoiceQuestion(study, wish, tuple(chosen.policy or ()), record=_adoption(chosen))
    if isinstance(study, LoggedStudy):
        # Who has no log needs none of the packages that read and fit one.
        from policysim.trials.trial_question import judged_on_held_out

        question = replace(question, judge=judged_on_held_out)
    return deliver(question, out=chosen.out, as_json=chosen.json)


def accepted(text: str) -> float:
    """How many more deaths of 100,000 patients are accepted: deaths=12."""
    name, equals, amount = text.partition("=")
    if name.strip() != "deaths" or not equals:
        raise ArgumentTypeError(f"must be deaths=N, N of 100,000 patients, got {text!r}")
    return number("deaths=N with a number N >= 0", lambda value: 0 <= value < math.inf)(amount)


def _adoption(chosen: argparse.Namespace) -> Adoption | None:
    """By whom a decision is adopted and until when; None without a record, and UsageError for what needs one."""
    from policysim.decision.choice_record import Adoption
    from policysim.question.protocol import UsageError

    if not chosen.decision_record:
        for name in ("institution", "date", "valid_until", "accept"):
            if getattr(chosen, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} only goes with --decision-record")
        return None
    if chosen.institution is not None and not chosen.institution.strip():
        raise UsageError("--institution must not be empty: leave it out for a line to write on")
    if chosen.date and chosen.valid_until and chosen.valid_until < chosen.date:
        raise UsageError(f"--valid-until must not be before --date {chosen.date}, got {chosen.valid_until!r}")
    return Adoption(chosen.institution or "", chosen.date or "", chosen.valid_until or "", chosen.accept)

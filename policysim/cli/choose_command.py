"""`policysim choose`: the least ε that is good enough."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from policysim.cli.compare_command import command_line
from policysim.cli.options import (
    Commands,
    add_bounds,
    add_policies,
    add_study,
    as_usage,
    chosen_bounds,
    chosen_study,
    folder,
    number,
    share,
)

if TYPE_CHECKING:
    from policysim.decision.choice_question import ChoiceQuestion

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
        type=number("a number", math.isfinite),
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
    parser.add_argument(
        "--out",
        type=folder,
        metavar="DIR",
        help="also write a report there: the choice, and the comparison at its ε (without it, only a certificate is "
        "written, into reports/STUDY)",
    )


def run(chosen: argparse.Namespace) -> int:
    """Ask; exit code 4 if no mechanism can do what is asked for."""
    from policysim.decision.choice_question import ChoiceQuestion
    from policysim.errors import UsageError
    from policysim.output.deliver import DEFAULT, deliver

    study = chosen_study(chosen, policies=chosen.policy)
    if not chosen.at_most and chosen.keep is None and chosen.max_loss is None and chosen.max_extra_lead is None:
        raise UsageError("choose needs at least one of --keep, --max-loss, --max-extra-lead and --at-most")
    demands = {
        "keep": chosen.keep,
        "max_loss": chosen.max_loss,
        "max_extra_lead": chosen.max_extra_lead,
        "max_guess": chosen.max_guess,
        "max_guess_rate": chosen.max_guess_rate,
        "at_most": chosen_bounds(chosen, study) or None,
    }
    demands = {name: most for name, most in demands.items() if most is not None}
    options = {"adjacency": chosen.adjacency, "sensitive": chosen.sensitive, "seed": chosen.seed}
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"policies": chosen.policy} if chosen.policy else {}
    command = command_line(chosen.study, {**options, **demands}, DEFAULT, verb="choose")
    if "max_extra_lead" in demands:
        demands["max_extra_lead"] /= LEAD_PER
    options["demands"] = demands
    with as_usage():
        question = ChoiceQuestion.of(study, options)
    question = with_other_kinds(question, report=chosen.out is not None)
    return deliver(question, command=command, given=list(options), out=chosen.out, as_json=chosen.json)


def with_other_kinds(question: ChoiceQuestion, *, report: bool) -> ChoiceQuestion:
    """The same question, which asks what others know: of a log, who is better; and for a report, what compare finds."""
    from policysim.study.declared import LoggedStudy

    compared: Any
    if isinstance(question.study, LoggedStudy):
        # Who has no log needs none of the packages that read and fit one.
        from policysim.trials.trial_question import TrialQuestion, judged_on_held_out

        question, compared = replace(question, judge=judged_on_held_out), TrialQuestion
    else:
        from policysim.decision.decision_question import DecisionQuestion

        compared = DecisionQuestion
    return replace(question, compared=compared) if report else question

"""That a decision is adopted: by whom and until when, why this and not one treatment for all, which deaths it costs.

A choice that costs more deaths and more privacy than one treatment for all is adopted only if that is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policies.problem import DecisionProblem
from policysim.decision.choice_screen import UNUSED, answer, more_or_fewer, worse
from policysim.decision.choose import Choice, Choices
from policysim.decision.methods import searched_within
from policysim.question.formats import LEAST_EVENTS, MOST_COUNTED, decimal, enough, of_100, percent, plain, rounded
from policysim.study.gain import Gain

# Deaths that are accepted are counted per so many patients.
ACCEPTED_PER = 100_000
# Significant digits of the number that would have to be accepted.
ACCEPTED_DIGITS = 3
DEATHS = "deaths"


@dataclass(frozen=True)
class Adoption:
    """By whom and from when to when a decision is adopted, and what is accepted for it.

    Attributes
    ----------
    institution : str
        Who decides; empty for a line to write on.
    date, valid_until : str
        YYYY-MM-DD; empty for a line to write on. Nothing is dated by the clock: the same run writes the same bytes.
    accepted_deaths : float or None
        The most expected deaths, per 100,000 patients, that the decision may cost beyond the safest treatment for all;
        None if none were accepted.
    """

    institution: str = ""
    date: str = ""
    valid_until: str = ""
    accepted_deaths: float | None = None

    def refused(self, choices: Choices) -> str:
        """Why a choice is not adopted, in one line; empty if it is, and where nothing was chosen."""
        least = choices.least
        if least is None or not choices.dominated:
            return ""
        more = choices.more_deaths * ACCEPTED_PER
        if self.accepted_deaths is not None and more <= self.accepted_deaths:
            return ""
        needed = f"{enough(more, ACCEPTED_DIGITS):g}"
        beside = "" if self.accepted_deaths is None else f", and {self.accepted_deaths:g} are accepted"
        safest = choices.safest
        keeps = f" and keeps {percent(safest.benefit_kept)} of the benefit" if choices.has_shares else ""
        return (
            f"No decision record was written: {least.policy} costs {needed} more deaths per {ACCEPTED_PER:,} patients "
            f"than giving everybody {safest.action}, which reveals nothing{keeps}{beside}. Accept them with "
            f"--accept {DEATHS}={needed}, or limit deaths with --at-most."
        )


def title(choices: Choices) -> str:
    """The decision as a statement, without a full stop."""
    least = choices.least
    if least is None:
        return "No decision was made"
    if choices.one_for_all is not None:
        return f"Everybody gets {choices.one_for_all.action}"
    within = " within the bounds on outcomes," if searched_within(choices, least) else ""
    return f"Treatments are chosen by the mechanism “{least.policy}”{within} at ε = {decimal(least.epsilon)}"


def remark(choices: Choices) -> str:
    """What must be known first of the decision; empty where there is nothing."""
    parts = [] if choices.used or choices.least is None else [UNUSED]
    if choices.least is None:
        parts.append(answer(choices))
    elif choices.one_for_all is not None:
        parts.append("That meets what was asked for, and costs no privacy.")
    elif worse(choices):
        parts.append(f"This is {worse(choices)}.")
    return " ".join(parts)


def why_heading(choices: Choices) -> str:
    """What the reasons are for."""
    if choices.least is None:
        return "What one treatment for all does"
    return "Why one treatment for all" if choices.one_for_all else "Why this, and not one treatment for all"


def why(problem: DecisionProblem, choices: Choices, adoption: Adoption) -> list[str]:
    """The decision beside one treatment for all, in numbers, and what it costs in deaths; a paragraph each."""
    least, fixed = choices.least, choices.best_fixed
    counted = counts_deaths(problem)
    count = choices.count

    def does(row: Choice) -> str:
        found = [_benefit(problem, row, has_shares=choices.has_shares)]
        if counted:
            deaths = f"{more_or_fewer(row.extra_deaths, count)} deaths per {count:,} patients"
            found.append(f"costs {deaths} than the best treatment for each")
        return " and ".join(found)

    if choices.one_for_all is not None:
        reasons = (
            "Everybody gets the same, so that a treatment reveals nothing (ε = 0). Of the treatments for all that meet "
            f"what was asked for, it has the highest expected utility. It {does(choices.one_for_all)}."
        )
    else:
        reasons = (
            f"No single treatment for all meets what was asked for. The best of them, {fixed.action}, {does(fixed)}. "
            "It reveals nothing: a guess between two patients is right 50 of 100 times."
        )
    if least is not None and choices.one_for_all is None:
        reasons += (
            f" “{least.policy}” {does(least)}, at ε = {decimal(least.epsilon)}, where such a guess is right at most "
            f"{of_100(least.right_guesses)} of 100 times."
        )
    return [reasons, *([_deaths(problem, choices, adoption)] if least is not None and counted else [])]


def _deaths(problem: DecisionProblem, choices: Choices, adoption: Adoption) -> str:
    """What the decision costs in deaths against the safest treatment for all, and what of it was accepted."""
    least, safest = choices.least, choices.safest
    assert least is not None
    more = choices.more_deaths
    count = choices.count
    against = f"giving everybody {safest.action}, the treatment for all with the fewest deaths"
    if safest.action != choices.best_fixed.action:
        against = f"{against}, which {_benefit(problem, safest, has_shares=choices.has_shares)}"
    if least.action == safest.action:
        said = "No treatment for all costs fewer deaths."
    elif abs(more) * MOST_COUNTED < LEAST_EVENTS:
        said = f"It costs as many deaths as {against}, to within one in a billion patients."
    else:
        said = f"It costs {more_or_fewer(more, count)} deaths per {count:,} patients than {against}."
    if adoption.accepted_deaths is None:
        return said
    return f"{said} Up to {plain(adoption.accepted_deaths)} more per {ACCEPTED_PER:,} patients were accepted."


def _benefit(problem: DecisionProblem, row: Choice, *, has_shares: bool) -> str:
    if has_shares:
        return f"keeps {percent(row.benefit_kept)} of the benefit"
    return f"loses {rounded(Gain.of(problem).best - row.value)} in utility per patient against the best for each"


def counts_deaths(problem: DecisionProblem) -> bool:
    """Whether anybody can die."""
    return DEATHS in problem.outcomes and bool(problem.outcomes[DEATHS].any())


def document(
    problem: DecisionProblem, choices: Choices, adoption: Adoption, question: str, asked_for: str
) -> dict[str, Any]:
    """The parts of a decision record that no other part of the JSON document has; empty texts were not given."""
    accepted = {} if adoption.accepted_deaths is None else {DEATHS: adoption.accepted_deaths}
    return {
        "title": title(choices),
        "remark": remark(choices),
        "institution": adoption.institution,
        "date": adoption.date,
        "valid_until": adoption.valid_until,
        "question": question,
        "asked_for": asked_for,
        "why": why(problem, choices, adoption),
        "more_deaths": choices.more_deaths,
        "accepted_per_100000": accepted,
    }

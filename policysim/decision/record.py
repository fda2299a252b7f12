"""The decision record as a page: one file, one sheet of paper, the same bytes for the same run.

The parts of the decision record, as text: what was decided, on what terms, and what else could have been.
"""

from __future__ import annotations

import math
from typing import Any

from policies.catalogue import CATALOGUE
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.decision.adoption import Adoption, counts_deaths, remark, title, why, why_heading
from policysim.decision.choice_screen import DEATHS, GUESS_RATE, NO_SHARES, asked, limit_shown, row_cells, worse
from policysim.decision.choose import Choice, Choices
from policysim.decision.methods import Price, methods, shown, words_of
from policysim.decision.record_size import print_size
from policysim.question.formats import (
    decimal,
    digits_of,
    events,
    guess_rate,
    not_above,
    of_100,
    percent,
    rounded,
    rounded_up,
)
from policysim.question.words import ODDS, guesses, level_name
from policysim.study.basis import OUTSIDE, basis, hidden
from policysim.study.checks import guess_rate_of
from policysim.study.declared import Study

# Lines for those who decide.
SIGNATURES = 3


def record_values(
    study: Study, problem: DecisionProblem, choices: Choices, price: Price | None, adoption: Adoption
) -> dict[str, Any]:
    """What the page shows; it holds no date but those that were given, and lines to write on.

    Parameters
    ----------
    study : Study
        What was asked.
    problem : DecisionProblem
        Built from it.
    choices : Choices
        What was found.
    price : Price or None
        Of the least choice; None if there is none.
    adoption : Adoption
        By whom it is adopted and until when.
    """
    count = choices.count if counts_deaths(problem) else 0
    values = {
        "study": study,
        "disclaimer": basis(study).disclaimer,
        "decided": title(choices),
        "remark": remark(choices),
        "formal": {
            "Institution": adoption.institution,
            "Date": adoption.date,
            "Valid until": adoption.valid_until,
            "Question": study.title,
            "Asked for": _sentence(asked(choices)),
        },
        "made": choices.least is not None,
        "why_heading": why_heading(choices),
        "why": why(problem, choices, adoption),
        "terms": terms(study, problem, choices, price),
        "has_deaths": counts_deaths(problem),
        "count": count,
        "rows": alternatives(problem, choices),
        "not_guaranteed": not_guaranteed(study, choices),
        "certificate": choices.certificate is not None,
        "methods": methods(study, problem, choices, price),
        "signatures": SIGNATURES,
        "inputs": _inputs(study),
    }
    return {**values, "print_size": f"{print_size(values):.1f}"}


def _inputs(study: Study) -> dict[str, str]:
    """The digest of each file that the numbers depend on."""
    identity = study.identity
    inputs = {f"study {study.name}": study.digest}
    if "scenario" in identity:
        inputs[f"scenario {identity['scenario']}"] = identity["scenario_sha256"]
    return inputs | {f"data {name}": digest for name, digest in identity.get("data", {}).items()}


# A factor beyond this is no protection that anybody could feel: only its size is said.
LARGEST_FACTOR = 1e6


def terms(study: Study, problem: DecisionProblem, choices: Choices, price: Price | None) -> dict[str, str]:
    """What is hidden from whom, and what was found: heading to text."""
    least = choices.least
    public = {"Must be public": _sentence(basis(study).public)}
    found = {
        "Hidden": _sentence(hidden(study)),
        "From": _sentence(study.hidden_from),
    }
    if least is None or price is None:
        allowed = choices.wish.max_epsilon
        return {**found, **({"Privacy": privacy(not_above(allowed, 3))} if allowed < math.inf else {}), **public}
    found["Privacy"] = privacy(least.epsilon)
    found["Mechanism"] = (
        f"{least.policy}: {words_of(study, choices)}. Exact privacy loss: {shown(price.epsilon_spent)}."
    )
    found["Price"] = _price(problem, price, choices.count)
    if price.worst is not None:
        found["Worst off"] = _worst(problem, price, choices.count)
    return {**found, **public}


def privacy(epsilon: float) -> str:
    """What epsilon means: guesses between two patients, and odds."""
    right = ODDS.format(epsilon=decimal(epsilon), right=of_100(guesses(epsilon)))
    factor = rounded_up(math.exp(epsilon), 3) if epsilon < math.log(LARGEST_FACTOR) else "more than a million"
    return f"{right} Seeing it multiplies nobody's odds between two such patients by more than exp(ε) = {factor}."


def alternatives(problem: DecisionProblem, choices: Choices) -> list[list[str]]:
    """A row of cells per policy, a remark last, between one for all and no privacy."""
    best = Greedy().probabilities(problem)
    fixed, safest, first = choices.one_for_all or choices.best_fixed, choices.safest, choices.rows[:1]
    # Where outcomes or guess rates are limited, epsilons between those that were looked at may do.
    never = "none found" if choices.wish.scanned else "cannot"
    for_all = [(fixed, "chosen" if choices.one_for_all else "not enough")]
    if worse(choices) and safest.action != fixed.action:
        for_all.append((safest, "not enough; fewest deaths"))
    least = "no ε is enough" if choices.limit == math.inf else "none needs less"
    if first and choices.attains(first[0]):
        least += f", to {digits_of(first[0].epsilon)} digits"

    def note(row: Choice) -> str:
        missed = never if row.epsilon == math.inf else "more than allowed"
        return "chosen" if row is choices.least else "" if row.allowed else missed

    meets = choices.wish.demand(problem).margin(problem, best) >= 0
    rows = [
        *([*row_cells(choices, row, f"one for all ({row.action})"), said] for row, said in for_all),
        ["any private choice", limit_shown(choices), "", "", "", "", least if choices.limit_proven else "not proven"],
        *([*row_cells(choices, row, row.policy), note(row)] for row in choices.rows),
        [
            "best for each", "∞", percent(1.0 if choices.has_shares else math.nan), "0", "100",
            guess_rate(guess_rate_of(best, problem, math.inf)),
            "no privacy" if meets else "no privacy, and not enough",
        ],
    ]  # fmt: skip
    return rows if counts_deaths(problem) else [[*row[:DEATHS], *row[DEATHS + 1 :]] for row in rows]


def not_guaranteed(study: Study, choices: Choices) -> list[str]:
    """What nobody may take from this page."""
    least = choices.least
    trusts = least is not None and CATALOGUE[least.policy].uses_prior
    prior = ["The prior is trusted: with other patients the price differs, at the same ε."] if trusts else []
    release = "Treatments to be published need a sampler made for release: policysim's own samplers only simulate."
    return [*OUTSIDE, *([GUESS_RATE] if choices.rows else []), *prior, *basis(study).not_guaranteed, release]


def _price(problem: DecisionProblem, price: Price, count: int) -> str:
    fixed = problem.best_fixed_name
    kept = (
        NO_SHARES
        if math.isnan(price.benefit_kept)
        else f"Benefit kept: {percent(price.benefit_kept)} ({percent(0)}: one treatment for all, {fixed}; "
        f"{percent(1)}: the best for each)."
    )
    parts = [f"{kept} Utility lost per patient: {rounded(price.loss)}."]
    if counts_deaths(problem):
        parts.insert(
            0,
            f"Deaths per {count:,} patients: {events(price.extra_deaths, count, sign=True)} beyond the best treatment "
            f"for each, {events(price.deaths, count)} in all.",
        )
    return " ".join(parts)


def _worst(problem: DecisionProblem, price: Price, count: int) -> str:
    worst = price.worst
    assert worst is not None
    text = (
        f"{_sentence(level_name(worst.group, worst.level))[:-1]} ({percent(worst.share)} of patients): "
        f"{rounded(worst.loss)} in utility each (all: {rounded(price.loss)})"
    )
    if not counts_deaths(problem):
        return f"{text}."
    return f"{text}, {events(worst.extra_deaths, count, sign=True)} deaths per {count:,} of them."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."

"""The paragraph that can be pasted into a paper: every number from the run, every method with its source.

What the chosen policy costs the patients, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.metadata import version

import pandas as pd

from policies.adjacency import AnyRecord, OneFeature
from policies.catalogue import CATALOGUE
from policies.literature import DEFINITION, Work, citing
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.choice_screen import asked, none_needs_less, without_privacy
from policysim.decision.choose import Choice, Choices, Verdict
from policysim.decision.comparison import compare_problem
from policysim.question.formats import (
    NEGLIGIBLE,
    decimal,
    digits_of,
    enough,
    events,
    percent,
    rounded,
    rounded_down,
    sensitivity,
    steady,
)
from policysim.question.words import ALL, NO_MECHANISM
from policysim.study.basis import basis, in_words, listed
from policysim.study.declared import Study


@dataclass(frozen=True)
class Methods:
    """A paragraph for a paper, and the works that it cites, in full."""

    paragraph: str
    references: tuple[str, ...]


def methods(study: Study, problem: DecisionProblem, choices: Choices, price: Price | None) -> Methods:
    """Describe how a decision was found, or that none was.

    Parameters
    ----------
    study : Study
        What was asked.
    problem : DecisionProblem
        Built from it.
    choices : Choices
        From `policysim.decision.choose.choose`.
    price : Price or None
        Of the least choice, if there is one.
    """
    least = choices.least
    limit = Optimal.works if _limit(choices) and choices.limit_proven and choices.limit < math.inf else ()
    works = (*(CATALOGUE[least.policy].works if least else ()), *DEFINITION, *limit)
    found = (
        [
            _chosen(study, choices, least),
            _privacy(study, problem, price),
            _utilities(study, problem),
            _cost(problem, price, choices.count),
        ]
        if least and price
        else [_nothing(choices), _privacy(study, problem, None), _utilities(study, problem)]
    )
    sentences = [*found, *_limit(choices), _software(study, least)]
    return Methods(" ".join(sentences), tuple(work.full for work in _alphabetical(works)))


def shown(loss: float) -> str:
    """An exact privacy loss in five digits, never below it but for rounding."""
    return f"{enough(steady(loss), 5):.5g}"


def _chosen(study: Study, choices: Choices, least: Choice) -> str:
    method = CATALOGUE[least.policy]
    if choices.one_for_all is not None:
        return (
            f"Treatments are chosen by {method.words} ({choices.one_for_all.action}): that meets what "
            f"was asked for ({asked(choices)}) and reveals nothing, at ε = 0."
        )
    return (
        f"Treatments are chosen by {citing(words_of(study, choices), method.works)}, at ε = {decimal(least.epsilon)}: "
        f"the least ε {_how_found(choices, least)} at which it meets what was asked for ({asked(choices)})."
    )


def words_of(study: Study, choices: Choices) -> str:
    """The mechanism that is chosen; the optimum is that within the bounds that were asked for."""
    least = choices.least
    assert least is not None
    words = study.policy_words(least.policy)
    return f"{words}, among those within the bounds on outcomes" if searched_within(choices, least) else words


def searched_within(choices: Choices, least: Choice) -> bool:
    """Whether a choice is the optimum within bounds that were asked for."""
    return choices.wish.bounded and least.policy == Optimal.name


def _how_found(choices: Choices, least: Choice) -> str:
    wish, digits = choices.wish, digits_of(least.epsilon)
    if wish.max_guess_rate is not None or (wish.bounded and not searched_within(choices, least)):
        return f"found (in steps of 15 %, then refined and rounded up to {digits} digits)"
    return f"(rounded up to {digits} digits)"


def _nothing(choices: Choices) -> str:
    compared = ", ".join(row.policy for row in choices.rows)
    found = "was found to" if choices.wish.scanned else "can"
    none_can = choices.verdict is Verdict.CANNOT
    who = f"{NO_MECHANISM} can" if none_can else f"none of the mechanisms compared ({compared}) {found}"
    return f"We asked for a private choice of treatments ({asked(choices)}); {who}."


def _privacy(study: Study, problem: DecisionProblem, price: Price | None) -> str:
    spent = f", whose exact maximum is {shown(price.epsilon_spent)}" if price else ""
    bounded = "Here ε bounds the log-ratio of the probabilities of any treatment between neighbouring records"
    neighbours = f"Neighbours are {_neighbours(study)}, of {problem.n_records:,} possible records."
    return f"{citing(bounded, DEFINITION)}{spent}. {neighbours}"


def _neighbours(study: Study) -> str:
    if study.adjacency == AnyRecord.name:
        return "any two records (the local model)"
    if study.adjacency == OneFeature.name:
        return "any two records that differ in one feature"
    if study.public:
        return f"any two records that agree in what is public ({listed(study.public)})"
    return f"any two records that differ in nothing but {listed(study.sensitive)}"


def _utilities(study: Study, problem: DecisionProblem) -> str:
    found = problem.sensitivity
    return (
        f"{basis(study).utilities}; between neighbours they differ by at most Δ = {sensitivity(found.value)}, and "
        f"their differences between treatments by at most Γ = {sensitivity(found.range)}."
    )


def _cost(problem: DecisionProblem, price: Price, count: int) -> str:
    fixed = problem.best_fixed_name
    cost = (
        f"Values are exact sums over all records, weighted by the prior: against the best treatment for each record, "
        f"{rounded(price.loss)} in utility is lost per patient"
    )
    if not math.isnan(price.benefit_kept):
        cost += f", and {percent(price.benefit_kept)} of what that gains over one treatment for all ({fixed}) is kept"
    if math.isnan(price.extra_deaths):
        return f"{cost}."
    return f"{cost}; expected deaths change by {events(price.extra_deaths, count, sign=True)} per {count:,} patients."


def _limit(choices: Choices) -> list[str]:
    """What is proven of every mechanism; where nothing is, that."""
    if choices.limit == 0 or choices.one_for_all is not None:
        return []  # there is nothing below
    if not choices.limit_proven:
        return ["Whether another mechanism can do this at a smaller ε is not proven."]
    if choices.limit == math.inf:
        return [f"{without_privacy(choices.wish).capitalize()}."]
    proof = ""
    if choices.certificate:
        reach = rounded_down(choices.certificate["epsilon"], 3)
        proof = f" (certificate.json holds a dual solution that proves it for every ε up to {reach})"
    known = citing(f"{none_needs_less(choices)}, by linear programming", Optimal.works)
    return [f"{known}{proof}."]


def _software(study: Study, least: Choice | None) -> str:
    packages = CATALOGUE.versions([least.policy] if least else [])
    others = "".join(f"; the mechanism is that of {name} {number}" for name, number in packages.items())
    return (
        f"Computed with policysim {version('policysim')} (to be cited as in its CITATION.cff) from the study "
        f"{study.name} (SHA-256 {study.digest[:12]}){others}."
    )


def _alphabetical(works: tuple[Work, ...]) -> list[Work]:
    return sorted(set(works), key=lambda work: work.full)


@dataclass(frozen=True)
class GroupPrice:
    """What the policy costs one group: `share` of the patients, the loss and the extra deaths of each of them."""

    group: str
    level: str
    share: float
    loss: float
    extra_deaths: float


@dataclass(frozen=True)
class Price:
    """What one policy costs at one epsilon, per patient.

    Attributes
    ----------
    loss : float
        V(greedy) - V, in units of utility.
    normalized_loss : float
        As a share of what choosing by lot loses; NaN where nothing is to be gained.
    benefit_kept : float
        As a share of what choosing for each gains over one treatment for all; NaN where such shares say little.
    epsilon_spent : float
        The exact privacy loss.
    deaths, extra_deaths : float
        Expected, and in excess of the best treatment for each; NaN where the study has no deaths.
    worst : GroupPrice or None
        The group of the study that loses most per patient; None if it names no groups, or none loses anything.
    """

    loss: float
    normalized_loss: float
    benefit_kept: float
    epsilon_spent: float
    deaths: float
    extra_deaths: float
    worst: GroupPrice | None


def price_of(study: Study, problem: DecisionProblem, choices: Choices) -> Price | None:
    """The price of the policy that needs least, overall and for the study's groups; None if none is allowed."""
    least = choices.least
    if least is None:
        return None
    chosen = (
        BestFixed(action=problem.actions.index(least.action))
        if least.action
        else choices.wish.demand(problem).within(study.policy(least.policy))
    )
    table = compare_problem(problem, policies=[chosen], epsilons=[least.epsilon], by=study.by)
    everyone = table[table["group"] == ALL].iloc[0]
    return Price(
        loss=float(everyone["loss"]),
        normalized_loss=float(everyone["normalized_loss"]),
        benefit_kept=float(everyone["benefit_kept"]) if choices.has_shares else math.nan,
        epsilon_spent=float(everyone["epsilon_spent"]),
        deaths=float(everyone.get("expected_deaths", math.nan)),
        extra_deaths=float(everyone.get("extra_deaths", math.nan)),
        worst=_worst(in_words(table, study.space)),
    )


def _worst(table: pd.DataFrame) -> GroupPrice | None:
    groups = table[(table["group"] != ALL) & (table["share"] > 0) & (table["loss"] > NEGLIGIBLE)]
    if groups.empty:
        return None
    worst = groups.iloc[int(groups["loss"].argmax())]
    return GroupPrice(
        group=str(worst["group"]),
        level=str(worst["level"]),
        share=float(worst["share"]),
        loss=float(worst["loss"]),
        extra_deaths=float(worst.get("extra_deaths", math.nan)),
    )

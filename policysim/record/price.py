"""What the chosen policy costs the patients, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from policies.problem import DecisionProblem
from policysim.choose import Choices
from policysim.comparison import compare
from policysim.evaluate import ALL
from policysim.study import Study
from policysim.words import NEGLIGIBLE


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
    worse_than_untreated : float
        Probability of a treatment that is worse than none.
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
    worse_than_untreated: float
    epsilon_spent: float
    deaths: float
    extra_deaths: float
    worst: GroupPrice | None


def price_of(study: Study, problem: DecisionProblem, choices: Choices) -> Price | None:
    """The price of the policy that needs least, overall and for the study's groups; None if none is allowed."""
    least = choices.least
    if least is None:
        return None
    table = compare(problem, policies=[least.policy], epsilons=[least.epsilon], by=study.by)
    everyone = table[table["group"] == ALL].iloc[0]
    return Price(
        loss=float(everyone["loss"]),
        normalized_loss=float(everyone["normalized_loss"]),
        benefit_kept=float(everyone["benefit_kept"]) if choices.has_shares else math.nan,
        worse_than_untreated=float(everyone["worse_than_untreated"]),
        epsilon_spent=float(everyone["epsilon_spent"]),
        deaths=float(everyone.get("expected_deaths", math.nan)),
        extra_deaths=float(everyone.get("extra_deaths", math.nan)),
        worst=_worst(table),
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

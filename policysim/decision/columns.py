"""The columns of a comparison of one decision: one line of `COLUMNS` each, and one function where it is computed here.

Each is computed of a `PolicyMeans`: what one policy at one epsilon gives the patients of each group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray
from policysim.question.words import UNBEATABLE
from policysim.study.gain import excess, ratio
from policysim.study.sweep import Columns, Group


@dataclass(frozen=True, eq=False)
class Means:
    """What a table of action probabilities gives, per patient of each group, under the prior.

    NaN for a group of probability 0.

    Attributes
    ----------
    value : array, (n_groups,)
        Expected utility.
    chosen : array, (n_groups, n_kinds, n_actions)
        The probability that a patient is of a kind (`References`) and gets an action.
    outcomes : mapping of str to array, (n_groups,)
        The expectation of each outcome.
    """

    value: FloatArray
    chosen: FloatArray
    outcomes: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class References:
    """What policies are measured against in one problem.

    Records are of one kind that have the same best action: there are as many kinds as actions.

    Attributes
    ----------
    actions : tuple of str
        Their names.
    best : array of bool, (n_kinds, n_actions)
        Which action is best.
    magnitudes : array, (n_groups,)
        The mean of a record's largest |utility|: the scale of the rounding of values.
    greedy, best_fixed, uniform : Means
        Of these policies.
    """

    actions: tuple[str, ...]
    best: NDArray[np.bool_]
    magnitudes: FloatArray
    greedy: Means
    best_fixed: Means
    uniform: Means


@dataclass(frozen=True, eq=False)
class PolicyMeans:
    """One policy at one epsilon, or a bound of the limit there, evaluated.

    Attributes
    ----------
    policy, epsilon : str, float
        As the table has them.
    groups : sequence of Group
        Everyone first.
    means : Means
        What it gives them.
    references : References
        Of the same groups.
    least_loss, most_kept : array, (n_groups,)
        What is proven of the optimum, about everyone; else NaN.
    epsilon_spent, guess_rate, guarantee, loss_bound : float
        What it reveals and claims; NaN for bounds of the limit, which are no policies.
    """

    policy: str
    epsilon: float
    groups: Sequence[Group]
    means: Means
    references: References
    least_loss: FloatArray
    most_kept: FloatArray
    epsilon_spent: float = math.nan
    guess_rate: float = math.nan
    guarantee: float = math.nan
    loss_bound: float = math.nan


def loss(of: PolicyMeans) -> FloatArray:
    """V(greedy) − V."""
    if of.policy == UNBEATABLE:
        return of.least_loss
    return excess(of.references.greedy.value, of.means.value, of.references.magnitudes)


def normalized_loss(of: PolicyMeans) -> FloatArray:
    """Loss / (V(greedy) − V(uniform)); NaN where that is rounding."""
    lost_by_lot = of.references.greedy.value - of.references.uniform.value
    return ratio(loss(of), lost_by_lot, of.references.magnitudes)


def benefit_kept(of: PolicyMeans) -> FloatArray:
    """(V − V(best-fixed)) / (V(greedy) − V(best-fixed)); NaN where that is rounding."""
    if of.policy == UNBEATABLE:
        return of.most_kept
    fixed, magnitudes = of.references.best_fixed.value, of.references.magnitudes
    return ratio(excess(of.means.value, fixed, magnitudes), of.references.greedy.value - fixed, magnitudes)


def best_action_rate(of: PolicyMeans) -> FloatArray:
    """P(the best action)."""
    rates: FloatArray = np.einsum("gka,ka->g", of.means.chosen, of.references.best)
    return rates


def given(of: PolicyMeans) -> dict[str, FloatArray]:
    """P(action), of each."""
    return dict(zip(of.references.actions, of.means.chosen.sum(axis=1).T, strict=True))


def extra(of: PolicyMeans) -> dict[str, FloatArray]:
    """E(outcome) − E(outcome under best-fixed, the same treatment in each group), of each."""
    found = {}
    for name, mean in of.means.outcomes.items():
        fixed = of.references.best_fixed.outcomes[name]
        found[name] = excess(mean, fixed, np.maximum(abs(mean), abs(fixed)))
    return found


# A name that ends in "_" is the beginning of several: of each action, or of each outcome.
COLUMNS: Columns[PolicyMeans] = {
    "value": attrgetter("means.value"),
    "loss": loss,
    "normalized_loss": normalized_loss,
    "benefit_kept": benefit_kept,
    "best_action_rate": best_action_rate,
    "p_": given,
    "expected_": attrgetter("means.outcomes"),
    "extra_": extra,
    "epsilon_spent": attrgetter("epsilon_spent"),
    "guess_rate": attrgetter("guess_rate"),
    "guarantee": attrgetter("guarantee"),
    "loss_bound": attrgetter("loss_bound"),
    "least_loss": attrgetter("least_loss"),
    "most_kept": attrgetter("most_kept"),
}

"""One treatment for all, what choosing for each gains over it, and the proof of the most that any policy keeps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING, FloatArray, rounded_sum
from policies.exponential import Exponential
from policies.optimal.certificate import optimal_certificate
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem, once_per_problem
from policies.proof import float_below
from policysim.numbers import NEGLIGIBLE
from policysim.study.sweep import REFERENCES
from policysim.words import ALL

# Shares of a gain are printed if it is at least so much of the gain of the best for each over equal odds.
LEAST_SHARE = 0.1
# What exceeds one treatment for all by no more than this share of the gain is as good: rounding, not benefit.
NO_BENEFIT = 1e-9
# Values and beliefs that agree in so many decimals are equal: which comes first must not depend on the machine.
EQUAL = 9
# Half the distance from 1 to the next float.
HALF_ULP = Fraction(1, 2**53)


@dataclass(frozen=True)
class Gain:
    """What choosing the best for each patient gains over one treatment for all: the whole of "benefit kept".

    A share of it is a number as long as the gain is more than the rounding of sums, and is worth printing where the
    gain is at least `LEAST_SHARE` of the gain of the best for each over equal odds. Below that, the same treatment for
    everyone is nearly as good as the best for each, and shares of the rest are large for any mechanism: equal odds
    itself keeps 1 - 1 / share of the gain, -900 % at the least share, and without bound below it.

    Attributes
    ----------
    best, fixed, by_lot : float
        The expected utility of the best treatment for each, of the best single treatment for everyone, of equal odds.
    rounding : float
        What the rounding of sums may make of equal values, in units of utility.
    exists : bool
        Whether it is more than rounding.
    has_shares : bool
        Whether shares of it are worth printing: the one rule for every percentage of benefit kept. Of what would be
        printed as 0 there are none.
    beaten_from : float
        The least value that is more than one treatment for all, beyond rounding; inf where nothing can be.
    """

    best: float
    fixed: float
    by_lot: float
    rounding: float
    exists: bool
    has_shares: bool
    beaten_from: float

    def kept(self, value: float) -> float:
        """The share that a policy of this value keeps; NaN where there is nothing to gain."""
        return (value - self.fixed) / (self.best - self.fixed) if self.exists else np.nan


@once_per_problem
def gain_of(problem: DecisionProblem) -> Gain:
    """The gain in a problem, under its prior."""
    if problem.admissible is None:
        by_lot = float(problem.fixed_values.mean())
    else:
        total = np.where(problem.admissible, problem.utilities, 0.0).sum(axis=1)
        by_lot = float(problem.prior @ (total / problem.admissible.sum(axis=1)))
    best, fixed = float(problem.prior @ problem.utilities.max(axis=1)), problem.best_fixed_value
    rounding = ROUNDING * float(problem.prior @ reduce(np.maximum, map(np.abs, problem.utilities.T)))
    gain = best - fixed
    exists = gain > rounding
    return Gain(
        best,
        fixed,
        by_lot,
        rounding,
        exists,
        has_shares=exists and gain >= max(NEGLIGIBLE, LEAST_SHARE * (best - by_lot)),
        beaten_from=fixed + max(NO_BENEFIT * gain, rounding) if exists else math.inf,
    )


def best_first(names: Iterable[str], values: Mapping[str, float]) -> list[str]:
    """Policies by value, best first; the optimum before what is as good but for rounding, others as they come.

    Examples
    --------
    >>> best_first(["exponential", "optimal", "greedy"], {"exponential": 1 + 1e-15, "optimal": 1.0, "greedy": 2.0})
    ['greedy', 'optimal', 'exponential']
    """
    return sorted(names, key=lambda name: (-round(values[name], EQUAL), name != Optimal.name))


def ratio(part: FloatArray, whole: FloatArray, scale: FloatArray) -> FloatArray:
    """Part / whole; NaN where the whole is 0 (or the rounding of a difference of values), or not finite."""
    ratios = np.full_like(part, np.nan)
    return np.divide(part, whole, out=ratios, where=(whole > ROUNDING * scale) & np.isfinite(whole))


def excess(one: FloatArray, other: FloatArray, scale: FloatArray) -> FloatArray:
    """One − other, arrays of means; 0 where that is no more than the rounding of such sums, at their scale."""
    difference: FloatArray = one - other
    return np.where((np.abs(difference) <= ROUNDING * scale) & np.isfinite(scale), 0.0, difference)


@once_per_problem
def weighted_regrets(problem: DecisionProblem) -> tuple[FloatArray, ...]:
    """prior(x) (max u(x, .) - u(x, a)) for each action, (n_records,) each: what is lost if everybody gets it."""
    return tuple(_lost_by_each(problem))


def _lost_by_each(problem: DecisionProblem) -> Iterator[FloatArray]:
    best = problem.utilities.max(axis=1)
    yield from (problem.prior * (best - column) for column in problem.utilities.T)


@once_per_problem
def _fixed_losses(problem: DecisionProblem) -> tuple[Fraction, ...]:
    """What each action loses if everybody gets it, to three roundings: terms >= 0, and their sum is rounded once."""
    return tuple(Fraction(rounded_sum(lost)) for lost in _lost_by_each(problem))


@once_per_problem
def best_fixed_loss(problem: DecisionProblem) -> Fraction:
    """What one action for all (who allow the same) loses at least, to three roundings."""
    if problem.admissible is None:
        return min(_fixed_losses(problem))
    lost = list(_lost_by_each(problem))
    sets = [[Fraction(rounded_sum(lost[action][part.rows])) for action in part.columns] for part in problem.classes]
    return sum(map(min, sets), Fraction(0))


@once_per_problem
def by_lot_loss(problem: DecisionProblem) -> Fraction:
    """The loss of equal odds among the allowed actions, to a few roundings."""
    if problem.admissible is None:
        return sum(_fixed_losses(problem), Fraction(0)) / problem.n_actions
    allowed = problem.admissible.sum(axis=1)
    columns = zip(_lost_by_each(problem), problem.admissible.T, strict=True)
    return sum((Fraction(rounded_sum(np.where(allows, lost / allowed, 0.0))) for lost, allows in columns), Fraction(0))


class Proof(NamedTuple):
    """What every epsilon-private policy loses at least, by a proof that was checked; NaN where there is none.

    Attributes
    ----------
    least_loss : float
        Against the best action for each record, under the problem's prior, in units of utility; rounded down.
    most_kept : float
        The share of the benefit that this leaves to a policy, rounded up; NaN where there is no benefit to keep.
    """

    least_loss: float = math.nan
    most_kept: float = math.nan


def prove_loss(problem: DecisionProblem, epsilon: float) -> Proof:
    """The bound of `optimal_certificate`, after rational arithmetic has accepted it (`Certificate.holds`).

    The benefit is summed from differences of utilities record by record, each term with two roundings, so that no
    offset of the utilities takes its digits.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> [round(number, 6) for number in prove_loss(problem, 1.0)]  # 1 / (1 + e), of 1 / 2
    [0.268941, 0.462117]
    """
    try:
        certificate = optimal_certificate(problem, epsilon)
    except NotApplicableError:
        return Proof()
    if not certificate.holds(problem):
        return Proof()
    # That nobody loses less than 0 needs no proof.
    least = max(0.0, certificate.bound)
    # What the best action for each record gains over the best for all, rounded up; 0 if it is rounding alone.
    exists = gain_of(problem).exists
    gained = best_fixed_loss(problem) * (1 + 8 * HALF_ULP) if exists else Fraction(0)
    return Proof(least, -float_below(Fraction(least) / gained - 1)) if gained else Proof(least)


def private_choices(comparison: pd.DataFrame, policies: Collection[str], *, by: str = "value") -> dict[float, str]:
    """The best private draw at each epsilon: of the policies that spend it, the one of the highest value.

    Parameters
    ----------
    comparison : DataFrame
        As `policysim.decision.comparison.compare_problem` returns it.
    policies : collection of str
        Of these; the exponential mechanism where none of them spends epsilon. Of equal ones the optimum.
    by : str, optional
        The column that ranks.
    """
    everyone = comparison[comparison["group"] == ALL]
    asked = _private(everyone, policies)
    ranked = _private(everyone, [Exponential.name]) if asked.empty else asked
    values: dict[float, dict[str, float]] = {}
    for name, epsilon, value in zip(ranked["policy"], ranked["epsilon"], ranked[by], strict=True):
        values.setdefault(epsilon, {})[name] = value
    return {epsilon: best_first(known, known)[0] for epsilon, known in values.items()}


def _private(everyone: pd.DataFrame, policies: Collection[str]) -> pd.DataFrame:
    """The rows of policies that spend epsilon, and are known to spend no more than it."""
    spend = set(policies) - {policy.name for policy in REFERENCES}
    able = everyone[everyone["policy"].isin(spend) & everyone["epsilon_spent"].notna()]
    return able[able["guarantee"] <= able["epsilon"] * (1 + NEGLIGIBLE)]


# Where a curve over epsilon is printed: at the stated epsilon times these.
TRACED = (0.5, 1.0, 2.0, 5.0, 10.0)


def trace(epsilons: Sequence[float], epsilon: float) -> list[float]:
    """At most five epsilons of a study around the stated one.

    Examples
    --------
    >>> trace([0.1, 0.5, 1.0, 2.0, 5.0, 10.0], 1.0), trace([0.0, 3.0], 3.0)
    ([0.5, 1.0, 2.0, 5.0, 10.0], [3.0])
    """
    finite = [each for each in epsilons if 0 < each < math.inf]
    if not 0 < epsilon < math.inf:
        return [epsilon]
    if len(finite) <= len(TRACED):
        return finite
    return sorted({min(finite, key=lambda each: abs(math.log(each / (epsilon * factor)))) for factor in TRACED})

"""What choosing for each patient gains over one treatment for all, and how much of it no private policy can keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from policies.arrays import ROUNDING, FloatArray
from policies.optimal.certificate import optimal_certificate, rounded_down
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem, once_per_problem
from policysim.question.words import rounded

# Shares of a gain are said where it is at least so much of what the best for each gains over choosing by lot.
LEAST_SHARE = 0.1
# What exceeds one treatment for all by no more than this share of the gain is as good: rounding, not benefit.
NO_BENEFIT = 1e-9


@dataclass(frozen=True)
class Gain:
    """What choosing the best for each patient gains over one treatment for all: the whole of "benefit kept".

    A share of it is a number as long as the gain is more than the rounding of sums, and is worth printing where the
    gain is at least `LEAST_SHARE` of what the best for each gains over choosing by lot. Below that, one treatment for
    all is nearly as good as the best for each, and shares of the rest are large for any mechanism: choosing by lot
    itself keeps 1 - 1 / share of the gain, -900 % at the least share, and without bound below it.

    Attributes
    ----------
    best, fixed, by_lot : float
        The expected utility of the best treatment for each, of the best single treatment for all, of choosing by lot.
    rounding : float
        What the rounding of sums may make of equal values, in units of utility.
    """

    best: float
    fixed: float
    by_lot: float
    rounding: float

    @classmethod
    def of(cls, problem: DecisionProblem) -> Gain:
        """The gain in a problem, under its prior."""
        values = problem.fixed_values
        return cls(
            best=float(problem.prior @ problem.utilities.max(axis=1)),
            fixed=float(values.max()),
            by_lot=float(values.mean()),
            rounding=ROUNDING * float(problem.prior @ np.abs(problem.utilities).max(axis=1)),
        )

    @property
    def exists(self) -> bool:
        """Whether it is more than rounding."""
        return self.best - self.fixed > self.rounding

    @property
    def has_shares(self) -> bool:
        """Whether shares of it are worth printing: the one rule for every percentage of benefit kept."""
        return self.exists and self.best - self.fixed >= LEAST_SHARE * (self.best - self.by_lot)

    @property
    def beaten_from(self) -> float:
        """The least value that is more than one treatment for all, beyond rounding; inf where nothing can be."""
        if not self.exists:
            return np.inf
        return self.fixed + max(NO_BENEFIT * (self.best - self.fixed), self.rounding)

    def kept(self, value: float) -> float:
        """The share that a policy of this value keeps; NaN where there is nothing to gain."""
        return (value - self.fixed) / (self.best - self.fixed) if self.exists else np.nan


def ratio(part: FloatArray, whole: FloatArray, scale: FloatArray) -> FloatArray:
    """Part / whole; NaN where the whole is 0 (or the rounding of a difference of values), or not finite."""
    ratios = np.full_like(part, np.nan)
    return np.divide(part, whole, out=ratios, where=(whole > ROUNDING * scale) & np.isfinite(whole))


def benefit(gain: Gain) -> str:
    """What shares of the benefit mean, or why there are none."""
    if gain.has_shares:
        return "Benefit kept: 0 % = one treatment for all, which costs no privacy; 100 % = the best for each."
    if not gain.exists:
        return "Benefit kept: –. One treatment for all is as good as the best for each: there is nothing to gain."
    return (
        f"Benefit kept: –. One treatment for all loses only {rounded(gain.best - gain.fixed)} in utility per patient "
        f"against the best for each (choosing by lot: {rounded(gain.best - gain.by_lot)}): too little to say shares "
        "of it."
    )


@once_per_problem
def weighted_regrets(problem: DecisionProblem) -> tuple[FloatArray, ...]:
    """prior(x) (max u(x, .) - u(x, a)) for each action, (n_records,) each: what is lost if everybody gets it."""
    best = problem.utilities.max(axis=1)
    return tuple(problem.prior * (best - column) for column in problem.utilities.T)


@once_per_problem
def fixed_losses(problem: DecisionProblem) -> tuple[Fraction, ...]:
    """What each action loses if everybody gets it, to three roundings: no term is below 0, and fsum rounds once."""
    return tuple(Fraction(math.fsum(lost)) for lost in weighted_regrets(problem))


# Half the distance from 1 to the next float.
HALF_ULP = Fraction(1, 2**53)


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
    gained = _gain_rounded_up(problem)
    return Proof(least, -rounded_down(Fraction(least) / gained - 1)) if gained else Proof(least)


@once_per_problem
def _gain_rounded_up(problem: DecisionProblem) -> Fraction:
    """What the best action for each record gains over the best for all, rounded up; 0 if it is rounding alone."""
    return min(fixed_losses(problem)) * (1 + 8 * HALF_ULP) if Gain.of(problem).exists else Fraction(0)

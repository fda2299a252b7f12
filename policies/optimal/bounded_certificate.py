"""A proof of what every epsilon-private policy within bounds loses, by one of a problem without bounds.

Let c(x, a) = max u(x, .) - u(x, a) + sum_j mu_j (o_j(x, a) - min o_j(x, .)) for outcomes o_j with limits b_j, a share
being the outcome that is 1 for its action, and mu_j >= 0. For every policy p within the bounds, by weak duality,

    sum prior p (max u - u) >= sum prior p c - sum_j mu_j (b_j - sum prior min o_j),

and what every epsilon-private policy loses on c against the least c of each record has a proof of its own
(`policies.optimal.certificate`). All terms of c are >= 0, so it is known to some roundings, relative, and so is its sum
over any policy: nothing is lost to cancellation. The remaining sums are put together in rational arithmetic, each
rounded against the claim. At the multipliers of the best within the bounds, the proof is as good as that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from policies.arrays import non_negative
from policies.optimal.bounds import Bound, bounds_on, checked_limits, checked_shares
from policies.optimal.certificate import Certificate, costs_are_of, optimal_certificate, rounded_down
from policies.optimal.masked_programme import programme_of
from policies.problem import DecisionProblem

# Half the distance from 1 to the next float; and more than what underflow takes from all products and sums together.
_HALF_ULP, _UNDERFLOW = Fraction(1, 2**53), Fraction(1, 2**1000)


@dataclass(frozen=True)
class BoundedCertificate:
    """A proof that every epsilon-private policy within the bounds loses at least `bound`.

    Attributes
    ----------
    epsilon : float
        What it is a proof for; it holds for every smaller epsilon too.
    at_most : mapping of str to float or "one for all"
    capacity : mapping of str to float
        The bounds.
    multipliers : mapping of str to float
        mu, by the name of the outcome or action.
    proof : Certificate
        Of what every epsilon-private policy loses on c.
    bound : float
        In units of utility, against the best action for each record, under the problem's prior; rounded down.
    """

    epsilon: float
    at_most: Mapping[str, float | str]
    capacity: Mapping[str, float]
    multipliers: Mapping[str, float]
    proof: Certificate
    bound: float

    def holds(self, problem: DecisionProblem) -> bool:
        """Whether this is a proof for the problem: all inequalities in rational arithmetic, without tolerance.

        c is computed again from the problem; how far its floats may be off is bounded as in the head of the module.
        """
        try:
            bounds = bounds_on(problem, self.at_most, self.capacity)
        except ValueError:
            return False
        prices = [self.multipliers.get(bound.name, math.nan) for bound in bounds]
        if not all(0 <= price < math.inf for price in prices) or not self.proof.epsilon >= self.epsilon:
            return False
        mixed = _mixed(problem, bounds, prices)
        if not (self.proof.holds(mixed) and costs_are_of(self.proof, mixed)):
            return False
        return Fraction(self.bound) <= _proven(problem, bounds, prices, mixed, self.proof)

    def document(self) -> dict[str, Any]:
        """The proof for JSON: the attributes by their names, and `proof` as `Certificate.document`."""
        return {
            "epsilon": self.epsilon,
            "at_most": dict(self.at_most),
            "capacity": dict(self.capacity),
            "multipliers": dict(self.multipliers),
            "bound": self.bound,
            "proof": self.proof.document(),
        }


def bounded_certificate(
    problem: DecisionProblem,
    epsilon: float,
    *,
    at_most: Mapping[str, float | str] | None = None,
    capacity: Mapping[str, float] | None = None,
) -> BoundedCertificate:
    """Prove how much every epsilon-private policy within the bounds loses against the best action for each record.

    Parameters
    ----------
    problem : DecisionProblem
    epsilon : float
        >= 0, inf allowed.
    at_most, capacity : mapping, optional
        As for `policies.optimal.bounded.bounded_optimum`.

    Raises
    ------
    ValueError
        For an unknown name, or a limit that is no number.
    InfeasibleError
        If no epsilon-private policy keeps the bounds.
    NotApplicableError
        Where `bounded_optimum` or `optimal_certificate` cannot be used.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> harm = [[0.0, 0.1], [0.0, 0.1]]
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes={"harm": harm})
    >>> proof = bounded_certificate(problem, 1.0, at_most={"harm": 0.02})  # the best within the bound has .592423 of 1
    >>> proof.holds(problem), round(proof.bound, 6)
    (True, 0.407577)
    """
    epsilon = non_negative(epsilon, "epsilon")
    bounds = bounds_on(problem, at_most, capacity)
    programme = programme_of(problem, epsilon, bounds)
    multipliers = programme.multipliers(programme.solve())
    prices = [multipliers[bound.name] for bound in bounds]
    mixed = _mixed(problem, bounds, prices)
    proof = optimal_certificate(mixed, epsilon)
    bound = rounded_down(_proven(problem, bounds, prices, mixed, proof))
    return BoundedCertificate(epsilon, checked_limits(at_most), checked_shares(capacity), multipliers, proof, bound)


def _mixed(problem: DecisionProblem, bounds: Sequence[Bound], prices: Sequence[float]) -> DecisionProblem:
    """The problem with -c for utilities."""
    costs = problem.utilities.max(axis=1, keepdims=True) - problem.utilities
    for bound, price in zip(bounds, prices, strict=True):
        if bound.action is not None:
            costs[:, bound.action] += price
        else:
            outcome = problem.outcomes[bound.name]
            costs += price * (outcome - outcome.min(axis=1, keepdims=True))
    return problem.with_utilities(-costs)


def _proven(
    problem: DecisionProblem,
    bounds: Sequence[Bound],
    prices: Sequence[float],
    mixed: DecisionProblem,
    proof: Certificate,
) -> Fraction:
    """What every epsilon-private policy within the bounds loses at least, rounded down."""
    # Terms that are not negative: a product each, and one rounding of their sum.
    least = Fraction(math.fsum(problem.prior * -mixed.utilities.max(axis=1))) * (1 - 4 * _HALF_ULP)
    # A difference and a product at each term of c, and a rounding at each sum.
    found = max(least + Fraction(proof.bound), Fraction(0)) * (1 - (len(bounds) + 8) * _HALF_ULP)
    pairs = zip(bounds, prices, strict=True)
    allowed = sum((Fraction(price) * _room(problem, bound) for bound, price in pairs), Fraction(0))
    # That nobody loses less than 0 needs no proof.
    return max(found - allowed - _UNDERFLOW, Fraction(0))


def _room(problem: DecisionProblem, bound: Bound) -> Fraction:
    """b - sum prior min o, rounded up."""
    if bound.action is not None:
        return Fraction(bound.limit)
    outcome = problem.outcomes[bound.name]
    least = outcome.min(axis=1)
    if bound.as_one_for_all:
        over = problem.prior * (problem.of_best_fixed(outcome) - least)
        return Fraction(math.fsum(over)) * (1 + 8 * _HALF_ULP) + _UNDERFLOW
    terms = problem.prior * least
    off = 8 * _HALF_ULP * Fraction(math.fsum(np.abs(terms))) + _UNDERFLOW
    return Fraction(bound.limit) - Fraction(math.fsum(terms)) + off

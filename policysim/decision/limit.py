"""What no private policy can do, and the proof: the loss that none avoids, and whether any can meet a demand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from policies.arrays import rounded_sum
from policies.optimal.certificate import Certificate, optimal_certificate, rounded_down
from policies.optimal.value_limit import value_limit
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem
from policysim.decision.search import Curve, Demand, UnreachableError
from policysim.study.sweep import HALF_ULP

# Steps of the search for the mixture that shows that two demands cannot be met together.
MIXTURES_TRIED = 12


@dataclass(frozen=True)
class Mixture:
    """A weighted sum of the utility lost and of deaths, as a problem of its own.

    A policy that meets a demand loses at most `allowed` on every mixture. By linear duality the converse holds for
    all private policies together: if none meets the demand, some mixture shows it.

    Attributes
    ----------
    weight : float
        In [0, 1]: of utility; the rest goes to deaths.
    problem : DecisionProblem
        The utilities are the mixture, below 0, in the units of the demands' scales.
    allowed : float
        What a policy that meets the demand loses at most against the action that is best for each record by the
        mixture; rounded up.
    """

    weight: float
    problem: DecisionProblem
    allowed: float

    def certificate(self, epsilon: float) -> Certificate | None:
        """The proof of what every epsilon-private policy loses; None where `optimal_certificate` has none."""
        try:
            return optimal_certificate(self.problem, epsilon)
        except NotApplicableError:
            return None

    def margin(self, epsilon: float) -> float:
        """By how much an epsilon-private policy may lose less than is allowed; negative if none meets the demand.

        From the certificate where there is one, and so proven but for `Certificate.holds`.
        """
        certificate = self.certificate(epsilon)
        if certificate is not None:
            return self.allowed - certificate.bound
        greedy = float(self.problem.prior @ self.problem.utilities.max(axis=1))
        return self.allowed - (greedy - value_limit(self.problem, epsilon).unbeatable)


class Limit:
    """The limit of all private policies under one demand.

    Parameters
    ----------
    problem : DecisionProblem
        With the outcome "deaths" if the demand limits deaths.
    demand : Demand
        What must be reached.
    """

    def __init__(self, problem: DecisionProblem, demand: Demand) -> None:
        self._problem = problem
        self._demand = demand
        self._made: dict[float, Mixture] = {}

    def last_impossible(self, near: float = 1.0) -> float:
        """An epsilon at which no private policy meets the demand, and so none at less; the largest, to 1e-4.

        0 if every epsilon may do, inf if none does. The search begins at `near`.
        """
        try:
            # Each demand by itself is cheap to search for, and mostly the two meet where the dearer one does.
            ends = [_between(self._mixture(weight).margin, near) for weight in self._pure]
            low, high = max(end[0] for end in ends), max(end[1] for end in ends)
            if len(ends) == 1 or self.tightest(high).margin(high) >= 0:
                return low
            return _between(lambda epsilon: self.tightest(epsilon).margin(epsilon), high)[0]
        except UnreachableError:
            return math.inf

    def tightest(self, epsilon: float) -> Mixture:
        """The mixture that is hardest to satisfy at an epsilon, or the first found that nothing satisfies."""
        pure = min((self._mixture(weight) for weight in self._pure), key=lambda mixture: mixture.margin(epsilon))
        if len(self._pure) == 1 or pure.margin(epsilon) < 0:
            return pure
        # The margin is convex in the weight: a maximum of functions that are linear in it.
        margin: Callable[[float], float] = lambda weight: self._make(float(weight)).margin(epsilon)  # noqa: E731
        found = minimize_scalar(margin, bounds=(0.0, 1.0), method="bounded", options={"maxiter": MIXTURES_TRIED})
        inner = self._make(float(found.x))
        return inner if inner.margin(epsilon) < pure.margin(epsilon) else pure

    @property
    def _pure(self) -> list[float]:
        """The weights of the demands that were made: 1 for value, 0 for deaths."""
        made = ((1.0, self._demand.loss < math.inf), (0.0, self._demand.deaths < math.inf))
        return [weight for weight, demanded in made if demanded]

    def certificate(self, epsilon: float) -> dict[str, Any] | None:
        """The proof that no epsilon-private policy meets the demand; None where there is none.

        It is given only after rational arithmetic has accepted it: `Certificate.holds`, and a bound above what is
        allowed.
        """
        mixture = self.tightest(epsilon)
        proof = mixture.certificate(epsilon)
        if mixture.weight < 1 and self._problem.outcomes["deaths"].min() < 0:
            return None  # the error bound of `_make` needs costs that are not negative
        if proof is None or not proof.bound > mixture.allowed or not proof.holds(mixture.problem):
            return None
        return {
            "statement": "every epsilon-private policy loses at least `bound` on the objective: more than `allowed`",
            "allowed": mixture.allowed,
            "objective": {"utility": mixture.weight, "deaths avoided": 1 - mixture.weight},
            **proof.document(),
        }

    def _mixture(self, weight: float) -> Mixture:
        if weight not in self._made:
            self._made[weight] = self._make(weight)
        return self._made[weight]

    def _make(self, weight: float) -> Mixture:
        """The mixture of costs z = weight (max u - u) + scale deaths, none of them below 0.

        A policy that meets the demand costs at most weight loss + scale deaths. Each z is off by four roundings at
        most, relative, and so is the cost of every policy; what the best action for each record costs comes off.
        """
        problem, demand = self._problem, self._demand
        if weight == 1:
            return Mixture(1.0, problem, demand.loss)
        # Deaths are counted in the units of utility, so that both parts of a mixture matter.
        deaths = problem.outcomes["deaths"]
        scale = (1 - weight) * float(np.ptp(problem.utilities) / max(np.ptp(deaths), 1e-300))
        costs = scale * deaths
        most = Fraction(scale) * Fraction(demand.deaths)
        if weight > 0:
            costs = costs + weight * (problem.utilities.max(axis=1)[:, None] - problem.utilities)
            most += Fraction(weight) * Fraction(demand.loss)
        least = Fraction(rounded_sum(problem.prior * costs.min(axis=1))) * (1 - 4 * HALF_ULP)
        allowed = most + 8 * HALF_ULP * abs(most) - least
        mixed = DecisionProblem(-costs, problem.prior, problem.adjacency, problem.actions, records=problem.records)
        return Mixture(weight, mixed, -rounded_down(-allowed))


def _between(margin: Callable[[float], float], near: float) -> tuple[float, float]:
    """Two close epsilons: at the first a margin that rises with epsilon is negative, at the second it is not."""
    return Curve("the limit", margin).between(0.0, near=near)

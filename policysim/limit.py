"""Whether any private policy at all can meet a demand, and the proof where none can."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from policies.adjacency import AnyRecord
from policies.optimal_certificate import optimal_certificate
from policies.optimal_limit import value_limit
from policies.problem import DecisionProblem
from policysim.search import Curve, Demand, UnreachableError

# Steps of the search for the mixture that shows that two demands cannot be met together.
MIXTURES_TRIED = 12


@dataclass(frozen=True)
class Mixture:
    """A weighted sum of utility and deaths avoided, as a problem of its own.

    A policy that meets a demand reaches at least `needed` on every mixture. By linear duality the converse holds for
    all private policies together: if none meets the demand, some mixture shows it.

    Attributes
    ----------
    weight : float
        In [0, 1]: of utility; the rest goes to deaths avoided.
    problem : DecisionProblem
        The utilities are the mixture, in the units of the demands' scales.
    needed : float
        What a policy that meets the demand reaches at least.
    """

    weight: float
    problem: DecisionProblem
    needed: float

    def margin(self, epsilon: float) -> float:
        """The most by which an epsilon-private policy exceeds what is needed; negative proves that none meets it."""
        return value_limit(self.problem, epsilon).unbeatable - self.needed


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

    def smallest_epsilon(self) -> float:
        """The least epsilon at which some private policy meets the demand, to 1e-4; inf if there is none."""
        try:
            # Each demand by itself is cheap to search for, and mostly the two meet where the dearer one does.
            least = max(_first(self._mixture(weight).margin) for weight in self._pure)
            if len(self._pure) == 1 or self.tightest(least).margin(least) >= 0:
                return least
            return _first(lambda epsilon: self.tightest(epsilon).margin(epsilon))
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
        made = ((1.0, self._demand.value > -math.inf), (0.0, self._demand.deaths < math.inf))
        return [weight for weight, demanded in made if demanded]

    def certificate(self, epsilon: float) -> dict[str, Any] | None:
        """The proof that no epsilon-private policy meets the demand; None if one may, or not under any-record."""
        mixture = self.tightest(epsilon)
        if not isinstance(self._problem.adjacency, AnyRecord) or mixture.margin(epsilon) >= 0:
            return None
        return {
            "statement": "no epsilon-private policy reaches `needed` on the objective: `bound` is less",
            "needed": mixture.needed,
            "objective": {"utility": mixture.weight, "deaths avoided": 1 - mixture.weight},
            **optimal_certificate(mixture.problem, epsilon),
        }

    def _mixture(self, weight: float) -> Mixture:
        if weight not in self._made:
            self._made[weight] = self._make(weight)
        return self._made[weight]

    def _make(self, weight: float) -> Mixture:
        problem, demand = self._problem, self._demand
        if weight == 1:
            return Mixture(1.0, problem, demand.value)
        # Deaths are counted in the units of utility, so that both parts of a mixture matter.
        deaths = problem.outcomes["deaths"]
        unit = float(np.ptp(problem.utilities) / max(np.ptp(deaths), 1e-300))
        utilities = -(1 - weight) * unit * deaths
        needed = -(1 - weight) * unit * demand.deaths
        if weight > 0:
            utilities = utilities + weight * problem.utilities
            needed += weight * demand.value
        mixed = DecisionProblem(utilities, problem.prior, problem.adjacency, problem.actions, records=problem.records)
        return Mixture(weight, mixed, needed)


def _first(margin: Callable[[float], float]) -> float:
    """The least epsilon at which a margin that rises with epsilon is not negative."""
    return Curve("the limit", margin).first_reaching(0.0)

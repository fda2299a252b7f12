"""The smallest epsilon at which a policy is good enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from policies.arrays import ROUNDING, FloatArray
from policies.catalogue import make_policy
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Greedy, Uniform

# Relative accuracy of the epsilon that is found, and the range that is searched: calibration by sensitivity can need
# thousands where the utilities have a long tail.
TOLERANCE = 1e-4
LOWEST, HIGHEST = 1e-6, 1e9
STEP = 4.0


class UnreachableError(ValueError):
    """No epsilon makes the policy good enough."""


@dataclass(frozen=True)
class Demand:
    """What a policy must reach.

    Attributes
    ----------
    value : float
        The least expected utility V.
    deaths : float
        The most expected deaths per patient; inf if none are demanded.
    """

    value: float
    deaths: float = math.inf

    def margin(self, problem: DecisionProblem, probabilities: FloatArray) -> float:
        """At least 0 if and only if a policy meets the demand; p(a|x) is (n_records, n_actions)."""
        margin = problem.value(probabilities) - self.value
        if self.deaths < math.inf:
            margin = min(margin, self.deaths - expected_deaths(problem, probabilities))
        return margin


def expected_deaths(problem: DecisionProblem, probabilities: FloatArray) -> float:
    """Deaths per patient under a policy; p(a|x) is (n_records, n_actions)."""
    columns = zip(problem.outcomes["deaths"].T, probabilities.T, strict=True)
    return sum(float(np.dot(problem.prior, deaths * chosen)) for deaths, chosen in columns)


def make_demand(
    problem: DecisionProblem,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_deaths: float | None = None,
) -> Demand:
    """The demand that all given limits make together; the same parameters as `smallest_epsilon`."""
    limits = {"max_loss": max_loss, "keep": keep, "max_extra_deaths": max_extra_deaths}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        raise ValueError(f"at least one demand is needed: {', '.join(limits)}.")
    for name, limit in given.items():
        if not math.isfinite(limit):
            raise ValueError(f"{name} must be a finite number, got {name}={limit!r}.")
    greedy = float(problem.prior @ problem.utilities.max(axis=1))
    fixed = float(problem.fixed_values.max())
    value, deaths = -math.inf, math.inf
    if keep is not None:
        value = fixed + keep * (greedy - fixed)
    if max_loss is not None:
        uniform = problem.value(Uniform().probabilities(problem))
        value = max(value, greedy - max_loss * (greedy - uniform))
    if max_extra_deaths is not None:
        if "deaths" not in problem.outcomes:
            raise ValueError("max_extra_deaths needs a problem whose outcomes have deaths.")
        deaths = expected_deaths(problem, Greedy().probabilities(problem)) + max_extra_deaths
    # What is met but for the rounding of sums is met.
    return Demand(value - ROUNDING * abs(value) if value > -math.inf else value, deaths * (1 + ROUNDING))


def smallest_epsilon(
    problem: DecisionProblem,
    policy: str | Policy,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_deaths: float | None = None,
) -> float:
    """Find the least epsilon at which a policy is good enough, to 1e-4 relative and never below what is needed.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    policy : str or Policy
        A name from the catalogue, or a policy whose epsilon is replaced.
    max_loss : float, optional
        The largest normalised loss allowed: (V(greedy) - V) / (V(greedy) - V(uniform)) <= max_loss.
    keep : float, optional
        The least benefit kept: (V - V(best-fixed)) / (V(greedy) - V(best-fixed)) >= keep.
    max_extra_deaths : float, optional
        The most deaths per patient beyond those of greedy; needs a problem with the outcome "deaths". At least one of
        the three is required, and all that are given must be met.

    Returns
    -------
    float
        0 if every epsilon will do.

    Raises
    ------
    UnreachableError
        A ValueError: no epsilon up to 1e9 will do.
    ValueError
        For a demand that is not a finite number, or none given.

    Notes
    -----
    The value of each policy of the catalogue does not fall as epsilon rises. Deaths may rise: a policy that is worth
    more can cost more lives. With `max_extra_deaths` the demand is met at the epsilon found, and not just below it.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> round(smallest_epsilon(problem, "randomized-response", keep=0.8), 3)  # log 9
    2.197
    """
    demand = make_demand(problem, max_loss=max_loss, keep=keep, max_extra_deaths=max_extra_deaths)
    template = make_policy(policy) if isinstance(policy, str) else policy

    def margin(epsilon: float) -> float:
        return demand.margin(problem, replace(template, epsilon=epsilon).probabilities(problem))

    return Curve(template.name, margin).first_reaching(0.0)


class Curve:
    """Something that rises with epsilon; no epsilon is evaluated twice.

    Parameters
    ----------
    name : str
        What it is of, for messages.
    measure : callable
        From an epsilon to the number that should be large.
    known : mapping of float to float, optional
        The measure at some epsilons, from an earlier evaluation.
    """

    def __init__(
        self, name: str, measure: Callable[[float], float], known: Mapping[float, float] | None = None
    ) -> None:
        self._name = name
        self._measure = measure
        self._known = dict(known or {})

    def __call__(self, epsilon: float) -> float:
        """The measure at an epsilon."""
        if epsilon not in self._known:
            self._known[epsilon] = self._measure(epsilon)
        return self._known[epsilon]

    def first_reaching(self, needed: float) -> float:
        """The least epsilon, to 1e-4 relative, at which it is >= needed; UnreachableError if there is none."""
        if self(0.0) >= needed:
            return 0.0
        low, high = self._bracket(needed)
        if low < LOWEST:
            return high
        # exp(log(low)) may differ from low in the last digit, where a measure that is flat may have crossed already.
        first, last = math.log(low), math.log(high)
        ends = {first: low, last: high}
        root = brentq(lambda log: self(ends.get(log, math.exp(log))) - needed, first, last, xtol=TOLERANCE / 4)
        found = math.exp(root)
        # The root is known to within TOLERANCE / 4: step to the side that meets the demand.
        return found if self(found) >= needed else found * math.exp(TOLERANCE / 2)

    def _bracket(self, needed: float) -> tuple[float, float]:
        """Two epsilons between which the demand begins to be met, found among the known or by steps from 1."""
        finite = [epsilon for epsilon in self._known if 0 < epsilon < math.inf]
        high = min((epsilon for epsilon in finite if self(epsilon) >= needed), default=math.nan)
        low = max((epsilon for epsilon in finite if not epsilon >= high and self(epsilon) < needed), default=math.nan)
        if math.isnan(high):
            high = 1.0 if math.isnan(low) else low * STEP
            while self(high) < needed:
                if high > HIGHEST:
                    raise UnreachableError(f"{self._name} does not reach the demand at any epsilon up to {HIGHEST:g}.")
                low, high = high, high * STEP
        if math.isnan(low):
            low = high / STEP
            while self(low) >= needed and low >= LOWEST:
                low, high = low / STEP, low
        return low, high

"""The smallest epsilon at which a policy is good enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from scipy.optimize import brentq

from policies.catalogue import make_policy
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Uniform

# Relative accuracy of the epsilon that is found, and the range that is searched: calibration by sensitivity can need
# thousands where the utilities have a long tail.
TOLERANCE = 1e-4
LOWEST, HIGHEST = 1e-6, 1e9
STEP = 4.0


class UnreachableError(ValueError):
    """No epsilon makes the policy good enough."""


def smallest_epsilon(
    problem: DecisionProblem,
    policy: str | Policy,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
) -> float:
    """Find the least epsilon at which a policy loses little enough, to 1e-4 relative and never below what is needed.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    policy : str or Policy
        A name from the catalogue, or a policy whose epsilon is replaced.
    max_loss : float, optional
        The largest normalised loss allowed: (V(greedy) - V) / (V(greedy) - V(uniform)) <= max_loss.
    keep : float, optional
        The least benefit kept: (V - V(best-fixed)) / (V(greedy) - V(best-fixed)) >= keep. One of both is required.

    Returns
    -------
    float
        0 if every epsilon will do.

    Raises
    ------
    UnreachableError
        A ValueError: no epsilon up to 1e9 will do.
    ValueError
        For a demand that is not a number, or none or both given.

    Notes
    -----
    The value of each policy of the catalogue does not fall as epsilon rises.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> round(smallest_epsilon(problem, "randomized-response", keep=0.8), 3)  # log 9
    2.197
    """
    needed = needed_value(problem, max_loss=max_loss, keep=keep)
    template = make_policy(policy) if isinstance(policy, str) else policy
    return ValueCurve(problem, template).first_reaching(needed)


class ValueCurve:
    """The expected utility of a policy against epsilon; no epsilon is evaluated twice.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    template : Policy
        Its epsilon is replaced.
    known : mapping of float to float, optional
        Values at some epsilons, from an earlier evaluation.
    """

    def __init__(self, problem: DecisionProblem, template: Policy, known: Mapping[float, float] | None = None) -> None:
        self._problem = problem
        self._template = template
        self._known = dict(known or {})

    def __call__(self, epsilon: float) -> float:
        """V at an epsilon."""
        if epsilon not in self._known:
            policy = replace(self._template, epsilon=epsilon)
            self._known[epsilon] = self._problem.value(policy.probabilities(self._problem))
        return self._known[epsilon]

    def first_reaching(self, needed: float) -> float:
        """The least epsilon, to 1e-4 relative, at which V >= needed; UnreachableError if there is none."""
        if self(0.0) >= needed:
            return 0.0
        low, high = self._bracket(needed)
        if low < LOWEST:
            return high
        root = brentq(lambda log: self(math.exp(log)) - needed, math.log(low), math.log(high), xtol=TOLERANCE / 4)
        found = math.exp(root)
        # The root is known to within TOLERANCE / 4: step to the side that meets the demand.
        return found if self(found) >= needed else found * math.exp(TOLERANCE / 2)

    def _bracket(self, needed: float) -> tuple[float, float]:
        """Two epsilons between which the demand begins to be met, found among the known or by steps from 1."""
        finite = [epsilon for epsilon in self._known if 0 < epsilon < math.inf]
        enough = [epsilon for epsilon in finite if self(epsilon) >= needed]
        high = min(enough, default=math.nan)
        low = max((epsilon for epsilon in finite if not epsilon >= high and self(epsilon) < needed), default=math.nan)
        if math.isnan(high):
            high = 1.0 if math.isnan(low) else low * STEP
            while self(high) < needed:
                if high > HIGHEST:
                    name = self._template.name
                    raise UnreachableError(f"{name} does not reach the demand at any epsilon up to {HIGHEST:g}.")
                low, high = high, high * STEP
        if math.isnan(low):
            low = high / STEP
            while self(low) >= needed and low >= LOWEST:
                low, high = low / STEP, low
        return low, high


def needed_value(problem: DecisionProblem, *, max_loss: float | None = None, keep: float | None = None) -> float:
    """The expected utility that a demand asks for; the same parameters as `smallest_epsilon`."""
    given = [(name, value) for name, value in (("max_loss", max_loss), ("keep", keep)) if value is not None]
    if len(given) != 1:
        raise ValueError("give exactly one of max_loss and keep.")
    name, demand = given[0]
    if not math.isfinite(demand):
        raise ValueError(f"{name} must be a finite number, got {name}={demand!r}.")
    greedy = float(problem.prior @ problem.utilities.max(axis=1))
    if max_loss is not None:
        uniform = problem.value(Uniform().probabilities(problem))
        return greedy - max_loss * (greedy - uniform)
    fixed = float(problem.fixed_values.max())
    return fixed + demand * (greedy - fixed)

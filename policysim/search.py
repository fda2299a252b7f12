"""The smallest epsilon at which a policy is good enough."""

from __future__ import annotations

import math
from collections.abc import Callable
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

    def excess(log_epsilon: float) -> float:
        at = replace(template, epsilon=math.exp(log_epsilon))
        return problem.value(at.probabilities(problem)) - needed

    if problem.value(replace(template, epsilon=0.0).probabilities(problem)) >= needed:
        return 0.0
    low, high = _bracket(excess, template.name)
    if low == high:
        return math.exp(low)
    root = float(brentq(excess, low, high, xtol=TOLERANCE / 4))
    # The root is known to within TOLERANCE / 4: step to the side that meets the demand.
    return math.exp(root if excess(root) >= 0 else root + TOLERANCE / 2)


def _bracket(excess: Callable[[float], float], name: str) -> tuple[float, float]:
    """Log epsilons between which the demand begins to be met, found by steps of a factor of 4 from 1."""
    step = math.log(4)
    low = high = 0.0
    if excess(high) >= 0:
        while excess(low := high - step) >= 0:
            high = low
            if low < math.log(LOWEST):
                return low, low
        return low, high
    while excess(high := low + step) < 0:
        low = high
        if high > math.log(HIGHEST):
            raise UnreachableError(f"{name} does not reach the demand at any epsilon up to {HIGHEST:g}.")
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

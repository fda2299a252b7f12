"""The policies by name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from policies.calibration import ExponentialMonotone, ExponentialTight
from policies.capped import ExponentialCapped
from policies.exponential import Exponential, ExponentialBoundedRange
from policies.noisy_max import ReportNoisyMax
from policies.optimal import Optimal
from policies.permute_and_flip import PermuteAndFlip
from policies.policy import Policy
from policies.randomized_features import RandomizedFeatures
from policies.reference import BestFixed, Greedy, Uniform
from policies.response import RandomizedResponse

_CLASSES: tuple[type[Policy], ...] = (
    Greedy,
    BestFixed,
    Uniform,
    Exponential,
    ExponentialMonotone,
    ExponentialBoundedRange,
    ExponentialTight,
    ExponentialCapped,
    PermuteAndFlip,
    ReportNoisyMax,
    RandomizedResponse,
    RandomizedFeatures,
    Optimal,
)
# What is compared unless something else is asked for: one for all, the textbook, its best calibration, the simplest
# mechanism that does well, and the limit.
DEFAULT_POLICIES = (
    BestFixed.name,
    Exponential.name,
    ExponentialTight.name,
    RandomizedResponse.name,
    Optimal.name,
)
CATALOGUE: dict[str, type[Policy]] = {policy.name: policy for policy in _CLASSES}


def make_policy(name: str, *, epsilon: float = float("inf"), **options: Any) -> Policy:
    """Make a policy by name.

    Parameters
    ----------
    name : str
        One of `CATALOGUE`.
    epsilon : float, optional
        The privacy parameter, >= 0; by default inf (no privacy). greedy, best-fixed and uniform ignore it.
    **options
        What that policy takes, such as `base_measure` for the exponential mechanism.

    Raises
    ------
    ValueError
        For an unknown name (the nearest one is suggested) or an option out of range.
    TypeError
        For an option that this policy does not take.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> make_policy("exponential", epsilon=1.0).probabilities(problem).round(4).tolist()
    [[0.3775, 0.6225], [0.6225, 0.3775]]
    """
    if name not in CATALOGUE:
        raise ValueError(unknown_policy(name))
    return CATALOGUE[name](epsilon, **options)


def unknown_policy(name: str) -> str:
    """The message for a name that is not in the catalogue."""
    near = get_close_matches(name, CATALOGUE, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown policy {name!r}; {hint}known: {', '.join(CATALOGUE)}."

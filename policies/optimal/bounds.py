"""What is asked of the optimum: bounds on expected outcomes per patient and on shares of actions, or several priors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from policies.arrays import FloatArray, probability_vector, read_only
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem, once_per_problem

# The bound on an outcome that is its expectation where everybody gets the action that is best for all.
ONE_FOR_ALL = "one for all"

# Shares that add up to less than 1 by no more than this are rounded, and serve everybody.
_SUM_TOLERANCE = 1e-12


class InfeasibleError(NotApplicableError):
    """No policy keeps the bounds; str() says what is possible."""


@dataclass(frozen=True)
class Bound:
    """One bound, on a problem.

    Attributes
    ----------
    name : str
        Of the outcome, or of the action.
    limit : float
        The largest expected outcome per patient, or share of patients who get the action.
    room : float
        What the limit allows beyond one action for all, the best; 0 exactly if it is its own. Of a share, the limit.
    action : int or None
        The position of the action; None for an outcome.
    """

    name: str
    limit: float
    room: float
    action: int | None = None

    def __str__(self) -> str:
        """As in "death at most 0.003"."""
        return f"{self.name if self.action is None else f'the share of {self.name}'} at most {self.limit:.6g}"


def checked_limits(at_most: Any) -> dict[str, float | str]:
    """A copy of `at_most`, empty for None; ValueError for what maps no names to finite numbers or `ONE_FOR_ALL`."""
    limits: dict[str, float | str] = {}
    for name, limit in _items(at_most, "at_most"):
        if limit == ONE_FOR_ALL:
            limits[name] = ONE_FOR_ALL
        else:
            limits[name] = _number(limit, f"at_most[{name!r}]", f"a finite number or {ONE_FOR_ALL!r}", -math.inf)
    return limits


def checked_shares(capacity: Any) -> dict[str, float]:
    """A copy of `capacity`, empty for None; ValueError for what is no mapping of names to numbers in [0, 1]."""
    return {
        name: _number(share, f"capacity[{name!r}]", "a number in [0, 1]", 0.0, 1.0)
        for name, share in _items(capacity, "capacity")
    }


def _items(given: Any, name: str) -> Iterator[tuple[str, Any]]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise ValueError(f"{name} must be a mapping of names to limits, got {name}={given!r}.")
    for key, value in given.items():
        yield str(key), value


def _number(value: Any, name: str, wanted: str, low: float, high: float = math.inf) -> float:
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and low <= number <= high):
        raise ValueError(f"{name} must be {wanted}, got {name}={value!r}.")
    return number


def bounds_on(
    problem: DecisionProblem, at_most: Mapping[str, float | str] | None, capacity: Mapping[str, float] | None
) -> tuple[Bound, ...]:
    """The bounds on a problem's outcomes and actions, in the order given.

    Raises
    ------
    ValueError
        For a name that the problem does not have, or a limit that is none.
    InfeasibleError
        For capacities of all actions with a sum below 1.
    """
    limits, shares = checked_limits(at_most), checked_shares(capacity)
    bounds = []
    for name, limit in limits.items():
        all_alike = one_for_all(problem, name)
        if isinstance(limit, str):
            bounds.append(Bound(name, all_alike, 0.0))
        else:
            bounds.append(Bound(name, limit, limit - all_alike))
    for name, share in shares.items():
        if name not in problem.actions:
            raise ValueError(_unknown("action", name, problem.actions))
        if name in limits:
            raise ValueError(
                f"at_most and capacity must not both name {name!r}: an outcome and an action are called so."
            )
        bounds.append(Bound(name, share, share, problem.actions.index(name)))
    total = math.fsum(shares.values())
    if len(shares) == problem.n_actions and total < 1 - _SUM_TOLERANCE:
        raise InfeasibleError(f"capacity cannot serve everybody: the shares sum to {total:.6g}.")
    return tuple(bounds)


class Priors(tuple[FloatArray, ...]):
    """Priors of the records, (n_records,) each; equal if all their numbers are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Priors) and len(self) == len(other) and all(map(np.array_equal, self, other))

    def __hash__(self) -> int:
        return hash(tuple(len(prior) for prior in self))


def checked_priors(priors: Any) -> Priors:
    """Read-only copies; ValueError for what is no sequence of at least one array."""
    if isinstance(priors, Priors):
        return priors
    if isinstance(priors, Mapping | str) or not isinstance(priors, Sequence | np.ndarray) or not len(priors):
        raise ValueError(f"priors must be a sequence of at least one array (n_records,), got priors={priors!r}.")
    return Priors(read_only(np.array(prior, dtype=np.float64)) for prior in priors)


def require_priors(problem: DecisionProblem) -> None:
    """NotApplicableError for a problem with no other priors."""
    if not problem.priors:
        raise NotApplicableError("optimal-robust needs the priors that patients may come from: the problem has none.")


@once_per_problem
def priors_on(problem: DecisionProblem, priors: Priors | None) -> Priors:
    """These priors, or those of the problem; NotApplicableError for none, ValueError for what is no distribution."""
    if priors is None:
        require_priors(problem)
        return Priors(problem.priors.values())
    return Priors(probability_vector(prior, f"priors[{i}]", problem.n_records) for i, prior in enumerate(priors))


@once_per_problem
def one_for_all(problem: DecisionProblem, name: str) -> float:
    """The expectation of an outcome if everybody gets the action that is best for all (who allow the same)."""
    outcome = outcome_of(problem, name)
    if problem.admissible is None:
        return float((problem.prior @ outcome)[problem.best_fixed_action])
    return float(problem.prior @ problem.of_best_fixed(outcome))


def outcome_of(problem: DecisionProblem, name: str) -> FloatArray:
    """An outcome of a problem, (n_records, n_actions); ValueError for an unknown name."""
    if name not in problem.outcomes:
        raise ValueError(_unknown("outcome", name, problem.outcomes))
    return problem.outcomes[name]


def _unknown(kind: str, name: str, known: Any) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {kind} {name!r}; {hint}known: {', '.join(known) or 'none'}."

"""Any policy where records do not allow every action: each set of records that allow the same is a problem of its own.

What a policy computes of a problem, it computes of each of `DecisionProblem.classes`, which know of no mask; here
it is put together. Neighbours allow the same actions, so a table that is epsilon-private within each class is so as a
whole. The classes are public, as the prior is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, Protocol, TypeAlias

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.problem import DecisionProblem, MaskClass

Method: TypeAlias = Callable[..., Any]
# From a class that has a decision to make, and what else the method was given, to what the method says of it.
OfClass: TypeAlias = Callable[..., Any]


def by_mask(method: Method, together: Callable[..., Any]) -> Method:
    """A method of a policy that takes a problem, made to see problems without a mask alone.

    Parameters
    ----------
    method : callable
        From a policy, a problem and further arguments.
    together : callable
        From a problem with a mask, the method for one of its classes, and the further arguments, to the result.
    """

    @wraps(method)
    def of_problem(policy: Any, problem: DecisionProblem, *more: Any, **named: Any) -> Any:
        if problem.admissible is None or policy.across_masks:
            return method(policy, problem, *more, **named)

        def of_class(part: MaskClass, *given: Any) -> Any:
            return method(policy.among(part.columns, problem.n_actions), part.problem, *given)

        return together(problem, of_class, *more, **named)

    return of_problem


def _table(problem: DecisionProblem, of_class: OfClass, only: float, never: float) -> FloatArray:
    """One table, with what stands at the only action that a record allows, and at one that it does not allow."""
    table = np.full((problem.n_records, problem.n_actions), never, order="F")
    for part in problem.classes:
        _put(table, part, only if part.problem is None else of_class(part))
    return table


class InClasses(Protocol):
    """A decision that is put together from those of its classes."""

    @property
    def n_records(self) -> int:
        """Of all classes."""

    @property
    def n_actions(self) -> int:
        """Of all classes."""

    @property
    def classes(self) -> tuple[MaskClass, ...]:
        """Each record is in one of them."""


def tables_by_class(problem: InClasses, of_class: OfClass) -> tuple[FloatArray, FloatArray]:
    """log p(a|x) and p(a|x), column-major, from those of each class that has a decision to make."""
    shape = (problem.n_records, problem.n_actions)
    logs, probabilities = np.full(shape, -np.inf, order="F"), np.zeros(shape, order="F")
    for part in problem.classes:
        found = (0.0, 1.0) if part.problem is None else of_class(part)
        for table, of_part in zip((logs, probabilities), found, strict=True):
            _put(table, part, of_part)
    return logs, probabilities


def _put(table: FloatArray, part: MaskClass, values: FloatArray | float) -> None:
    columns = np.broadcast_to(values, (len(part.rows), len(part.columns))).T
    for action, column in zip(part.columns, columns, strict=True):
        table[part.rows, action] = column


def _check(problem: DecisionProblem, of_class: OfClass) -> None:
    for part in problem.classes:
        if part.problem is not None:
            of_class(part)


def _loss_bound(problem: DecisionProblem, of_class: OfClass) -> float:
    """The mean over the classes; who has no choice loses nothing."""
    shares = [float(problem.prior[part.rows].sum()) for part in problem.classes]
    pairs = zip(shares, problem.classes, strict=True)
    return sum((share * of_class(part) for share, part in pairs if share > 0 and part.problem is not None), 0.0)


def _sample(problem: DecisionProblem, of_class: OfClass, records: IntArray, rng: np.random.Generator) -> IntArray:
    actions, places = np.empty(len(records), dtype=np.intp), np.empty(problem.n_records, dtype=np.intp)
    for part in problem.classes:
        places[:] = -1
        places[part.rows] = np.arange(len(part.rows))
        asked = places[records]
        mine = asked >= 0
        actions[mine] = part.columns[0 if part.problem is None else of_class(part, asked[mine], rng)]
    return actions


# What a policy computes of a problem, by the name of the method, and how that is put together.
BY_MASK: Mapping[str, Callable[..., Any]] = {
    "log_probabilities": partial(_table, only=0.0, never=-np.inf),
    "probabilities": partial(_table, only=1.0, never=0.0),
    "tables": tables_by_class,
    "check": _check,
    "loss_bound": _loss_bound,
    "sample": _sample,
}

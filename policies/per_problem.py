"""Results that are computed once for each problem and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from policies.problem import DecisionProblem

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def once_per_problem(
    compute: Callable[Concatenate[DecisionProblem, Arguments], Result],
) -> Callable[Concatenate[DecisionProblem, Arguments], Result]:
    """Remember what a function of a problem and of hashable positional arguments returned."""
    known: WeakKeyDictionary[DecisionProblem, dict[Hashable, Result]] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(problem: DecisionProblem, /, *args: Arguments.args, **options: Arguments.kwargs) -> Result:
        results = known.setdefault(problem, {})
        if args not in results:
            results[args] = compute(problem, *args, **options)
        return results[args]

    return remembered

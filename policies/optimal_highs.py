"""Linear programmes for HiGHS (Huangfu & Hall 2018, Parallelizing the dual revised simplex method), through scipy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import linprog

from policies.arrays import FloatArray

_OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


@dataclass(frozen=True)
class Minimum:
    """What the solver found, within its tolerances.

    Attributes
    ----------
    point : array, (n,)
    prices : array, (m,)
        The multipliers, >= 0, of the inequalities.
    """

    point: FloatArray
    prices: FloatArray


def minimise(
    costs: FloatArray,
    below: Any,
    limits: FloatArray,
    uppers: FloatArray,
    *,
    equal: Any = None,
    methods: Sequence[Literal["highs-ds", "highs-ipm"]] = ("highs-ds",),
) -> Minimum | None:
    """Minimise costs . z such that below z <= limits, equal z = 1 and 0 <= z <= uppers; None if that failed.

    Parameters
    ----------
    costs : array, (n,)
    below : array or sparse array, (m, n)
    limits : array, (m,)
    uppers : array, (n,)
    equal : sparse array, (r, n), optional
    methods : sequence of str
        The dual simplex method, or for large programmes an interior point method with crossover; tried in turn.
    """
    solver: Any = linprog
    for method in methods:
        result = solver(
            costs,
            A_ub=below,
            b_ub=limits,
            A_eq=equal,
            b_eq=None if equal is None else np.ones(equal.shape[0]),
            bounds=np.column_stack([np.zeros(len(uppers)), uppers]),
            method=method,
            options=_OPTIONS,
        )
        if result.x is not None:
            return Minimum(result.x, np.maximum(-result.ineqlin.marginals, 0.0))
    return None

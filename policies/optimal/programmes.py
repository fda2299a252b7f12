"""Many small packing programmes at once: the simplex method for a batch that shares its constraint matrix.

Each programme is: maximise sum_T v_T subject to columns v <= capacities and 0 <= v_T <= uppers_T. One public class
of records is one programme, there may be a million of them, and each has only as many rows as there are actions; so
the steps of the simplex method (Dantzig 1951; bounded variables: Chvatal 1983, Linear programming, chapter 8) are
taken for all of them together, one array operation per step and not one solver call per class. It promises nothing:
`policies.optimal.ceilings` proves each answer by duality and gives what is not proven to HiGHS.

Linear programmes for HiGHS (Huangfu & Hall 2018, Parallelizing the dual revised simplex method), through scipy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import linprog

from policies.arrays import BoolArray, FloatArray, IntArray

# Reduced costs and pivots below this are rounding: the numbers are of order 1 when they matter.
TOLERANCE = 1e-12

# The largest temporary of a step has this many entries: it stays in a core's second-level cache.
_ENTRIES = 1 << 17

_LOWER, _UPPER, _BASIC = 0, 1, 2


def solve_packing(columns: FloatArray, capacities: FloatArray, uppers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Optimal prices and amounts of each programme; those that did not end hold their last step.

    Parameters
    ----------
    columns : array, (k, n_sets)
        What one unit of v_T uses of each of the k capacities; shared.
    capacities : array, (n_programmes, k)
        >= 0.
    uppers : array, (n_programmes, n_sets)
        Largest v_T, >= 0 and finite.

    Returns
    -------
    prices : array, (n_programmes, k)
        The dual variables of the capacities.
    amounts : array, (n_programmes, n_sets)
        v.
    """
    n_actions, n_sets = columns.shape
    prices, amounts = np.empty_like(capacities), np.empty_like(uppers)
    size = max(1, _ENTRIES // (n_sets + n_actions * n_actions))
    for start in range(0, len(capacities), size):
        rows = slice(start, start + size)
        prices[rows], amounts[rows] = _solve_block(columns, capacities[rows], uppers[rows])
    return prices, amounts


def _solve_block(columns: FloatArray, capacities: FloatArray, uppers: FloatArray) -> tuple[FloatArray, FloatArray]:
    prices, amounts = np.empty_like(capacities), np.empty_like(uppers)
    simplex = _Simplex.start(columns, capacities, uppers)
    running = np.arange(len(capacities))
    # A set that weighs something enters or flips about once. Many more steps are a cycle among ties, which are seen at
    # epsilon 1e-6 alone: the answer is then nearly always reached, and the caller checks whether it is.
    most_sets = int((uppers > 0).sum(axis=1).max())
    for _ in range(2 * most_sets + 10 * len(columns)):
        done = simplex.step()
        if done.any():
            prices[running[done]], amounts[running[done]] = simplex.prices[done], simplex.amounts()[done]
            running, simplex = running[~done], simplex.keep(~done)
            if not len(running):
                break
    prices[running], amounts[running] = simplex.prices, simplex.amounts()
    return prices, amounts


@dataclass
class _Simplex:
    """The state of every programme of a block; N programmes, k capacities, S sets and after them k slacks.

    Attributes
    ----------
    table : (k, S + k), the columns and the identity for the slacks
    limits : (N, S + k), the upper bounds
    inverse : (N, k, k), of the basis
    basis : (N, k), the variable of each row
    levels : (N, k), the values of the basic variables
    status : (N, S + k), one of _LOWER, _UPPER, _BASIC
    """

    table: FloatArray
    limits: FloatArray
    inverse: FloatArray
    basis: IntArray
    levels: FloatArray
    status: IntArray

    @classmethod
    def start(cls, columns: FloatArray, capacities: FloatArray, uppers: FloatArray) -> _Simplex:
        """Nothing packed: every slack is basic."""
        n_actions, n_sets = columns.shape
        n = len(capacities)
        slacks = np.arange(n_sets, n_sets + n_actions)
        status = np.zeros((n, n_sets + n_actions), dtype=np.intp)
        status[:, slacks] = _BASIC
        return cls(
            np.hstack([columns, np.eye(n_actions)]),
            np.hstack([uppers, np.full((n, n_actions), np.inf)]),
            np.tile(np.eye(n_actions), (n, 1, 1)),
            np.tile(slacks, (n, 1)),
            capacities.copy(),
            status,
        )

    @property
    def n_sets(self) -> int:
        """S."""
        return int(self.table.shape[1] - self.table.shape[0])

    @property
    def prices(self) -> FloatArray:
        """The dual variables, (N, k): a set earns 1 and a slack nothing."""
        earns = (self.basis < self.n_sets).astype(np.float64)
        prices: FloatArray = np.einsum("ni,nij->nj", earns, self.inverse)
        return prices

    def amounts(self) -> FloatArray:
        """v, (N, S)."""
        values = np.where(self.status == _UPPER, self.limits, 0.0)
        np.put_along_axis(values, self.basis, self.levels, axis=1)
        return values[:, : self.n_sets]

    def keep(self, which: BoolArray) -> _Simplex:
        """The programmes that go on."""
        return _Simplex(
            self.table,
            self.limits[which],
            self.inverse[which],
            self.basis[which],
            self.levels[which],
            self.status[which],
        )

    def step(self) -> BoolArray:
        """One pivot or flip of bounds for each programme; True where there was nothing left to gain, (N,)."""
        each = np.arange(len(self.basis))
        # The variable of largest reduced cost enters.
        costs = -(self.prices @ self.table)
        costs[:, : self.n_sets] += 1.0
        np.negative(costs, out=costs, where=self.status == _UPPER)
        costs[(self.status == _BASIC) | (self.limits == 0)] = -np.inf
        entering: IntArray = costs.argmax(axis=1)
        done: BoolArray = costs[each, entering] <= TOLERANCE
        low = self.status[each, entering] == _LOWER
        rising, span = np.where(low, 1.0, -1.0), self.limits[each, entering]
        column = np.einsum("nij,nj->ni", self.inverse, self.table.T[entering])
        row, length = self._leaving(column * rising[:, None])
        flip = ~done & (span <= length)
        change = np.where(done, 0.0, np.minimum(length, span)) * rising
        self.levels -= change[:, None] * column
        self.status[each[flip], entering[flip]] ^= _UPPER
        pivot = np.flatnonzero(~done & ~flip)
        falls = column[pivot, row[pivot]] * rising[pivot] > 0
        self.status[pivot, self.basis[pivot, row[pivot]]] = np.where(falls, _LOWER, _UPPER)
        self.levels[pivot, row[pivot]] = (np.where(low, 0.0, span) + change)[pivot]
        # Those that enter are put into the basis.
        row, column, each = row[pivot], column[pivot], np.arange(len(pivot))
        self.basis[pivot, row] = entering[pivot]
        self.status[pivot, entering[pivot]] = _BASIC
        pivot_rows = self.inverse[pivot, row] / column[each, row][:, None]
        inverse = self.inverse[pivot] - column[:, :, None] * pivot_rows[:, None, :]
        inverse[each, row] = pivot_rows
        self.inverse[pivot] = inverse
        return done

    def _leaving(self, change: FloatArray) -> tuple[IntArray, FloatArray]:
        """The basic variable that first meets a bound, and the step to there."""
        limits = np.take_along_axis(self.limits, self.basis, axis=1)
        room = np.where(change > 0, self.levels, limits - self.levels)
        steps = np.full_like(change, np.inf)
        np.divide(np.maximum(room, 0.0), np.abs(change), out=steps, where=np.abs(change) > TOLERANCE)
        row: IntArray = steps.argmin(axis=1)
        length: FloatArray = steps[np.arange(len(steps)), row]
        return row, length


_OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def minimise(
    costs: FloatArray,
    below: Any,
    limits: FloatArray,
    uppers: FloatArray,
    *,
    equal: Any = None,
    methods: Sequence[Literal["highs-ds", "highs-ipm"]] = ("highs-ds",),
) -> tuple[FloatArray, FloatArray] | None:
    """Minimise costs . z such that below z <= limits, equal z = 1 and 0 <= z <= uppers; None if that failed.

    The point z, (n,), and the multipliers of the inequalities, (m,) and >= 0, within the tolerances of the solver.

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
            return result.x, np.maximum(-result.ineqlin.marginals, 0.0)
    return None

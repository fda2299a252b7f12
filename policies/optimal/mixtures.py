"""The best mixture of private policies: a master programme that makes its columns as it needs them.

A mixture of epsilon-private policies is epsilon-private. Let E_i(p) be expectations of a policy, linear in p: losses
that are to be small, and outcomes that are to stay below limits b_j. All that matters of a policy is then its column,
the vector of its expectations, and the best mixture of given columns is the linear programme

    minimise t >= 0 such that  sum_n z_n E_i(n) <= t for each loss i,  sum_n z_n E_j(n) <= b_j for each limit j,

with weights z >= 0 of sum 1. By weak duality, prices y >= 0 of the rows, those of the losses with a sum of 1, bound
every private policy within the limits: its largest loss is at least min_p y . E(p) - sum_j y_j b_j. The policy that
attains this minimum is the optimum for one weighted sum; it is the next column, and where it gains nothing, mixture
and bound agree (Dantzig & Wolfe 1960, Decomposition principle for linear programs; with one loss and one limit, this
is the secant method on y_j).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from policies.arrays import FloatArray, IntArray

# Columns are made until mixture and bound agree to this, or no longer; rows are of order 1.
GAP, MOST_COLUMNS = 1e-13, 300

# Limits that are exceeded by no more than this are kept; by more than that, a step of the simplex method went wrong.
KEPT, _BROKEN = 1e-12, 1e-10

# A reduced cost this small, relative to its terms, is rounding; so is a weight.
_ROUNDING = 1e-14

# Steps of the simplex method; after the first of them it takes the first variable that gains, which cannot cycle.
_STEPS, _PATIENCE = 1000, 100


@dataclass(frozen=True)
class Column:
    """A private policy as the master programme sees it.

    Attributes
    ----------
    expectations : array, (n_rows,)
        E: the losses first, then what is limited; in units in which differences that matter are of order 1.
    recipe : object
        What makes its table: known to the oracle; of a mixture, its parts.
    """

    expectations: FloatArray
    recipe: Any


# Weights > 0 that sum to 1, and what they are of.
MixtureParts: TypeAlias = Sequence[tuple[float, Column]]


@dataclass(frozen=True)
class _Mixed:
    """The recipe of a mixture."""

    parts: tuple[tuple[float, Column], ...]


class Oracle(Protocol):
    """The optimum for any weighted sum of the rows."""

    @property
    def precision(self) -> float:
        """A gain below this is the tolerance of a solver, and no better policy."""
        raise NotImplementedError

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The private policy of least y . E, and what y . E(p) is at least for every private policy."""
        raise NotImplementedError

    def nearby(self, prices: FloatArray) -> FloatArray:
        """Prices to try first, if those given are no better: such as are likely to be asked for again."""
        return prices

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture of its columns, (n_records, n_actions)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mixture:
    """A solution of the master programme.

    Attributes
    ----------
    parts : tuple of (float, Column)
        Weights > 0 that sum to 1, and what they are of.
    value : float
        t, its largest loss.
    bound : float
        No private policy within the limits has a smaller one.
    prices : array, (n_rows,)
        y, that prove it.
    """

    parts: tuple[tuple[float, Column], ...]
    value: float
    bound: float
    prices: FloatArray


def best_mixture(
    oracle: Oracle, columns: Sequence[Column], limits: FloatArray, margins: FloatArray | None = None
) -> Mixture | None:
    """Solve the master programme; None if no private policy keeps the limits.

    Parameters
    ----------
    oracle : Oracle
    columns : sequence of Column
        Policies to begin with, at least one.
    limits : array, (n_limits,)
        b of the last rows; at least one row before them is a loss.
    margins : array, (n_limits,), optional
        How far below its limits a mixture of several policies stays if it can: more than the rounding of its sums.
    """
    n_losses = len(columns[0].expectations) - len(limits)
    pool = list(columns)
    if not any((column.expectations[n_losses:] <= limits).all() for column in pool):
        rows = np.arange(n_losses, n_losses + len(limits))
        exceeding = SomeRows(oracle, rows, limits, len(rows) + n_losses)
        nearest = _generate(exceeding, [exceeding.of(column) for column in pool], limits[:0])
        if nearest.value > max(KEPT, oracle.precision):
            return None
        parts = tuple((weight, column.recipe) for weight, column in nearest.parts)
        reached = Column(np.sum([weight * column.expectations for weight, column in parts], axis=0), _Mixed(parts))
        pool += [*(column for _, column in parts), reached]
        limits = np.maximum(limits, reached.expectations[n_losses:])
    found = _generate(oracle, pool, limits)
    if len(found.parts) > 1 and margins is not None:
        stricter = limits - margins
        if any((column.expectations[n_losses:] <= stricter).all() for column in pool):
            parts, value, _ = _mix(pool, stricter)
            return Mixture(_flat(parts), value, found.bound, found.prices)
    return Mixture(_flat(found.parts), found.value, found.bound, found.prices)


@dataclass(frozen=True)
class SomeRows(Oracle):
    """An oracle for some of the rows of another, in any order, less a constant each.

    Attributes
    ----------
    oracle : Oracle
    rows : array of int, (m,)
    shifts : array, (m,)
    n_rows : int
        Of the other.
    """

    oracle: Oracle
    rows: IntArray
    shifts: FloatArray
    n_rows: int

    @property
    def precision(self) -> float:
        """As of the other."""
        return self.oracle.precision

    def of(self, column: Column) -> Column:
        """A column of the other; it is the recipe."""
        return Column(column.expectations[self.rows] - self.shifts, column)

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """As of the other, at price 0 for the rows left out."""
        all_prices = np.zeros(self.n_rows)
        all_prices[self.rows] = prices
        column, least = self.oracle.best(all_prices)
        return self.of(column), least - float(prices @ self.shifts)

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
        """As of the other, from its columns."""
        return self.oracle.table([(weight, column.recipe) for weight, column in parts], n_records)


def _generate(oracle: Oracle, pool: list[Column], limits: FloatArray) -> Mixture:
    """Solve from a pool that keeps the limits, and add to it what is made."""
    n_losses = len(pool[0].expectations) - len(limits)
    bound, proof = -np.inf, np.zeros(n_losses + len(limits))
    asked: set[bytes] = set()
    while True:
        parts, value, prices = _mix(pool, limits)
        if value <= bound + GAP or not prices.any() or len(asked) > MOST_COLUMNS:
            break
        near = oracle.nearby(prices)
        tried = prices if near.tobytes() in asked else near
        if tried.tobytes() in asked:
            break
        asked.add(tried.tobytes())
        column, least = oracle.best(tried)
        least -= float(tried[n_losses:] @ limits)
        if least > bound:
            bound, proof = least, tried
        pool.append(column)
        gain = value - float(prices @ column.expectations - prices[n_losses:] @ limits)
        if tried is prices and gain <= oracle.precision:
            break
    return Mixture(parts, value, max(bound, 0.0), proof)


def _flat(parts: Sequence[tuple[float, Column]]) -> tuple[tuple[float, Column], ...]:
    """The parts, with the parts of those that are mixtures themselves in their place."""
    flat: list[tuple[float, Column]] = []
    for weight, column in parts:
        if isinstance(column.recipe, _Mixed):
            flat += [(weight * share, part) for share, part in _flat(column.recipe.parts)]
        else:
            flat.append((weight, column))
    return tuple(flat)


def _mix(columns: Sequence[Column], limits: FloatArray) -> tuple[tuple[tuple[float, Column], ...], float, FloatArray]:
    """The best mixture of these columns, its largest loss, and the prices of the rows, by the simplex method.

    One of the columns must keep the limits. The variables are t, a slack for each row, and the weights.
    """
    expectations = np.stack([column.expectations for column in columns], axis=1)
    n_rows = len(expectations)
    n_losses = n_rows - len(limits)
    level = np.r_[-np.ones(n_losses), np.zeros(len(limits) + 1)]
    right = np.r_[np.zeros(n_losses), limits, 1.0]
    table = np.column_stack([level, np.eye(n_rows + 1, n_rows), np.vstack([expectations, np.ones(len(columns))])])
    worst = expectations[:n_losses].max(axis=0)
    keeps = (expectations[n_losses:] <= limits[:, None]).all(axis=0)
    first = int(np.where(keeps, worst, np.inf).argmin())
    basis = np.r_[1 : n_rows + 1, n_rows + 1 + first]
    basis[expectations[:n_losses, first].argmax()] = 0
    values, duals = _simplex(table, right, basis)
    weights = np.zeros(table.shape[1])
    weights[basis] = np.where(values > _ROUNDING, values, 0.0)
    weights = weights[n_rows + 1 :]
    weights /= weights.sum()
    reached = expectations @ weights
    if (reached[n_losses:] > limits + _BROKEN).any():
        # Whatever the steps came to, the limits are kept.
        weights = np.eye(1, len(columns), first)[0]
        reached = expectations[:, first]
    parts = tuple((float(weights[n]), columns[int(n)]) for n in np.flatnonzero(weights))
    prices = np.maximum(-duals[:n_rows], 0.0)
    prices /= prices[:n_losses].sum() or 1.0
    return parts, max(float(reached[:n_losses].max()), 0.0), prices


def _simplex(table: FloatArray, right: FloatArray, basis: IntArray) -> tuple[FloatArray, FloatArray]:
    """Minimise the first variable such that table . x = right, x >= 0, from a feasible basis, which is changed.

    Each step solves for the basis anew, so that no rounding adds up: it has one row more than the programme. A step
    onto a basis that rounding makes singular or infeasible is not taken.

    Returns
    -------
    values : array, (n_rows + 1,)
        Of the variables of the basis.
    duals : array, (n_rows + 1,)
    """
    costs = np.eye(1, table.shape[1])[0]
    size = np.abs(table)
    barred = np.zeros(table.shape[1], dtype=np.bool_)
    values, duals = _solved(table[:, basis], right), _solved(table[:, basis].T, costs[basis])
    for step in range(_STEPS):
        reduced = costs - duals @ table
        reduced[basis] = 0.0
        gaining = np.flatnonzero((reduced < -_ROUNDING * (costs + np.abs(duals) @ size)) & ~barred)
        if not len(gaining):
            break
        entering = gaining[0] if step > _PATIENCE else gaining[reduced[gaining].argmin()]
        direction = _solved(table[:, basis], table[:, entering])
        falls = np.flatnonzero(direction > 1e-11 * np.abs(direction).max())
        steps = np.maximum(values[falls], 0.0) / direction[falls]
        tied = falls[steps <= steps.min(initial=np.inf) * (1 + 1e-12)]
        if not len(tied):
            break
        changed = basis.copy()
        changed[tied[basis[tied].argmin()] if step > _PATIENCE else tied[direction[tied].argmax()]] = entering
        try:
            after, duals_after = _solved(table[:, changed], right), _solved(table[:, changed].T, costs[changed])
        except np.linalg.LinAlgError:
            barred[entering] = True
            continue
        if after.min() < -_BROKEN:
            barred[entering] = True
            continue
        basis[:], values, duals = changed, after, duals_after
    return values, duals


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)

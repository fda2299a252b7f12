"""The private policy of least weighted sum of expectations: what the master programme asks for, and how it is mixed.

Where all records are neighbours, only the order of the actions of a record matters (`policies.optimal.classes`), so the
records are summed by it: one pass over them gives the optimum at any epsilon. Elsewhere each answer is the optimum of a
problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from policies.adjacency import Partition
from policies.arrays import FloatArray, IntArray
from policies.listed import Listed
from policies.optimal.ceilings import best_ceilings, ceiling_logs
from policies.optimal.classes import class_optimum, hiding_partitions, of_groups, renumbered
from policies.optimal.mixtures import Column
from policies.optimal.sets import class_weights, members_of
from policies.optimal.whole_programme import private_logs, solve_full
from policies.policy import NotApplicableError, one_hot_logs
from policies.problem import DecisionProblem

Parts = Sequence[tuple[float, Column]]


def neighbours(problem: DecisionProblem, epsilon: float) -> tuple[Partition, ...]:
    """Who must be hard to tell apart, as a policy at this epsilon sees it.

    At epsilon = inf nobody has to be, and the order of a record's own actions decides; at 0, under one-feature, every
    record can be reached from every other one: both are solved as if all records were neighbours.

    Raises
    ------
    NotApplicableError
        For one-feature over a list of records at epsilon = 0, where some may be out of reach.
    """
    partitions = hiding_partitions(problem.adjacency, problem.n_records)
    if epsilon == 0 and len(partitions) > 1 and isinstance(problem.adjacency, Listed):
        raise NotApplicableError(
            f"the optimum under {problem.adjacency.name} over a list of records is known at epsilon > 0 alone."
        )
    if np.isinf(epsilon) or (epsilon == 0 and len(partitions) > 1):
        return (Partition((problem.n_records,), (0,)),)
    return partitions


class Groups(NamedTuple):
    """Records by the order of their actions, G groups.

    Attributes
    ----------
    codes : array of int, (n,)
        The group of each record.
    columns : array, (k, 1, G)
        What stands for the utilities of each group: only their order counts.
    worths : array, (G, k, n_rows)
        What each row sums to over the records of a group if they get an action.
    sets : tuple of array, optional
        The sets of actions and their weights, (1, n_sets), where the first row alone is priced, at 1.
    """

    codes: IntArray
    columns: FloatArray
    worths: FloatArray
    sets: tuple[IntArray, FloatArray] | None = None


class Constant(NamedTuple):
    """The recipe of one action for all, which is private at any epsilon."""

    action: int
    n_actions: int


class _Recipe(NamedTuple):
    """A row of log-probabilities for each group, (G, k)."""

    groups: Groups
    logs: FloatArray


@dataclass(frozen=True)
class ByOrder:
    """All records are neighbours of each other (or epsilon is inf).

    Attributes
    ----------
    epsilon : float
    groups : callable
        The groups by order of preference at some prices, (n_rows,).
    near : callable, optional
        Prices near to some, for which groups are likely to be known.
    """

    epsilon: float
    groups: Callable[[FloatArray], Groups]
    near: Callable[[FloatArray], FloatArray] | None = None
    precision = 1e-13

    def nearby(self, prices: FloatArray) -> FloatArray:
        """Prices to try first."""
        return prices if self.near is None else self.near(prices)

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        groups = self.groups(prices)
        costs = groups.worths @ prices
        least = float(costs.min(axis=1).sum())
        n_actions = costs.shape[1]
        if np.isinf(self.epsilon):
            ceilings = np.ones((1, n_actions))
        else:
            masks, weights = groups.sets or class_weights(-costs.T[:, None, :], np.ones((1, len(costs))))
            solution = best_ceilings(members_of(masks, n_actions), weights, self.epsilon)
            ceilings, least = solution.ceilings, least + float(solution.proven[0])
        logs = ceiling_logs(groups.columns, ceilings, self.epsilon)[:, 0, :].T
        expectations = np.einsum("ga,gar->r", np.exp(logs), groups.worths)
        return Column(expectations, _Recipe(groups, logs)), least

    def table(self, parts: Parts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions); its loss is at most epsilon up to rounding of the logs."""
        if len(parts) == 1 and isinstance(parts[0][1].recipe, _Recipe):
            groups, logs = parts[0][1].recipe
            return of_groups(logs, groups.codes)
        # Each combination of groups once: codes are those of the combinations, rows their probabilities.
        codes, rows = np.zeros(n_records, dtype=np.intp), np.zeros((1, 1))
        for weight, column in parts:
            if isinstance(column.recipe, _Recipe):
                groups, logs = column.recipe
                joint, first = renumbered(codes * len(logs) + groups.codes.astype(np.intp), len(rows) * len(logs))
                rows = rows[codes[first]] + weight * np.exp(logs)[groups.codes[first]]
                codes = joint
            else:
                rows = rows + weight * (np.arange(column.recipe.n_actions) == column.recipe.action)
        with np.errstate(divide="ignore"):
            logs = np.log(rows)
        # What rounding of the sums might add to epsilon.
        logs = np.maximum(logs, logs.max(axis=0) - self.epsilon)
        return of_groups(logs, codes)


@dataclass(frozen=True)
class ByTable:
    """Records have neighbours of their own: public classes, or one-feature.

    Attributes
    ----------
    epsilon : float
        Finite; > 0 if there are several partitions.
    partitions : tuple of Partition
        The neighbours.
    problem : callable
        At some prices, (n_rows,): a problem and a unit, such that the weighted sum of the rows of any policy is what
        it loses on the problem against the best action for each, times the unit; and then some constant.
    measure : callable
        The rows of a table of probabilities.
    """

    epsilon: float
    partitions: tuple[Partition, ...]
    problem: Callable[[FloatArray], tuple[DecisionProblem, float, float]]
    measure: Callable[[FloatArray], FloatArray]

    @property
    def precision(self) -> float:
        """The whole programme is solved within the tolerances of HiGHS."""
        return 1e-9 if len(self.partitions) > 1 else 1e-12

    def nearby(self, prices: FloatArray) -> FloatArray:
        """The same: nothing is kept."""
        return prices

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        problem, unit, constant = self.problem(prices)
        logs, proven = self._solve(problem)
        return Column(self.measure(np.exp(logs)), prices), constant + unit * proven

    def _solve(self, problem: DecisionProblem) -> tuple[FloatArray, float]:
        """The optimum of a problem, and what every private policy loses on it."""
        if len(self.partitions) == 1:
            return class_optimum(problem, self.partitions[0], self.epsilon)
        found = solve_full(problem, self.epsilon)
        return found.log_probabilities, float(problem.prior @ problem.utilities.max(axis=1)) - found.bound

    def table(self, parts: Parts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions); each part is solved again, as tables may be large."""
        tables = (self._logs(column, n_records) for _, column in parts)
        if len(parts) == 1:
            return next(tables)
        mixed = np.zeros(())
        for (weight, _), logs in zip(parts, tables, strict=True):
            mixed = mixed + weight * np.exp(logs)
        if len(self.partitions) > 1:
            return private_logs(mixed, self.partitions, self.epsilon)
        with np.errstate(divide="ignore"):
            logs = np.asfortranarray(np.log(mixed))
        (partition,) = self.partitions
        members = partition.by_clique(np.arange(n_records))
        for column in logs.T:
            # What rounding of the sums might add to epsilon.
            floors = partition.extremes(column)[1] - self.epsilon
            column[members] = np.maximum(column[members], floors[:, None])
        return logs

    def _logs(self, column: Column, n_records: int) -> FloatArray:
        if isinstance(column.recipe, Constant):
            return one_hot_logs(np.full(n_records, column.recipe.action), column.recipe.n_actions)
        return self._solve(self.problem(column.recipe)[0])[0]

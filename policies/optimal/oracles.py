"""The private policy of least weighted sum of expectations: what the master programme asks for, and how it is mixed.

Where all records are neighbours, only the order of the actions of a record matters (`policies.optimal.classes`), so the
records are summed by it: one pass over them gives the optimum at any epsilon. Where they are in public classes, these
are solved one by one (`policies.optimal.by_class`). Elsewhere each answer is a whole programme.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from policies.adjacency import Partition
from policies.arrays import FloatArray, IntArray
from policies.listed import Listed
from policies.optimal.ceilings import best_ceilings, ceiling_logs
from policies.optimal.classes import hiding_partitions, of_groups, renumbered
from policies.optimal.mixtures import Column, Oracle
from policies.optimal.sets import class_weights, members_of
from policies.optimal.whole_programme import private_logs, solve_full
from policies.policy import NotApplicableError, one_hot_logs
from policies.problem import DecisionProblem

Parts = Sequence[tuple[float, Column]]

# Combinations of groups that are written out without looking which of them occur.
_MOST_ROWS = 1 << 12


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


class TableOracle(Oracle, Protocol):
    """An oracle that knows the tables of its columns."""

    def table(self, parts: Parts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions)."""


class Constant(NamedTuple):
    """The recipe of one action for all, which is private at any epsilon."""

    action: int
    n_actions: int

    def table(self, n_records: int) -> FloatArray:
        """log p(a|x), (n_records, n_actions)."""
        return one_hot_logs(np.full(n_records, self.action), self.n_actions)


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
                chances, joint = weight * np.exp(logs), codes * len(logs) + groups.codes
                if len(rows) * len(logs) <= _MOST_ROWS:
                    # Also combinations that do not occur: they obey the same ceilings.
                    codes, rows = joint, (rows[:, None, :] + chances).reshape(-1, chances.shape[1])
                else:
                    joint, members = renumbered(joint, len(rows) * len(logs))
                    codes, rows = joint, rows[codes[members]] + chances[groups.codes[members]]
            else:
                rows = rows + weight * (np.arange(column.recipe.n_actions) == column.recipe.action)
        with np.errstate(divide="ignore"):
            logs = np.log(rows)
        # What rounding of the sums might add to epsilon.
        logs = np.maximum(logs, logs.max(axis=0) - self.epsilon)
        return of_groups(logs, codes)


class Weighted(NamedTuple):
    """A weighted sum of the rows as a decision: it is what any policy loses on it, times the unit, and the floors.

    Attributes
    ----------
    utilities : callable
        From records, of any shape, to their utilities, (k, *shape).
    prior : array, (n,)
    unit : float
    floored : bool
        Whether the action of highest utility costs a record not 0 but minus that utility.
    """

    utilities: Callable[[IntArray], FloatArray]
    prior: FloatArray
    unit: float
    floored: bool = False


class Row(NamedTuple):
    """A row of the master programme: the expectation of a cost.

    Attributes
    ----------
    prior : array, (n,)
    columns : sequence of array, (n,) or (1,) each
        The cost of each action.
    scale : float
        What the expectation is divided by.
    """

    prior: FloatArray
    columns: Sequence[FloatArray]
    scale: float

    def expected(self, probabilities: FloatArray) -> float:
        """The row of a table of probabilities, (n, k)."""
        pairs = zip(self.columns, probabilities.T, strict=True)
        return sum(float(np.sum(self.prior * column * chosen)) for column, chosen in pairs) / self.scale


@dataclass(frozen=True)
class ByProgramme:
    """A record has several cliques of neighbours: each answer is a whole programme, at an epsilon in (0, inf).

    Attributes
    ----------
    problem : DecisionProblem
    epsilon : float
    weighted : callable
        From prices of the rows, (n_rows,), to `Weighted`.
    rows : sequence of Row
    """

    problem: DecisionProblem
    epsilon: float
    weighted: Callable[[FloatArray], Weighted]
    rows: Sequence[Row]
    # The tolerances of HiGHS.
    precision = 1e-9

    def nearby(self, prices: FloatArray) -> FloatArray:
        """The same: nothing is kept."""
        return prices

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        weighted = self.weighted(prices)
        utilities = weighted.utilities(np.arange(self.problem.n_records)).T
        problem = self.problem.with_utilities(utilities).with_prior(weighted.prior)
        found = solve_full(problem, self.epsilon)
        greedy = float(problem.prior @ problem.utilities.max(axis=1))
        proven, least = greedy - found.bound, -greedy if weighted.floored else 0.0
        probabilities = np.exp(found.log_probabilities)
        expectations = np.array([row.expected(probabilities) for row in self.rows])
        return Column(expectations, found.log_probabilities), least + weighted.unit * proven

    def table(self, parts: Parts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions)."""
        recipes = [column.recipe for _, column in parts]
        tables = [recipe.table(n_records) if isinstance(recipe, Constant) else recipe for recipe in recipes]
        if len(tables) == 1:
            return np.asfortranarray(tables[0])
        mixed = np.zeros(())
        for (weight, _), logs in zip(parts, tables, strict=True):
            mixed = mixed + weight * np.exp(logs)
        return private_logs(mixed, hiding_partitions(self.problem.adjacency, n_records), self.epsilon)

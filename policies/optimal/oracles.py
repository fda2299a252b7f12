"""The private policy of least weighted sum of expectations: what the master programme asks for, and how it is mixed.

Where all records are neighbours, only the order of the actions of a record matters (`policies.optimal.classes`), so the
records are summed by it: one pass over them gives the optimum at any epsilon. Where they are in public classes, these
are solved one by one (`ByClass`). Elsewhere each answer is a whole programme (`ByProgramme`).

What a class costs at least is a concave function of the prices. Between two prices at which it was solved, it is so at
least what lies on the line between; where the policy of an end costs no more than that, the class is not solved again.
The closer the prices, the fewer classes are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from policies.adjacency import Listed, Partition
from policies.arrays import FloatArray, IntArray, logs_of
from policies.optimal.ceilings import best_ceilings, ceiling_logs, class_weights, members_of
from policies.optimal.classes import agreed_among, greedy_value, hiding_partitions, of_groups, renumbered, solve_cliques
from policies.optimal.mixtures import Column, MixtureParts, Oracle
from policies.optimal.whole_programme import private_logs, solve_full
from policies.policy import NotApplicableError, one_hot_logs
from policies.problem import DecisionProblem

# Combinations of groups that are written out without looking which of them occur.
_MOST_ROWS = 1 << 12


def hiding_of(problem: DecisionProblem, epsilon: float) -> tuple[Partition, ...]:
    """Which records must be hard to tell apart, as a policy at this epsilon sees it.

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


class OrderGroups(NamedTuple):
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

    def table(self, n_records: int) -> FloatArray:
        """log p(a|x), (n_records, n_actions)."""
        return one_hot_logs(np.full(n_records, self.action), self.n_actions)


class _Recipe(NamedTuple):
    """The recipe of `ByOrder`: a row of log-probabilities for each group, (G, k)."""

    groups: OrderGroups
    logs: FloatArray


@dataclass(frozen=True)
class ByOrder(Oracle):
    """All records are neighbours of each other (or epsilon is inf).

    Attributes
    ----------
    epsilon : float
    groups : callable
        The groups by order of preference at some prices, (n_rows,).
    near : callable
        Prices near to some, for which groups are likely to be known.
    """

    epsilon: float
    groups: Callable[[FloatArray], OrderGroups]
    near: Callable[[FloatArray], FloatArray]
    precision = 1e-13

    def nearby(self, prices: FloatArray) -> FloatArray:
        """Prices to try first."""
        return self.near(prices)

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

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
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
        logs = logs_of(rows)
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


class CostRow(NamedTuple):
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
class ByProgramme(Oracle):
    """A record has several cliques of neighbours: each answer is a whole programme, at an epsilon in (0, inf).

    Its recipes are the tables themselves, log p(a|x), (n_records, n_actions).

    Attributes
    ----------
    problem : DecisionProblem
    epsilon : float
    weighted : callable
        From prices of the rows, (n_rows,), to `Weighted`.
    rows : sequence of CostRow
    """

    problem: DecisionProblem
    epsilon: float
    weighted: Callable[[FloatArray], Weighted]
    rows: Sequence[CostRow]
    # The tolerances of HiGHS.
    precision = 1e-9

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        weighted = self.weighted(prices)
        utilities = weighted.utilities(np.arange(self.problem.n_records)).T
        problem = self.problem.with_utilities(utilities).with_prior(weighted.prior)
        found = solve_full(problem, self.epsilon)
        greedy = greedy_value(problem)
        proven, least = greedy - found.bound, -greedy if weighted.floored else 0.0
        probabilities = np.exp(found.log_probabilities)
        expectations = np.array([row.expected(probabilities) for row in self.rows])
        return Column(expectations, found.log_probabilities), least + weighted.unit * proven

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions)."""
        tables = [
            (weight, column.recipe.table(n_records) if isinstance(column.recipe, Constant) else column.recipe)
            for weight, column in parts
        ]
        if len(tables) == 1:
            return np.asfortranarray(tables[0][1])
        partitions = hiding_partitions(self.problem.adjacency, n_records)
        return private_logs(_mixed(tables), partitions, self.epsilon)


def _mixed(tables: Iterable[tuple[float, FloatArray]]) -> FloatArray:
    """The probabilities of a mixture, from weights and log-probabilities."""
    mixed = np.zeros(())
    for weight, logs in tables:
        mixed = mixed + weight * np.exp(logs)
    return mixed


# A class counts as solved at prices if what it may gain is no more than this share of its costs.
_SETTLED = 1e-13

# Records whose probabilities are made at a time.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class _Answer:
    """The recipe of `ByClass`: the optimum at some prices; N classes, k actions.

    Attributes
    ----------
    prices : array, (n_rows,)
    sums : array, (N, n_rows)
        What each class adds to each row.
    least : array, (N,)
        What each class adds at least to the weighted sum of the rows, for every private policy.
    ceilings : array, (N, k)
    made : array of int, (N,)
        The number of the answer in which each class was solved: the orders at its prices are those of the class.
    """

    prices: FloatArray
    sums: FloatArray
    least: FloatArray
    ceilings: FloatArray
    made: IntArray


class ByClass(Oracle):
    """One partition of the records into classes, at a finite epsilon. It remembers its answers.

    Parameters
    ----------
    epsilon : float
    partition : Partition
    weighted : callable
        From prices of the rows, (n_rows,), to `Weighted`.
    rows : sequence of CostRow
    """

    precision = 1e-12

    def __init__(
        self,
        epsilon: float,
        partition: Partition,
        weighted: Callable[[FloatArray], Weighted],
        rows: Sequence[CostRow],
    ) -> None:
        self._epsilon, self._partition, self._weighted, self._rows = epsilon, partition, weighted, rows
        self._answers: list[_Answer] = []

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        answer, left = self._settled(prices)
        self._solve(answer, self._weighted(prices), left)
        self._answers.append(answer)
        return Column(answer.sums.sum(axis=0), answer), float(answer.least.sum())

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions); its loss is at most epsilon up to rounding of the logs."""
        if len(parts) == 1:
            return self._logs(parts[0][1], n_records)
        mixed = _mixed((weight, self._logs(column, n_records)) for weight, column in parts)
        logs = np.asfortranarray(logs_of(mixed))
        members = self._partition.by_clique(np.arange(n_records))
        for column in logs.T:
            # What rounding of the sums might add to epsilon.
            floors = self._partition.extremes(column)[1] - self._epsilon
            column[members] = np.maximum(column[members], floors[:, None])
        return logs

    @cached_property
    def _cliques(self) -> IntArray:
        cliques: IntArray = self._partition.by_clique(np.arange(len(self._rows[0].prior)))
        return cliques

    def _logs(self, column: Column, n_records: int) -> FloatArray:
        if isinstance(column.recipe, Constant):
            return column.recipe.table(n_records)
        answer: _Answer = column.recipe
        logs = np.empty((n_records, answer.ceilings.shape[1]), order="F")
        for made in np.unique(answer.made):
            utilities = self._weighted(self._answers[made].prices).utilities
            for part in self._blocks(np.flatnonzero(answer.made == made)):
                records = self._cliques[part]
                rows = ceiling_logs(utilities(records), answer.ceilings[part], self._epsilon)
                for action, row in enumerate(rows):
                    logs[records, action] = row
        return logs

    def _settled(self, prices: FloatArray) -> tuple[_Answer, IntArray]:
        """An answer with what is known, and the classes that are left."""
        n_classes, n_actions = len(self._cliques), len(self._rows[0].columns)
        place = len(self._answers)
        # The nearest answers on both sides, where prices differ in the last row alone.
        line = [answer for answer in self._answers if (answer.prices[:-1] == prices[:-1]).all()]
        below = max((a for a in line if a.prices[-1] < prices[-1]), key=lambda a: float(a.prices[-1]), default=None)
        above = min((a for a in line if a.prices[-1] > prices[-1]), key=lambda a: float(a.prices[-1]), default=None)
        if below is None or above is None:
            answer = _Answer(
                prices,
                np.zeros((n_classes, len(self._rows))),
                np.zeros(n_classes),
                np.zeros((n_classes, n_actions)),
                np.full(n_classes, place),
            )
            return answer, np.arange(n_classes)
        share = float((prices[-1] - below.prices[-1]) / (above.prices[-1] - below.prices[-1]))
        least = (1 - share) * below.least + share * above.least
        settled = below.sums @ prices - least <= _SETTLED * (np.abs(below.sums) @ prices)
        made = np.where(settled, below.made, place)
        return _Answer(prices, below.sums.copy(), least, below.ceilings.copy(), made), np.flatnonzero(~settled)

    def _solve(self, answer: _Answer, weighted: Weighted, left: IntArray) -> None:
        """Solve the classes that are left."""
        n_actions = answer.ceilings.shape[1]
        agreed = np.empty(len(left), dtype=np.int8)
        for places in self._blocks(np.arange(len(left))):
            cliques = self._cliques[left[places]]
            utilities, priors = weighted.utilities(cliques), _once(weighted.prior, cliques)
            agreed[places] = agreed_among(utilities, weighted.prior[cliques])
            answer.least[left[places]] = -(priors * utilities.max(axis=0)).sum(axis=1) if weighted.floored else 0.0
        answer.ceilings[left] = agreed[:, None] == np.arange(n_actions)
        for action in range(n_actions):
            which = left[agreed == action]
            answer.sums[which] = self._sums(self._cliques[which], {action: 1.0})
        start, contested = 0, left[agreed < 0]
        for solved in solve_cliques(weighted.utilities, weighted.prior, self._cliques[contested], self._epsilon):
            places = contested[start : start + len(solved.records)]
            start += len(places)
            answer.ceilings[places] = solved.solution.ceilings
            answer.least[places] += weighted.unit * solved.units * solved.solution.proven
            chosen = np.exp(ceiling_logs(solved.columns, solved.solution.ceilings, self._epsilon))
            answer.sums[places] = self._sums(solved.records, dict(enumerate(chosen)))

    def _blocks(self, classes: IntArray) -> list[IntArray]:
        return np.array_split(classes, max(1, classes.size * self._cliques.shape[1] // _BLOCK))

    def _sums(self, cliques: IntArray, chosen: Mapping[int, FloatArray | float]) -> FloatArray:
        """What classes add to each row, (N, n_rows), if actions are chosen with these chances, (N, size)."""
        sums = np.zeros((len(cliques), len(self._rows)))
        for place, row in enumerate(self._rows):
            weights = _once(row.prior, cliques) / row.scale
            for action, chance in chosen.items():
                column = row.columns[action]
                cost = column if len(column) == 1 else column[cliques]
                sums[:, place] += (weights * cost * chance).sum(axis=1)
        return sums


def _once(prior: FloatArray, cliques: IntArray) -> FloatArray:
    """The prior of the members, (N, size); cliques of a list are filled up with repetitions, which weigh nothing."""
    weights: FloatArray = prior[cliques]
    weights[:, 1:][cliques[:, 1:] == cliques[:, :-1]] = 0.0
    return weights

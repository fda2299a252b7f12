"""The oracle where records are in public classes: the optimum of a weighted sum of the rows, class by class.

What a class costs at least is a concave function of the prices. Between two prices at which it was solved, it is so at
least what lies on the line between; where the policy of an end costs no more than that, the class is not solved again.
The closer the prices, the fewer classes are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from policies.adjacency import Partition
from policies.arrays import FloatArray, IntArray
from policies.optimal.ceilings import ceiling_logs
from policies.optimal.classes import agreed_among, solve_cliques
from policies.optimal.mixtures import Column
from policies.optimal.oracles import Constant, Parts, Row, Weighted

# A class counts as solved at prices if what it may gain is no more than this share of its costs.
_SETTLED = 1e-13

# Records whose probabilities are made at a time.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class _Answer:
    """The optimum at some prices; N classes, k actions.

    Attributes
    ----------
    prices : array, (n_rows,)
    sums : array, (N, n_rows)
        What each class adds to each row.
    least : array, (N,)
        What each class adds at least to the weighted sum of the rows, for every private policy.
    ceilings : array, (N, k)
    made : array of int, (N,)
        The answer in which each class was solved, whose orders its rows follow.
    """

    prices: FloatArray
    sums: FloatArray
    least: FloatArray
    ceilings: FloatArray
    made: IntArray


@dataclass(frozen=True, eq=False)
class ByClass:
    """One partition of the records into classes, at a finite epsilon.

    Attributes
    ----------
    epsilon : float
    partition : Partition
    weighted : callable
        From prices of the rows, (n_rows,), to `Weighted`.
    rows : sequence of Row
    """

    epsilon: float
    partition: Partition
    weighted: Callable[[FloatArray], Weighted]
    rows: Sequence[Row]
    _answers: list[_Answer] = field(default_factory=list)
    precision = 1e-12

    def nearby(self, prices: FloatArray) -> FloatArray:
        """The same: what is kept serves prices between those asked for."""
        return prices

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        answer, left = self._settled(prices)
        weighted = self.weighted(prices)
        self._solve(answer, weighted, left)
        self._answers.append(answer)
        return Column(answer.sums.sum(axis=0), len(self._answers) - 1), float(answer.least.sum())

    def table(self, parts: Parts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions); its loss is at most epsilon up to rounding of the logs."""
        if len(parts) == 1:
            return self._logs(parts[0][1], n_records)
        mixed = np.zeros(())
        for weight, column in parts:
            mixed = mixed + weight * np.exp(self._logs(column, n_records))
        with np.errstate(divide="ignore"):
            logs = np.asfortranarray(np.log(mixed))
        members = self.partition.by_clique(np.arange(n_records))
        for column in logs.T:
            # What rounding of the sums might add to epsilon.
            floors = self.partition.extremes(column)[1] - self.epsilon
            column[members] = np.maximum(column[members], floors[:, None])
        return logs

    @cached_property
    def _cliques(self) -> IntArray:
        cliques: IntArray = self.partition.by_clique(np.arange(len(self.rows[0].prior)))
        return cliques

    def _logs(self, column: Column, n_records: int) -> FloatArray:
        if isinstance(column.recipe, Constant):
            return column.recipe.table(n_records)
        answer = self._answers[column.recipe]
        logs = np.empty((n_records, answer.ceilings.shape[1]), order="F")
        for made in np.unique(answer.made):
            utilities = self.weighted(self._answers[made].prices).utilities
            for part in self._blocks(np.flatnonzero(answer.made == made)):
                records = self._cliques[part]
                rows = ceiling_logs(utilities(records), answer.ceilings[part], self.epsilon)
                for action, row in enumerate(rows):
                    logs[records, action] = row
        return logs

    def _settled(self, prices: FloatArray) -> tuple[_Answer, IntArray]:
        """An answer with what is known, and the classes that are left."""
        n_classes, n_actions = len(self._cliques), len(self.rows[0].columns)
        place = len(self._answers)
        ends = self._ends(prices)
        if ends is None:
            answer = _Answer(
                prices,
                np.zeros((n_classes, len(self.rows))),
                np.zeros(n_classes),
                np.zeros((n_classes, n_actions)),
                np.full(n_classes, place),
            )
            return answer, np.arange(n_classes)
        below, above, share = ends
        least = (1 - share) * below.least + share * above.least
        settled = below.sums @ prices - least <= _SETTLED * (np.abs(below.sums) @ prices)
        made = np.where(settled, below.made, place)
        return _Answer(prices, below.sums.copy(), least, below.ceilings.copy(), made), np.flatnonzero(~settled)

    def _ends(self, prices: FloatArray) -> tuple[_Answer, _Answer, float] | None:
        """The nearest answers on both sides, where prices differ in the last row alone, and how far from the first."""
        line = [answer for answer in self._answers if (answer.prices[:-1] == prices[:-1]).all()]
        below = max((a for a in line if a.prices[-1] < prices[-1]), key=lambda a: float(a.prices[-1]), default=None)
        above = min((a for a in line if a.prices[-1] > prices[-1]), key=lambda a: float(a.prices[-1]), default=None)
        if below is None or above is None:
            return None
        return below, above, float((prices[-1] - below.prices[-1]) / (above.prices[-1] - below.prices[-1]))

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
            answer.sums[which] = self._sums(self._cliques[which], lambda _: 1.0, (action,))
        start, contested = 0, left[agreed < 0]
        for solved in solve_cliques(weighted.utilities, weighted.prior, self._cliques[contested], self.epsilon):
            places = contested[start : start + len(solved.records)]
            start += len(places)
            answer.ceilings[places] = solved.solution.ceilings
            answer.least[places] += weighted.unit * solved.units * solved.solution.proven
            chosen = np.exp(ceiling_logs(solved.columns, solved.solution.ceilings, self.epsilon))
            answer.sums[places] = self._sums(solved.records, chosen.__getitem__, range(n_actions))

    def _blocks(self, classes: IntArray) -> list[IntArray]:
        return np.array_split(classes, max(1, classes.size * self._cliques.shape[1] // _BLOCK))

    def _sums(
        self, cliques: IntArray, chosen: Callable[[int], FloatArray | float], actions: Iterable[int]
    ) -> FloatArray:
        """What classes add to each row, (N, n_rows), if these actions are chosen with these chances, (N, size)."""
        sums = np.zeros((len(cliques), len(self.rows)))
        for place, row in enumerate(self.rows):
            weights = _once(row.prior, cliques) / row.scale
            for action in actions:
                column = row.columns[action]
                cost = column if len(column) == 1 else column[cliques]
                sums[:, place] += (weights * cost * chosen(action)).sum(axis=1)
        return sums


def _once(prior: FloatArray, cliques: IntArray) -> FloatArray:
    """The prior of the members, (N, size); cliques of a list are filled up with repetitions, which weigh nothing."""
    weights: FloatArray = prior[cliques]
    weights[:, 1:][cliques[:, 1:] == cliques[:, :-1]] = 0.0
    return weights

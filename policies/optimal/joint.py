"""The oracle for records that allow different actions, made of those of the sets that allow the same.

Records that allow the same actions are a problem of their own, and have neighbours among themselves alone. What is
bounded, or bad, is bounded and bad for all of them together: for given prices the best of all private policies is the
best of each set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.optimal.mixtures import Column, MixtureParts, Oracle
from policies.optimal.rows import ClassRows
from policies.policy import one_hot_logs
from policies.problem import MaskClass


@dataclass(frozen=True, eq=False)
class Side:
    """A set of records with a choice, as the master programme sees it.

    Attributes
    ----------
    part : MaskClass
    own : ClassRows
        Its own rows.
    rows : array of int, (m,)
        Which rows of the master programme these are; in the others it has nothing.
    factors : array, (m,)
        What one unit of its own rows adds to those of the master programme, > 0.
    """

    part: MaskClass
    own: ClassRows
    rows: IntArray
    factors: FloatArray

    @property
    def best_for_all(self) -> Column:
        """Of one of its own actions for all, that which is best."""
        return self.own.constants[self.own.problem.best_fixed_action]


@dataclass(frozen=True, eq=False)
class Joint(Oracle):
    """The oracle for all sides together; its recipes are the columns of the sides, one each.

    Attributes
    ----------
    sides : sequence of Side
    n_rows, n_actions : int
    only : array of int, (n_records,)
        The action of those who have no choice.
    """

    sides: Sequence[Side]
    n_rows: int
    n_actions: int
    only: IntArray

    @property
    def precision(self) -> float:
        """That of the least precise."""
        return max((side.own.oracle.precision for side in self.sides), default=0.0)

    def nearby(self, prices: FloatArray) -> FloatArray:
        """As of the only side that has all rows, or the same."""
        if len(self.sides) == 1 and len(self.sides[0].rows) == self.n_rows:
            (side,) = self.sides
            return side.own.oracle.nearby(prices * side.factors) / side.factors
        return prices

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        columns, least = [], 0.0
        for side in self.sides:
            own = prices[side.rows] * side.factors
            if own.any():
                column, proven = side.own.oracle.best(own)
                columns.append(column)
                least += proven
            else:
                columns.append(side.best_for_all)
        return self._together(columns), least

    def constants(self) -> list[Column]:
        """One action for all who allow it, and the best for all on the other sides; and the best on all sides."""
        best = [side.best_for_all for side in self.sides]
        found = [self._together(best)]
        for action in range(self.n_actions):
            places = [np.flatnonzero(side.part.columns == action) for side in self.sides]
            chosen = [
                side.own.constants[int(place[0])] if len(place) else column
                for side, place, column in zip(self.sides, places, best, strict=True)
            ]
            found.append(self._together(chosen))
        return found

    def _together(self, columns: Sequence[Column]) -> Column:
        expectations = np.zeros(self.n_rows)
        for side, column in zip(self.sides, columns, strict=True):
            expectations[side.rows] += side.factors * column.expectations
        return Column(expectations, tuple(columns))

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions); -inf at actions that are not allowed."""
        logs = one_hot_logs(self.only, self.n_actions)
        for place, side in enumerate(self.sides):
            # A side may have the same column in several parts.
            own: dict[int, tuple[float, Column]] = {}
            for weight, together in parts:
                column = together.recipe[place]
                before, _ = own.get(id(column), (0.0, column))
                own[id(column)] = before + weight, column
            of_side = side.own.table(list(own.values()))
            logs[side.part.rows] = -np.inf
            for action, found in zip(side.part.columns, of_side.T, strict=True):
                logs[side.part.rows, action] = found
        return logs

"""Exact expectations over a day of treatment and the night after it, for all records at once.

Given the fixed part of the record, the treatment, and the flags that the hazard of death reads, transitions factor
over the transient flags: a flag's day is a 2 x 2 matrix. Survival is exp(-level - slope * kappa . y), so it too is a
product over the flags y that are left, and multiplies what is averaged. Hence no matrix over records is ever made:
Kronecker products of a few flags' matrices are applied along their axes, for all fixed parts together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray
from envs.records import IntArray
from envs.scenario import DEATH
from envs.treatment_response import Course

# Flags whose matrices are multiplied out before they are applied: with 2^4 columns there is little to multiply, and few
# passes over the table.
FLAGS_AT_ONCE = 4
# Multiplications at a time. So few that a library of linear algebra starts no threads of its own for them: several
# policies are evaluated at a time, and its threads would wait for each other. It also fits into a processor's cache.
PRODUCTS_AT_ONCE = 1 << 17
Index = tuple[int | slice, ...]


@dataclass(frozen=True)
class _Case:
    """What the transient flags that the hazard reads ("risky" ones) are in the morning.

    Attributes
    ----------
    index : tuple
        Their levels, and all levels of the other transient flags: an index of a table inside.
    baseline : array, (n_fixed,)
        exp(-level).
    evenings : list of (index, array)
        For each way the risky flags may be in the evening, its index and exp(-slope kappa . y) there.
    chances : array, (n_actions, n_evenings)
        The probability of each of these evenings.
    """

    index: Index
    baseline: FloatArray
    evenings: list[tuple[Index, FloatArray]]
    chances: FloatArray


class Backup:
    """Expectations backwards, and probabilities forwards, through one day and night of a course.

    Inside, a table over records is (2,) * n_transient + (n_fixed,): one axis for each transient flag, then one for
    all the rest of the record.

    Parameters
    ----------
    course : Course
        The numbers of the day.
    """

    def __init__(self, course: Course) -> None:
        scenario = course.scenario
        self._shape = scenario.space.shape
        transient = [scenario.space.axis(flag) for flag in scenario.transient]
        fixed = [axis for axis in range(len(self._shape)) if axis not in transient]
        self._order = (*transient, *fixed)
        self._n_flags, self._n_fixed = len(transient), math.prod(self._shape[axis] for axis in fixed)
        left = [[grid.ravel() for grid in row] for row in course.response.presence]
        self._presence = np.array(left).reshape(len(left), self._n_flags, 2)
        self._night_order = course.night_order
        self._onset = [self._inside(table) for table in course.onset]
        hazard = course.response.hazard(DEATH, 0)
        self._level, self._slope, self._kappa = self._inside(hazard.level), self._inside(hazard.slope), hazard.kappa

    def continuation(
        self, values: FloatArray, out: FloatArray | None = None, *, actions: Sequence[int] | None = None
    ) -> FloatArray:
        """E[values(the next morning's record); 0 where the stay ends], (n_records,) -> (n_records, n_actions).

        The stay ends by death or by full recovery; whether this is the last day is for the caller to know.

        Parameters
        ----------
        values : array, (n_records,)
        out : array, (n_records, n_actions), optional
            Where the result goes, its columns contiguous; by default a new column-major array.
        actions : sequence of int, optional
            The actions to look at, a column each; all by default.
        """
        chosen = range(len(self._presence)) if actions is None else actions
        evening = np.array(self._inside(values.reshape(self._shape)))
        for flag in self._night_order:
            absent, present = self._sides(evening, flag)
            absent += self._onset[flag].take(0, axis=flag) * (present - absent)
        evening[self._recovered] = 0.0
        result = np.empty((len(values), len(chosen)), order="F") if out is None else out
        targets = [column.reshape(self._shape).transpose(self._order) for column in result.T]
        for case in self._cases:
            survivors = [(evening[index] * spared).reshape(-1, self._n_fixed) for index, spared in case.evenings]
            for target, action in zip(targets, chosen, strict=True):
                mean = sum(chance * part for chance, part in zip(case.chances[action], survivors, strict=True))
                mean = _along(self._others[action], np.asarray(mean, dtype=np.float64))
                mean *= case.baseline
                place = target[case.index]
                place[...] = mean.reshape(place.shape)
        return result

    def push(
        self, distribution: FloatArray, probabilities: FloatArray, *, actions: Sequence[int] | None = None
    ) -> FloatArray:
        """The distribution of the next morning's record, (n_records,); what is missing from 1 has ended its stay.

        Parameters
        ----------
        distribution : array, (n_records,)
            Of this morning's record.
        probabilities : array, (n_records, n_actions)
            p(a|x) of the day's treatment.
        actions : sequence of int, optional
            The actions that the columns are about; all by default.
        """
        chosen = range(len(self._presence)) if actions is None else actions
        flows = [self._inside((distribution * column).reshape(self._shape)) for column in probabilities.T]
        evening = np.zeros((*(2,) * self._n_flags, self._n_fixed))
        for case in self._cases:
            arriving = [
                _along([matrix.T for matrix in matrices], flow[case.index].reshape(-1, self._n_fixed) * case.baseline)
                for flow, matrices in zip(flows, (self._others[action] for action in chosen), strict=True)
            ]
            for (index, spared), chances in zip(case.evenings, case.chances[list(chosen)].T, strict=True):
                mass = sum(chance * part for chance, part in zip(chances, arriving, strict=True))
                place = evening[index]
                place += np.asarray(mass).reshape(place.shape) * spared
        evening[self._recovered] = 0.0
        # The other way round than backwards: an onset still looks at the evening's record.
        for flag in reversed(self._night_order):
            absent, present = self._sides(evening, flag)
            appears = self._onset[flag].take(0, axis=flag) * absent
            present += appears
            absent -= appears
        return self._outside(evening)

    def restricted(self, columns: IntArray) -> tuple[Backup, IntArray]:
        """The same days for some of the fixed parts only, and which records are left, (n_left,), in its own order.

        The fixed part of a record never changes, so what happens to one does not depend on any other.

        Parameters
        ----------
        columns : array of int
            Positions among the fixed parts, in the order of the record.
        """
        part = copy(self)
        for cached in ("_cases", "_others", "_risky"):
            part.__dict__.pop(cached, None)
        part._shape, part._order = (*(2,) * self._n_flags, len(columns)), tuple(range(self._n_flags + 1))
        part._n_fixed = len(columns)
        part._onset = [table[..., columns] for table in self._onset]
        part._level, part._slope = self._level[..., columns], self._slope[..., columns]
        numbers = np.arange(math.prod(self._shape)).reshape(self._shape)
        return part, self._inside(numbers)[..., columns].ravel()

    @property
    def numbers(self) -> FloatArray:
        """All that the days of a fixed part depend on, a column each: fixed parts with the same numbers are alike."""
        tables = (self._level, self._slope, *self._onset)
        return np.concatenate([table.reshape(-1, self._n_fixed) for table in tables])

    @property
    def n_fixed(self) -> int:
        """How many fixed parts a record may have."""
        return self._n_fixed

    @property
    def _recovered(self) -> tuple[int, ...]:
        return (0,) * self._n_flags

    @cached_property
    def _risky(self) -> list[int]:
        """The transient flags that the hazard reads."""
        lengths = zip(self._level.shape[:-1], self._slope.shape[:-1], strict=True)
        return [flag for flag, pair in enumerate(lengths) if max(pair) > 1]

    @cached_property
    def _others(self) -> list[list[FloatArray]]:
        """For each action the day of every other flag, multiplied out: P(y afterwards | x before), x by y."""
        others = [flag for flag in range(self._n_flags) if flag not in self._risky]
        days = [np.stack([1 - presence, presence], axis=2)[others] for presence in self._presence]
        return [_multiplied_out(list(matrices)) for matrices in days]

    @cached_property
    def _cases(self) -> list[_Case]:
        """One case for each combination of the risky flags."""
        every: tuple[int | slice, ...] = (slice(None),)
        indices = list(product(*((0, 1) if flag in self._risky else every for flag in range(self._n_flags))))
        danger = _sum_over_flags(self._kappa)[..., None]
        cases = []
        for morning in indices:
            slope = _at(self._slope, morning)
            evenings = [(index, np.exp(-slope * danger[index]) if slope.any() else np.ones(1)) for index in indices]
            chances = [[self._chance(presence, morning, index) for index in indices] for presence in self._presence]
            cases.append(_Case(morning, np.exp(-_at(self._level, morning)), evenings, np.array(chances)))
        return cases

    def _chance(self, presence: FloatArray, morning: Index, evening: Index) -> float:
        """P(the risky flags in the evening | in the morning)."""
        present = [(presence[flag, morning[flag]], evening[flag]) for flag in self._risky]
        return math.prod(float(p) if there else 1 - float(p) for p, there in present)

    def _inside(self, grid: NDArray[Any]) -> NDArray[Any]:
        """A table over the grid of records, put in order; axes of length 1 of the transient flags stay so."""
        table = grid.transpose(self._order)
        flags, fixed = table.shape[: self._n_flags], [self._shape[axis] for axis in self._order[self._n_flags :]]
        return np.broadcast_to(table, (*flags, *fixed)).reshape(*flags, self._n_fixed)

    def _outside(self, table: FloatArray) -> FloatArray:
        """A full table inside as one value per record, (n_records,)."""
        shape = [self._shape[axis] for axis in self._order]
        return table.reshape(shape).transpose(np.argsort(self._order)).ravel()

    def _sides(self, table: FloatArray, flag: int) -> tuple[FloatArray, FloatArray]:
        """Views of a table inside where a flag is absent and where it is present."""
        sides = np.moveaxis(table, flag, 0)
        return sides[0], sides[1]


def _sum_over_flags(kappa: FloatArray) -> FloatArray:
    """kappa . y for every combination y of the flags, (2,) * n_flags."""
    return np.asarray(np.tensordot(kappa, np.indices((2,) * len(kappa)), 1), dtype=np.float64)


def _at(table: FloatArray, case: Index) -> FloatArray:
    """The (n_fixed,) entries of a table that depends on no other transient flags than those of the case."""
    return table[tuple(level if length > 1 else 0 for level, length in zip(case, table.shape, strict=False))]


def _multiplied_out(matrices: Sequence[FloatArray]) -> list[FloatArray]:
    """The Kronecker products of FLAGS_AT_ONCE matrices at a time."""
    products = []
    for start in range(0, len(matrices), FLAGS_AT_ONCE):
        kernel: FloatArray = np.ones((1, 1))
        for matrix in matrices[start : start + FLAGS_AT_ONCE]:
            kernel = np.asarray(np.kron(kernel, matrix), dtype=np.float64)
        products.append(kernel)
    return products


def _along(matrices: Sequence[FloatArray], table: FloatArray) -> FloatArray:
    """Apply one square matrix along each group of flags of a table, (2^n_flags, n_fixed); a new table."""
    shape, done = table.shape, 1
    for matrix in matrices:
        before = table.reshape(done, len(matrix), -1)
        table = np.empty(before.shape)
        step = max(1, PRODUCTS_AT_ONCE // matrix.size)
        for start in range(0, before.shape[2], step):
            part = slice(start, start + step)
            np.matmul(matrix, before[:, :, part], out=table[:, :, part])
        done *= len(matrix)
    return table.reshape(shape)

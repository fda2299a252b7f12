"""Exact expectations over a day of treatment and the night after it, for all records at once.

Given the fixed part of the record, the treatment, and the flags that the hazard of death reads, transitions factor
over the transient flags: a flag's day is a 2 x 2 matrix. Survival is exp(-level - slope * kappa . y), so it too is a
product over the flags y that are left, and multiplies what is averaged. Hence no matrix over records is ever made:
Kronecker products of a few flags' matrices are applied along their axes, for all fixed parts together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from envs.cohort import FloatArray
from envs.course import Course

# Flags whose matrices are multiplied out before they are applied: 2^8 columns make good use of the processor.
FLAGS_AT_ONCE = 8
Index = tuple[int | slice, ...]


@dataclass(frozen=True)
class _Case:
    """What the transient flags that the hazard reads are in the morning.

    Attributes
    ----------
    index : tuple
        Their levels, and all levels of the other transient flags: an index of a table inside.
    baseline : array, (n_fixed,)
        exp(-level).
    spared : array
        exp(-slope kappa . y) for each evening y; broadcasts to a table inside.
    """

    index: Index
    baseline: FloatArray
    spared: FloatArray


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
        self._presence = course.response.presence
        self._night_order = course.night_order
        self._onset = [self._inside(table) for table in course.onset]
        level, slope, self._kappa = course.hazards
        self._level, self._slope = self._inside(level), self._inside(slope)

    def continuation(self, values: FloatArray) -> FloatArray:
        """E[values(the next morning's record); 0 where the stay ends], (n_records,) -> (n_records, n_actions).

        The stay ends by death or by full recovery; whether this is the last day is for the caller to know. The result
        is column-major.
        """
        evening = np.array(self._inside(values.reshape(self._shape)))
        for flag in self._night_order:
            absent, present = self._sides(evening, flag)
            absent += self._onset[flag].take(0, axis=flag) * (present - absent)
        evening[self._recovered] = 0.0
        result = np.empty((len(self._presence), *self._shape))
        for case in self._cases:
            survivors = (evening * case.spared).reshape(-1, self._n_fixed)
            for action, presence in enumerate(self._presence):
                mean = _along(_day(presence, case.index), survivors)
                mean *= case.baseline
                target = result[action].transpose(self._order)[case.index]
                target[...] = mean.reshape(target.shape)
        return result.reshape(len(result), -1).T

    def push(self, distribution: FloatArray, probabilities: FloatArray) -> FloatArray:
        """The distribution of the next morning's record, (n_records,); what is missing from 1 has ended its stay.

        Parameters
        ----------
        distribution : array, (n_records,)
            Of this morning's record.
        probabilities : array, (n_records, n_actions)
            p(a|x) of the day's treatment.
        """
        evening = np.zeros((*(2,) * self._n_flags, self._n_fixed))
        for case in self._cases:
            arriving = np.zeros((2**self._n_flags, self._n_fixed))
            for presence, chosen in zip(self._presence, probabilities.T, strict=True):
                mass = self._inside((distribution * chosen).reshape(self._shape))[case.index].reshape(-1, self._n_fixed)
                arriving += _along([matrix.T for matrix in _day(presence, case.index)], mass * case.baseline)
            evening += arriving.reshape(evening.shape) * case.spared
        evening[self._recovered] = 0.0
        # The other way round than backwards: an onset still looks at the evening's record.
        for flag in reversed(self._night_order):
            absent, present = self._sides(evening, flag)
            appears = self._onset[flag].take(0, axis=flag) * absent
            present += appears
            absent -= appears
        return self._outside(evening)

    @property
    def _recovered(self) -> tuple[int, ...]:
        return (0,) * self._n_flags

    @cached_property
    def _cases(self) -> list[_Case]:
        """One case for each combination of those transient flags that the hazard reads."""
        lengths = zip(self._level.shape[:-1], self._slope.shape[:-1], strict=True)
        every: tuple[int | slice, ...] = (slice(None),)
        levels = [(0, 1) if max(pair) > 1 else every for pair in lengths]
        danger = _sum_over_flags(self._kappa)[..., None]
        cases = []
        for index in product(*levels):
            slope = _at(self._slope, index)
            spared: FloatArray = np.exp(-slope * danger) if slope.any() else np.ones(1)
            cases.append(_Case(index, np.exp(-_at(self._level, index)), spared))
        return cases

    def _inside(self, grid: FloatArray) -> FloatArray:
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


def _day(presence: FloatArray, case: Index) -> list[FloatArray]:
    """For each flag P(y afterwards | x before): rows x (one row where the case says what x is), columns y."""
    rows = np.stack([1 - presence, presence], axis=2)
    return [matrix if isinstance(level, slice) else matrix[[level]] for matrix, level in zip(rows, case, strict=True)]


def _along(matrices: Sequence[FloatArray], table: FloatArray) -> FloatArray:
    """Apply one matrix along each flag's axis: (product of their columns, n_fixed) -> (product of rows, n_fixed)."""
    n_fixed, done = table.shape[1], 1
    for start in range(0, len(matrices), FLAGS_AT_ONCE):
        kernel: FloatArray = np.ones((1, 1))
        for matrix in matrices[start : start + FLAGS_AT_ONCE]:
            kernel = np.asarray(np.kron(kernel, matrix), dtype=np.float64)
        table = np.matmul(kernel, table.reshape(done, kernel.shape[1], -1))
        done *= kernel.shape[0]
    return table.reshape(done, n_fixed)

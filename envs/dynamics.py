"""Simulation of a course: one pure function from records, treatments and uniform numbers to the next morning.

`transition` draws nothing itself, so that one patient and many at once do the same from the same numbers. Its tables
are looked up by small integers and every pass runs along a column: at many patients that is what the time goes into.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray
from envs.course import Course
from envs.records import IntArray

BoolArray = NDArray[np.bool_]
CodeArray = NDArray[np.int16]


@dataclass(frozen=True)
class Transition:
    """What a day of treatment and the night after it did.

    Attributes
    ----------
    outcomes : array, (m, n_outcomes)
        Which transient flags are present in the evening, and death last; column-major.
    codes : array, (m, n_features)
        Level codes of the record next morning, as if the stay went on; column-major.
    """

    outcomes: BoolArray
    codes: CodeArray


class Dynamics:
    """A day and the night after it, for given patients.

    Parameters
    ----------
    course : Course
        The numbers of the day.

    Attributes
    ----------
    n_draws : int
        Uniform numbers that each patient takes a day: one for each transient flag, then one for death.
    """

    def __init__(self, course: Course) -> None:
        scenario = course.scenario
        self._flag_axes = [scenario.space.axis(flag) for flag in scenario.transient]
        self.n_draws = len(self._flag_axes) + 1
        # For each flag P(present in the evening), by 2 * action + present in the morning.
        self._presence = np.ascontiguousarray(course.response.presence.transpose(1, 0, 2)).reshape(
            len(self._flag_axes), -1
        )
        # For each flag P(absent next morning | absent in the evening).
        self._stays_away = [_GridTable.of(1 - onset) for onset in course.onset]
        level, slope, self._kappa = course.hazards
        self._level, self._slope = _GridTable.of(level), _GridTable.of(slope)

    def transition(self, codes: CodeArray, actions: IntArray, uniforms: FloatArray) -> Transition:
        """One day of treatment and the night after it.

        Parameters
        ----------
        codes : array of int16, (m, n_features)
            Level codes of the records in the morning.
        actions : array of int, (m,)
            Positions of the treatments.
        uniforms : array, (m, n_draws)
            Independent numbers, uniform in [0, 1). Both arrays are read column by column.

        Notes
        -----
        One number u serves a flag by day and by night: it is present in the evening if u < p, and next morning if
        u < 1 - (1 - p)(1 - onset). Given that u >= p, the flag appears with the probability `onset`, as it should.
        """
        evening, row = codes.copy(order="F"), 2 * actions.astype(np.int16)
        outcomes = np.empty((len(codes), self.n_draws), dtype=np.bool_, order="F")
        chance = [table.take(row + codes[:, axis]) for table, axis in zip(self._presence, self._flag_axes, strict=True)]
        for flag, axis in enumerate(self._flag_axes):
            np.less(uniforms[:, flag], chance[flag], out=outcomes[:, flag])
            evening[:, axis] = outcomes[:, flag]
        danger = np.zeros(len(codes))
        for kappa, present in zip(self._kappa, outcomes.T, strict=False):
            if kappa:
                danger += kappa * present
        found: dict[tuple[int, ...], NDArray[np.int32]] = {}
        hazard = self._level.at(codes, found) + self._slope.at(codes, found) * danger
        np.less(uniforms[:, -1], -np.expm1(-hazard), out=outcomes[:, -1])
        self._pass_the_night(evening, chance, uniforms)
        return Transition(outcomes, evening)

    def _pass_the_night(self, codes: CodeArray, chance: list[FloatArray], uniforms: FloatArray) -> None:
        """Let absent flags appear, in place; `chance` is P(present in the evening) of each."""
        found: dict[tuple[int, ...], NDArray[np.int32]] = {}
        away = [table.at(codes, found) for table in self._stays_away]  # before any flag changes
        for flag, axis in enumerate(self._flag_axes):
            codes[:, axis] = uniforms[:, flag] < 1 - (1 - chance[flag]) * away[flag]


@dataclass(frozen=True)
class _GridTable:
    """Numbers that depend on some features only, to be looked up by level codes."""

    axes: tuple[int, ...]
    lengths: tuple[int, ...]
    values: FloatArray

    @staticmethod
    def of(grid: FloatArray) -> _GridTable:
        """From an array that broadcasts over the grid of records."""
        axes = tuple(axis for axis, length in enumerate(grid.shape) if length > 1)
        return _GridTable(axes, tuple(grid.shape[axis] for axis in axes), grid.ravel())

    def at(self, codes: CodeArray, found: dict[tuple[int, ...], NDArray[np.int32]]) -> FloatArray:
        """The numbers for some records, (m,); `found` keeps indices for other tables over the same features."""
        if self.axes not in found:
            index: NDArray[np.int32] = np.zeros(len(codes), dtype=np.int32)
            for axis, length in zip(self.axes, self.lengths, strict=True):
                index *= length
                index += codes[:, axis]
            found[self.axes] = index
        return self.values.take(found[self.axes])

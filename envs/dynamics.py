"""Simulation of a course: one pure function from records, treatments and uniform numbers to the next morning.

`transition` draws nothing itself, so that one patient and many at once do the same from the same numbers. Inside, the
patients run along the rows of tables (n_features, m), so that each step is one call for all flags and patients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray
from envs.records import IntArray
from envs.scenario import DEATH
from envs.treatment_response import Course, exp_of

BoolArray = NDArray[np.bool_]
CodeArray = NDArray[np.int16]
# What is computed for so many patients stays in a processor's cache.
PATIENTS_AT_ONCE = 16_384
# Their 2^12 sums stay in the nearest one.
FLAGS_AT_ONCE = 12


@dataclass(frozen=True)
class Transition:
    """What a day of treatment and the night after it did.

    Attributes
    ----------
    outcomes : array, (m, n_outcomes)
        Which transient flags are present in the evening, which events have come, and death last; column-major.
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
        Uniform numbers that each patient takes a day: one for each outcome, in their order.
    flag_axes : array of int
        The columns of the transient flags in a record, in the order of the outcomes.
    """

    def __init__(self, course: Course) -> None:
        scenario = course.scenario
        self.flag_axes: IntArray = np.array([scenario.space.axis(flag) for flag in scenario.transient], dtype=np.intp)
        self.n_draws = len(scenario.outcomes)
        self._absence = _Absence(absence_of(course), self.flag_axes, len(scenario.actions))
        # log P(no event, or no death), given the evening: level + slope * danger of the flags.
        self._exponents = [(GridTables(grids), FlagSum(kappa)) for grids, kappa in exponents_of(course)]
        self._nights = _together(nights_of(course))

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
        One number u serves a flag by day and by night: it is absent in the evening if u < a, its probability of that,
        and absent next morning if u < a (1 - onset). Given that u < a, it appears with the probability `onset`, and
        given that u >= a, it is still there, as it should be. Likewise the patient survives, or is spared an event, if
        u < exp(-hazard).
        """
        n_flags, outcomes = len(self.flag_axes), np.empty((self.n_draws, len(codes)), dtype=np.bool_)
        tomorrow = codes.T.copy()
        for start in range(0, len(codes), PATIENTS_AT_ONCE):
            some = slice(start, start + PATIENTS_AT_ONCE)
            morning, given, draws, happened = codes.T[:, some], actions[some], uniforms.T[:, some], outcomes[:, some]
            absence = self._absence.at(morning, given)
            flags = np.greater_equal(draws[:n_flags], absence, out=happened[:n_flags])
            for row, (tables, danger) in enumerate(self._exponents, n_flags):
                level, exponent = tables.at(morning, given)
                exponent *= danger.of(flags.T)
                exponent += level
                np.greater_equal(draws[row], exp_of(exponent), out=happened[row])
            self._night(tomorrow[:, some], absence, draws, happened)
        return Transition(outcomes.T, tomorrow.T)

    def _night(self, record: CodeArray, absence: FloatArray, draws: FloatArray, outcomes: BoolArray) -> None:
        """Bring the record to the evening and then, with the flags that appear, to the next morning, in place."""
        n_flags = len(self.flag_axes)
        record[self.flag_axes] = outcomes[:n_flags]
        # All are looked up before any changes.
        limits = [stays_away.at(record) for _, stays_away in self._nights]
        for (flags, _), limit in zip(self._nights, limits, strict=True):
            limit *= absence[flags]  # noqa: PLW2901 - in place
            record[self.flag_axes[flags]] = draws[:n_flags][flags] >= limit


class FlagSum:
    """Sum of the weights of the flags that are present, looked up for many flags together.

    Parameters
    ----------
    weights : array, (n_flags,)
        Of each flag.

    Examples
    --------
    >>> FlagSum(np.array([0.5, 2.0])).of(np.array([[True, False], [True, True]]))
    array([0.5, 2.5])
    """

    def __init__(self, weights: FloatArray) -> None:
        self._parts: list[tuple[IntArray, CodeArray, FloatArray]] = []
        for start in range(0, len(weights), FLAGS_AT_ONCE):
            flags = start + np.flatnonzero(weights[start : start + FLAGS_AT_ONCE])
            if not flags.size:
                continue
            every = np.indices((2,) * len(flags)).reshape(len(flags), -1)
            powers = 2 ** np.arange(len(flags), dtype=np.int16)[::-1, np.newaxis]
            self._parts.append((flags, powers, weights[flags] @ every))

    def of(self, present: BoolArray) -> FloatArray:
        """The sums, (m,), for flags (m, n_flags), read column by column."""
        total: FloatArray = np.zeros(len(present))
        for flags, powers, sums in self._parts:
            total += sums.take(np.add.reduce(present.T[flags] * powers, axis=0, dtype=np.int16))
        return total


class _Rows:
    """Tables of the same length, each to be looked up by its own index."""

    def __init__(self, values: FloatArray) -> None:
        self._values: FloatArray = np.ascontiguousarray(values)
        # Small integers are quicker.
        self.dtype: type[np.signedinteger[Any]] = np.int16 if values.size <= np.iinfo(np.int16).max else np.int64
        self._starts = (np.arange(len(values)) * values.shape[1]).astype(self.dtype)[:, np.newaxis]

    def at(self, index: NDArray[np.signedinteger[Any]]) -> FloatArray:
        """The numbers, (n_tables, m), at indices that broadcast to it."""
        found: FloatArray = self._values.take(index + self._starts)
        return found


class GridTables:
    """Numbers that depend on the same few features, and on the action or not, to be looked up by level codes.

    Parameters
    ----------
    grids : list of array
        Each (n_actions or 1, ...), the rest broadcasting over the grid of records, all in the same way.

    Attributes
    ----------
    axes, strides : array of int
        The features that matter, and what one level of each adds to the place in a table.
    stride : int
        What one action adds to it: 0 where it does not matter.
    """

    def __init__(self, grids: list[FloatArray]) -> None:
        n_actions, *shape = grids[0].shape
        self.axes = np.flatnonzero(np.array(shape) > 1)
        self._rows = _Rows(np.stack([grid.ravel() for grid in grids]))
        strides = [math.prod(shape[axis + 1 :]) for axis in self.axes]
        self.strides: NDArray[np.signedinteger[Any]] = np.array(strides, dtype=self._rows.dtype)[:, np.newaxis]
        self.stride = math.prod(shape) if n_actions > 1 else 0

    def at(self, codes: CodeArray, actions: IntArray | None = None) -> FloatArray:
        """The numbers, (n_grids, m), for records (n_features, m) and, where they matter, actions (m,)."""
        terms = codes[self.axes] * self.strides
        index = np.add.reduce(terms, axis=0, dtype=self._rows.dtype)
        if self.stride and actions is not None:
            index += (actions * self.stride).astype(self._rows.dtype)
        return self._rows.at(index)


class _Absence:
    """P(flag absent in the evening).

    Parameters
    ----------
    absence : list of array
        Of each flag, (n_actions, ...): see `absence_of`.
    flag_axes : array of int
        The features that are the flags.
    n_actions : int
        How many treatments there are.
    """

    def __init__(self, absence: list[FloatArray], flag_axes: IntArray, n_actions: int) -> None:
        # What depends on the flag itself only, by 2 * action + present in the morning, is the quickest to look up.
        plain = [flag for flag, table in enumerate(absence) if table[0].size == 2]
        both = [np.broadcast_to(absence[flag].reshape(len(absence[flag]), -1), (n_actions, 2)) for flag in plain]
        self._n_flags, self._plain, self._axes = len(flag_axes), plain, flag_axes[plain]
        self._rows = _Rows(np.array(both).reshape(len(plain), 2 * n_actions))
        self._others = _together({flag: table for flag, table in enumerate(absence) if flag not in plain})

    def at(self, morning: CodeArray, actions: IntArray) -> FloatArray:
        """(n_flags, m), for records (n_features, m) and actions (m,)."""
        found = self._rows.at(morning[self._axes] + (2 * actions).astype(np.int16))
        if not self._others:
            return found
        absence = np.empty((self._n_flags, morning.shape[1]))
        absence[self._plain] = found
        for flags, tables in self._others:
            absence[flags] = tables.at(morning, actions)
        return absence


def by_action(grids: list[FloatArray]) -> FloatArray:
    """One grid for each action, (n_actions, ...); a single one, (1, ...), if they are the same."""
    if all(np.array_equal(grid, grids[0]) for grid in grids):
        return grids[0][np.newaxis]
    return np.stack(np.broadcast_arrays(*grids))


def absence_of(course: Course) -> list[FloatArray]:
    """P(absent in the evening) of each flag, (n_actions or 1, ...), the rest broadcasting over the grid of records."""
    presence = course.response.presence
    return [by_action([1 - row[flag] for row in presence]) for flag in range(len(course.scenario.transient))]


def exponents_of(course: Course) -> list[tuple[list[FloatArray], FloatArray]]:
    """For each event and for death, log P(it does not come): level and slope, of one shape as above, and kappa."""
    found = []
    for name in (*course.scenario.events, DEATH):
        hazards = [course.response.hazard(name, action) for action in range(len(course.scenario.actions))]
        level, slope = by_action([-each.level for each in hazards]), by_action([-each.slope for each in hazards])
        found.append((list(np.broadcast_arrays(level, slope)), hazards[0].kappa))
    return found


def nights_of(course: Course) -> dict[int, FloatArray]:
    """P(absent next morning | absent in the evening), (1, ...), of the flags that may appear in a night."""
    return {flag: (1 - table)[np.newaxis] for flag, table in enumerate(course.onset) if table.any()}


def _together(grids: dict[int, FloatArray]) -> list[tuple[IntArray | slice, GridTables]]:
    """Tables of the flags that depend on the same features, with the positions of these flags."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for flag, table in grids.items():
        alike.setdefault(table.shape, []).append(flag)
    found: list[tuple[IntArray | slice, GridTables]] = []
    for flags in alike.values():
        # An index that copies nothing, if there is no gap between them.
        in_a_row = flags[-1] - flags[0] == len(flags) - 1
        where = slice(flags[0], flags[-1] + 1) if in_a_row else np.array(flags)
        found.append((where, GridTables([grids[flag] for flag in flags])))
    return found

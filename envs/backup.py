"""Exact expectations over a day of treatment and the night after it, for all records at once.

Given the fixed part of the record, the treatment, and the flags that the hazard of death or other flags' days read,
transitions factor over the transient flags: a flag's day is a 2 x 2 matrix. Survival is exp(-level - slope kappa . y),
so it too is a product over the flags y that are left, and multiplies what is averaged. Hence no matrix over records is
ever made: Kronecker products of a few flags' matrices are applied along their axes, for all fixed parts together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True)
class FlagDays:
    """What a treatment makes of independent flags in a day: a 2 x 2 matrix for each.

    Attributes
    ----------
    products : list of array
        Kronecker products of the matrices P(after | before) of a few flags each, all of them in order, with the
        identity for the flags of `by_fixed`.
    by_fixed : mapping of position to array, (2, n_fixed)
        P(present after | absent before) and P(present after | present before), of flags for which it depends on the
        fixed part of the record.
    n_flags : int
        How many flags.
    """

    products: list[FloatArray]
    by_fixed: dict[int, FloatArray]
    n_flags: int

    @classmethod
    def of(cls, presence: Sequence[FloatArray]) -> FlagDays:
        """From P(present after | before) of each flag, (2, 1), or (2, n_fixed) where it depends on the fixed part."""
        same = [np.hstack([1 - chance, chance]) if chance.shape[1] == 1 else np.eye(2) for chance in presence]
        products = []
        for start in range(0, len(same), FLAGS_AT_ONCE):
            kernel: FloatArray = np.ones((1, 1))
            for matrix in same[start : start + FLAGS_AT_ONCE]:
                kernel = np.asarray(np.kron(kernel, matrix), dtype=np.float64)
            products.append(kernel)
        by_fixed = {flag: chance for flag, chance in enumerate(presence) if chance.shape[1] > 1}
        return cls(products, by_fixed, len(presence))

    def expected(self, table: FloatArray) -> FloatArray:
        """E[table | before] of what is given for after, (2^n_flags, n_fixed); a new table."""
        table = _along(self.products, table)
        for flag, (absent, present) in self.by_fixed.items():
            sides = self._sides(table, flag)
            after = sides.copy()
            for side, chance in enumerate((absent, present)):
                sides[:, side] = (1 - chance) * after[:, 0] + chance * after[:, 1]
        return table

    def pushed(self, mass: FloatArray) -> FloatArray:
        """The masses after, of masses before, (2^n_flags, n_fixed); a new table."""
        mass = _along([product.T for product in self.products], mass)
        for flag, (absent, present) in self.by_fixed.items():
            sides = self._sides(mass, flag)
            before = sides.copy()
            sides[:, 0] = (1 - absent) * before[:, 0] + (1 - present) * before[:, 1]
            sides[:, 1] = absent * before[:, 0] + present * before[:, 1]
        return mass

    def _sides(self, table: FloatArray, flag: int) -> FloatArray:
        """A view of a table in which the second axis is that of a flag."""
        return table.reshape(2**flag, 2, 2 ** (self.n_flags - flag - 1), -1)


def sum_over_flags(kappa: FloatArray) -> FloatArray:
    """kappa . y for every combination y of the flags, (2,) * n_flags."""
    return np.asarray(np.tensordot(kappa, np.indices((2,) * len(kappa)), 1), dtype=np.float64)


def flags_read(presence: Sequence[Sequence[FloatArray]], hazards: Iterable[FloatArray]) -> list[int]:
    """The flags that a hazard reads in the morning, or the day of another flag; the axes of flags come first."""
    tables = [(-1, table) for table in hazards]
    tables += [(flag, table) for row in presence for flag, table in enumerate(row)]
    n_flags = len(presence[0])
    return [flag for flag in range(n_flags) if any(table.shape[flag] > 1 for own, table in tables if own != flag)]


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


# Numbers that are kept from one day to the next; what would take more is made again each time.
MOST_KEPT = 1 << 25
Index = tuple[int | slice, ...]


@dataclass(frozen=True)
class _Case:
    """What the transient flags that something reads are in the morning.

    Attributes
    ----------
    index : tuple
        Their levels, and all levels of the other transient flags: an index of a table inside.
    spared : list of (array, list of array)
        P(no death that evening) of each different hazard, which some actions share: exp(-level), (n_fixed,), times
        exp(-slope kappa . y), for each way the read flags may be in the evening.
    chances : list of lists of array, (n_fixed,) or (1,)
        By action, the probability of each way the read flags may be in the evening.
    others : list of FlagDays
        By action, what becomes of the other flags.
    """

    index: Index
    spared: list[tuple[FloatArray, list[FloatArray]]]
    chances: list[list[FloatArray]]
    others: list[FlagDays]


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
        scenario, response = course.scenario, course.response
        self._shape = scenario.space.shape
        transient = [scenario.space.axis(flag) for flag in scenario.transient]
        fixed = [axis for axis in range(len(self._shape)) if axis not in transient]
        self._order = (*transient, *fixed)
        self._n_flags, self.n_fixed = len(transient), math.prod(self._shape[axis] for axis in fixed)
        self._night_order = course.night_order
        # A flag appears where it is absent.
        self._onset = [self._inside(table).take(0, axis=flag) for flag, table in enumerate(course.onset)]
        # P(present in the evening), by action and flag: of length 1 where the fixed part does not matter.
        self._presence = [[self._inside(grid, whole=False) for grid in row] for row in response.presence]
        hazards = [response.hazard(DEATH, action) for action in range(len(scenario.actions))]
        self._kappa = hazards[0].kappa
        # Actions with the same hazard share what is made of it.
        self._hazards: list[tuple[FloatArray, FloatArray]] = []
        self._hazard_of: list[int] = []
        for hazard in hazards:
            tables = self._inside(hazard.level), self._inside(hazard.slope)
            same = [place for place, known in enumerate(self._hazards) if all(map(np.array_equal, known, tables))]
            self._hazard_of.append(same[0] if same else len(self._hazards))
            self._hazards += [] if same else [tables]

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
        chosen = range(len(self._hazard_of)) if actions is None else actions
        evening = np.array(self._inside(values.reshape(self._shape)))
        for flag in self._night_order:
            absent, present = self._sides(evening, flag)
            appears = present - absent
            appears *= self._onset[flag]
            absent += appears
        evening[self._recovered] = 0.0
        result = np.empty((len(values), len(chosen)), order="F") if out is None else out
        targets = [column.reshape(self._shape).transpose(self._order) for column in result.T]
        for case in self._cases:
            survivors: dict[int, list[FloatArray]] = {}
            for target, action in zip(targets, chosen, strict=True):
                hazard = self._hazard_of[action]
                baseline, of_flags = case.spared[hazard]
                if hazard not in survivors:
                    pairs = zip(self._indices, of_flags, strict=True)
                    survivors[hazard] = [(evening[at] * spared).reshape(-1, self.n_fixed) for at, spared in pairs]
                parts = zip(case.chances[action], survivors[hazard], strict=True)
                mean = case.others[action].expected(np.asarray(sum(chance * part for chance, part in parts)))
                mean *= baseline
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
        chosen = range(len(self._hazard_of)) if actions is None else actions
        flows = [self._inside((distribution * column).reshape(self._shape)) for column in probabilities.T]
        evening = np.zeros((*(2,) * self._n_flags, self.n_fixed))
        for case in self._cases:
            here = [flow[case.index].reshape(-1, self.n_fixed) for flow in flows]
            for hazard, (baseline, of_flags) in enumerate(case.spared):
                arriving = [
                    (case.chances[action], case.others[action].pushed(flow * baseline))
                    for flow, action in zip(here, chosen, strict=True)
                    if self._hazard_of[action] == hazard
                ]
                for number, index in enumerate(self._indices if arriving else ()):
                    mass = np.asarray(sum(chances[number] * part for chances, part in arriving))
                    place = evening[index]
                    flow = mass.reshape(place.shape)
                    flow *= of_flags[number]
                    place += flow
        evening[self._recovered] = 0.0
        # The other way round than backwards: an onset still looks at the evening's record.
        for flag in reversed(self._night_order):
            absent, present = self._sides(evening, flag)
            appears = self._onset[flag] * absent
            present += appears
            absent -= appears
        # From the order inside to that of the records.
        shape = [self._shape[axis] for axis in self._order]
        return evening.reshape(shape).transpose(np.argsort(self._order)).ravel()

    def restricted(self, columns: IntArray) -> tuple[Backup, IntArray]:
        """The same days for some of the fixed parts only, and which records are left, (n_left,), in its own order.

        The fixed part of a record never changes, so what happens to one does not depend on any other.

        Parameters
        ----------
        columns : array of int
            Positions among the fixed parts, in the order of the record.
        """
        part = copy(self)
        part.__dict__.pop("_kept_cases", None)
        part._shape, part._order = (*(2,) * self._n_flags, len(columns)), tuple(range(self._n_flags + 1))
        part.n_fixed = len(columns)
        part._onset = [table[..., columns] for table in self._onset]
        # Those of length 1 hold for any fixed part.
        part._presence = [[t if t.shape[-1] == 1 else t[..., columns] for t in row] for row in self._presence]
        part._hazards = [(level[..., columns], slope[..., columns]) for level, slope in self._hazards]
        numbers = np.arange(math.prod(self._shape)).reshape(self._shape)
        return part, self._inside(numbers)[..., columns].ravel()

    @property
    def numbers(self) -> FloatArray:
        """All that the days of a fixed part depend on, a column each: fixed parts with the same numbers are alike."""
        varying = [table for row in self._presence for table in row if table.shape[-1] == self.n_fixed]
        tables = [*(table for pair in self._hazards for table in pair), *self._onset, *varying]
        return np.concatenate([table.reshape(-1, self.n_fixed) for table in tables])

    @property
    def transient(self) -> tuple[int, ...]:
        """The axes of the record that may change from one morning to the next."""
        return self._order[: self._n_flags]

    @property
    def _recovered(self) -> tuple[int | slice, ...]:
        """Where no flag is left; nowhere if there are no flags, since nobody recovers then."""
        return (0,) * self._n_flags or (slice(0, 0),)

    @cached_property
    def _read(self) -> list[int]:
        return flags_read(self._presence, (table for pair in self._hazards for table in pair))

    @cached_property
    def _indices(self) -> list[Index]:
        """Every combination of the read flags, with all levels of the others."""
        every: tuple[int | slice, ...] = (slice(None),)
        return list(product(*((0, 1) if flag in self._read else every for flag in range(self._n_flags))))

    @property
    def _cases(self) -> Iterable[_Case]:
        """One case for each combination of the read flags."""
        size = len(self._indices) * len(self._hazards) * 2**self._n_flags * self.n_fixed
        return self._kept_cases if size <= MOST_KEPT else map(self._case, self._indices)

    @cached_property
    def _kept_cases(self) -> list[_Case]:
        return [self._case(morning) for morning in self._indices]

    def _case(self, morning: Index) -> _Case:
        danger = sum_over_flags(self._kappa)[..., None]
        hazards = []
        for level, slope in self._hazards:
            steep = _at(slope, morning)
            spared = [np.exp(-steep * danger[index]) if steep.any() else np.ones(1) for index in self._indices]
            hazards.append((np.exp(-_at(level, morning)), spared))
        # (n_fixed or 1,) for a read flag, whose morning is known, (2, n_fixed or 1) for another.
        presence = [[_at(table, morning) for table in row] for row in self._presence]
        chances = [[self._chance(row, evening) for evening in self._indices] for row in presence]
        others = [[chance for flag, chance in enumerate(row) if flag not in self._read] for row in presence]
        return _Case(morning, hazards, chances, [FlagDays.of(row) for row in others])

    def _chance(self, presence: Sequence[FloatArray], evening: Index) -> FloatArray:
        """P(the read flags in the evening), given P(present) of each flag."""
        parts = (presence[flag] if evening[flag] else 1 - presence[flag] for flag in self._read)
        return math.prod(parts, start=np.ones(1))

    def _inside(self, grid: NDArray[Any], *, whole: bool = True) -> NDArray[Any]:
        """A table over the grid of records, put in order; axes of length 1 of the transient flags stay so.

        So does that of the fixed parts, if none of their features matters, unless the whole is wanted.
        """
        table = grid.transpose(self._order)
        flags, lengths = table.shape[: self._n_flags], table.shape[self._n_flags :]
        if not whole and math.prod(lengths) == 1:
            return table.reshape(*flags, 1)
        fixed = [self._shape[axis] for axis in self._order[self._n_flags :]]
        return np.broadcast_to(table, (*flags, *fixed)).reshape(*flags, self.n_fixed)

    def _sides(self, table: FloatArray, flag: int) -> tuple[FloatArray, FloatArray]:
        """Views of a table inside where a flag is absent and where it is present."""
        before: Index = (slice(None),) * flag
        return table[(*before, 0)], table[(*before, 1)]


def _at(table: FloatArray, case: Index) -> FloatArray:
    """The entries of a case: (n_fixed,) of a table that reads no other flags, (2, n_fixed) if it reads one more."""
    return table[tuple(level if length > 1 else 0 for level, length in zip(case, table.shape, strict=False))]

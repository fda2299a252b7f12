"""Many patients as counts: how many have each record, and what they have got.

Patients who have the same record and get the same treatment are exchangeable, so nobody has to be followed: a crowd is
how many patients are in each cell of a grid, and what happens by chance takes a binomial number out of each cell. The
counts have exactly the distribution of those of as many single patients, and how many random numbers they take is
bounded by the number of cells, not by that of patients. `envs.crowd_days` treats crowds.

What a patient has got until an evening is not followed either, but the mean over all patients and its standard error
are needed. Each cell knows the mean of its patients' returns so far and their mean square about it, in expectation
given all counts. Who leaves a cell does not depend on what they had before, so any k of its n patients are as likely to
leave as any other k: both stay as they are for those who leave and those who do not. In the end the sum of returns is
exact, as the counts alone say what is paid; that of squares is E[sum of squares | counts]. So the sample variance that
it gives is unbiased, as that of single patients is, and varies no more than that (Rao 1945; Blackwell 1947, Conditional
expectation and unbiased sequential estimation).

Records that nothing tells apart are in the same cell (`CrowdCells`). A record is its transient flags, and a fixed part
that never changes in a stay. Two fixed parts are alike if every number that is read of a patient is the same for both,
whatever the flags. What becomes of patients who have them is equally likely, so they are counted together: the counts
have the distribution of sums over alike records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray, prior
from envs.records import IntArray, RecordSpace
from envs.scenario import Scenario

CountArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Crowd:
    """How many patients are in each cell of a grid, and what they have got so far.

    Attributes
    ----------
    shape : tuple of int
        Of the grid; its cells are numbered in C order.
    counts : array of int64, (n_cells,)
        Patients.
    returns : array, (2, n_cells), or (0, n_cells) as long as nobody has got anything
        The mean of their returns so far, and the mean square about it, in expectation given all counts; anything
        finite where nobody is.
    """

    shape: tuple[int, ...]
    counts: CountArray
    returns: FloatArray

    @classmethod
    def empty(cls, shape: tuple[int, ...], like: Crowd | None = None) -> Crowd:
        """Nobody, but room for those who come from another crowd, or for returns."""
        size = math.prod(shape)
        return cls(shape, np.zeros(size, dtype=np.int64), np.zeros((2 if like is None else len(like.returns), size)))

    @classmethod
    def admitted(cls, scenario: Scenario, patients: int, rng: np.random.Generator) -> Crowd:
        """New patients of a cohort, over the grid of records: a multinomial number of each.

        Feature by feature: of those who agree in the features before it, a binomial number has its first level, of the
        others another number its second, and so on.
        """
        masses = [prior(scenario).reshape(scenario.space.shape)]
        for _ in masses[0].shape:
            masses.append(masses[-1].sum(axis=-1))
        crowd = cls((), np.array([patients], dtype=np.int64), np.zeros((0, 1)))
        for mass in reversed(masses[:-1]):
            levels = crowd.shared(mass.reshape(-1, mass.shape[-1]), rng)
            counts = np.stack([level.counts for level in levels], axis=-1).ravel()
            crowd = cls(mass.shape, counts, np.zeros((0, counts.size)))
        return crowd

    @property
    def size(self) -> int:
        """The number of patients."""
        return int(self.counts.sum())

    @property
    def where(self) -> IntArray:
        """The cells that have patients."""
        return np.flatnonzero(self.counts != 0)  # in a quarter of the time that it takes with numbers

    def taken(self, where: IntArray) -> Crowd:
        """Take everybody out of some cells."""
        counts = self.counts.take(where)
        self.counts[where] = 0
        return Crowd(counts.shape, counts, self.returns.take(where, axis=1))

    def of(self, cells: Sequence[slice]) -> Crowd:
        """A copy of those in some cells, by an index of the grid."""
        counts = self.counts.reshape(self.shape)[*cells]
        returns = np.array(self.returns.reshape(-1, *self.shape)[:, *cells])
        return Crowd(counts.shape, counts.flatten(), returns.reshape(-1, counts.size))

    def with_returns(self) -> Crowd:
        """The same patients, ready to be paid."""
        return self if len(self.returns) else replace(self, returns=np.zeros((2, self.counts.size)))

    def pay(self, amount: FloatArray | float) -> None:
        """Add the same to the return of every patient of a cell, (n_cells,)."""
        self.returns[0] += amount

    def leave(self, where: IntArray, chance: FloatArray | float, rng: np.random.Generator) -> tuple[IntArray, Crowd]:
        """Take a binomial number of patients out of each of some cells: the cells that anybody leaves, and who."""
        drawn = rng.binomial(self.counts.take(where), chance)
        some = np.flatnonzero(drawn != 0)
        where, counts = where.take(some), drawn.take(some)
        self.counts[where] -= counts
        return where, Crowd(counts.shape, counts, self.returns.take(where, axis=1))

    def enter(self, where: IntArray, others: Crowd) -> None:
        """Let others in, each of their cells, none of which is empty, to one of these, no two to the same."""
        counts = self.counts.take(where) + others.counts
        self.counts[where] = counts
        if len(self.returns):
            (mean, square), (their_mean, their_square) = self.returns.take(where, axis=1), others.returns
            theirs = others.counts / counts
            ours = 1 - theirs
            self.returns[0][where] = ours * mean + theirs * their_mean
            self.returns[1][where] = ours * square + theirs * (their_square + ours * (their_mean - mean) ** 2)

    def shared(self, chances: FloatArray, rng: np.random.Generator) -> Iterator[Crowd]:
        """Share everybody out, by the distribution of each cell, (n_cells, k): k grids of the same shape.

        One after the other, each by its share of what is left of the distribution.
        """
        everywhere = self.where
        options = np.stack([column.take(everywhere) for column in chances.T])
        # Summed from its end: where nothing is behind an option, its share of the rest is exactly 1.
        rest = np.cumsum(options[::-1], axis=0)[::-1]
        for option, (own, left) in enumerate(zip(options, rest, strict=True), 1):
            some = np.flatnonzero((own > 0) & (self.counts.take(everywhere) > 0))
            found, where = Crowd.empty(self.shape, self), everywhere[some]
            last = option == len(options)
            found.enter(*((where, self.taken(where)) if last else self.leave(where, own[some] / left[some], rng)))
            yield found


@dataclass
class Tally:
    """What is counted of all patients on all days.

    Attributes
    ----------
    given : array of int64, (n_actions,)
        How often each treatment was given.
    happened : array of int64, (n_actions, n_outcomes)
        After how many of these each outcome was there.
    ended : int
        Patients whose stay has ended.
    returns : array, (2,)
        The sum of their returns, and that of the squares of these, in expectation given all counts.
    """

    given: CountArray
    happened: CountArray
    ended: int = 0
    returns: FloatArray = field(default_factory=lambda: np.zeros(2))

    @classmethod
    def of(cls, scenario: Scenario) -> Tally:
        """Of nobody yet."""
        shape = len(scenario.actions), len(scenario.outcomes)
        return cls(np.zeros(shape[0], dtype=np.int64), np.zeros(shape, dtype=np.int64))

    def end(self, crowd: Crowd) -> None:
        """The stay of these patients ends."""
        self.ended += crowd.size
        mean, square = crowd.returns
        self.returns += [crowd.counts @ mean, crowd.counts @ (square + mean**2)]

    @property
    def mean(self) -> float:
        """The mean return of those whose stay has ended."""
        return float(self.returns[0]) / self.ended

    @property
    def variance(self) -> float:
        """The sample variance of their returns, in expectation given all counts."""
        total, squares = map(float, self.returns)
        return max(squares - total * total / self.ended, 0.0) / (self.ended - 1)


MOST_NUMBERS = 1 << 62
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class CrowdCells:
    """Records by their transient flags, and by the class of alike fixed parts: the cells of a crowd.

    Attributes
    ----------
    space : RecordSpace
        The records.
    flags : tuple of int
        The axes of the transient flags in the grid of records. In that of cells they come first, in this order.
    first : array of int, (n_classes,)
        The first fixed part of each class, in C order among the fixed parts.
    of_fixed : array of int, (n_fixed,)
        The class of each fixed part.
    """

    space: RecordSpace
    flags: tuple[int, ...]
    first: IntArray
    of_fixed: IntArray

    @classmethod
    def of(
        cls,
        space: RecordSpace,
        flags: Sequence[int],
        grids: Iterable[NDArray[Any]],
        tables: Iterable[NDArray[Any]] = (),
    ) -> CrowdCells:
        """The cells of records for which these are the same.

        Parameters
        ----------
        space, flags
            See above.
        grids : iterable of array
            They broadcast over the grid of records.
        tables : iterable of array, (n_records or more, k)
            One row a record; what follows is not read. If they tell apart any records that the grids do not, no two
            fixed parts are alike.
        """
        fixed = [axis for axis in range(len(space.shape)) if axis not in flags]
        shape = tuple(space.shape[axis] for axis in fixed)
        number, count = np.zeros(shape, dtype=np.int64), 1
        for grid in grids:
            rows = np.moveaxis(grid, fixed, range(len(fixed)))
            rows = rows.reshape(*rows.shape[: len(fixed)], -1)
            for place in range(rows.shape[-1]):
                values, own = np.unique(rows[..., place], return_inverse=True)
                if count * len(values) > MOST_NUMBERS:
                    found, number = np.unique(number, return_inverse=True)
                    number, count = number.reshape(shape), len(found)
                number, count = number * len(values) + own.reshape(rows.shape[:-1]), count * len(values)
        _, first, of_fixed = np.unique(number.ravel(), return_index=True, return_inverse=True)
        cells = cls(space, tuple(flags), first, of_fixed.ravel())
        return cells if all(map(cells.alike, tables)) else cls(space, tuple(flags), *[np.arange(number.size)] * 2)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of the grid of cells: the flags, then the classes."""
        return *(self.space.shape[axis] for axis in self.flags), len(self.first)

    @cached_property
    def records(self) -> IntArray:
        """The first record of each cell, (n_cells,)."""
        return self._by_fixed(np.arange(self.space.size)).take(self.first, axis=1).ravel()

    def alike(self, table: NDArray[Any]) -> bool:
        """Whether all records of a cell have the same row of a table, (n_records or more, k)."""
        others = np.flatnonzero(self.first[self.of_fixed] != np.arange(self.of_fixed.size))
        those = self.first[self.of_fixed[others]]
        columns = (self._by_fixed(column) for column in table[: self.space.size].T)
        return not others.size or all(np.array_equal(each[:, others], each[:, those]) for each in columns)

    def grid(self, grid: NDArray[T]) -> NDArray[T]:
        """The same numbers over the grid of cells, of an array that broadcasts over that of records."""
        flags = tuple(grid.shape[axis] for axis in self.flags)
        if math.prod(grid.shape) == math.prod(flags):
            return grid.transpose(*self.flags, *self._fixed).reshape(*flags, 1)
        lengths = list(self.space.shape)
        for axis in self.flags:
            lengths[axis] = grid.shape[axis]
        return self._by_fixed(np.broadcast_to(grid, lengths)).take(self.first, axis=1).reshape(*flags, -1)

    def table(self, table: FloatArray) -> FloatArray:
        """The rows of the cells, (n_cells, k), column-major, of a table (n_records or more, k) that has alike ones."""
        rows = np.empty((math.prod(self.shape), table.shape[1]), order="F")
        for new, column in zip(rows.T, table[: self.space.size].T, strict=True):
            new[:] = self._by_fixed(column).take(self.first, axis=1).ravel()
        return rows

    def counts(self, counts: NDArray[T]) -> NDArray[T]:
        """The sums over alike records, (n_cells,), of what is counted of each, (n_records,)."""
        order = np.argsort(self.of_fixed, kind="stable")
        starts = np.searchsorted(self.of_fixed[order], np.arange(len(self.first)))
        sums: NDArray[T] = np.add.reduceat(self._by_fixed(counts).take(order, axis=1), starts, axis=1).ravel()
        return sums

    def crowd(self, crowd: Crowd) -> Crowd:
        """The patients of a crowd over the grid of records, before anybody has got anything."""
        counts = self.counts(crowd.counts)
        return Crowd(self.shape, counts, np.zeros((0, counts.size)))

    @property
    def _fixed(self) -> list[int]:
        return [axis for axis in range(len(self.space.shape)) if axis not in self.flags]

    def _by_fixed(self, grid: NDArray[T]) -> NDArray[T]:
        """What stands for each record, by its flags and its fixed part: (2^n_flags or less, n_fixed)."""
        shape = self.space.shape if grid.ndim == 1 else grid.shape
        return grid.reshape(shape).transpose(*self.flags, *self._fixed).reshape(-1, self.of_fixed.size)

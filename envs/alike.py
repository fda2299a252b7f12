"""Records that nothing tells apart: whoever has one of them is in the same cell of a crowd.

A record is its transient flags, and a fixed part that never changes in a stay. Two fixed parts are alike if every
number that is read of a patient is the same for both, whatever the flags. What becomes of patients who have them is
equally likely, so they are counted together: the counts have the distribution of sums over alike records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray
from envs.crowd import Crowd
from envs.records import IntArray, RecordSpace

MOST_NUMBERS = 1 << 62
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Cells:
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
    ) -> Cells:
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

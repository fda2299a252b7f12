"""Distinct rows of a table that is read in batches, and how many there are of each; no loop over rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.arrays import IntArray
from policysim.errors import optional

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc

# So many combinations of values are counted in an array.
MOST_CELLS = 1 << 22


class DistinctRows:
    """Counts of rows, in an array with an axis for each column, as long as columns have few values.

    Rows of other batches are made distinct batch by batch (`each_once`).
    """

    def __init__(self) -> None:
        self._places: list[dict[str, int]] = []
        self._values: list[list[Any]] = []
        self._kinds: list[pa.DataType] = []
        self._counts: NDArray[np.int64] = np.zeros((), dtype=np.int64)

    def add(self, rows: pa.Table) -> bool:
        """Count some rows; False, and nothing is counted, if there would be too many combinations."""
        try:
            columns = [_codes(column.combine_chunks()) for column in rows.columns]
        except pa.ArrowNotImplementedError:  # lists, which are refused where they are read
            return False
        if not self._kinds:
            self._kinds = [values.type for *_, values in columns]
            self._places, self._values = [{} for _ in columns], [[] for _ in columns]
            self._counts = np.zeros((0,) * len(columns), dtype=np.int64)
        if not self._fits([values for *_, values in columns]):
            return False
        moved = [self._moved(axis, values) for axis, (*_, values) in enumerate(columns)]
        shape = tuple(map(len, self._places))
        if shape != self._counts.shape:
            grown = [(0, new - old) for new, old in zip(shape, self._counts.shape, strict=True)]
            self._counts = np.pad(self._counts, grown)
        key = np.zeros(len(rows), dtype=np.int32)  # below `MOST_CELLS`
        for (codes, signs, _), places, size in zip(columns, moved, shape, strict=True):
            table = np.zeros(signs[-1] + 1 if len(signs) else 0, dtype=np.int32)
            table[signs] = places
            key *= size
            key += table.take(codes)
        self._counts += np.bincount(key, minlength=math.prod(shape)).reshape(shape)
        return True

    def _fits(self, columns: Sequence[pa.Array]) -> bool:
        """Whether all combinations of values, those of a batch among them, fit."""
        known = list(zip(self._places, columns, strict=True))
        if math.prod(max(len(places), len(values)) for places, values in known) > MOST_CELLS:
            return False
        sizes = [len(places.keys() | set(map(repr, values.to_pylist()))) for places, values in known]
        return math.prod(sizes) <= MOST_CELLS

    def _moved(self, axis: int, values: pa.Array) -> IntArray:
        """The place of each value of a batch among those of all batches."""
        places = self._places[axis]
        found = np.empty(len(values), dtype=np.intp)
        for number, value in enumerate(values.to_pylist()):
            # As text: NaN is itself, and −0 is not 0.
            found[number] = places.setdefault(repr(value), len(places))
            if len(places) > len(self._values[axis]):
                self._values[axis].append(value)
        return found

    def found(self, names: Sequence[str]) -> Iterator[tuple[pa.Table, NDArray[np.int64]]]:
        """The distinct rows that were counted, if any, and how many there are of each."""
        counts = self._counts.ravel()
        (kinds,) = np.nonzero(counts)
        if not self._kinds or not len(kinds):
            return
        places = np.unravel_index(kinds, self._counts.shape)
        columns = [
            pa.array(values, kind).take(pa.array(codes))
            for values, kind, codes in zip(self._values, self._kinds, places, strict=True)
        ]
        yield pa.table(columns, names=list(names)), counts[kinds]


def _codes(column: pa.Array) -> tuple[NDArray[Any], IntArray, pa.Array]:
    """A whole number for each row of a column; the numbers that there are, ascending; and the value that each means."""
    if column.type == pa.string() and not column.null_count and column.buffers()[2] is not None:
        offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
        # One byte each, as codes often are: no need to look each up.
        if offsets[-1] - offsets[0] == len(column) and (np.diff(offsets) == 1).all():
            codes = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
            there = np.zeros(256, dtype=np.bool_)
            there[codes] = True
            signs = np.flatnonzero(there)
            return codes, signs, pa.array(list(map(chr, signs)), pa.string())
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values, indices = coded.dictionary, coded.indices
    if indices.null_count:  # a missing value is the last of them
        indices, values = pc.fill_null(indices, len(values)), pa.concat_arrays([values, pa.nulls(1, values.type)])
    return indices.to_numpy(zero_copy_only=False), np.arange(len(values)), values


def each_once(rows: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """The distinct rows of a table, and how often there is each; nothing is summed that a thread could reorder."""
    try:
        codes = [column.dictionary_encode().combine_chunks().indices for column in rows.columns]
    except pa.ArrowNotImplementedError:  # lists, which are refused where they are read
        return rows, np.ones(len(rows), dtype=np.int64)
    row = str(len(codes))
    table = pa.table([*codes, np.arange(len(rows))], names=[*map(str, range(len(codes))), row])
    groups = pa.TableGroupBy(table, table.column_names[:-1], use_threads=False)
    found = groups.aggregate([(row, "min"), (row, "count")])
    return rows.take(found[f"{row}_min"]), found[f"{row}_count"].to_numpy()

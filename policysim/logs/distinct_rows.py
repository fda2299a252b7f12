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

# So many combinations of values are counted in an array.
MOST_CELLS = 1 << 22
# In place of the number of a byte that no value is yet; and how many signs are one byte long.
NO_NUMBER, N_ASCII = 255, 128


class DistinctRows:
    """Counts of rows, in an array with an axis for each column, as long as columns have few values.

    Rows of other batches are made distinct batch by batch (`each_once`).
    """

    def __init__(self) -> None:
        self._columns: dict[str, _ColumnValues] = {}
        self._counts: NDArray[np.int64] = np.zeros((), dtype=np.int64)

    def add(self, rows: pa.Table) -> bool:
        """Count some rows; False, and nothing is counted, if there would be too many combinations."""
        if not self._columns:
            self._columns = {field.name: _ColumnValues(field.type) for field in rows.schema}
            self._counts = np.zeros((0,) * len(self._columns), dtype=np.int64)
        numbers = []
        for name, column in self._columns.items():
            others = math.prod(max(1, len(other)) for other in self._columns.values() if other is not column)
            found = column.numbers(rows[name].combine_chunks(), MOST_CELLS // others)
            if found is None:
                return False
            numbers.append(found)
        shape = tuple(map(len, self._columns.values()))
        if shape != self._counts.shape:
            grown = [(0, new - old) for new, old in zip(shape, self._counts.shape, strict=True)]
            self._counts = np.pad(self._counts, grown)
        cells = np.zeros(len(rows), dtype=np.int32)  # below `MOST_CELLS`
        for places, size in zip(numbers, shape, strict=True):
            cells *= size
            cells += places
        self._counts += np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        return True

    def found(self) -> Iterator[tuple[pa.Table, NDArray[np.int64]]]:
        """The distinct rows that were counted, if any, and how many there are of each; text as dictionaries."""
        counts = self._counts.ravel()
        (cells,) = np.nonzero(counts)
        if not self._columns or not len(cells):
            return
        places = zip(self._columns.items(), np.unravel_index(cells, self._counts.shape), strict=True)
        yield pa.table({name: column.values_of(numbers) for (name, column), numbers in places}), counts[cells]


class _ColumnValues:
    """The values of a column, numbered as they come."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._values: list[Any] = []
        self._number_of: dict[str, int] = {}
        self._number_of_byte = bytearray([NO_NUMBER] * 256)

    def __len__(self) -> int:
        """How many values there are."""
        return len(self._values)

    def numbers(self, column: pa.Array, most: int) -> NDArray[Any] | None:
        """The number of each row's value; None, and no value is new, for lists or more than `most` values."""
        text = _single_bytes(column) if len(self) + N_ASCII <= NO_NUMBER else None
        return self._by_dictionary(column, most) if text is None else self._by_byte(text, most)

    def _by_byte(self, text: bytes, most: int) -> NDArray[Any] | None:
        """The same of values of one byte each: no need to look each up."""
        numbers = text.translate(self._number_of_byte)
        if NO_NUMBER in numbers:
            signs = np.flatnonzero(np.bincount(np.frombuffer(text, np.uint8))).tolist()
            known = self._numbered(list(map(chr, signs)), most)
            if known is None:
                return None
            for sign, number in zip(signs, known, strict=True):
                self._number_of_byte[sign] = number
            numbers = text.translate(self._number_of_byte)
        return np.frombuffer(numbers, np.uint8)

    def _by_dictionary(self, column: pa.Array, most: int) -> NDArray[Any] | None:
        try:
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        except pa.ArrowNotImplementedError:  # lists, which are refused where they are read
            return None
        n_values, indices = len(coded.dictionary), coded.indices
        values = coded.dictionary.to_pylist() if n_values <= most else []
        if indices.null_count:  # a missing value is the last of them
            values, indices = [*values, None], indices.fill_null(n_values)
        known = self._numbered(values, most) if n_values <= most else None
        return None if known is None else known.take(indices.to_numpy())

    def _numbered(self, values: Sequence[Any], most: int) -> NDArray[np.int32] | None:
        """The numbers of some values, of which some may be new."""
        names = list(map(repr, values))  # NaN is itself, and −0 is not 0
        new = {name: value for name, value in zip(names, values, strict=True) if name not in self._number_of}
        if len(self) + len(new) > most:
            return None
        self._number_of |= dict(zip(new, range(len(self), len(self) + len(new)), strict=True))
        self._values += new.values()
        return np.array([self._number_of[name] for name in names], dtype=np.int32)

    def values_of(self, numbers: IntArray) -> pa.Array:
        """The values that have these numbers; of text a dictionary."""
        values = pa.array(self._values, self._kind)
        return (values.dictionary_encode() if self._kind == pa.string() else values).take(pa.array(numbers))


def _single_bytes(column: pa.Array) -> bytes | None:
    """The text of a column without gaps whose values are one byte long, as codes often are; else None."""
    if column.type != pa.string() or column.null_count or column.buffers()[2] is None:
        return None
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    start = int(offsets[0])
    if not np.array_equal(offsets, np.arange(start, start + len(column) + 1, dtype=np.int32)):
        return None
    text: bytes = column.buffers()[2].slice(start, len(column)).to_pybytes()
    return text


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

"""Distinct rows, and kinds of patients, and how many there are of each; no loop over rows.

Distinct rows are those of a table that is read in batches. Kinds are a table of Arrow to which more are added. Its
first columns, the keys, are the record, the treatment, the bits of propensity and utility, and whether an outcome is
missing; then the bits of each outcome, and of the other columns of a patient. The others are the number of patients,
and sums over them. All are whole numbers, so that neither the order nor the parts of a log can change a sum.

Where there are too many kinds, because outcomes are measured finely, patients whose utility and outcomes agree in sign,
exponent and some more bits become one kind, with exact sums (`limb_sums`). How many bits these are depends on all
patients and on nothing else: more patients never have fewer kinds, so that those of a part never ask for fewer bits.

Sums of outcomes and of their squares are exact. Each number is, up to its sign, a whole number of at most 68 bits times
2^(16 j - 1075), j the first bits of its exponent. Of numbers with the same sign and j, sums are sums of whole numbers,
and so are those of squares. They are held as limbs of 26 bits, each summed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray
from policysim.errors import optional
from policysim.files.bad_rows import DataError

with optional():
    import pyarrow as pa

# So many combinations of values are counted in an array.
MOST_CELLS = 1 << 22
# In place of the number of a byte that no value is yet; and how many signs are one byte long.
NO_NUMBER, N_ASCII = 255, 128


# Bits of a number: of its fraction, and of these and the last of its exponent, by which a whole number is shifted.
FRACTION, WHOLE = 52, 56
LIMB = 26
MASK = (1 << LIMB) - 1
# Limbs of the sum of whole numbers, and of that of their squares. None overflows for fewer than 2^36 patients.
OF_NUMBERS, OF_SQUARES = 3, 6
N_SUMS = OF_NUMBERS + OF_SQUARES
# Of a number that is missing.
NAN = int(np.array(np.nan).view(np.int64))
# Kinds of patients that fit into the memory of a small machine, several times over.
MOST_KINDS = 4_000_000
# Of more than WHOLE_KINDS, patients become one kind whose outcomes agree in all but so many last bits, the fewest of
# these that leave no more than FEW_KINDS, as estimates take the longer; with the most of them up to MOST_KINDS.
WHOLE_KINDS, FEW_KINDS = 1_000_000, 250_000
BITS = (0, 40, 44, 48, FRACTION, WHOLE)
OWN = ("record", "treatment", "propensity", "utility", "missing")
UTILITY = OWN.index("utility")


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
        numbers_of_columns = []
        for name, values in self._columns.items():
            combinations = math.prod(max(1, len(column)) for column in self._columns.values() if column is not values)
            numbers = values.numbers(rows[name].combine_chunks(), MOST_CELLS // combinations)
            if numbers is None:
                return False
            numbers_of_columns.append(numbers)
        shape = tuple(map(len, self._columns.values()))
        if shape != self._counts.shape:
            grown = [(0, new - old) for new, old in zip(shape, self._counts.shape, strict=True)]
            self._counts = np.pad(self._counts, grown)
        cells = np.zeros(len(rows), dtype=np.int32)  # below `MOST_CELLS`
        for numbers, size in zip(numbers_of_columns, shape, strict=True):
            cells *= size
            cells += numbers
        self._counts += np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        return True

    def found(self) -> Iterator[tuple[pa.Table, NDArray[np.int64]]]:
        """The distinct rows that were counted, if any, and how many there are of each; text as dictionaries."""
        counts = self._counts.ravel()
        (cells,) = np.nonzero(counts)
        if not self._columns or not len(cells):
            return
        columns = zip(self._columns.items(), np.unravel_index(cells, self._counts.shape), strict=True)
        yield pa.table({name: values.values_of(numbers) for (name, values), numbers in columns}), counts[cells]


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
            sign_numbers = self._numbered(list(map(chr, signs)), most)
            if sign_numbers is None:
                return None
            for sign, number in zip(signs, sign_numbers, strict=True):
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
        numbers = self._numbered(values, most) if n_values <= most else None
        return None if numbers is None else numbers.take(indices.to_numpy())

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
    distinct = groups.aggregate([(row, "min"), (row, "count")])
    return rows.take(distinct[f"{row}_min"]), distinct[f"{row}_count"].to_numpy()


def values_of(n_outcomes: int) -> list[int]:
    """The columns of utility and outcomes."""
    return [UTILITY, *range(len(OWN), len(OWN) + n_outcomes)]


class Counted(NamedTuple):
    """Kinds of patients: distinct, unless they are to be added to others.

    Attributes
    ----------
    columns : pyarrow.Table
        Of int64, named by their places: the keys; how many patients are of each kind; of utility and each outcome
        `limb_sums` them, but where the keys tell these whole.
    dropped : int
        How many last bits of utility and outcomes the keys do not tell.
    """

    columns: pa.Table
    dropped: int = 0

    @classmethod
    def of(cls, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> Counted:
        """From the keys of rows, (m, n_keys), and how many patients each stands for, (m,)."""
        return cls(_table([*keys.T, counts]))


def _table(columns: Sequence[Any]) -> pa.Table:
    return pa.table([pa.array(column) for column in columns], names=list(map(str, range(len(columns)))))


class Kinds:
    """Kinds of patients to which more are added.

    Parameters
    ----------
    outcomes : sequence of str
        Their columns are behind those that every log has.
    others : sequence of str
        Columns behind these, of which every value counts.
    """

    # Rows are only made distinct where there are so many, or twice as many as distinct ones.
    FEW = 1 << 18

    def __init__(self, outcomes: Sequence[str], others: Sequence[str] = ()) -> None:
        self._keys = (*OWN, *outcomes, *others)
        self._values = values_of(len(outcomes))
        nobody = np.empty((0, len(self._keys)), dtype=np.int64)
        self._found, self._dropped = [Counted.of(nobody, nobody[:, 0]).columns], BITS[0]
        self._n_distinct = 0

    def add(self, found: Counted) -> None:
        """Add patients; DataError for more kinds than `MOST_KINDS`."""
        self._drop(max(found.dropped, self._dropped))
        self._found.append(self._coarser(found.columns, found.dropped, self._dropped))
        if sum(map(len, self._found)) > max(self.FEW, 2 * self._n_distinct):
            self._settle()

    def counted(self) -> Counted:
        """The distinct kinds, in no order."""
        self._settle()
        return Counted(self._found[0], self._dropped)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The keys in order, (m, n_keys); how many patients are of each kind, (m,); the sums, (n_sums, m)."""
        n_keys, columns = len(self._keys), np.stack([column.to_numpy() for column in self.counted().columns.columns])
        columns = columns[:, np.lexsort(columns[:n_keys][::-1])]
        return columns[:n_keys].T, columns[n_keys], columns[n_keys + 1 :]

    def _settle(self) -> None:
        """Make the rows distinct, with the most bits of outcomes that leave few enough."""
        self._found = [self._distinct(self._found)]
        keys = whole = self._found[0].select(range(len(self._keys)))
        for dropped in BITS[BITS.index(self._dropped) :]:
            if dropped > self._dropped:
                keys = self._coarser(whole, self._dropped, dropped)
            if len(keys) <= {BITS[0]: WHOLE_KINDS, BITS[-1]: MOST_KINDS}.get(dropped, FEW_KINDS):
                self._drop(dropped)
                self._n_distinct = len(keys)
                return
        sizes = [len(column.unique()) for column in keys.columns]
        named = ", ".join(f"{name} {size:,}" for name, size in zip(self._keys, sizes, strict=True))
        raise DataError(
            f"there are more than {MOST_KINDS:,} kinds of patients; different values so far (of outcomes, "
            f"magnitudes): {named}. Round the columns with most values, or declare coarser features"
        )

    def _distinct(self, tables: Sequence[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(tables)
        keys, amounts = rows.column_names[: len(self._keys)], rows.column_names[len(self._keys) :]
        groups = pa.TableGroupBy(rows, keys, use_threads=False)
        return groups.aggregate([(amount, "sum") for amount in amounts]).rename_columns(rows.column_names)

    def _drop(self, dropped: int) -> None:
        """Tell so many last bits of outcomes no longer."""
        self._found = [self._coarser(columns, self._dropped, dropped) for columns in self._found]
        self._dropped = dropped

    def _coarser(self, columns: pa.Table, before: int, dropped: int) -> pa.Table:
        """The distinct rows with fewer bits of outcomes, some at a time: sums take more memory than numbers."""
        if dropped == before:
            return columns
        parts, n_keys = [], len(self._keys)
        for start in range(0, max(1, len(columns)), self.FEW):
            arrays = [column.to_numpy() for column in columns.slice(start, self.FEW).columns]
            # The sums of outcomes, where there are patients and not keys alone.
            if not before and len(arrays) > n_keys:
                for place in self._values:
                    arrays += list(limb_sums(arrays[place], arrays[n_keys]))
            for place in self._values:
                arrays[place] = without_last(arrays[place], dropped)
            parts.append(self._distinct([_table(arrays)]))
        return self._distinct(parts)


def without_last(bits: NDArray[np.int64], dropped: int) -> NDArray[np.int64]:
    """The bits of numbers with so many of the last, at most 56, set to 0; a number that is missing stays so."""
    return np.where(bits == NAN, NAN, bits & (-1 << dropped))


def limb_sums(bits: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Limbs of the sums over the patients of each row, (N_SUMS, m): of whole numbers, then of squares, largest first.

    Parameters
    ----------
    bits : array, (m,)
        Those of numbers.
    counts : array, (m,)
        How many patients have each.
    """
    exponent = (bits >> FRACTION) & 0x7FF
    # The first bit of a number is not written, but of the smallest, which have the exponent of the next ones.
    number = (bits & ((1 << FRACTION) - 1)) | (np.minimum(exponent, 1) << FRACTION)
    shift = np.maximum(exponent, 1) & ((1 << WHOLE - FRACTION) - 1)
    low = (number & MASK) << shift
    high = (low >> LIMB) + ((number >> LIMB) << shift)
    number0, number1, number2 = low & MASK, high & MASK, high >> LIMB
    squares = [
        number0 * number0,
        2 * number0 * number1,
        number1 * number1 + 2 * number0 * number2,
        2 * number1 * number2,
        number2 * number2,
    ]
    limbs, carried = [], np.zeros_like(bits)
    for square in squares:
        carried = carried + square
        limbs.append(carried & MASK)
        carried = carried >> LIMB
    return np.stack([number2, number1, number0, carried, *limbs[::-1]]) * counts


def stand_ins(
    bits: NDArray[np.int64], counts: NDArray[np.int64], sums: NDArray[np.int64]
) -> tuple[IntArray, FloatArray, NDArray[np.int64]]:
    """Patients in place of those that were summed: as many, and with the same sums of each outcome and of its square.

    The n patients of a row, whose outcomes have the mean m and the standard deviation s, become a with the outcome
    m + s sqrt(b / a) and b = n - a with m - s sqrt(a / b). a is n / 2, or as much less as it takes for no outcome to
    change its sign. Where no outcome of a row differs, the row stays as it is.

    Parameters
    ----------
    bits : array, (m, n_outcomes)
        `without_last` ones.
    counts : array, (m,)
        Patients of each row.
    sums : array, (n_outcomes * N_SUMS, m)
        `limb_sums` their outcomes.

    Returns
    -------
    rows : array, (r,)
        The row that each belongs to; rising.
    values : array, (r, n_outcomes)
        Their outcomes.
    counts : array, (r,)
        How many patients have these.

    Notes
    -----
    What is linear in an outcome and its square has the same mean over these as over the patients themselves: the mean
    of an arm, its standard error, the sums of a regression. Parts of them that are drawn at random, such as folds, have
    sums with the same means, variances and covariances, too: without replacement these depend on the mean and the
    variance of all alone. So held-out patients tell a model no more of those that it was fitted to than the real ones
    do. Third and fourth powers are not the same: they widen an interval of skewed outcomes by a share of the order
    1 / n.
    """
    means, spreads = np.empty(bits.shape), np.empty(bits.shape)
    for outcome in range(bits.shape[1]):
        sums_of_outcome = sums[outcome * N_SUMS : (outcome + 1) * N_SUMS]
        means[:, outcome], spreads[:, outcome] = _moments(bits[:, outcome], counts, sums_of_outcome)
    apart = (spreads > 0).any(axis=1)
    ratios = np.divide(means, spreads, out=np.full(means.shape, np.inf), where=spreads > 0) ** 2
    most = counts / (1 + 1 / np.maximum(ratios.min(axis=1), 1 / np.maximum(counts - 1, 1)))
    first = np.where(apart, np.clip(most.astype(np.int64), 1, np.maximum(counts // 2, 1)), counts)
    rows = np.repeat(np.arange(len(counts)), 1 + apart)
    second = np.append(False, rows[1:] == rows[:-1])
    patients = np.where(second, counts[rows] - first[rows], first[rows])
    # Away from 0 for the first ones.
    away = np.where(second, -1.0, 1.0) * np.sqrt((counts[rows] - patients) / patients)
    values: FloatArray = means[rows] + np.copysign(spreads, means)[rows] * away[:, None]
    return rows, values, patients


def _moments(
    bits: NDArray[np.int64], counts: NDArray[np.int64], sums: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """The mean and the standard deviation of each row, rounded in their last bits only; NaN and 0 where it is missing.

    Without a difference the mean is the number itself: whatever is alike before it is summed stays so.
    """
    absent = bits == NAN
    n: Any = counts.astype(object)
    numbers, squares = _joined(sums[:OF_NUMBERS]), _joined(sums[OF_NUMBERS:])
    power = np.where(absent, 0, ((bits >> WHOLE) & 0x7F) * (1 << WHOLE - FRACTION) - 1075)
    # Python's division of whole numbers of any size is rounded once.
    mean = np.ldexp((numbers / n).astype(np.float64), power)
    spread = np.ldexp(np.sqrt(((n * squares - numbers * numbers) / (n * n)).astype(np.float64)), power)
    return np.where(absent, np.nan, np.where(bits < 0, -mean, mean)), np.where(absent, 0.0, spread)


def _joined(limbs: NDArray[np.int64]) -> Any:
    """The whole numbers of which these are limbs, the largest first, of any size each: (n_limbs, m) -> (m,)."""
    total: Any = limbs[0].astype(object)
    for limb in limbs[1:]:
        total = (total << LIMB) + limb.astype(object)
    return total

"""Array types, the checks of arrays that come from users, and what whole arrays need: exact sums, equal rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Array = TypeVar("Array", bound=NDArray[Any])

# Rows handled at a time by blocked loops: small enough for the caches, large enough that threads seldom wait for the
# interpreter between two numpy calls (2^13 to 2^17 were tried with two threads; this was fastest).
BLOCK = 1 << 15

# Relative rounding of sums over records: values that differ by less do not differ.
ROUNDING = 1e-14

# Terms from here on are not split by `rounded_sum`: sigma might overflow.
_LARGEST_SPLIT = 2.0**900

# Whole numbers may be larger than any float, and longer than a message should be.
TOO_LARGE = "got a whole number beyond 1.8e308"

# Rounding that a row or a prior may carry and still count as summing to 1.
SUM_TOLERANCE = 1e-9
# What is off by no more than this, as float32 is, is divided by its sum.
ROUNDED_SUM = 1e-6


def blocks(n_rows: int) -> list[slice]:
    """Slices that cover `n_rows` rows, BLOCK at a time."""
    return [slice(start, min(start + BLOCK, n_rows)) for start in range(0, n_rows, BLOCK)]


def rounded_sum(terms: FloatArray) -> float:
    """The sum of terms, (n,), rounded once: what `math.fsum` returns, at a tenth of its time.

    Against sigma, a power of two above n + 2 times the largest term, each term splits into a multiple of 2^-53 sigma
    and a rest; the multiples sum without rounding, in any order (Rump, Ogita & Oishi 2008, Accurate floating-point
    summation I, section 3).

    Examples
    --------
    >>> rounded_sum(np.array([1e100, 1.0, -1e100]))
    1.0
    """
    parts: list[float] = []
    for rows in blocks(len(terms)):
        rest = terms[rows].copy()
        while 0 < (largest := max(float(rest.max()), -float(rest.min()))) < _LARGEST_SPLIT:
            sigma = 2.0 ** (math.frexp(largest)[1] + (len(rest) + 2).bit_length())
            high = (rest + sigma) - sigma
            parts.append(float(high.sum()))
            rest -= high
        parts += rest[rest != 0].tolist()
    return math.fsum(parts)


def as_floats(values: ArrayLike, name: str) -> FloatArray:
    """Values as float64, not copied if they are; ValueError for what are no numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}.") from None


def finite_table(values: ArrayLike, name: str) -> FloatArray:
    """A read-only, column-major copy of a (n_records, k) table of finite floats; ValueError names the first bad row.

    Column-major because every pass runs along a column: at 1.3 million records that is five times faster.
    """
    table: FloatArray = np.array(as_floats(values, name), order="F")
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(f"{name} must be (n_records, k) with k >= 2, got shape {table.shape}.")
    finite = np.isfinite(table)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {name}[{row}, {column}]={table[row, column]}.")
    low, high = float(table.min()), float(table.max())
    if high - low == math.inf:
        raise ValueError(f"{name} must differ by less than 1.8e308, got values from {low:g} to {high:g}.")
    return read_only(table)


def probability_vector(values: ArrayLike, name: str, size: int) -> FloatArray:
    """A read-only copy of (size,) probabilities that sum to 1 within `ROUNDED_SUM`; ValueError for what is wrong."""
    vector: FloatArray = np.array(as_floats(values, name))
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {vector.shape}.")
    bad = np.flatnonzero(~(vector >= 0) | ~np.isfinite(vector))
    if bad.size:
        raise ValueError(f"{name} must be finite and >= 0, got {name}[{bad[0]}]={float(vector[bad[0]])!r}.")
    with np.errstate(over="ignore"):
        total = float(vector.sum())
    if not abs(total - 1) <= ROUNDED_SUM:
        raise ValueError(f"{name} must sum to 1, got a sum of {total!r}.")
    return read_only(_normalised(vector[None])[0])


def probability_table(values: ArrayLike, name: str) -> FloatArray:
    """A copy of (n_records, k) probabilities whose rows sum to 1 within `ROUNDED_SUM`; ValueError for a bad row."""
    table = finite_table(values, name)
    if table.min() < 0:
        row, column = np.argwhere(table < 0)[0]
        raise ValueError(f"{name} must be >= 0, got {name}[{row}, {column}]={float(table[row, column])!r}.")
    with np.errstate(over="ignore"):
        sums = table.sum(axis=1)
    bad = np.flatnonzero(~(np.abs(sums - 1) <= ROUNDED_SUM))
    if bad.size:
        raise ValueError(f"{name} must sum to 1 in each row, row {int(bad[0])} sums to {float(sums[bad[0]])!r}.")
    return read_only(_normalised(table))


def _normalised(table: FloatArray) -> FloatArray:
    """The same with each row, whose sum is off by more than `SUM_TOLERANCE`, divided by its sum; others bit by bit."""
    sums = table.sum(axis=1, keepdims=True)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    return np.asfortranarray(table / np.where(off, sums, 1.0)) if off.any() else table


def logs_of(numbers: FloatArray) -> FloatArray:
    """The logarithms of numbers >= 0: -inf of 0."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(numbers)
    return logs


def read_only(array: Array) -> Array:
    """The same array, marked as not to be written."""
    array.flags.writeable = False
    return array


class Frozen:
    """A base of frozen dataclasses whose results are remembered in cached properties.

    NumPy forgets in a deep copy and in a pickle that an array is read-only. Copies and pickles of these objects have
    read-only arrays again, and no results: they compute their own.
    """

    def __getstate__(self) -> dict[str, Any]:
        """All attributes but cached properties."""
        kind = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take them over."""
        vars(self).update(state)
        _forbid_writing(state)


def _forbid_writing(value: object) -> None:
    """Mark an array, or those in a container, as not to be written."""
    if isinstance(value, np.ndarray):
        read_only(value)
    elif isinstance(value, dict | list | tuple):
        for entry in value.values() if isinstance(value, dict) else value:
            _forbid_writing(entry)


@dataclass(frozen=True, eq=False)
class Changed(Frozen, Mapping[str, FloatArray]):
    """A mapping whose arrays are changed whenever they are asked for, and not before.

    Attributes
    ----------
    arrays : mapping of str to array
    change : callable
        From an array to another one.
    """

    arrays: Mapping[str, Any]
    change: Callable[[Any], FloatArray]

    def __getitem__(self, name: str) -> FloatArray:
        """The changed array; KeyError for an unknown name."""
        return self.change(self.arrays[name])

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.arrays)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.arrays)


def non_negative(value: Any, name: str, wanted: str = ">= 0") -> float:
    """`value` as a float >= 0 (inf allowed, NaN not); ValueError names it, and what is wanted."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        raise ValueError(f"{name} must be {wanted} as a float, {TOO_LARGE}.") from None
    if not number >= 0:
        raise ValueError(f"{name} must be {wanted}, got {name}={value!r}.")
    return number


def positive(value: Any, name: str) -> float:
    """`value` as a float > 0 and finite; ValueError names it."""
    number = non_negative(value, name, "> 0 and finite")
    if number in {0, math.inf}:
        raise ValueError(f"{name} must be > 0 and finite, got {name}={value!r}.")
    return number


def conditional(prior: FloatArray, rows: IntArray) -> FloatArray:
    """The distribution of some records, (m,), given that it is one of them; uniform where they never come.

    Unchanged if it is all of them.
    """
    if len(rows) == len(prior):
        return prior
    chosen = prior[rows]
    total = chosen.sum()
    return chosen / total if total > 0 else np.full(len(chosen), 1 / len(chosen))


Words: TypeAlias = NDArray[np.uint64]

# 2^64 divided by the golden ratio: multiplying by it spreads the bits of a row over its key.
_SPREAD = 0x9E3779B97F4A7C15


def equal_rows(columns: Sequence[NDArray[Any]]) -> tuple[IntArray, IntArray] | None:
    """The first place of each distinct row, (m,), and for each row which of these it is, (n,).

    Parameters
    ----------
    columns : sequence of array of uint64, (n,)
        A table; of floats, their bits.

    Returns
    -------
    In the order in which they first occur; None if no two rows are equal.

    Examples
    --------
    >>> equal_rows([np.array([7, 5, 7], dtype=np.uint64)])
    (array([0, 1]), array([0, 1, 0]))
    """
    for attempt in count(1):
        # A number for each row, which distinct rows hardly ever share; another one at each attempt.
        keys = np.full(len(columns[0]), attempt, dtype=np.uint64)
        for column in columns:
            keys ^= column
            keys *= np.uint64(_SPREAD)
            keys ^= keys >> np.uint64(29 + attempt)
        _, first, row = np.unique(keys, return_index=True, return_inverse=True)
        # Equal rows have equal keys; whether equal keys have equal rows is looked up.
        if all(np.array_equal(column[first][row], column) for column in columns):
            break
    if len(first) == len(row):
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[row]

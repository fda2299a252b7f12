"""A column of a file at a glance: its distinct values, and whether they are numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.logs.cells import coded, missing, numbers
from policysim.logs.values import MISSING, Key, sorted_keys

# A column decides another only if so many rows of each of its values agree.
ROWS_EACH = 10
# Larger numbers are codes.
LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What a column holds.

    Attributes
    ----------
    name : str
    values : tuple of float or str
        The distinct values, sorted; missing ones are none.
    codes : array, (n_rows,)
        Positions in `values`; -1 where a value is missing.
    """

    name: str
    values: tuple[Key, ...]
    codes: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return len(self.values)

    @cached_property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return int(np.count_nonzero(self.codes < 0))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all values are numbers that can be rounded."""
        return bool(self.values) and not any(isinstance(value, str) or abs(value) > LARGEST for value in self.values)

    @cached_property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.is_numeric and all(float(value).is_integer() for value in self.values)

    @property
    def is_binary(self) -> bool:
        """Whether the values are 0 and 1."""
        return self.values == (0.0, 1.0)

    @property
    def low(self) -> float:
        """The smallest number."""
        return float(self.values[0])

    @property
    def high(self) -> float:
        """The largest number."""
        return float(self.values[-1])

    @cached_property
    def counts(self) -> IntArray:
        """How many rows have each value, (n_distinct,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.n_distinct)

    def present(self) -> FloatArray:
        """The numbers of all rows that have one."""
        return np.repeat(np.array(self.values, dtype=np.float64), self.counts)

    def decides(self, other: ColumnSummary) -> bool:
        """Whether each value of this column goes with one value of the other, and enough rows say so."""
        # Missing values count as one more.
        if self.n_rows < ROWS_EACH * self.n_distinct or other.n_distinct > self.n_distinct + 1:
            return False
        pairs = np.unique((self.codes + 1) * (other.n_distinct + 1) + other.codes + 1)
        return len(pairs) == len(np.unique(self.codes))


def summarise(column: pd.Series, name: str) -> ColumnSummary:
    """Summarise a column of text or of anything else."""
    values = numbers(column)
    absent = np.isnan(values)
    if not np.any(absent & ~missing(column, absent)) and np.all(np.isfinite(values[~absent])):
        distinct, places = np.unique(values[~absent], return_inverse=True)
        codes = np.full(len(column), -1)
        codes[~absent] = places
        return ColumnSummary(name, tuple(distinct.tolist()), codes)
    positions, keys = coded(column)
    ordered = sorted_keys(set(keys) - {MISSING})
    place = {key: code for code, key in enumerate(ordered)}
    # Keys of what is only declared by a categorical column are none of the rows'.
    lookup: Callable[[Key], int] = lambda key: place.get(key, -1)  # noqa: E731 - a rule in one line
    return ColumnSummary(name, tuple(ordered), np.array([lookup(key) for key in keys], dtype=np.intp)[positions])

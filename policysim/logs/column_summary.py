"""A column of a table at a glance: its distinct values, whether they are numbers, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from policies.arrays import IntArray
from policysim.files.bad_rows import MISSING, ColumnKey, level_of, sorted_keys
from policysim.files.data_table import coded, codes_among, missing, numbers
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names

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
    values: tuple[ColumnKey, ...]
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

    @cached_property
    def is_distinct(self) -> bool:
        """Whether each row has a value of its own."""
        return self.n_rows > 1 and self.n_distinct == self.n_rows

    @cached_property
    def numbers_rows(self) -> bool:
        """Whether it is called a number of the rows, or is one: 1, 2, 3 and so on, and not called an id."""
        named = names.is_all(self.name, ["row_number"])
        rises = self.is_whole and self.high - self.low == self.n_rows - 1 and bool(np.all(np.diff(self.codes) > 0))
        return self.is_distinct and (named or (rises and not names.is_id(self.name)))

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

    def shown(self, most: int = 5) -> str:
        """The first values, for messages."""
        found = [toml_text(str(level_of(value))) for value in self.values[:most]]
        return (", ".join(found) or "no values") + (", ..." if self.n_distinct > most else "")

    def decides(self, other: ColumnSummary) -> bool:
        """Whether each value of this column goes with one value of the other, and enough rows say so."""
        # Missing values count as one more.
        if self.n_rows < ROWS_EACH * self.n_distinct or other.n_distinct > self.n_distinct + 1:
            return False
        pairs = pd.unique((self.codes + 1) * (other.n_distinct + 1) + other.codes + 1)
        return len(pairs) == self.n_distinct + (self.n_missing > 0)


def summarise(column: pd.Series, name: str) -> ColumnSummary:
    """Summarise a column of text or of anything else."""
    values = numbers(column)
    absent = np.isnan(values)
    if not np.any(absent & ~missing(column, absent)) and np.all(np.isfinite(values[~absent])):
        distinct, places = np.unique(values[~absent], return_inverse=True)
        codes = np.full(len(column), -1)
        codes[~absent] = places
        return ColumnSummary(name, tuple(distinct.tolist()), codes)
    ordered = sorted_keys(set(coded(column)[1]) - {MISSING})
    return ColumnSummary(name, tuple(ordered), codes_among(column, ordered))

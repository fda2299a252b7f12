"""The columns of a data file: what they hold, what they look like, and as features of a study.

A remark is for people to read; nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.levels import MISSING, NO_VALUE, LevelKey, Levels, codes_of_keys, level_of, sorted_keys
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.data_table import coded, missing, numbers, read_table
from policysim.logs.column_names import says, sounding_later
from policysim.logs.log_source import JOINT
from policysim.logs.log_tables import joined_columns
from policysim.logs.toml_text import toml_text
from policysim.numbers import several

# What files write for a number that is not known, and for a word.
CODES = {*(7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 9999, 99999), *(-1, -7, -8, -9, -77, -88)}
CODES |= {-98, -99, -777, -888, -998, -999, -9999}
UNKNOWN = {"?", "-", "unknown", "unk", "not known", "missing", "not available", "not recorded", "not reported"}
UNKNOWN |= {"don't know", "refused", "unspecified"}
LARGEST_DIGIT = 9
# Larger numbers are codes.
LARGEST = 1e15
# Levels, and columns, that a table lists.
MOST_SHOWN, MOST_COLUMNS = 4, 200

# So many bins at most, of which each has about so many patients of the smallest arm.
MOST_BINS, FEWEST_PATIENTS = 4, 20
# Numbers of more distinct values are cut, and words of more are no levels.
MOST_NUMBERS, MOST_LEVELS = 5, 50
# Cuts are rounded to steps of at most this part of the middle half's width; narrower halves are not rounded.
STEPS, TINY = 3, 1e-200


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What a column holds.

    Attributes
    ----------
    name : str
    values : tuple of float or str
        The distinct values, sorted, numbers first; missing ones are none.
    codes : array, (n_rows,)
        Positions in `values`; -1 where a value is missing.
    """

    name: str
    values: tuple[LevelKey, ...]
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
    def counts(self) -> IntArray:
        """How many rows have each value, (n_distinct,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.n_distinct)

    @cached_property
    def is_id(self) -> bool:
        """Whether each row has a word or a whole number of its own."""
        whole = all(isinstance(value, str) or value.is_integer() for value in self.values)
        return self.n_rows > 1 and self.n_distinct == self.n_rows and whole

    @cached_property
    def numbers_rows(self) -> bool:
        """Whether its values are whole numbers without a gap, each once."""
        return self.is_id and self.is_numeric and float(self.values[-1]) - float(self.values[0]) == self.n_rows - 1

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The values that are no numbers, the commonest first."""
        order = np.argsort(-self.counts, kind="stable")
        return tuple(word for word in (self.values[place] for place in order) if isinstance(word, str))

    @cached_property
    def is_mixed(self) -> bool:
        """Whether most cells are numbers, and some are words."""
        return bool(self.words) and self.rows_of(self.words) < self.counts.sum() / 2

    @property
    def numbers(self) -> FloatArray:
        """The number of each row, (n_rows,); NaN where there is none."""
        known = [np.nan if isinstance(value, str) else value for value in self.values]
        return np.array([*known, np.nan])[self.codes]  # the last is that of missing values

    def rows_of(self, values: Collection[LevelKey]) -> int:
        """How many rows have one of some values."""
        known = set(values)
        return int(sum(count for value, count in zip(self.values, self.counts, strict=True) if value in known))

    @cached_property
    def unknown_codes(self) -> list[LevelKey]:
        """Values that may stand for unknown; none of an id.

        These are words that say so, and among numbers all words without a digit; numbers that are usual codes, if all
        negative numbers are, or above a gap that is wider than any between smaller numbers. Of one digit they are codes
        only beside whole numbers without a gap: doses are 1, 2, 4, 8.
        """
        if says(self.name, "id"):
            return []
        unknown_values: list[LevelKey] = [
            word for word in self.words if word.casefold() in UNKNOWN or (self.is_mixed and not re.search(r"\d", word))
        ]
        numbers = [value for value in self.values if not isinstance(value, str)]
        if self.words and not self.is_mixed:
            return unknown_values
        negative = [number for number in numbers if number < 0]
        rest = numbers[len(negative) :]
        if len(rest) > 1 and CODES.issuperset(negative) and (negative != [-1] or rest[-1] > 1):  # -1, 0, 1 is a scale
            unknown_values += negative
        else:
            rest = numbers
        gaps, first = np.diff(rest), len(rest)
        for place in range(len(rest) - 1, 1, -1):
            if rest[place] not in CODES:
                break
            widest = gaps[: place - 1].max()
            if gaps[place - 1] > widest and (rest[place] > LARGEST_DIGIT or widest <= 1):
                first = place
        return [*unknown_values, *rest[first:]]

    @property
    def third_values(self) -> list[LevelKey]:
        """The value beside 0 and 1, unless it is between them."""
        others = [value for value in self.values if value not in (0, 1)]
        return [value for value in others if self.n_distinct == 3 and not (self.is_numeric and 0 < float(value) < 1)]

    def without(self, values: Collection[LevelKey]) -> ColumnSummary:
        """The same with some values missing."""
        gone = set(values)
        kept = [place for place, value in enumerate(self.values) if value not in gone]
        places = np.full(self.n_distinct + 1, -1)  # the last is that of missing values
        places[kept] = np.arange(len(kept))
        return ColumnSummary(self.name, tuple(self.values[place] for place in kept), places[self.codes])

    @property
    def is_probability(self) -> bool:
        """Whether it holds probabilities > 0."""
        return self.is_numeric and 0 < float(self.values[0]) <= float(self.values[-1]) <= 1

    @property
    def is_propensity(self) -> bool:
        """Whether it is called a propensity, and holds probabilities > 0."""
        return says(self.name, "propensity") and self.is_probability

    def rows_are(self, values: Sequence[LevelKey]) -> str:
        """In how many rows it has some values, which may mean unknown."""
        odd = JOINT.join(toml_text(str(level_of(value))) for value in values)
        return f"{self.rows_of(values)} of {self.counts.sum()} values are {odd} (unknown?)"

    def shown(self) -> str:
        """What it holds, for people: the levels, or the ends of numbers; of many words no single one."""
        if self.is_numeric and self.n_distinct > MOST_SHOWN:
            return f"{level_of(self.values[0])} to {level_of(self.values[-1])}"
        if self.n_distinct > MOST_SHOWN:
            return "numbers and words" if self.is_mixed else "words"
        return JOINT.join(toml_text(str(level_of(value))) for value in self.values) or "no values"

    def remark(self) -> str:
        """What it looks like; "" if nothing is to be said."""
        codes = self.unknown_codes
        rows = f"{self.rows_of(self.words)} of {self.counts.sum()} values"
        remarks = {
            "no name": not self.name,
            "the same in all rows": self.n_distinct < 2,
            "numbers the rows": self.numbers_rows,
            "an id?": self.is_id and not self.numbers_rows,
            self.rows_are(codes): bool(codes),
            f"{rows} are no numbers, such as {''.join(map(toml_text, self.words[:1]))}": self.is_mixed and not codes,
            "a propensity?": self.is_propensity,
            "a time?": self.is_numeric and self.n_distinct > 2 and says(self.name, "time"),
        }
        return "; ".join(remark for remark, holds in remarks.items() if holds)

    def in_words(self) -> str:
        """How many values it has and which, in how many rows the rarest is, and what it looks like."""
        rarest = f"the rarest in {several(int(self.counts.min(initial=self.n_rows)), 'row')}"
        held = f"{several(self.n_distinct, 'value')}: {self.shown()}, {rarest}"
        return "; ".join(filter(None, [held, self.remark()]))


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
    levels = Levels(name, tuple(map(level_of, ordered)))
    return ColumnSummary(name, tuple(ordered), codes_of_keys(levels, keys)[positions])


def read_columns(path: Path, stated: CsvFormat = RECOGNISED) -> list[ColumnSummary]:
    """The columns of a file; what is not `stated` of a text file is recognised.

    Raises
    ------
    DataError
        For a file that cannot be read.
    """
    table = read_table(path, stated=stated)
    return [summarise(table[name], name) for name in table.columns]


def together(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """Several columns as one, each combination that occurs a value of its own: `log_tables.joined_columns` names it."""
    if len(parts) == 1:
        return parts[0]
    texts = [pd.Series([*map(level_of, part.values), None], dtype=object).iloc[part.codes] for part in parts]
    joined = joined_columns([text.reset_index(drop=True) for text in texts])
    return summarise(joined, JOINT.join(part.name for part in parts))


def columns_table(columns: Sequence[ColumnSummary]) -> str:
    """The columns as text: what they hold, how many levels, how many cells are missing, what they look like."""
    later = sounding_later([column.name for column in columns])
    rows = [("column", "values", "levels", "missing", "remark")]
    for column in columns[:MOST_COLUMNS]:
        remarks = "; ".join(filter(None, [column.remark(), "a treatment, or later?" * (column.name in later)]))
        counts = f"{column.n_distinct:,}", f"{column.n_missing:,}"
        rows.append((toml_text(column.name), column.shown(), *counts, remarks))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows]
    more = [f"... and {len(columns) - MOST_COLUMNS:,} more"] if columns[MOST_COLUMNS:] else []
    return "".join(f"{line}\n" for line in [*lines, *more])


def is_feature(column: ColumnSummary) -> bool:
    """Whether a column can be a feature: several values, neither ids nor too many words."""
    numbers_rows = column.numbers_rows and bool(np.all(np.diff(column.codes) > 0))
    is_id = column.is_id and (says(column.name, "id") or not column.is_numeric)
    few = column.is_numeric or (column.n_distinct <= MOST_LEVELS and not column.is_mixed)
    return column.n_distinct > 1 and few and not numbers_rows and not is_id


def declare(column: ColumnSummary, treatment: ColumnSummary, *, missing: bool) -> dict[str, Any]:
    """A column as a study declares it: by levels, or cut at its quartiles; in small trials at thirds or the median.

    `missing` says whether its missing values are a level.
    """
    if not column.is_numeric or column.n_distinct <= MOST_NUMBERS:
        return {"levels": [*map(level_of, column.values), *([NO_VALUE] if missing else [])]}
    n_bins = min(MOST_BINS, max(2, int(treatment.counts.min()) // FEWEST_PATIENTS))
    return {"cuts": round_cuts(column, n_bins), **({"missing": True} if missing else {})}


def round_cuts(column: ColumnSummary, n_bins: int = MOST_BINS) -> list[float]:
    """About the quantiles between so many bins, rounded; the second value if most rows have the lowest."""
    numbers = column.numbers[column.codes >= 0]
    cuts = np.quantile(numbers, np.arange(1, n_bins) / n_bins)
    widest = float(np.subtract(*np.quantile(numbers, [0.75, 0.25]))) / STEPS
    if widest > TINY:
        power = 10.0 ** math.floor(math.log10(widest))
        step = max((factor * power for factor in (1, 2, 5) if factor * power <= widest), default=power)
        cuts = np.round(cuts / step) * step
    # A step of 0.1 makes 0.30000000000000004.
    distinct = sorted({float(f"{cut:.12g}") for cut in cuts.tolist()})
    return [cut for cut in distinct if numbers.min() < cut <= numbers.max()] or [float(column.values[1])]

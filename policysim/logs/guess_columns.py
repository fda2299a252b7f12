"""A column of a file at a glance: its distinct values, and whether they are numbers.

Which columns can be features, by which levels or cuts, and how many of them fit into a small domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.files.bad_rows import MISSING, BadRows, DataError, Key, level_of, sorted_keys
from policysim.files.columns_file import open_columns
from policysim.files.data_table import coded, codes_among, missing, numbers, read_table
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import is_id
from policysim.logs.log_source import JOINT, NO_VALUE, THREE_TABLES, Binning
from policysim.logs.log_tables import LogTables
from policysim.question.protocol import SILENT, Progress

# More distinct values are no treatments.
MOST_TREATMENTS = 20
# A column decides another only if so many rows of each of its values agree.
ROWS_EACH = 10
# Larger numbers are codes.
LARGEST = 1e15
# Pairs of columns are compared: of so many it takes some ten seconds.
MOST_COLUMNS = 1_000
# So many distinct whole numbers that rise from row to row number the rows.
FEWEST_NUMBERED = 20


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

    @cached_property
    def is_distinct(self) -> bool:
        """Whether each row has a value of its own."""
        return self.n_rows > 1 and self.n_distinct == self.n_rows

    @cached_property
    def numbers_rows(self) -> bool:
        """Whether it is whole numbers that rise from row to row."""
        rises = self.is_distinct and bool(np.all(np.diff(self.codes) > 0))
        return rises and self.is_whole and self.n_rows >= FEWEST_NUMBERED

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


def summarise_joined(columns: Sequence[ColumnSummary]) -> ColumnSummary:
    """Several columns as one, each combination that occurs a value of its own (`log_tables.joined`)."""
    codes = np.zeros(columns[0].n_rows, dtype=np.intp)
    for column in columns:
        codes = codes * (column.n_distinct + 1) + column.codes + 1
    gaps = np.any([column.codes < 0 for column in columns], axis=0)
    found, places = np.unique(codes[~gaps], return_inverse=True)
    rest, parts = found, []
    for column in reversed(columns):
        parts.append([str(level_of(column.values[place - 1])) for place in rest % (column.n_distinct + 1)])
        rest = rest // (column.n_distinct + 1)
    numbered = np.full(len(codes), -1)
    numbered[~gaps] = places
    values = tuple(JOINT.join(words) for words in zip(*reversed(parts), strict=True))
    return ColumnSummary(JOINT.join(column.name for column in columns), values, numbered)


@dataclass(frozen=True, eq=False)
class TrialColumns:
    """The columns of a trial's files: of one, thrice the same; of three, in the order of the first one's rows.

    `id` is the name of the column by which three files are joined; "" where they are matched row by row.
    """

    features: Sequence[ColumnSummary]
    actions: Sequence[ColumnSummary]
    outcomes: Sequence[ColumnSummary]
    id: str = ""

    @property
    def are_three(self) -> bool:
        """Whether the files are three."""
        return self.actions is not self.features

    @property
    def every(self) -> list[ColumnSummary]:
        """All columns."""
        return [*self.features, *([*self.actions, *self.outcomes] if self.are_three else [])]

    def one_for_each_arm(self, but: Sequence[ColumnSummary]) -> list[ColumnSummary]:
        """The columns of actions: the only one, or several of 0 and 1 of which one is 1 in each row; else none."""
        columns = [column for column in self.actions if column not in but]
        if not self.are_three or (len(columns) > 1 and not all(column.is_binary for column in columns)):
            return []
        sums = np.sum([np.maximum(column.codes, 0) for column in columns], axis=0)
        return columns if len(columns) == 1 or np.all(sums == 1) else []


def trial_columns(paths: Sequence[Path], ids: str, *, header: bool, progress: Progress = SILENT) -> TrialColumns:
    """The columns of one file, or of three: features, actions and outcomes.

    Parameters
    ----------
    paths : sequence of Path
        One or three.
    ids : str
        The column by which three are joined; "" for one that all of them have, named like an id, or else row by row.
    header : bool
        Whether CSV files begin with the names of their columns.

    Raises
    ------
    DataError
        For files that cannot be read, or of which three cannot be joined.
    """
    for path in paths:
        n_columns = len(open_columns(path, header=header).schema.names)
        if n_columns > MOST_COLUMNS:
            raise DataError(
                f"{path.as_posix()}: has {n_columns:,} columns; init compares each with each, and takes up to "
                f"{MOST_COLUMNS:,}: keep those that a treatment may depend on, or write the study by hand"
            )
    tables = [read_table(path, header=header) for path in paths]
    progress.expect(sum(len(table.columns) for table in tables))
    rows = [np.arange(len(table)) for table in tables]
    if len(tables) > 1:
        shared = [name for name in tables[0].columns if all(name in table.columns for table in tables[1:])]
        ids = ids or next((name for name in shared if header and is_id(name)), "")
        joined = LogTables(dict(zip(THREE_TABLES, tables, strict=True)), ids)
        joined.require([])
        rows[1:] = joined.matched(BadRows())
    found = []
    for table, order in zip(tables, rows, strict=True):
        columns = []
        for name in table.columns:
            columns.append(summarise(table[name].iloc[order], name))
            progress.advance()
        found.append(columns)
    features, actions, outcomes = found if len(found) > 1 else found * 3
    return TrialColumns(features, actions, outcomes, ids)


MOST_LEVELS = 12
# A small domain: each record then has a few patients, at least in large trials, and hiding it costs less.
MOST_RECORDS = 5_000
# Distinct rounded cuts are this part of the middle half's width apart, at most.
STEPS = 3
# Why a column whose values repeat is no feature.
NAMED_LIKE_ID = "named like an id"
# Spreads are not rounded below this.
TINY = 1e-200


@dataclass(frozen=True, eq=False)
class Candidate:
    """A column that can be a feature: its declaration, and the bin of each row, (n_rows,)."""

    binning: Binning
    codes: IntArray
    missing_level: bool

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.binning.feature.levels)

    @property
    def counts(self) -> list[int]:
        """How many rows each level has."""
        counts: list[int] = np.bincount(self.codes, minlength=self.size).tolist()
        return counts


@dataclass(frozen=True, eq=False)
class Features:
    """Columns as features.

    Attributes
    ----------
    chosen : tuple of Candidate
        Those that fit into the domain, in the file's order.
    further : tuple of Candidate
        Those that would make it larger.
    unusable : dict of str to str
        Columns that cannot be features, and why.
    """

    chosen: tuple[Candidate, ...]
    further: tuple[Candidate, ...]
    unusable: dict[str, str]

    @property
    def n_records(self) -> int:
        """The size of the declared domain."""
        return math.prod(candidate.size for candidate in self.chosen)


def guess_features(columns: Sequence[ColumnSummary]) -> Features:
    """Declare a feature for each column that can be one, and choose among them."""
    candidates: list[Candidate] = []
    unusable: dict[str, str] = {}
    for column in columns:
        reason = _unusable(column, columns)
        if reason:
            unusable[column.name] = reason
        else:
            candidates.append(_candidate(column))
    chosen = _choose(candidates)
    further = tuple(candidate for candidate in candidates if candidate not in chosen)
    return Features(tuple(candidate for candidate in candidates if candidate in chosen), further, unusable)


def as_feature(column: ColumnSummary) -> Candidate | None:
    """A column as a feature, if it can be one by itself."""
    return None if _unusable(column, [column]) else _candidate(column)


def round_cuts(column: ColumnSummary) -> tuple[float, ...]:
    """About the quartiles of a column of numbers, rounded; those of its distinct values if most rows share one."""
    for values in (column.present(), np.array(column.values, dtype=np.float64)):
        quartiles = np.quantile(values, [0.25, 0.5, 0.75])
        width = float(quartiles[2] - quartiles[0]) or column.high - column.low
        step = _round_step(width / STEPS)
        if not step:
            break
        rounded = {round(float(q) / step) * step for q in quartiles}
        # A step of 0.1 makes 0.30000000000000004.
        cuts = sorted({float(f"{cut:.12g}") for cut in rounded if column.low < cut <= column.high})
        if cuts:
            return tuple(cuts)
    return (float(column.values[column.n_distinct // 2]),)


def round_range(column: ColumnSummary) -> tuple[float, float]:
    """A range of round numbers that holds a column of numbers; [0, 1] if that does."""
    if column.low >= 0 and column.high <= 1:
        return 0.0, 1.0
    step = _round_step(column.high - column.low)
    if not step:
        return column.low, column.high
    low, high = math.floor(column.low / step) * step, math.ceil(column.high / step) * step
    rounded = float(f"{low:.12g}"), float(f"{high:.12g}")
    return min(rounded[0], column.low), max(rounded[1], column.high)


def _round_step(most: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most this; 0 if it is tiny."""
    power = 10.0 ** math.floor(math.log10(most)) if most > TINY else 0.0
    return max((factor * power for factor in (1, 2, 5) if factor * power <= most), default=0.0)


def _unusable(column: ColumnSummary, columns: Sequence[ColumnSummary]) -> str | None:
    if not column.name:
        return "the column has no name"
    if column.n_distinct < 2:
        return "the same value in all rows" if column.n_distinct else "no value in any row"
    if column.is_distinct and (column.numbers_rows or names.is_id(column.name)):
        return "numbers the rows" if column.numbers_rows else "an id, with a value for each row"
    if column.n_distinct > MOST_LEVELS:
        # Too many values for levels: only numbers have cuts.
        uncut = None if column.is_numeric else f"{column.n_distinct:,} distinct values, not all of them usual numbers"
        return NAMED_LIKE_ID if names.is_id(column.name) else uncut
    before = True
    for other in columns:
        if other is column:
            before = False
        elif other.n_distinct <= MOST_LEVELS and other.decides(column) and (before or not column.decides(other)):
            return f"{toml_text(other.name)} decides it"
    return None


def _candidate(column: ColumnSummary) -> Candidate:
    if column.n_distinct > MOST_LEVELS:
        cuts = round_cuts(column)
        bins = np.searchsorted(np.array(cuts), np.array(column.values, dtype=np.float64), side="right")
        codes = np.where(column.codes < 0, len(cuts) + 1, bins[column.codes])
        return Candidate(Binning(column.name, cuts=cuts, missing=column.n_missing > 0), codes, column.n_missing > 0)
    levels = tuple(map(level_of, column.values))
    gaps = (NO_VALUE,) if column.n_missing else ()
    codes = np.where(column.codes < 0, column.n_distinct, column.codes)
    return Candidate(Binning(column.name, (*levels, *gaps)), codes, missing_level=bool(gaps))


def _choose(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Add, while the domain stays small, what spreads the patients most evenly and is not known already.

    The gain of a feature is its entropy less what it shares with the one that tells most of it (Peng, Long & Ding 2005,
    without the outcome: a choice that looked at it would make every later estimate too good), for each bit that
    its levels add to the domain.
    """
    gains = [_entropy(candidate.codes, candidate.size) for candidate in candidates]
    shared = [0.0] * len(candidates)
    chosen: list[int] = []
    room = float(MOST_RECORDS)
    while True:
        fitting = [i for i, candidate in enumerate(candidates) if i not in chosen and candidate.size <= room]
        if not fitting:
            return [candidates[i] for i in chosen]
        # Ties go to the first in the file.
        best = max(fitting, key=lambda i: (round((gains[i] - shared[i]) / math.log2(candidates[i].size), 9), -i))
        chosen.append(best)
        room /= candidates[best].size
        one = candidates[best]
        for i in fitting:
            other = candidates[i]
            together = _entropy(one.codes * other.size + other.codes, one.size * other.size)
            # Their mutual information in bits.
            shared[i] = max(shared[i], gains[best] + gains[i] - together)


def _entropy(codes: IntArray, size: int) -> float:
    shares = np.bincount(codes, minlength=size) / len(codes)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum())

"""The columns of a trial's files at a glance, and whether a row is a patient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from policies.arrays import IntArray
from policysim.files.bad_rows import MISSING, BadRows, DataError, Key, level_of, sorted_keys
from policysim.files.columns_file import open_columns
from policysim.files.data_table import DataTable, coded, codes_among, missing, numbers, read_table
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.log_source import JOINT, THREE_TABLES
from policysim.logs.log_tables import LogTables, joined
from policysim.question.protocol import SILENT, Progress

# A column decides another only if so many rows of each of its values agree.
ROWS_EACH = 10
# Larger numbers are codes.
LARGEST = 1e15
# Pairs of columns are compared: of so many it takes some ten seconds.
MOST_COLUMNS = 1_000
# More distinct values than these of a column that ends in "id" are ids: covid has two.
MOST_CODES = 20
# Rows are cells of a grid, such as states by years, if so many of its cells are there, each once.
FULL_GRID = 0.7


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
        return ", ".join(found) + (", ..." if self.n_distinct > most else "")

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


@dataclass(frozen=True, eq=False)
class TrialColumns:
    """The columns of a trial's files, in the order of the first one's rows; of one file thrice the same.

    `id` is the column by which three files are joined; "" where they are matched row by row.
    """

    features: Sequence[ColumnSummary]
    actions: Sequence[ColumnSummary]
    outcomes: Sequence[ColumnSummary]
    id: str = ""

    @property
    def are_three(self) -> bool:
        """Whether the files are three."""
        return self.actions is not self.features

    def together(self, parts: Sequence[ColumnSummary]) -> ColumnSummary:
        """Several columns as one, each combination that occurs a value of its own; `log_tables.joined` names it."""
        if len(parts) == 1:
            return parts[0]
        texts = [pd.Series([*map(level_of, part.values), None], dtype=object).iloc[part.codes] for part in parts]
        return summarise(joined([text.reset_index(drop=True) for text in texts]), JOINT.join(p.name for p in parts))


def read_columns(paths: Sequence[Path], ids: str, *, header: bool, progress: Progress = SILENT) -> TrialColumns:
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
        ids = ids or next((name for name in shared if header and names.is_id(name)), "")
        together = LogTables(dict(zip(THREE_TABLES, tables, strict=True)), ids)
        together.require([])
        rows[1:] = together.matched(BadRows())

    def summaries(table: DataTable, order: IntArray) -> list[ColumnSummary]:
        progress.advance(len(table.columns))
        return [summarise(table[name].iloc[order], name) for name in table.columns]

    found = [summaries(table, order) for table, order in zip(tables, rows, strict=True)]
    features, actions, outcomes = found if len(found) > 1 else found * 3
    return TrialColumns(features, actions, outcomes, ids)


def not_a_patient(columns: Sequence[ColumnSummary]) -> str:
    """Why a row is probably no patient, and what to do; "" if nothing says so.

    An id that repeats; two columns, or all that have each value equally often, of which each pair is there once, as in
    a panel of states and years or a table of cells; a column that counts.
    """
    n_rows = columns[0].n_rows
    ids = [c for c in columns if names.is_id(c.name) or (c.n_distinct > MOST_CODES and c.name.lower().endswith("id"))]
    again = [c for c in ids if 1 < c.n_distinct < n_rows - c.n_missing and (c.is_whole or not c.is_numeric)]
    if any(c.is_distinct for c in ids):  # beside the patients' own a site's may repeat
        again = [c for c in again if names.says(c.name, "patient")]
    if again:
        return _repeats(again[0], columns)
    counts = [c for c in columns if c.is_whole and not c.is_distinct and names.is_all(c.name, ["count"])]
    if counts:
        return f"{toml_text(counts[0].name)} is named like a count: write a row for each patient"
    grid = _grid([c for c in columns if 1 < c.n_distinct <= n_rows / 2 and not c.n_missing], n_rows)
    return f"each combination of {' and '.join(toml_text(c.name) for c in grid)} is there once" if grid else ""


def _repeats(ids: ColumnSummary, columns: Sequence[ColumnSummary]) -> str:
    """That an id repeats, and a value of another column, the commonest, with one row for each, if there is one."""
    kept = "the first"
    for column in columns:
        commonest = int(column.counts.argmax()) if column.n_distinct > 1 else -1
        rows = (column.codes == commonest) & (ids.codes >= 0)
        if commonest >= 0 and rows.sum() == ids.n_distinct == len(np.unique(ids.codes[rows])):
            kept = f"those with {toml_text(column.name)} = {toml_text(str(level_of(column.values[commonest])))}"
            break
    said = f"{toml_text(ids.name)} has {ids.n_distinct:,} values in {ids.n_rows - ids.n_missing:,} rows"
    return f"{said}: keep one of each in a new file, such as {kept}"


def _grid(columns: Sequence[ColumnSummary], n_rows: int) -> Sequence[ColumnSummary]:
    """Columns of which each combination is there once: two, most of theirs; or more, all of theirs."""
    whole: list[ColumnSummary] = []
    for column in columns:
        # Only what has each value equally often, and with those before it all combinations.
        if len(set(column.counts.tolist())) == 1 and _n_combinations([*whole, column]) == _n_cells([*whole, column]):
            whole.append(column)
    groups = [pair for pair in combinations(columns, 2) if n_rows <= _n_cells(pair) <= n_rows / FULL_GRID]
    return next((group for group in [*groups, whole] if group and _n_combinations(group) == n_rows), [])


def _n_cells(group: Sequence[ColumnSummary]) -> int:
    return math.prod(column.n_distinct for column in group)


def _n_combinations(group: Sequence[ColumnSummary]) -> int:
    return len(np.unique(np.stack([column.codes for column in group]), axis=1).T)

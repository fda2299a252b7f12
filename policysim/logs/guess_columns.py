"""The columns of a trial's file, and whether a row is a patient."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from policysim.files.bad_rows import DataError, level_of
from policysim.files.data_table import read_table
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_summary import ColumnSummary, summarise
from policysim.logs.log_source import JOINT
from policysim.logs.log_tables import joined_columns

# Pairs of columns are compared: of so many it takes some ten seconds.
MOST_COLUMNS = 1_000
# More distinct values than these of a column that ends in "id" are ids: covid has two.
MOST_CODES = 20
# Rows are cells of a grid, such as states by years, if so many of its cells are there, each once.
FULL_GRID = 0.7


def read_columns(path: Path, *, header: bool) -> list[ColumnSummary]:
    """The columns of a file, CSV or Parquet; without a `header`, of a CSV file by their places.

    Raises
    ------
    DataError
        For a file that cannot be read, or has too many columns.
    """
    table = read_table(path, header=header)
    if len(table.columns) > MOST_COLUMNS:
        raise DataError(
            f"{table.name}: has {len(table.columns):,} columns; init compares each with each, and takes up to "
            f"{MOST_COLUMNS:,}: keep those that a treatment may depend on, or write the study by hand"
        )
    return [summarise(table[name], name) for name in table.columns]


def together(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """Several columns as one, each combination that occurs a value of its own: `log_tables.joined_columns` names it."""
    texts = [pd.Series([*map(level_of, part.values), None], dtype=object).iloc[part.codes] for part in parts]
    return summarise(
        joined_columns([text.reset_index(drop=True) for text in texts]), JOINT.join(part.name for part in parts)
    )


def not_a_patient(columns: Sequence[ColumnSummary], named: Collection[str] = ()) -> str:
    """Why a row is probably no patient, and what to do; "" if nothing says so.

    An id that repeats; a column that counts, and is not what the user `named`; two columns, or all that have each value
    equally often, of which each combination is there once, as in a panel of states and years or a table of cells.
    """
    n_rows = columns[0].n_rows
    ids = [c for c in columns if names.is_id(c.name) or (c.n_distinct > MOST_CODES and c.name.lower().endswith("id"))]
    again = [c for c in ids if 1 < c.n_distinct < n_rows - c.n_missing and (c.is_whole or not c.is_numeric)]
    if any(c.is_distinct for c in ids):  # beside the patients' own a site's may repeat
        again = [c for c in again if names.says(c.name, "patient")]
    if again:
        return repeats(again[0], columns)
    count = next((c for c in columns if names.is_all(c.name, ["count"]) and c.is_whole and c.name not in named), None)
    if count and not count.is_distinct:
        return f"{toml_text(count.name)} is named like a count: write a row for each patient"
    grid = _grid([c for c in columns if 1 < c.n_distinct <= n_rows / 2 and not c.n_missing], n_rows)
    return f"each combination of {' and '.join(toml_text(c.name) for c in grid)} is there once" if grid else ""


def repeats(ids: ColumnSummary, columns: Sequence[ColumnSummary]) -> str:
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

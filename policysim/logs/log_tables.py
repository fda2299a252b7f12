"""The tables of a log: one, or three that are joined.

A file or a data frame as a table of a log.

Three tables of a log made one: by the patients' ids where there are some, else row by row.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from envs.toml_reader import unknown
from policies.arrays import IntArray
from policysim.files.bad_rows import MISSING_WORDS, BadRows, LogError, one_line
from policysim.files.columns_file import open_columns
from policysim.files.probability_table import DataError
from policysim.logs.cells import numbers
from policysim.logs.log_source import ACTIONS, FEATURES, OUTCOMES, TABLE


@dataclass(frozen=True, eq=False)
class LogTables:
    """The tables by role, and the column of ids that they share ("" for none)."""

    by_role: dict[str, LogTable]
    id: str

    @property
    def features(self) -> LogTable:
        """The table of covariates, whose order of rows is the log's."""
        return self._of(FEATURES)

    @property
    def actions(self) -> LogTable:
        """The table of treatments and propensities."""
        return self._of(ACTIONS)

    @property
    def outcomes(self) -> LogTable:
        """The table of outcomes."""
        return self._of(OUTCOMES)

    @property
    def are_three(self) -> bool:
        """Whether the tables are three."""
        return TABLE not in self.by_role

    def require(self, wanted: Sequence[tuple[LogTable, str]]) -> None:
        """LogError for each column that is not in its table; all tables need the ids."""
        wanted = [*wanted, *((table, self.id) for table in self.by_role.values() if self.id)]
        absent = [message for table, column in wanted if (message := table.unknown_column(column))]
        if absent:
            raise LogError("\n".join(absent))

    def matched(self, bad: BadRows) -> tuple[IntArray, IntArray]:
        """The rows of actions and of outcomes that belong to each row of the features.

        Raises
        ------
        LogError
            If there are bad rows, whichever check found them.
        """
        ids = check_ids(self.by_role, self.id, bad) if self.id else {}
        bad.raise_if_any()
        rows = matching_rows(self.by_role, ids)
        return (rows[ACTIONS], rows[OUTCOMES]) if self.are_three else (rows[TABLE], rows[TABLE])

    def _of(self, role: str) -> LogTable:
        return self.by_role[role if self.are_three else TABLE]


OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, eq=False)
class LogTable:
    """A table and where it came from.

    Attributes
    ----------
    name : str
        The path, or what a data frame is called in messages.
    frame : DataFrame
        Text throughout, if it came from CSV.
    path : Path or None
        Of the file; None for a data frame.
    """

    name: str
    frame: pd.DataFrame
    path: Path | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def __getitem__(self, column: str) -> pd.Series:
        """One column."""
        return self.frame[column]

    @property
    def is_text(self) -> bool:
        """Whether numbers, too, are text: the file is CSV."""
        return self.path is not None and self.path.suffix.lower() == ".csv"

    def unknown_column(self, column: str) -> str | None:
        """What to say if there is no such column."""
        if column in self.frame.columns:
            return None
        return one_line(f"{self.name}: {unknown('column', column, [str(name) for name in self.frame.columns])}")

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row as messages name it: file, line (CSV) and row; rows of files count from 1, of data frames from 0."""
        if self.path is None:
            return [f"{self.name}: row {row}" for row in rows]
        if not self.is_text:
            return [f"{self.name}: row {row + 1}" for row in rows]
        lines = _lines(self.path, max(rows, default=-1) + 1)
        return [f"{self.name}:{lines[row]}: row {row + 1}" for row in rows]


def read_table(data: Path | str | pd.DataFrame, name: str = "log") -> LogTable:
    """Read a CSV or Parquet file, or take a data frame; a frame is called `name`.

    Raises
    ------
    LogError
        For a file that cannot be read, or is not separated by commas, or without rows; or columns of the same name.
    """
    if isinstance(data, pd.DataFrame):
        table = LogTable(name, data)
        if not data.columns.is_unique:
            raise LogError(f"{name}: columns must be distinct, got {', '.join(map(str, data.columns))}")
    elif isinstance(data, str | Path):
        table = _read_file(Path(data))
    else:
        raise LogError(f"{name} must be a path or a pandas DataFrame, got {type(data).__name__}")
    if not len(table):
        raise LogError(f"{table.name}: has no rows below its header" if table.path else f"{name}: has no rows")
    return table


def _read_file(path: Path) -> LogTable:
    try:
        file = open_columns(path)
        _refuse_separators(path, file.schema.names)
        rows = pa.Table.from_batches(list(file.batches()), file.schema)
    except DataError as error:
        raise LogError(str(error)) from None
    return LogTable(path.as_posix(), rows.to_pandas(ignore_metadata=True), path)


def _refuse_separators(path: Path, names: Sequence[str]) -> None:
    for sign, word in OTHER_SEPARATORS.items():
        if len(names) == 1 and sign in names[0]:
            raise LogError(f"{path.as_posix()}: columns are separated by {word}: save it with commas")


def _lines(path: Path, n_rows: int) -> list[int]:
    """The line on which each of the first rows begins; blank lines, and line breaks within quotes, are why we look."""
    lines: list[int] = []
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream)
        start = 1
        for row in rows:
            if row:
                lines.append(start)
            start = rows.line_num + 1
            if len(lines) > n_rows:
                break
    return lines[1:]


def check_ids(tables: Mapping[str, LogTable], column: str, bad: BadRows) -> dict[str, pd.Index]:
    """The ids of each table as text; those that are missing, there already, or without a match are noted as bad."""
    ids = {role: _ids(table[column]) for role, table in tables.items()}
    for role, table in tables.items():
        _check(table, ids[role], column, {tables[other].name: ids[other] for other in tables if other != role}, bad)
    return ids


def matching_rows(tables: Mapping[str, LogTable], ids: Mapping[str, pd.Index]) -> dict[str, IntArray]:
    """For each table, its rows in the order of the first table's.

    Raises
    ------
    LogError
        If there are no ids, and tables differ in length.
    """
    first = next(iter(tables))
    if ids:
        return {role: np.asarray(ids[role].get_indexer(ids[first]), dtype=np.intp) for role in tables}
    if len({len(table) for table in tables.values()}) > 1:
        lengths = ", ".join(f"{table.name} {len(table):,}" for table in tables.values())
        raise LogError(f"tables without an id are matched row by row, but differ in length: {lengths} rows")
    return {role: np.arange(len(table)) for role, table in tables.items()}


def _ids(column: pd.Series) -> pd.Index:
    """Ids as text, the same for 7, 7.0, "7" and "7.0"; "007" is another. Missing ids are empty."""
    if column.dtype.kind in "iu":
        return pd.Index(column.astype(str))
    if column.dtype.kind == "f":
        values = numbers(column)
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
        text = np.where(whole, np.where(whole, values, 0).astype(np.int64).astype(str), values.astype(str))
        return pd.Index(np.where(np.isnan(values), "", text))
    words = column.astype(str).str.strip().str.replace(r"^([+-]?[0-9]+)\.0*$", r"\1", regex=True)
    absent = column.isna() | words.str.lower().isin(MISSING_WORDS)
    return pd.Index(words.mask(absent, ""))


def _check(table: LogTable, ids: pd.Index, column: str, others: Mapping[str, pd.Index], bad: BadRows) -> None:
    absent = np.asarray(ids == "")
    bad.add(table, absent, column, lambda _: "is missing: each patient needs an id")
    again = np.asarray(ids.duplicated()) & ~absent

    def say_again(row: int) -> str:
        first = int(np.flatnonzero(np.asarray(ids == ids[row]))[0])
        return f"{ids[row]!r} is there already: {table.places([first])[0]}"

    bad.add(table, again, column, say_again)
    for name, other in others.items():
        alone = ~np.asarray(ids.isin(other)) & ~absent
        bad.add(table, alone, column, lambda row, name=name: f"{ids[row]!r} has no row in {name}")  # type: ignore[misc]

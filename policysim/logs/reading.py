"""A file or a data frame as a table of a log."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from envs.toml_reader import unknown
from policysim.columns_file import open_columns
from policysim.logs.bad_rows import LogError, one_line
from policysim.probability_table import DataError

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

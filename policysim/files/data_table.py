"""A file or a data frame as a table in memory, and its columns as codes, numbers or text; no loop over rows.

Logs, tables of probabilities and counts are read here. `columns_file` reads all files, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from envs.toml_reader import one_line, unknown
from policies import levels
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import MISSING, MISSING_WORDS, FeatureLevels, LevelKey, codes_of_keys, level_key
from policysim.errors import optional
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import ColumnsFile, check_distinct, open_columns
from policysim.files.csv_format import BAR, COMMA, RECOGNISED, SEMICOLON, TAB, CsvFormat, to_state
from policysim.progress import SILENT, Progress

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc


ONE_VALUE = "must hold one number, text, truth value or time in each row"
# What pandas may write into a Parquet file beside the columns.
PANDAS_INDEX = "__index_level_"


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table and where it came from.

    Attributes
    ----------
    name : str
        The path, or what a data frame is called in messages.
    rows : DataFrame or pyarrow.Table
        Of a file the latter: text throughout, if it came from text. What is not seen of a file's names of columns is
        escaped (`envs.toml_reader.UNSEEN`).
    file : ColumnsFile or None
        Where it came from; None for a data frame.
    header : bool
        Whether its columns have names; else these are their places, and a file's first line is a row.
    before : int
        How many rows stand before these in the whole table, of which they are a part.
    """

    name: str
    rows: pd.DataFrame | pa.Table
    file: ColumnsFile | None = None
    header: bool = True
    before: int = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __getitem__(self, column: str) -> pd.Series:
        """One column; DataError for one of lists, structs or bytes."""
        values = self.frame_of([column])[column]
        kinds = set(map(type, values.array)) if values.dtype == object else set()
        several = tuple(kind for kind in kinds if issubclass(kind, Collection) and not issubclass(kind, str))
        if several:
            first = next(value for value in values.array if isinstance(value, several))
            raise DataError(one_line(f"{self.name}: {column}: {ONE_VALUE}, got a {type(first).__name__}"))
        return values

    def codes(self, feature: FeatureLevels) -> IntArray:
        """The level of each row in the column of a feature, (n_rows,); -1 where it has none (`policies.levels`)."""
        positions, keys = coded(self[feature.name])
        return codes_of_keys(feature, keys)[positions]

    @cached_property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(map(str, self.rows.columns if isinstance(self.rows, pd.DataFrame) else self.rows.column_names))

    def frame_of(self, columns: Sequence[str]) -> pd.DataFrame:
        """Some columns; of a file that may have very many, no others are made columns of pandas."""
        if isinstance(self.rows, pd.DataFrame):
            return self.rows[list(columns)]
        frame: pd.DataFrame = self.rows.select(list(columns)).to_pandas(ignore_metadata=True)
        return frame

    @property
    def is_text(self) -> bool:
        """Whether numbers, too, are text, as in CSV."""
        return self.file is not None and self.file.is_text

    def unknown_column(self, column: str) -> str | None:
        """What to say if there is no such column."""
        if column in self.columns:
            return None
        hint = ""
        if self.file and self.is_text and len(self.columns) == 1:
            signs = [sign for sign in (COMMA, SEMICOLON, TAB, BAR) if sign in self.file.schema.names[0]]
            hint = f"; if it is more than one column, {to_state('separator', signs[0])}" if signs else ""
        return one_line(f"{self.name}: {unknown('column', column, self.columns)}{hint}")

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row as messages name it: file, line (of text) and row; rows of files count from 1, of frames from 0."""
        rows = [self.before + row for row in rows]
        return self.file.places(rows) if self.file else [f"{self.name}: row {row}" for row in rows]

    def short_place(self, row: int) -> str:
        """The line of a text file, or else the row."""
        row += self.before
        if self.file and self.file.is_text:
            return f"line {self.file.lines([row])[0]}"
        return f"row {row + 1 if self.file else row}"

    def part(self, start: int, end: int) -> DataTable:
        """The rows from one to before another."""
        return replace(self, rows=self.rows[start:end], before=self.before + start)

    def with_bare_names(self) -> DataTable:
        """The same, without margins around the names of columns, which some tools write behind commas."""
        names = [name.strip() for name in self.columns]
        check_distinct(self.name, names)
        return replace(self, rows=self.frame_of(self.columns).set_axis(names, axis=1))

    def with_columns(self, columns: Mapping[str, pd.Series]) -> DataTable:
        """The same with these columns, in place of those of their names or behind the others."""
        return replace(self, rows=self.frame_of(self.columns).assign(**columns))


def read_table(
    data: Path | str | pd.DataFrame | NDArray[Any],
    name: str = "log",
    *,
    stated: CsvFormat = RECOGNISED,
    may_be_empty: bool = False,
    progress: Progress = SILENT,
) -> DataTable:
    """Read a file (`many_files.READABLE`), or take a data frame or an array; these are called `name`.

    Columns of an array, and of a text file without a header, are named by their places, "0" first; names of a frame
    that are no text become text. What is not `stated` of a text file is recognised.

    Raises
    ------
    DataError
        For a file that cannot be read, or without rows; or columns of the same name; or
        a header where there must be none.
    """
    if isinstance(data, np.ndarray) and data.ndim in (1, 2):
        data = pd.DataFrame(data)
    if isinstance(data, pd.DataFrame):
        names, own = [str(column) for column in data.columns], list(data.columns)
        table = DataTable(
            name, data if names == own else data.set_axis(names, axis=1), header=own != [*range(len(own))]
        )
        if len(set(names)) < len(names):
            raise DataError(f"{name}: columns must be distinct, got {', '.join(names)}")
    elif isinstance(data, str | Path):
        table = _read_file(Path(data), progress, stated)
    else:
        raise DataError(f"{name} must be a path, a pandas DataFrame or a NumPy array, got {type(data).__name__}")
    if not len(table) and not may_be_empty:
        raise DataError(f"{table.name}: has no rows{' below its header' if table.header and table.file else ''}")
    return table


def _read_file(path: Path, progress: Progress, stated: CsvFormat) -> DataTable:
    file = open_columns(path, stated)
    rows = pa.Table.from_batches(list(file.batches(progress=progress)), file.schema)
    names = list(map(one_line, file.schema.names))
    check_distinct(path.as_posix(), names)
    table = DataTable(path.as_posix(), rows.rename_columns(names), file, file.header)
    if file.header or len(table) < 2:
        return table
    # The first row is a header if it is different words, no number, above a column of numbers only.
    cells = [str(cell).strip() for cell in rows.slice(0, 1).to_pylist()[0].values()]
    words = list(filter(None, cells))
    named = (
        bool(words) and len(set(words)) == len(words) and not any(isinstance(level_key(cell), float) for cell in words)
    )
    if named and any(np.isfinite(numbers(table[name].iloc[1:])).all() for name in table.columns):
        said = f"is a header ({one_line(', '.join(cells))}) where header = false (--no-header) promised none"
        raise DataError(f"{table.places([0])[0]}: {said}")
    return table


def coded(column: pd.Series) -> tuple[IntArray, list[LevelKey]]:
    """`policies.levels.coded`; what is not seen of a text is escaped (`envs.toml_reader.UNSEEN`)."""
    positions, keys = levels.coded(column)
    return positions, [one_line(key) if isinstance(key, str) else key for key in keys]


def numbers(column: pd.Series) -> FloatArray:
    """A column as float64, (n_rows,); NaN where a value is missing or no number. Times are none."""
    if column.dtype.kind in "mM":
        return np.full(len(column), np.nan)
    if column.dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    values: FloatArray
    try:  # numbers or missing throughout, in one go
        values = _words(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, TypeError, OverflowError):
        positions, keys = coded(column)
        values = np.array([np.nan if isinstance(key, str) else key for key in keys])[positions]
    return values


def meanings(column: pd.Series, codes: Mapping[str, float]) -> FloatArray:
    """The number that each value stands for, (n_rows,); NaN for a value that is none of the codes (`level_key`)."""
    by_key = {level_key(value): number for value, number in codes.items()}
    positions, keys = coded(column)
    return np.array([by_key.get(key, np.nan) for key in keys], dtype=np.float64)[positions]


def missing(column: pd.Series, among: BoolArray) -> BoolArray:
    """Which rows have no value, looking only `among` some: others have one."""
    rows = np.flatnonzero(among)
    positions, keys = coded(column.iloc[rows])
    found = np.zeros(len(column), dtype=np.bool_)
    found[rows] = np.array([key == MISSING for key in keys], dtype=np.bool_)[positions]
    return found


def typed(column: pd.Series) -> pd.Series:
    """A column of text as whole numbers, numbers or truth values if all of it is, missing values as NaN."""
    text = _words(column)
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            values = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        whole = kind != pa.float64() and not values.null_count
        plain = values if whole else values.cast(pa.float64()) if kind != pa.bool_() else values
        return pd.Series(plain.to_pandas(), index=column.index, name=column.name)
    return column.mask(np.asarray(text.is_null()))


def _words(column: pd.Series) -> Any:
    """A pyarrow array of text without margins; null where a value is missing."""
    text = pa.array(column, from_pandas=True)
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    trimmed = pc.utf8_trim_whitespace(text)
    word = pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING_WORDS, trimmed.type))
    return pc.if_else(word, pa.scalar(None, trimmed.type), trimmed)

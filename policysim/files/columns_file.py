"""The columns of CSV and Parquet files, read and written a batch of rows at a time: a file may exceed the memory.

A CSV file is read as text and nothing else, so that every value comes out as it went in: leading zeros, empty cells,
commas and line breaks within quotes. Only the quoting may change: a value is quoted where it must be.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from envs.toml_reader import require_file
from policysim.errors import optional
from policysim.files.bad_rows import BadRows, DataError, first_line
from policysim.files.many_files import ENDINGS
from policysim.files.terminal import complain
from policysim.numbers import FORMULA, SIGNED_NUMBER
from policysim.progress import SILENT, Progress

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

# What is read of a CSV file at a time; also the longest row.
CSV_BLOCK = 1 << 22
# Cells of a Parquet file at a time, and at most this many rows.
BATCH_CELLS, BATCH_ROWS = 1 << 21, 1 << 18
# What Parquet's reader holds of each column that it reads.
PAGE_BUFFER = 1 << 20

# What the CSV reader says of a row that is longer or shorter than the header.
RAGGED = re.compile(r"Expected \d+ columns, got \d+")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
# Spreadsheets of many countries write semicolons and decimal commas, and older ones Latin-1 or UTF-16.
SEPARATORS = (";", "\t", "|")
# So much of a file is looked at: a text that is not UTF-8 must show before.
LOOKED_AT = 1 << 24
# A cell that is a number with a point, or with a comma.
_POINT = re.compile(r'(?:^|[;\t|])\s*"?[+-]?[0-9]*\.[0-9]+"?\s*(?=[;\t|]|$)', re.MULTILINE)
_COMMA = r"^(\s*[+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?\s*)$"


class Dialect(NamedTuple):
    """How a file is written; as it stands, plain: UTF-8, commas between columns, points in numbers."""

    encoding: str = "utf-8-sig"
    separator: str = ","
    decimal_comma: bool = False

    def with_points(self, batch: pa.RecordBatch) -> Any:
        """The columns of text, numbers with points."""
        if not self.decimal_comma:
            return batch
        columns = [pc.replace_substring_regex(column, _COMMA, r"\1.\2") for column in batch.columns]
        return pa.record_batch(columns, schema=batch.schema)


PLAIN = Dialect()


def dialect_of(path: Path) -> Dialect:
    """The dialect of a CSV file, by its beginning.

    Text that is not UTF-8 is Latin-1, as Windows has it (cp1252); UTF-16 begins with its mark. Semicolons, tabs or bars
    separate columns if the first line has them and no commas do; numbers then have commas if none has a point.

    Raises
    ------
    UnicodeDecodeError
        For what is no text.
    """
    with path.open("rb") as stream:
        start = stream.read(LOOKED_AT)
    encoding = "utf-8-sig"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        try:
            # Not told that this is the end: a sign may be cut.
            codecs.getincrementaldecoder("utf-8")().decode(start)
        except UnicodeDecodeError:
            encoding = "cp1252"
    text = codecs.getincrementaldecoder(encoding)().decode(start)
    first = next(filter(str.strip, io.StringIO(text)), "")
    separator = next(
        (sign for sign in SEPARATORS if sign in first and _size(first, sign) > _size(first, ",") == 1), ","
    )
    return Dialect(encoding, separator, decimal_comma=separator != "," and not _POINT.search(text))


def _size(line: str, separator: str) -> int:
    return len(next(csv.reader([line], delimiter=separator), []))


@dataclass(frozen=True)
class ColumnsFile:
    """A file whose header has been read.

    Attributes
    ----------
    path : Path
    schema : pyarrow.Schema
        Names and types of the columns; all are text in CSV.
    size : int
        How much there is to read, in `unit`s: `batches` reports them as progress.
    unit : str
        "B" (CSV) or "row" (Parquet).
    header : bool
        Whether the first line of a CSV file names the columns; else their names are their places, "0" first.
    dialect : Dialect
        How a CSV file is written.
    """

    path: Path
    schema: pa.Schema
    size: int
    unit: str
    header: bool = True
    dialect: Dialect = PLAIN

    def batches(self, columns: Sequence[str] | None = None, progress: Progress = SILENT) -> Iterator[Any]:
        """The rows, as non-empty pyarrow.RecordBatch; all columns, or these ones; DataError for what cannot be read."""
        read = _csv_batches if check_ending(self.path) == ".csv" else _parquet_batches
        progress.expect(self.size)
        with _reading(self.path):
            try:
                yield from read(self, columns, progress)
            except pa.ArrowInvalid as error:
                if RAGGED.search(str(error)):
                    _refuse_ragged(self)
                raise

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row as messages name it."""
        return row_places(self.path, rows, header=self.header)


class Writer(Protocol):
    """Takes batches of one schema."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""


def open_columns(path: Path, *, header: bool = True, plain: bool = False) -> ColumnsFile:
    """Read the header of a .csv or .parquet file, if there is one; DataError if it cannot be used.

    Of a CSV file the dialect is looked at (`dialect_of`), unless it must be `plain`, since all its values shall come
    out as they went in.
    """
    name, ending = path.as_posix(), check_ending(path)
    with _reading(path):
        require_file(path)
        if ending == ".csv":
            dialect = PLAIN if plain else dialect_of(path)
            with path.open(encoding=dialect.encoding, newline="") as stream:
                first = next(filter(None, csv.reader(stream, delimiter=dialect.separator, strict=True)), None)
            if first is None:
                raise DataError(f"{name}: is empty: the first line must name the columns")
            if dialect.encoding == "utf-16":  # of two marks, the reader of the rows leaves out the second, too
                first[0] = first[0].removeprefix("\ufeff")
            names = first if header else [str(place) for place in range(len(first))]
            schema = pa.schema([(column, pa.string()) for column in names])
            found = ColumnsFile(path, schema, path.stat().st_size, "B", header, dialect)
        else:
            with pq.ParquetFile(path) as file:
                schema = file.schema_arrow
                found = ColumnsFile(path, schema, file.metadata.num_rows, "row")
            if not schema.names:
                raise DataError(f"{name}: has no columns")
    numbers = ending == ".csv" and all(map(_NUMBER.fullmatch, found.schema.names))
    hint = ": its first line is numbers, and no header (header = false, or --no-header, says so)"
    check_distinct(name, found.schema.names, hint if numbers else "")
    return found


def check_distinct(table: str, names: Sequence[str], hint: str = "") -> None:
    """DataError for columns of the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{table}: two columns are named {name!r}{hint}")
        seen.add(name)


@contextmanager
def open_writer(path: Path, schema: pa.Schema, ending: str) -> Iterator[Writer]:
    """Write a file of this kind from its beginning; the caller says under which name, and that nothing is lost.

    In CSV, what a spreadsheet would run has an apostrophe before it (`numbers.FORMULA`); a warning says how many cells.
    """
    if ending == ".csv":
        with path.open("wb") as stream:
            writer = _CsvWriter(stream)
            writer.write(pa.record_batch([[name] for name in schema.names], names=list(map(str, range(len(schema))))))
            yield writer
        if writer.n_formulas:
            said = "cells begin as formulas of spreadsheets do, and have an apostrophe before them; .parquet needs none"
            complain(f"warning: {path.name}: {writer.n_formulas:,} {said}")
    else:
        with path.open("wb") as stream, pq.ParquetWriter(stream, schema) as parquet:
            yield parquet


def check_ending(path: Path) -> str:
    """.csv or .parquet; DataError for anything else."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{path.as_posix()}: the name must end in .csv or .parquet")
    return ending


def row_places(path: Path, rows: Sequence[int], *, header: bool = True) -> list[str]:
    """Each row of a file as messages name it: file, line (CSV) and row, both counted from 1."""
    name = path.as_posix()
    lines = (
        [f":{line}" for line in lines_of(path, rows, header=header)]
        if check_ending(path) == ".csv"
        else [""] * len(rows)
    )
    return [f"{name}{line}: row {row + 1}" for line, row in zip(lines, rows, strict=True)]


def lines_of(path: Path, rows: Sequence[int], *, header: bool = True) -> list[int]:
    """The lines on which rows of a CSV file begin; a header is no row."""
    wanted = dict.fromkeys(rows, 1)
    last = max(rows, default=-1)
    for row, (line, _) in zip(range(-1 if header else 0, last + 1), _numbered_rows(path), strict=False):
        if row in wanted:
            wanted[row] = line
    return [wanted[row] for row in rows]


def _numbered_rows(path: Path) -> Iterator[tuple[int, int]]:
    """The line on which each row begins, and its cells; blank lines and breaks within quotes are why we look."""
    dialect = dialect_of(path)
    with path.open(encoding=dialect.encoding, newline="") as stream:
        rows = csv.reader(stream, delimiter=dialect.separator, strict=True)
        start = 1
        try:
            for row in rows:
                if row:
                    yield start, len(row)
                start = rows.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path.as_posix()}:{start}: not valid CSV: {error}") from None


def _refuse_ragged(file: ColumnsFile) -> None:
    """DataError for all rows that are longer or shorter than the first line; the reader knows only of one."""
    sizes = np.array([size for _, size in _numbered_rows(file.path)][int(file.header) :], dtype=np.intp)
    n_columns, bad = len(file.schema.names), BadRows()
    must = f"must have {n_columns} columns as the {'header' if file.header else 'first row'} has"
    bad.add(file, sizes != n_columns, "", lambda row: f"{must}, got {sizes[row]}")
    bad.raise_if_any()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What can be wrong with a file, in one line."""
    name = path.as_posix()
    try:
        yield
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or first_line(error)}") from None
    except UnicodeDecodeError:
        raise DataError(f"{name}: must be UTF-8 text") from None
    except (csv.Error, pa.ArrowException) as error:
        reason = f"not valid {'CSV' if check_ending(path) == '.csv' else 'Parquet'}: {first_line(error)}"
        if "UTF8" in reason:
            reason = "must be UTF-8 text"
        elif "straddl" in reason:
            reason = f"a row is longer than {CSV_BLOCK >> 20} MiB, or a quote is opened and never closed"
        raise DataError(f"{name}: {reason}") from None


def _csv_batches(file: ColumnsFile, columns: Sequence[str] | None, progress: Progress) -> Iterator[Any]:
    # Only without threads does the reader know the number of a wrong row; it is as fast. A handler of wrong rows would
    # know it too, but may be called off by another thread after the interpreter has ended, which aborts the process.
    own_names = {} if file.header else {"column_names": file.schema.names}
    reading = pa_csv.ReadOptions(block_size=CSV_BLOCK, use_threads=False, **own_names)
    parsing = pa_csv.ParseOptions(delimiter=file.dialect.separator, newlines_in_values=True)
    converting = pa_csv.ConvertOptions(column_types=file.schema, include_columns=columns)
    left, last = file.size, None
    try:
        with pa_csv.open_csv(_in_utf8(file), reading, parsing, converting) as batches:
            for batch in batches:
                if batch.num_rows:
                    last = batch
                    yield file.dialect.with_points(batch)
                # A batch is a block; the reader's place in the file is many blocks ahead.
                step = min(CSV_BLOCK, left)
                progress.advance(step)
                left -= step
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise
    progress.advance(left)
    if last is not None and columns is None:
        _refuse_open_quote(file, last.column(last.num_columns - 1)[-1].as_py())


def _in_utf8(file: ColumnsFile) -> Any:
    """The path of a CSV file; of one that is not UTF-8 its bytes as such.

    The reader would recode it in a thread that needs the interpreter, for which both may wait for ever as it ends.
    """
    if file.dialect.encoding == PLAIN.encoding:
        return str(file.path)
    recoded = pa.BufferOutputStream()
    with file.path.open(encoding=file.dialect.encoding, newline="") as stream:
        while block := stream.read(CSV_BLOCK):
            recoded.write(block.encode())
    return pa.BufferReader(recoded.getvalue())


def _refuse_open_quote(file: ColumnsFile, last: str) -> None:
    """A quote that is never closed swallows all rows below it, whose private values would then pass through unseen."""
    if "\n" not in last and "\r" not in last:
        return
    closed = '"' + last.replace('"', '""') + '"'
    with file.path.open("rb") as stream:
        if file.dialect.encoding == "utf-8-sig":  # may be large
            stream.seek(-min(file.path.stat().st_size, len(closed.encode()) + CSV_BLOCK), 2)
        text = stream.read().decode(file.dialect.encoding, errors="ignore")
    if not text.rstrip("\r\n").endswith(closed):
        raise DataError(f"{file.path.as_posix()}: a quote in the last row is opened and never closed")


def _parquet_batches(file: ColumnsFile, columns: Sequence[str] | None, progress: Progress) -> Iterator[Any]:
    rows = max(1, min(BATCH_ROWS, BATCH_CELLS // len(columns or file.schema.names)))
    with pq.ParquetFile(file.path, buffer_size=PAGE_BUFFER) as parquet:
        for batch in parquet.iter_batches(rows, columns=columns):
            batch.validate(full=True)  # the reader believes what a file says of its texts and times
            if batch.num_rows:
                yield batch
            progress.advance(batch.num_rows)


@dataclass
class _CsvWriter:
    """Joins cells to lines in bulk: pyarrow's own writer puts quotes around every text."""

    stream: Any
    n_formulas: int = 0
    SPECIAL: ClassVar = (b'"', b",", b"\n", b"\r")
    SIGNS: ClassVar = (b"=", b"+", b"-", b"@")

    def write(self, batch: pa.RecordBatch) -> None:
        rows = pc.binary_join_element_wise(*map(self._quoted, batch.columns), ",")
        whole = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
        self.stream.write(pc.binary_join(whole, "\n")[0].as_buffer())
        self.stream.write(b"\n")

    def _quoted(self, column: pa.Array) -> pa.Array:
        content = column.buffers()[2]
        text = b"" if content is None else content.to_pybytes()
        formulas = pc.match_substring_regex(column, FORMULA) if any(sign in text for sign in self.SIGNS) else None
        if formulas is not None and pc.any(formulas).as_py():
            formulas = pc.and_not(formulas, pc.match_substring_regex(column, SIGNED_NUMBER))
            self.n_formulas += formulas.true_count
            column = pc.if_else(formulas, pc.binary_join_element_wise("'", column, ""), column)
        if not any(sign in text for sign in self.SPECIAL):
            return column
        inside = pc.replace_substring(column, '"', '""')
        # Joined by quotes, nothing, the cell and nothing are the cell within quotes.
        return pc.if_else(
            pc.match_substring_regex(column, '[",\r\n]'), pc.binary_join_element_wise("", inside, "", '"'), column
        )

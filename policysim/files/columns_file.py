"""The columns of tables in text and in Parquet, read a batch of rows at a time: a file may exceed the memory.

Text is read as text and nothing else, so that every value comes out as it went in: leading zeros, empty cells, commas
and line breaks within quotes. Only decimal commas become points. `dialect` says how it is written.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envs.toml_reader import require_file
from policysim.errors import optional
from policysim.files.bad_rows import BadRows, DataError, first_line
from policysim.files.csv_format import COMMA, RECOGNISED, SPACE, CsvFormat, to_state
from policysim.files.dialect import (
    BLOCK,
    DECIMAL_COMMA,
    PLAIN,
    UTF8,
    Dialect,
    check_unpacked,
    line_not_text,
    open_bytes,
    open_text,
    recognise,
    text_lines,
)
from policysim.files.many_files import CSV, PACKED, READABLE, kind_of
from policysim.progress import SILENT, Progress

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

# Cells of a Parquet file at a time, and at most this many rows.
BATCH_CELLS, BATCH_ROWS = 1 << 21, 1 << 18
# What Parquet's reader holds of each column that it reads.
PAGE_BUFFER = 1 << 20

# What the CSV reader says of a row that is longer or shorter than the header.
RAGGED = re.compile(r"Expected \d+ columns, got \d+")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


@dataclass(frozen=True)
class ColumnsFile:
    """A file whose header has been read.

    Attributes
    ----------
    path : Path
    schema : pyarrow.Schema
        Names and types of the columns; all are text in a text file.
    size : int
        How much there is to read, in `unit`s: `batches` reports them as progress.
    unit : str
        "B" (text) or "row" (Parquet).
    header : bool
        Whether the first line of a text file names the columns; else their names are their places, "0" first.
    dialect : Dialect
        How a text file is written.
    unnamed : tuple of int
        The places of columns that are left out, as they have neither names nor values: separators that a spreadsheet
        leaves at the ends of lines.
    """

    path: Path
    schema: pa.Schema
    size: int
    unit: str
    header: bool = True
    dialect: Dialect = PLAIN
    unnamed: tuple[int, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether numbers, too, are text."""
        return kind_of(self.path) == CSV

    def batches(self, columns: Sequence[str] | None = None, progress: Progress = SILENT) -> Iterator[Any]:
        """The rows, as non-empty pyarrow.RecordBatch; all columns, or these ones; DataError for what cannot be read."""
        progress.expect(self.size)
        with _reading(self.path, self.dialect):
            try:
                yield from (_csv_batches if self.is_text else _parquet_batches)(self, columns, progress)
            except pa.ArrowInvalid as error:
                if RAGGED.search(str(error)):
                    _refuse_ragged(self)
                raise

    def lines(self, rows: Sequence[int]) -> list[int]:
        """The lines of a text file on which rows begin; a header is no row."""
        wanted = dict.fromkeys(rows, 1)
        last = max(rows, default=-1)
        first = -1 if self.header else 0
        for row, (line, _) in zip(range(first, last + 1), _numbered_rows(self.path, self.dialect), strict=False):
            if row in wanted:
                wanted[row] = line
        return [wanted[row] for row in rows]

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row as messages name it: file, line (of text) and row, both counted from 1."""
        lines = [f":{line}" for line in self.lines(rows)] if self.is_text else [""] * len(rows)
        return [f"{self.path.as_posix()}{line}: row {row + 1}" for line, row in zip(lines, rows, strict=True)]


def open_columns(path: Path, stated: CsvFormat = RECOGNISED) -> ColumnsFile:
    """Read the header of a file, if there is one; DataError if it cannot be used, or be read in two ways."""
    name, kind, dialect = path.as_posix(), kind_of(path), PLAIN
    if not kind:
        raise DataError(f"{name}: the name must end in {READABLE}")
    with _reading(path, dialect):
        require_file(path)
        if kind == CSV:
            dialect = recognise(path, stated)
            rows = csv.reader(text_lines(path, dialect), delimiter=dialect.delimiter, strict=True)
            first = next(filter(None, rows), None)
            if first is None:
                raise DataError(f"{name}: is empty: the first line must name the columns")
            names = first if stated.header else [str(place) for place in range(len(first))]
            unnamed = tuple(place for place, column in enumerate(names) if not column.strip())
            unnamed = unnamed if 1 < len(unnamed) < len(names) else ()
            schema = pa.schema([(column, pa.string()) for place, column in enumerate(names) if place not in unnamed])
            file = ColumnsFile(path, schema, path.stat().st_size, "B", stated.header, dialect, unnamed)
        else:
            with pq.ParquetFile(path) as parquet:
                schema = parquet.schema_arrow
                file = ColumnsFile(path, schema, parquet.metadata.num_rows, "row")
            if not schema.names:
                raise DataError(f"{name}: has no columns")
    repeated = [column for column, count in Counter(schema.names).items() if count > 1]
    numbers = file.is_text and any(map(_NUMBER.fullmatch, repeated))
    hint = ": its first line has numbers, and is no header (header = false, or --no-header, says so)"
    check_distinct(f"{name}:{dialect.first_line}" if file.is_text else name, schema.names, hint if numbers else "")
    return file


def check_distinct(table: str, names: Sequence[str], hint: str = "") -> None:
    """DataError for columns of the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{table}: two columns are named {name!r}{hint}")
        seen.add(name)


def _numbered_rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, int]]:
    """The line on which each row begins, and its cells; blank lines and breaks within quotes are why we look."""
    rows = csv.reader(text_lines(path, dialect), delimiter=dialect.delimiter, strict=True)
    start = dialect.first_line
    try:
        for row in rows:
            if row:
                yield start, len(row)
            start = dialect.first_line + rows.line_num
    except csv.Error as error:
        raise DataError(f"{path.as_posix()}:{start}: not valid CSV: {error}") from None


def _refuse_ragged(file: ColumnsFile) -> None:
    """DataError for all rows that are longer or shorter than the first line; the reader knows only of one."""
    sizes = np.array([size for _, size in _numbered_rows(file.path, file.dialect)][int(file.header) :], dtype=np.intp)
    n_columns, bad = len(file.schema.names) + len(file.unnamed), BadRows()
    must = f"must have {n_columns} columns as the {'header' if file.header else 'first row'} has"
    bad.add(file, sizes != n_columns, "", lambda row: f"{must}, got {sizes[row]}")
    bad.raise_if_any()


@contextmanager
def _reading(path: Path, dialect: Dialect) -> Iterator[None]:
    """What can be wrong with a file, in one line."""
    name, kind = path.as_posix(), "CSV" if kind_of(path) == CSV else "Parquet"
    try:
        yield
    except UnicodeError:
        raise DataError(_no_text(path, dialect.encoding)) from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        if path.suffix.lower() in PACKED and not getattr(error, "errno", None):
            reason = f"is not whole, or not packed by {PACKED[path.suffix.lower()]}, as its name says ({reason})"
        raise DataError(f"{name}: cannot be read: {reason}") from None
    except (csv.Error, pa.ArrowException) as error:
        reason = first_line(error)
        if "UTF8" in reason and kind == "CSV":
            raise DataError(_no_text(path, UTF8)) from None
        if "straddl" in reason:
            reason = f"a row is longer than {BLOCK >> 20} MiB, or a quote is opened and never closed"
        else:
            reason = "must be UTF-8 text" if "UTF8" in reason else f"not valid {kind}: {reason}"
        raise DataError(f"{name}: {reason}") from None


def _no_text(path: Path, encoding: str) -> str:
    title, states = "UTF-8" if encoding == UTF8 else encoding, to_state("encoding", "latin-1")
    return f"{path.as_posix()}:{line_not_text(path, encoding)}: is no text in {title}: {states}"


def _csv_batches(file: ColumnsFile, columns: Sequence[str] | None, progress: Progress) -> Iterator[Any]:
    # Only without threads does the reader know the number of a wrong row; it is as fast. A handler of wrong rows would
    # know it too, but may be called off by another thread after the interpreter has ended, which aborts the process.
    own_names = {} if file.header else {"column_names": file.schema.names}
    reading = pa_csv.ReadOptions(block_size=BLOCK, use_threads=False, **own_names)
    parsing = pa_csv.ParseOptions(delimiter=file.dialect.delimiter, newlines_in_values=True)
    converting = pa_csv.ConvertOptions(column_types=file.schema, include_columns=columns)
    left, last, n_rows, n_blocks = file.size, None, 0, 0
    # What of a packed file a block is, is not known: about a fourth of one.
    block = BLOCK // 4 if file.path.suffix.lower() in PACKED else BLOCK
    try:
        with _in_utf8(file) as stream, pa_csv.open_csv(stream, reading, parsing, converting) as batches:
            for batch in batches:
                if batch.num_rows:
                    last = batch if columns else _without_unnamed(file, batch, n_rows)
                    yield _with_points(file, last, n_rows)
                n_rows, n_blocks = n_rows + batch.num_rows, n_blocks + 1
                # A batch is a block; the reader's place in the file is many blocks ahead.
                check_unpacked(file.path, n_blocks * BLOCK)
                step = min(block, left)
                progress.advance(step)
                left -= step
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise
    progress.advance(left)
    if last is not None and columns is None:
        _refuse_open_quote(file, last.column(last.num_columns - 1)[-1].as_py())


def _without_unnamed(file: ColumnsFile, batch: pa.RecordBatch, before: int) -> Any:
    """The columns that have names; DataError for a value in one that has none."""
    for place in file.unnamed:
        rows = pc.indices_nonzero(pc.not_equal(pc.utf8_trim_whitespace(batch.column(place).cast(pa.string())), ""))
        if len(rows):
            place_of_row = file.places([before + rows[0].as_py()])[0]
            raise DataError(f"{place_of_row}: column {place + 1} has no name, and a value: name it in the header")
    return batch.select([place for place in range(batch.num_columns) if place not in file.unnamed])


def _with_points(file: ColumnsFile, batch: pa.RecordBatch, before: int) -> Any:
    """The columns of text, decimal commas as points.

    DataError for a number with another sign than the file's decimal one: it would be read as another number.
    """
    dialect, columns = file.dialect, batch.columns
    sign = b"." if dialect.decimal == COMMA else b","
    for place, column in enumerate(columns):
        content = column.buffers()[2]
        if not dialect.refused or content is None or sign not in content.to_pybytes():
            continue
        rows = pc.indices_nonzero(pc.match_substring_regex(column, dialect.refused))
        if len(rows):
            what = "is a number with a point, where commas are decimal signs"
            what = what if sign == b"." else "is a number with a comma"
            instead = f": without commas or points between thousands, {to_state('decimal', ',', '.')}"
            if not dialect.strict:
                what, instead = "may have points between thousands: remove them", ""
            place_of_row = file.places([before + rows[0].as_py()])[0]
            raise DataError(f"{place_of_row}: {batch.schema.names[place]}: {what}{instead}")
    if dialect.decimal == COMMA:
        columns = [pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2") for column in columns]
    return pa.record_batch(columns, schema=batch.schema)


@contextmanager
def _in_utf8(file: ColumnsFile) -> Iterator[Any]:
    """The bytes of a text behind its comments; of one that is not UTF-8, or has spaces, those of a copy that is.

    The reader would recode it in a thread that needs the interpreter, for which both may wait for ever as it ends.
    The copy has no name and is gone when the process ends, however it does.
    """
    dialect = file.dialect
    if dialect.encoding == UTF8 and dialect.separator != SPACE:
        with open_bytes(file.path) as stream:
            if dialect.offset:
                stream.read(dialect.offset)
            yield stream
        return
    with tempfile.TemporaryFile(buffering=BLOCK) as copy:
        n_bytes = 0
        for part in _parts(file):
            n_bytes += copy.write(part.encode())
            check_unpacked(file.path, n_bytes)
        copy.flush()
        copy.seek(0)
        with pa.OSFile(f"/dev/fd/{copy.fileno()}") as stream:
            yield stream


def _parts(file: ColumnsFile) -> Iterator[str]:
    """The text of a file in parts, its columns with tabs between where spaces are."""
    if file.dialect.separator == SPACE:
        yield from text_lines(file.path, file.dialect)
        return
    with open_text(file.path, file.dialect) as text:
        yield from iter(lambda: text.read(BLOCK), "")


def _refuse_open_quote(file: ColumnsFile, last: str) -> None:
    """A quote that is never closed swallows all rows below it, whose private values would then pass through unseen."""
    if "\n" not in last and "\r" not in last:
        return
    closed, end = '"' + last.replace('"', '""') + '"', ""
    for part in _parts(file):
        end = (end + part)[-len(closed) - BLOCK :]
    if not end.rstrip("\r\n").endswith(closed):
        raise DataError(f"{file.path.as_posix()}: a quote in the last row is opened and never closed")


def _parquet_batches(file: ColumnsFile, columns: Sequence[str] | None, progress: Progress) -> Iterator[Any]:
    rows = max(1, min(BATCH_ROWS, BATCH_CELLS // len(columns or file.schema.names)))
    with pq.ParquetFile(file.path, buffer_size=PAGE_BUFFER) as parquet:
        for batch in parquet.iter_batches(rows, columns=columns):
            batch.validate(full=True)  # the reader believes what a file says of its texts and times
            if batch.num_rows:
                yield batch
            progress.advance(batch.num_rows)

"""Where the tables of two runs differ, row by row.

NumPy's logarithm and exponential may differ in the last bit from one processor to another. So a number agrees with
another that is one unit of the last written digit away.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envs.toml_reader import InputFileError, require_file

# Tables are written with eight significant digits, so one unit of the last is at most 1e-7 of a number; the rest is
# for the rounding of this comparison itself.
LAST_DIGIT = 1.5e-7
# Smaller numbers are what rounding leaves of 0.
NEGLIGIBLE = 1e-12
# Of one table: a hundred times what is usual.
MOST_BYTES = 500_000_000
# What one side has and the other has not.
THERE, MISSING = "there", "missing"
CsvRow = tuple[str, ...]


@dataclass(frozen=True)
class TextRows:
    """A CSV file as text: its header and its rows, as long as the header."""

    columns: CsvRow
    rows: tuple[CsvRow, ...]

    @property
    def n_numbers(self) -> int:
        """How many of its cells are numbers."""
        return sum(_number(cell) is not None for row in self.rows for cell in row)


@dataclass(frozen=True)
class Disagreement:
    """One thing that differs.

    Attributes
    ----------
    file : str
        Where it is.
    row : int
        Counted from 1 below the header of the old table; 0 if only the new one has the row, or if it is about all.
    key : mapping of column to text
        The cells that identify this row.
    column : str
        Of a table; else what of the file it is.
    old, new : str
        As printed.
    """

    file: str
    row: int
    key: dict[str, str]
    column: str
    old: str
    new: str


def read_text(path: Path, most: int) -> str:
    """The text of a file that may be a stranger's; InputFileError if it cannot be read, or has more bytes than that."""
    try:
        require_file(path)
        with path.open("rb") as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise InputFileError(f"{path.as_posix()}: must not be larger than {most:,} bytes")
        return content.decode()
    except OSError as error:
        raise InputFileError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path.as_posix()}: must be UTF-8 text") from None


def csv_rows(path: Path) -> TextRows:
    """Read a CSV file; InputFileError if it cannot be read, or if a row is longer or shorter than its header."""
    text = read_text(path, MOST_BYTES)
    try:
        return csv_text(text)
    except (ValueError, csv.Error) as error:
        raise InputFileError(f"{path.as_posix()}: {error}") from None


def csv_text(text: str) -> TextRows:
    """A CSV file's text; ValueError for a row that is longer or shorter than its header."""
    header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(f"row {number} must have {len(header)} cells, got {len(row)}")
    return TextRows(tuple(header), tuple(map(tuple, rows)))


def same_numbers(old: bytes, new: bytes) -> bool:
    r"""Whether two CSV files have the same rows in the same order, but for the last digits of numbers.

    Examples
    --------
    >>> same_numbers(b"x\n0.12345678\n", b"x\n0.12345679\n"), same_numbers(b"x\n1\n2\n", b"x\n2\n1\n")
    (True, False)
    """
    if old == new:
        return True
    try:
        before, now = csv_text(old.decode()), csv_text(new.decode())
    except (ValueError, csv.Error):
        return False  # no run wrote this
    same_shape = before.columns == now.columns and len(before.rows) == len(now.rows)
    return same_shape and all(map(_same_row, before.rows, now.rows))


def differences(name: str, old: TextRows, new: TextRows) -> Iterator[Disagreement]:
    """Where two tables differ, row by row: a row is compared with that of the same key, wherever it stands.

    Cells agree if their texts do, or if both are numbers that one unit of the last printed digit may separate.

    Examples
    --------
    >>> old, new = (TextRows(("policy", "loss"), rows) for rows in ((("a", "2"), ("b", "1")), (("b", "1"), ("a", "3"))))
    >>> list(differences("t.csv", old, new))
    [Disagreement(file='t.csv', row=1, key={'policy': 'a'}, column='loss', old='2', new='3')]
    """
    if old.columns != new.columns:
        yield Disagreement(name, 0, {}, "columns", ", ".join(old.columns), ", ".join(new.columns))
        return
    keys = key_columns(new)

    def key_of(row: CsvRow) -> tuple[tuple[str, str], ...]:
        return tuple((new.columns[column], row[column]) for column in keys)

    # Rows that agree where they stand need no key, whose own last digit may be another one.
    agree = {number for number, rows in enumerate(zip(old.rows, new.rows, strict=False)) if _same_row(*rows)}
    waiting = defaultdict(list)
    for number, row in enumerate(new.rows):
        if number not in agree:
            waiting[key_of(row)].append(row)
    for number, row in enumerate(old.rows):
        key = key_of(row)
        if number in agree:
            continue
        if not waiting[key]:
            yield Disagreement(name, number + 1, dict(key), "row", THERE, MISSING)
            continue
        for column, before, now in zip(old.columns, row, waiting[key].pop(0), strict=True):
            if not _same_cell(before, now):
                yield Disagreement(name, number + 1, dict(key), column, before, now)
    for key, rows in waiting.items():
        yield from (Disagreement(name, 0, dict(key), "row", MISSING, THERE) for _ in rows)


def key_columns(table: TextRows) -> list[int]:
    """The first columns that identify the rows; columns that add nothing to the ones before are left out.

    Examples
    --------
    >>> key_columns(TextRows(("policy", "title", "epsilon", "loss"), (("a", "A", "1", "3"), ("a", "A", "2", "1"))))
    [2]
    """
    keys: list[int] = []
    n_distinct = 1
    for column in range(len(table.columns)):
        distinct = {tuple(row[key] for key in (*keys, column)) for row in table.rows}
        if len(distinct) > n_distinct:
            keys.append(column)
            n_distinct = len(distinct)
    return keys


def _same_row(one: CsvRow, other: CsvRow) -> bool:
    return one == other or all(map(_same_cell, one, other))


def _same_cell(one: str, other: str) -> bool:
    if one == other:
        return True
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return False
    return math.isclose(left, right, rel_tol=LAST_DIGIT, abs_tol=NEGLIGIBLE)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

"""Where two runs of a study differ: in numbers of their tables, row by row, and in what their manifests say.

NumPy's logarithm and exponential may differ in the last bit from one processor to another. So a number agrees with
another that is one unit of the last written digit away.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.toml_reader import InputFileError

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
        Of a table; of a manifest its key, with dots between levels; else what of the file it is.
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
        if path.exists() and not path.is_file():
            raise InputFileError(f"{path.as_posix()}: is no file of text")
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
        return False  # whatever stands there is not what a run writes
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
    # A row that agrees with the one at its place needs no key, whose own last digit may be another one.
    moved = {
        place for place, row in enumerate(new.rows) if place >= len(old.rows) or not _same_row(old.rows[place], row)
    }
    waiting: dict[CsvRow, list[CsvRow]] = {}
    for place in sorted(moved):
        waiting.setdefault(tuple(new.rows[place][key] for key in keys), []).append(new.rows[place])
    for place, row in enumerate(old.rows):
        if place < len(new.rows) and place not in moved:
            continue
        key = tuple(row[column] for column in keys)
        named = dict(zip((old.columns[column] for column in keys), key, strict=True))
        if not waiting.get(key):
            yield Disagreement(name, place + 1, named, "row", THERE, MISSING)
            continue
        for column, was, now in zip(old.columns, row, waiting[key].pop(0), strict=True):
            if not _same_cell(was, now):
                yield Disagreement(name, place + 1, named, column, was, now)
    for key, rows in waiting.items():
        named = dict(zip((new.columns[column] for column in keys), key, strict=True))
        yield from (Disagreement(name, 0, named, "row", MISSING, THERE) for _ in rows)


def key_columns(table: TextRows) -> list[int]:
    """The first columns that identify the rows; columns that add nothing to the ones before are left out.

    Examples
    --------
    >>> key_columns(TextRows(("policy", "title", "epsilon", "loss"), (("a", "A", "1", "3"), ("a", "A", "2", "1"))))
    [2]
    """
    keys: list[int] = []
    told_apart = 1
    for column in range(len(table.columns)):
        found = len({tuple(row[key] for key in (*keys, column)) for row in table.rows})
        if found > told_apart:
            keys.append(column)
            told_apart = found
    return keys


def _same_row(one: CsvRow, other: CsvRow) -> bool:
    return one == other or all(map(_same_cell, one, other))


def _same_cell(one: str, other: str) -> bool:
    if one == other:
        return True
    left, right = _number(one), _number(other)
    return left is not None and right is not None and _close(left, right)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=LAST_DIGIT, abs_tol=NEGLIGIBLE)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def statements(file: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Disagreement]:
    """Where two manifests differ; numbers agree as those of tables do.

    Examples
    --------
    >>> statements("m.json", {"study": {"name": "ward"}, "epsilon": 2.0}, {"study": {"name": "ward"}, "epsilon": 1.0})
    [Disagreement(file='m.json', row=0, key={}, column='epsilon', old='2.0', new='1.0')]
    """
    return [Disagreement(file, 0, {}, *found) for found in _unequal("", old, new)]


def _unequal(key: str, old: Any, new: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from _unequal(f"{key}.{name}" if key else name, old.get(name, MISSING), new.get(name, MISSING))
    elif not _equal(old, new):
        yield key, str(old), str(new)


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_equal, old, new))
    if isinstance(old, float) and isinstance(new, float):
        return _close(old, new)
    return bool(type(old) is type(new) and old == new)

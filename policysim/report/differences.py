"""Where two runs of a study differ: cells of their tables, what their manifests say, and whether files agree.

NumPy's logarithm and exponential may differ in the last bit from one processor to another. So a number agrees with
another that is one unit of the last written digit away, and a file with one that says the same but for such numbers.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from envs.toml_reader import InputFileError

# Tables are written with eight significant digits, so one unit of the last is at most 1e-7 of a number; the rest is
# for the rounding of this comparison itself.
LAST_DIGIT = 1.5e-7
# Smaller numbers are what rounding leaves of 0.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class TextRows:
    """A CSV file as text: its header and its rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def n_numbers(self) -> int:
        """How many of its cells are numbers."""
        return sum(_number(cell) is not None for row in self.rows for cell in row)


@dataclass(frozen=True)
class CellDifference:
    """One cell that differs.

    Attributes
    ----------
    file, column : str
        Where it is.
    row : int
        Counted from 1 below the header; 0 if it is about the whole file.
    key : mapping of column to text
        The old cells that tell this row from all others.
    old, new : str
        As printed.
    """

    file: str
    row: int
    key: dict[str, str]
    column: str
    old: str
    new: str


def read_table(path: Path) -> TextRows:
    """Read a CSV file; InputFileError if it cannot be read, or if a row is longer or shorter than its header."""
    try:
        table = as_written(path.read_bytes())
    except OSError as error:
        raise InputFileError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path.as_posix()}: must be UTF-8 text") from None
    for number, row in enumerate(table.rows, 1):
        if len(row) != len(table.columns):
            raise InputFileError(
                f"{path.as_posix()}: row {number} must have {len(table.columns)} cells, got {len(row)}"
            )
    return table


def as_written(content: bytes) -> TextRows:
    """A CSV file's content."""
    header, *rows = list(csv.reader(io.StringIO(content.decode(), newline=""))) or [[]]
    return TextRows(tuple(header), tuple(tuple(row) for row in rows))


def differences(name: str, old: TextRows, new: TextRows) -> list[CellDifference]:
    """Where two tables differ: in columns or the number of rows, or else cell by cell.

    Cells agree if their texts do, or if both are numbers that one unit of the last printed digit may separate.

    Examples
    --------
    >>> old, new = (TextRows(("x",), (("0.123456789012",), (cell,))) for cell in ("2", "3"))
    >>> differences("t.csv", old, new)
    [CellDifference(file='t.csv', row=2, key={'x': '2'}, column='x', old='2', new='3')]
    """
    if old.columns != new.columns:
        return [CellDifference(name, 0, {}, "columns", ", ".join(old.columns), ", ".join(new.columns))]
    if len(old.rows) != len(new.rows):
        return [CellDifference(name, 0, {}, "rows", str(len(old.rows)), str(len(new.rows)))]
    if old == new:
        return []
    keys = key_columns(old)
    return [
        CellDifference(name, place + 1, {old.columns[i]: old.rows[place][i] for i in keys}, column, was, now)
        for place, column, was, now in _unequal_cells(old, new)
    ]


def key_columns(table: TextRows) -> list[int]:
    """The first columns that tell the rows apart; those that tell nothing beyond the ones before are left out.

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


def _unequal_cells(old: TextRows, new: TextRows) -> Iterator[tuple[int, str, str, str]]:
    for place, (before, after) in enumerate(zip(old.rows, new.rows, strict=True)):
        if before == after:
            continue
        for column, was, now in zip(old.columns, before, after, strict=True):
            if was != now and not _equal_numbers(was, now):
                yield place, column, was, now


def _equal_numbers(one: str, other: str) -> bool:
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return False
    return math.isclose(left, right, rel_tol=LAST_DIGIT, abs_tol=NEGLIGIBLE)


def agree(name: str, old: bytes, new: bytes) -> bool:
    """Whether two versions of a file say the same, but for what another processor's rounding may change.

    In a table, cells as in `differences`. In text (a page, an SVG, JSON), numbers of six significant digits and more
    may be one unit of the last digit apart, and all else is the same: what is written with fewer digits does not change
    by rounding. In a picture, no pixel may differ by more than one of 255 levels.

    Examples
    --------
    >>> agree("page.html", b"x=0.123456", b"x=0.123457"), agree("page.html", b"x=0.12", b"x=0.13")
    (True, False)
    """
    if old == new:
        return True
    try:
        if name.endswith(".csv"):
            return not differences(name, as_written(old), as_written(new))
        if name.endswith(".png"):
            return _same_picture(old, new)
        return _same_text(old.decode(), new.decode())
    except (ValueError, SyntaxError, OSError):  # the last two from pictures
        return False  # whatever stands there is not what a run writes


_DECIMAL = re.compile(r"(\d+\.\d+(?:e[-+]?\d+)?)")
LEAST_DIGITS = 6


def _same_text(old: str, new: str) -> bool:
    # With a group in the pattern, every second part is a number.
    parts = [_DECIMAL.split(text) for text in (old, new)]
    if len(parts[0]) != len(parts[1]):
        return False
    places = enumerate(zip(*parts, strict=True))
    return all(was == now or (place % 2 == 1 and _same_decimal(was, now)) for place, (was, now) in places)


def _same_decimal(old: str, new: str) -> bool:
    written = [Decimal(text) for text in (old, new)]
    if max(len(number.as_tuple().digits) for number in written) < LEAST_DIGITS:
        return False
    unit = min(Decimal(1).scaleb(int(number.as_tuple().exponent)) for number in written)
    return abs(written[0] - written[1]) <= unit


def _same_picture(old: bytes, new: bytes) -> bool:
    # matplotlib is the slowest import of all, and mostly all bytes are the same.
    from matplotlib.image import imread  # noqa: PLC0415

    one, other = (np.asarray(imread(io.BytesIO(content), format="png")) for content in (old, new))
    return one.shape == other.shape and bool(np.abs(one - other).max() < 1.5 / 255)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# What is compared elsewhere: the libraries and the scenario's file as inputs, the files one by one; the command is run.
APART = ("versions", "scenario_sha256", "results", "command")
MISSING = "nothing"


@dataclass(frozen=True)
class Statement:
    """One thing that a manifest says and the run does not: `key` has dots between levels."""

    key: str
    old: str
    new: str


def statements(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Statement]:
    """Where two manifests differ, in all but `APART`; numbers agree as those of tables do.

    Examples
    --------
    >>> statements({"study": {"name": "ward"}, "epsilon": 2.0}, {"study": {"name": "ward"}, "epsilon": 1.0})
    [Statement(key='epsilon', old='2.0', new='1.0')]
    """
    kept = [{name: value for name, value in document.items() if name not in APART} for document in (old, new)]
    return list(_unequal("", *kept))


def _unequal(key: str, old: Any, new: Any) -> Iterator[Statement]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from _unequal(f"{key}.{name}" if key else name, old.get(name, MISSING), new.get(name, MISSING))
    elif not _equal(old, new):
        yield Statement(key, str(old), str(new))


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_equal, old, new))
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=LAST_DIGIT, abs_tol=NEGLIGIBLE)
    return bool(type(old) is type(new) and old == new)

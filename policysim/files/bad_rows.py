"""All bad rows of a log, listed: the first twenty in order, then how many more.

When two cells hold the same value, whatever kind of file they came from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from envs.records import Level
from envs.toml_reader import shown as quoted

SHOWN = 20


class LogError(ValueError):
    """A log that cannot be used; str() is one line for each mistake."""


class Placed(Protocol):
    """A table that can say where a row is."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row as messages name it."""


@dataclass(frozen=True, eq=False)
class Mistake:
    """One kind of mistake: the rows in which it occurs, rising, and what to say about each."""

    table: Placed
    rows: NDArray[np.intp]
    column: str
    say: Callable[[int], str]


@dataclass
class BadRows:
    """The mistakes found so far, of one or more tables."""

    found: list[Mistake] = field(default_factory=list)

    def add(self, table: Placed, bad: NDArray[np.bool_], column: str, say: Callable[[int], str]) -> None:
        """Note the rows in which a column is wrong; `say` puts a row's mistake in words."""
        rows = np.flatnonzero(bad)
        if rows.size:
            self.found.append(Mistake(table, rows, column, say))

    def add_values(self, table: Placed, bad: NDArray[np.bool_], column: str, values: Any, must: str) -> None:
        """Note the rows in which a value is not what it must be; `values` is a pandas Series."""
        self.add(table, bad, column, lambda row: f"{must}, {_got(values.iloc[row])}")

    def raise_if_any(self) -> None:
        """Raise LogError with all of them, in the order of their tables and rows."""
        if not self.found:
            return
        tables = list({id(mistake.table): mistake.table for mistake in self.found}.values())
        firsts = [
            (tables.index(mistake.table), row, kind)
            for kind, mistake in enumerate(self.found)
            for row in mistake.rows[:SHOWN].tolist()
        ]
        listed = sorted(firsts)[:SHOWN]
        places = {
            (number, row): place
            for number, table in enumerate(tables)
            for row, place in _placed(table, sorted({row for other, row, _ in listed if other == number}))
        }
        lines = [
            f"{places[number, row]}: {one_line(f'{self.found[kind].column}: {self.found[kind].say(row)}')}"
            for number, row, kind in listed
        ]
        more = sum(mistake.rows.size for mistake in self.found) - len(lines)
        raise LogError("\n".join([*lines, *([f"... and {more:,} more"] if more else [])]))


def _placed(table: Placed, rows: list[int]) -> list[tuple[int, str]]:
    return list(zip(rows, table.places(rows), strict=True)) if rows else []


def one_line(text: str) -> str:
    """Text in which what cannot be printed is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _got(value: Any) -> str:
    """A cell as messages show it."""
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        missing = plain is None or level_key(plain) == MISSING
    except TypeError:  # of pandas' own NA
        missing = True
    return "is missing" if missing else f"got {quoted(plain)}"


Key: TypeAlias = float | str

# What a file may write where it has no value; compared in lower case.
MISSING_WORDS = ("", "na", "n/a", "nan", "null", "<na>", "#n/a", ".")
MISSING: Key = ""

# float() would also read inf, nan, 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = {"true": 1.0, "false": 0.0, **dict.fromkeys(MISSING_WORDS, MISSING)}
# From here on not all whole numbers are floats.
_LARGEST_WHOLE = 2**53


def level_key(value: object) -> Key:
    """What a value is compared by: a number for numbers and truth values, also as text; else the text without margins.

    Examples
    --------
    >>> level_key(1) == level_key("1.0") == level_key(True) == level_key("TRUE")
    True
    >>> level_key("north "), level_key("NA")
    ('north', '')
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    word = text.lower()  # of a float NaN, too
    if word in _WORDS:
        return _WORDS[word]
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


def level_of(key: Key) -> Level:
    """A key as a level: whole numbers are int, other numbers text.

    Examples
    --------
    >>> level_of(1.0), level_of(0.5), level_of("north")
    (1, '0.5', 'north')
    """
    if isinstance(key, str):
        return key
    return int(key) if key.is_integer() and abs(key) < _LARGEST_WHOLE else repr(key)


def sorted_keys(keys: set[Key]) -> list[Key]:
    """Numbers in order, then texts in order."""
    return sorted(keys, key=lambda key: (isinstance(key, str), key))

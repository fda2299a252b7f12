"""Bad data: the one error for it, and all bad rows of a file, listed: the first twenty in order, then how many more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from envs.toml_reader import one_line
from envs.toml_reader import shown as quoted

SHOWN = 20
GONE = "is missing"
# Of a column whose cells are nearly all wrong, more than are shown, one line says enough.
NEARLY_ALL = 0.9


class DataError(ValueError):
    """Data that cannot be used; str() is a line about the file, or `place: column: message` for each bad row."""


def are_nearly_all(bad: NDArray[np.bool_]) -> bool:
    """Whether nearly all rows of a table are bad, and more than are listed."""
    return bool(bad.sum() > SHOWN and bad.mean() >= NEARLY_ALL)


def first_line(error: BaseException) -> str:
    """What an error of a library says, in one line."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


class PlacedRows(Protocol):
    """A table that can say where a row is."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row as messages name it."""


@dataclass
class BadRows:
    """The mistakes found so far: the first, and how many there are; values, if any may `show`."""

    tables: list[PlacedRows] = field(default_factory=list)
    first: list[tuple[int, int, int, str]] = field(default_factory=list)  # table, row, kind of mistake, what it is
    count: int = 0
    kinds: int = 0
    show: bool = True

    def add(
        self, table: PlacedRows, bad: NDArray[np.bool_], column: str, say: Callable[[int], str], *, before: int = 0
    ) -> None:
        """Note the rows in which a column is wrong; `say` puts a row's mistake in words.

        Where a table is read in parts, each has the number of rows `before` it.
        """
        rows = np.flatnonzero(bad)
        if not rows.size:
            return
        if not any(known is table for known in self.tables):
            self.tables.append(table)
        number = next(place for place, known in enumerate(self.tables) if known is table)
        self.count += rows.size
        self.kinds += 1
        title = f"{column}: " if column else ""
        found = [(number, before + row, self.kinds, one_line(f"{title}{say(row)}")) for row in rows[:SHOWN].tolist()]
        self.first = sorted([*self.first, *found])[:SHOWN]

    def add_values(
        self,
        table: PlacedRows,
        bad: NDArray[np.bool_],
        column: str,
        values: Any,
        must: str,
        *,
        show: bool = True,
        hint: str = "",
        once: bool = False,
    ) -> None:
        """Note the rows in which a value is not what it must be; `values[row]` is a row's, and may be too private.

        `hint` says what to type, if the value is right. Only the first row is noted, and how many there are, where one
        line is enough: if `once`, or for nearly all rows.
        """
        if once or are_nearly_all(bad):
            n_rows = np.count_nonzero(bad)
            hint = f" (so are {n_rows:,} rows){hint}" if n_rows > 1 else hint
            bad = bad & (np.arange(len(bad)) == np.argmax(bad))

        def say(row: int) -> str:
            said = got(values[row])
            return (f"{must}, {said}" if (show and self.show) or said == GONE else must) + hint

        self.add(table, bad, column, say)

    def raise_if_any(self) -> None:
        """Raise DataError with all of them, in the order of their tables and rows."""
        raise_bad_parts([self.told()])

    def told(self) -> tuple[int, list[str]]:
        """How many there are, and a line for each of the first, for `raise_bad_parts`."""
        lines = []
        for number, table in enumerate(self.tables):
            own = [(row, text) for other, row, _, text in self.first if other == number]
            places = table.places([row for row, _ in own])
            lines += [f"{place}: {text}" for place, (_, text) in zip(places, own, strict=True)]
        return self.count, lines


def raise_bad_parts(told: Sequence[tuple[int, Sequence[str]]]) -> None:
    """DataError with the first bad rows of all parts of a table, in this order, if there are any."""
    lines = [line for _, first in told for line in first][:SHOWN]
    if lines:
        more = sum(count for count, _ in told) - len(lines)
        raise DataError("\n".join([*lines, *([f"... and {more:,} more"] if more else [])]))


def got(value: Any) -> str:
    """A cell as messages show it; text that only means a missing value is shown."""
    plain = value.item() if isinstance(value, np.generic) else value
    text = str(plain).strip()
    missing = not text or (not isinstance(plain, str) and text.lower() in ("none", "nan", "nat", "<na>"))
    return GONE if missing else f"got {quoted(plain)}"

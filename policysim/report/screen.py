"""The words of a report, and how a terminal shows them: at most 100 columns wide.

A kind of report makes a `Screen` of its findings: plain texts, in the order in which people read them. The same texts
stand on the page (`policysim.report.page`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from policysim.words import WIDEST, in_lines, line_width, wrapped

# The texts of labelled lines begin here, and the rows below such a line here.
LABEL_WIDTH, ROW_INDENT = 21, 23
# A title of a row has at least so much room; heads of columns take more lines until it has so much.
LEAST_ROOM, ENOUGH_ROOM, MOST_LINES = 15, 36, 4


class Option(NamedTuple):
    """An option as it is introduced: its letter, what patients get, and what it hides."""

    letter: str
    title: str
    hides: str


class Line(NamedTuple):
    """A labelled line, and rows that go with it: each a text and its value."""

    label: str
    text: str
    rows: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> str:
        """The text and the rows in one."""
        return " ".join([self.text, "; ".join(f"{first}: {second}" for first, second in self.rows)]).strip()


class Grid(NamedTuple):
    """A table as texts.

    Attributes
    ----------
    head : tuple of str
        The titles of the columns, the first that of the rows.
    rows : tuple of tuple of str
        Each as long as the head.
    title : str
        Of its section, where it has one.
    note : str
        What stands below it.
    name : str
        The file of its numbers, without ".csv"; "" for none.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    note: str = ""
    name: str = ""

    @classmethod
    def of_columns(cls, columns: Mapping[str, Iterable[str]], title: str = "", note: str = "", name: str = "") -> Grid:
        """A table of columns by their titles; that of the rows first."""
        return cls(tuple(columns), tuple(zip(*columns.values(), strict=True)), title, note, name)


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What a report says.

    Attributes
    ----------
    title : str
        The study's title.
    advice : str
        One sentence before all others: what to choose, and on what it depends.
    about : tuple of str
        What kind of model or data this is, what is secret, who observes.
    options : tuple of Option
        The options, with their letters.
    lines : tuple of Line
        The answer.
    tables : tuple of Grid
        The numbers of the options, and how they change over ε.
    notes : tuple of str
        What ends the screen.
    behind : tuple of Grid
        The tables that `--full` adds, and that a page shows below its figures.
    warnings : tuple of str
        What comes before everything.
    """

    title: str
    advice: str = ""
    about: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    lines: tuple[Line, ...] = ()
    tables: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()
    behind: tuple[Grid, ...] = ()
    warnings: tuple[str, ...] = ()

    def text(self, *, full: bool = False, brief: bool = False) -> str:
        """The screen as printed: the title and the labelled lines alone if it is brief, all tables if it is full."""
        first = [*(f"Warning: {warning}" for warning in self.warnings), self.title, self.advice, *self.about]
        blocks = [[*wrapped(*first), *introduced(self.options)], list(labelled(self.lines))]
        if not brief:
            blocks.append([*(line for table in self.tables for line in aligned(table)), *wrapped(*self.notes)])
        if full:
            blocks += [[*wrapped(table.title), *aligned(table), *wrapped(table.note)] for table in self.behind]
        return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def introduced(options: Sequence[Option]) -> Iterator[str]:
    """The options in two columns: letter and title, and what each hides."""
    room = min(max((len(option.title) for option in options), default=0), line_width() // 3)
    for option in options:
        titles = in_lines(option.title, room)
        hides = in_lines(option.hides, line_width() - room - 5)
        for place, (title, text) in enumerate(zip_longest(titles, hides, fillvalue="")):
            yield f"{option.letter if place == 0 else '':<3}{title:<{room}}  {text}".rstrip()


def labelled(lines: Sequence[Line]) -> Iterator[str]:
    """Labelled lines, each with its rows in two columns."""
    for line in lines:
        yield from wrapped(line.text, indent=f"{line.label:<{LABEL_WIDTH}}", later=" " * LABEL_WIDTH)
        room = max((len(first) for first, _ in line.rows), default=0)
        for first, second in line.rows:
            start = f"{'':<{ROW_INDENT}}{first:<{room}}  "
            yield from wrapped(second, indent=start, later=" " * len(start))


def aligned(table: Grid) -> list[str]:
    """A table: the titles of rows to the left, the other columns to the right, at most as wide as a screen.

    Heads and titles of rows go on in further lines where there is no room.
    """
    cells = [max((len(row[place]) for row in table.rows), default=0) for place in range(1, len(table.head))]
    longest = max(map(len, (table.head[0], *(row[0] for row in table.rows))))
    for depth in range(1, MOST_LINES + 1):
        heads = [_in_lines(text, depth) for text in table.head[1:]]
        widths = [max(width, *map(len, lines)) for width, lines in zip(cells, heads, strict=True)]
        room = WIDEST - sum(widths) - 2 * len(widths)
        if room >= min(longest, ENOUGH_ROOM):
            break
    gap = 2 if room >= LEAST_ROOM else 1
    room = min(longest, max(LEAST_ROOM, WIDEST - sum(widths) - gap * len(widths)))
    first = in_lines(table.head[0], room) or [""]
    columns = [first, *heads]
    lines = max(map(len, columns))
    above = zip(*([*[""] * (lines - len(column)), *column] for column in columns), strict=True)
    rows = [*(above if any(table.head) else ()), *table.rows]
    return [line for row in rows for line in _row(row, room, widths, " " * gap)]


def _row(row: Sequence[str], room: int, widths: Sequence[int], gap: str) -> Iterator[str]:
    *above, title = in_lines(row[0], room, subsequent_indent="  ") or [""]
    yield from above
    cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True))
    yield gap.join([f"{title:<{room}}", *cells]).rstrip()


def _in_lines(text: str, depth: int) -> list[str]:
    """A title in at most so many lines, as narrow as it can be."""
    # A space that does not break keeps a title such as "A − C" together.
    width = max(map(len, text.split(" ")), default=0)
    while len(lines := in_lines(text, max(width, 1), break_long_words=False)) > depth:
        width += 1
    return lines or [""]

"""Reading a table of action probabilities that was made elsewhere: records by row, features and actions by column."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import SUM_TOLERANCE, FloatArray, IntArray

# The name of an action's column, unless the columns are named by the caller.
PREFIX = "p_"

# A row whose probabilities are this close to 1 in sum was rounded when it was written; further away it is wrong.
ROUNDED_SUM = 1e-6

MISTAKES_SHOWN = 20


class DataError(ValueError):
    """A data file that cannot be used; str() is one `file:row: column: message` line per bad row."""


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """The rows of a file.

    Attributes
    ----------
    source : str
        The file's name, without its folder.
    actions : tuple of str
        In the order of their columns.
    features : tuple of str
        The other columns.
    probabilities : array, (n_rows, n_actions)
        p(a|x); rows sum to 1 within 1e-9.
    codes : array, (n_rows, n_features)
        Positions in `levels`.
    levels : tuple of tuple of str
        The values of each feature, as they are written, in the order of their first appearance.
    lines : array, (n_rows,)
        The line of the file on which each row begins; the header is line 1.
    n_rescaled : int
        Rows whose sum was off by more than 1e-9, but not by more than 1e-6, and that were divided by it.
    """

    source: str
    actions: tuple[str, ...]
    features: tuple[str, ...]
    probabilities: FloatArray
    codes: IntArray
    levels: tuple[tuple[str, ...], ...]
    lines: IntArray
    n_rescaled: int

    def describe(self, row: int) -> str:
        """One row in words: its line and the value of each feature."""
        values = [
            f"{name} {levels[code] or '(empty)'}"
            for name, levels, code in zip(self.features, self.levels, self.codes[row], strict=True)
        ]
        return f"line {self.lines[row]}: {', '.join(values)}" if values else f"line {self.lines[row]}"


@dataclass(frozen=True)
class Layout:
    """Which column of the file is what: positions, and the names of actions as they are shown."""

    header: tuple[str, ...]
    actions: tuple[str, ...]
    action_columns: tuple[int, ...]
    feature_columns: tuple[int, ...]


@dataclass
class Rows:
    """The rows read so far, column values in one flat array each, and the mistakes."""

    layout: Layout
    probabilities: array[float] = field(default_factory=lambda: array("d"))
    codes: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    levels: list[dict[str, int]] = field(default_factory=list)
    n_rescaled: int = 0
    n_mistakes: int = 0
    mistakes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make an empty set of levels for each feature."""
        self.levels = [{} for _ in self.layout.feature_columns]

    def add(self, line: int, row: list[str]) -> None:
        """Keep a row, or note what is wrong with it."""
        try:
            probabilities = self._probabilities(row)
        except DataError as error:
            self.n_mistakes += 1
            if len(self.mistakes) < MISTAKES_SHOWN:
                self.mistakes.append(f"{line}: {error}")
            return
        self.probabilities.extend(probabilities)
        self.codes.extend(
            known.setdefault(row[column], len(known))
            for known, column in zip(self.levels, self.layout.feature_columns, strict=True)
        )
        self.lines.append(line)

    def _probabilities(self, row: list[str]) -> list[float]:
        header = self.layout.header
        if len(row) != len(header):
            raise DataError(f"must have {len(header)} columns as the header has, got {len(row)}")
        values = [_probability(header[column], row[column]) for column in self.layout.action_columns]
        total = math.fsum(values)
        if abs(total - 1) <= SUM_TOLERANCE:
            return values
        if abs(total - 1) > ROUNDED_SUM:
            raise DataError(f"{_few(self.layout)}: must sum to 1 within {ROUNDED_SUM:g}, got a sum of {total:.9g}")
        self.n_rescaled += 1
        return [value / total for value in values]


def read_probability_table(path: Path, actions: Sequence[str] | None = None) -> ProbabilityTable:
    """Read and check a CSV file with a row per record, a column per feature and a column per action.

    Parameters
    ----------
    path : Path
        UTF-8 text with commas; the first line names the columns. Blank lines are skipped.
    actions : sequence of str, optional
        The columns that hold probabilities; by default those whose names begin with `p_`. All others are features,
        whose values are compared as they are written (1 and 1.0 differ).

    Returns
    -------
    ProbabilityTable

    Raises
    ------
    DataError
        One line for each of the first 20 bad rows, and how many there are; or one line about the file as a whole.
    """
    name = path.as_posix()
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return _read(numbered_rows(stream, name), path, actions)
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{name}: must be CSV in UTF-8 text") from None


def _read(rows: Iterator[tuple[int, list[str]]], path: Path, actions: Sequence[str] | None) -> ProbabilityTable:
    name = path.as_posix()
    header_line, header = next(rows, (1, None))
    if header is None:
        raise DataError(f"{name}: is empty: the first line must name the columns")
    try:
        layout = _layout(tuple(title.strip() for title in header), actions)
    except DataError as error:
        raise DataError(f"{name}:{header_line}: {error}") from None
    found = Rows(layout)
    for line, row in rows:
        found.add(line, row)
    if found.n_mistakes:
        lines = [f"{name}:{mistake}" for mistake in found.mistakes]
        if found.n_mistakes > len(lines):
            lines.append(f"{name}: {found.n_mistakes} bad rows in all, the first {len(lines)} are listed")
        raise DataError("\n".join(lines))
    if not found.lines:
        raise DataError(f"{name}: has no rows below its header")
    return _finished(found, path.name)


def numbered_rows(stream: Iterator[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the line on which it begins."""
    reader = csv.reader(stream, strict=True, skipinitialspace=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{name}:{line}: not valid CSV: {error}") from None
        if row:
            yield line, row


def _layout(header: tuple[str, ...], actions: Sequence[str] | None) -> Layout:
    for position, title in enumerate(header):
        if not title:
            raise DataError(f"column {position + 1} has no name; if it only numbers the rows, leave it out")
        if title in header[:position]:
            raise DataError(f"{title}: two columns have this name")
    chosen = [title for title in header if title.startswith(PREFIX)] if actions is None else list(actions)
    for title in chosen:
        if title not in header:
            raise DataError(unknown("column", title, header))
        if chosen.count(title) > 1:
            raise DataError(f"{title}: named twice as an action")
    if not chosen:
        raise DataError(f"no column is an action: name them {PREFIX}<action>, or list them with --actions")
    if len(chosen) == 1:
        raise DataError(f"{chosen[0]}: is the only action; a choice needs at least two")
    columns = tuple(header.index(title) for title in chosen)
    return Layout(
        header,
        tuple(title.removeprefix(PREFIX) if actions is None else title for title in chosen),
        columns,
        tuple(position for position in range(len(header)) if position not in columns),
    )


def _probability(column: str, text: str) -> float:
    """The number in one cell; DataError if it is no probability."""
    if not text.strip():
        raise DataError(f"{column}: is missing")
    try:
        # float() would read 0_5 as 5.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise DataError(f"{column}: must be a number, got {text!r}")
    if not 0 <= value <= 1 + ROUNDED_SUM:
        raise DataError(f"{column}: must be a probability in [0, 1], got {text.strip()}")
    return value


def _few(layout: Layout) -> str:
    """The action columns, or the first and the last of many."""
    titles = [layout.header[column] for column in layout.action_columns]
    return ", ".join(titles) if len(titles) <= 4 else f"{titles[0]} ... {titles[-1]}"


def _finished(found: Rows, source: str) -> ProbabilityTable:
    layout, n_rows = found.layout, len(found.lines)
    return ProbabilityTable(
        source=source,
        actions=layout.actions,
        features=tuple(layout.header[column] for column in layout.feature_columns),
        probabilities=np.asfortranarray(np.array(found.probabilities).reshape(n_rows, len(layout.actions))),
        codes=np.array(found.codes, dtype=np.intp).reshape(n_rows, len(layout.feature_columns)),
        levels=tuple(tuple(known) for known in found.levels),
        lines=np.array(found.lines, dtype=np.intp),
        n_rescaled=found.n_rescaled,
    )

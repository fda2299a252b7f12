"""Reading how many people there are per candidate: from a row per person, or from a row per candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path

from envs.toml_reader import unknown
from policysim.files.probability_table import MISTAKES_SHOWN, DataError, numbered_rows
from policysim.question.progress import SILENT, Progress

# Counts up to here are exact in floating point.
MOST_PEOPLE = 2**53
# Progress is told once in so many rows.
STRIDE = 10_000


@dataclass(frozen=True)
class Counts:
    """How many people there are per candidate.

    Attributes
    ----------
    source : str
        The file's name, without its folder.
    column : str
        The column that holds the candidates.
    candidates : tuple of str
        As declared, else sorted: never in the order of the rows, which tells who is there.
    people : dict of str to tuple of int
        For each group, as declared, else sorted, the number of people per candidate. One group named "" where there
        are none.
    from_private_rows : bool
        Whether the candidates were taken from people's rows, so that a candidate may reveal a person.
    groups_from_private_rows : bool
        Whether the names of the groups were.
    """

    source: str
    column: str
    candidates: tuple[str, ...]
    people: dict[str, tuple[int, ...]]
    from_private_rows: bool
    groups_from_private_rows: bool = False


@dataclass(frozen=True)
class Layout:
    """Which column of the file is what, by position; -1 for none."""

    header: tuple[str, ...]
    candidate: int
    score: int
    group: int


@dataclass
class Tally:
    """The rows counted so far, and the mistakes."""

    layout: Layout
    allowed: frozenset[str] | None
    groups: frozenset[str] | None
    people: dict[str, dict[str, int]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)
    n_mistakes: int = 0

    def add(self, line: int, row: list[str]) -> None:
        """Count a row, or note what is wrong with it."""
        try:
            self._count(line, row)
        except DataError as error:
            self.n_mistakes += 1
            if len(self.mistakes) < MISTAKES_SHOWN:
                self.mistakes.append(f"{line}: {error}")

    def _count(self, line: int, row: list[str]) -> None:
        layout = self.layout
        if len(row) != len(layout.header):
            raise DataError(f"must have {len(layout.header)} columns as the header has, got {len(row)}")
        group = "" if layout.group < 0 else self._text(row, layout.group)
        candidate = self._text(row, layout.candidate)
        self._require_declared(layout.candidate, candidate, self.allowed, "candidates")
        if layout.group >= 0:
            self._require_declared(layout.group, group, self.groups, "groups")
        counts = self.people.setdefault(group, {})
        if layout.score < 0:
            counts[candidate] = counts.get(candidate, 0) + 1
            return
        first = self.lines.setdefault((group, candidate), line)
        if first != line:
            raise DataError(f"{layout.header[layout.candidate]}: {candidate!r} is there already, in line {first}")
        counts[candidate] = _whole(layout.header[layout.score], row[layout.score])

    def _require_declared(self, column: int, name: str, declared: frozenset[str] | None, what: str) -> None:
        if declared is not None and name not in declared:
            near = get_close_matches(name, declared, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{self.layout.header[column]}: {name!r} is not among the {what}{hint}")

    def _text(self, row: list[str], column: int) -> str:
        text = row[column].strip()
        if not text:
            raise DataError(f"{self.layout.header[column]}: is missing")
        return text


def read_counts(
    path: Path,
    *,
    column: str | None = None,
    score: str | None = None,
    by: str | None = None,
    candidates: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    progress: Progress = SILENT,
) -> Counts:
    """Read and check a CSV file of people or of counts.

    Parameters
    ----------
    path : Path
        UTF-8 text with commas; the first line names the columns. Blank lines are skipped.
    column : str, optional
        The column that holds the candidates; by default the only one that is not `score` or `by`.
    score : str, optional
        The column that holds the number of people of each candidate. By default a row is a person.
    by : str, optional
        The column that holds groups: each is counted on its own.
    candidates : sequence of str, optional
        All candidates; any other value is refused, one that is absent has 0 people.
    groups : sequence of str, optional
        All groups, likewise.
    progress : Progress, optional
        Told of the bytes of the file.

    Returns
    -------
    Counts

    Raises
    ------
    DataError
        One line for each of the first 20 bad rows, and how many there are; or one line about the file as a whole.
    """
    name = path.as_posix()
    try:
        with path.open("rb") as file, TextIOWrapper(file, encoding="utf-8-sig", newline="") as stream:
            rows = numbered_rows(stream, name)
            layout = _layout(rows, name, column, score, by)
            allowed, named = (None if names is None else frozenset(names) for names in (candidates, groups))
            tally = Tally(layout, allowed, named)
            size, told = path.stat().st_size, 0
            progress.expect(size)
            for count, (line, row) in enumerate(rows, start=1):
                tally.add(line, row)
                if count % STRIDE == 0:
                    place = file.tell()
                    progress.advance(place - told)
                    told = place
            progress.advance(size - told)
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{name}: must be CSV in UTF-8 text") from None
    if tally.n_mistakes:
        lines = [f"{name}:{mistake}" for mistake in tally.mistakes]
        if tally.n_mistakes > len(lines):
            lines.append(f"{name}: {tally.n_mistakes} bad rows in all, the first {len(lines)} are listed")
        raise DataError("\n".join(lines))
    if not tally.people and (candidates is None or (by is not None and groups is None)):
        raise DataError(f"{name}: has no rows below its header")
    return _finished(tally, path.name, candidates, groups)


def _layout(
    rows: Iterator[tuple[int, list[str]]], name: str, column: str | None, score: str | None, by: str | None
) -> Layout:
    line, first = next(rows, (1, None))
    if first is None:
        raise DataError(f"{name}: is empty: the first line must name the columns")
    header = tuple(title.strip() for title in first)
    for title in (column, score, by):
        if title is not None and header.count(title) != 1:
            reason = f"{title}: two columns have this name" if title in header else unknown("column", title, header)
            raise DataError(f"{name}:{line}: {reason}")
    if column is None:
        others = [title for title in header if title not in (score, by)]
        if len(others) != 1:
            raise DataError(
                f"{name}:{line}: name the column that holds the candidates with --column; columns: {', '.join(header)}"
            )
        column = others[0]
    places = (-1 if title is None else header.index(title) for title in (column, score, by))
    return Layout(header, *places)


def _whole(column: str, text: str) -> int:
    """A number of people; 28 and 28.0 are the same."""
    digits = text.strip().removesuffix(".0")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 16 or int(digits) > MOST_PEOPLE:
        raise DataError(f"{column}: must be a whole number of people >= 0, got {text.strip()!r}")
    return int(digits)


def _finished(tally: Tally, source: str, candidates: Sequence[str] | None, groups: Sequence[str] | None) -> Counts:
    layout = tally.layout
    people_rows = layout.score < 0
    found = {candidate for counts in tally.people.values() for candidate in counts}
    names = tuple(sorted(found) if candidates is None else candidates)
    named = groups if groups is not None else sorted(tally.people) or [""]
    people = {group: tally.people.get(group, {}) for group in named}
    return Counts(
        source=source,
        column=layout.header[layout.candidate],
        candidates=names,
        people={group: tuple(counts.get(name, 0) for name in names) for group, counts in people.items()},
        from_private_rows=people_rows and candidates is None,
        groups_from_private_rows=people_rows and layout.group >= 0 and groups is None,
    )

"""Reading how many people there are per candidate: from a row per person, or from a row per candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from policies.arrays import BoolArray, IntArray
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, as_written, read_table
from policysim.question.protocol import SILENT, Progress

# Counts up to here are exact in floating point.
MOST_PEOPLE = 2**53


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


@dataclass(frozen=True, eq=False)
class Names:
    """A column of names: the distinct ones, and the position of each row's among them, (n_rows,)."""

    column: str
    codes: IntArray
    found: list[str]

    def check(self, table: DataTable, declared: Sequence[str] | None, what: str, bad: BadRows) -> None:
        """Note the rows in which the name is missing, or none of those that are declared."""
        absent = np.array([not name for name in self.found], dtype=np.bool_)[self.codes]
        bad.add(table, absent, self.column, lambda _: "is missing")
        if declared is None:
            return
        allowed = frozenset(declared)
        others = np.array([bool(name) and name not in allowed for name in self.found], dtype=np.bool_)[self.codes]

        def say(row: int) -> str:
            name = self.found[self.codes[row]]
            near = get_close_matches(name, declared, n=1)
            return f"{name!r} is not among the {what}" + (f"; did you mean {near[0]!r}?" if near else "")

        bad.add(table, others, self.column, say)


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
        Ends in .csv or .parquet. The first line of CSV names the columns; blank lines are skipped.
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
        Told of what is read.

    Returns
    -------
    Counts

    Raises
    ------
    DataError
        A line for each of the first 20 bad values, and how many more there are; or one line about the file as a whole.
    """
    table = read_table(path, may_be_empty=True, progress=progress).with_bare_names()
    column = _candidate_column(table, column, score, by)
    if not len(table) and (candidates is None or (by is not None and groups is None)):
        raise DataError(f"{table.name}: has no rows below its header")
    bad = BadRows()
    names = Names(column, *as_written(table[column]))
    names.check(table, candidates, "candidates", bad)
    # Without groups, all are in one without a name.
    grouped = Names("", np.zeros(len(table), dtype=np.intp), [""]) if by is None else Names(by, *as_written(table[by]))
    if by is not None:
        grouped.check(table, groups, "groups", bad)
    sizes = np.ones(len(table), dtype=np.int64)
    if score is not None:
        sizes = _sizes(table, score, bad)
        _refuse_repeated(table, names, grouped, bad)
    bad.raise_if_any()
    listed = tuple(sorted(names.found) if candidates is None else candidates)
    named = sorted(grouped.found) if by is None or groups is None else groups
    people = {name: dict.fromkeys(listed, 0) for name in named}
    totals = np.zeros((len(grouped.found), len(names.found)), dtype=np.int64)
    np.add.at(totals, (grouped.codes, names.codes), sizes)
    for group, row in zip(grouped.found, totals.tolist(), strict=True):
        people[group] |= zip(names.found, row, strict=True)
    return Counts(
        source=path.name,
        column=column,
        candidates=listed,
        people={group: tuple(counts.values()) for group, counts in people.items()},
        from_private_rows=score is None and candidates is None,
        groups_from_private_rows=score is None and by is not None and groups is None,
    )


def _candidate_column(table: DataTable, column: str | None, score: str | None, by: str | None) -> str:
    """The column that holds the candidates; DataError if it, or another one that is named, is not there."""
    for name in (column, score, by):
        unknown = None if name is None else table.unknown_column(name)
        if unknown:
            raise DataError(unknown)
    others = [name for name in table.columns if name not in (score, by)]
    if column is None and len(others) != 1:
        raise DataError(
            f"{table.name}: name the column that holds the candidates with --column; columns: "
            f"{', '.join(table.columns)}"
        )
    return column or others[0]


def _sizes(table: DataTable, score: str, bad: BadRows) -> IntArray:
    """A number of people for each row, (n_rows,); 28 and 28.0 are the same."""
    codes, texts = as_written(table[score])
    digits = [text.removesuffix(".0") for text in texts]
    whole = [text.isascii() and text.isdigit() and len(text) <= 16 and int(text) <= MOST_PEOPLE for text in digits]
    wrong: BoolArray = ~np.array(whole, dtype=np.bool_)[codes]
    bad.add_values(table, wrong, score, table[score].array, "must be a whole number of people >= 0")
    people = [int(text) if good else 0 for text, good in zip(digits, whole, strict=True)]
    return np.array(people, dtype=np.int64)[codes]


def _refuse_repeated(table: DataTable, names: Names, grouped: Names, bad: BadRows) -> None:
    """Note the rows of counts whose candidate was counted before, in the same group."""
    pairs = grouped.codes * len(names.found) + names.codes
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    earlier = first[inverse]

    def say(row: int) -> str:
        return f"{names.found[names.codes[row]]!r} is there already: {table.places([earlier[row]])[0]}"

    bad.add(table, earlier < np.arange(len(table)), names.column, say)

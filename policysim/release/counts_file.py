"""Reading how many people there are per candidate: from a row per person, or from a row per candidate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray
from policies.levels import MISSING, FeatureLevels, Levels, level_of, level_wanted, missing_hint
from policysim.errors import optional
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.data_table import DataTable, coded, numbers, read_table
from policysim.logs.outcomes import TOTALS
from policysim.progress import SILENT, Progress
from policysim.release.people import People

with optional():
    import pyarrow as pa

# All whole numbers up to here are exact in floating point, and none above is rounded to one of them.
MOST_PEOPLE = 2**53 - 1
NO_NAME = "is missing; list all possible values, with NA for missing ones (--candidates, --groups)"
TOTAL_ROW = "a row of totals is no candidate and no group: take it out, or declare all names (--candidates, --groups)"


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
        As declared, else sorted: never in the order of the rows, which shows who is there.
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
    """A column of names: the names, and the position of each row's among them, (n_rows,)."""

    column: str
    codes: IntArray
    names: list[str]

    @classmethod
    def of(cls, table: DataTable, column: str, declared: FeatureLevels | None, bad: BadRows) -> Names:
        """The names that are declared, else those that occur, sorted; rows without one of them are bad.

        Cells are private, and no message shows one.
        """
        if declared is None:
            codes, keys = coded(table[column])
            declared = Levels(column, sorted({str(level_of(key)) for key in keys if key != MISSING}))
            must = NO_NAME
            # The name decides, and no number: whether a file is refused must not depend on how many people there are.
            totals = np.array([str(level_of(key)).casefold() in TOTALS for key in keys], dtype=np.bool_)[codes]
            bad.add(table, totals, column, lambda _: TOTAL_ROW)
        else:
            must = level_wanted(declared) + missing_hint(declared)
        codes = table.codes(Levels(column, declared.levels, declared.cuts, declared.unknown))
        bad.add(table, codes < 0, column, lambda _: must)
        return cls(column, codes, list(map(str, declared.levels)))


def read_counts(
    path: Path,
    *,
    column: str | None = None,
    score: str | None = None,
    by: str | None = None,
    candidates: FeatureLevels | None = None,
    groups: FeatureLevels | None = None,
    people: People | None = None,
    stated: CsvFormat = RECOGNISED,
    progress: Progress = SILENT,
) -> Counts:
    """Read and check a file of people or of counts.

    Parameters
    ----------
    path : Path
        A file (`policysim.files.many_files.READABLE`); blank lines of text are skipped.
    column : str, optional
        The column that holds the candidates; by default the only one that is not `score` or `by`.
    score : str, optional
        The column that holds the number of people of each candidate. By default a row is a person.
    by : str, optional
        The column that holds groups: each is counted on its own.
    candidates : FeatureLevels, optional
        All candidates, or bins of a number: any other value is refused, one that is absent has 0 people.
    groups : FeatureLevels, optional
        All groups, likewise.
    people : People, optional
        Whose rows they are; by default each is a person's.
    stated : CsvFormat, optional
        How a text file is written, where its beginning leaves that open.
    progress : Progress, optional
        Reports the bytes read.

    Returns
    -------
    Counts

    Raises
    ------
    DataError
        A line for each of the first 20 bad values, and how many more there are; or one line about the file as a whole.
    """
    table = read_table(path, stated=stated, may_be_empty=True, progress=progress).with_bare_names()
    column = _candidate_column(table, column, score, by)
    if not len(table) and (candidates is None or (by is not None and groups is None)):
        raise DataError(f"{table.name}: has no rows below its header")
    bad = BadRows()
    names = Names.of(table, column, candidates, bad)
    # Without groups, all are in one without a name.
    grouped = Names("", np.zeros(len(table), dtype=np.intp), [""]) if by is None else Names.of(table, by, groups, bad)
    sizes = np.ones(len(table), dtype=np.int64)
    if score is not None:
        sizes = _sizes(table, score, bad)
        _refuse_repeated(table, names, grouped, bad)
    elif people:
        for name in filter(None, map(table.unknown_column, people.columns)):
            raise DataError(name)
        ids = {name: pa.array(table[name], from_pandas=True) for name in people.columns}
        kept = people.keep(table, bad, ids)
        sizes = sizes if kept is None else np.where(kept, sizes, 0)
    bad.raise_if_any()
    if score is None and candidates is None:
        _refuse_counts(table, column, by, names)
    if people:
        people.check(table.name)
    totals = np.zeros((len(grouped.names), len(names.names)), dtype=np.int64)
    np.add.at(totals, (grouped.codes, names.codes), sizes)
    return Counts(
        source=path.name,
        column=column,
        candidates=tuple(names.names),
        people={group: tuple(row) for group, row in zip(grouped.names, totals.tolist(), strict=True)},
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


def _refuse_counts(table: DataTable, column: str, by: str | None, names: Names) -> None:
    """DataError where each candidate has one row, and another column, which --score does not name, may count people."""
    if len(table) < 2 or len(names.names) < len(table):
        return
    for name in table.columns:
        if name not in (column, by) and _are_whole(numbers(table[name])).all():
            raise DataError(
                f"{table.name}: each {column} stands in one row: if the column {name} counts people, type --score "
                f"{name}; if each row is a person, name the candidates with --candidates"
            )


def _are_whole(people: FloatArray) -> NDArray[np.bool_]:
    """Which numbers can be a number of people."""
    whole: NDArray[np.bool_] = (people >= 0) & (people <= MOST_PEOPLE) & (people == np.floor(people))
    return whole


def _sizes(table: DataTable, score: str, bad: BadRows) -> IntArray:
    """A number of people for each row, (n_rows,); 28 and 28.0 are the same."""
    people = numbers(table[score])
    whole = _are_whole(people)
    bad.add(table, ~whole, score, lambda _: "must be a whole number of people >= 0")
    return np.where(whole, people, 0).astype(np.int64)


def _refuse_repeated(table: DataTable, names: Names, grouped: Names, bad: BadRows) -> None:
    """Note the rows of counts whose candidate was counted before, in the same group."""
    pairs = grouped.codes * len(names.names) + names.codes
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    earlier = first[inverse]
    repeated = (names.codes >= 0) & (grouped.codes >= 0) & (earlier < np.arange(len(table)))
    bad.add(table, repeated, names.column, lambda row: f"is there already: {table.places([earlier[row]])[0]}")

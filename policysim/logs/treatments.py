"""Which treatment each row of a log got: from a column of treatments, or a column of 0 and 1 for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import IntArray
from policysim.logs.bad_rows import BadRows, LogError
from policysim.logs.cells import coded, numbers
from policysim.logs.reading import LogTable
from policysim.logs.values import MISSING, level_key, level_of, sorted_keys

# Of so many values that nobody has declared, some cannot be meant as treatments.
MOST_UNDECLARED = 100


@dataclass(frozen=True, eq=False)
class Taken:
    """The treatment of each row.

    Attributes
    ----------
    codes : array, (n_rows,)
        Positions in `names`.
    names : tuple of str
        All treatments, in the order of a policy's columns.
    """

    codes: IntArray
    names: tuple[str, ...]


def taken_in_column(table: LogTable, column: str, declared: Sequence[tuple[str, str]], bad: BadRows) -> Taken:
    """Treatments in one column, as declared (value and name) or else those that occur, sorted; others are bad rows."""
    positions, keys = coded(table[column])
    if declared:
        known = {level_key(value): name for value, name in declared}
    else:
        occurring = {keys[position] for position in np.unique(positions)} - {MISSING}
        if len(occurring) > MOST_UNDECLARED:
            raise LogError(
                f"{table.name}: {column}: has {len(occurring):,} distinct values: declare the treatments, or name "
                "another column"
            )
        known = {key: str(level_of(key)) for key in sorted_keys(occurring)}
    names = tuple(known.values())
    _refuse_one(table, column, names)
    places = {key: place for place, key in enumerate(known)}
    codes = np.array([places.get(key, -1) for key in keys], dtype=np.intp)[positions]
    values = [value for value, _ in declared] or list(names)
    bad.add_values(table, codes < 0, column, table[column], f"must be one of the treatments {', '.join(values)}")
    return Taken(codes, names)


def taken_one_hot(table: LogTable, columns: Mapping[str, str], bad: BadRows) -> Taken:
    """Treatments in columns of 0 and 1, by name; rows in which not exactly one is 1 are bad."""
    _refuse_one(table, "columns", tuple(columns))
    matrix = np.column_stack([numbers(table[column]) for column in columns])
    valid = np.isin(matrix, (0.0, 1.0))
    for position, column in enumerate(columns):
        bad.add_values(table, ~valid[:, position], column, table[column], "must be 0 or 1")
    sums = matrix.sum(axis=1)
    title = ", ".join(columns) if len(columns) <= 4 else f"{next(iter(columns))} ... {list(columns)[-1]}"
    bad.add(table, valid.all(axis=1) & (sums != 1), title, lambda row: f"must sum to 1, got a sum of {sums[row]:g}")
    return Taken(np.asarray(matrix.argmax(axis=1), dtype=np.intp), tuple(columns.values()))


def one_hot_columns(table: LogTable, declared: Sequence[tuple[str, str]], without: Sequence[str]) -> dict[str, str]:
    """Column and name of each treatment: those that are declared, else all columns but some."""
    names = [str(name) for name in table.frame.columns if name not in without]
    for column, _ in declared:
        if column not in names:
            raise LogError(f"{table.name}: {unknown('treatment', column, names)}")
    return dict(declared) if declared else {name: name for name in names}


def _refuse_one(table: LogTable, column: str, names: Sequence[str]) -> None:
    if len(names) < 2:
        only = f"only {names[0]!r} occurs" if names else "none occurs"
        raise LogError(f"{table.name}: {column}: a choice needs at least two treatments, {only}: declare them")

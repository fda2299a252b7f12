"""Reading a table of action probabilities that was made elsewhere: records by row, features and actions by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from policies.arrays import ROUNDED_SUM, SUM_TOLERANCE, FloatArray, IntArray
from policies.levels import level_of
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import PANDAS_INDEX, DataTable, coded, numbers, read_table

# The name of an action's column, unless the columns are named by the caller.
PREFIX = "p_"


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """The rows of a file.

    Attributes
    ----------
    table : DataTable
        The file.
    actions : tuple of str
        In the order of their columns.
    features : tuple of str
        The other columns.
    probabilities : array, (n_rows, n_actions)
        p(a|x); rows sum to 1 within 1e-9.
    n_rescaled : int
        Rows whose sum was off by more than 1e-9, but not by more than 1e-6, and that were divided by it.
    """

    table: DataTable
    actions: tuple[str, ...]
    features: tuple[str, ...]
    probabilities: FloatArray
    n_rescaled: int

    @property
    def source(self) -> str:
        """The file's name, without its folder."""
        return Path(self.table.name).name

    @property
    def codes(self) -> IntArray:
        """The values of each feature as positions in `levels`, (n_rows, n_features)."""
        return self._coded[0]

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The values of each feature, in the order of their first appearance; "" where one is missing."""
        return self._coded[1]

    def describe(self, row: int) -> str:
        """One row in words: its line, or its row in Parquet, and the value of each feature."""
        values = [
            f"{name} {levels[code] or '(empty)'}"
            for name, levels, code in zip(self.features, self.levels, self.codes[row], strict=True)
        ]
        place = self.table.short_place(row)
        return f"{place}: {', '.join(values)}" if values else place

    @cached_property
    def _coded(self) -> tuple[IntArray, tuple[tuple[str, ...], ...]]:
        codes: IntArray = np.empty((len(self.table), len(self.features)), dtype=np.intp)
        levels = []
        for position, name in enumerate(self.features):
            codes[:, position], keys = coded(self.table[name])
            levels.append(tuple(str(level_of(key)) for key in keys))
        return codes, tuple(levels)


def read_probability_table(path: Path, actions: Sequence[str] | None = None, *, option: str = "") -> ProbabilityTable:
    """Read and check a .csv or .parquet file with a row per record, a column per feature and a column per action.

    Parameters
    ----------
    path : Path
        The first line of CSV names the columns. Blank lines are skipped.
    actions : sequence of str, optional
        The columns that hold probabilities; by default those whose names begin with `p_`. All others are features.
    option : str
        The option of the command that names other columns, for the message where no column is named so.

    Raises
    ------
    DataError
        A line for each of the first 20 bad values, and how many more there are; or one line about the file as a whole.
        Sums that were rounded by at most 1e-6 are made 1.
    """
    table = read_table(path, may_be_empty=True).with_bare_names()
    names = [name for name in table.columns if not name.startswith(PANDAS_INDEX)]
    columns = [name for name in names if name.startswith(PREFIX)] if actions is None else list(actions)
    if "" in names:
        place = names.index("") + 1
        raise DataError(f"{table.name}: column {place} has no name; if it only numbers the rows, leave it out")
    for name in columns:
        unknown = table.unknown_column(name)
        if unknown:
            raise DataError(unknown)
        if columns.count(name) > 1:
            raise DataError(f"{table.name}: {name}: named twice as an action")
    if len(columns) < 2:
        only = f"only {columns[0]} is" if columns else "no column is"
        others = f", or list others with {option}" if option and actions is None else ""
        raise DataError(f"{table.name}: needs a column {PREFIX}<action> for each action; {only} named so{others}")
    if not len(table):
        raise DataError(f"{table.name}: has no rows below its header")
    rows = np.column_stack([numbers(table[name]) for name in columns])
    rows, n_rescaled = distributions(table, rows, columns)
    return ProbabilityTable(
        table=table,
        actions=tuple(name.removeprefix(PREFIX) if actions is None else name for name in columns),
        features=tuple(name for name in names if name not in columns),
        probabilities=np.asfortranarray(rows),
        n_rescaled=n_rescaled,
    )


def distributions(table: DataTable, rows: FloatArray, columns: Sequence[str]) -> tuple[FloatArray, int]:
    """Probabilities, (n_rows, k), whose rows sum to 1: those that were rounded are divided by their sums and counted.

    Raises
    ------
    DataError
        For each value that is no probability, and each row whose sum is further than 1e-6 from 1.
    """
    bad, proper = BadRows(), (rows >= 0) & (rows <= 1 + ROUNDED_SUM)
    for position, name in enumerate(columns):
        bad.add_values(table, ~proper[:, position], name, table[name].array, "must be a probability in [0, 1]")
    # A product with ones is ten times as fast as a sum along short rows, and NaN or inf where an entry is.
    sums: FloatArray = rows @ np.ones(len(columns))
    off = proper.all(axis=1) & (np.abs(sums - 1) > ROUNDED_SUM)
    title = ", ".join(columns) if len(columns) <= 4 else f"{columns[0]} ... {columns[-1]}"
    bad.add(table, off, title, lambda row: f"must sum to 1 within {ROUNDED_SUM:g}, got a sum of {sums[row]:.9g}")
    bad.raise_if_any()
    rounded = np.abs(sums - 1) > SUM_TOLERANCE
    return (rows / np.where(rounded, sums, 1)[:, None] if rounded.any() else rows), int(np.count_nonzero(rounded))

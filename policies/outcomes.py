"""What is expected of each record under each action beside utility: deaths, symptoms, costs; a table for each outcome.

Most outcomes of a model depend on few features. A symptom's table over 1.3 million records has two distinct rows. Only
these rows are stored, and a byte for each record that says which of them it has. The table is made when it is asked
for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policies.arrays import BoolArray, FloatArray, Frozen, IntArray, finite_table, read_only
from policies.mask import filled_table

# A table with more distinct rows is stored as it is.
MOST_ROWS = 256


@dataclass(frozen=True, eq=False)
class RepeatedRows(Frozen):
    """A table of which many rows are equal.

    Attributes
    ----------
    rows : array, (m, k)
        The distinct rows.
    row_of_record : array of uint8, (n_records,)
        Which of them each record has.
    """

    rows: FloatArray
    row_of_record: NDArray[np.uint8]

    def __post_init__(self) -> None:
        """Neither changes."""
        read_only(self.rows)
        read_only(self.row_of_record)

    def table(self) -> FloatArray:
        """The whole table, (n_records, k), column-major and read-only."""
        table: FloatArray = np.empty((len(self.row_of_record), self.rows.shape[1]), order="F")
        for column, values in zip(table.T, self.rows.T, strict=True):
            np.take(values, self.row_of_record, out=column)
        return read_only(table)


class Outcomes(Frozen, Mapping[str, FloatArray]):
    """Tables by the name of their outcome, (n_records, n_actions) each; read-only.

    Parameters
    ----------
    tables : mapping of str to array or RepeatedRows
        Expectations per patient.

    Attributes
    ----------
    whole : tuple of str
        The outcomes whose tables are stored as they are.
    repeated : tuple of str
        The others. Their tables are made anew each time: ask for them once.
    """

    def __init__(self, tables: Mapping[str, FloatArray | RepeatedRows]) -> None:
        self._tables = dict(tables)
        self._repeated = {name: table for name, table in tables.items() if isinstance(table, RepeatedRows)}
        self.repeated = tuple(self._repeated)
        self.whole = tuple(name for name in tables if name not in self.repeated)

    def __getitem__(self, name: str) -> FloatArray:
        """The table of an outcome; KeyError for an unknown one."""
        table = self._tables[name]
        return table.table() if isinstance(table, RepeatedRows) else table

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._tables)

    def __len__(self) -> int:
        """How many outcomes there are."""
        return len(self._tables)

    def __repr__(self) -> str:
        """The names."""
        return f"Outcomes({', '.join(self)})"

    def of_records(self, records: IntArray, actions: IntArray | None = None) -> Outcomes:
        """The outcomes of some records, and of some actions."""
        tables: dict[str, FloatArray | RepeatedRows] = {}
        for name, table in self._tables.items():
            if isinstance(table, RepeatedRows):
                rows = table.rows if actions is None else table.rows[:, actions]
                tables[name] = RepeatedRows(rows, table.row_of_record[records])
            else:
                tables[name] = np.asfortranarray(table[records] if actions is None else table[np.ix_(records, actions)])
        return Outcomes(tables)

    def checked(self, mask: BoolArray | None, shape: tuple[int, ...]) -> Outcomes:
        """The same with what a mask forbids filled in (`policies.mask.filled_table`); ValueError for another shape."""
        tables: dict[str, FloatArray | RepeatedRows] = {}
        for name, table in self._tables.items():
            if isinstance(table, RepeatedRows) and mask is None:
                tables[name] = RepeatedRows(finite_table(table.rows, name), table.row_of_record)
            else:
                tables[name] = filled_table(self[name], mask, name, highest=True)
            got = (len(table.row_of_record), table.rows.shape[1]) if isinstance(table, RepeatedRows) else table.shape
            if got != shape:
                raise ValueError(f"outcomes[{name!r}] must have shape {shape}, got {got}.")
        return Outcomes(tables)

    def keys_of_rows(self) -> list[NDArray[np.uint64]]:
        """Columns, (n_records,) each: two records with equal entries have equal rows in all tables."""
        columns: list[NDArray[np.uint64]] = []
        for table in self._tables.values():
            if isinstance(table, RepeatedRows):
                columns.append(table.row_of_record.astype(np.uint64))
            else:
                columns += [column.view(np.uint64) for column in table.T]
        return columns

    def means(self, shares: FloatArray) -> dict[str, float]:
        """The expectation of each outcome among all patients; `shares` as below."""
        whole = {name: float((shares * self[name]).sum()) for name in self.whole}
        return whole | self.repeated_means(shares)

    def repeated_means(self, shares: FloatArray) -> dict[str, float]:
        """The expectation of each outcome of `repeated` among all patients.

        Parameters
        ----------
        shares : array, (n_records, n_actions)
            Which share of all patients are this record and get this action: prior(x) p(a|x).
        """
        if not self.repeated:
            return {}
        totals, masses = shares.sum(axis=0), self._indicators.T @ shares
        means, start = {}, 0
        for name, table in self._repeated.items():
            first, others = table.rows[0], table.rows[1:]
            mass = masses[start : start + len(others)]
            means[name] = float(first @ totals + ((others - first) * mass).sum())
            start += len(others)
        return means

    @cached_property
    def _indicators(self) -> FloatArray:
        """1 where a record has a row, (n_records, n_rows): all rows of the repeated tables but the first of each."""
        tables = list(self._repeated.values())
        n_rows = sum(len(table.rows) - 1 for table in tables)
        indicators: FloatArray = np.empty((len(tables[0].row_of_record), n_rows), order="F")
        columns = iter(indicators.T)
        for table in tables:
            for row in range(1, len(table.rows)):
                np.equal(table.row_of_record, row, out=next(columns))
        return indicators


def outcome_table(grids: Sequence[FloatArray], shape: tuple[int, ...]) -> FloatArray | RepeatedRows:
    """The table of an outcome from a grid for each action, in few numbers where it has few distinct rows.

    Parameters
    ----------
    grids : sequence of array
        What is expected of each record under an action; each broadcasts over the grid of records, with length 1 along
        every feature that does not matter.
    shape : tuple of int
        That of the grid of records.
    """
    cells = np.broadcast_shapes(*(grid.shape for grid in grids))
    rows = np.column_stack([np.broadcast_to(grid, cells).ravel() for grid in grids])
    if len(rows) <= MOST_ROWS:
        numbers = np.arange(len(rows), dtype=np.uint8).reshape(cells)
        return RepeatedRows(rows, np.ascontiguousarray(np.broadcast_to(numbers, shape)).ravel())
    return whole_table(grids, shape)


def whole_table(grids: Sequence[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    """The same table as an array, (n_records, n_actions), column-major."""
    table: FloatArray = np.empty((int(np.prod(shape)), len(grids)), order="F")
    for column, grid in zip(table.T, grids, strict=True):
        column.reshape(shape)[...] = grid
    return table

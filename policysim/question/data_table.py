"""The data of a figure as a small table of text: only what is drawn, in as many digits as can be seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Panel:
    """Columns of a data table that belong together.

    Attributes
    ----------
    title : str
        What they have in common.
    rows : DataFrame
        Tidy.
    values : str
        The column with the numbers.
    write : callable
        How a number is written.
    """

    title: str
    rows: pd.DataFrame
    values: str
    write: Callable[[float], str]


@dataclass(frozen=True)
class DataTable:
    """Text in rows.

    Attributes
    ----------
    headings : tuple of str
        One per column.
    rows : tuple of tuple of str
        The first cell of each names the row.
    spans : tuple of (str, int)
        What several columns after the first have in common, from left to right; may be empty.
    note : str
        What the table leaves out, or how to read it.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    spans: tuple[tuple[str, int], ...] = ()
    note: str = ""


def wide(
    panels: Sequence[Panel], *, index: str, columns: str, name_index: Callable[[float], str], note: str = ""
) -> DataTable:
    """A row for each entry of `index`, and in each panel a column for each entry of `columns`.

    Parameters
    ----------
    panels : sequence of Panel
        From left to right.
    index, columns : str
        The columns of their rows that name the table's rows and columns.
    name_index : callable
        How an entry of `index` is written.
    note : str, optional
        See `DataTable`.
    """
    grids = [panel.rows.pivot_table(index=index, columns=columns, values=panel.values, sort=False) for panel in panels]
    cells = [grid.map(panel.write, na_action="ignore") for panel, grid in zip(panels, grids, strict=True)]
    joined = pd.concat(cells, axis=1).sort_index().fillna("–")
    rows = zip(joined.index, joined.to_numpy().tolist(), strict=True)
    return DataTable(
        headings=("ε" if index == "epsilon" else index, *map(str, joined.columns)),
        rows=tuple((name_index(key), *texts) for key, texts in rows),
        spans=tuple((panel.title, grid.shape[1]) for panel, grid in zip(panels, grids, strict=True)),
        note=note,
    )


def tidy(table: pd.DataFrame) -> DataTable:
    """The rows of a figure's own table, its columns as headings, numbers to four digits."""
    cells = table.map(_written)
    rows = tuple(tuple(row) for row in cells.to_numpy().tolist())
    return DataTable(tuple(str(name).replace("_", " ") for name in table.columns), rows)


def _written(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}".replace("-", "−")
    return str(value)

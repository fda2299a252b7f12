"""What figures ask of their tables, checked once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from policysim.evaluate import ALL
from policysim.figures.looks import REFERENCE_LINES


def checked(table: pd.DataFrame, figure: str, columns: Sequence[str]) -> pd.DataFrame:
    """The table; ValueError if a figure cannot be drawn from it: a column is missing, or it has no rows."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"{figure} needs the column{'s' * (len(missing) > 1)} {', '.join(missing)} in its table.")
    if table.empty:
        raise ValueError(f"{figure} has nothing to draw: its table has no rows.")
    return table


def nonempty(rows: pd.DataFrame, figure: str, wanted: str) -> pd.DataFrame:
    """The rows; ValueError if there are none, saying which are wanted."""
    if rows.empty:
        raise ValueError(f"{figure} has nothing to draw: its table has no rows {wanted}.")
    return rows


def over_epsilon(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of everyone with 0 < epsilon < inf: those that can stand on a log axis."""
    rows: pd.DataFrame = table[(table["group"] == ALL) & (table["epsilon"] > 0) & np.isfinite(table["epsilon"])]
    return rows


def spenders(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of everyone whose policy spends some of a finite epsilon."""
    # Less than a billionth is rounding.
    spends = (table["epsilon_spent"] > 1e-9) & ~table["policy"].isin(REFERENCE_LINES)
    return over_epsilon(table.loc[spends])


def names_of(table: pd.DataFrame, column: str) -> list[str]:
    """The distinct entries of a column, in the table's order."""
    return [str(name) for name in dict.fromkeys(table[column])]

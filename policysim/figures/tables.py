"""What figures ask of their tables, checked once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from policysim.evaluate import ALL
from policysim.figures.looks import REFERENCE_LINES

# Columns that hold numbers, where a table has them.
NUMBERS = {
    *("epsilon", "epsilon_spent", "benefit_kept", "difference", "extra_deaths", "expected_deaths", "share", "loss"),
    *("probability", "quantile", "weight", "sensitivity", "contribution", "horizon", "total_epsilon"),
}
# What a row of a comparison is about.
KEYS = ("policy", "epsilon", "group", "level")


def checked(table: pd.DataFrame, figure: str, columns: Sequence[str]) -> pd.DataFrame:
    """The table; ValueError if a figure cannot be drawn from it.

    No table, a column that is missing, no rows, text in place of a number, or two rows where a curve has one point.
    """
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"{figure} needs a table (a pandas DataFrame), got {type(table).__name__}.")
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"{figure} needs the column{'s' * (len(missing) > 1)} {', '.join(missing)} in its table.")
    if table.empty:
        raise ValueError(f"{figure} has nothing to draw: its table has no rows.")
    _check_numbers(table, figure)
    if {"policy", "epsilon"} <= set(columns) and "patient" not in columns:
        _check_single(table, figure)
    return table


def _check_numbers(table: pd.DataFrame, figure: str) -> None:
    for column in (name for name in table.columns if str(name).removesuffix("_low").removesuffix("_high") in NUMBERS):
        values = table[column]
        if pd.api.types.is_numeric_dtype(values):
            continue
        text = values[values.notna() & pd.to_numeric(values, errors="coerce").isna()]
        wrong = text if len(text) else values
        raise ValueError(f"{figure} needs numbers in the column {column}, got {wrong.iloc[0]!r}.")


def _check_single(table: pd.DataFrame, figure: str) -> None:
    keys = [name for name in KEYS if name in table.columns]
    twice = table[table.duplicated(keys)]
    if not twice.empty:
        where = ", ".join(f"{name}={twice[name].iloc[0]}" for name in keys)
        raise ValueError(f"{figure} needs one row for each {' x '.join(keys)}, its table has several for {where}.")


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

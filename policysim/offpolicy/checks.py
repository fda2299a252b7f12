"""Refusals that name rows: the first twenty, then the count. Rows are counted from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.arrays import SUM_TOLERANCE, FloatArray
from policysim.probability_table import ROUNDED_SUM

ROWS_SHOWN = 20
LONGEST_VALUE = 40


def refuse_rows(bad: NDArray[np.bool_], values: Any, must: str) -> None:
    """ValueError on one line if any row is bad: what must hold, the first bad rows with their values, and the count."""
    rows = np.flatnonzero(bad)
    if not rows.size:
        return
    shown = ", ".join(f"{row} ({_word(values[row])})" for row in rows[:ROWS_SHOWN].tolist())
    more = f" and {rows.size - ROWS_SHOWN:,} more" if rows.size > ROWS_SHOWN else ""
    raise ValueError(f"{must}; not so in {rows.size:,} of {len(bad):,} rows: {shown}{more}.")


def one_of(value: object, known: Sequence[str], name: str) -> None:
    """ValueError unless `value` is a known name."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {name}={value!r}.")


def several(values: object) -> list[Any] | None:
    """What was given as several, as a list; None if it was one value or a string."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else None


def row_probabilities(values: ArrayLike, n_rows: int, names: Sequence[str]) -> FloatArray:
    """The evaluated policy, (n_rows, k), a distribution over the k named actions in each row; ValueError if not.

    Sums that were rounded by at most 1e-6, as those of float32 are, are made 1.
    """
    try:
        table: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("probabilities must be an array of numbers.") from None
    if table.shape != (n_rows, len(names)):
        raise ValueError(
            f"probabilities must be (n_rows, k) = ({n_rows}, {len(names)}), k the actions {', '.join(names)}, got "
            f"shape {table.shape}; actions that the log never takes must be declared with actions=[...]."
        )
    if not table.min() >= 0:
        possible: NDArray[np.bool_] = np.all(table >= 0, axis=1)
        refuse_rows(~possible, table.tolist(), "probabilities must be >= 0")
    # A product with ones is ten times as fast as a sum along short rows, and NaN or inf where an entry is.
    sums: FloatArray = table @ np.ones(len(names))
    proper: NDArray[np.bool_] = np.abs(sums - 1) <= ROUNDED_SUM
    refuse_rows(~proper, sums, "probabilities must sum to 1 in each row")
    return with_sums_of_one(table, sums)


def with_sums_of_one(table: FloatArray, sums: FloatArray) -> FloatArray:
    """The table whose rows were rounded divided by their sums, (n_rows,); the others stay as they are."""
    rounded: NDArray[np.bool_] = np.abs(sums - 1) > SUM_TOLERANCE
    return table / np.where(rounded, sums, 1)[:, None] if rounded.any() else table


def check_seed(seed: object) -> None:
    """ValueError unless `seed` is a whole number >= 0."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise ValueError(f"seed must be a whole number >= 0, got seed={seed!r}.")


def _word(value: Any) -> str:
    """A value as people write it, on one line and not too long."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."

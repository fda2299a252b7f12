"""Refusals that name rows: the first twenty, then the count. Rows are counted from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.arrays import SUM_TOLERANCE, FloatArray

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
    """The evaluated policy, (n_rows, k), a distribution over the k named actions in each row; ValueError if not."""
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
    proper: NDArray[np.bool_] = np.abs(sums - 1) <= SUM_TOLERANCE
    refuse_rows(~proper, sums, "probabilities must sum to 1 in each row")
    return table


def _word(value: Any) -> str:
    """A value as people write it, on one line and not too long."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."

"""A column of a log as codes or numbers, whatever its type; no loop over rows.

Refusals that name rows: the first twenty, then the count. Rows are counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from policies.arrays import SUM_TOLERANCE, FloatArray, IntArray
from policysim.files.bad_rows import MISSING, MISSING_WORDS, Key, level_key
from policysim.files.probability_table import ROUNDED_SUM

BoolArray = NDArray[np.bool_]


def coded(column: pd.Series) -> tuple[IntArray, list[Key]]:
    """The distinct values as keys, and the position of each row's among them, (n_rows,); `MISSING` is one of them."""
    positions, values = pd.factorize(_plain(column))
    keys: dict[Key, int] = {}
    places = [keys.setdefault(level_key(value), len(keys)) for value in values]
    # factorize gives -1 to what is missing: the last entry.
    places.append(keys.setdefault(MISSING, len(keys)))
    return np.array(places, dtype=np.intp)[positions], list(keys)


def numbers(column: pd.Series) -> FloatArray:
    """A column as float64, (n_rows,); NaN where a value is missing or no number. Times are none."""
    if column.dtype.kind in "mM":
        return np.full(len(column), np.nan)
    if column.dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    plain = _plain(column)
    cast = _cast(plain)
    if cast is not None:
        return cast
    positions, keys = coded(plain)
    values: FloatArray = np.array([np.nan if isinstance(key, str) else key for key in keys])
    return values[positions]


def missing(column: pd.Series, among: BoolArray) -> BoolArray:
    """Which rows have no value, looking only `among` some: others have one."""
    rows = np.flatnonzero(among)
    positions, keys = coded(column.iloc[rows])
    found = np.zeros(len(column), dtype=np.bool_)
    found[rows] = np.array([key == MISSING for key in keys], dtype=np.bool_)[positions]
    return found


def typed(column: pd.Series) -> pd.Series:
    """A column of text as whole numbers, numbers or truth values if all of it is, missing values as NaN."""
    text = _words(column)
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            values = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        whole = kind != pa.float64() and not values.null_count
        plain = values if whole else values.cast(pa.float64()) if kind != pa.bool_() else values
        return pd.Series(plain.to_pandas(), index=column.index, name=column.name)
    return column.mask(np.asarray(text.is_null()))


def _plain(column: pd.Series) -> pd.Series:
    """A categorical column as the values of its categories."""
    return column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column


def _cast(column: pd.Series) -> FloatArray | None:
    """Text that is numbers or missing throughout, in one go; None if it is not."""
    try:
        values: FloatArray = _words(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, TypeError):
        return None
    return values


def _words(column: pd.Series) -> Any:
    """A pyarrow array of text without margins; null where a value is missing."""
    text = pa.array(column, from_pandas=True)
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    trimmed = pc.utf8_trim_whitespace(text)
    word = pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING_WORDS, trimmed.type))
    return pc.if_else(word, pa.scalar(None, trimmed.type), trimmed)


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

"""A column of a log as codes or numbers, whatever its type; no loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray
from policysim.logs.values import MISSING, MISSING_WORDS, Key, level_key

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

"""What parameters of local mechanisms may be."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import IntArray

# So many bad rows are named in a message.
ROWS_SHOWN = 5


def local_epsilon(value: Any) -> float:
    """`value` as a float > 0 and finite: a report at 0 says nothing, one at infinity everything."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"epsilon must be > 0 and finite, got epsilon={value!r}.")
    return float(value)


def probability(value: Any, name: str) -> float:
    """`value` as a float in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {name}={value!r}.")
    return float(value)


def inner_probability(value: Any, name: str) -> float:
    """`value` as a float in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be > 0 and < 1, got {name}={value!r}.")
    return float(value)


def at_least(value: Any, name: str, least: int) -> int:
    """`value` as an int >= least."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {name}={value!r}.")
    return int(value)


def whole_counts(counts: ArrayLike, n_values: int) -> IntArray:
    """A copy of (k,) whole numbers >= 0."""
    array = np.asarray(counts)
    if array.shape != (n_values,):
        raise ValueError(f"counts must have shape ({n_values},), got {array.shape}.")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"counts must be whole numbers >= 0, got an array of {array.dtype}.")
    bad = np.flatnonzero(~((array >= 0) & (array < 2**53) & (array == np.floor(array))))
    if bad.size:
        raise ValueError(f"counts must be whole numbers >= 0, got counts[{bad[0]}]={array[bad[0]].item()!r}.")
    return array.astype(np.intp)


def codes(values: ArrayLike, n_values: int) -> IntArray:
    """(n,) whole numbers 0..k-1; the message names the first rows that hold something else."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise ValueError(f"values must be (n,) whole numbers, got shape {array.shape} of {array.dtype}.")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= n_values):
        bad = np.flatnonzero((array < 0) | (array >= n_values))
        rows = ", ".join(map(str, bad[:ROWS_SHOWN])) + (", ..." if bad.size > ROWS_SHOWN else "")
        raise ValueError(
            f"values must be from 0 to {n_values - 1}, got values[{bad[0]}]={int(array[bad[0]])} "
            f"({bad.size} outside, in rows {rows})."
        )
    return array.astype(np.intp, copy=False)

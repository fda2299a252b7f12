"""Rows of a table that are equal in every bit, found by one sort."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policies.arrays import IntArray

Words: TypeAlias = NDArray[np.uint64]

# 2^64 divided by the golden ratio: multiplying by it spreads the bits of a row over its key.
_SPREAD = 0x9E3779B97F4A7C15


def equal_rows(columns: Sequence[NDArray[Any]]) -> tuple[IntArray, IntArray] | None:
    """The first place of each distinct row, (m,), and for each row which of these it is, (n,).

    Parameters
    ----------
    columns : sequence of array of uint64, (n,)
        A table; of floats, their bits.

    Returns
    -------
    In the order in which they first occur; None if no two rows are equal.

    Examples
    --------
    >>> equal_rows([np.array([7, 5, 7], dtype=np.uint64)])
    (array([0, 1]), array([0, 1, 0]))
    """
    for attempt in count(1):
        _, first, row = np.unique(_keys(columns, attempt), return_index=True, return_inverse=True)
        # Equal rows have equal keys; whether equal keys have equal rows is looked up.
        if all(np.array_equal(column[first][row], column) for column in columns):
            break
    if len(first) == len(row):
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[row]


def _keys(columns: Sequence[NDArray[Any]], attempt: int) -> Words:
    """A number for each row, which distinct rows hardly ever share; another one at each attempt."""
    keys = np.full(len(columns[0]), attempt, dtype=np.uint64)
    for column in columns:
        keys ^= column
        keys *= np.uint64(_SPREAD)
        keys ^= keys >> np.uint64(29 + attempt)
    return keys

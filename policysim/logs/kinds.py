"""Kinds of patients and how many there are of each: distinct rows of whole numbers, to which more are added.

The first columns are the record, the treatment, the bits of propensity and utility, and whether an outcome is missing;
then the bits of each outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policysim.files.bad_rows import DataError

# Kinds of patients that fit into the memory of a small machine, several times over.
MOST_KINDS = 4_000_000
OWN = ("record", "treatment", "propensity", "utility", "missing")


class Kinds:
    """Distinct rows of whole numbers with their counts, to which more are added.

    Parameters
    ----------
    outcomes : sequence of str
        Their columns are behind those that every log has.
    """

    # Rows are only made distinct where there are so many, or twice as many as distinct ones.
    FEW = 1 << 18

    def __init__(self, outcomes: Sequence[str]) -> None:
        self._columns = (*OWN, *outcomes)
        self._kinds = [np.empty((0, len(self._columns)), dtype=np.int64)]
        self._counts = [np.empty(0, dtype=np.int64)]
        self._n_rows = self._n_distinct = 0

    def add(self, kinds: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add rows, (m, n_columns), and how often there is each, (m,)."""
        if len(kinds) > 1:
            kinds, counts = _distinct(kinds, counts)
        self._kinds.append(kinds)
        self._counts.append(counts)
        self._n_rows += len(kinds)
        if self._n_rows > max(self.FEW, 2 * self._n_distinct):
            self._settle()

    def sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct rows in order, and their counts."""
        self._settle()
        order = np.lexsort(self._kinds[0].T[::-1])
        return self._kinds[0][order], self._counts[0][order]

    def _settle(self) -> None:
        kinds, counts = _distinct(np.concatenate(self._kinds), np.concatenate(self._counts))
        if len(kinds) > MOST_KINDS:
            sizes = [len(np.unique(column)) for column in kinds.T]
            named = ", ".join(f"{name} {size:,}" for name, size in zip(self._columns, sizes, strict=True))
            raise DataError(
                f"there are more than {MOST_KINDS:,} kinds of patients; different values so far: {named}. Round those "
                "of which there are most, or declare coarser features"
            )
        self._kinds, self._counts, self._n_rows = [kinds], [counts], len(kinds)
        self._n_distinct = len(kinds)


def _distinct(kinds: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows, and the sums of their counts."""
    codes = np.zeros(len(kinds), dtype=np.int64)
    n_codes = 1
    for column in kinds.T:
        own, values = pd.factorize(column)
        if len(values) > 1:
            codes = codes * len(values) + own
            n_codes *= len(values)
        if n_codes >= 1 << 31:  # numbered anew, so that the product never overflows
            codes, found = pd.factorize(codes)
            n_codes = len(found)
    codes, found = pd.factorize(codes)
    first = np.empty(len(found), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    sums = np.zeros(len(found), dtype=np.int64)
    np.add.at(sums, codes, counts)
    return kinds[first], sums

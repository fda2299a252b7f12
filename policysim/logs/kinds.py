"""Kinds of patients and how many there are of each: distinct rows of whole numbers, to which more are added.

The first columns are the record, the treatment, the bits of propensity and utility, and whether an outcome is missing;
then the bits of each outcome, and of what else is told of a patient.

Where there are too many, because outcomes are measured finely, patients whose utility and outcomes agree in sign,
exponent and some more bits become one kind, with exact sums (`outcome_sums`). How many bits these are depends on all
patients and on nothing else: more patients never have fewer kinds, so that those of a part never ask for fewer bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policysim.files.bad_rows import DataError
from policysim.logs.outcome_sums import FRACTION, WHOLE, sums_of, without_last

# Kinds of patients that fit into the memory of a small machine, several times over.
MOST_KINDS = 4_000_000
# Of more than WHOLE_KINDS, patients become one kind whose outcomes agree in all but so many last bits, the fewest of
# these that leave no more than FEW_KINDS, as estimates take the longer; with the most of them up to MOST_KINDS.
WHOLE_KINDS, FEW_KINDS = 1_000_000, 250_000
BITS = (0, 40, 44, 48, FRACTION, WHOLE)
FEW_KINDS = 250_000
OWN = ("record", "treatment", "propensity", "utility", "missing")
UTILITY = OWN.index("utility")


def values_of(n_outcomes: int) -> list[int]:
    """The columns of utility and outcomes."""
    return [UTILITY, *range(len(OWN), len(OWN) + n_outcomes)]


class Counted(NamedTuple):
    """Distinct kinds.

    Attributes
    ----------
    kinds : array, (m, n_columns)
    counts : array, (m,)
        How many patients are of each kind.
    sums : array, (n_sums, m)
        Of utility and each outcome, see `outcome_sums.sums_of`; none where these are in `kinds` whole.
    dropped : array, (1,)
        How many last bits of these the kinds do not tell.
    """

    kinds: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: NDArray[np.int64]
    dropped: NDArray[np.int64]


class Kinds:
    """Distinct rows of whole numbers with their counts, to which more are added.

    Parameters
    ----------
    outcomes : sequence of str
        Their columns are behind those that every log has.
    others : sequence of str
        Columns behind these, of which every value counts.
    """

    # Rows are only made distinct where there are so many, or twice as many as distinct ones.
    FEW = 1 << 18

    def __init__(self, outcomes: Sequence[str], others: Sequence[str] = ()) -> None:
        self._columns = (*OWN, *outcomes, *others)
        self._values = values_of(len(outcomes))
        self._dropped = BITS[0]
        self._found: list[Counted] = []
        self._n_rows = self._n_distinct = 0

    def add(
        self,
        kinds: NDArray[np.int64],
        counts: NDArray[np.int64],
        sums: NDArray[np.int64] | None = None,
        dropped: NDArray[np.int64] | None = None,
    ) -> None:
        """Add rows, (m, n_columns), and how often there is each, (m,), or what others found, as `Counted`."""
        none = np.empty((0, len(kinds)), dtype=np.int64)
        found = Counted(kinds, counts, none if sums is None else sums, np.zeros(1, int) if dropped is None else dropped)
        if found.dropped[0] > self._dropped:
            self._drop(int(found.dropped[0]))
        own = self._coarser(found)
        is_distinct = own is found and dropped is not None
        self._found.append(own if is_distinct else _distinct([own]))
        self._n_rows += len(self._found[-1].kinds)
        if self._n_rows > max(self.FEW, 2 * self._n_distinct):
            self._settle()

    def sorted(self) -> Counted:
        """The distinct rows in order, their counts and sums."""
        self._settle()
        kinds, counts, sums, dropped = self._found[0]
        order = np.lexsort(kinds.T[::-1])
        return Counted(kinds[order], counts[order], sums[:, order], dropped)

    def _settle(self) -> None:
        found = _distinct(self._found or [self._none()])
        while len(found.kinds) > self._most:
            if self._dropped == BITS[-1]:
                sizes = [len(np.unique(column)) for column in found.kinds.T]
                named = ", ".join(f"{name} {size:,}" for name, size in zip(self._columns, sizes, strict=True))
                raise DataError(
                    f"there are more than {MOST_KINDS:,} kinds of patients; different values so far, of outcomes "
                    f"different magnitudes: {named}. Round those of which there are most, or declare coarser features"
                )
            self._found = [found]
            self._drop(BITS[BITS.index(self._dropped) + 1])
            found = _distinct(self._found)
        self._found, self._n_rows = [found], len(found.kinds)
        self._n_distinct = len(found.kinds)

    @property
    def _most(self) -> int:
        """How many kinds there may be with as many bits as they tell now."""
        return {BITS[0]: WHOLE_KINDS, BITS[-1]: MOST_KINDS}.get(self._dropped, FEW_KINDS)

    def _none(self) -> Counted:
        empty = np.empty((0, len(self._columns)), dtype=np.int64)
        return Counted(empty, empty[:, 0], np.empty((0, 0), dtype=np.int64), np.zeros(1, dtype=np.int64))

    def _drop(self, dropped: int) -> None:
        """Tell so many last bits of outcomes no longer."""
        self._dropped = dropped
        self._found = [self._coarser(found) for found in self._found]

    def _coarser(self, found: Counted) -> Counted:
        if found.dropped[0] == self._dropped:
            return found
        sums = found.sums
        if not found.dropped[0]:
            sums = np.concatenate([sums_of(found.kinds[:, column], found.counts) for column in self._values])
        kinds = found.kinds.copy()
        kinds[:, self._values] = without_last(kinds[:, self._values], self._dropped)
        return Counted(kinds, found.counts, sums, np.array([self._dropped]))


def _distinct(found: Sequence[Counted]) -> Counted:
    """The distinct rows, with the sums of their counts and of their sums; all have dropped as many bits."""
    kinds = np.concatenate([each.kinds for each in found])
    codes = np.zeros(len(kinds), dtype=np.int64)
    n_codes = 1
    for column in kinds.T:
        own, values = pd.factorize(column)
        if len(values) > 1:
            codes = codes * len(values) + own
            n_codes *= len(values)
        if n_codes >= 1 << 31:  # numbered anew, so that the product never overflows
            codes, numbers = pd.factorize(codes)
            n_codes = len(numbers)
    codes, numbers = pd.factorize(codes)
    first = np.empty(len(numbers), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    amounts = np.concatenate([np.vstack([each.counts, each.sums]) for each in found], axis=1)
    totals = np.zeros((len(amounts), len(numbers)), dtype=np.int64)
    for own, total in zip(amounts, totals, strict=True):
        np.add.at(total, codes, own)
    return Counted(kinds[first], totals[0], totals[1:], found[0].dropped)

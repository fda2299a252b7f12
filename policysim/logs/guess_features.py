"""Which columns can be features, by which levels or cuts, and how many of them fit into a small domain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import IntArray
from policysim.files.bad_rows import level_of
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.guess_columns import ColumnSummary
from policysim.logs.log_source import NO_VALUE, Binning

MOST_LEVELS = 12
# A small domain: each record then has a few patients, at least in large trials, and hiding it costs less.
MOST_RECORDS = 5_000
# Distinct rounded cuts are this part of the middle half's width apart, at most.
STEPS = 3
# Why a column whose values repeat is no feature.
NAMED_LIKE_ID = "named like an id"
# Spreads are not rounded below this.
TINY = 1e-200


@dataclass(frozen=True, eq=False)
class Candidate:
    """A column that can be a feature: its declaration, and the bin of each row, (n_rows,)."""

    binning: Binning
    codes: IntArray
    missing_level: bool

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.binning.feature.levels)

    @property
    def counts(self) -> list[int]:
        """How many rows each level has."""
        counts: list[int] = np.bincount(self.codes, minlength=self.size).tolist()
        return counts


@dataclass(frozen=True, eq=False)
class Features:
    """Columns as features.

    Attributes
    ----------
    chosen : tuple of Candidate
        Those that fit into the domain, in the file's order.
    further : tuple of Candidate
        Those that would make it larger.
    unusable : dict of str to str
        Columns that cannot be features, and why.
    """

    chosen: tuple[Candidate, ...]
    further: tuple[Candidate, ...]
    unusable: dict[str, str]

    @property
    def n_records(self) -> int:
        """The size of the declared domain."""
        return math.prod(candidate.size for candidate in self.chosen)


def guess_features(columns: Sequence[ColumnSummary]) -> Features:
    """Declare a feature for each column that can be one, and choose among them."""
    candidates: list[Candidate] = []
    unusable: dict[str, str] = {}
    for column in columns:
        reason = _unusable(column, columns)
        if reason:
            unusable[column.name] = reason
        else:
            candidates.append(_candidate(column))
    chosen = _choose(candidates)
    further = tuple(candidate for candidate in candidates if candidate not in chosen)
    return Features(tuple(candidate for candidate in candidates if candidate in chosen), further, unusable)


def as_feature(column: ColumnSummary) -> Candidate | None:
    """A column as a feature, if it can be one by itself."""
    return None if _unusable(column, [column]) else _candidate(column)


def round_cuts(column: ColumnSummary) -> tuple[float, ...]:
    """About the quartiles of a column of numbers, rounded; those of its distinct values if most rows share one."""
    for values in (column.present(), np.array(column.values, dtype=np.float64)):
        quartiles = np.quantile(values, [0.25, 0.5, 0.75])
        width = float(quartiles[2] - quartiles[0]) or column.high - column.low
        step = _round_step(width / STEPS)
        if not step:
            break
        rounded = {round(float(q) / step) * step for q in quartiles}
        # A step of 0.1 makes 0.30000000000000004.
        cuts = sorted({float(f"{cut:.12g}") for cut in rounded if column.low < cut <= column.high})
        if cuts:
            return tuple(cuts)
    return (float(column.values[column.n_distinct // 2]),)


def round_range(column: ColumnSummary) -> tuple[float, float]:
    """A range of round numbers that holds a column of numbers; [0, 1] if that does."""
    if column.low >= 0 and column.high <= 1:
        return 0.0, 1.0
    step = _round_step(column.high - column.low)
    if not step:
        return column.low, column.high
    low, high = math.floor(column.low / step) * step, math.ceil(column.high / step) * step
    rounded = float(f"{low:.12g}"), float(f"{high:.12g}")
    return min(rounded[0], column.low), max(rounded[1], column.high)


def _round_step(most: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most this; 0 if it is tiny."""
    power = 10.0 ** math.floor(math.log10(most)) if most > TINY else 0.0
    return max((factor * power for factor in (1, 2, 5) if factor * power <= most), default=0.0)


def _unusable(column: ColumnSummary, columns: Sequence[ColumnSummary]) -> str | None:
    if not column.name:
        return "the column has no name"
    if column.n_distinct < 2:
        return "the same value in all rows" if column.n_distinct else "no value in any row"
    if column.is_distinct and (column.numbers_rows or names.is_id(column.name)):
        return "numbers the rows" if column.numbers_rows else "an id, with a value for each row"
    if column.n_distinct > MOST_LEVELS:
        return _uncuttable(column)
    before = True
    for other in columns:
        if other is column:
            before = False
        elif other.n_distinct <= MOST_LEVELS and other.decides(column) and (before or not column.decides(other)):
            return f"{toml_text(other.name)} decides it"
    return None


def _uncuttable(column: ColumnSummary) -> str | None:
    """Why a column of too many values for levels cannot have cuts either."""
    if names.is_id(column.name):
        return NAMED_LIKE_ID
    if not column.is_numeric:
        return f"{column.n_distinct:,} distinct values, not all of them usual numbers"
    return None


def _candidate(column: ColumnSummary) -> Candidate:
    if column.n_distinct > MOST_LEVELS:
        cuts = round_cuts(column)
        bins = np.searchsorted(np.array(cuts), np.array(column.values, dtype=np.float64), side="right")
        codes = np.where(column.codes < 0, len(cuts) + 1, bins[column.codes])
        return Candidate(Binning(column.name, cuts=cuts, missing=column.n_missing > 0), codes, column.n_missing > 0)
    levels = tuple(map(level_of, column.values))
    gaps = (NO_VALUE,) if column.n_missing else ()
    codes = np.where(column.codes < 0, column.n_distinct, column.codes)
    return Candidate(Binning(column.name, (*levels, *gaps)), codes, missing_level=bool(gaps))


def _choose(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Add, while the domain stays small, what spreads the patients most evenly and is not known already.

    The gain of a feature is its entropy less what it shares with the one that tells most of it (Peng, Long & Ding 2005,
    without the outcome: a choice that looked at it would make every later estimate too good), for each bit that
    its levels add to the domain.
    """
    gains = [_entropy(candidate.codes, candidate.size) for candidate in candidates]
    shared = [0.0] * len(candidates)
    chosen: list[int] = []
    room = float(MOST_RECORDS)
    while True:
        fitting = [i for i, candidate in enumerate(candidates) if i not in chosen and candidate.size <= room]
        if not fitting:
            return [candidates[i] for i in chosen]
        # Ties go to the first in the file.
        best = max(fitting, key=lambda i: (round((gains[i] - shared[i]) / math.log2(candidates[i].size), 9), -i))
        chosen.append(best)
        room /= candidates[best].size
        for i in fitting:
            shared[i] = max(shared[i], _shared(candidates[best], candidates[i]))


def _shared(one: Candidate, other: Candidate) -> float:
    """Mutual information in bits."""
    together = _entropy(one.codes * other.size + other.codes, one.size * other.size)
    return _entropy(one.codes, one.size) + _entropy(other.codes, other.size) - together


def _entropy(codes: IntArray, size: int) -> float:
    shares = np.bincount(codes, minlength=size) / len(codes)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum())

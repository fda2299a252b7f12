"""Columns as features of a study: levels as they are, numbers cut at about their quartiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envs.records import Feature
from policies.arrays import IntArray
from policies.levels import NO_VALUE, level_of
from policysim.logs.binning import binned
from policysim.logs.column_summary import ColumnSummary, is_id

# Patients of each arm with each level; levels of numbers are merged until there are so many.
FEWEST_PATIENTS = 20
# Numbers of more distinct values are cut at about their quartiles, and words of more are no levels.
MOST_NUMBERS, MOST_WORDS = 5, 50
# Distinct rounded cuts are this part of the middle half's width apart, at most.
STEPS = 3
# Spreads are not rounded below this.
TINY = 1e-200


@dataclass(frozen=True, eq=False)
class Candidate:
    """A column as a feature: its declaration, how many patients have each level, and where those are few."""

    feature: Feature
    counts: Sequence[int]
    few: str


def why_no_feature(column: ColumnSummary, treatment: ColumnSummary) -> str:
    """Why a column can be no feature; "" if it can."""
    reasons = {
        "has the same value in all rows": column.n_distinct < 2,
        "numbers the rows": column.numbers_rows and bool(np.all(np.diff(column.codes) > 0)),
        "is an id: each patient has another one": column.is_id and (is_id(column.name) or not column.is_numeric),
        f"is no feature yet: {column.remark()}; write numbers, or bins as words": column.is_mixed,
        f"has {column.n_distinct:,} different words, at most {MOST_WORDS} can be levels": (
            not column.is_numeric and column.n_distinct > MOST_WORDS
        ),
        "decides the treatment: all patients with one value of it have the same": column.decides(treatment),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def declare(column: ColumnSummary, treatment: ColumnSummary, *, missing: bool) -> Candidate:
    """A column by levels; or by cuts, that leave enough patients of each arm between them if any do.

    `missing` says whether its missing values are a level.
    """
    cuts: list[float] = []
    if column.is_numeric:
        whole = list(map(float, column.values[1:]))
        cuts = list(whole) if column.n_distinct <= MOST_NUMBERS else round_cuts(column)
        # The bin with the fewest patients of an arm joins its smaller neighbour; at least one cut is left.
        while len(cuts) > 1 and (table := by_arm(column, cuts, treatment)[:-1]).min() < FEWEST_PATIENTS:
            worst = int(table.min(axis=1).argmin())
            sizes = [math.inf, *table.sum(axis=1).tolist(), math.inf]
            del cuts[worst - 1 if sizes[worst] <= sizes[worst + 2] else worst]
        # Levels as they are, where none were merged.
        cuts = [] if cuts == whole and column.n_distinct <= MOST_NUMBERS else cuts
    levels = (*map(level_of, column.values), *([NO_VALUE] if missing else []))
    feature = binned(column.name, cuts, missing=missing) if cuts else Feature(column.name, levels)
    table = by_arm(column, cuts, treatment)[: len(feature.levels)]
    worst = int(table.min(axis=1).argmin())
    few = f"an arm has {table[worst].min()} patients with {feature.levels[worst]}"
    return Candidate(feature, table.sum(axis=1).tolist(), few if table.min() < FEWEST_PATIENTS else "")


def by_arm(column: ColumnSummary, cuts: Sequence[float], treatment: ColumnSummary) -> IntArray:
    """Patients of each bin (each value, without cuts), and without a value, in each arm, (n_bins + 1, n_arms)."""
    bins = np.arange(column.n_distinct)
    if cuts:
        bins = np.searchsorted(np.array(cuts), np.array(column.values, dtype=np.float64), side="right")
    known = treatment.codes >= 0
    codes = np.where(column.codes < 0, bins[-1] + 1, bins[column.codes])[known]
    table = np.zeros((int(bins[-1]) + 2, treatment.n_distinct), dtype=np.intp)
    np.add.at(table, (codes, treatment.codes[known]), 1)
    return table


def round_cuts(column: ColumnSummary) -> list[float]:
    """About the quartiles of a column of numbers, rounded; the commonest value if most rows have it."""
    quartiles = np.quantile(np.repeat(np.array(column.values, dtype=np.float64), column.counts), [0.25, 0.5, 0.75])
    most = float(quartiles[2] - quartiles[0]) / STEPS
    if most <= TINY:
        return [float(column.values[max(int(column.counts.argmax()), 1)])]
    power = 10.0 ** math.floor(math.log10(most))
    step = next((factor * power for factor in (5, 2) if factor * power <= most), power)
    # A step of 0.1 makes 0.30000000000000004.
    rounded = {float(f"{round(float(q) / step) * step:.12g}") for q in quartiles}
    low, high = float(column.values[0]), float(column.values[-1])
    return sorted(cut for cut in rounded if low < cut <= high) or [float(quartiles[1])]

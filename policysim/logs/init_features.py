"""Columns as features of a study: levels as they are, numbers cut at about their quartiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from policies.levels import NO_VALUE, level_of
from policysim.logs.column_names import says
from policysim.logs.column_summary import ColumnSummary

# So many bins at most, of which each has about so many patients of the smallest arm.
MOST_BINS, FEWEST_PATIENTS = 4, 20
# Numbers of more distinct values are cut, and words of more are no levels.
MOST_NUMBERS, MOST_LEVELS = 5, 50
# Cuts are rounded to steps of at most this part of the middle half's width; narrower halves are not rounded.
STEPS, TINY = 3, 1e-200


def is_feature(column: ColumnSummary) -> bool:
    """Whether a column can be a feature: several values, neither ids nor too many words."""
    numbers_rows = column.numbers_rows and bool(np.all(np.diff(column.codes) > 0))
    is_id = column.is_id and (says(column.name, "id") or not column.is_numeric)
    few = column.is_numeric or (column.n_distinct <= MOST_LEVELS and not column.is_mixed)
    return column.n_distinct > 1 and few and not numbers_rows and not is_id


def declare(column: ColumnSummary, treatment: ColumnSummary, *, missing: bool) -> dict[str, Any]:
    """A column as a study declares it: by levels, or cut at its quartiles; in small trials at thirds or the median.

    `missing` says whether its missing values are a level.
    """
    if not column.is_numeric or column.n_distinct <= MOST_NUMBERS:
        return {"levels": [*map(level_of, column.values), *([NO_VALUE] if missing else [])]}
    n_bins = min(MOST_BINS, max(2, int(treatment.counts.min()) // FEWEST_PATIENTS))
    return {"cuts": round_cuts(column, n_bins), **({"missing": True} if missing else {})}


def round_cuts(column: ColumnSummary, n_bins: int = MOST_BINS) -> list[float]:
    """About the quantiles between so many bins, rounded; the second value if most rows have the lowest."""
    numbers = column.numbers[column.codes >= 0]
    cuts = np.quantile(numbers, np.arange(1, n_bins) / n_bins)
    widest = float(np.subtract(*np.quantile(numbers, [0.75, 0.25]))) / STEPS
    if widest > TINY:
        power = 10.0 ** math.floor(math.log10(widest))
        step = max((factor * power for factor in (1, 2, 5) if factor * power <= widest), default=power)
        cuts = np.round(cuts / step) * step
    # A step of 0.1 makes 0.30000000000000004.
    distinct = sorted({float(f"{cut:.12g}") for cut in cuts.tolist()})
    return [cut for cut in distinct if numbers.min() < cut <= numbers.max()] or [float(column.values[1])]

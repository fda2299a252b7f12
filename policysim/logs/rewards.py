"""What came of each row's treatment: the weighted sum of its outcomes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from policies.arrays import FloatArray
from policysim.logs.bad_rows import BadRows
from policysim.logs.cells import BoolArray, missing, numbers
from policysim.logs.reading import LogTable
from policysim.logs.source import EXCLUDE, REFUSE, WORST, default_range

# Of a range's width: what a weighted sum may be outside it by rounding.
SLACK = 1e-12


def read_rewards(
    table: LogTable,
    weights: Mapping[str, float],
    utility_range: tuple[float, float] | None,
    policy: str,
    bad: BadRows,
) -> tuple[FloatArray, BoolArray, dict[str, FloatArray]]:
    """The weighted sum of outcomes; bad rows have one that is no finite number, or are outside the declared range.

    An outcome of weight 0 is read to be reported: it is no part of the sum, and may be missing.

    Parameters
    ----------
    utility_range : (low, high) or None
        None: not declared. Where it is the range of outcomes within [0, 1], each outcome must be within.
    policy : str
        What is done with rows that miss an outcome: "refuse" (bad rows), "exclude" (NaN), "worst" (the low end).

    Returns
    -------
    rewards : array, (n_rows,)
        NaN where one is missing and has no value instead.
    missing : array of bool, (n_rows,)
        Whether an outcome is missing.
    outcomes : dict of str to array, (n_rows,)
        Each outcome; NaN where it is missing.
    """
    absent = np.zeros(len(table), dtype=np.bool_)
    total: FloatArray = np.zeros(len(table))
    outcomes: dict[str, FloatArray] = {}
    unit = utility_range == default_range(weights)
    for column, weight in weights.items():
        values = numbers(table[column])
        gone = missing(table[column], np.isnan(values))
        wrong = ~np.isfinite(values) & ~gone
        bad.add_values(table, wrong, column, table[column], "must be a finite number")
        outcomes[column] = np.where(np.isfinite(values), values, np.nan)
        if weight == 0:
            continue
        if policy == REFUSE:
            bad.add(table, gone, column, lambda _: f'is missing: missing = "{EXCLUDE}" or "{WORST}" takes such rows')
        if unit:
            outside = np.isfinite(values) & ((values < 0) | (values > 1))
            bad.add_values(table, outside, column, table[column], "must be within [0, 1], or declare the range")
        absent |= gone
        total += weight * outcomes[column]
    if utility_range and not unit:
        _check_range(table, total, weights, utility_range, bad)
    if policy == WORST and utility_range:
        total[absent] = utility_range[0]
    return (np.clip(total, *utility_range) if utility_range else total), absent, outcomes


def _check_range(
    table: LogTable, rewards: FloatArray, weights: Mapping[str, float], ends: tuple[float, float], bad: BadRows
) -> None:
    low, high = ends
    slack = SLACK * (high - low)
    outside = (rewards < low - slack) | (rewards > high + slack)
    must = f"the reward must be within the declared range [{low:g}, {high:g}]"
    title = next(iter(weights)) if len(weights) == 1 else " + ".join(f"{w:g} {name}" for name, w in weights.items())
    bad.add(table, outside, title, lambda row: f"{must}, got {rewards[row]:g}")

"""Which treatment each row of a log got: from a column of treatments, or a column of 0 and 1 for each.

What came of each row's treatment: the weighted sum of its outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import FloatArray, IntArray
from policysim.files.bad_rows import MISSING, BadRows, DataError, level_key, level_of, sorted_keys
from policysim.files.data_table import BoolArray, DataTable, coded, codes_among, missing, numbers
from policysim.logs.log_source import EXCLUDE, REFUSE, WORST, default_range

# Of so many values that nobody has declared, some cannot be meant as treatments.
MOST_UNDECLARED = 100


@dataclass(frozen=True, eq=False)
class Taken:
    """The treatment of each row.

    Attributes
    ----------
    codes : array, (n_rows,)
        Positions in `names`.
    names : tuple of str
        All treatments, in the order of a policy's columns.
    """

    codes: IntArray
    names: tuple[str, ...]


def taken_in_column(table: DataTable, column: str, declared: Sequence[tuple[str, str]], bad: BadRows) -> Taken:
    """Treatments in one column, as declared (value and name) or else those that occur, sorted; others are bad rows."""
    if declared:
        known = {level_key(value): name for value, name in declared}
    else:
        positions, keys = coded(table[column])
        occurring = {keys[position] for position in np.unique(positions)} - {MISSING}
        if len(occurring) > MOST_UNDECLARED:
            raise DataError(
                f"{table.name}: {column}: has {len(occurring):,} distinct values: declare the treatments, or name "
                "another column"
            )
        known = {key: str(level_of(key)) for key in sorted_keys(occurring)}
    names = tuple(known.values())
    _refuse_one(table, column, names)
    codes = codes_among(table[column], list(known))
    values = [value for value, _ in declared] or list(names)
    bad.add_values(table, codes < 0, column, table[column].array, f"must be one of the treatments {', '.join(values)}")
    return Taken(codes, names)


def taken_one_hot(table: DataTable, columns: Mapping[str, str], bad: BadRows) -> Taken:
    """Treatments in columns of 0 and 1, by name; rows in which not exactly one is 1 are bad."""
    _refuse_one(table, "columns", tuple(columns))
    matrix = np.column_stack([numbers(table[column]) for column in columns])
    valid = np.isin(matrix, (0.0, 1.0))
    for position, column in enumerate(columns):
        bad.add_values(table, ~valid[:, position], column, table[column].array, "must be 0 or 1")
    sums = matrix.sum(axis=1)
    title = ", ".join(columns) if len(columns) <= 4 else f"{next(iter(columns))} ... {list(columns)[-1]}"
    bad.add(table, valid.all(axis=1) & (sums != 1), title, lambda row: f"must sum to 1, got a sum of {sums[row]:g}")
    return Taken(np.asarray(matrix.argmax(axis=1), dtype=np.intp), tuple(columns.values()))


def one_hot_columns(table: DataTable, declared: Sequence[tuple[str, str]], without: Sequence[str]) -> dict[str, str]:
    """Column and name of each treatment: those that are declared, else all columns but some."""
    names = [str(name) for name in table.frame.columns if name not in without]
    for column, _ in declared:
        if column not in names:
            raise DataError(f"{table.name}: {unknown('treatment', column, names)}")
    return dict(declared) if declared else {name: name for name in names}


def _refuse_one(table: DataTable, column: str, names: Sequence[str]) -> None:
    if len(names) < 2:
        only = f"only {names[0]!r} occurs" if names else "none occurs"
        raise DataError(f"{table.name}: {column}: a choice needs at least two treatments, {only}: declare them")


# Of a range's width: what a weighted sum may be outside it by rounding.
SLACK = 1e-12


def read_rewards(
    table: DataTable,
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
        bad.add_values(table, wrong, column, table[column].array, "must be a finite number")
        outcomes[column] = np.where(np.isfinite(values), values, np.nan)
        if weight == 0:
            continue
        if policy == REFUSE:
            bad.add(table, gone, column, lambda _: f'is missing: missing = "{EXCLUDE}" or "{WORST}" takes such rows')
        if unit:
            outside = np.isfinite(values) & ((values < 0) | (values > 1))
            bad.add_values(table, outside, column, table[column].array, "must be within [0, 1], or declare the range")
        absent |= gone
        total += weight * outcomes[column]
    if utility_range and not unit:
        _check_range(table, total, weights, utility_range, bad)
    if policy == WORST and utility_range:
        total[absent] = utility_range[0]
    return (np.clip(total, *utility_range) if utility_range else total), absent, outcomes


def _check_range(
    table: DataTable, rewards: FloatArray, weights: Mapping[str, float], ends: tuple[float, float], bad: BadRows
) -> None:
    low, high = ends
    slack = SLACK * (high - low)
    outside = (rewards < low - slack) | (rewards > high + slack)
    must = f"the reward must be within the declared range [{low:g}, {high:g}]"
    title = next(iter(weights)) if len(weights) == 1 else " + ".join(f"{w:g} {name}" for name, w in weights.items())
    bad.add(table, outside, title, lambda row: f"{must}, got {rewards[row]:g}")

"""What each row of a log says came of it: outcomes, as numbers or by the codes of a study, and their weighted sum."""

from __future__ import annotations

import numpy as np

from envs.toml_reader import FINITE
from policies.arrays import BoolArray, FloatArray
from policies.levels import MISSING, level_of, sorted_keys
from policysim.files.bad_rows import BadRows
from policysim.files.data_table import DataTable, coded, meanings, missing, numbers
from policysim.logs.log_source import MISSING_OUTCOME, NUMBER_WANTED, REFUSE, WORST, LogColumns, outcome_formula
from policysim.logs.toml_text import toml_text

# Of a range's width: what a weighted sum may be outside it by rounding.
SLACK = 1e-12
# More values than this beside 0 and 1, or more words, are no codes.
MOST_OTHERS, MOST_WORDS = 3, 12
INFINITE = {"inf", "-inf"}


def read_rewards(
    table: DataTable, columns: LogColumns, bad: BadRows
) -> tuple[FloatArray, BoolArray, dict[str, FloatArray]]:
    """The weighted sum of outcomes; bad rows have one that is no number or code, or are outside the declared range.

    An outcome of weight 0 is read to be reported: it is no part of the sum, and may be missing. What is done with rows
    that miss another, `columns.missing` says: "refuse" (bad rows), "exclude" (NaN), "worst" (the low end of the range).

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
    ends = columns.utility_range
    unit = ends == columns.default_range
    for column, weight in columns.outcome.items():
        outcomes[column], gone = _outcome(table, columns, column, bad)
        if weight == 0:
            continue
        if columns.missing == REFUSE:
            bad.add(table, gone, column, lambda _: MISSING_OUTCOME)
        if unit and column not in columns.codes:
            _check_unit(table, columns, column, outcomes[column], bad)
        absent |= gone
        total += weight * outcomes[column]
    if ends and not unit:
        _check_range(table, total, columns, ends, bad)
    if columns.missing == WORST and ends:
        total[absent] = ends[0]
    return (np.clip(total, *ends) if ends else total), absent, outcomes


def _outcome(table: DataTable, columns: LogColumns, column: str, bad: BadRows) -> tuple[FloatArray, BoolArray]:
    """The numbers of an outcome, NaN where there is none, and where it is missing; other cells are bad."""
    codes, cells = columns.codes.get(column), table[column]
    values = meanings(cells, codes) if codes else numbers(cells)
    gone = missing(cells, np.isnan(values))
    wrong = ~(np.abs(values) <= FINITE) & ~gone
    if codes:
        bad.add_values(table, wrong, column, cells.array, f"must be one of {', '.join(codes)}")
    elif wrong.any():
        _refuse_words(table, column, wrong, bool((wrong | gone).all()), bad)
    return np.where(np.isfinite(values), values, np.nan), gone


def _refuse_words(table: DataTable, column: str, wrong: BoolArray, throughout: bool, bad: BadRows) -> None:
    """Cells that are no number: in one line where they are a few words `throughout`, that need a utility each."""
    words = [key for key in coded(table[column])[1] if key != MISSING]
    name = toml_text(column)
    are_words = all(isinstance(key, str) and key not in INFINITE for key in words)
    if throughout and bad.show and are_words and len(words) <= MOST_WORDS:
        codes = ", ".join(f"{toml_text(str(level_of(key)))} = ..." for key in sorted_keys(words))
        first = wrong & (np.arange(len(wrong)) == np.argmax(wrong))
        instead = f"is words: give each its utility in [data], outcome = {{ {name} = {{ {codes} }} }}"
        bad.add(table, first, column, lambda _: instead)
        return
    hint = f'; a value that means unknown is named in [data], such as unknown = {{ {name} = ["?"] }}'
    bad.add_values(table, wrong, column, table[column].array, NUMBER_WANTED, hint=hint)


def _check_unit(table: DataTable, columns: LogColumns, column: str, values: FloatArray, bad: BadRows) -> None:
    """Without a declared range, outcomes are within [0, 1]: one line for others, or for each code beside 0 and 1."""
    outside = np.isfinite(values) & ((values < 0) | (values > 1))
    if not outside.any():
        return
    name, others = toml_text(column), np.unique(values[outside])
    inside = values[np.isfinite(values) & ~outside]
    are_codes = len(others) <= MOST_OTHERS and bool((others == np.round(others)).all())
    are_codes = are_codes and bool(np.isin(inside, (0, 1)).all())
    meant = ", ".join(f"{value:g} = ..." for value in np.unique(values[np.isfinite(values)])) if are_codes else ""
    for other in others if are_codes else [None]:
        rows = outside if other is None else values == other
        hint = ""
        if other is None:
            hint = f"; range = [LOWEST, HIGHEST] in [data] is that of the utility, {outcome_formula(columns)}"
        elif bad.show:
            hint = (
                f"; in [data] write unknown = {{ {name} = [{other:g}] }} if it means unknown, outcome = {{ {name} = "
                f"{{ {meant} }} }} with the utility of each value if these are codes, or else range = [LOWEST, HIGHEST]"
            )
        must = "must be within [0, 1], or declare the range"
        bad.add_values(table, rows, column, table[column].array, must, hint=hint, once=True)


def _check_range(
    table: DataTable, rewards: FloatArray, columns: LogColumns, ends: tuple[float, float], bad: BadRows
) -> None:
    low, high = ends
    slack = SLACK * (high - low)
    outside = (rewards < low - slack) | (rewards > high + slack)
    must = f"the reward must be within the declared range [{low:g}, {high:g}]"
    weights = columns.outcome
    title = next(iter(weights)) if len(weights) == 1 else " + ".join(f"{w:g} {name}" for name, w in weights.items())
    bad.add(table, outside, title, lambda row: f"{must}, got {rewards[row]:g}" if bad.show else must)

"""What came of each row's treatment: outcomes, as numbers or by the codes of a study, and their weighted sum.

It is also here which columns can be the outcome, and which last row is no patient.
A patient's id, what follows from a feature, or a time of follow-up beside a column of events cannot: a comparison on
such a column runs like any other and means nothing, so that it is refused. Who has looked at a column says so in the
study, `outcome_checked = ["column"]`. A last row of totals, as spreadsheets write it, is no patient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from pandas.api.types import is_numeric_dtype

from envs.toml_lines import line_numbers
from envs.toml_reader import FINITE, InputFileError, one_line
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import MISSING, level_of, sorted_keys
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded, meanings, missing, numbers
from policysim.logs.column_names import is_follow_up, is_id, says
from policysim.logs.column_summary import ColumnSummary, summarise
from policysim.logs.log_source import (
    MISSING_OUTCOME,
    NUMBER_WANTED,
    REFUSE,
    WORST,
    LogColumns,
    LogSource,
    outcome_formula,
)
from policysim.logs.log_tables import LogTables
from policysim.logs.toml_text import toml_text, toml_value

# So many distinct whole numbers without a gap are a count of the rows.
FEWEST_IDS = 20
# So many rows of the rarer value show that a feature decides an outcome.
FEWEST_ROWS = 10
# What spreadsheets write in front of a row of sums.
TOTALS = ("total", "totals", "grand total", "subtotal", "sum", "mean", "average", "median")
# In fewer rows, or where one patient has half of it, a number may be the sum of others by chance.
FEWEST_SUMMED, MOST_OF_SUM = 5, 0.5
TAKE_OUT = "take it out of the file"
NO_PATIENT = f"a row of totals is no patient: {TAKE_OUT}"
# So many rows show of nearly all columns that the last is no sum.
FIRST_ROWS = 100
# Of a sum: what spreadsheets round.
ROUNDED = 1e-6


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
    cells, must = table[column].array, "must be within [0, 1], or declare the range"
    name, finite, codes = toml_text(column), values[np.isfinite(values)], np.unique(values[outside])
    are_whole = len(codes) <= MOST_OTHERS and bool((codes == np.round(codes)).all())
    if not (are_whole and np.isin(finite[(finite >= 0) & (finite <= 1)], (0, 1)).all()):
        hint = f"; range = [LOWEST, HIGHEST] in [data] is that of the utility, {outcome_formula(columns)}"
        bad.add_values(table, outside, column, cells, must, hint=hint, once=True)
        return
    utilities = ", ".join(f"{value:g} = ..." for value in np.unique(finite))
    for code in codes:
        hint = (
            f"; in [data] write unknown = {{ {name} = [{code:g}] }} if it means unknown, outcome = {{ {name} = "
            f"{{ {utilities} }} }} with the utility of each value if these are codes, or else range = [LOWEST, HIGHEST]"
        )
        bad.add_values(table, values == code, column, cells, must, hint=hint if bad.show else "", once=True)


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


def check_outcomes(source: LogSource, tables: LogTables) -> None:
    """Refuse a study's outcomes that cannot be any.

    Outcomes of weight 0 are only shown, and those that the study lists as checked are taken as they are.

    Raises
    ------
    InputFileError
        One line for each: the study's file and line, the column, the reason, and what to write instead.
    """
    weighed = [name for name, weight in source.outcome.items() if weight and name in tables.outcomes.columns]
    mistakes = []
    for name in [name for name in weighed if name not in source.outcome_checked]:
        reason = _wrong(summarise(tables.outcomes[name], name), tables, source)
        if reason:
            checked = toml_value([*source.outcome_checked, name])
            mistakes.append(
                f"{place_in_study(source, 'outcome', name)}data.outcome: {toml_text(name)} {reason}; if it is the "
                f"outcome anyway, write outcome_checked = {checked} in [data]"
            )
    if mistakes:
        raise InputFileError("\n".join(map(one_line, mistakes)))


def refuse_constant(source: LogSource, rewards: FloatArray) -> None:
    """InputFileError for an outcome that is the same in all rows, (n_rows,), NaN where there is none."""
    known = rewards[~np.isnan(rewards)]
    if not source.follow_up and len(known) > 1 and np.ptp(known) == 0:
        raise InputFileError(
            f"{place_in_study(source, 'outcome')}data.outcome: {outcome_formula(source)} is the same in all "
            "rows with an outcome, so that there is nothing to compare"
        )


def place_in_study(source: LogSource, *key: str) -> str:
    """Where a key of [data] stands, as a message begins: "trial.toml:7: "; "" without a file."""
    if source.study is None:
        return ""
    lines = line_numbers(source.study.read_text(encoding="utf-8-sig"))
    there: tuple[str | int, ...] = ("data", *key)
    while there and there not in lines:
        there = there[:-1]
    return f"{source.study.as_posix()}:{lines.get(there, 1)}: "


def _wrong(outcome: ColumnSummary, tables: LogTables, source: LogSource) -> str | None:
    """Why a column cannot be the outcome of a study."""
    if outcome.n_rows >= FEWEST_IDS and (outcome.numbers_rows or (outcome.is_id and is_id(outcome.name))):
        return "cannot be the outcome: it is an id, with a value of its own for each patient; name a column of results"
    table = tables.outcomes
    sounding = [name for name in table.columns if says(name, "status") and name not in source.features]
    statuses = [name for name in sounding if summarise(table[name], name).n_distinct == 2]
    if outcome.n_distinct > 2 and is_follow_up(outcome.name) and statuses:
        return (
            "cannot be the outcome: it is a time of follow-up, which ends early for censored patients (by "
            f"{', '.join(map(toml_text, statuses))}); name time, event and horizon instead"
        )
    if tables.are_three:  # of which rows are not matched yet
        return None
    kinds = dict.fromkeys(source.adjust_for, "column") | dict.fromkeys(source.features, "feature")
    for name, kind in kinds.items():
        if name in tables.features.columns and decides_outcome(summarise(tables.features[name], name), outcome):
            where = "" if kind == "feature" else " of adjust_for"
            return (
                f"cannot be the outcome: the {kind} {toml_text(name)}{where} decides it, so treatment cannot change "
                "it: did it come after treatment? Leave it out"
            )
    return None


def decides_outcome(feature: ColumnSummary, outcome: ColumnSummary) -> bool:
    """Whether an outcome follows from a feature: numbers rise or fall together, each word goes with one value."""
    known = (feature.codes >= 0) & (outcome.codes >= 0)
    before, after = feature.codes[known], outcome.codes[known]
    counts = np.bincount(after, minlength=outcome.n_distinct)
    if outcome.n_distinct < 2 or len(after) - counts.max() < FEWEST_ROWS or not goes_with_one(before, after):
        return False
    if feature.is_numeric:
        ordered = np.diff(after[np.argsort(before, kind="stable")])
        return bool((ordered >= 0).all() or (ordered <= 0).all())
    of_each = np.bincount(before)
    return int(of_each[of_each > 0].min()) >= FEWEST_ROWS


def goes_with_one(before: IntArray, after: IntArray) -> bool:
    """Whether each value of a column goes with one value of another, by the codes of both, -1 where it is missing."""
    known = (before >= 0) & (after >= 0)
    before, after = before[known], after[known]
    last = np.zeros(before.max(initial=0) + 1, dtype=np.intp)
    last[before] = after
    return bool((last[before] == after).all())


def refuse_totals(source: LogSource, table: DataTable) -> None:
    """DataError for a row of totals or means: one that says so, or a last one whose outcome is the others' sum."""
    _refuse_named(source, table)
    end = len(table) - 1
    refuse_total(source, table.part(0, min(end, FIRST_ROWS)), table.part(end, end + 1), lambda: [table])


def refuse_total(
    source: LogSource, first: DataTable, last: DataTable, parts: Callable[[], Iterable[DataTable]]
) -> None:
    """The same of a table that is read in parts, of which the last row is looked at.

    Parameters
    ----------
    source : LogSource
    first, last : DataTable
        Some rows above the last, and the last.
    parts : callable
        Returns all rows, the last among them; called only if the first ones leave it possible that the last is a total.
    """
    if len(first) < FEWEST_SUMMED:
        return
    _refuse_named(source, last)
    for name in [name for name in source.outcome if name not in source.outcome_checked and name not in source.codes]:
        if name in last.columns and _is_total(name, first, last, parts):
            checked = toml_value([*source.outcome_checked, name])
            raise DataError(
                f"{last.places([0])[0]}: {name}: is the sum of the rows above: {NO_PATIENT}; if it is a patient's, "
                f"write outcome_checked = {checked} in [data]"
            )


def _refuse_named(source: LogSource, table: DataTable) -> None:
    """DataError for a row that is called a total by its id, or alone by its treatment or a feature."""
    words = dict.fromkeys((source.id, source.treatment, *source.joined, *source.features))
    for name in [name for name in words if name in table.columns and not is_numeric_dtype(table[name])]:
        declared = [value for value, _ in source.treatments] if name == source.treatment else []
        declared += [str(level) for level in source.features[name].levels] if name in source.features else []
        text = table[name].astype("string").str.strip()
        rows = np.flatnonzero(text.str.casefold().isin(TOTALS) & ~text.isin(declared))
        if len(rows) == 1 or (len(rows) and name == source.id):
            raise DataError(f"{table.places([rows[0]])[0]}: {name}: {text.iloc[rows[0]]!r}: {NO_PATIENT}")


def _is_total(column: str, first: DataTable, last: DataTable, parts: Callable[[], Iterable[DataTable]]) -> bool:
    """Whether the last row is the sum of the others in a column, more than twice as large as each of them."""
    end = float(numbers(last[column])[0])
    large = MOST_OF_SUM * abs(end)
    if not np.abs(np.nan_to_num(numbers(first[column]))).max() < large:
        return False  # as of nearly all columns, without a look at all rows
    total, n_large = -end, -1  # the last row is no part of its sum
    for part in parts():
        values = np.nan_to_num(numbers(part[column]))
        total, n_large = total + values.sum(), n_large + int((np.abs(values) >= large).sum())
    return n_large == 0 and bool(abs(abs(total) - abs(end)) <= ROUNDED * abs(end))

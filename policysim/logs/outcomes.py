"""Which columns can be the outcome of a trial.

A patient's id, what was known before treatment, or a time of follow-up cannot: a comparison on such a column runs like
any other and means nothing, so that it is refused, by names and by values. Both can be wrong about a column: who has
looked at it says so in the study, `outcome_checked = ["column"]`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from envs.toml_lines import line_numbers
from envs.toml_reader import InputFileError, one_line
from policysim.logs.column_summary import (
    DIGITS,
    ColumnSummary,
    is_after,
    is_baseline,
    is_before,
    is_fixed,
    is_id,
    is_status,
    is_time,
    is_time_to_event,
    summarise,
    words,
)
from policysim.logs.log_source import LogSource
from policysim.logs.log_tables import LogTables
from policysim.logs.toml_text import toml_list, toml_text

# So many distinct whole numbers without a gap are a count of the rows.
FEWEST_IDS = 20
# So many rows of the rarer value show that a feature decides an outcome.
FEWEST_ROWS = 10


def check_outcomes(source: LogSource, tables: LogTables) -> None:
    """Refuse a study's outcomes that cannot be any.

    Outcomes of weight 0 are only shown, and those that the study lists as checked are taken as they are.

    Raises
    ------
    InputFileError
        One line for each: the study's file and line, the column, the reason, and what to write instead.
    """
    weighed = [name for name, weight in source.outcome.items() if weight and name in tables.outcomes.columns]
    asked = [name for name in weighed if name not in source.outcome_checked]
    found = []
    for name in asked:
        reason = _wrong(summarise(tables.outcomes[name], name), tables, source)
        if reason:
            checked = toml_list([*source.outcome_checked, name])
            found.append(
                f"{place_in_study(source, 'outcome', name)}data.outcome: {toml_text(name)} {reason}; if it is the "
                f"outcome anyway, write outcome_checked = {checked} in [data]"
            )
    if found:
        raise InputFileError("\n".join(map(one_line, found)))


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
    stem = outcome.name.rstrip(DIGITS)
    every = [name for table in tables.by_role.values() for name in table.columns if name.rstrip(DIGITS) == stem]
    # Where the later measurement counts, too, the outcome is the change from the earlier one, or both of them.
    again = {first: then for first, then in measured_again(every).items() if not source.outcome.get(then)}
    table = tables.outcomes
    sounding = [name for name in table.columns if is_status(name) and name not in source.features]
    statuses = status_columns([summarise(table[name], name) for name in sounding])
    reason = cannot_be_outcome(outcome, statuses, again)
    if reason or tables.are_three:  # of which rows are not matched yet
        return reason
    for name in [name for name in source.features if name in tables.features.columns]:
        if decides_outcome(summarise(tables.features[name], name), outcome):
            return f"cannot be the outcome: the feature {toml_text(name)} decides it, so treatment cannot change it"
    return None


def cannot_be_outcome(column: ColumnSummary, statuses: Sequence[str], again: Mapping[str, str]) -> str | None:
    """Why a column cannot be an outcome, by its own name and values, and by the names of others.

    `statuses` are columns that mark censoring; `again` are those of `measured_again`.
    """
    name = column.name
    # Whole numbers without a gap, each once, number the rows.
    each_once = column.n_rows >= FEWEST_IDS and column.n_distinct == column.n_rows and column.is_whole
    counts_rows = each_once and column.high - column.low == column.n_rows - 1
    if counts_rows or (is_id(name) and column.n_distinct > 2):
        return "cannot be the outcome: it is an id, with a value of its own for each patient; name a column of results"
    if is_fixed(name) or is_baseline(name):
        return (
            "cannot be the outcome: by its name it was known before treatment, which cannot change it; name a column "
            "of results"
        )
    if name in again:
        return (
            f"cannot be the outcome: {toml_text(again[name])} is probably a later measurement of it, so it is from "
            "before treatment, which cannot change it; name a column of results"
        )
    if column.n_distinct > 2 and (is_time_to_event(name) or (is_time(name) and statuses)):
        censored = f" (by {', '.join(map(toml_text, statuses))})" if statuses else ""
        return (
            f"cannot be the outcome: it is a time of follow-up, which ends early for censored patients{censored}; "
            "name a column of 0 and 1 instead, such as free of the event at one year"
        )
    return None


# Longer numbers at the end of a name number no measurements.
MOST_DIGITS = 9


class NumberedNames:
    """The names of a table's columns, and which of them may be measurements of the same thing, by their numbers.

    What each name is asked takes no longer where there are many.

    Parameters
    ----------
    columns : iterable of str
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self.names = dict.fromkeys(columns)
        # By the stem, the name with the smallest number behind it; how many names go on, with a number, from another.
        self._first: dict[str, tuple[int, str]] = {}
        self._goes_on: Counter[str] = Counter()
        for name in self.names:
            stem = name.rstrip(DIGITS)
            number = name[len(stem) :]
            self._goes_on.update(name[:-length] for length in range(1, min(len(number), MOST_DIGITS) + 1))
            if 0 < len(number) <= MOST_DIGITS and int(number) <= self._first.get(stem, (math.inf,))[0]:
                self._first[stem] = int(number), name

    def start_of(self, name: str) -> str | None:
        """The column of which this one is a later measurement beyond doubt: the same stem, and 0 for its number.

        cd420 is cd4 in week 20 if there is a cd40. re75 beside re74 is no such: both may have been measured before.

        Examples
        --------
        >>> numbered = NumberedNames(["cd40", "cd420", "x0", "x1"])
        >>> [numbered.start_of(name) for name in ("cd40", "cd420", "x1")]
        [None, 'cd40', None]
        """
        digits = len(name) - len(name.rstrip(DIGITS))
        for length in range(1, digits + 1):
            stem, number = name[:-length], name[-length:]
            if f"{stem}0" in self.names and int(number) > 0 and len("".join(words(stem))) > 1:
                return f"{stem}0"
        return None

    def earlier_measurement(self, name: str) -> str | None:
        """The column of which this one may be a later measurement: the same stem with a smaller number.

        That of `start_of`; else, where nothing ends in 0, the smallest number is the first. Stems of one letter (x1,
        x2) only number the columns. Which of them were measured after treatment, the numbers do not say.

        Examples
        --------
        >>> numbered = NumberedNames(["cd40", "cd420", "cd80", "cd820", "bp_1", "bp_12", "x1", "x2"])
        >>> [numbered.earlier_measurement(name) for name in numbered.names]
        [None, 'cd40', None, 'cd80', None, 'bp_1', None, None]
        """
        start = self.start_of(name)
        if start:
            return start
        stem = name.rstrip(DIGITS)
        # It, or what it ends in, is a first measurement: cd80 in a table with cd820.
        begins = name.endswith("0") and self._goes_on[name[:-1]] > 1
        if begins or not self.has_smaller(name) or len("".join(words(stem))) < 2:
            return None
        return self._first[stem][1]

    def has_smaller(self, name: str) -> bool:
        """Whether a smaller number stands behind the same stem."""
        stem = name.rstrip(DIGITS)
        return stem != name and self._first.get(stem, (math.inf,))[0] < int(name[len(stem) :])


def measured_again(columns: Iterable[str]) -> dict[str, str]:
    """Columns that were probably measured before treatment, each with a later measurement of it.

    These are the pairs of `NumberedNames.earlier_measurement`, the last of each, but for firsts that came after
    treatment by their names: death28 beside death90, pain_day7 beside pain_day28, score10 between score1 and score12.

    Examples
    --------
    >>> measured_again(["cd40", "cd420", "bp_1", "bp_2", "death28", "death90", "pain_week4", "pain_week12"])
    {'cd40': 'cd420', 'bp_1': 'bp_2'}
    """
    every = NumberedNames(columns)
    firsts = {name: every.earlier_measurement(name) for name in every.names}
    pairs = {first: name for name, first in firsts.items() if first}
    return {
        first: then
        for first, then in pairs.items()
        # Nor such with a smaller number before it in a series; cd80 and cd820, of two lengths, are none.
        if not firsts[first] and not is_after(first) and not (len(first) == len(then) and every.has_smaller(first))
    }


def status_columns(columns: Sequence[ColumnSummary]) -> list[str]:
    """Columns of two values that mark events and censoring, by their names."""
    return [c.name for c in columns if c.n_distinct == 2 and is_status(c.name) and not is_before(c.name)]


def decides_outcome(feature: ColumnSummary, outcome: ColumnSummary) -> bool:
    """Whether an outcome follows from a feature: numbers rise or fall together, each word goes with one value."""
    known = (feature.codes >= 0) & (outcome.codes >= 0)
    before, after = feature.codes[known], outcome.codes[known]
    counts = np.bincount(after, minlength=outcome.n_distinct)
    if outcome.n_distinct < 2 or len(after) - counts.max() < FEWEST_ROWS:
        return False
    of_each = np.bincount(before)
    if len(np.unique(before * outcome.n_distinct + after)) > np.count_nonzero(of_each):
        return False
    if feature.is_numeric:
        ordered = np.diff(after[np.argsort(before, kind="stable")])
        return bool((ordered >= 0).all() or (ordered <= 0).all())
    return int(of_each[of_each > 0].min()) >= FEWEST_ROWS

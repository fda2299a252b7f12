"""Which columns can be the outcome of a trial, and which is.

A patient's id, what was known before treatment, or a time of follow-up cannot: a comparison on such a column runs like
any other and means nothing, so that it is refused, by names and by values. Both can be wrong about a column: who has
looked at it says so in the study, `outcome_checked = ["column"]`. Where follow-up may end early, what counts is a time
to which enough patients are followed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from envs.toml_lines import line_numbers
from envs.toml_reader import InputFileError, one_line
from policysim.files.bad_rows import DataError, level_of
from policysim.files.whole_folders import toml_list, toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import NumberedNames, listed
from policysim.logs.guess_columns import ColumnSummary, summarise
from policysim.logs.log_source import LogSource
from policysim.logs.log_tables import LogTables
from policysim.question.protocol import UsageError

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
                f"outcome all the same, write outcome_checked = {checked} in [data]"
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
    stem = outcome.name.rstrip(names.DIGITS)
    every = [name for table in tables.by_role.values() for name in table.columns if name.rstrip(names.DIGITS) == stem]
    # Where the later measurement counts, too, the outcome is the change from the earlier one, or both of them.
    again = {first: then for first, then in measured_again(every).items() if not source.outcome.get(then)}
    table = tables.outcomes
    sounding = [name for name in table.columns if names.is_status(name) and name not in source.features]
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

    `statuses` are columns that tell censoring; `again` are those of `measured_again`.
    """
    name = column.name
    # Whole numbers without a gap, each once, number the rows.
    each_once = column.n_rows >= FEWEST_IDS and column.n_distinct == column.n_rows and column.is_whole
    counts_rows = each_once and column.high - column.low == column.n_rows - 1
    if counts_rows or (names.is_id(name) and column.n_distinct > 2):
        return "cannot be the outcome: it is an id, with a value of its own for each patient; name a column of results"
    if names.is_fixed(name) or names.is_baseline(name):
        return (
            "cannot be the outcome: by its name it was known before treatment, which cannot change it; name a column "
            "of results"
        )
    if name in again:
        return (
            f"cannot be the outcome: {toml_text(again[name])} is probably a later measurement of it, so that it was "
            "known before treatment, which cannot change it; name a column of results"
        )
    if column.n_distinct > 2 and (names.is_time_to_event(name) or (names.is_time(name) and statuses)):
        tells = f" ({', '.join(map(toml_text, statuses))} tells whose)" if statuses else ""
        return (
            f"cannot be the outcome: it is a time of follow-up, which ends early for patients who are censored{tells}; "
            "name a column of 0 and 1 instead, such as free of the event at one year"
        )
    return None


def measured_again(columns: Iterable[str]) -> dict[str, str]:
    """Columns that were probably measured before treatment, each with a later measurement of it.

    These are the pairs of `column_names.earlier_measurement`, the last of each, but for firsts that came after
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
        if not firsts[first]
        and not names.is_after(first)
        and not (len(first) == len(then) and every.has_smaller(first))
    }


def status_columns(columns: Sequence[ColumnSummary]) -> list[str]:
    """Columns of two values that tell events from censoring, by their names."""
    return [c.name for c in columns if c.n_distinct == 2 and names.is_status(c.name) and not names.is_before(c.name)]


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


# Of the patients of each arm so many are still followed at the horizon: this share, and this number.
AT_RISK, FEWEST_AT_RISK = 0.1, 10
KNOWN = (*names.BENEFIT, *names.HARM)


@dataclass(frozen=True, eq=False)
class FollowedUp:
    """The outcome "free of the event at the horizon".

    Attributes
    ----------
    time, event : ColumnSummary
        The time to the event, or to the end of follow-up; 1 or 0 for which of the two.
    horizon : float
        In the unit of `time`.
    at_risk : tuple of int
        For each treatment, how many of its patients are followed so long without an event.
    """

    time: ColumnSummary
    event: ColumnSummary
    horizon: float
    at_risk: tuple[int, ...]


def find_outcome(
    columns: Sequence[ColumnSummary],
    treatment: ColumnSummary | None,
    named: ColumnSummary | None,
    every: Sequence[ColumnSummary],
    source: str,
) -> tuple[ColumnSummary | None, str, str]:
    """The outcome that the user names, or the one column whose name says so; or the question which it is.

    Parameters
    ----------
    columns, every : sequence of ColumnSummary
        Those that may be it; all, whatever they are.

    Returns
    -------
    outcome, doubt, question : ColumnSummary or None, str, str
        The outcome, if it is clear; why one that the user names looks like none; which it is, where that is not clear.

    Raises
    ------
    DataError
        If the column that the user names, or that has the only telling name, can be no outcome; or if none can.
    """
    again = measured_again(column.name for column in every)
    statuses = status_columns(every)
    if named is not None:
        if not _usable(named, treatment):
            raise DataError(f"{source}: {toml_text(named.name)} cannot be the outcome: {_why(named, treatment)}")
        return named, cannot_be_outcome(named, statuses, again) or "", ""
    open_to_it = [c for c in columns if c.name and not cannot_be_outcome(c, statuses, again)]
    possible = [column for column in open_to_it if _usable(column, treatment) and not names.is_before(column.name)]
    telling = [column for column in possible if names.rank(column.name, KNOWN) is not None]
    lasting = [column.name for column in columns if column.n_distinct > 2]
    times = [name for name in lasting if names.is_time_to_event(name) or names.is_time(name)]
    censored = [name for name in statuses if name in {column.name for column in possible}] if times else []
    if len(telling) == 1 and telling[0].name not in censored:
        return telling[0], "", ""
    if not telling:
        _refuse_unusable(open_to_it, treatment, source)
    if not possible:
        raise DataError(
            f"{source}: no column can be the outcome: one needs numbers, such as 0 and 1, and best a name such as "
            f"{', '.join(names.BENEFIT[:3])} or {names.HARM[0]}; columns: {listed([c.name for c in columns])}"
        )
    either = ""
    if censored:
        # As a shell takes them.
        time, event = (name if name.isidentifier() else repr(name) for name in (times[0], censored[0]))
        either = (
            f"--time {time} --event {event} where follow-up ended early for some patients (the outcome is then to be "
            "free of the event), or "
        )
    could_be = listed(list(dict.fromkeys(column.name for column in [*telling, *possible])))
    asked = f"which column is the outcome? Name it: {either}--outcome COLUMN; it could be {could_be}"
    return None, "", f"{source}: {asked}"


def followed_up(
    time: ColumnSummary, event: ColumnSummary, treatment: ColumnSummary | None, source: str
) -> FollowedUp | None:
    """The horizon for a time and an event; None where the treatment is not known yet.

    It is the latest time, rounded down, to which enough patients of every arm are followed without an event: a tenth of
    them, and ten (or half of a small arm).

    Raises
    ------
    DataError
        For times that are no numbers or below 0, and events that are not 0 and 1.
    UsageError
        If there is no such time above 0.
    """
    if not time.is_numeric or time.low < 0:
        got = toml_text(str(level_of(time.values[0]))) if time.values else "no values"
        raise DataError(f"{source}: {toml_text(time.name)} must be times, numbers >= 0, got {got}")
    if not event.is_binary:
        got = ", ".join(toml_text(str(level_of(value))) for value in event.values[:5]) or "no values"
        raise DataError(
            f"{source}: {toml_text(event.name)} must be 1 for the event and 0 where follow-up ended before, got {got}: "
            "make them 0 and 1"
        )
    if treatment is None:
        return None
    known = (time.codes >= 0) & (event.codes >= 0) & (treatment.codes >= 0)
    times, arms = np.array(time.values)[time.codes[known]], treatment.codes[known]
    of_arms = [np.sort(times[arms == arm]) for arm in range(treatment.n_distinct)]
    if min(map(len, of_arms)) == 0:
        raise UsageError(f"--time: {toml_text(time.name)} is missing for all patients of a treatment")
    enough = [max(math.ceil(AT_RISK * len(m)), min(FEWEST_AT_RISK, math.ceil(len(m) / 2))) for m in of_arms]
    latest = min(float(mine[-n]) for mine, n in zip(of_arms, enough, strict=True))
    horizon = round_down(latest)
    if not horizon > 0:
        raise UsageError(f"--time: {toml_text(time.name)}: too few patients of a treatment are followed beyond 0")
    return FollowedUp(time, event, horizon, tuple(int((mine >= horizon).sum()) for mine in of_arms))


def round_down(number: float) -> float:
    """Two digits of a number >= 0, not more than it.

    Examples
    --------
    >>> round_down(1231.0), round_down(0.57), round_down(3.0), round_down(0.0)
    (1200.0, 0.57, 3.0, 0.0)
    """
    if number <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(number))
    # 0.57 * 100 is less than 57.
    return float(f"{math.floor(number * 10.0**digits * (1 + 1e-12)) / 10.0**digits:.12g}")


def _usable(column: ColumnSummary, treatment: ColumnSummary | None) -> bool:
    reveals = treatment is not None and treatment.decides(column)
    return column.is_numeric and column.n_distinct > 1 and not reveals


def _refuse_unusable(columns: Sequence[ColumnSummary], treatment: ColumnSummary | None, source: str) -> None:
    """DataError if a column is named like an outcome and can be none: no other one is taken in its place."""
    ranks = [(names.rank(column.name, KNOWN), place) for place, column in enumerate(columns)]
    found = [columns[place] for rank, place in sorted((r, p) for r, p in ranks if r is not None)]
    telling = [column for column in found if not names.is_before(column.name)]
    if telling:
        raise DataError(
            f"{source}: {toml_text(telling[0].name)} is named like the outcome, but {_why(telling[0], treatment)}"
        )


def _why(column: ColumnSummary, treatment: ColumnSummary | None) -> str:
    """Why a column can be no outcome."""
    shown = ", ".join(toml_text(str(level_of(value))) for value in column.values[:2])
    if column.n_distinct < 2:
        return f"it has only one value, {shown}" if column.values else "it has no values"
    if column.is_numeric and treatment is not None:
        return f"it reveals the treatment: {toml_text(treatment.name)} decides it"
    if column.n_distinct == 2:
        return f"it is text ({shown}): make it 0 and 1"
    return f"it is text ({shown}, ...): make it numbers"

"""Which column is the outcome of a trial; or, of follow-up that may end early, at which time it is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policysim.files.bad_rows import DataError, level_of
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import listed
from policysim.logs.guess_columns import ColumnSummary
from policysim.logs.outcomes import cannot_be_outcome, measured_again, status_columns
from policysim.question.protocol import UsageError

# Of the patients of each arm so many are still followed at the horizon: this share, and this number.
AT_RISK, FEWEST_AT_RISK = 0.1, 10
KNOWN = (*names.BENEFIT, *names.HARM)


@dataclass(frozen=True, eq=False)
class FoundOutcome:
    """The outcome, if it is clear; else the question which it is.

    `doubt` says why one that the user names looks like none.
    """

    column: ColumnSummary | None = None
    question: str = ""
    doubt: str = ""


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
) -> FoundOutcome:
    """The outcome that the user names, or the one column whose name says so; or the question which it is.

    Parameters
    ----------
    columns : sequence of ColumnSummary
        Those that may be it.
    treatment : ColumnSummary or None
    named : ColumnSummary or None
        What the user says.
    every : sequence of ColumnSummary
        All columns, whatever they are.

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
        return FoundOutcome(named, doubt=cannot_be_outcome(named, statuses, again) or "")
    open_to_it = [c for c in columns if c.name and not cannot_be_outcome(c, statuses, again)]
    possible = [column for column in open_to_it if _usable(column, treatment) and not names.is_before(column.name)]
    telling = [column for column in possible if names.rank(column.name, KNOWN) is not None]
    times = [column.name for column in columns if column.n_distinct > 2 and _is_follow_up(column.name)]
    censored = [name for name in statuses if name in {column.name for column in possible}] if times else []
    if len(telling) == 1 and telling[0].name not in censored:
        return FoundOutcome(telling[0])
    if not telling:
        _refuse_unusable(open_to_it, treatment, source)
    if not possible:
        raise DataError(
            f"{source}: no column can be the outcome: one needs numbers, such as 0 and 1, and best a name such as "
            f"{', '.join(names.BENEFIT[:3])} or {names.HARM[0]}; columns: {listed([c.name for c in columns])}"
        )
    first = [column.name for column in telling]
    rest = [column.name for column in possible if column.name not in first]
    either = ""
    if censored:
        either = (
            f"--time {_shell(times[0])} --event {_shell(censored[0])} where follow-up ended early for some patients "
            "(the outcome is then to be free of the event), or "
        )
    return FoundOutcome(
        question=f"{source}: which column is the outcome? Name it: {either}--outcome COLUMN; it could be "
        f"{listed([*first, *rest])}"
    )


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
    latest = min(float(mine[-_enough(len(mine))]) for mine in of_arms)
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


def _enough(n: int) -> int:
    return max(math.ceil(AT_RISK * n), min(FEWEST_AT_RISK, math.ceil(n / 2)))


def _usable(column: ColumnSummary, treatment: ColumnSummary | None) -> bool:
    reveals = treatment is not None and treatment.decides(column)
    return column.is_numeric and column.n_distinct > 1 and not reveals


def _is_follow_up(name: str) -> bool:
    return names.is_time_to_event(name) or names.is_time(name)


def _shell(name: str) -> str:
    """A column's name as a shell takes it, in a message."""
    return name if name.isidentifier() else repr(name)


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

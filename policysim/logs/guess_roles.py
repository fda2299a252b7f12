"""What each column of a trial is: as the user says, or as its name says beyond doubt; all else is asked."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from envs.toml_reader import unknown
from policies.arrays import FloatArray
from policysim.files.bad_rows import DataError
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import listed
from policysim.logs.guess_columns import ColumnSummary, TrialColumns, not_a_patient
from policysim.logs.outcomes import cannot_be_outcome, measured_again, status_columns
from policysim.question.protocol import UsageError

# More distinct values are no treatments.
MOST_TREATMENTS = 20
# So many patients of each arm are followed to the horizon.
FEWEST_FOLLOWED = 50
# In place of a column of ids: each row is a patient.
NONE = "none"
# The only column that is taken for the probability of the logged treatment.
PROPENSITY = "propensity"


@dataclass(frozen=True)
class Named:
    """What the user says by options of `policysim init`; empty where nothing is said.

    Attributes
    ----------
    treatment, features : sequence of str
        Columns; several that make the treatment together.
    outcome, id : str
    time, event : str
        The time to an event or to the end of follow-up, and which of the two it is.
    horizon : float
        To be free of the event at; 0 where it is not said.
    """

    treatment: Sequence[str] = ()
    outcome: str = ""
    time: str = ""
    event: str = ""
    horizon: float = 0.0
    id: str = ""
    features: Sequence[str] = ()


@dataclass
class Asked:
    """What init asks about files called `source`: lines, and the options that answer them, for the command to type."""

    source: str
    named: Named = Named()
    command: Sequence[str] = ("policysim", "init", "DATA")
    lines: list[str] = field(default_factory=list)
    answers: dict[str, str | float | Sequence[str]] = field(default_factory=dict)

    def ask(self, line: str, **answers: str | float | Sequence[str]) -> None:
        """Note a question, and the likeliest answers."""
        self.lines.append(f"{self.source}: {line}")
        self.answers |= answers

    def raise_if_any(self) -> None:
        """Raise UsageError with the questions and the whole command, if there are any."""
        words = [*self.command]
        for option in fields(Named):
            value = self.answers.get(option.name) or getattr(self.named, option.name)
            if not isinstance(value, str | float):
                text = io.StringIO()
                csv.writer(text, lineterminator="").writerow(value)
                value = text.getvalue()
            words += [f"--{option.name}", f"{value:g}" if isinstance(value, float) else value] if value else []
        if self.lines:
            raise UsageError("\n".join([*self.lines, f"Type: {shlex.join(words)}"]))


@dataclass(frozen=True, eq=False)
class Roles:
    """What the columns are.

    Attributes
    ----------
    treatment : ColumnSummary
    joined : sequence of ColumnSummary
        The columns that make it together; () where it is one.
    outcome : ColumnSummary
        Or the event, where there is a `time`.
    doubt : str
        Why the outcome that the user names looks like none; "" if it does not.
    time : ColumnSummary or None
        Where the outcome is to be free of an event at a horizon.
    horizon : float
    propensity, id : str
        Their columns; "" if there is none.
    rest : sequence of ColumnSummary
        All other columns, which may be features.
    """

    treatment: ColumnSummary
    joined: Sequence[ColumnSummary]
    outcome: ColumnSummary
    doubt: str
    time: ColumnSummary | None
    horizon: float
    propensity: str
    id: str
    rest: Sequence[ColumnSummary]

    @property
    def harmful(self) -> bool:
        """Whether more of the outcome is worse, by its name."""
        return names.says(self.outcome.name, "harm") and not names.says(self.outcome.name, "benefit")


def guess_roles(files: TrialColumns, asked: Asked) -> Roles:
    """Say what the columns of a file are, or of three files.

    Raises
    ------
    UsageError
        A line for each role that is not clear and its candidates, and the command to type. Or for options that name no
        column, or one column twice, or what cannot be meant.
    DataError
        If no column can be the treatment, or the outcome.
    """
    named = asked.named
    said = _named_columns(files, asked)
    wrong = "" if named.id or files.id else not_a_patient(files.features)
    if wrong:
        asked.ask(f"one row must be one patient, but {wrong}; if each row is a patient all the same: --id {NONE}")
    distinct = (c for c in files.features if names.is_id(c.name) and c.is_distinct and (c.is_whole or not c.is_numeric))
    guessed = next((column.name for column in distinct), "") if not (named.id or files.are_three) else ""
    ids = files.id or guessed or (named.id if said["id"] else "")

    def left(columns: Sequence[ColumnSummary], *taken: ColumnSummary | None) -> list[ColumnSummary]:
        uses = [*taken, *(column for use, found in said.items() if use != "features" for column in found)]
        return [column for column in columns if column.name != ids and not any(column is other for other in uses)]

    parts = said["treatment"] or _treatment(left(files.actions), files, asked)
    treatment = files.together(parts) if parts else None
    if treatment and not 2 <= treatment.n_distinct <= MOST_TREATMENTS:
        raise UsageError(
            f"--treatment: {toml_text(treatment.name)} has {treatment.n_distinct:,} distinct values; a treatment needs "
            f"2 to {MOST_TREATMENTS}"
        )
    probable = (c for c in left(files.actions, *parts) if c.name == PROPENSITY and c.is_numeric and not c.n_missing)
    propensity = next((column for column in probable if column.low > 0 and column.high <= 1), None)
    time, outcome = ([*said[use], None][0] for use in ("time", "outcome"))
    outcome = outcome or [*said["event"], None][0]
    if outcome is None:
        time, outcome = _outcome(left(files.outcomes, *parts, propensity), files, treatment, asked)
    asked.raise_if_any()
    assert treatment and outcome  # else it was asked
    if time:
        _check_times(time, outcome, asked.source)
    elif _unusable(outcome, treatment):
        wrong = _unusable(outcome, treatment)
        raise DataError(f"{asked.source}: {toml_text(outcome.name)} cannot be the outcome: {wrong}")
    return Roles(
        treatment=treatment,
        joined=parts if len(parts) > 1 else (),
        outcome=outcome,
        doubt="" if time else _doubt(outcome, files),
        time=time,
        horizon=_horizon(time, outcome, treatment, asked) if time else 0.0,
        propensity=propensity.name if propensity else "",
        id=ids,
        rest=left(files.features, *parts, propensity, time, outcome),
    )


def _named_columns(files: TrialColumns, asked: Asked) -> dict[str, list[ColumnSummary]]:
    """The columns that the user names, by what they are; each is one thing."""
    named, source = asked.named, asked.source
    found: dict[str, list[ColumnSummary]] = {}
    for use in ("id", "features", "treatment", "outcome", "time", "event"):
        columns = {"treatment": files.actions}.get(use, files.features if use in ("id", "features") else files.outcomes)
        by_name = {column.name: column for column in columns}
        value = getattr(named, use)
        wanted = [] if use == "id" and value == NONE else [value] if isinstance(value, str) else value
        found[use] = []
        for name in filter(None, wanted):
            if name not in by_name:
                raise UsageError(f"--{use}: {source}: {unknown('column', name, list(by_name))}")
            other = next((other for other, taken in found.items() if by_name[name] in taken), None)
            if other:
                raise UsageError(f"--{use} {name!r} is the --{other} already: one column is one thing")
            found[use].append(by_name[name])
    if bool(named.time) != bool(named.event) or (named.time and named.outcome):
        raise UsageError(
            "--time and --event go together, without --outcome: it is to be free of the event at a horizon"
        )
    if found["id"] and not found["id"][0].is_distinct:
        raise UsageError(f"{source}: --id {named.id}: one row must be one patient, but {not_a_patient(found['id'])}")
    return found


def _treatment(columns: Sequence[ColumnSummary], files: TrialColumns, asked: Asked) -> Sequence[ColumnSummary]:
    """The one column named like a treatment; of a file of actions, all if each row has one 1 among zeros; else asked."""
    if files.are_three and all(column.values == (0.0, 1.0) for column in columns):
        if np.all(np.sum([column.codes == 1 for column in columns], axis=0) == 1):
            return columns
    possible = [
        column
        for column in columns
        if 2 <= column.n_distinct <= MOST_TREATMENTS
        and column.name
        and not (names.is_fixed(column.name) or names.is_before(column.name) or names.is_id(column.name))
    ]
    if not possible:
        raise DataError(
            f"{asked.source}: no column can be the treatment: it needs 2 to {MOST_TREATMENTS} distinct values; columns: "
            f"{listed([column.name for column in columns])}"
        )
    telling = [column for column in possible if names.is_treatment(column.name)]
    if len(telling) == 1:
        return telling
    first = [column.name for column in sorted(possible, key=lambda column: column not in telling)]
    asked.ask(f"which column is the treatment, or columns that make it together? {listed(first)}", treatment=first[:1])
    return []


def _outcome(
    columns: Sequence[ColumnSummary], files: TrialColumns, treatment: ColumnSummary | None, asked: Asked
) -> tuple[ColumnSummary | None, ColumnSummary | None]:
    """The time and the event, or None and the outcome, if names leave no doubt; else asked."""
    open_to_it = [c for c in columns if c.name and not names.is_before(c.name) and not _doubt(c, files)]
    possible = [column for column in open_to_it if not _unusable(column, treatment)]
    named = [c for c in open_to_it if files.are_three or names.is_all(c.name, ["benefit", "harm"])]
    telling = [column for column in possible if column in named]
    statuses = status_columns(columns)
    events = [column for column in columns if column.name in statuses]
    times = [c for c in columns if c.n_distinct > 2 and (names.is_time_to_event(c.name) or names.is_time(c.name))]
    followed = bool(times and events and all(column in events for column in telling))
    # 1 of "cens" may be either.
    if followed and len(times) == len(events) == 1 and not names.says(events[0].name, "later"):
        return times[0], events[0]
    if len(telling) == 1 and not followed:
        return None, telling[0]
    if named and not telling:
        wrong = _unusable(named[0], treatment)
        raise DataError(f"{asked.source}: {toml_text(named[0].name)} is named like the outcome, but {wrong}")
    first = [column.name for column in sorted(possible, key=lambda column: column not in telling)]
    if followed:
        either = f"time ({listed([c.name for c in times])}) and event ({listed([c.name for c in events])})"
        asked.ask(
            f"which are the {either}, or the outcome ({listed(first)})?", time=times[0].name, event=events[0].name
        )
    elif first:
        asked.ask(f"which column is the outcome? {listed(first)}", outcome=first[0])
    else:
        raise DataError(
            f"{asked.source}: no column can be the outcome: one needs numbers, such as 0 and 1; columns: "
            f"{listed([column.name for column in columns])}"
        )
    return None, None


def _doubt(column: ColumnSummary, files: TrialColumns) -> str:
    """Why a column looks like no outcome; "" if it does not."""
    again = measured_again(other.name for other in files.outcomes)
    return cannot_be_outcome(column, status_columns(files.outcomes), again) or ""


def _unusable(column: ColumnSummary, treatment: ColumnSummary | None) -> str:
    """Why a column can be no outcome; "" if it can."""
    if column.n_distinct < 2:
        return f"it has only one value, {column.shown()}" if column.values else "it has no values"
    if not column.is_numeric:
        return f"it is text ({column.shown()}): make it {'0 and 1' if column.n_distinct == 2 else 'numbers'}"
    reveals = treatment is not None and treatment.decides(column)
    return f"it reveals the treatment: {toml_text(treatment.name)} decides it" if treatment and reveals else ""


def _check_times(time: ColumnSummary, event: ColumnSummary, source: str) -> None:
    """DataError for times that are no numbers or below 0, and events that are not 0 and 1."""
    if not time.is_numeric or time.low < 0:
        raise DataError(f"{source}: {toml_text(time.name)} must be times, numbers >= 0, got {time.shown(1) or 'none'}")
    if event.values != (0.0, 1.0):
        raise DataError(
            f"{source}: {toml_text(event.name)} must be 1 for the event and 0 where follow-up ended before, got "
            f"{event.shown() or 'no values'}: make them 0 and 1"
        )


def followed(roles: Roles) -> list[int]:
    """For each treatment, how many of its patients are followed to the horizon, or to an event after it."""
    arms = _times(roles.time, roles.outcome, roles.treatment) if roles.time else []
    return [int((times >= roles.horizon).sum()) for times in arms]


def _times(time: ColumnSummary, event: ColumnSummary, treatment: ColumnSummary) -> list[FloatArray]:
    """The times of the patients of each arm, in order."""
    known = (time.codes >= 0) & (event.codes >= 0) & (treatment.codes >= 0)
    times, arms = np.array(time.values)[time.codes[known]], treatment.codes[known]
    return [np.sort(times[arms == arm]) for arm in range(treatment.n_distinct)]


def _horizon(time: ColumnSummary, event: ColumnSummary, treatment: ColumnSummary, asked: Asked) -> float:
    """As the user says, or the latest time, rounded down, to which enough patients of every arm are followed."""
    if asked.named.horizon:
        return asked.named.horizon
    arms = _times(time, event, treatment)
    horizon = round_down(min(float([0.0, *times][-FEWEST_FOLLOWED:][0]) for times in arms))
    if not horizon:
        middle = round_down(float(np.median(np.concatenate(arms)))) or time.high
        counts = ", ".join(str((times >= middle).sum()) for times in arms)
        asked.ask(
            f"to which horizon? Fewer than {FEWEST_FOLLOWED} patients of an arm are followed; to {middle:g}: {counts}",
            time=time.name,
            event=event.name,
            horizon=middle,
        )
    asked.raise_if_any()
    return horizon


def round_down(number: float) -> float:
    """Two digits of a number >= 0, not more than it.

    Examples
    --------
    >>> round_down(1231.0), round_down(0.57), round_down(3.0), round_down(0.0)
    (1200.0, 0.57, 3.0, 0.0)
    """
    digits = 1 - math.floor(math.log10(number)) if number > 0 else 0
    # 0.57 * 100 is less than 57.
    return float(f"{math.floor(number * 10.0**digits * (1 + 1e-12)) / 10.0**digits:.12g}")

"""What each column of a trial is: as the user says, or as its name says beyond doubt; all else is asked."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from envs.toml_reader import unknown
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
    """What the user says; empty where nothing is said. The fields after `words` are the options of `policysim init`.

    Attributes
    ----------
    words : tuple of str
        The command, but for the following.
    treatment, features : tuple of str
        Columns; several that make the treatment together.
    outcome, id : str
    time, event : str
        The time to an event or to the end of follow-up, and which of the two it is.
    horizon : float
        To be free of the event at; 0 where it is not said.
    """

    words: tuple[str, ...] = ("policysim", "init", "DATA")
    treatment: tuple[str, ...] = ()
    outcome: str = ""
    time: str = ""
    event: str = ""
    horizon: float = 0.0
    id: str = ""
    features: tuple[str, ...] = ()

    def question(self, asked: Sequence[str], answers: Mapping[str, object]) -> UsageError:
        """The error that asks: a line for each question, then the command to type, with answers filled in."""
        command = [*self.words]
        for field in fields(self)[1:]:
            value = answers.get(field.name) or getattr(self, field.name)
            if isinstance(value, tuple) and value:
                text = io.StringIO()
                csv.writer(text).writerow(value)
                value = text.getvalue().removesuffix("\r\n")
            if value:
                command += [f"--{field.name}", f"{value:g}" if isinstance(value, float) else str(value)]
        return UsageError("\n".join([*asked, f"Type: {shlex.join(command)}"]))


@dataclass(frozen=True, eq=False)
class Roles:
    """What the columns are.

    Attributes
    ----------
    treatment : ColumnSummary
    joined : tuple of ColumnSummary
        The columns that make it together; () where it is one.
    propensity : str
        Its column; "" if there is none.
    outcome : ColumnSummary
        Or the event, where there is a `time`.
    doubt : str
        Why the outcome that the user names looks like none; "" if it does not.
    time : ColumnSummary or None
        Where the outcome is to be free of an event at a horizon.
    horizon : float
    id : ColumnSummary or None
    rest : tuple of ColumnSummary
        All other columns, which may be features.
    """

    treatment: ColumnSummary
    joined: tuple[ColumnSummary, ...]
    propensity: str
    outcome: ColumnSummary
    doubt: str
    time: ColumnSummary | None
    horizon: float
    id: ColumnSummary | None
    rest: tuple[ColumnSummary, ...]

    @property
    def harmful(self) -> bool:
        """Whether more of the outcome is worse, by its name."""
        return names.says(self.outcome.name, names.HARM) and not names.says(self.outcome.name, names.BENEFIT)

    @property
    def followed(self) -> list[int]:
        """For each treatment, how many of its patients are followed to the horizon."""
        return [int((times >= self.horizon).sum()) for times in _times(self.time, self.treatment)] if self.time else []


def guess_roles(files: TrialColumns, source: str, named: Named = Named()) -> Roles:
    """Say what the columns of a file called `source` are, or of three files.

    Raises
    ------
    UsageError
        A line for each role that is not clear and its candidates, and the command to type. Or for options that name no
        column, or one column twice, or what cannot be meant.
    DataError
        If no column can be the treatment, or the outcome.
    """
    columns = _named_columns(files, source, named)
    taken = [column for found in columns.values() for column in found]
    asked: list[str] = []
    answers: dict[str, object] = {}
    wrong = "" if named.id or files.id else not_a_patient(files.features)
    if wrong:
        asked.append(f"{source}: one row must be one patient, but {wrong}; if each row is a patient: --id {NONE}")
    ids = columns["id"][0] if columns["id"] else _id(files, taken) if named.id != NONE else None
    taken += [column for column in {*files.features, *files.actions, *files.outcomes} if _same_id(column, ids, files)]
    parts = columns["treatment"] or _treatment(files, taken, source)
    if len(parts) > 1 and not (columns["treatment"] or files.are_three):
        asked.append(f"{source}: which column is the treatment? {listed([column.name for column in parts])}")
        answers["treatment"] = (parts[0].name,)
        parts = []
    treatment = files.together(parts) if parts else None
    if treatment and not 2 <= treatment.n_distinct <= MOST_TREATMENTS:
        raise UsageError(
            f"--treatment: {toml_text(treatment.name)} has {treatment.n_distinct:,} distinct values; a treatment needs "
            f"2 to {MOST_TREATMENTS}"
        )
    taken += parts
    propensity = next(
        (c for c in files.actions if c.name == PROPENSITY and _is_probability(c) and c not in taken), None
    )
    taken += [propensity] if propensity else []
    time, outcome = (columns["time"] or [None])[0], (columns["outcome"] or columns["event"] or [None])[0]
    if outcome is None:
        left = [column for column in files.outcomes if column not in taken]
        time, outcome, fills, question = _outcome(left, files, treatment, source)
        asked += [question] if question else []
        answers |= fills
    if asked or treatment is None or outcome is None:
        raise named.question(asked, answers)
    doubt = _checked(outcome, time, treatment, files, source)
    horizon = _horizon(time, treatment, source, named, outcome) if time else 0.0
    rest = [c for c in files.features if not any(c is other for other in (*taken, outcome, time))]
    joined = tuple(parts) if len(parts) > 1 else ()
    name = propensity.name if propensity else ""
    return Roles(treatment, joined, name, outcome, doubt, time, horizon, ids, tuple(rest))


def _named_columns(files: TrialColumns, source: str, named: Named) -> dict[str, list[ColumnSummary]]:
    """The columns that the user names, by what they are; each is one thing."""
    places = dict.fromkeys(("id", "features"), files.features) | {"treatment": files.actions}
    places |= dict.fromkeys(("outcome", "time", "event"), files.outcomes)
    found: dict[str, list[ColumnSummary]] = {use: [] for use in places}
    for use, columns in places.items():
        by_name = {column.name: column for column in columns}
        value = getattr(named, use)
        for name in (value if isinstance(value, tuple) else (value,)) if value else ():
            if use == "id" and name == NONE and NONE not in by_name:
                continue
            if name not in by_name:
                raise UsageError(f"--{use}: {source}: {unknown('column', name, list(by_name))}")
            other = next((other for other, taken in found.items() if by_name[name] in taken), None)
            if other:
                raise UsageError(f"--{use} {name!r} is the --{other} already: one column is one thing")
            found[use].append(by_name[name])
    if bool(named.time) != bool(named.event) or (named.horizon and not named.time):
        raise UsageError(
            "--time and --event go together, and --horizon with them: event is 1 for the event at that time"
        )
    if named.time and named.outcome:
        raise UsageError("--outcome does not go with --time and --event: the outcome is to be free of the event")
    if found["id"] and not found["id"][0].is_distinct:
        raise UsageError(f"{source}: --id {named.id}: one row must be one patient, but {not_a_patient(found['id'])}")
    return found


def _id(files: TrialColumns, taken: Sequence[ColumnSummary]) -> ColumnSummary | None:
    """The column by which three files are joined; else of distinct values, by its name."""
    if files.are_three:
        return next((column for column in files.features if column.name == files.id != ""), None)
    distinct = [c for c in files.features if c.is_distinct and (c.is_whole or not c.is_numeric) and c not in taken]
    return next((column for column in distinct if names.is_id(column.name)), None)


def _same_id(column: ColumnSummary, ids: ColumnSummary | None, files: TrialColumns) -> bool:
    return column is ids or (files.id != "" and column.name == files.id)


def _is_probability(column: ColumnSummary) -> bool:
    return column.is_numeric and not column.n_missing and column.low > 0 and column.high <= 1


def _treatment(files: TrialColumns, taken: Sequence[ColumnSummary], source: str) -> list[ColumnSummary]:
    """The one column named like a treatment; else all that could be it, the likeliest first.

    Of a file of actions, all its columns if each row has one 1 among zeros.
    """
    columns = [column for column in files.actions if column not in taken]
    if files.are_three:
        codes = np.array([column.codes for column in columns])
        if all(column.values == (0.0, 1.0) for column in columns) and np.all((codes == 1).sum(axis=0) == 1):
            return columns
    possible = [
        column
        for column in columns
        if column.name
        and 2 <= column.n_distinct <= MOST_TREATMENTS
        and not (names.is_fixed(column.name) or names.is_before(column.name) or names.is_id(column.name))
    ]
    if not possible:
        raise DataError(
            f"{source}: no column can be the treatment: it needs 2 to {MOST_TREATMENTS} distinct values; columns: "
            f"{listed([column.name for column in columns])}"
        )
    telling = [column for column in possible if names.is_treatment(column.name)]
    return telling if len(telling) == 1 else sorted(possible, key=lambda column: column not in telling)


def _outcome(
    columns: Sequence[ColumnSummary], files: TrialColumns, treatment: ColumnSummary | None, source: str
) -> tuple[ColumnSummary | None, ColumnSummary | None, dict[str, object], str]:
    """Time and event, or None and the outcome, if their names are clear; else answers to fill in, and the question."""
    again = measured_again(column.name for column in files.outcomes)
    statuses = status_columns(files.outcomes)
    events = [c for c in columns if c.name in statuses]
    times = [c for c in columns if c.n_distinct > 2 and (names.is_time_to_event(c.name) or names.is_time(c.name))]
    open_to_it = [
        column
        for column in columns
        if column.name and not names.is_before(column.name) and not cannot_be_outcome(column, statuses, again)
    ]
    possible = [column for column in open_to_it if not _unusable(column, treatment)]
    named = [column for column in open_to_it if names.is_outcome(column.name)] if not files.are_three else open_to_it
    telling = [column for column in possible if column in named]
    others = [column for column in telling if column not in events]
    if len(times) == len(events) == 1 and not others and not names.says(events[0].name, names.LATER):
        return times[0], events[0], {}, ""
    if len(telling) == 1 and not (times and events and not others):
        return None, telling[0], {}, ""
    if named and not telling:
        raise DataError(
            f"{source}: {toml_text(named[0].name)} is named like the outcome, but {_unusable(named[0], treatment)}"
        )
    if not possible:
        raise DataError(
            f"{source}: no column can be the outcome: one needs numbers, such as 0 and 1; columns: "
            f"{listed([column.name for column in columns])}"
        )
    likeliest = sorted(possible, key=lambda column: column not in telling)
    could = f"which column is the outcome? {listed([column.name for column in likeliest])}"
    if not (times and events):
        return None, None, {"outcome": likeliest[0].name}, f"{source}: {could}"
    both = f"or, where follow-up ended early, the time ({listed([c.name for c in times])}) and event"
    fills: dict[str, object] = {"time": times[0].name, "event": events[0].name}
    return None, None, fills, f"{source}: {could}; {both} ({listed([c.name for c in events])})?"


def _unusable(column: ColumnSummary, treatment: ColumnSummary | None) -> str:
    """Why a column can be no outcome; "" if it can."""
    if column.n_distinct < 2:
        return f"it has only one value, {column.shown()}" if column.values else "it has no values"
    if not column.is_numeric:
        return f"it is text ({column.shown()}): make it {'0 and 1' if column.n_distinct == 2 else 'numbers'}"
    reveals = treatment is not None and treatment.decides(column)
    return f"it reveals the treatment: {toml_text(treatment.name)} decides it" if treatment and reveals else ""


def _checked(
    outcome: ColumnSummary, time: ColumnSummary | None, treatment: ColumnSummary, files: TrialColumns, source: str
) -> str:
    """Why an outcome looks like none; DataError for one, or a time and event, that cannot be."""
    if time is None:
        wrong = _unusable(outcome, treatment)
        if wrong:
            raise DataError(f"{source}: {toml_text(outcome.name)} cannot be the outcome: {wrong}")
        again = measured_again(column.name for column in files.outcomes)
        return cannot_be_outcome(outcome, status_columns(files.outcomes), again) or ""
    if not time.is_numeric or time.low < 0:
        raise DataError(
            f"{source}: {toml_text(time.name)} must be times, numbers >= 0, got {time.shown(1) or 'no values'}"
        )
    if outcome.values != (0.0, 1.0):
        raise DataError(
            f"{source}: {toml_text(outcome.name)} must be 1 for the event and 0 where follow-up ended before, got "
            f"{outcome.shown() or 'no values'}: make them 0 and 1"
        )
    return ""


def _times(time: ColumnSummary, treatment: ColumnSummary) -> list[np.ndarray]:
    """The times of the patients of each arm, in order."""
    known = (time.codes >= 0) & (treatment.codes >= 0)
    times, arms = np.array(time.values)[time.codes[known]], treatment.codes[known]
    return [np.sort(times[arms == arm]) for arm in range(treatment.n_distinct)]


def _horizon(time: ColumnSummary, treatment: ColumnSummary, source: str, named: Named, event: ColumnSummary) -> float:
    """The latest time, rounded down, to which enough patients of every arm are followed, or as the user says."""
    arms = _times(time, treatment)
    few = min(map(len, arms)) < FEWEST_FOLLOWED
    latest = 0.0 if few else round_down(min(float(times[-FEWEST_FOLLOWED]) for times in arms))
    if named.horizon or latest:
        return named.horizon or latest
    median = round_down(float(np.median(np.concatenate(arms)))) or time.high
    raise named.question(
        [
            f"{source}: which horizon? Fewer than {FEWEST_FOLLOWED} patients of an arm are followed beyond 0; to "
            f"{toml_text(time.name)} = {median:g}: {', '.join(str(int((times >= median).sum())) for times in arms)}"
        ],
        {"time": time.name, "event": event.name, "horizon": median},
    )


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

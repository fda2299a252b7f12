"""What each column of a trial is: as the user says, or as its name says beyond doubt; all else is asked."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from envs.toml_reader import unknown
from policysim.files.bad_rows import DataError
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_summary import ROWS_EACH, ColumnSummary
from policysim.logs.guess_columns import not_a_patient, repeats, together
from policysim.logs.outcomes import cannot_be_outcome, measured_again, status_columns
from policysim.question.protocol import UsageError

# More distinct values are no treatments.
MOST_TREATMENTS = 20
# So many patients of each arm are followed to the horizon.
FEWEST_FOLLOWED = 50
# Columns that a question lists.
MOST_SHOWN = 30
# In place of a column of ids: each row is a patient.
NONE = "none"


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
class InitAsked:
    """What init asks about a file called `source`: lines, and the options that answer them, for the command to type."""

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
        for option, said in asdict(self.named).items():
            value = self.answers.get(option) or said
            if isinstance(value, str | float):
                text = value if isinstance(value, str) else f"{value:g}"
            else:  # in quotes if they hold commas, as `cli.options.names` reads them
                text = ",".join('"' + name.replace('"', '""') + '"' if {",", '"'} & {*name} else name for name in value)
            words += [f"--{option}", text] if value else []
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
    id : str
        Its column; "" if there is none.
    rest : sequence of ColumnSummary
        All other columns, which may be features.
    """

    treatment: ColumnSummary
    joined: Sequence[ColumnSummary]
    outcome: ColumnSummary
    doubt: str
    time: ColumnSummary | None
    horizon: float
    id: str
    rest: Sequence[ColumnSummary]

    @property
    def harmful(self) -> bool:
        """Whether more of the outcome is worse, by its name."""
        return names.says(self.outcome.name, "harm") and not names.says(self.outcome.name, "benefit")


def guess_roles(columns: Sequence[ColumnSummary], asked: InitAsked) -> Roles:
    """Say what the columns of a trial are.

    Raises
    ------
    UsageError
        A line for each role that is not clear and its candidates, and the command to type. Or for options that name no
        column, or one column twice, or what cannot be meant.
    DataError
        If no column can be the treatment, or the outcome.
    """
    named = asked.named
    said = _named_columns(columns, asked)
    wrong = "" if named.id else not_a_patient(columns, said)
    if wrong:
        all_the_same = f"if each row is a patient all the same, type it again with --id {NONE}"
        raise UsageError(f"{asked.source}: one row must be one patient, but {wrong}; {all_the_same}")
    ids = [c.name for c in columns if names.is_id(c.name) and c.is_distinct and (c.is_whole or not c.is_numeric)]
    own_id = named.id or next(iter(ids), "")
    left = [column for column in columns if column.name != own_id and column.name not in said]
    by_name = {column.name: column for column in columns if column.name}
    parts = [by_name[name] for name in named.treatment] or _treatment(left, asked)
    treatment = parts[0] if len(parts) == 1 else together(parts) if parts else None
    if treatment and not 2 <= treatment.n_distinct <= MOST_TREATMENTS:
        must = f"has {treatment.n_distinct:,} distinct values; a treatment needs 2 to {MOST_TREATMENTS}"
        raise UsageError(f"--treatment: {toml_text(treatment.name)} {must}")
    left = [column for column in left if column not in parts and [column.name] != asked.answers.get("treatment")]
    time, outcome = by_name.get(named.time), by_name.get(named.outcome or named.event)
    if outcome is None:
        time, outcome = _outcome(left, treatment, asked)
    asked.raise_if_any()
    if treatment is None or outcome is None:
        raise AssertionError("what is not clear was asked")
    _check_outcome(outcome, time, treatment, asked.source)
    return Roles(
        treatment=treatment,
        joined=parts if len(parts) > 1 else (),
        outcome=outcome,
        doubt="" if time else _doubt(outcome, columns),
        time=time,
        horizon=_horizon(time, outcome, treatment, asked) if time else 0.0,
        id=own_id if own_id in by_name else "",
        rest=[c for c in columns if c in left or c.name in named.features if c is not outcome and c is not time],
    )


def _named_columns(columns: Sequence[ColumnSummary], asked: InitAsked) -> dict[str, str]:
    """What each column is that the user names; it is one thing."""
    named, by_name = asked.named, {column.name: column for column in columns if column.name}
    found: dict[str, str] = {}
    for option, value in asdict(named).items():
        said = [] if isinstance(value, float) else [value] if isinstance(value, str) else value
        for name in (name for name in said if name and (option, name) != ("id", NONE)):
            if name not in by_name:
                raise UsageError(f"--{option}: {asked.source}: {unknown('column', name, list(by_name))}")
            if name in found:
                raise UsageError(f"--{option} {name!r} is the --{found[name]} already: one column is one thing")
            found[name] = option
    if bool(named.time) != bool(named.event) or (named.time and named.outcome):
        raise UsageError("--time and --event go together, without --outcome: that is to be free of the event")
    if named.id in by_name and not by_name[named.id].is_distinct:
        raise UsageError(f"{asked.source}: one row must be one patient, but {repeats(by_name[named.id], columns)}")
    return found


def _treatment(columns: Sequence[ColumnSummary], asked: InitAsked) -> Sequence[ColumnSummary]:
    """The one column named like a treatment; else it is asked."""
    known = [column for column in columns if names.is_fixed(column.name) or names.is_before(column.name)]
    fitting = [c for c in columns if c.name and 2 <= c.n_distinct <= MOST_TREATMENTS and c not in known]
    telling = [column for column in fitting if names.is_treatment(column.name)]
    possible = [column for column in fitting if column in telling or column.counts.min() >= ROWS_EACH]
    if not possible:
        must = f"it needs 2 to {MOST_TREATMENTS} distinct values, each of {ROWS_EACH} patients"
        raise DataError(f"{asked.source}: no column can be the treatment: {must}; columns: {_listed(columns)}")
    if len(telling) == 1:
        return telling
    first = sorted(possible, key=lambda column: column not in telling)
    line = f"which column is the treatment, or which make it together? {_listed(first)}"
    asked.ask(line, treatment=[first[0].name])
    return []


def _outcome(
    columns: Sequence[ColumnSummary], treatment: ColumnSummary | None, asked: InitAsked
) -> tuple[ColumnSummary | None, ColumnSummary | None]:
    """The time and the event, or None and the outcome, if names leave no doubt; else they are asked."""
    open_to_it = [c for c in columns if c.name and not names.is_before(c.name) and not _doubt(c, columns)]
    named = [column for column in open_to_it if names.is_all(column.name, ["benefit", "harm"])]
    possible = [column for column in open_to_it if not _unusable(column, treatment)]
    telling = [column for column in possible if column in named]
    statuses = status_columns(columns)
    events = [column for column in columns if column.name in statuses]
    times = [c for c in columns if c.n_distinct > 2 and (names.is_time_to_event(c.name) or names.is_time(c.name))]
    followed = bool(times and events and all(column in events for column in telling))
    # 1 of "cens" may be either.
    clear = len(times) == len(events) == 1 and events[0].values == (0.0, 1.0)
    if followed and clear and not names.says(events[0].name, "later"):
        return times[0], events[0]
    if len(telling) == 1 and not followed:
        return None, telling[0]
    if named and not telling:
        wrong = _unusable(named[0], treatment)
        raise DataError(f"{asked.source}: {toml_text(named[0].name)} is named like the outcome, but {wrong}")
    if not possible:
        must = "one needs numbers, such as 0 and 1"
        raise DataError(f"{asked.source}: no column can be the outcome: {must}; columns: {_listed(columns)}")
    first = sorted(possible, key=lambda column: column not in telling)
    if followed:
        line = f"which are the time ({_listed(times)}) and the event ({_listed(events)}), or the outcome"
        asked.ask(f"{line} ({_listed(first)})?", time=times[0].name, event=events[0].name)
    else:
        asked.ask(f"which column is the outcome? {_listed(first)}", outcome=first[0].name)
    return None, None


def _listed(columns: Sequence[ColumnSummary]) -> str:
    return ", ".join(toml_text(column.name) for column in columns[:MOST_SHOWN]) + ", ..." * (len(columns) > MOST_SHOWN)


def _doubt(column: ColumnSummary, columns: Sequence[ColumnSummary]) -> str:
    """Why a column looks like no outcome; "" if it does not."""
    again = measured_again(other.name for other in columns)
    return cannot_be_outcome(column, status_columns(columns), again) or ""


def _unusable(column: ColumnSummary, treatment: ColumnSummary | None) -> str:
    """Why a column can be no outcome; "" if it can."""
    if column.n_distinct < 2 or not column.is_numeric:
        return f"it must be numbers, such as 0 and 1, got {column.shown()}"
    reveals = treatment is not None and treatment.decides(column)
    return f"it reveals the treatment: {toml_text(treatment.name)} decides it" if treatment and reveals else ""


def _check_outcome(outcome: ColumnSummary, time: ColumnSummary | None, treatment: ColumnSummary, source: str) -> None:
    """DataError for an outcome that cannot be one, times that are no numbers >= 0, events that are not 0 and 1."""
    name, wrong = toml_text(outcome.name), _unusable(outcome, treatment)
    if time is None and wrong:
        raise DataError(f"{source}: {name} cannot be the outcome: {wrong}")
    if time and (not time.is_numeric or time.low < 0):
        raise DataError(f"{source}: {toml_text(time.name)} must be times, numbers >= 0, got {time.shown()}")
    if time and outcome.values != (0.0, 1.0):
        must = "must be 1 for the event and 0 where follow-up ended before: make them 0 and 1"
        raise DataError(f"{source}: {name} {must}, got {outcome.shown()}")


def _horizon(time: ColumnSummary, event: ColumnSummary, treatment: ColumnSummary, asked: InitAsked) -> float:
    """As the user says, or the latest time, rounded down, to which enough patients of every arm are followed."""
    known = (time.codes >= 0) & (event.codes >= 0) & (treatment.codes >= 0)
    times, codes = np.array(time.values)[time.codes[known]], treatment.codes[known]
    arms = [np.sort(times[codes == arm]).tolist() for arm in range(treatment.n_distinct)]
    horizon = asked.named.horizon or round_down(min([0.0, *arm][-FEWEST_FOLLOWED:][0] for arm in arms))
    if not horizon:
        middle = round_down(float(np.median(times))) or time.high
        counts = ", ".join(str(sum(one >= middle for one in arm)) for arm in arms)
        line = (
            f"to which horizon? Fewer than {FEWEST_FOLLOWED} patients of an arm are followed; to {middle:g}: {counts}"
        )
        asked.ask(line, time=time.name, event=event.name, horizon=middle)
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

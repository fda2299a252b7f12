"""What policysim init takes each column of a trial for: as the user says, or as its name says beyond doubt.

All else is asked. First the roles: treatment, outcome, time and event, id. Then which of the other columns are
features, by which levels or cuts; which came later, and of which that is asked.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from envs.records import Feature
from envs.toml_reader import unknown
from policies.arrays import IntArray
from policies.levels import NO_VALUE, level_of
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.binning import binned
from policysim.logs.column_summary import (
    ROWS_EACH,
    TREATMENT_STEMS,
    ColumnSummary,
    is_after,
    is_all,
    is_before,
    is_fixed,
    is_id,
    is_time,
    is_time_to_event,
    is_treatment,
    not_a_patient,
    repeats,
    says,
    together,
)
from policysim.logs.log_frame import FEWEST_ROWS
from policysim.logs.outcomes import (
    NumberedNames,
    cannot_be_outcome,
    decides_outcome,
    measured_again,
    status_columns,
)
from policysim.logs.toml_text import toml_text

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

    def as_written(self, columns: Sequence[str]) -> Named:
        """The same with the names of the file's own columns, whose margins nobody types: " age" for age."""
        bare: dict[str, list[str]] = {}
        for column in columns:
            bare.setdefault(column.strip(), []).append(column)

        def written(name: str) -> str:
            alike = bare.get(name.strip(), [])
            return alike[0] if name.strip() and len(alike) == 1 and name not in columns else name

        said: dict[str, Any] = asdict(self)
        texts = {option: written(name) for option, name in said.items() if isinstance(name, str)}
        lists = {option: [*map(written, said[option])] for option in ("treatment", "features")}
        return Named(**{**said, **texts, **lists})


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
            else:
                text = ",".join(map(_in_quotes, value))
            # A name such as -5 is not an option.
            one = [f"--{option}={text}"] if text.startswith("-") else [f"--{option}", text]
            words += one if value else []
        if self.lines:
            raise UsageError("\n".join([*self.lines, f"Type: {shlex.join(words)}"]))


def _in_quotes(name: str) -> str:
    """A name as `cli.options.names` reads it: in quotes if it holds commas, quotes or margins."""
    return '"' + name.replace('"', '""') + '"' if {*',"\r\n'} & {*name} or name != name.strip() else name


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
        return says(self.outcome.name, "harm") and not says(self.outcome.name, "benefit")


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
    ids = [c.name for c in columns if is_id(c.name) and c.is_distinct and (c.is_whole or not c.is_numeric)]
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
    again = measured_again(column.name for column in columns)
    doubt = None if time else cannot_be_outcome(outcome, status_columns(columns), again)
    return Roles(
        treatment=treatment,
        joined=parts if len(parts) > 1 else (),
        outcome=outcome,
        doubt=doubt or "",
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
                raise UsageError(f"--{option} {name!r} is the --{found[name]} already: give another column")
            found[name] = option
    if bool(named.time) != bool(named.event) or (named.time and named.outcome):
        raise UsageError("--time and --event go together, without --outcome: success is to be free of the event")
    if named.id in by_name and not by_name[named.id].is_distinct:
        raise UsageError(f"{asked.source}: one row must be one patient, but {repeats(by_name[named.id], columns)}")
    return found


def _treatment(columns: Sequence[ColumnSummary], asked: InitAsked) -> Sequence[ColumnSummary]:
    """The one column named like a treatment; else it is asked."""
    known = [column for column in columns if is_fixed(column.name) or is_before(column.name)]
    fitting = [c for c in columns if c.name and 2 <= c.n_distinct <= MOST_TREATMENTS and c not in known]
    telling = [column for column in fitting if is_treatment(column.name)]
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
    statuses, again = status_columns(columns), measured_again(column.name for column in columns)
    open_to_it = [
        column
        for column in columns
        if column.name and not is_before(column.name) and not cannot_be_outcome(column, statuses, again)
    ]
    named = [column for column in open_to_it if is_all(column.name, ["benefit", "harm"])]
    possible = [column for column in open_to_it if not _unusable(column, treatment)]
    telling = [column for column in possible if column in named]
    events = [column for column in columns if column.name in statuses]
    times = [c for c in columns if c.n_distinct > 2 and (is_time_to_event(c.name) or is_time(c.name))]
    followed = bool(times and events and all(column in events for column in telling))
    # 1 of "cens" may be either.
    clear = len(times) == len(events) == 1 and events[0].values == (0.0, 1.0)
    if followed and clear and not says(events[0].name, "later"):
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


def _unusable(column: ColumnSummary, treatment: ColumnSummary | None) -> str:
    """Why a column can be no outcome; "" if it can."""
    if column.n_distinct < 2 or not column.is_numeric:
        return f"it must be numbers, such as 0 and 1, got {column.shown()}"
    reveals = treatment is not None and treatment.decides(column)
    return f"it reveals the treatment: {toml_text(treatment.name)} decides it" if treatment and reveals else ""


def _check_outcome(outcome: ColumnSummary, time: ColumnSummary | None, treatment: ColumnSummary, source: str) -> None:
    """DataError for an outcome that cannot be one or is rarely there, and for times and events that are none."""
    name, wrong = toml_text(outcome.name), _unusable(outcome, treatment)
    if time is None and wrong:
        raise DataError(f"{source}: {name} cannot be the outcome: {wrong}")
    if time and (not time.is_numeric or time.low < 0):
        raise DataError(f"{source}: {toml_text(time.name)} must be times, numbers >= 0, got {time.shown()}")
    if time and outcome.values != (0.0, 1.0):
        must = "must be 1 for the event and 0 where follow-up ended before: make them 0 and 1"
        raise DataError(f"{source}: {name} {must}, got {outcome.shown()}")
    n_used = int(np.logical_and.reduce([column.codes >= 0 for column in (treatment, outcome, time) if column]).sum())
    if n_used < FEWEST_ROWS:
        both = f"{toml_text(treatment.name)} and {name}"
        raise DataError(f"{source}: a log needs {FEWEST_ROWS} rows with {both}, got {n_used}")


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


# Patients of each arm with each level; levels of numbers are merged until there are so many.
FEWEST_PATIENTS = 20
# Numbers of more distinct values are cut at about their quartiles, and words of more are no levels.
MOST_NUMBERS, MOST_WORDS = 5, 12
# The size of a domain that is quickly computed.
MOST_RECORDS = 100_000
# Distinct rounded cuts are this part of the middle half's width apart, at most.
STEPS = 3
# Spreads are not rounded below this.
TINY = 1e-200


@dataclass(frozen=True, eq=False)
class Candidate:
    """A column as a feature: its declaration, how many patients have each level, and where those are few."""

    feature: Feature
    counts: Sequence[int]
    few: str


@dataclass(frozen=True, eq=False)
class Features:
    """Columns as features.

    Attributes
    ----------
    chosen : sequence of Candidate
        In the file's order, those that fit into the domain.
    left_out : mapping of str to str
        Columns that are no features, and why.
    """

    chosen: Sequence[Candidate]
    left_out: Mapping[str, str]

    @property
    def n_records(self) -> int:
        """The size of the declared domain."""
        return math.prod(len(candidate.counts) for candidate in self.chosen)


def guess_features(roles: Roles, asked: InitAsked) -> Features:
    """Declare a feature for each remaining column that can be one, or for those that the user names.

    Raises
    ------
    UsageError
        A line for each column of which is not clear that it was known before treatment, or of which levels have too
        few patients; with the command that takes the others. Nothing is asked where the user names the features.
    """
    named = asked.named.features
    numbered = NumberedNames([*(column.name for column in roles.rest), roles.outcome.name])
    after = [c for c in roles.rest if is_after(c.name) or numbered.start_of(c.name)]
    left_out: dict[str, str] = {}
    candidates: list[Candidate] = []
    doubts: list[str] = []
    for column in roles.rest:
        later, unclear = _later(column, roles, numbered, after)
        if named:
            later, unclear = "" if column.name in named else "not named", ""
        reason = _useless(column) or later
        if reason:
            left_out[column.name] = reason
            continue
        candidates.append(_candidate(column, roles.treatment))
        unclear = unclear or candidates[-1].few
        if unclear and not named:
            asked.ask(f"shall {toml_text(column.name)} be a feature? {unclear}")
            doubts.append(column.name)
    names_of = [candidate.feature.name for candidate in candidates]
    asked.answers["features"] = [name for name in names_of if name not in doubts] or doubts
    asked.raise_if_any()
    chosen: list[Candidate] = []
    for candidate in candidates:
        if math.prod(len(one.counts) for one in (*chosen, candidate)) <= MOST_RECORDS:
            chosen.append(candidate)
        else:
            left_out[candidate.feature.name] = f"for no more than {MOST_RECORDS:,} records"
    return Features(chosen, left_out)


def _useless(column: ColumnSummary) -> str:
    """Why a column can be no feature, whenever it was known; "" if it can."""
    if not column.name or column.n_distinct < 2:
        return "the same value in all rows" if column.name else "the column has no name"
    if column.numbers_rows or (is_id(column.name) and column.n_distinct > MOST_WORDS):
        return "numbers the rows, or is named like an id"
    if not column.is_numeric and column.n_distinct > MOST_WORDS:
        return f"{column.n_distinct:,} distinct values, not all of them usual numbers"
    return ""


def _later(
    column: ColumnSummary, roles: Roles, numbered: NumberedNames, after: Sequence[ColumnSummary]
) -> tuple[str, str]:
    """Why a column was known only after treatment, or tells it; and why that may be, but is not clear."""
    name, treatment, outcome = column.name, roles.treatment, roles.outcome
    reveals = column.n_distinct <= MOST_TREATMENTS and (treatment.decides(column) or column.decides(treatment))
    if reveals or is_fixed(name) or is_before(name):
        return "one of it and the treatment decides the other" if reveals else "", ""
    clear = {
        "its number makes it a later measurement": numbered.start_of(name) is not None,
        "named after the treatment": any(stem in name.lower() for stem in TREATMENT_STEMS),
        "named like an outcome or a time after treatment": is_after(name),
        "decides the outcome": decides_outcome(column, outcome),
    }
    number, of_outcome = (max(map(int, re.findall(r"\d{2,9}", text)), default=0) for text in (name, outcome.name))
    told = (_tells_gaps(column, other) or _tells_gaps(other, column) for other in (outcome, *after))
    unclear = {
        "its number may make it a later measurement than another's": numbered.earlier_measurement(name) is not None,
        "its number may make it as late as the outcome": number >= of_outcome > 0,
        "what it is, or where it is missing, goes with gaps in something later, or with what that was": any(told),
    }
    reason, doubt = (next((why for why, holds in reasons.items() if holds), "") for reasons in (clear, unclear))
    return reason, doubt


def _tells_gaps(column: ColumnSummary, other: ColumnSummary) -> bool:
    """Whether another is missing where this one is, or by what it was, in enough rows."""
    gaps = other.codes < 0
    few = min(np.count_nonzero(gaps), np.count_nonzero(~gaps)) < ROWS_EACH
    two = column.n_distinct == 2 and not column.n_missing and len(np.unique(column.codes * 2 + gaps)) == 2
    return not few and (two or np.array_equal(gaps, column.codes < 0))


def _candidate(column: ColumnSummary, treatment: ColumnSummary) -> Candidate:
    """A column by levels; or by cuts, that leave enough patients of each arm between them if any do."""
    cuts: list[float] = []
    if column.is_numeric:
        whole = list(map(float, column.values[1:]))
        first = whole if column.n_distinct <= MOST_NUMBERS else round_cuts(column)
        cuts = list(first)
        # The bin with the fewest patients of an arm joins its smaller neighbour; at least one cut is left.
        while len(cuts) > 1 and (table := _by_arm(column, cuts, treatment)[:-1]).min() < FEWEST_PATIENTS:
            worst = int(table.min(axis=1).argmin())
            sizes = [math.inf, *table.sum(axis=1).tolist(), math.inf]
            del cuts[worst - 1 if sizes[worst] <= sizes[worst + 2] else worst]
        # Levels as they are, where none were merged.
        cuts = [] if cuts == whole and column.n_distinct <= MOST_NUMBERS else cuts
    gaps = column.n_missing > 0
    levels = (*map(level_of, column.values), *([NO_VALUE] if gaps else []))
    feature = binned(column.name, cuts, missing=gaps) if cuts else Feature(column.name, levels)
    table = _by_arm(column, cuts, treatment)[: len(feature.levels)]
    worst = int(table.min(axis=1).argmin())
    level = toml_text(str(feature.levels[worst]))
    few = f"an arm has {table[worst].min()} patients with {level}, fewer than {FEWEST_PATIENTS}"
    return Candidate(feature, table.sum(axis=1).tolist(), few if table.min() < FEWEST_PATIENTS else "")


def _by_arm(column: ColumnSummary, cuts: Sequence[float], treatment: ColumnSummary) -> IntArray:
    """Patients of each bin (each value, without cuts), and without a value, in each arm, (n_bins + 1, n_arms)."""
    bins = np.arange(column.n_distinct)
    if cuts:
        bins = np.searchsorted(np.array(cuts), np.array(column.values, dtype=np.float64), side="right")
    known = treatment.codes >= 0
    codes = np.where(column.codes < 0, bins[-1] + 1, bins[column.codes])[known]
    table = np.zeros((int(bins[-1]) + 2, treatment.n_distinct), dtype=np.intp)
    np.add.at(table, (codes, treatment.codes[known]), 1)
    return table


def round_cuts(column: ColumnSummary) -> list[float]:
    """About the quartiles of a column of numbers, rounded; the commonest value if most rows have it."""
    quartiles = np.quantile(np.repeat(np.array(column.values, dtype=np.float64), column.counts), [0.25, 0.5, 0.75])
    most = float(quartiles[2] - quartiles[0]) / STEPS
    if most <= TINY:
        return [float(column.values[max(int(column.counts.argmax()), 1)])]
    power = 10.0 ** math.floor(math.log10(most))
    step = next((factor * power for factor in (5, 2) if factor * power <= most), power)
    # A step of 0.1 makes 0.30000000000000004.
    rounded = {float(f"{round(float(q) / step) * step:.12g}") for q in quartiles}
    return sorted(cut for cut in rounded if column.low < cut <= column.high) or [float(quartiles[1])]

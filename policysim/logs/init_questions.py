"""What policysim init needs to know, and how it reads each answer.

Nothing that may turn an answer round is guessed: not the direction of the outcome, nor how patients were assigned, nor
what was known before treatment.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.levels import LevelKey, level_key, level_of
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.column_summary import ColumnSummary, is_id, says, together
from policysim.logs.init_dialogue import DIRECTION, Dialogue, in_quotes
from policysim.logs.init_features import Candidate, declare, why_no_feature
from policysim.logs.log_source import EXCLUDE, FOLLOW_UP, JOINT, MOST_RECORDS
from policysim.logs.toml_text import toml_text

HIGHER, LOWER = DIRECTIONS = ("higher-is-better", "lower-is-better")
RANDOMISED, BY_DOCTORS = "randomised", "by-doctors"
NONE, ALL, LEVEL = "none", "all", "level"
# On a terminal, in place of an outcome: a time to an event.
TIME = "--time"
# Treatments, and patients that each needs.
MOST_TREATMENTS, FEWEST_PATIENTS = 20, 10
# In each arm: events before a horizon that init offers, and patients who are still followed at it.
FEWEST_EVENTS = 10
# Rows in which a feature is missing are left out, unless the user says else, if they are no more than this share.
FEW = 0.05
# Columns that a question lists.
MOST_LISTED = 8
NOTHING = ColumnSummary("", (), np.zeros(0, dtype=np.intp))


@dataclass
class InitForm(Dialogue):
    """The answers that a study needs.

    Attributes
    ----------
    treatment : ColumnSummary
    parts : sequence of ColumnSummary
        The columns that make it together; () where it is one.
    outcome : sequence of ColumnSummary
        Columns whose weighted sum is the utility; or the time and the event, where there is a `horizon`.
    weights : sequence of float
        Of each column; () if the user gives none.
    values : mapping of level to float
        What each value of the one outcome is worth; {} if its numbers are.
    sign : float
        1 if more of the one outcome is better, -1 if less is.
    codes : mapping of str to list of level
        Which values of the event are "event", "censored" and "competing"; {} if they are 1 and 0.
    horizon : float
    id : str
        Its column; "" if each row is a patient.
    cluster : str
        The column of patients who were treated together, or the id where a patient has several rows; "" for none.
    assigned : str or list of float
        "randomised", "by-doctors", or a column of propensities; or the ratio of a randomisation.
    features : sequence of Candidate
    adjust_for : sequence of str
        Columns from before treatment that are adjusted for and hidden from nobody, as policies do not see them.
    unknown : mapping of str to list of level
        By column, the values that mean that there is none.
    missing : mapping of str to str
        By feature, what is done with rows in which it is missing: "exclude" or "level".
    """

    treatment: ColumnSummary = NOTHING
    parts: Sequence[ColumnSummary] = ()
    outcome: Sequence[ColumnSummary] = ()
    weights: Sequence[float] = ()
    values: Mapping[LevelKey, float] = field(default_factory=dict)
    sign: float = 1.0
    codes: Mapping[str, list[LevelKey]] = field(default_factory=dict)
    horizon: float = 0.0
    id: str = ""
    cluster: str = ""
    assigned: str | list[float] = ""
    features: Sequence[Candidate] = ()
    adjust_for: Sequence[str] = ()
    unknown: dict[str, list[LevelKey]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    _known_before: Sequence[ColumnSummary] = field(default=(), init=False)

    def fill(self) -> None:
        """Ask for all that options do not say.

        Raises
        ------
        UsageError
            For an answer that cannot be; where nobody is there to ask, with all questions and the command to type.
        DataError
            If no column can be the treatment.
        """
        optional = {"unknown": self.read_unknown, "cluster": self.read_cluster, "adjust-for": self.read_adjust_for}
        for option in optional.keys() & self.answers.keys():
            self.ask(option, optional[option], "")
        arms = [column for column in self.unused if not why_no_treatment(column)]
        if not arms and "treatment" not in self.answers:
            must = f"it needs 2 to {MOST_TREATMENTS} distinct values, each of {FEWEST_PATIENTS} patients"
            raise DataError(f"{self.source}: no column can be the treatment: {must}")
        self.ask("treatment", self.read_treatment, either(arms))
        self.ask_outcome()
        self.ask_patients()
        self.ask_gaps()
        self.raise_if_open()
        self.features = self.declared(last=True)

    def ask_outcome(self) -> None:
        """Ask for the outcome and its direction, or for the time, the event and the horizon."""
        if self.answers.keys().isdisjoint(FOLLOW_UP):
            self.ask("outcome", self.read_outcome, either([c for c in self.unused if not why_no_outcome(c)]))
        if self.is_followed:
            self.ask("time", self.read_time, either([c for c in self.unused if c.is_numeric and c.n_distinct > 2]))
            self.ask("event", self.read_event, either([c for c in self.unused if 2 <= c.n_distinct <= 4]))
        if not self.weights or DIRECTION in self.answers:
            self.ask(DIRECTION, self.read_direction, "|".join(f"--{way}" for way in DIRECTIONS))
        if self.is_followed:
            best, said = self.best_horizon()
            self.ask("horizon", self.read_horizon, "TIME", f"{best:g}" if best else "", said)

    @property
    def leaves_out(self) -> bool:
        """Whether rows are left out in which a feature is missing."""
        return any(self.missing.get(c.name) == EXCLUDE and c.n_missing > 0 for c in self._known_before)

    @property
    def n_records(self) -> int:
        """The size of the declared domain."""
        return math.prod(len(candidate.counts) for candidate in self.features)

    @property
    def is_followed(self) -> bool:
        """Whether the outcome is a time to an event."""
        return self.answers.get("outcome") == TIME or not self.answers.keys().isdisjoint(FOLLOW_UP)

    def ask_patients(self) -> None:
        """Ask who is a patient, how patients were assigned, and what was known before."""
        ids = [column.name for column in self.unused if column.is_id]
        own = [name for name in ids if is_id(name)]
        repeat = any(says(c.name, "patient") and MOST_TREATMENTS < c.n_distinct < c.n_rows for c in self.unused)
        self.ask("id", self.read_id, "|".join([NONE, *ids[:MOST_LISTED]]), "" if repeat else [*own, NONE][0])
        chances = [column.name for column in self.unused if column.is_propensity]
        ratio = f"{RANDOMISED}:" + ",".join("1" * max(2, self.treatment.n_distinct))
        arms = [name for _, name in treatment_names(self)]
        more = f"The ratio is in the order {JOINT.join(map(toml_text, arms))}." if arms else ""
        self.ask("assigned", self.read_assigned, "|".join([RANDOMISED, ratio, BY_DOCTORS, *chances]), more=more)
        possible = [c.name for c in self.unused if not why_no_feature(c.without(c.unknown_codes), self.treatment)]
        self.ask("features", self.read_features, f"{in_quotes(possible)}|{ALL}")

    def ask_gaps(self) -> None:
        """Ask which values mean that there is none, and what is done where a feature has none."""
        used = [*self.outcome, *self._known_before] if self._known_before else [*self.outcome, *self.unused]
        codes = [(column.name, code) for column in used for code in column.unknown_codes]
        if codes and "unknown" not in self.answers:
            more = "; ".join(f"{toml_text(c.name)} has {c.remark()}" for c in used if c.unknown_codes)
            self.ask(
                "unknown", self.read_unknown, "", in_quotes([f"{name}={level_of(code)}" for name, code in codes]), more
            )
            used = [self.columns[c.name] if self.prompt else c.without(c.unknown_codes) for c in used]
        outcome = {column.name for column in self.outcome}
        gaps = {column.name: column.n_missing for column in used if column.n_missing and column.name not in outcome}
        if gaps:
            more = JOINT.join(f"{toml_text(name)} in {count:,}" for name, count in gaps.items())
            few = {name: EXCLUDE if count <= FEW * used[0].n_rows else LEVEL for name, count in gaps.items()}
            default = in_quotes([f"{name}={what}" for name, what in few.items()])
            self.ask("missing", self.read_missing, "", default, f"Rows without a value: {more}.")

    def read_unknown(self, text: str) -> None:
        """Values by column, which become missing in all columns, also in those that are named already."""
        pairs = [] if text == NONE else [pair.rpartition("=") for pair in self.split(text)]
        for name, _, code in pairs:
            column = self.named(name)
            if level_key(code) not in column.values:
                raise UsageError(f"{toml_text(column.name)} has no value {code!r}; name COLUMN=VALUE, or {NONE}")
            self.unknown.setdefault(column.name, []).append(level_key(code))
        self.columns |= {name: self.columns[name].without(codes) for name, codes in self.unknown.items()}
        self.outcome = [self.columns[column.name] for column in self.outcome]
        self._known_before = [self.columns[column.name] for column in self._known_before]

    def read_treatment(self, text: str) -> None:
        """One column, or several that make it together."""
        parts = [self.column("treatment", name) for name in self.split(text)]
        treatment = together(parts)
        if why := why_no_treatment(treatment):
            raise UsageError(f"{toml_text(treatment.name)} {why}")
        self.treatment, self.parts = treatment, parts if len(parts) > 1 else ()

    def read_outcome(self, text: str) -> None:
        """A column; several and their weights; or a column and what each of its values is worth."""
        if text == TIME:
            return
        column, pairs = self.coded("outcome", text)
        if pairs:
            self.values = {level_key(value): as_number(worth) for value, worth in pairs}
            absent = [str(level_of(value)) for value in column.values if value not in self.values]
            if absent:
                raise UsageError(f"{toml_text(column.name)}: what is {JOINT.join(absent)} worth?")
            self.outcome = [column]
            return
        parts = [(text, "", "")] if column.values else [part.rpartition("=") for part in self.split(text)]
        if len(parts) > 1 and not all(name for name, *_ in parts):
            raise UsageError(f"several outcomes need weights, such as qaly=20000,cost=-1, got {text!r}")
        self.outcome = [column] if column.values else [self.column("outcome", name or last) for name, _, last in parts]
        self.weights = [as_number(weight) for name, _, weight in parts if name and weight]
        for column in self.outcome:
            if why := why_no_outcome(column):
                raise UsageError(f"{toml_text(column.name)} {why}")

    def coded(self, option: str, text: str) -> tuple[ColumnSummary, list[tuple[str, str]]]:
        """A column, and pairs behind its name, as in status:event=2,censored=1; () and nothing for a list of names."""
        name, colon, rest = text.partition(":")
        if self.is_column(text) or not colon:
            return (self.column(option, text) if self.is_column(text) else NOTHING), []
        pairs = [
            (left.strip(), right.strip()) for left, _, right in (part.rpartition("=") for part in self.split(rest))
        ]
        if not all(left for left, _ in pairs):
            raise UsageError(f"needs NAME=VALUE behind {name}:, got {rest!r}")
        return self.column(option, name), pairs

    def read_direction(self, text: str) -> None:
        """Whether more of the outcome is better; of a time, whether a later event is."""
        if self.weights:
            raise UsageError("goes with one outcome: the signs of weights say which direction is better")
        if text not in DIRECTIONS and f"{text}-is-better" not in DIRECTIONS:
            raise UsageError(f"must be higher or lower, got {text!r}")
        self.sign = 1.0 if text.startswith("higher") else -1.0
        if self.is_followed and self.sign < 0:
            raise UsageError(
                "an event that is wanted, such as recovery, cannot be censored here: name a column that is 1 for the "
                "patients who had it, as --outcome with --higher-is-better"
            )

    def read_time(self, text: str) -> None:
        """A column of times."""
        column = self.column("time", text)
        if not column.is_numeric:
            raise UsageError(f"{toml_text(column.name)} must be numbers, got {column.shown()}")
        self.outcome = [column]

    def read_event(self, text: str) -> None:
        """A column of events, and which of its values is the event if that is not 1."""
        column, pairs = self.coded("event", text)
        column = column if column.values else self.column("event", text)
        codes = {kind: [level_key(value) for of, value in pairs if of == kind] for kind, _ in pairs}
        coded = {key for keys in codes.values() for key in keys} if codes else {0.0, 1.0}
        known = not codes or {"event", "censored"} <= codes.keys() <= {"event", "censored", "competing"}
        if not known or {*column.values} - coded:
            values = column.shown().replace(JOINT, "|")
            form = shlex.quote(f"{column.name}:event=<{values}>,censored=<{values}>")
            raise UsageError(f"{toml_text(column.name)} has {column.shown()}: say which is the event: --event {form}")
        self.codes, self.outcome = codes, [*self.outcome[:1], column]

    def best_horizon(self) -> tuple[float, str]:
        """The latest time that init offers, or 0; and how many events and patients there are in each arm."""
        if len(self.outcome) < 2 or not self.treatment.values:
            return 0.0, ""
        times, events, at_risk = self.followed()
        enough = (events.min(axis=1) >= FEWEST_EVENTS) & (at_risk.min(axis=1) >= FEWEST_EVENTS)
        if not len(times):
            return 0.0, ""
        place = int(enough.argmax()) if enough.any() else int(np.minimum(events, at_risk).min(axis=1).argmax())
        most, left = (JOINT.join(map(str, table[place])) for table in (events, at_risk))
        said = f"Up to {times[place]:g}: {most} events in the arms, and {left} patients followed for longer."
        return (float(times[place]), said) if enough.any() else (0.0, f"{said} No time has {FEWEST_EVENTS} of each.")

    def followed(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Round times, the latest first; in each arm the events up to them, and the patients at risk, (n, n_arms)."""
        time, event, arms = *self.outcome, self.treatment
        rows = (time.codes >= 0) & (event.codes >= 0) & (arms.codes >= 0)
        times = np.array(time.values, dtype=np.float64)[time.codes[rows]]
        happened = np.array([value in self.codes.get("event", [1.0]) for value in event.values])[event.codes[rows]]
        distinct = np.array(sorted({round_down(t) for t in times.tolist()} - {0.0}, reverse=True))
        events, at_risk = np.zeros((2, len(distinct), arms.n_distinct), dtype=np.intp)
        for arm in range(arms.n_distinct):
            mine = arms.codes[rows] == arm
            events[:, arm] = np.searchsorted(np.sort(times[mine & happened]), distinct, side="right")
            at_risk[:, arm] = mine.sum() - np.searchsorted(np.sort(times[mine]), distinct)
        return distinct, events, at_risk

    def read_horizon(self, text: str) -> None:
        """A time > 0 up to which there are events."""
        self.horizon = as_number(text)
        if self.horizon <= 0:
            raise UsageError(f"must be > 0, got {text!r}")
        if len(self.outcome) == 2 and self.treatment.values:
            times, events, _ = self.followed()
            before = events[times <= self.horizon].sum(axis=1)
            if not before.any():
                raise UsageError(f"there are no events up to {self.horizon:g}: {self.best_horizon()[1]}")

    def read_id(self, text: str) -> None:
        """A column in which each patient has a value of its own, or none."""
        if text == NONE:
            return
        column = self.column("id", text)
        if column.n_distinct + column.n_missing < column.n_rows and column.name != self.cluster:
            sizes = f"{column.n_distinct:,} values in {column.n_rows:,} rows"
            raise UsageError(
                f"{toml_text(column.name)} has {sizes}: an id has one for each row. If several rows are one patient, "
                f"say --cluster {shlex.quote(column.name)}, too; if each row is a patient, say --id {NONE}"
            )
        self.id = column.name

    def read_cluster(self, text: str) -> None:
        """A column of groups of rows, which may be the id."""
        column = self.named(text)
        is_id = self.is_column(self.answers.get("id", "")) and self.named(self.answers["id"]) is column
        self.cluster = column.name if is_id else self.column("cluster", text).name

    def read_adjust_for(self, text: str) -> None:
        """Columns from before treatment that are no features."""
        columns = [self.column("adjust-for", name) for name in self.split(text)]
        for column in columns:
            if column.numbers_rows:
                raise UsageError(f"{toml_text(column.name)} numbers the rows")
        self.adjust_for = [column.name for column in columns]

    def read_assigned(self, text: str) -> None:
        """How patients got their treatments."""
        word, _, ratio = text.partition(":")
        if word == RANDOMISED and ratio:
            self.assigned = [as_number(number) for number in ratio.split(",")]
            if min(self.assigned) <= 0 or self.treatment.n_distinct not in (0, len(self.assigned)):
                raise UsageError(f"must have a number > 0 for each of {self.treatment.n_distinct} arms, got {ratio!r}")
        elif text in (RANDOMISED, BY_DOCTORS):
            self.assigned = text
        else:
            self.assigned = self.column("assigned", text).name

    def read_features(self, text: str) -> None:
        """Columns from before treatment; none that is named is left out."""
        columns = [
            self.column("features", name)
            for name in ([c.name for c in self.unused] if text == ALL else self.split(text))
        ]
        reasons = {c.name: why_no_feature(c.without(c.unknown_codes), self.treatment) for c in columns}
        wrong = [f"{toml_text(name)} {reason}" for name, reason in reasons.items() if reason]
        rest = in_quotes([name for name, reason in reasons.items() if not reason])
        if wrong or not columns:
            instead = f"\nName the others: --features {shlex.quote(rest)}" if rest else ""
            raise UsageError(("\n".join(wrong) or "no column is left that can be a feature") + instead)
        self._known_before = columns
        self.declared()

    def read_missing(self, text: str) -> None:
        """What is done with rows in which a feature is missing."""
        for part in self.split(text):
            name, _, what = part.rpartition("=")
            if what not in (EXCLUDE, LEVEL):
                raise UsageError(f"must be {EXCLUDE} or {LEVEL} behind the name of a column, got {part!r}")
            self.missing[self.named(name).name] = what

    def declared(self, *, last: bool = False) -> list[Candidate]:
        """The features; UsageError for one that cannot be, or whose gaps nobody speaks of, and for too many records."""
        columns = self._known_before
        wrong = [f"{toml_text(c.name)} {why}" for c in columns if (why := why_no_feature(c, self.treatment))]
        gaps = [c.name for c in columns if c.n_missing and c.name not in self.missing] if last else []
        if gaps:
            raise UsageError(f"--missing: name {in_quotes(gaps)}, too: {EXCLUDE} or {LEVEL}?")
        if wrong and last:
            raise UsageError("--features: " + "\n".join(wrong))
        wrong = wrong or [""] * (not self.treatment.values)  # which is not known yet
        levels = [c.n_missing > 0 and self.missing.get(c.name, LEVEL) == LEVEL for c in columns]
        features = [
            declare(c, self.treatment, missing=level) for c, level in zip(columns, levels, strict=True) if not wrong
        ]
        sizes = [len(feature.counts) for feature in features]
        if math.prod(sizes) > MOST_RECORDS:
            raise UsageError(
                f"{' × '.join(map(str, sizes))} = {math.prod(sizes):,} records, at most {MOST_RECORDS:,} are possible: "
                "name fewer features, and adjust for the others (--adjust-for), or write coarser bins into the file"
            )
        return features


def either(columns: Sequence[ColumnSummary]) -> str:
    """Some names of columns, for a proposal."""
    return (
        "|".join([column.name for column in columns[:MOST_LISTED]] + ["..."] * (len(columns) > MOST_LISTED)) or "COLUMN"
    )


def as_number(text: str) -> float:
    """A finite number."""
    value = level_key(text)
    if isinstance(value, str):
        raise UsageError(f"must be a number, got {text!r}")
    return value


def why_no_treatment(column: ColumnSummary) -> str:
    """Why a column cannot be the treatment; "" if it can."""
    if not 2 <= column.n_distinct <= MOST_TREATMENTS:
        return f"has {column.n_distinct:,} distinct values; a treatment needs 2 to {MOST_TREATMENTS}"
    few = f"{level_of(column.values[int(column.counts.argmin())])} has {column.counts.min()} patients"
    must = f"each arm needs {FEWEST_PATIENTS}: leave its rows out of the file, or give them another arm"
    return f"{few}; {must}" if column.counts.min() < FEWEST_PATIENTS else ""


def why_no_outcome(column: ColumnSummary) -> str:
    """Why a column cannot be an outcome as it is; "" if it can."""
    if column.numbers_rows:
        return "numbers the rows"
    numbers = column.without(column.unknown_codes)
    if numbers.is_numeric and numbers.n_distinct > 1:
        return ""
    values = ",".join(f"{level_of(value)}=<number>" for value in numbers.values[:3])
    instead = (
        f"; say what each value is worth: --outcome {shlex.quote(f'{column.name}:{values}')}" if numbers.words else ""
    )
    return f"must be two or more numbers, got {column.shown()}{instead}"


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


CONTROLS = {"placebo", "control", "none", "untreated", "standard", "usual", "no"}


def treatment_names(form: InitForm) -> list[tuple[str, str]]:
    """Value and name of each treatment, one that is called a control first; numbers get a word."""
    values = [str(level_of(value)) for value in form.treatment.values]
    pairs = [(value, f"arm {value}" if form.treatment.is_numeric else value) for value in values]
    return sorted(pairs, key=lambda pair: CONTROLS.isdisjoint(re.findall(r"\w+", pair[1].lower())))

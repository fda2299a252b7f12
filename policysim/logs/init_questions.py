"""What policysim init needs to know: each answer becomes keys of the table [data] of a study.

Nothing that may turn an answer round is guessed: not the direction of the outcome, nor how patients were assigned, nor
what was known before treatment. What the reader of studies refuses is not checked here, too (`study_text.checked`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Context
from typing import Any

import numpy as np

from envs.toml_reader import unknown
from policies.levels import MISSING, LevelKey, level_key, level_of, repeated
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.column_names import DIGITS, says, sounding_later
from policysim.logs.column_summary import ColumnSummary, declare, is_feature, together
from policysim.logs.init_dialogue import DIRECTION, Dialogue
from policysim.logs.log_source import ESTIMATE, EXCLUDE, FOLLOW_UP, JOINT, SHARES, STATE_KEYS
from policysim.logs.outcomes import NO_PATIENT, TOTALS
from policysim.logs.toml_text import toml_text
from policysim.logs.treatments import without_case

RANDOMISED, RANDOMIZED, BY_DOCTORS, NONE, ALL = "randomised", "randomized", "by-doctors", "none", "all"
# On a terminal, in place of an outcome: a time to an event.
TIME = "--time"
# Treatments, and patients that each needs; so many events in each arm come before a horizon that is offered, too.
MOST_TREATMENTS, FEWEST_PATIENTS = 20, 10
# Rows in which a feature is missing are left out if they are no more than this share; else its gaps are a level, NA.
FEW = 0.05
# Columns that a question lists.
MOST_LISTED = 8
CONTROLS = {"placebo", "control", "none", "untreated", "standard", "usual", "no"}
NOTHING = ColumnSummary("", (), np.zeros(0, dtype=np.intp))
# Keys of [data] that have another name than the option; and those that are lists.
KEYS = {"assigned": "propensity", "adjust-for": "adjust_for"}
LISTS = ("adjust-for", "features")

# By option: which columns can be the answer, and in words what they must be.
NEEDED: dict[str, tuple[Callable[[ColumnSummary], bool], str]] = {
    "treatment": (
        lambda column: 2 <= column.n_distinct <= MOST_TREATMENTS and column.counts.min() >= FEWEST_PATIENTS,
        f"must have 2 to {MOST_TREATMENTS} values, each of {FEWEST_PATIENTS} patients or more",
    ),
    "outcome": (
        lambda column: column.is_numeric and column.n_distinct > 1 and not column.numbers_rows,
        "must be two or more numbers; of words say what each is worth, as in 'cured:yes=1,no=0'",
    ),
    "time": (lambda column: column.is_numeric and column.n_distinct > 2, "must be three or more numbers"),
    "event": (lambda column: 2 <= column.n_distinct <= 4, "must be 1 for the event, or say which of its values is it"),
    "features": (is_feature, "must be numbers or a few words, and no id"),
}


@dataclass
class InitAnswers(Dialogue):
    """The table [data] of a study, as the answers about the columns of a file fill it.

    Attributes
    ----------
    columns : dict of str to ColumnSummary
        What is answered to be unknown is missing in them.
    split : callable
        Divides a text into names, at its commas.
    data : dict
        The keys of [data] that are answered.
    treatment : ColumnSummary
        Its column, or several as one.
    weighed : bool
        Whether outcomes have weights, whose signs say which direction is better.
    used : dict of str to str
        By column, the option that named it.
    """

    columns: dict[str, ColumnSummary]
    split: Callable[[str], list[str]]
    data: dict[str, Any] = field(default_factory=dict, init=False)
    treatment: ColumnSummary = field(default=NOTHING, init=False)
    weighed: bool = field(default=False, init=False)
    used: dict[str, str] = field(default_factory=dict, init=False)

    def section(self) -> dict[str, Any]:
        """The table [data], when all is answered that options do not say.

        Raises
        ------
        UsageError
            For an answer that cannot be; where nobody is there to ask, with all questions and the command to type.
        DataError
            If no column can be the treatment.
        """
        self.refuse_totals()
        if "unknown" in self.answers:
            self.ask("unknown", self.read_unknown)
        self.ask_unknown({column.name: column.unknown_codes for column in self.unexplained()}, propose=True)
        if "adjust-for" in self.answers:
            self.ask("adjust-for", lambda text: self.read_columns("adjust-for", self.split(text)))
        self.ask("treatment", self.read_treatment, self.candidates("treatment"))
        followed = not self.answers.keys().isdisjoint(FOLLOW_UP)
        if "outcome" in self.answers or not followed:
            self.ask("outcome", self.read_outcome, self.candidates("outcome"))
            followed = followed or self.answers["outcome"] == TIME
        numbers = [name for name, worth in self.data.get("outcome", {}).items() if not isinstance(worth, dict)]
        self.ask_unknown({name: self.columns[name].third_values for name in numbers}, propose=False)
        if followed:
            self.ask("time", lambda text: self.read_columns("time", [text]), self.candidates("time"))
            self.ask("event", self.read_event, self.candidates("event"))
        if not self.weighed or DIRECTION in self.answers:
            self.ask(DIRECTION, self.read_direction, "--higher-is-better|--lower-is-better")
        if followed:
            self.ask("horizon", self.read_horizon, "TIME", *self.latest_horizon())
        self.ask("id", self.read_id, *self.ids())
        if "cluster" in self.answers:
            self.ask("cluster", self.read_cluster)
        self.ask("assigned", self.read_assigned, *self.ways_to_assign())
        possible = self.possible_features()
        all_can_be = all(is_feature(column) and column.name not in self.later() for column in self.unused)
        self.ask("features", self.read_features, possible + f"|{ALL}" * all_can_be or "COLUMN")
        self.raise_if_open()
        self.declare_columns()
        return {key: value for key, value in self.data.items() if value not in ([], {})}

    def declare_columns(self) -> None:
        """Add the keys of [data] that the columns answer."""
        features = [self.columns[name] for name in self.data["features"]]
        outcomes = [self.columns[name] for name, option in self.used.items() if option in ("outcome", "time", "event")]
        left_out = [column for column in features if 0 < column.n_missing <= FEW * column.n_rows]
        if left_out or any(column.n_missing for column in (self.treatment, *outcomes)):
            self.data["missing"] = EXCLUDE
        with_codes = {name for name, option in self.used.items() if option not in ("id", "cluster", "assigned")}
        codes = self.data.get("unknown", {})
        self.data["unknown"] = {name: values for name, values in codes.items() if name in with_codes}
        self.data["range"] = outcome_range(self.data.get("outcome", {}), self.columns)
        self.data["treatments"] = self.treatment_names()
        self.data["features"] = {
            column.name: declare(column, self.treatment, missing=column.n_missing > 0 and column not in left_out)
            for column in features
        }

    def candidates(self, option: str) -> str:
        """The columns that can be the answer; DataError if none can be the treatment."""
        can_be, must = NEEDED[option]
        names = [column.name for column in self.unused if can_be(column)]
        if option == "treatment" and not names and option not in self.answers:
            raise DataError(f"{self.source}: no column can be the treatment: it {must}")
        return "|".join(names[:MOST_LISTED] + ["..."] * (len(names) > MOST_LISTED)) or "COLUMN"

    @property
    def n_rows(self) -> int:
        """Number of rows of the file."""
        return self.treatment.n_rows

    @property
    def unused(self) -> list[ColumnSummary]:
        """The columns that have no use yet."""
        return [column for name, column in self.columns.items() if name and name not in self.used]

    def is_column(self, name: str) -> bool:
        """Whether there is such a column, whose margins need not be typed."""
        return bool(name.strip()) and name.strip() in map(str.strip, self.columns)

    def column(self, name: str) -> ColumnSummary:
        """A column by its name."""
        alike = [name] if name in self.columns else [key for key in self.columns if key.strip() == name.strip()]
        if not name.strip() or not alike:
            raise UsageError(unknown("column", name, [column for column in self.columns if column]))
        return self.columns[alike[0]]

    def check(self, option: str, columns: Sequence[ColumnSummary]) -> None:
        """UsageError for columns that have a use already, or that cannot be the answer."""
        can_be, must = NEEDED.get(option, (bool, ""))
        wrong: list[str] = []
        others: list[str] = []
        for column in columns:
            if column.name in self.used:
                wrong.append(f"{toml_text(column.name)} is the --{self.used[column.name]} already")
            elif not can_be(column):
                wrong.append(f"{toml_text(column.name)} {must}; it has {column.in_words()}")
            else:
                others.append(column.name)
        if wrong and others:
            wrong.append(f"Name the others: --{option} {shlex.quote(in_quotes(others))}")
        if wrong:
            raise UsageError("\n".join(wrong))

    def read_columns(self, option: str, names: Sequence[str]) -> None:
        """Columns that become a key of [data] as they are."""
        columns = [self.column(name) for name in names]
        self.check(option, columns)
        self.data[KEYS.get(option, option)] = [c.name for c in columns] if option in LISTS else columns[0].name
        self.used |= {column.name: option for column in columns}

    def column_and_pairs(self, text: str) -> tuple[ColumnSummary, list[tuple[str, str]]]:
        """A column, and the pairs behind its name, as in status:event=2,censored=1."""
        name, _, pairs = text.partition(":")
        if not pairs or self.is_column(text):
            return self.column(text), []
        return self.column(name), pairs_of(parts_of(pairs))

    def refuse_totals(self) -> None:
        """DataError for a row of totals, which is called so in a column of ids or numbers."""
        for column in self.columns.values():
            for word in column.words if column.is_id or column.is_mixed else ():
                if word.casefold() in TOTALS:
                    row = int(np.flatnonzero(column.codes == column.values.index(word))[0]) + 1
                    raise DataError(f"{self.source}: row {row}: {toml_text(column.name)}: {word!r}: {NO_PATIENT}")

    def unexplained(self) -> list[ColumnSummary]:
        """The columns that are used, if that is known, of which no answer says what each value is."""
        named = self.answers.get("features", ALL) != ALL and {"outcome", "event"} & self.answers.keys()
        texts = ",".join(self.answers.values()) if named and "treatment" in self.answers else ""
        stated = [self.answers.get(option, "") for option in ("outcome", "event")]
        explained = [text.partition(":")[0].strip() for text in stated if ":" in text]
        columns = [column for column in self.columns.values() if not texts or column.name.strip() in texts]
        return [column for column in columns if column.name.strip() not in explained]

    def ask_unknown(self, values: dict[str, list[LevelKey]], *, propose: bool) -> None:
        """Ask which of some values, by column, mean unknown, unless an answer has said that the others do not.

        `propose` says whether all of them are the answer that is proposed.
        """
        stated = self.answers.get("unknown", "")
        codes = in_quotes(f"{name}={level_of(code)}" for name, of_column in values.items() for code in of_column)
        if not codes or NONE in parts_of(stated):
            return
        remarks = "; ".join(
            f"{toml_text(name)}: {self.columns[name].rows_are(of_column)}"
            for name, of_column in values.items()
            if of_column
        )
        if not propose:
            remarks += ". Or say what each value is worth, as in --outcome 'cured:1=1,0=0,2=0.5'."
        self.answers.pop("unknown", "")
        self.ask("unknown", self.read_unknown, f"{codes}|{NONE}", codes if propose else "", remarks)
        self.answers["unknown"] = ",".join(filter(None, [stated, self.answers["unknown"]]))

    def read_unknown(self, text: str) -> None:
        """Values by column, which are missing from here on; `NONE` says that no others are."""
        if not text:
            raise UsageError(f"must be COLUMN=VALUE, or {NONE}")
        codes = [(self.column(name), code) for name, code in pairs_of(part for part in parts_of(text) if part != NONE)]
        for column, code in codes:
            if level_key(code) == MISSING:
                raise UsageError(f"{toml_text(column.name)}: {code!r} is read as missing anyway: leave it out")
            if level_key(code) not in column.values:
                raise UsageError(f"{toml_text(column.name)} has no value {code!r}; name COLUMN=VALUE, or {NONE}")
        for column, code in codes:
            self.data.setdefault("unknown", {}).setdefault(column.name, []).append(level_of(level_key(code)))
            self.columns[column.name] = self.columns[column.name].without([level_key(code)])

    def read_treatment(self, text: str) -> None:
        """One column, or several that make it together."""
        columns = [self.column(name) for name in self.split(text)]
        self.treatment = together(columns)
        self.check("treatment", [self.treatment])
        for _, value, earlier in repeated(self.treatment.values, without_case):
            both = " and ".join(toml_text(str(level_of(arm))) for arm in (earlier, value))
            raise UsageError(
                f"{toml_text(self.treatment.name)}: {both} differ in capitals or spaces only: write them alike in the "
                "file if they are one treatment, else as different words"
            )
        names = [column.name for column in columns]
        self.data["treatment"] = names if len(names) > 1 else names[0]
        self.used |= dict.fromkeys(names, "treatment")

    def treatment_names(self) -> dict[str, str]:
        """Value and name of each treatment, one that is called a control first; numbers get a word."""
        values = [str(level_of(value)) for value in self.treatment.values]
        names = {value: f"arm {value}" if self.treatment.is_numeric else value for value in values}
        return dict(sorted(names.items(), key=lambda pair: CONTROLS.isdisjoint(re.findall(r"\w+", pair[1].lower()))))

    def read_outcome(self, text: str) -> None:
        """A column; a column and what each of its values is worth; or several columns and their weights."""
        if text == TIME:
            return
        if ":" in text and not self.is_column(text):
            column, pairs = self.column_and_pairs(text)
            worth = {str(level_of(level_key(value))): as_number(number) for value, number in pairs}
            absent = [value for value in map(str, map(level_of, column.values)) if value not in worth]
            if absent:
                what = f"{toml_text(column.name)}: what is {JOINT.join(absent)} worth?"
                codes = in_quotes(f"{column.name}={value}" for value in absent)
                raise UsageError(f"{what} If that means unknown, say --unknown {shlex.quote(codes)}")
            self.data["outcome"] = {column.name: worth}
        else:
            names = [text] if self.is_column(text) else self.split(text)
            self.weighed = len(names) > 1 or ("=" in names[0] and not self.is_column(names[0]))
            pairs = pairs_of(parts_of(text)) if self.weighed else [(names[0], "1")]
            self.check("outcome", [self.column(name) for name, _ in pairs])
            self.data["outcome"] = {self.column(name).name: as_number(weight) for name, weight in pairs}
        self.used |= dict.fromkeys(self.data["outcome"], "outcome")

    def read_direction(self, text: str) -> None:
        """Whether more of the outcome is better; of a time, whether a later event is."""
        way = text.removeprefix("--").removesuffix("-is-better")
        if self.weighed:
            raise UsageError("goes with one outcome: the signs of weights say which direction is better")
        if way not in ("higher", "lower"):
            raise UsageError(f"must be higher or lower, got {text!r}")
        if way == "lower" and "time" in self.data:
            raise UsageError(
                "an event that is wanted, such as recovery, cannot be censored here: name a column that is 1 for the "
                "patients who had it, as --outcome with --higher-is-better"
            )
        if way == "lower":
            stated = self.data.get("outcome", {})  # without which the direction may be given, too
            self.data["outcome"] = {name: less_is_better(worth, self.columns[name]) for name, worth in stated.items()}

    def read_event(self, text: str) -> None:
        """A column of events, and which of its values is the event if that is not 1."""
        column, pairs = self.column_and_pairs(text)
        codes: dict[str, list[str | int]] = {}
        for state, value in pairs:
            codes.setdefault(state, []).append(level_of(level_key(value)))
        meant = {value for values in codes.values() for value in values} if codes else {0, 1}
        values = [level_of(value) for value in column.values]
        if {*values} - meant:
            raise UsageError(
                event_wanted(column, pairs, [value for value in values if value not in meant or not codes])
            )
        self.data["event"] = {"column": column.name, **codes} if codes else column.name
        self.used[column.name] = "event"

    def latest_horizon(self) -> tuple[str, str]:
        """The latest round time with ten patients of each arm at risk, "" if an arm has fewer events; and how many."""
        columns = {option: self.columns[name] for name, option in self.used.items()}
        if not {"treatment", "time", "event"} <= columns.keys():
            return "", ""
        time, event, arms = columns["time"].numbers, columns["event"], self.treatment.codes
        known = (event.codes >= 0) & (arms >= 0) & ~np.isnan(time)
        stated = self.data["event"].get("event", []) if isinstance(self.data["event"], dict) else [1]
        happens = [position for position, value in enumerate(event.values) if level_of(value) in stated]
        happened, time, arms = np.isin(event.codes, happens)[known], time[known], arms[known]
        last = [np.sort(time[arms == arm])[-FEWEST_PATIENTS:] for arm in np.unique(arms)]
        horizon = round_down(min((float(times[0]) for times in last), default=0.0))
        events = np.bincount(arms[happened & (time <= horizon)], minlength=self.treatment.n_distinct)
        at_risk = np.bincount(arms[time >= horizon], minlength=self.treatment.n_distinct)
        enough = horizon > 0 and min(events.min(), at_risk.min()) >= FEWEST_PATIENTS
        more = f"Up to {horizon:g} the arms have {listed(events)} events, and {listed(at_risk)} patients at risk."
        return (f"{horizon:g}", more) if enough else ("", f"{more} No time has {FEWEST_PATIENTS} of each.")

    def read_horizon(self, text: str) -> None:
        """A time, or several."""
        times = [as_number(time) for time in text.split(",")]
        self.data["horizon"] = times if len(times) > 1 else times[0]

    def ids(self) -> tuple[str, str]:
        """Columns that may be the id; and one that is called so, or none, unless patients may have several rows."""
        names = [column.name for column in self.unused if column.is_id]
        default = next((name for name in names if says(name, "id")), NONE)
        repeats = any(says(c.name, "patient") and MOST_TREATMENTS < c.n_distinct < c.n_rows for c in self.unused)
        return "|".join([NONE, *names[:MOST_LISTED]]), "" if repeats else default

    def read_id(self, text: str) -> None:
        """A column in which each patient has a value of its own, or none."""
        if text == NONE:
            return
        column = self.column(text)
        if column.n_distinct + column.n_missing < column.n_rows and self.answers.get("cluster") != text:
            raise UsageError(
                f"{toml_text(column.name)} has {column.n_distinct:,} values in {column.n_rows:,} rows. If several rows "
                f"are one patient, say --cluster {shlex.quote(text)}, too; if each row is a patient, say --id {NONE}"
            )
        self.read_columns("id", [text])

    def read_cluster(self, text: str) -> None:
        """A column of groups of rows, which may be the id."""
        self.data["cluster"] = self.column(text).name
        self.used.setdefault(self.data["cluster"], "cluster")

    def ways_to_assign(self) -> tuple[str, str, str]:
        """All ways, the columns that look like a propensity, no default, and the order of a ratio."""
        arms = JOINT.join(map(toml_text, self.treatment_names().values()))
        ratio = [f"{RANDOMISED}:{','.join('1' * self.treatment.n_distinct)}"] if arms else []
        columns = [column.name for column in self.unused if column.is_propensity]
        return "|".join([RANDOMISED, *ratio, BY_DOCTORS, *columns]), "", arms and f"The ratio is in the order {arms}."

    def read_assigned(self, text: str) -> None:
        """How patients got their treatments."""
        way, colon, ratio = text.partition(":")
        if way in (RANDOMISED, RANDOMIZED) and not colon:
            self.data["propensity"] = SHARES
        elif text == BY_DOCTORS:
            self.data["propensity"] = ESTIMATE
        elif way in (RANDOMISED, RANDOMIZED):
            names, numbers = list(self.treatment_names().values()), [as_number(number) for number in ratio.split(",")]
            if len(numbers) != len(names):
                raise UsageError(f"must have a number > 0 for each of {len(names)} arms, got {ratio!r}")
            self.data["propensity"] = dict(zip(names, numbers, strict=True))
        elif not self.is_column(text):
            possible = [column.name for column in self.unused if column.is_probability]
            raise UsageError(unknown("assignment", text, [RANDOMISED, f"{RANDOMISED}:1,1", BY_DOCTORS, *possible]))
        else:
            self.read_columns("assigned", [text])

    def read_features(self, text: str) -> None:
        """Columns from before treatment; none that is named is left out."""
        later = [column.name for column in self.unused if column.name in self.later()]
        if text == ALL and later:
            others = self.possible_features() or "COLUMN"
            instead = f"Name the others: --features {shlex.quote(others)}"
            if self.prompt is None:
                instead = self.type_next(features=others)
            raise UsageError(
                f"{ALL} would take {listed(map(toml_text, later))}, which by name came after treatment; a column that "
                f"did not may be named.\n{instead}"
            )
        self.read_columns("features", [column.name for column in self.unused] if text == ALL else self.split(text))

    def later(self) -> list[str]:
        """The columns that by name are treatments, or came after one."""
        stem = self.treatment.name.rstrip(DIGITS)
        again = [name for name in self.columns if stem and name.rstrip(DIGITS) == stem]
        return [*sounding_later(list(self.columns)), *again]

    def possible_features(self) -> str:
        """The columns without another use that can be features and do not sound as if they came after treatment."""
        later = self.later()
        return in_quotes(column.name for column in self.unused if is_feature(column) and column.name not in later)


def event_wanted(column: ColumnSummary, pairs: list[tuple[str, str]], left: list[str | int]) -> str:
    """What to type of an event's column so that each value has a meaning; what is open stands in <>.

    `pairs` are the meanings and values that were typed, and `left` the values without one.
    """
    stated = [(state, value) for state, value in pairs if level_key(value) in column.values]
    none = [repr(value) for _, value in pairs if level_key(value) not in column.values]
    values = [in_quotes([str(value)]) for value in left]
    states = [state for state in ("event", "censored") if state not in dict(stated)]
    states += ["competing"] if states and len(values) > len(states) else []
    choice = f"<{'|'.join(values)}>" if len(values) > 1 else values[0]
    parts = [f"{state}={in_quotes([value])}" for state, value in stated]
    parts += [f"{state}={choice}" for state in states] or [
        f"<{'|'.join(STATE_KEYS.values())}>={value}" for value in values
    ]
    instead = f"{listed(none)} is none of its values; " if none else ""
    form = shlex.quote(f"{column.name}:{','.join(parts)}")
    return f"{toml_text(column.name)}: {instead}say what each of its values means: --event {form}"


def outcome_range(weights: dict[str, Any], columns: dict[str, ColumnSummary]) -> list[float]:
    """The least and the largest utility that columns can make; [] where they are within [0, 1], or codes."""
    if not weights or any(isinstance(worth, dict) for worth in weights.values()):
        return []
    ends = np.array([(columns[name].values[0], columns[name].values[-1]) for name in weights], dtype=np.float64)
    if 0 <= ends.min() <= ends.max() <= 1:
        return []
    weighted = np.sort(ends * np.array(list(weights.values()))[:, None])
    return list(map(float, weighted.sum(axis=0)))


def less_is_better(worth: Any, column: ColumnSummary) -> Any:
    """A weight, or the worth of each value, turned round; what was within [0, 1] stays there and is counted of 100."""
    if column.values == (0, 1) and not isinstance(worth, dict):
        worth = {"0": 0.0, "1": 1.0}
    if not isinstance(worth, dict):
        return -worth
    shares = all(0 <= number <= 1 for number in worth.values())
    return {value: 1 - number if shares else -number for value, number in worth.items()}


def listed(values: Iterable[object]) -> str:
    """Numbers or names with commas between."""
    return JOINT.join(map(str, values))


def parts_of(text: str) -> list[str]:
    """What stands between commas; what is in quotes may hold some.

    Examples
    --------
    >>> parts_of('event=2,"competing=Dead, other",censored="Lost, moved"')
    ['event=2', 'competing=Dead, other', 'censored="Lost, moved"']
    """
    return [without_quotes(part) for part in re.findall(r'(?:"(?:[^"]|"")*"|[^,])+', text)]


def without_quotes(text: str) -> str:
    """A text without margins, and without quotes around all of it."""
    text = text.strip()
    return text[1:-1].replace('""', '"') if re.fullmatch(r'"(?:[^"]|"")*"', text) else text


def pairs_of(parts: Iterable[str]) -> list[tuple[str, str]]:
    """Names and values, of NAME=VALUE each."""
    pairs = []
    for part in parts:
        name, _, value = part.rpartition("=")
        if not name:
            raise UsageError(f"must be NAME=VALUE, with commas between, got {part!r}")
        pairs.append((without_quotes(name), without_quotes(value)))
    return pairs


def in_quotes(names: Iterable[str]) -> str:
    """Names as `cli.options.names` reads them: in quotes if one holds commas, quotes or margins."""
    odd = {*',"\r\n'}
    quoted = ('"' + name.replace('"', '""') + '"' if odd & {*name} or name != name.strip() else name for name in names)
    return ",".join(quoted)


def as_number(text: str) -> float:
    """A finite number."""
    value = level_key(text)
    if isinstance(value, str):
        raise UsageError(f"must be a number, got {text!r}")
    return value


def round_down(number: float) -> float:
    """Two digits of a number, not more than it.

    Examples
    --------
    >>> round_down(1231.0), round_down(0.57), round_down(3.0), round_down(0.0)
    (1200.0, 0.57, 3.0, 0.0)
    """
    return float(Context(prec=2, rounding=ROUND_DOWN).create_decimal(repr(number)))

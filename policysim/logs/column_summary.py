"""The columns of a data file: what they hold, and what they look like. A remark is for people to read; nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from policies.arrays import IntArray
from policies.levels import MISSING, LevelKey, Levels, codes_of_keys, level_of, sorted_keys
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.data_table import coded, missing, numbers, read_table
from policysim.logs.log_source import JOINT
from policysim.logs.log_tables import joined_columns
from policysim.logs.toml_text import toml_text

# Words of names, by what they name: a patient or anything's id, treatments, what is known only after one, and so on.
_WORDS = {
    "patient": "pid pidnum mrn patient subject subj participant person seqn",
    "time": "time days weeks months years survival tte futime fu os pfs dfs rfs efs followup",
    "status": "status event cens censor censored death died dead fustat failure relapse recur",
    "propensity": "propensity pscore",
    "qaly": "qaly qalys",
    "cost": "cost costs",
    "treatment": "treatment action arm arms treat trt rx tx treated therapy intervention allocation group",
    "after": """
        reward outcome success response responder cured cure recovered recovery remission improved alive survived
        utility benefit result mortality adverse toxicity complication readmitted readmission hospitalised hospitalized
        loss cost progression days weeks months survival los followup follow fu post after end endpoint discharge off
        ae sae dropout withdrawal withdrawn compliance adherence censoring propensity pscore qaly qalys
    """,
    "period": "time hour hours day days week weeks wk month months mo year years yr",
}
WORDS = {kind: frozenset(text.split()) for kind, text in _WORDS.items()}
WORDS["id"] = WORDS["patient"] | {"id", "identifier"}
# What files write for a number that is not known.
CODES = (9, 99, 999, 9999, 99999, -9, -99, -999, -9999)
# Larger numbers are codes.
LARGEST = 1e15
# A column decides another only if so many rows of each of its values agree.
ROWS_EACH = 10
# Levels, and columns, that a table lists.
MOST_SHOWN, MOST_COLUMNS = 4, 200


def words_of(name: str) -> set[str]:
    """The words of a name in lower case: of days_toEvent and "Days to event" days, to, event."""
    return set(re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def says(name: str, kind: str) -> bool:
    """Whether one of a name's words is of this kind.

    Examples
    --------
    >>> [name for name in ("patientId", "site_id", "covid", "PID") if says(name, "id")]
    ['patientId', 'site_id', 'PID']
    """
    return not WORDS[kind].isdisjoint(words_of(name))


def is_follow_up(name: str) -> bool:
    """Whether a name is that of a time to an event, or of follow-up, and of nothing else.

    Examples
    --------
    >>> [name for name in ("time", "Days to event", "survival_months", "time_in_range") if is_follow_up(name)]
    ['time', 'Days to event', 'survival_months']
    """
    others = {"to", "until", "follow", "up", "free", "overall"}
    return says(name, "time") and words_of(name) <= WORDS["time"] | WORDS["status"] | others


def is_id(name: str) -> bool:
    """Whether one of a name's words is that of an id: of a patient, or of anything else."""
    return says(name, "id")


DIGITS, MOST_DIGITS = "0123456789", 9
_LATER_BY = re.compile(r"(?:^|[^a-z0-9])0*[1-9][0-9]* ?(?:d|days?|w|wks?|weeks?|m|mo|months?|y|yrs?|years?)$")


def first_numbers(names: Iterable[str]) -> dict[str, int]:
    """The smallest number behind each stem: of cd40, cd420 and x1 {"cd": 40, "x": 1}."""
    found: dict[str, int] = {}
    for name in names:
        stem = name.rstrip(DIGITS)
        if stem != name:
            number = int(name[len(stem) :][:MOST_DIGITS])
            found[stem] = min(number, found.get(stem, number))
    return found


def sounds_later(name: str, first: Mapping[str, int]) -> bool:
    """Whether a name sounds like a treatment, or like what came after one: nothing is said about such a column.

    `first` are the `first_numbers` of all names.

    Examples
    --------
    >>> names = ["age", "cd40", "cd420", "arm", "death28", "pain_week4", "stroke_14d", "x1", "x2"]
    >>> [name for name in names if sounds_later(name, first_numbers(names))]
    ['cd420', 'arm', 'death28', 'pain_week4', 'stroke_14d']
    """
    words, stem = words_of(name), name.rstrip(DIGITS)
    number = int(name[len(stem) :][:MOST_DIGITS] or 0)
    again = len("".join(words)) > 1 and 0 < first.get(stem, number) < number
    counted = number > 0 and says(name, "period")
    after = says(name, "after") or says(name, "status") or is_follow_up(name)
    treatment = bool(words) and words <= WORDS["treatment"]
    return after or treatment or counted or again or _LATER_BY.search(name.lower()) is not None


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What a column holds.

    Attributes
    ----------
    name : str
    values : tuple of float or str
        The distinct values, sorted, numbers first; missing ones are none.
    codes : array, (n_rows,)
        Positions in `values`; -1 where a value is missing.
    """

    name: str
    values: tuple[LevelKey, ...]
    codes: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return len(self.values)

    @cached_property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return int(np.count_nonzero(self.codes < 0))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all values are numbers that can be rounded."""
        return bool(self.values) and not any(isinstance(value, str) or abs(value) > LARGEST for value in self.values)

    @cached_property
    def counts(self) -> IntArray:
        """How many rows have each value, (n_distinct,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.n_distinct)

    @cached_property
    def is_id(self) -> bool:
        """Whether each row has a word or a whole number of its own."""
        whole = all(isinstance(value, str) or value.is_integer() for value in self.values)
        return self.n_rows > 1 and self.n_distinct == self.n_rows and whole

    @cached_property
    def numbers_rows(self) -> bool:
        """Whether its values are whole numbers without a gap, each once."""
        return self.is_id and self.is_numeric and float(self.values[-1]) - float(self.values[0]) == self.n_rows - 1

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The values that are no numbers, the commonest first."""
        order = np.argsort(-self.counts, kind="stable")
        return tuple(word for word in (self.values[place] for place in order) if isinstance(word, str))

    @cached_property
    def is_mixed(self) -> bool:
        """Whether most cells are numbers, and some are words."""
        return bool(self.words) and self.rows_of(self.words) < self.counts.sum() / 2

    def rows_of(self, values: Collection[LevelKey]) -> int:
        """How many rows have one of some values."""
        return int(sum(count for value, count in zip(self.values, self.counts, strict=True) if value in values))

    @cached_property
    def unknown_codes(self) -> list[LevelKey]:
        """Values that may stand for unknown: words without a digit among numbers; 9, 99, ... far from all others.

        Far is farther than all others are from each other; a negative code needs only to be the one negative number.
        """
        found: list[LevelKey] = [word for word in self.words if not re.search(r"\d", word)] if self.is_mixed else []
        rest = [value for value in self.values if not isinstance(value, str)]
        while len(rest) > 2 and rest[-1] in CODES and rest[-1] - rest[-2] > rest[-2] - rest[0]:
            found.append(rest.pop())
        while len(rest) > 2 and rest[0] in CODES and rest[0] < 0 <= rest[1]:
            found.append(rest.pop(0))
        return found if not self.words or self.is_mixed else []

    def without(self, values: Collection[LevelKey]) -> ColumnSummary:
        """The same with some values missing."""
        kept = [place for place, value in enumerate(self.values) if value not in values]
        places = np.full(self.n_distinct + 1, -1)  # the last is that of missing values
        places[kept] = np.arange(len(kept))
        return ColumnSummary(self.name, tuple(self.values[place] for place in kept), places[self.codes])

    def decides(self, other: ColumnSummary) -> bool:
        """Whether each value of this column goes with one value of the other, and enough rows say so."""
        if self.n_rows < ROWS_EACH * self.n_distinct or not 2 <= other.n_distinct <= self.n_distinct:
            return False
        known = (self.codes >= 0) & (other.codes >= 0)
        return len(pd.unique(self.codes[known] * other.n_distinct + other.codes[known])) <= self.n_distinct

    @property
    def is_propensity(self) -> bool:
        """Whether it is called a propensity, and holds probabilities > 0."""
        return (
            self.is_numeric
            and says(self.name, "propensity")
            and 0 < float(self.values[0]) <= float(self.values[-1]) <= 1
        )

    def shown(self) -> str:
        """What it holds, for people: the levels, or the ends of numbers; of many words no single one."""
        if self.is_numeric and self.n_distinct > MOST_SHOWN:
            return f"{level_of(self.values[0])} to {level_of(self.values[-1])}"
        if self.n_distinct > MOST_SHOWN:
            return "numbers and words" if self.is_mixed else "words"
        return JOINT.join(toml_text(str(level_of(value))) for value in self.values) or "no values"

    def remark(self) -> str:
        """What it looks like; "" if nothing is to be said."""
        codes = self.unknown_codes
        listed = JOINT.join(toml_text(str(level_of(code))) for code in codes or self.words[:1])
        rows = f"{self.rows_of(codes or self.words)} of {self.counts.sum()} values"
        remarks = {
            "no name": not self.name,
            "the same in all rows": self.n_distinct < 2,
            "numbers the rows": self.numbers_rows,
            "an id?": self.is_id and not self.numbers_rows,
            f"{rows} are no numbers: {listed}{' (unknown?)' if codes else ''}": self.is_mixed,
            f"{rows} are {listed} (unknown?)": bool(codes) and not self.is_mixed,
            "a propensity?": self.is_propensity,
            "a time?": self.is_numeric and self.n_distinct > 2 and says(self.name, "time"),
        }
        return "; ".join(remark for remark, holds in remarks.items() if holds)


def summarise(column: pd.Series, name: str) -> ColumnSummary:
    """Summarise a column of text or of anything else."""
    values = numbers(column)
    absent = np.isnan(values)
    if not np.any(absent & ~missing(column, absent)) and np.all(np.isfinite(values[~absent])):
        distinct, places = np.unique(values[~absent], return_inverse=True)
        codes = np.full(len(column), -1)
        codes[~absent] = places
        return ColumnSummary(name, tuple(distinct.tolist()), codes)
    positions, keys = coded(column)
    ordered = sorted_keys(set(keys) - {MISSING})
    levels = Levels(name, tuple(map(level_of, ordered)))
    return ColumnSummary(name, tuple(ordered), codes_of_keys(levels, keys)[positions])


def read_columns(path: Path, stated: CsvFormat = RECOGNISED) -> list[ColumnSummary]:
    """The columns of a file; what is not `stated` of a text file is recognised.

    Raises
    ------
    DataError
        For a file that cannot be read.
    """
    table = read_table(path, stated=stated)
    return [summarise(table[name], name) for name in table.columns]


def together(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """Several columns as one, each combination that occurs a value of its own: `log_tables.joined_columns` names it."""
    if len(parts) == 1:
        return parts[0]
    texts = [pd.Series([*map(level_of, part.values), None], dtype=object).iloc[part.codes] for part in parts]
    return summarise(
        joined_columns([text.reset_index(drop=True) for text in texts]), JOINT.join(part.name for part in parts)
    )


def columns_table(columns: Sequence[ColumnSummary]) -> str:
    """The columns as text: what they hold, how many levels, how many cells are missing, what they look like; hints."""
    heads = ("column", "values", "levels", "missing", "remark")
    rows = [(toml_text(c.name), c.shown(), f"{c.n_distinct:,}", f"{c.n_missing:,}", c.remark()) for c in columns]
    table = [heads, *rows[:MOST_COLUMNS]]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
    more = [f"... and {len(rows) - MOST_COLUMNS:,} more"] if rows[MOST_COLUMNS:] else []
    return "".join(f"{line}\n" for line in [*lines, *more, *dict.fromkeys(hints(columns).values())])


def hints(columns: Sequence[ColumnSummary]) -> dict[str, str]:
    """What to think of before a column is called a feature, by its name."""
    found: dict[str, str] = {}
    named = {kind: [c.name for c in columns if c.is_numeric and says(c.name, kind)] for kind in WORDS}
    if named["qaly"] and named["cost"]:
        qaly, cost = named["qaly"][0], named["cost"][0]
        both = f"{qaly} and {cost} are outcomes, if they came after treatment: --outcome {qaly}=THRESHOLD,{cost}=-1"
        found |= dict.fromkeys((qaly, cost), f"{both} counts both, THRESHOLD being what one {qaly} is worth.")
    events = [c.name for c in columns if says(c.name, "status") and 2 <= c.n_distinct <= 4]
    if named["time"] and events:
        time, event = named["time"][0], events[0]
        said = f"{time} may be a time to an event, of which follow-up may end early: --time {time} --event {event}"
        found |= dict.fromkeys((time, event), f"{said} in place of --outcome.")
    stages: dict[tuple[str, tuple[LevelKey, ...]], list[str]] = {}
    for column in (c for c in columns if c.name[-1:].isdecimal() and 2 <= c.n_distinct <= ROWS_EACH):
        stages.setdefault((column.name.rstrip("0123456789"), column.values), []).append(column.name)
    for names in (names for names in stages.values() if 2 <= len(names) <= MOST_SHOWN):
        said = f"{JOINT.join(names)} have the same values: what came after the first treatment is no feature."
        found |= dict.fromkeys(
            names, f"{said} Rules over several stages of treatment are not learned from data here: see docs/trials.md."
        )
    return found

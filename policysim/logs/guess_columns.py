"""A column of a file at a glance: its distinct values, and whether they are numbers.

What a column's name says about what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.files.bad_rows import MISSING, Key, sorted_keys
from policysim.files.data_table import coded, codes_among, missing, numbers

# A column decides another only if so many rows of each of its values agree.
ROWS_EACH = 10
# Larger numbers are codes.
LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What a column holds.

    Attributes
    ----------
    name : str
    values : tuple of float or str
        The distinct values, sorted; missing ones are none.
    codes : array, (n_rows,)
        Positions in `values`; -1 where a value is missing.
    """

    name: str
    values: tuple[Key, ...]
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
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.is_numeric and all(float(value).is_integer() for value in self.values)

    @property
    def is_binary(self) -> bool:
        """Whether the values are 0 and 1."""
        return self.values == (0.0, 1.0)

    @property
    def low(self) -> float:
        """The smallest number."""
        return float(self.values[0])

    @property
    def high(self) -> float:
        """The largest number."""
        return float(self.values[-1])

    @cached_property
    def counts(self) -> IntArray:
        """How many rows have each value, (n_distinct,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.n_distinct)

    def present(self) -> FloatArray:
        """The numbers of all rows that have one."""
        return np.repeat(np.array(self.values, dtype=np.float64), self.counts)

    def decides(self, other: ColumnSummary) -> bool:
        """Whether each value of this column goes with one value of the other, and enough rows say so."""
        # Missing values count as one more.
        if self.n_rows < ROWS_EACH * self.n_distinct or other.n_distinct > self.n_distinct + 1:
            return False
        pairs = np.unique((self.codes + 1) * (other.n_distinct + 1) + other.codes + 1)
        return len(pairs) == len(np.unique(self.codes))


def summarise(column: pd.Series, name: str) -> ColumnSummary:
    """Summarise a column of text or of anything else."""
    values = numbers(column)
    absent = np.isnan(values)
    if not np.any(absent & ~missing(column, absent)) and np.all(np.isfinite(values[~absent])):
        distinct, places = np.unique(values[~absent], return_inverse=True)
        codes = np.full(len(column), -1)
        codes[~absent] = places
        return ColumnSummary(name, tuple(distinct.tolist()), codes)
    ordered = sorted_keys(set(coded(column)[1]) - {MISSING})
    return ColumnSummary(name, tuple(ordered), codes_among(column, ordered))


# The likelier, the earlier.
# fmt: off
TREATMENT = (
    "treatment", "action", "arm", "arms", "treat", "trt", "treated", "therapy", "intervention", "allocation",
    "assignment", "randomised", "randomized", "regimen", "group", "a",
)
PROPENSITY = ("propensity", "pscore", "ps", "probability", "prob")
BENEFIT = (
    "reward", "outcome", "success", "response", "responder", "cured", "cure", "recovered", "recovery", "remission",
    "improved", "alive", "survived", "utility", "benefit", "result", "y",
)
HARM = (
    "death", "died", "dead", "mortality", "event", "cens", "failure", "relapse", "recurrence", "progression", "adverse",
    "toxicity", "complication", "readmitted", "readmission", "hospitalised", "hospitalized", "loss", "cost",
)
# Known only after treatment, if not outcomes.
LATER = (
    "days", "time", "weeks", "months", "survival", "los", "followup", "follow", "fu", "post", "after", "end",
    "endpoint", "discharge", "off", "ae", "sae", "dropout", "withdrawal", "withdrawn", "compliance", "adherence",
    "censored", "censoring", "status",
)
# Known before, whatever else the name says.
BEFORE = ("pre", "prior", "baseline", "base", "bl", "before", "history", "hx", "initial", "naive", "since", "previous")
# No treatment changes what these name, alone or with the words behind them.
FIXED = (
    "age", "agegroup", "agegr", "agecat", "sex", "gender", "male", "female", "race", "ethnicity", "ethnic", "nonwhite",
    "stage", "birthdate", "birthyear", "dob",
)
OF_FIXED = ("years", "yrs", "group", "cat", "at", "entry", "patient", "tumor", "tumour", "clinical", "in", "code")
# Measured before treatment, unless it is a change since then.
BASELINE = ("baseline", "pretreatment", "prior", "previous", "pre")
CHANGE = (
    "change", "delta", "diff", "difference", "from", "minus", "gain", "drop", "increase", "decrease", "improvement",
    "post", "ratio", "percent",
)
# Times to an event or of follow-up, of which patients may see only a part.
SURVIVAL = ("futime", "survtime", "survival", "tte", "ttp", "ttd", "os", "pfs", "dfs", "rfs", "efs")
UNITS = ("time", "days", "weeks", "months", "years")
TO = ("to", "until", "till")
# Whether the event came, or follow-up ended before it.
STATUS = (
    "status", "event", "cens", "censor", "censored", "censoring", "death", "died", "dead", "fustat", "failure", "fail",
    "relapse", "recurrence", "progression",
)
OF_SURVIVAL = ("overall", "free", "disease", "follow", "up", "fu", "followup")
IDS = ("patient", "subject", "subj", "person", "participant", "mrn", "record", "case", "row", "index", "no", "nr")
# fmt: on
TREATMENT_STEMS = ("treat", "trt", "therap")


def words(name: str) -> list[str]:
    """The words of a name in lower case: days_toEvent and "Days to event" are days, to, event.

    Examples
    --------
    >>> words("days_toEvent2")
    ['days', 'to', 'event']
    """
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W\d_]+", parts.lower())


def rank(name: str, known: Sequence[str]) -> int | None:
    """How likely a name is among known ones, 0 first: by the whole name, then by one of its words; None if not."""
    parts = words(name)
    if name.strip().lower() in known:
        return known.index(name.strip().lower())
    ranks = [known.index(part) for part in parts if part in known]
    return len(known) + min(ranks) if ranks else None


def sounds_like_id(name: str) -> bool:
    """Whether a name is one of an identifier: id, pidnum, patient."""
    return "id" in name.lower() or rank(name, IDS) is not None


def is_id(name: str) -> bool:
    """Whether one of a name's words says so beyond doubt."""
    return not {"id", "pid", "pidnum", "mrn", "patient", "subject"}.isdisjoint(words(name))


def is_before(name: str) -> bool:
    """Whether a name says that it was known before treatment."""
    return rank(name, BEFORE) is not None or name.lower().startswith(("pre", "prior"))


def sounds_later(name: str) -> bool:
    """Whether a name says that it was known only after treatment."""
    return any(rank(name, known) is not None for known in (LATER, BENEFIT, HARM))


def is_fixed(name: str) -> bool:
    """Whether a name is that of what no treatment changes: age, sex at entry; not age_at_death.

    Examples
    --------
    >>> [name for name in ("age", "Age (years)", "tumor_stage", "age_at_death", "sexual_function") if is_fixed(name)]
    ['age', 'Age (years)', 'tumor_stage']
    """
    parts = set(words(name))
    return not parts.isdisjoint(FIXED) and parts <= {*FIXED, *OF_FIXED}


def is_baseline(name: str) -> bool:
    """Whether a name says that it was measured before treatment, and is no change since: not change_from_baseline."""
    parts = set(words(name))
    return not parts.isdisjoint(BASELINE) and parts.isdisjoint(CHANGE)


def is_time_to_event(name: str) -> bool:
    """Whether a name says that it is the time to an event, or of follow-up.

    Examples
    --------
    >>> named = ["survival_months", "days_toEvent", "PFS", "follow_up_days", "time_in_range", "hospital_days"]
    >>> [name for name in named if is_time_to_event(name)]
    ['survival_months', 'days_toEvent', 'PFS', 'follow_up_days']
    """
    parts = words(name)
    if any(unit in UNITS and other in TO for unit, other in pairwise(parts)):
        return True
    others = {*SURVIVAL, *OF_SURVIVAL, *STATUS}
    found = set(parts)
    return found <= {*UNITS, *others} and not found.isdisjoint({*UNITS, *SURVIVAL}) and not found.isdisjoint(others)


def is_time(name: str) -> bool:
    """Whether a name is a unit of time and nothing else: time, days."""
    parts = words(name)
    return bool(parts) and set(parts) <= set(UNITS)


def is_status(name: str) -> bool:
    """Whether a name says that a column tells events from censoring."""
    return not set(words(name)).isdisjoint(STATUS)


def sounds_like_treatment(name: str) -> bool:
    """Whether a name has the treatment in it: offtrt, treat."""
    return any(stem in name.lower() for stem in TREATMENT_STEMS)


def earlier_measurement(name: str, names: Sequence[str]) -> str | None:
    """The column of which this one is a later measurement: the same stem with a smaller number.

    cd420 is cd4 in week 20 if there is a cd40. Where nothing ends in 0, the smallest number is the first; stems of one
    letter (x1, x2) only number the columns.

    Examples
    --------
    >>> names = ["cd40", "cd420", "cd80", "cd820", "bp_1", "bp_12", "x1", "x2"]
    >>> [earlier_measurement(name, names) for name in names]
    [None, 'cd40', None, 'cd80', None, 'bp_1', None, None]
    """
    digits = len(name) - len(name.rstrip("0123456789"))
    for length in range(1, digits + 1):
        stem, number = name[:-length], name[-length:]
        if int(number) > 0 and f"{stem}0" in names and len("".join(words(stem))) > 1:
            return f"{stem}0"
    stem = name[: len(name) - digits]
    if not digits or len("".join(words(stem))) < 2 or _has_start(name, names):
        return None
    numbers = {int(other[len(stem) :]): other for other in names if re.fullmatch(re.escape(stem) + "[0-9]{1,9}", other)}
    first = min(numbers, default=0)
    return numbers[first] if numbers and first < int(name[-digits:]) else None


def _has_start(name: str, names: Sequence[str]) -> bool:
    """Whether it, or what it ends in, is a first measurement: cd80 in a table with cd820."""
    return name.endswith("0") and any(
        re.fullmatch(re.escape(name[:-1]) + "[0-9]{1,9}", other) for other in names if other != name
    )

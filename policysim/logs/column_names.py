"""What a column's name says about what it holds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from policysim.files.whole_folders import toml_text

COLUMNS_SHOWN = 30

# fmt: off
# A name of these words alone is a treatment's, beyond doubt if one is of the first.
TREATMENT = frozenset((
    "treatment", "action", "arm", "arms", "treat", "trt", "rx", "tx", "treated", "therapy", "intervention", "allocation",
    "randomised", "randomized", "regimen", "assignment",
))
OF_TREATMENT = frozenset(("group", "to", "assigned", "code", "study", "name"))
BENEFIT = frozenset((
    "reward", "outcome", "success", "response", "responder", "cured", "cure", "recovered", "recovery", "remission",
    "improved", "alive", "survived", "utility", "benefit", "result",
))
HARM = frozenset((
    "death", "died", "dead", "mortality", "event", "failure", "relapse", "recurrence", "progression", "adverse",
    "toxicity", "complication", "readmitted", "readmission", "hospitalised", "hospitalized", "loss", "cost",
))
# Known only after treatment, if not outcomes.
LATER = frozenset((
    "days", "time", "weeks", "months", "survival", "los", "followup", "follow", "fu", "post", "after", "end",
    "endpoint", "discharge", "off", "ae", "sae", "dropout", "withdrawal", "withdrawn", "compliance", "adherence", "cens",
    "censored", "censoring",
))
# Known before, whatever else the name says.
BEFORE = frozenset((
    "pre", "prior", "baseline", "base", "bl", "before", "history", "hx", "initial", "naive", "since", "previous",
))
# No treatment changes what these name, alone or with the words behind them.
FIXED = frozenset((
    "age", "agegroup", "agegr", "agecat", "sex", "gender", "male", "female", "race", "ethnicity", "ethnic", "nonwhite",
    "stage", "birthdate", "birthyear", "dob",
))
OF_FIXED = frozenset((
    "years", "yrs", "months", "days", "group", "cat", "at", "entry", "patient", "tumor", "tumour", "clinical", "in",
    "code",
))
# Measured before treatment, unless it is a change since then.
BASELINE = ("baseline", "pretreatment", "prior", "previous", "pre")
CHANGE = (
    "change", "delta", "diff", "difference", "from", "minus", "gain", "drop", "increase", "decrease", "improvement",
    "post", "ratio", "percent",
)
# Times to an event or of follow-up, of which patients may see only a part.
UNITS = ("time", "days", "weeks", "months", "years")
ENDPOINTS = ("os", "pfs", "dfs", "rfs", "efs")
SURVIVAL = (
    "survival", "tte", "ttp", "ttd", "dtime", "rtime", "stime", *ENDPOINTS,
    *(f"{stem}{unit}" for stem in (*ENDPOINTS, "surv", "fu", "obs", "event", "death") for unit in UNITS),
)
TO = ("to", "until", "till")
# Whether the event came, or follow-up ended before it.
STATUS = (
    "event", "cens", "censor", "censored", "censoring", "death", "died", "dead", "fustat", "failure", "fail",
    "relapse", "recurrence", "progression", "recur",
)
VITAL = ("vital", "life", "patient")
OF_SURVIVAL = ("overall", "free", "disease", "follow", "up", "fu", "followup")
# A patient's, and of anything; what tools write for the number of a row; and of how many a row stands for.
PATIENT = frozenset(("pid", "pidnum", "mrn", "patient", "subject", "subj", "participant", "person", "seqn"))
IDS = PATIENT | {"id", "identifier"}
ROW_NUMBERS = frozenset(("", "rownames", "rowname", "unnamed: 0", "index", "row"))
COUNTS = frozenset(("freq", "frequency", "frequencies", "count", "counts", "n", "number", "total", "ncases", "ncontrols"))
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


def says(name: str, known: Collection[str]) -> bool:
    """Whether one of a name's words is known; a letter is no word."""
    return any(len(word) > 1 and word in known for word in words(name))


def is_treatment(name: str) -> bool:
    """Whether a name is a treatment's beyond doubt: all of its words are.

    Examples
    --------
    >>> [name for name in ("arm", "Randomised to", "trtArm", "arm_or_hand", "prior_treatment") if is_treatment(name)]
    ['arm', 'Randomised to', 'trtArm']
    """
    parts = set(words(name))
    return not parts.isdisjoint(TREATMENT) and parts <= TREATMENT | OF_TREATMENT


def is_outcome(name: str) -> bool:
    """Whether a name is an outcome's beyond doubt: all of its words are."""
    parts = set(words(name))
    return bool(parts) and parts <= BENEFIT | HARM and not name[-1].isdigit()


def listed(columns: Sequence[str]) -> str:
    """Names of columns in a message."""
    shown = [toml_text(name) for name in columns[:COLUMNS_SHOWN]]
    rest = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def is_id(name: str) -> bool:
    """Whether one of a name's words says so beyond doubt."""
    return not IDS.isdisjoint(words(name))


def is_before(name: str) -> bool:
    """Whether a name says that it was known before treatment."""
    return says(name, BEFORE) or name.lower().startswith(("pre", "prior"))


def is_fixed(name: str) -> bool:
    """Whether a name is that of what no treatment changes: age, sex at entry; not age_at_death.

    Examples
    --------
    >>> [name for name in ("age", "Age (years)", "tumor_stage", "age_at_death", "sexual_function") if is_fixed(name)]
    ['age', 'Age (years)', 'tumor_stage']
    """
    parts = set(words(name))
    return not parts.isdisjoint(FIXED) and parts <= FIXED | OF_FIXED


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
    others = {*SURVIVAL, *OF_SURVIVAL, *STATUS, "status"}
    found = set(parts)
    return found <= {*UNITS, *others} and not found.isdisjoint({*UNITS, *SURVIVAL}) and not found.isdisjoint(others)


def is_time(name: str) -> bool:
    """Whether a name is a unit of time and nothing else: time, days."""
    parts = words(name)
    return bool(parts) and set(parts) <= set(UNITS)


def is_status(name: str) -> bool:
    """Whether a name says that a column tells events from censoring: status, os_status; not marital_status.

    Examples
    --------
    >>> [name for name in ("status", "vital status", "relapse", "smoking_status") if is_status(name)]
    ['status', 'vital status', 'relapse']
    """
    parts = set(words(name))
    known = {"status", *STATUS, *SURVIVAL, *OF_SURVIVAL, *VITAL}
    return not parts.isdisjoint(STATUS) or ("status" in parts and parts <= known)


DIGITS = "0123456789"
# With a number above 0 behind them they say how long after treatment something was measured.
PERIODS = frozenset({*UNITS, "hour", "hours", "day", "week", "wk", "month", "mo", "year", "yr"})


# A number of them at the end of a name: 14d, 6 months.
_LATER_BY = re.compile(r"(?:^|[^a-z0-9])0*[1-9][0-9]* ?(?:d|days?|w|wks?|weeks?|m|mo|months?|y|yrs?|years?)$")


def is_after(name: str) -> bool:
    """Whether a name says that it was measured after treatment: an outcome's, or a time above 0.

    Examples
    --------
    >>> [name for name in ("death28", "pain_week4", "stroke_14d", "pain_week0", "re75") if is_after(name)]
    ['death28', 'pain_week4', 'stroke_14d']
    """
    number = name[len(name.rstrip(DIGITS)) :]
    counted = int(number or 0) > 0 and not PERIODS.isdisjoint(words(name))
    followed = is_time_to_event(name) or is_status(name)
    return says(name, LATER | BENEFIT | HARM) or followed or counted or _LATER_BY.search(name.lower()) is not None


# Longer numbers at the end of a name number no measurements.
MOST_DIGITS = 9


class NumberedNames:
    """The names of a table's columns, and which of them may be measurements of the same thing, by their numbers.

    What each name is asked takes no longer where there are many.

    Parameters
    ----------
    names : iterable of str
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = dict.fromkeys(names)
        # By the stem, the name with the smallest number behind it; how many names go on, with a number, from another.
        self._first: dict[str, tuple[int, str]] = {}
        self._goes_on: Counter[str] = Counter()
        for name in self.names:
            stem = name.rstrip(DIGITS)
            number = name[len(stem) :]
            self._goes_on.update(name[:-length] for length in range(1, min(len(number), MOST_DIGITS) + 1))
            if 0 < len(number) <= MOST_DIGITS and int(number) <= self._first.get(stem, (math.inf,))[0]:
                self._first[stem] = int(number), name

    def start_of(self, name: str) -> str | None:
        """The column of which this one is a later measurement beyond doubt: the same stem, and 0 for its number.

        cd420 is cd4 in week 20 if there is a cd40. re75 beside re74 is no such: both may have been measured before.

        Examples
        --------
        >>> names = NumberedNames(["cd40", "cd420", "x0", "x1"])
        >>> [names.start_of(name) for name in ("cd40", "cd420", "x1")]
        [None, 'cd40', None]
        """
        digits = len(name) - len(name.rstrip(DIGITS))
        for length in range(1, digits + 1):
            stem, number = name[:-length], name[-length:]
            if f"{stem}0" in self.names and int(number) > 0 and len("".join(words(stem))) > 1:
                return f"{stem}0"
        return None

    def earlier_measurement(self, name: str) -> str | None:
        """The column of which this one may be a later measurement: the same stem with a smaller number.

        That of `start_of`; else, where nothing ends in 0, the smallest number is the first. Stems of one letter (x1,
        x2) only number the columns. Which of them were measured after treatment, the numbers do not say.

        Examples
        --------
        >>> names = NumberedNames(["cd40", "cd420", "cd80", "cd820", "bp_1", "bp_12", "x1", "x2"])
        >>> [names.earlier_measurement(name) for name in names.names]
        [None, 'cd40', None, 'cd80', None, 'bp_1', None, None]
        """
        start = self.start_of(name)
        if start:
            return start
        stem = name.rstrip(DIGITS)
        # It, or what it ends in, is a first measurement: cd80 in a table with cd820.
        begins = name.endswith("0") and self._goes_on[name[:-1]] > 1
        if begins or not self.has_smaller(name) or len("".join(words(stem))) < 2:
            return None
        return self._first[stem][1]

    def has_smaller(self, name: str) -> bool:
        """Whether a smaller number stands behind the same stem."""
        stem = name.rstrip(DIGITS)
        return stem != name and self._first.get(stem, (math.inf,))[0] < int(name[len(stem) :])

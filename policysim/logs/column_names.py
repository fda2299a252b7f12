"""What a column's name says about what it holds; the words stand in column_words.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_FILE = Path(__file__).with_name("column_words.toml")
WORDS = {kind: frozenset(text.split()) for kind, text in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}
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


def says(name: str, *kinds: str) -> bool:
    """Whether one of a name's words is of these kinds; a letter is no word."""
    return any(len(word) > 1 and word in WORDS[kind] for word in words(name) for kind in kinds)


def is_all(name: str, kinds: Sequence[str], beside: Sequence[str] = ()) -> bool:
    """Whether all words of a name are of some kinds, at least one of them of the first ones."""
    parts = set(words(name))
    told = frozenset().union(*(WORDS[kind] for kind in kinds))
    return not parts.isdisjoint(told) and parts <= told.union(*(WORDS[kind] for kind in beside))


def is_treatment(name: str) -> bool:
    """Whether a name is a treatment's beyond doubt.

    Examples
    --------
    >>> [name for name in ("arm", "Randomised to", "trtArm", "arm_or_hand", "prior_treatment") if is_treatment(name)]
    ['arm', 'Randomised to', 'trtArm']
    """
    return is_all(name, ["treatment"], ["of_treatment"])


def is_id(name: str) -> bool:
    """Whether one of a name's words says so beyond doubt."""
    return says(name, "id")


def is_before(name: str) -> bool:
    """Whether a name says that it was known before treatment."""
    return says(name, "before") or name.lower().startswith(("pre", "prior"))


def is_fixed(name: str) -> bool:
    """Whether a name is that of what no treatment changes: age, sex at entry; not age_at_death.

    Examples
    --------
    >>> [name for name in ("age", "Age (years)", "tumor_stage", "age_at_death", "sexual_function") if is_fixed(name)]
    ['age', 'Age (years)', 'tumor_stage']
    """
    return is_all(name, ["fixed"], ["of_fixed"])


def is_baseline(name: str) -> bool:
    """Whether a name says that it was measured before treatment, and is no change since: not change_from_baseline."""
    return says(name, "at_baseline") and not says(name, "change")


def is_time_to_event(name: str) -> bool:
    """Whether a name says that it is the time to an event, or of follow-up.

    Examples
    --------
    >>> named = ["survival_months", "days_toEvent", "PFS", "follow_up_days", "time_in_range", "hospital_days"]
    >>> [name for name in named if is_time_to_event(name)]
    ['survival_months', 'days_toEvent', 'PFS', 'follow_up_days']
    """
    parts = words(name)
    if any(unit in WORDS["unit"] and other in WORDS["to"] for unit, other in pairwise(parts)):
        return True
    others = WORDS["survival"] | WORDS["of_survival"] | WORDS["status"] | {"status"}
    found = set(parts)
    timed = not found.isdisjoint(WORDS["unit"] | WORDS["survival"])
    return found <= WORDS["unit"] | others and timed and not found.isdisjoint(others)


def is_time(name: str) -> bool:
    """Whether a name is a unit of time and nothing else: time, days."""
    return is_all(name, ["unit"])


def is_status(name: str) -> bool:
    """Whether a name says that a column tells events from censoring: status, os_status; not marital_status.

    Examples
    --------
    >>> [name for name in ("status", "vital status", "relapse", "smoking_status") if is_status(name)]
    ['status', 'vital status', 'relapse']
    """
    parts = set(words(name)) - {"status"}
    known = WORDS["status"] | WORDS["survival"] | WORDS["of_survival"] | WORDS["vital"]
    return says(name, "status") or ("status" in words(name) and parts <= known)


DIGITS = "0123456789"
# A number of days, weeks, months or years at the end of a name: 14d, 6 months.
_LATER_BY = re.compile(r"(?:^|[^a-z0-9])0*[1-9][0-9]* ?(?:d|days?|w|wks?|weeks?|m|mo|months?|y|yrs?|years?)$")


def is_after(name: str) -> bool:
    """Whether a name says that it was measured after treatment: an outcome's, or a time above 0.

    Examples
    --------
    >>> [name for name in ("death28", "pain_week4", "stroke_14d", "pain_week0", "re75") if is_after(name)]
    ['death28', 'pain_week4', 'stroke_14d']
    """
    number = name[len(name.rstrip(DIGITS)) :]
    counted = int(number or 0) > 0 and says(name, "period")
    followed = is_time_to_event(name) or is_status(name)
    return says(name, "later", "benefit", "harm") or followed or counted or _LATER_BY.search(name.lower()) is not None

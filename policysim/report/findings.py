"""What a report found: a core that every kind shares, and details of its kind. Each number that is printed stands here.

A verdict says whether an option is better than another in one outcome, or in utility: by the versions of the model, by
the interval of a trial, or by the stated numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from policysim.numbers import NEGLIGIBLE
from policysim.words import SURE, UNLIKELY

# What an option hides.
EVERYTHING, UP_TO, NOTHING = "everything", "up to ε", "nothing"
BETTER, WORSE, EQUAL, NOT_SHOWN = "better", "worse", "equal", "not shown"
# What a difference in utility is called among the outcomes.
UTILITY = "utility"
# And what a utility with costs is before these, in a log.
OUTCOME = "outcome"


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What a report found.

    Attributes
    ----------
    options : DataFrame
        section ("option" for one with a letter, else what the kind says), option (its letter), title, policy, epsilon,
        hides ("everything", "up to ε" or "nothing"), value (expected utility, or success, per patient), low and high
        (its interval; NaN where there is none), and a column for each further number: a row for each option and ε.
    differences : DataFrame
        epsilon, option, than (letters), outcome (its name, or `UTILITY`), value (per patient, option minus than), low,
        high and verdict.
    harmed : DataFrame
        epsilon, option, than, group (in words), share (of all patients), value (how much more of the leading outcome a
        patient of the group has, or how much less utility), most harmed first; no row where nobody is.
    leaks : DataFrame
        epsilon, option, belief (in words), among (whom, by what is public; "" for all), before, low and high: what an
        observer believes before and after the treatment is seen.
    warnings : tuple of str
        What must be known before the rest is read.
    details : object
        A dataclass of the kind.
    """

    options: pd.DataFrame
    differences: pd.DataFrame
    harmed: pd.DataFrame
    leaks: pd.DataFrame
    warnings: tuple[str, ...] = ()
    details: Any = None

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The core by the names of its files; what is empty has none."""
        core = {
            "options": self.options,
            "differences": self.differences,
            "harmed": self.harmed,
            "leaks": self.leaks,
        }
        return {name: table for name, table in core.items() if not table.empty}

    def lettered(self, epsilon: float) -> dict[str, dict[str, Any]]:
        """The rows of the options with letters at an epsilon, by letter."""
        now = self.options["section"].eq("option") & self.options["epsilon"].eq(epsilon)
        return {row["option"]: row for row in rows_of(self.options[now])}


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def hides_of(spent: float) -> str:
    """What an option hides whose exact privacy loss is `spent`."""
    return EVERYTHING if spent < NEGLIGIBLE else UP_TO if spent < math.inf else NOTHING


def verdict_of_versions(better: float, equal: float = 0.0) -> str:
    """The verdict on an option that is better, and equal, in these shares of the versions of a model.

    Examples
    --------
    >>> verdict_of_versions(0.95), verdict_of_versions(0.5), verdict_of_versions(0.02)
    ('better', 'not shown', 'worse')
    """
    if equal >= SURE:
        return EQUAL
    if better >= SURE:
        return BETTER
    return WORSE if better + equal <= UNLIKELY else NOT_SHOWN


def verdict_of_interval(low: float, high: float) -> str:
    """The verdict on a difference with a 95 % interval, where more is better.

    Examples
    --------
    >>> verdict_of_interval(0.01, 0.05), verdict_of_interval(-0.05, -0.01), verdict_of_interval(-0.01, 0.05)
    ('better', 'worse', 'not shown')
    """
    if low == high == 0:
        return EQUAL
    return BETTER if low > 0 else WORSE if high < 0 else NOT_SHOWN

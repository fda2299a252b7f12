"""LogSource: what a study says about its log.

A feature's declared domain: its levels, or the cuts between bins of a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from envs.records import Feature, IntArray, Level, RecordSpace
from envs.toml_reader import FINITE
from policysim.files.bad_rows import level_key, level_of

if TYPE_CHECKING:
    import pandas as pd

# The names of the files: one table, or three.
TABLE = "table"
THREE_TABLES = FEATURES, ACTIONS, OUTCOMES = ("features", "actions", "outcomes")

# Between the names, and the values, of columns that make the treatment together.
JOINT = ", "

EQUAL, ESTIMATE = "equal", "estimate"
REFUSE, EXCLUDE, WORST = MISSING_CHOICES = ("refuse", "exclude", "worst")
# As policysim.logs.outcome_models.OUTCOME_MODELS, which takes a second to import; a test compares them.
OUTCOME_MODELS = ("linear", "logistic", "gradient-boosting", "constant", "chosen")
LOGISTIC = OUTCOME_MODELS[1]

# What `policysim init` writes behind each guess.
CHECK = "# CHECK"

# What a reward must be, and an outcome.
NUMBER_WANTED = f"must be a finite number within ±{FINITE:g}"
# Records of a declared domain: a table of utilities then has a few times as many entries.
MOST_RECORDS = 2_000_000


@dataclass(frozen=True)
class LogSource:
    """Where a log is and what its columns mean.

    Attributes
    ----------
    files : mapping of str to Path
        {"table": path}, or {"features": path, "actions": path, "outcomes": path}; CSV or Parquet. A table of many files
        has its folder, its pattern such as logs/*.parquet, or the first of a list.
    treatment : str
        The column that holds the treatment; "" for a table of actions with a column of 0 and 1 for each. Of several
        columns that make it together (`joined`), their names with commas between.
    treatments : tuple of (str, str)
        Each treatment's value (or column) and name, in the order of a policy's columns; empty: those that
        occur, sorted.
    propensity : str
        "equal" (1/k for k treatments), "estimate", or the column that holds the probability of the logged treatment.
    outcome : mapping of str to float
        Column and weight; the reward is the weighted sum. All weights are 0 where the outcome is `follow_up`.
    utility_range : tuple of float
        The lowest and the highest reward that are possible. Where it is the range of outcomes within [0, 1] (the
        default, see `default_range`), each outcome must be within [0, 1].
    missing : str
        What is done with rows without an outcome: "refuse", "exclude", or "worst" (the lowest reward of the range).
        Rows without a treatment are excluded with "exclude", and refused otherwise.
    id : str
        The column that holds the patients' ids, by which three tables are joined; "" for none.
    outcome_model : str
        One of `OUTCOME_MODELS`.
    features : mapping of str to Binning
        The declared domain, in the order of a record.
    joined : tuple of str
        The columns whose combination is the treatment, as in a factorial trial; () where one column holds it.
    header : bool
        Whether CSV files begin with the names of their columns; else these are their places, "0" first.
    outcome_checked : tuple of str
        Outcomes that somebody has looked at: they are taken whatever their names and values suggest.
    study : Path or None
        The study's file, for messages.
    unread : int
        Lines of it that are still marked as guesses (`# CHECK`).
    follow_up : FollowUp or None
        Where follow-up may end early: the reward is 1 for patients who are free of an event at a horizon, else 0.
    outcome_title : str
        What the outcome is, in words; "" if the study does not say.
    parts : tuple of Path
        The files of one table; () of three tables. More than one are counted, and not kept in memory
        (`policysim.logs.counted_log`).
    """

    files: Mapping[str, Path]
    treatment: str
    treatments: tuple[tuple[str, str], ...]
    propensity: str
    outcome: Mapping[str, float]
    utility_range: tuple[float, float]
    missing: str
    id: str
    outcome_model: str
    features: Mapping[str, Binning]
    joined: tuple[str, ...] = ()
    header: bool = True
    outcome_checked: tuple[str, ...] = ()
    study: Path | None = None
    unread: int = 0
    follow_up: FollowUp | None = None
    outcome_title: str = ""
    parts: tuple[Path, ...] = ()

    @cached_property
    def space(self) -> RecordSpace:
        """The records: all combinations of declared levels and bins, whichever of them occur."""
        return RecordSpace(tuple(binning.feature for binning in self.features.values()))


@dataclass(frozen=True)
class FollowUp:
    """An outcome that takes time, and that is not seen of patients whose follow-up ends before (who are censored).

    Attributes
    ----------
    time : str
        The column of times, in any unit: to the event, or to the end of follow-up.
    event : str
        The column that tells which of the two: 1 (the event) or 0 (censored).
    horizon : float
        > 0, in the unit of `time`: the outcome is to be free of the event at this time.
    """

    time: str
    event: str
    horizon: float

    @property
    def title(self) -> str:
        """The outcome in words.

        Examples
        --------
        >>> FollowUp("days", "relapse", 365.0).title
        'free of relapse at days = 365'
        """
        return f"free of {self.event} at {self.time} = {self.horizon:g}"


def default_range(outcome: Mapping[str, float]) -> tuple[float, float]:
    """The range of the weighted sum of outcomes that are each within [0, 1].

    Examples
    --------
    >>> default_range({"success": 1.0, "death": -2.0})
    (-2.0, 1.0)
    """
    weights = outcome.values()
    return sum((w for w in weights if w < 0), 0.0), sum((w for w in weights if w > 0), 0.0)


# The level of missing values.
NO_VALUE = "NA"
MISSING_BY_LEVEL = f'missing = true goes with cuts; among levels, "{NO_VALUE}" stands for missing values'
# A feature's levels that a message lists.
LEVELS_SHOWN = 12


@dataclass(frozen=True)
class Binning:
    """What values a feature may have, declared and not read off the rows.

    Attributes
    ----------
    name : str
        The column.
    levels : tuple of str, int or float
        All values it may have, in order; 1, 1.0, true and "1" are the same. A level "NA" stands for missing values,
        which have no level otherwise.
    cuts : tuple of float
        In place of levels: rising numbers. Cuts (28, 34) make three half-open bins, "< 28", "28 to < 34" and "≥ 34".
    missing : bool
        With cuts: whether missing values have a level of their own, "NA", the last.

    Examples
    --------
    >>> import pandas as pd
    >>> age = Binning("age", cuts=(28, 34))
    >>> age.feature.levels
    ('< 28', '28 to < 34', '≥ 34')
    >>> age.codes(pd.Series(["27.9", "28", "70", "old", ""])).tolist()
    [0, 1, 2, -1, -1]
    >>> Binning("age", cuts=(28, 34), missing=True).codes(pd.Series(["70", "old", ""])).tolist()
    [2, -1, 3]
    """

    name: str
    levels: tuple[str | float, ...] = ()
    cuts: tuple[float, ...] = ()
    missing: bool = False

    def __post_init__(self) -> None:
        """Check the levels or the cuts."""
        if bool(self.levels) == bool(self.cuts):
            raise ValueError(f"feature {self.name!r} needs levels or cuts, and not both.")
        if self.missing and self.levels:
            raise ValueError(f"feature {self.name!r}: {MISSING_BY_LEVEL}.")
        for position, reason in levels_wrong(self.levels) if self.levels else cuts_wrong(self.cuts):
            raise ValueError(f"feature {self.name!r}: {(self.levels or self.cuts)[position]!r} {reason}.")
        if len(self.levels) == 1:
            raise ValueError(f"feature {self.name!r} needs at least two levels, got {list(self.levels)!r}.")

    @cached_property
    def feature(self) -> Feature:
        """The feature of a record; bins are named by their ends."""
        if self.levels:
            return Feature(self.name, tuple(map(_as_level, self.levels)))
        return Feature(self.name, (*_bins(self.cuts), *([NO_VALUE] if self.missing else [])))

    @property
    def allowed(self) -> str:
        """What a value must be, in words."""
        if self.cuts:
            return f"must be a finite number{' or missing' if self.missing else ''}"
        shown = [str(level) for level in self.feature.levels[:LEVELS_SHOWN]]
        rest = len(self.levels) - len(shown)
        return f"must be one of {', '.join(shown)}" + (f" and {rest} more" if rest else "")

    def codes(self, column: pd.Series) -> IntArray:
        """The position of each value among the levels or bins, (n_rows,); -1 for a value that is none of them."""
        from policysim.files.data_table import codes_among, missing, numbers  # noqa: PLC0415 - pandas, which a study's file does not need

        if self.levels:
            return codes_among(column, list(map(level_key, self.levels)))
        values = numbers(column)
        bins = np.searchsorted(np.asarray(self.cuts, dtype=np.float64), values, side="right")
        codes = np.where(np.isfinite(values), bins, -1)
        if self.missing:
            codes[missing(column, np.isnan(values))] = len(self.cuts) + 1
        return codes


def levels_wrong(levels: Sequence[str | float]) -> list[tuple[int, str]]:
    """The positions of levels that cannot be used, each with the reason."""
    found: list[tuple[int, str]] = []
    seen: dict[object, object] = {}
    for position, level in enumerate(levels):
        key = level_key(level)
        if isinstance(level, str) and not level.strip():
            found.append((position, 'is empty: write "NA" for missing values'))
        elif key in seen:
            found.append((position, f"is the same level as {seen[key]!r}"))
        seen.setdefault(key, level)
    return found


def cuts_wrong(cuts: Sequence[float]) -> list[tuple[int, str]]:
    """The positions of cuts that cannot be used, each with the reason."""
    found = [(position, "must be finite") for position, cut in enumerate(cuts) if not math.isfinite(cut)]
    found += [
        (position, f"must be greater than the cut before, {before!r}")
        for position, (before, cut) in enumerate(pairwise(cuts), start=1)
        if not cut > before
    ]
    return found


def _as_level(level: str | float) -> Level:
    return level if isinstance(level, str) else level_of(level_key(level))


def _bins(cuts: Sequence[float]) -> tuple[str, ...]:
    ends = [str(level_of(float(cut))) for cut in cuts]
    middle = [f"{low} to < {high}" for low, high in pairwise(ends)]
    return (f"< {ends[0]}", *middle, f"≥ {ends[-1]}")

"""The columns of a trial's file: what their names say, what they hold, and whether a row is a patient.

The words of names stand in column_words.toml.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from policies.arrays import IntArray
from policies.levels import MISSING, LevelKey, Levels, codes_of_keys, level_of, sorted_keys
from policysim.files.bad_rows import DataError
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.data_table import coded, missing, numbers, read_table
from policysim.logs.log_source import JOINT
from policysim.logs.log_tables import joined_columns
from policysim.logs.toml_text import toml_text

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
    """Whether a column, by its name, marks events and censoring: status, os_status; not marital_status.

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
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.is_numeric and all(float(value).is_integer() for value in self.values)

    @cached_property
    def is_distinct(self) -> bool:
        """Whether each row has a value of its own."""
        return self.n_rows > 1 and self.n_distinct == self.n_rows

    @cached_property
    def numbers_rows(self) -> bool:
        """Whether it is called a number of the rows, or is one: 1, 2, 3 and so on, and not called an id."""
        named = is_all(self.name, ["row_number"])
        rises = self.is_whole and self.high - self.low == self.n_rows - 1 and bool(np.all(np.diff(self.codes) > 0))
        return self.is_distinct and (named or (rises and not is_id(self.name)))

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

    def shown(self, most: int = 5) -> str:
        """The first values, for messages."""
        found = [toml_text(str(level_of(value))) for value in self.values[:most]]
        return (", ".join(found) or "no values") + (", ..." if self.n_distinct > most else "")

    def decides(self, other: ColumnSummary) -> bool:
        """Whether each value of this column goes with one value of the other, and enough rows say so."""
        # Missing values count as one more.
        if self.n_rows < ROWS_EACH * self.n_distinct or other.n_distinct > self.n_distinct + 1:
            return False
        pairs = pd.unique((self.codes + 1) * (other.n_distinct + 1) + other.codes + 1)
        return len(pairs) == self.n_distinct + (self.n_missing > 0)


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


# Pairs of columns are compared: of so many it takes some ten seconds.
MOST_COLUMNS = 1_000
# More distinct values than these of a column that ends in "id" are ids: covid has two.
MOST_CODES = 20
# Rows are cells of a grid, such as states by years, if so many of its cells are there, each once.
FULL_GRID = 0.7


def read_columns(path: Path, stated: CsvFormat = RECOGNISED) -> list[ColumnSummary]:
    """The columns of a file; what is not `stated` of a text file is recognised.

    Raises
    ------
    DataError
        For a file that cannot be read, or has too many columns.
    """
    table = read_table(path, stated=stated)
    if len(table.columns) > MOST_COLUMNS:
        raise DataError(
            f"{table.name}: has {len(table.columns):,} columns; init compares all pairs, and takes up to "
            f"{MOST_COLUMNS:,}: keep the columns that a treatment may depend on, or write the study by hand"
        )
    return [summarise(table[name], name) for name in table.columns]


def together(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """Several columns as one, each combination that occurs a value of its own: `log_tables.joined_columns` names it."""
    texts = [pd.Series([*map(level_of, part.values), None], dtype=object).iloc[part.codes] for part in parts]
    return summarise(
        joined_columns([text.reset_index(drop=True) for text in texts]), JOINT.join(part.name for part in parts)
    )


def not_a_patient(columns: Sequence[ColumnSummary], named: Collection[str] = ()) -> str:
    """Why a row is probably no patient, and what to do; "" if nothing says so.

    An id that repeats; a column that counts, and is not what the user `named`; two columns, or all that have each value
    equally often, of which each combination is there once, as in a panel of states and years or a table of cells.
    """
    n_rows = columns[0].n_rows
    ids = [c for c in columns if is_id(c.name) or (c.n_distinct > MOST_CODES and c.name.lower().endswith("id"))]
    again = [c for c in ids if 1 < c.n_distinct < n_rows - c.n_missing and (c.is_whole or not c.is_numeric)]
    if any(c.is_distinct for c in ids):  # beside the patients' own a site's may repeat
        again = [c for c in again if says(c.name, "patient")]
    if again:
        return repeats(again[0], columns)
    count = next((c for c in columns if is_all(c.name, ["count"]) and c.is_whole and c.name not in named), None)
    if count and not count.is_distinct:
        return f"{toml_text(count.name)} is named like a count: write a row for each patient"
    grid = _grid([c for c in columns if 1 < c.n_distinct <= n_rows / 2 and not c.n_missing], n_rows)
    return f"each combination of {' and '.join(toml_text(c.name) for c in grid)} is there once" if grid else ""


def repeats(ids: ColumnSummary, columns: Sequence[ColumnSummary]) -> str:
    """That an id repeats, and a value of another column, the commonest, with one row for each, if there is one."""
    kept = "the first"
    for column in columns:
        commonest = int(column.counts.argmax()) if column.n_distinct > 1 else -1
        rows = (column.codes == commonest) & (ids.codes >= 0)
        if commonest >= 0 and rows.sum() == ids.n_distinct == len(np.unique(ids.codes[rows])):
            kept = f"those with {toml_text(column.name)} = {toml_text(str(level_of(column.values[commonest])))}"
            break
    said = f"{toml_text(ids.name)} has {ids.n_distinct:,} values in {ids.n_rows - ids.n_missing:,} rows"
    return f"{said}: keep one of each in a new file, such as {kept}"


def _grid(columns: Sequence[ColumnSummary], n_rows: int) -> Sequence[ColumnSummary]:
    """Columns of which each combination is there once: two, most of theirs; or more, all of theirs."""
    whole: list[ColumnSummary] = []
    for column in columns:
        # Only what has each value equally often, and with those before it all combinations.
        if len(set(column.counts.tolist())) == 1 and _n_combinations([*whole, column]) == _n_cells([*whole, column]):
            whole.append(column)
    groups = [pair for pair in combinations(columns, 2) if n_rows <= _n_cells(pair) <= n_rows / FULL_GRID]
    return next((group for group in [*groups, whole] if group and _n_combinations(group) == n_rows), [])


def _n_cells(group: Sequence[ColumnSummary]) -> int:
    return math.prod(column.n_distinct for column in group)


def _n_combinations(group: Sequence[ColumnSummary]) -> int:
    return len(np.unique(np.stack([column.codes for column in group]), axis=1).T)

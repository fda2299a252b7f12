"""Which columns of a trial are features, by which levels or cuts; which came later, and of which that is asked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import IntArray
from policysim.files.bad_rows import level_of
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import NumberedNames
from policysim.logs.guess_columns import ROWS_EACH, ColumnSummary
from policysim.logs.guess_roles import MOST_TREATMENTS, Named, Roles
from policysim.logs.log_source import NO_VALUE, Binning
from policysim.logs.outcomes import decides_outcome

# Patients of each arm with each level; those of numbers are merged until there are so many.
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

    binning: Binning
    counts: tuple[int, ...]
    few: str

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.counts)


@dataclass(frozen=True, eq=False)
class Features:
    """Columns as features.

    Attributes
    ----------
    chosen : tuple of Candidate
        Those that fit into the domain, in the file's order.
    further : tuple of Candidate
        Those that would make it larger.
    left_out : dict of str to str
        Columns that are no features, and why.
    """

    chosen: tuple[Candidate, ...]
    further: tuple[Candidate, ...]
    left_out: Mapping[str, str]

    @property
    def n_records(self) -> int:
        """The size of the declared domain."""
        return math.prod(candidate.size for candidate in self.chosen)


def guess_features(roles: Roles, source: str, named: Named = Named()) -> Features:
    """Declare a feature for each remaining column that can be one, or for those that the user names.

    Raises
    ------
    UsageError
        A line for each column of which is not clear that it was known before treatment, or of which levels have too
        few patients; with the command that takes the others. Nothing is asked where the user names the features.
    """
    every = NumberedNames([*(column.name for column in roles.rest), roles.outcome.name])
    left_out: dict[str, str] = {}
    doubts: dict[str, str] = {}
    candidates: list[Candidate] = []
    for column in roles.rest:
        useless = _useless(column, roles.rest)
        later, unclear = _later(column, roles, every)
        if named.features:
            later = unclear = "" if column.name in named.features else "not named"
        if useless or later:
            left_out[column.name] = useless or later
            continue
        candidate = _candidate(column, roles.treatment)
        unclear = unclear or ("" if named.features else candidate.few)
        if unclear:
            doubts[column.name] = unclear
        else:
            candidates.append(candidate)
    sure = tuple(candidate.binning.name for candidate in candidates)
    if doubts:
        asked = [f"{source}: {toml_text(name)}: {reason}" for name, reason in doubts.items()]
        asked.append("Were these known before treatment, and shall they be features? The command leaves them out.")
        raise named.question(asked, {"features": sure or tuple(doubts)})
    fits: list[Candidate] = []
    for candidate in candidates:
        if math.prod(one.size for one in (*fits, candidate)) <= MOST_RECORDS:
            fits.append(candidate)
    return Features(tuple(fits), tuple(one for one in candidates if one not in fits), left_out)


def _useless(column: ColumnSummary, columns: Sequence[ColumnSummary]) -> str:
    """Why a column can be no feature, whenever it was known; "" if it can."""
    if not column.name:
        return "the column has no name"
    if column.n_distinct < 2:
        return "the same value in all rows" if column.n_distinct else "no value in any row"
    if column.numbers_rows:
        return "numbers the rows"
    if names.is_id(column.name) and (column.is_distinct or column.n_distinct > MOST_WORDS):
        return "named like an id"
    if not column.is_numeric and column.n_distinct > MOST_WORDS:
        return f"{column.n_distinct:,} distinct values, not all of them usual numbers"
    for place, other in enumerate(columns):
        # Of two that decide each other, the first is one.
        before = place < columns.index(column)
        if other is not column and other.n_distinct <= MOST_WORDS and other.decides(column):
            if before or not column.decides(other):
                return f"{toml_text(other.name)} decides it"
    return ""


def _later(column: ColumnSummary, roles: Roles, every: NumberedNames) -> tuple[str, str]:
    """Why a column was known only after treatment, or tells it; else why that is not clear; "" and "" if it was before."""
    name, treatment, outcome = column.name, roles.treatment, roles.outcome
    own = toml_text(outcome.name)
    if column.n_distinct <= MOST_TREATMENTS and (treatment.decides(column) or column.decides(treatment)):
        return f"one of it and {toml_text(treatment.name)} decides the other", ""
    if names.is_fixed(name) or names.is_before(name):
        return "", ""
    start, earlier = every.start_of(name), every.earlier_measurement(name)
    if start:
        return f"by its number a later measurement of {toml_text(start)}", ""
    if any(stem in name.lower() for stem in names.TREATMENT_STEMS):
        return "named after the treatment", ""
    if names.is_after(name):
        return "named like an outcome or a time after treatment", ""
    if decides_outcome(column, outcome):
        return f"decides the outcome {own}", ""
    if earlier:
        return "", f"by its number it may be a later measurement of {toml_text(earlier)}"
    numbers, of_outcome = ({int(n) for n in re.findall(r"\d{2,9}", text)} for text in (name, outcome.name))
    if of_outcome and numbers and max(numbers) >= max(of_outcome):
        return "", f"its number may be a time as late as the outcome's, {own}"
    gaps = column.codes < 0
    if min(np.count_nonzero(gaps), np.count_nonzero(~gaps)) < ROWS_EACH:
        return "", ""
    tells = outcome.n_distinct == 2 and not outcome.n_missing and len(np.unique(outcome.codes * 2 + gaps)) == 2
    if tells or np.array_equal(gaps, outcome.codes < 0):
        return "", f"missing in the same rows as the outcome {own}, or by what it was"
    return "", ""


def _candidate(column: ColumnSummary, treatment: ColumnSummary) -> Candidate:
    """A column by levels, or by cuts that leave enough patients of each arm between them, if any do."""
    arms, gaps = treatment.codes, column.n_missing > 0

    def table(codes: IntArray, size: int) -> IntArray:
        known = arms >= 0
        cells = codes[known] * treatment.n_distinct + arms[known]
        return np.bincount(cells, minlength=size * treatment.n_distinct).reshape(size, -1)

    def binned(cuts: Sequence[float]) -> IntArray:
        bins = np.searchsorted(np.array(cuts), np.array(column.values, dtype=np.float64), side="right")
        return np.where(column.codes < 0, len(cuts) + 1, bins[column.codes])

    levels, cuts = tuple(map(level_of, column.values)), []
    if column.is_numeric:
        whole = list(map(float, column.values[1:]))
        start = whole if column.n_distinct <= MOST_NUMBERS else list(round_cuts(column))
        cuts = list(start)
        while cuts and (counts := table(binned(cuts), len(cuts) + 2)[:-1]).min() < FEWEST_PATIENTS:
            worst = int(counts.min(axis=1).argmin())
            left, right = (
                counts[place].sum() if 0 <= place <= len(cuts) else math.inf for place in (worst - 1, worst + 1)
            )
            del cuts[worst - 1 if left <= right else worst]
        # Whole again where nothing was merged, or nothing helped.
        cuts = [] if cuts == whole or (not cuts and start == whole) else cuts or start
    if cuts:
        binning, codes = Binning(column.name, cuts=tuple(cuts), missing=gaps), binned(cuts)
    else:
        binning = Binning(column.name, (*levels, *([NO_VALUE] if gaps else [])))
        codes = np.where(column.codes < 0, column.n_distinct, column.codes)
    shown = list(map(str, binning.feature.levels))
    counts = table(codes, len(shown))
    worst = int(counts.min(axis=1).argmin())
    few = f"{counts[worst].min()} patients of an arm have {toml_text(shown[worst])}: fewer than {FEWEST_PATIENTS}"
    totals = np.bincount(codes, minlength=len(shown)).tolist()
    return Candidate(binning, tuple(totals), few if counts.min() < FEWEST_PATIENTS else "")


def round_cuts(column: ColumnSummary) -> tuple[float, ...]:
    """About the quartiles of a column of numbers, rounded; those of its distinct values if most rows share one."""
    distinct = np.array(column.values, dtype=np.float64)
    for values in (np.repeat(distinct, column.counts), distinct):
        quartiles = np.quantile(values, [0.25, 0.5, 0.75])
        width = float(quartiles[2] - quartiles[0]) or column.high - column.low
        step = _round_step(width / STEPS)
        if not step:
            break
        rounded = {round(float(q) / step) * step for q in quartiles}
        # A step of 0.1 makes 0.30000000000000004.
        cuts = sorted({float(f"{cut:.12g}") for cut in rounded if column.low < cut <= column.high})
        if cuts:
            return tuple(cuts)
    return (float(column.values[column.n_distinct // 2]),)


def round_range(column: ColumnSummary) -> tuple[float, float]:
    """A range of round numbers that holds a column of numbers; [0, 1] if that does."""
    if column.low >= 0 and column.high <= 1:
        return 0.0, 1.0
    step = _round_step(column.high - column.low)
    if not step:
        return column.low, column.high
    low, high = math.floor(column.low / step) * step, math.ceil(column.high / step) * step
    rounded = float(f"{low:.12g}"), float(f"{high:.12g}")
    return min(rounded[0], column.low), max(rounded[1], column.high)


def _round_step(most: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most this; 0 if it is tiny."""
    power = 10.0 ** math.floor(math.log10(most)) if most > TINY else 0.0
    return max((factor * power for factor in (1, 2, 5) if factor * power <= most), default=0.0)

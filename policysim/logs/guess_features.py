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
from policysim.logs.column_summary import ROWS_EACH, ColumnSummary
from policysim.logs.guess_roles import MOST_TREATMENTS, InitAsked, Roles
from policysim.logs.log_source import NO_VALUE, Binning
from policysim.logs.outcomes import NumberedNames, decides_outcome

# Patients of each arm with each level; levels of numbers are merged until there are so many.
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
    counts: Sequence[int]
    few: str


@dataclass(frozen=True, eq=False)
class Features:
    """Columns as features.

    Attributes
    ----------
    chosen : sequence of Candidate
        In the file's order, those that fit into the domain.
    left_out : mapping of str to str
        Columns that are no features, and why.
    """

    chosen: Sequence[Candidate]
    left_out: Mapping[str, str]

    @property
    def n_records(self) -> int:
        """The size of the declared domain."""
        return math.prod(len(candidate.counts) for candidate in self.chosen)


def guess_features(roles: Roles, asked: InitAsked) -> Features:
    """Declare a feature for each remaining column that can be one, or for those that the user names.

    Raises
    ------
    UsageError
        A line for each column of which is not clear that it was known before treatment, or of which levels have too
        few patients; with the command that takes the others. Nothing is asked where the user names the features.
    """
    named = asked.named.features
    numbered = NumberedNames([*(column.name for column in roles.rest), roles.outcome.name])
    after = [c for c in roles.rest if names.is_after(c.name) or numbered.start_of(c.name)]
    left_out: dict[str, str] = {}
    candidates: list[Candidate] = []
    doubts: list[str] = []
    for column in roles.rest:
        later, unclear = _later(column, roles, numbered, after)
        if named:
            later, unclear = "" if column.name in named else "not named", ""
        if _useless(column) or later:
            left_out[column.name] = _useless(column) or later
            continue
        candidates.append(_candidate(column, roles.treatment))
        unclear = unclear or candidates[-1].few
        if unclear and not named:
            asked.ask(f"shall {toml_text(column.name)} be a feature? {unclear}")
            doubts.append(column.name)
    names_of = [candidate.binning.name for candidate in candidates]
    asked.answers["features"] = [name for name in names_of if name not in doubts] or doubts
    asked.raise_if_any()
    chosen: list[Candidate] = []
    for candidate in candidates:
        if math.prod(len(one.counts) for one in (*chosen, candidate)) <= MOST_RECORDS:
            chosen.append(candidate)
        else:
            left_out[candidate.binning.name] = f"for no more than {MOST_RECORDS:,} records"
    return Features(chosen, left_out)


def _useless(column: ColumnSummary) -> str:
    """Why a column can be no feature, whenever it was known; "" if it can."""
    if not column.name or column.n_distinct < 2:
        return "the same value in all rows" if column.name else "the column has no name"
    if column.numbers_rows or (names.is_id(column.name) and column.n_distinct > MOST_WORDS):
        return "numbers the rows, or is named like an id"
    if not column.is_numeric and column.n_distinct > MOST_WORDS:
        return f"{column.n_distinct:,} distinct values, not all of them usual numbers"
    return ""


def _later(
    column: ColumnSummary, roles: Roles, numbered: NumberedNames, after: Sequence[ColumnSummary]
) -> tuple[str, str]:
    """Why a column was known only after treatment, or tells it; and why that may be, but is not clear."""
    name, treatment, outcome = column.name, roles.treatment, roles.outcome
    reveals = column.n_distinct <= MOST_TREATMENTS and (treatment.decides(column) or column.decides(treatment))
    if reveals or names.is_fixed(name) or names.is_before(name):
        return "one of it and the treatment decides the other" if reveals else "", ""
    clear = {
        "its number makes it a later measurement": numbered.start_of(name) is not None,
        "named after the treatment": any(stem in name.lower() for stem in names.TREATMENT_STEMS),
        "named like an outcome or a time after treatment": names.is_after(name),
        "decides the outcome": decides_outcome(column, outcome),
    }
    number, of_outcome = (max(map(int, re.findall(r"\d{2,9}", text)), default=0) for text in (name, outcome.name))
    told = (_tells_gaps(column, other) or _tells_gaps(other, column) for other in (outcome, *after))
    unclear = {
        "its number may make it a later measurement than another's": numbered.earlier_measurement(name) is not None,
        "its number may make it as late as the outcome": number >= of_outcome > 0,
        "what it is, or where it is missing, goes with gaps in something later, or with what that was": any(told),
    }
    reason, doubt = (next((why for why, holds in reasons.items() if holds), "") for reasons in (clear, unclear))
    return reason, doubt


def _tells_gaps(column: ColumnSummary, other: ColumnSummary) -> bool:
    """Whether another is missing where this one is, or by what it was, in enough rows."""
    gaps = other.codes < 0
    few = min(np.count_nonzero(gaps), np.count_nonzero(~gaps)) < ROWS_EACH
    two = column.n_distinct == 2 and not column.n_missing and len(np.unique(column.codes * 2 + gaps)) == 2
    return not few and (two or np.array_equal(gaps, column.codes < 0))


def _candidate(column: ColumnSummary, treatment: ColumnSummary) -> Candidate:
    """A column by levels; or by cuts, that leave enough patients of each arm between them if any do."""
    cuts: list[float] = []
    if column.is_numeric:
        whole = list(map(float, column.values[1:]))
        first = whole if column.n_distinct <= MOST_NUMBERS else round_cuts(column)
        cuts = _merged(column, first, treatment)
        # Levels as they are, where none were merged.
        cuts = [] if cuts == whole and column.n_distinct <= MOST_NUMBERS else cuts
    gaps = column.n_missing > 0
    levels = (*map(level_of, column.values), *([NO_VALUE] if gaps else []))
    binning = Binning(column.name, cuts=tuple(cuts), missing=gaps) if cuts else Binning(column.name, levels)
    shown = binning.feature.levels
    table = _by_arm(column, cuts, treatment)[: len(shown)]
    worst = int(table.min(axis=1).argmin())
    few = f"an arm has {table[worst].min()} patients with {toml_text(str(shown[worst]))}, fewer than {FEWEST_PATIENTS}"
    return Candidate(binning, table.sum(axis=1).tolist(), few if table.min() < FEWEST_PATIENTS else "")


def _by_arm(column: ColumnSummary, cuts: Sequence[float], treatment: ColumnSummary) -> IntArray:
    """Patients of each bin (each value, without cuts), and without a value, in each arm, (n_bins + 1, n_arms)."""
    bins = np.arange(column.n_distinct)
    if cuts:
        bins = np.searchsorted(np.array(cuts), np.array(column.values, dtype=np.float64), side="right")
    known = treatment.codes >= 0
    codes = np.where(column.codes < 0, bins[-1] + 1, bins[column.codes])[known]
    table = np.zeros((int(bins[-1]) + 2, treatment.n_distinct), dtype=np.intp)
    np.add.at(table, (codes, treatment.codes[known]), 1)
    return table


def _merged(column: ColumnSummary, cuts: Sequence[float], treatment: ColumnSummary) -> list[float]:
    """Those left as the bin with the fewest patients of an arm joins its smaller neighbour; at least one."""
    left = list(cuts)
    while len(left) > 1 and (table := _by_arm(column, left, treatment)[:-1]).min() < FEWEST_PATIENTS:
        worst = int(table.min(axis=1).argmin())
        sizes = [math.inf, *table.sum(axis=1).tolist(), math.inf]
        del left[worst - 1 if sizes[worst] <= sizes[worst + 2] else worst]
    return left


def round_cuts(column: ColumnSummary) -> list[float]:
    """About the quartiles of a column of numbers, rounded; the commonest value if most rows have it."""
    quartiles = np.quantile(np.repeat(np.array(column.values, dtype=np.float64), column.counts), [0.25, 0.5, 0.75])
    most = float(quartiles[2] - quartiles[0]) / STEPS
    if most <= TINY:
        return [float(column.values[max(int(column.counts.argmax()), 1)])]
    power = 10.0 ** math.floor(math.log10(most))
    step = next((factor * power for factor in (5, 2) if factor * power <= most), power)
    # A step of 0.1 makes 0.30000000000000004.
    rounded = {float(f"{round(float(q) / step) * step:.12g}") for q in quartiles}
    return sorted(cut for cut in rounded if column.low < cut <= column.high) or [float(quartiles[1])]

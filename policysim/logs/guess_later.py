"""Which columns were known only after treatment, by evidence: names, gaps, and what the treatment has changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from policies.arrays import FloatArray
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import NumberedNames
from policysim.logs.guess_columns import MOST_TREATMENTS, ROWS_EACH, ColumnSummary
from policysim.logs.outcomes import decides_outcome

# A difference between randomised arms that chance makes so seldom was made by the treatment.
SELDOM = 0.001
# Where so many patients are expected to get a treatment, by chance at least one does.
EXPECTED = 20


def known_later(
    columns: Sequence[ColumnSummary], treatment: ColumnSummary, outcome: ColumnSummary | None, *, randomised: bool
) -> dict[str, str]:
    """Columns that no treatment may be chosen by, and why.

    A number behind a name (re74, re75) is no evidence by itself. It is if a name with 0 is there (cd40, cd420), if it
    counts weeks or days, if the outcome has the same name and a smaller number, or if randomised arms differ given the
    earlier measurement.

    Parameters
    ----------
    columns : sequence of ColumnSummary
        Those that may be features.
    treatment : ColumnSummary
    outcome : ColumnSummary or None
        Or the event.
    randomised : bool
        Whether allocation looks equal, so that arms only differ by chance before treatment.
    """
    every = NumberedNames([*(column.name for column in columns), *([outcome.name] if outcome else [])])
    by_name = {column.name: column for column in columns}
    found: dict[str, str] = {}
    for column in columns:
        before = every.earlier_measurement(column.name)
        earlier = by_name.get(before) if before else None
        reason = (
            _reveals(column, treatment, randomised=randomised)
            or _named_later(column, every)
            or (_follows(column, outcome) if outcome else "")
            or (_changed(column, earlier, treatment) if randomised and earlier else "")
        )
        if reason:
            found[column.name] = reason
    # What shows the gaps of such a column, or has gaps that such a column shows.
    known = [column for column in columns if column.name in found]
    for column in columns:
        for other in known:
            if column.name in found:
                break
            if other.n_missing and column.n_distinct == 2 and _tells_gaps(column, other):
                found[column.name] = f"shows in which rows {toml_text(other.name)} is missing"
            elif column.n_missing and other.n_distinct == 2 and _tells_gaps(other, column):
                found[column.name] = f"missing by what {toml_text(other.name)} was"
    return found


def _reveals(column: ColumnSummary, treatment: ColumnSummary, *, randomised: bool) -> str:
    """Whether one decides the other; or, of what chance has allocated, whether a level excludes a treatment."""
    if not 1 < column.n_distinct <= MOST_TREATMENTS:
        return ""
    if treatment.decides(column) or column.decides(treatment):
        return f"reveals the treatment: one of it and {toml_text(treatment.name)} decides the other"
    known = (column.codes >= 0) & (treatment.codes >= 0)
    cells = column.codes[known] * treatment.n_distinct + treatment.codes[known]
    counts = np.bincount(cells, minlength=column.n_distinct * treatment.n_distinct).reshape(-1, treatment.n_distinct)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    if randomised and np.any((counts == 0) & (expected >= EXPECTED)):
        return "reveals the treatment, which was randomised: nobody with one of its values got one of the treatments"
    return ""


def _named_later(column: ColumnSummary, every: NumberedNames) -> str:
    start = every.start_of(column.name)
    if start:
        return f"probably a later measurement of {toml_text(start)}"
    if names.is_before(column.name) or names.is_fixed(column.name):
        return ""
    if names.sounds_like_treatment(column.name):
        return "named after the treatment: it may reveal it, or come after it"
    return "named like an outcome or a time after treatment" if names.is_after(column.name) else ""


def _follows(column: ColumnSummary, outcome: ColumnSummary) -> str:
    """Whether it came with the outcome, or after it."""
    stem = outcome.name.rstrip(names.DIGITS)
    number, own = outcome.name[len(stem) :], column.name[len(stem) :]
    if number and names.words(stem) and column.name.startswith(stem) and own.isdecimal() and int(own) > int(number):
        return f"named like the outcome {toml_text(outcome.name)}, with a larger number"
    if decides_outcome(column, outcome):
        return f"decides the outcome {toml_text(outcome.name)}"
    gaps = column.codes < 0
    few = min(np.count_nonzero(gaps), np.count_nonzero(~gaps)) < ROWS_EACH
    if not few and np.array_equal(gaps, outcome.codes < 0):
        return f"missing in the same rows as the outcome {toml_text(outcome.name)}"
    if not few and outcome.n_distinct == 2 and not outcome.n_missing and _tells_gaps(outcome, column):
        return f"missing by what the outcome {toml_text(outcome.name)} was"
    return ""


def _changed(column: ColumnSummary, earlier: ColumnSummary, treatment: ColumnSummary) -> str:
    """Whether arms differ in it, given the earlier measurement: an F test in a linear model of it (ANCOVA)."""
    known = (column.codes >= 0) & (earlier.codes >= 0) & (treatment.codes >= 0)
    if not (column.is_numeric and earlier.is_numeric) or known.sum() < 2 * ROWS_EACH * treatment.n_distinct:
        return ""
    later, before = np.array(column.values)[column.codes[known]], np.array(earlier.values)[earlier.codes[known]]
    ones = np.ones(len(later))
    arms = (treatment.codes[known][:, None] == np.arange(1, treatment.n_distinct)).astype(np.float64)
    small, large = np.column_stack([ones, before]), np.column_stack([ones, before, arms])
    left, least = _unexplained(small, later), _unexplained(large, later)
    free = len(later) - large.shape[1]
    if not least > 0:
        return ""
    chance = float(fdtrc(arms.shape[1], free, (left - least) / arms.shape[1] / (least / free)))
    if chance >= SELDOM:
        return ""
    return f"differs between the treatments, given {toml_text(earlier.name)} (p < {SELDOM:g})"


def _unexplained(design: FloatArray, values: FloatArray) -> float:
    """The sum of squares that a linear model leaves."""
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - fitted) ** 2).sum())


def _tells_gaps(column: ColumnSummary, other: ColumnSummary) -> bool:
    gaps = other.codes < 0
    return not column.n_missing and len(np.unique(column.codes * 2 + gaps)) == 2

"""What each column of a trial probably is: treatment, outcome, id, or known only after treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from policysim.files.bad_rows import DataError, level_of
from policysim.files.output import toml_text
from policysim.logs import guess_columns as names
from policysim.logs.guess_columns import ColumnSummary
from policysim.logs.log_source import EQUAL, ESTIMATE
from policysim.logs.outcomes import cannot_be_outcome, measured_again, status_columns

MOST_TREATMENTS = 20
# A column of whole numbers without a telling name needs so many rows to be taken for ids.
FEWEST_IDS = 20
# Allocation so uneven has this probability if it was equal: then it was not.
IMPLAUSIBLE = 0.001
COLUMNS_SHOWN = 30
CONTROLS = ("placebo", "control", "none", "untreated", "standard", "usual", "soc", "no")


@dataclass(frozen=True, eq=False)
class Roles:
    """The guesses, each with what it rests on.

    Attributes
    ----------
    treatment : ColumnSummary
    also_treatment : tuple of str
        Other columns that it could be.
    propensity : str
        "equal", "estimate" or a column.
    equal_probability : float
        How probable counts as uneven as these are if allocation was equal (chi-square test).
    outcome : ColumnSummary or None
        None: no name says which column it is, and a guess would be run as if it were right.
    harmful : bool
        Whether more of the outcome is worse.
    candidates : tuple of ColumnSummary
        Columns that could be the outcome, where none is chosen.
    id : ColumnSummary or None
    later : tuple of (ColumnSummary, str)
        Columns that were probably known only after treatment, each with the reason.
    rest : tuple of ColumnSummary
        All other columns, which may be features.
    """

    treatment: ColumnSummary
    also_treatment: tuple[str, ...]
    propensity: str
    equal_probability: float
    outcome: ColumnSummary | None
    harmful: bool
    candidates: tuple[ColumnSummary, ...]
    id: ColumnSummary | None
    later: tuple[tuple[ColumnSummary, str], ...]
    rest: tuple[ColumnSummary, ...]


def guess_roles(columns: Sequence[ColumnSummary], source: str) -> Roles:
    """Guess what the columns of a file called `source` are; DataError if none can be the treatment, or the outcome."""
    treatment, others = _treatment(columns, source)
    left = [column for column in columns if column is not treatment]
    ids = _id(left)
    left = [column for column in left if column is not ids]
    propensity = _ranked([c for c in left if _is_propensity(c)], names.PROPENSITY)
    left = [column for column in left if column not in propensity[:1]]
    outcome, candidates = _outcome(left, treatment, measured_again(c.name for c in columns), source)
    left = [column for column in left if column is not outcome]
    later = _later(left, treatment, [column.name for column in columns])
    probability = _equal_probability(treatment)
    return Roles(
        treatment=treatment,
        also_treatment=tuple(column.name for column in others),
        propensity=propensity[0].name if propensity else ESTIMATE if probability < IMPLAUSIBLE else EQUAL,
        equal_probability=probability,
        outcome=outcome,
        harmful=outcome is not None
        and names.rank(outcome.name, names.BENEFIT) is None
        and names.rank(outcome.name, names.HARM) is not None,
        candidates=tuple(candidates),
        id=ids,
        later=tuple((column, later[column.name]) for column in left if column.name in later),
        rest=tuple(column for column in left if column.name not in later),
    )


def reference_first(treatment: ColumnSummary) -> list[int]:
    """The positions of the treatments' values, one that sounds like a control first."""
    positions = range(treatment.n_distinct)
    return sorted(positions, key=lambda i: names.rank(str(treatment.values[i]), CONTROLS) is None)


def _ranked(columns: Sequence[ColumnSummary], known: Sequence[str]) -> list[ColumnSummary]:
    """Those whose names are known, the likeliest first."""
    ranks = [(rank, place) for place, c in enumerate(columns) if (rank := names.rank(c.name, known)) is not None]
    return [columns[place] for _, place in sorted(ranks)]


def _treatment(columns: Sequence[ColumnSummary], source: str) -> tuple[ColumnSummary, list[ColumnSummary]]:
    """The likeliest name; a column that decides it, if that sounds like one too, says more."""
    possible = [c for c in columns if 2 <= c.n_distinct <= MOST_TREATMENTS and not c.n_missing]
    found = _ranked(possible, names.TREATMENT)
    if not found:
        raise DataError(
            f"{source}: no column can be the treatment: it needs 2 to {MOST_TREATMENTS} distinct values, none missing, "
            f"and a name such as {', '.join(names.TREATMENT[:3])}; columns: {_listed(columns)}"
        )
    chosen = found[0]
    for column in found[1:]:
        if column.n_distinct > chosen.n_distinct and column.decides(chosen):
            chosen = column
    return chosen, [column for column in found if column is not chosen]


def _id(columns: Sequence[ColumnSummary]) -> ColumnSummary | None:
    """A column of distinct whole numbers or texts, by its name; else of texts, or of numbers that count the rows."""
    distinct = [c for c in columns if c.name and c.n_distinct == c.n_rows and (c.is_whole or not c.is_numeric)]
    for column in distinct:
        if names.sounds_like_id(column.name):
            return column
    for column in distinct:
        counts_rows = column.is_whole and bool(np.all(np.diff(column.codes) > 0))
        if column.n_rows >= FEWEST_IDS and (counts_rows or not column.is_numeric):
            return column
    return None


def _is_propensity(column: ColumnSummary) -> bool:
    return column.is_numeric and not column.n_missing and column.low > 0 and column.high <= 1


def _outcome(
    columns: Sequence[ColumnSummary], treatment: ColumnSummary, again: Mapping[str, str], source: str
) -> tuple[ColumnSummary | None, list[ColumnSummary]]:
    """The likeliest name, 0 and 1 before other numbers; without one, all that could be meant."""
    numeric = [c for c in columns if c.is_numeric and c.n_distinct > 1 and c.name and not treatment.decides(c)]
    known = (*names.BENEFIT, *names.HARM)
    statuses = status_columns(columns)
    possible = [c for c in numeric if not names.is_before(c.name) and not cannot_be_outcome(c, statuses, again)]
    named = _ranked(possible, known)
    named.sort(key=lambda c: not c.is_binary)
    if named:
        return named[0], []
    _refuse_unusable([c for c in columns if not cannot_be_outcome(c, statuses, again)], known, treatment, source)
    if not possible:
        raise DataError(
            f"{source}: no column can be the outcome: one needs numbers, such as 0 and 1, and best a name such as "
            f"{', '.join(names.BENEFIT[:3])} or {names.HARM[0]}; columns: {_listed(columns)}"
        )
    return None, possible


def _refuse_unusable(
    columns: Sequence[ColumnSummary], known: Sequence[str], treatment: ColumnSummary, source: str
) -> None:
    """DataError if a column is named like an outcome and can be none: no other one is taken in its place."""
    named = [c for c in _ranked([c for c in columns if c.name], known) if not names.is_before(c.name)]
    if named:
        raise DataError(
            f"{source}: {toml_text(named[0].name)} is named like the outcome, but {_why(named[0], treatment)}"
        )


def _why(column: ColumnSummary, treatment: ColumnSummary) -> str:
    """Why a column can be no outcome."""
    shown = ", ".join(toml_text(str(level_of(value))) for value in column.values[:2])
    if column.n_distinct < 2:
        return f"it has only one value, {shown}" if column.values else "it has no values"
    if column.is_numeric:
        return f"it reveals the treatment: {toml_text(treatment.name)} decides it"
    if column.n_distinct == 2:
        return f"it is text ({shown}): make it 0 and 1"
    return f"it is text ({shown}, ...): make it numbers"


def _later(columns: Sequence[ColumnSummary], treatment: ColumnSummary, all_names: Sequence[str]) -> dict[str, str]:
    """Columns that no treatment may be chosen by, and why."""
    found: dict[str, str] = {}
    for column in columns:
        reason = _reason(column, treatment, all_names)
        if reason:
            found[column.name] = reason
    gaps = [column for column in columns if column.n_missing and column.name in found]
    for column in columns:
        for other in gaps:
            if column.name not in found and column.n_distinct == 2 and _tells_gaps(column, other):
                found[column.name] = f"shows in which rows {toml_text(other.name)} is missing"
    return found


def _reason(column: ColumnSummary, treatment: ColumnSummary, all_names: Sequence[str]) -> str | None:
    if 1 < column.n_distinct <= MOST_TREATMENTS and (treatment.decides(column) or column.decides(treatment)):
        return f"reveals the treatment: one of it and {toml_text(treatment.name)} decides the other"
    earlier = names.earlier_measurement(column.name, all_names)
    if earlier:
        return f"probably a later measurement of {toml_text(earlier)}"
    if names.is_before(column.name):
        return None
    if names.sounds_like_treatment(column.name):
        return "named after the treatment: it may reveal it, or come after it"
    return "named like an outcome or a time after treatment" if names.sounds_later(column.name) else None


def _tells_gaps(column: ColumnSummary, other: ColumnSummary) -> bool:
    gaps = other.codes < 0
    return not column.n_missing and len(np.unique(column.codes * 2 + gaps)) == 2


def _equal_probability(treatment: ColumnSummary) -> float:
    """Pearson's chi-square test that all treatments were equally probable."""
    expected = treatment.n_rows / treatment.n_distinct
    statistic = float(((treatment.counts - expected) ** 2 / expected).sum())
    return float(chdtrc(treatment.n_distinct - 1, statistic))


def _listed(columns: Sequence[ColumnSummary]) -> str:
    shown = [toml_text(column.name) for column in columns[:COLUMNS_SHOWN]]
    rest = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")

"""What each column of a trial is: as the user says, or as its name and values show; where they cannot, it asks.

Which columns were known only after treatment is told by evidence: names, gaps, and what the treatment has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from envs.toml_reader import unknown
from policies.arrays import FloatArray
from policysim.files.bad_rows import DataError
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import NumberedNames, listed
from policysim.logs.guess_columns import (
    FEWEST_NUMBERED,
    MOST_TREATMENTS,
    ROWS_EACH,
    ColumnSummary,
    TrialColumns,
    summarise_joined,
)
from policysim.logs.log_source import EQUAL, ESTIMATE
from policysim.logs.outcomes import FollowedUp, decides_outcome, find_outcome, followed_up
from policysim.question.protocol import UsageError

# Allocation so uneven has this probability if it was equal: then it was not.
IMPLAUSIBLE = 0.001


@dataclass(frozen=True)
class Named:
    """The columns that the user names; empty where nothing is said.

    Attributes
    ----------
    treatment : tuple of str
        One column, or several that make the treatment together.
    outcome, id : str
    time, event : str
        The time to an event or to the end of follow-up, and which of the two it is.
    """

    treatment: tuple[str, ...] = ()
    outcome: str = ""
    id: str = ""
    time: str = ""
    event: str = ""


@dataclass(frozen=True, eq=False)
class Roles:
    """What the columns are, each with what that rests on.

    Attributes
    ----------
    treatment : ColumnSummary
    joined : tuple of ColumnSummary
        The columns that make it together; () where it is one.
    propensity : str
        "equal", "estimate" or a column.
    equal_probability : float
        How probable counts as uneven as these are if allocation was equal (chi-square test).
    outcome : ColumnSummary or None
        None: it is `followed`.
    doubt : str
        Why the outcome that the user names looks like none; "" if it does not.
    followed : FollowedUp or None
        Where the outcome is to be free of an event at a horizon.
    id : ColumnSummary or None
    later : tuple of (ColumnSummary, str)
        Columns that were probably known only after treatment, each with the reason.
    rest : tuple of ColumnSummary
        All other columns, which may be features.
    """

    treatment: ColumnSummary
    joined: tuple[ColumnSummary, ...]
    propensity: str
    equal_probability: float
    outcome: ColumnSummary | None
    doubt: str
    followed: FollowedUp | None
    id: ColumnSummary | None
    later: tuple[tuple[ColumnSummary, str], ...]
    rest: tuple[ColumnSummary, ...]

    @property
    def harmful(self) -> bool:
        """Whether more of the outcome is worse, by its name."""
        if self.outcome is None:
            return False
        return (
            names.rank(self.outcome.name, names.BENEFIT) is None
            and names.rank(self.outcome.name, names.HARM) is not None
        )


def guess_roles(columns: Sequence[ColumnSummary] | TrialColumns, source: str, named: Named = Named()) -> Roles:
    """Say what the columns of a file called `source` are, or of three files.

    Raises
    ------
    UsageError
        A line for each role that neither the user nor the columns make clear: the option to use, and the candidates.
        Or for options that name no column, or one column twice, or what cannot be meant.
    DataError
        If no column can be the treatment, or the outcome.
    """
    files = columns if isinstance(columns, TrialColumns) else TrialColumns(columns, columns, columns)
    said = _named_columns(files, source, named)
    taken = [column for found in said.values() for column in found]
    ids = said["id"][0] if named.id else _id([c for c in files.features if c not in taken], files)
    taken += [column for column in files.every if column is ids or (files.id and column.name == files.id)]
    parts = said["treatment"] or files.one_for_each_arm(taken)
    actions = [column for column in files.actions if column not in taken]
    treatment, asked = (_together(parts), "") if parts else _treatment(actions, source)
    taken += [*parts, *([treatment] if treatment else [])]
    propensity = _propensity([column for column in files.actions if column not in taken])
    taken += [propensity] if propensity else []
    outcome, doubt, followed = None, "", None
    if named.time:
        followed = followed_up(said["time"][0], said["event"][0], treatment, source)
    else:
        left = [column for column in files.outcomes if column not in taken]
        only = left if files.are_three and len(left) == 1 else [None]
        named_one = (said["outcome"] or only)[0]
        outcome, doubt, question = find_outcome(left, treatment, named_one, files.every, source)
        asked = "\n".join(filter(None, (asked, question)))
    if asked or treatment is None:
        raise UsageError(asked)
    left = [column for column in files.features if column not in taken and column is not outcome]
    # Pearson's chi-square test that all treatments were equally probable.
    expected = int(treatment.counts.sum()) / treatment.n_distinct
    probability = float(chdtrc(treatment.n_distinct - 1, float(((treatment.counts - expected) ** 2 / expected).sum())))
    chance = propensity.name if propensity else ESTIMATE if probability < IMPLAUSIBLE else EQUAL
    result = followed.event if followed else outcome
    later = known_later(left, treatment, result, randomised=chance == EQUAL)
    return Roles(
        treatment=treatment,
        joined=tuple(parts) if len(parts) > 1 else (),
        propensity=chance,
        equal_probability=probability,
        outcome=outcome,
        doubt=doubt,
        followed=followed,
        id=ids,
        later=tuple((column, later[column.name]) for column in left if column.name in later),
        rest=tuple(column for column in left if column.name not in later),
    )


def _named_columns(files: TrialColumns, source: str, named: Named) -> dict[str, list[ColumnSummary]]:
    """The columns that the user names, by what they are; each is one thing."""
    places = {"id": files.features, "treatment": files.actions} | dict.fromkeys(
        ("outcome", "time", "event"), files.outcomes
    )
    found: dict[str, list[ColumnSummary]] = {use: [] for use in places}
    for use, columns in places.items():
        by_name = {column.name: column for column in columns}
        for name in named.treatment if use == "treatment" else filter(None, [getattr(named, use)]):
            if name not in by_name:
                raise UsageError(
                    f"--{use}: {source} has {unknown('column', name, list(by_name)).replace('unknown', 'no')}"
                )
            column = by_name[name]
            other = next((other for other, taken in found.items() if column in taken), None)
            if other:
                raise UsageError(f"--{use} {name!r} is the --{other} already: one column is one thing")
            found[use].append(column)
    if named.id and not found["id"][0].is_distinct:
        raise UsageError(f"--id: {toml_text(named.id)} does not have a value of its own in each row")
    if bool(named.time) != bool(named.event):
        raise UsageError("--time and --event go together: the time, and whether it is that of the event (1) or not (0)")
    if named.time and named.outcome:
        raise UsageError("--outcome does not go with --time and --event: the outcome is to be free of the event")
    return found


def _propensity(columns: Sequence[ColumnSummary]) -> ColumnSummary | None:
    """The column of probabilities whose name is the likeliest for a propensity."""
    ranks = [
        (rank, place)
        for place, column in enumerate(columns)
        if column.is_numeric and not column.n_missing and column.low > 0 and column.high <= 1
        if (rank := names.rank(column.name, names.PROPENSITY)) is not None
    ]
    return columns[min(ranks)[1]] if ranks else None


def _together(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """The columns that the user calls the treatment, as one."""
    treatment = summarise_joined(parts) if len(parts) > 1 else parts[0]
    if not 2 <= treatment.n_distinct <= MOST_TREATMENTS:
        what = "combinations" if len(parts) > 1 else "distinct values"
        raise UsageError(
            f"--treatment: {toml_text(treatment.name)} has {treatment.n_distinct:,} {what}; a treatment needs 2 to "
            f"{MOST_TREATMENTS}"
        )
    return treatment


def _treatment(columns: Sequence[ColumnSummary], source: str) -> tuple[ColumnSummary | None, str]:
    """The one column with a telling name; or None, and the question which it is.

    A whole name says more than one of its words, and of two such columns, one that decides the other.
    """
    possible = [
        column
        for column in columns
        if column.name
        and 2 <= column.n_distinct <= MOST_TREATMENTS
        and not (names.is_fixed(column.name) or names.is_before(column.name) or names.is_id(column.name))
    ]
    if not possible:
        raise DataError(
            f"{source}: no column can be the treatment: it needs 2 to {MOST_TREATMENTS} distinct values; columns: "
            f"{listed([column.name for column in columns])}"
        )
    telling = [column for column in possible if names.rank(column.name, names.TREATMENT) is not None]
    whole = [column for column in telling if column.name.strip().lower() in names.TREATMENT]
    chosen = [column for column in whole or telling if not _decided(column, telling)]
    chosen += [finer for finer in telling if finer not in chosen and any(_decides(finer, column) for column in chosen)]
    chosen = [column for column in chosen if not _decided(column, chosen)]
    if len(chosen) == 1:
        return chosen[0], ""
    first = [column.name for column in chosen or telling]
    rest = [column.name for column in possible if column.name not in first]
    return None, (
        f"{source}: which column is the treatment? Name it: --treatment COLUMN (or columns that make it together: "
        f"--treatment ONE,TWO); it could be {listed([*first, *rest])}"
    )


def _decided(column: ColumnSummary, others: Sequence[ColumnSummary]) -> bool:
    return any(_decides(other, column) for other in others if other is not column)


def _decides(finer: ColumnSummary, column: ColumnSummary) -> bool:
    return finer.n_distinct > column.n_distinct and finer.decides(column)


def _id(columns: Sequence[ColumnSummary], files: TrialColumns) -> ColumnSummary | None:
    """A column of distinct whole numbers or texts, by its name; else of texts, or of numbers that number the rows.

    Of three files, the one by which they were joined.
    """
    if files.are_three:
        return next((column for column in columns if column.name == files.id), None)
    distinct = [c for c in columns if c.name and c.is_distinct and (c.is_whole or not c.is_numeric)]
    surest = sorted(distinct, key=lambda c: not names.is_id(c.name))
    for column in surest:
        if "id" in column.name.lower() or names.rank(column.name, names.IDS) is not None:
            return column
    for column in distinct:
        if column.numbers_rows or (column.n_rows >= FEWEST_NUMBERED and not column.is_numeric):
            return column
    return None


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
    if any(stem in column.name.lower() for stem in names.TREATMENT_STEMS):
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

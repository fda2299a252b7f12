"""What each column of a trial is: as the user says, or as its name and values show; where they cannot, it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import chdtrc

from envs.toml_reader import unknown
from policysim.files.bad_rows import DataError
from policysim.files.whole_folders import toml_text
from policysim.logs import column_names as names
from policysim.logs.column_names import listed
from policysim.logs.guess_columns import (
    FEWEST_NUMBERED,
    MOST_TREATMENTS,
    ColumnSummary,
    TrialColumns,
    summarise_joined,
)
from policysim.logs.guess_later import known_later
from policysim.logs.guess_outcome import FollowedUp, find_outcome, followed_up
from policysim.logs.log_source import EQUAL, ESTIMATE
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
        return names.rank(self.outcome.name, names.BENEFIT) is None and _known(self.outcome, names.HARM)


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
    propensity = next(iter(_ranked([c for c in files.actions if c not in taken and _is_propensity(c)])), None)
    taken += [propensity] if propensity else []
    outcome, doubt, followed = None, "", None
    if named.time:
        followed = followed_up(said["time"][0], said["event"][0], treatment, source)
    else:
        left = [column for column in files.outcomes if column not in taken]
        only = left if files.are_three and len(left) == 1 else [None]
        found = find_outcome(left, treatment, (said["outcome"] or only)[0], files.every, source)
        outcome, doubt = found.column, found.doubt
        asked = "\n".join(filter(None, (asked, found.question)))
    if asked or treatment is None:
        raise UsageError(asked)
    left = [column for column in files.features if column not in taken and column is not outcome]
    probability = _equal_probability(treatment)
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


def _known(column: ColumnSummary, known: Sequence[str]) -> bool:
    return names.rank(column.name, known) is not None


def _ranked(columns: Sequence[ColumnSummary]) -> list[ColumnSummary]:
    """Those whose names are known for a propensity, the likeliest first."""
    ranks = [(r, place) for place, c in enumerate(columns) if (r := names.rank(c.name, names.PROPENSITY)) is not None]
    return [columns[place] for _, place in sorted(ranks)]


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
    possible = [column for column in columns if _may_be_treatment(column)]
    if not possible:
        raise DataError(
            f"{source}: no column can be the treatment: it needs 2 to {MOST_TREATMENTS} distinct values; columns: "
            f"{listed([column.name for column in columns])}"
        )
    telling = [column for column in possible if _known(column, names.TREATMENT)]
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


def _may_be_treatment(column: ColumnSummary) -> bool:
    if not column.name or not 2 <= column.n_distinct <= MOST_TREATMENTS:
        return False
    return not (names.is_fixed(column.name) or names.is_before(column.name) or names.is_id(column.name))


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
        if names.sounds_like_id(column.name):
            return column
    for column in distinct:
        if column.numbers_rows or (column.n_rows >= FEWEST_NUMBERED and not column.is_numeric):
            return column
    return None


def _is_propensity(column: ColumnSummary) -> bool:
    return column.is_numeric and not column.n_missing and column.low > 0 and column.high <= 1


def _equal_probability(treatment: ColumnSummary) -> float:
    """Pearson's chi-square test that all treatments were equally probable."""
    expected = int(treatment.counts.sum()) / treatment.n_distinct
    statistic = float(((treatment.counts - expected) ** 2 / expected).sum())
    return float(chdtrc(treatment.n_distinct - 1, statistic))

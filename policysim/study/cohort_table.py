"""Tables of one's own: a row for each kind of patient and treatment, with what a model of patients expects of it.

Which records exist is the product of the levels of the features. Records that differ in hidden features must all
have rows, so that the data do not choose the domain; a combination of public features without a row has no patients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from envs.records import BINARY, Feature, RecordSpace
from envs.toml_reader import FINITE, unknown
from policies.adjacency import Adjacency, AnyRecord, Sensitive
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import MISSING, FeatureLevels, Levels, level_of, level_wanted
from policies.outcomes import Outcomes, RepeatedRows, outcome_table
from policies.problem import DecisionProblem
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded, numbers, read_table
from policysim.utility import COSTS, Utility

ALLOWED, DRAW = "allowed", "draw"


class CohortColumns(NamedTuple):
    """What the columns of a cohort are called."""

    features: Sequence[str]
    treatment: str
    patients: str
    outcomes: Sequence[str]


@dataclass(frozen=True, eq=False)
class Draws:
    """What a table says of each kind and treatment, in each of its draws.

    Attributes
    ----------
    rows : array of int, (n_draws, n_records, n_actions)
        Where it says so; -1 where it says nothing.
    shares : array, (n_draws, n_records)
        The share of the patients who are of each kind.
    outcomes : mapping of str to array, (n_draws, n_records, n_actions)
        What is expected per patient.
    """

    rows: IntArray
    shares: FloatArray
    outcomes: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Cohort:
    """Kinds of patients, and what is expected of each under each treatment.

    Attributes
    ----------
    table : DataTable
        Where its rows stand.
    space : RecordSpace
        All combinations of the levels that occur, in the order of their first rows.
    actions : tuple of str
        The treatments, likewise.
    stated : Draws
        The table itself, as the only draw.
    allowed : array of bool, (n_records, n_actions), or None
        Which treatments each kind may get; None where all may get all.
    redraws : Draws or None
        What else the numbers could be.
    """

    table: DataTable
    space: RecordSpace
    actions: tuple[str, ...]
    stated: Draws
    allowed: BoolArray | None = None
    redraws: Draws | None = None

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What is counted."""
        return tuple(self.stated.outcomes)

    @property
    def n_numbers(self) -> int:
        """How many expectations it states."""
        return int((self.stated.rows >= 0).sum()) * len(self.outcomes)

    def problem(
        self,
        utility: Utility,
        adjacency: Adjacency,
        priors: Mapping[str, FloatArray] | None = None,
        lead: str | None = None,
    ) -> DecisionProblem:
        """The decision problem of what is stated; other priors, and the outcome that leads, stay with it.

        ValueError for weights and costs of what the table does not have.
        """
        utility.require_names(self.outcomes, self.actions)
        if COSTS in self.outcomes and any(utility.costs.values()):
            raise ValueError(f"{COSTS} are the costs of treatments: give the column of this outcome another name.")
        tables, shape = {name: table[0] for name, table in self.stated.outcomes.items()}, (self.space.size,)
        columns = {name: list(table.T) for name, table in tables.items()}
        costs = [np.array([cost]) for cost in utility.cost_vector(self.actions)]
        outcomes: dict[str, FloatArray | RepeatedRows] = {**tables}
        outcomes.setdefault(COSTS, outcome_table(costs, shape))
        return DecisionProblem(
            utility.expected(columns, costs, shape),
            self.stated.shares[0],
            adjacency,
            self.actions,
            records=self.space,
            outcomes=Outcomes(outcomes),
            priors=priors,
            admissible=self.allowed,
            lead=lead,
        )

    def redrawn(self) -> Iterator[Cohort]:
        """The cohort of each version of the model."""
        draws = self.redraws or self.stated
        for draw in range(len(draws.shares)):
            outcomes = {name: table[[draw]] for name, table in draws.outcomes.items()}
            yield replace(self, stated=Draws(draws.rows[[draw]], draws.shares[[draw]], outcomes))

    def require_hidden(self, hidden: Sequence[str]) -> None:
        """DataError unless each class of what is public has rows for all levels of some hidden features, and one mask.

        Parameters
        ----------
        hidden : sequence of str
            Features.
        """
        partition = Sensitive(self.space.shape, tuple(map(self.space.axis, hidden))).partitions(self.space.size)[0]
        first = self.stated.rows[0].min(axis=1)
        rows = partition.by_clique(first)
        lacking = np.flatnonzero((rows < 0).any(axis=1) & (rows >= 0).any(axis=1))
        if lacking.size:
            members = partition.members(int(lacking[0]))
            there, lacks = (members[first[members] >= 0][0], members[first[members] < 0][0])
            place = self.table.places([int(first[there])])[0]
            raise DataError(
                f"{place}: [{self.space.describe(there)}] has a row, and [{self.space.describe(lacks)}], which must "
                f"look alike, has none: hidden records need all levels of {', '.join(hidden)} (patients may be 0)"
            )
        for action, name in enumerate(self.actions if self.allowed is not None else ()):
            column = np.asarray(self.allowed)[:, action]
            mixed = np.flatnonzero(np.ptp(partition.by_clique(column).astype(np.int8), axis=1))
            if mixed.size:
                members = partition.members(int(mixed[0]))
                row = self.stated.rows[0][members[column[members] != column[members[0]]][0], action]
                raise DataError(
                    f"{self.table.places([int(row)])[0]}: {ALLOWED}: {name} is allowed to only some of the kinds that "
                    f"agree in all but {', '.join(hidden)}, which are hidden: it must depend on public features only"
                )


def read_cohort(
    table: DataTable, columns: CohortColumns, *, hidden: Sequence[str], redraws: DataTable | None = None
) -> Cohort:
    """Read a table of kinds of patients and treatments, and of what else its numbers could be.

    Parameters
    ----------
    table : DataTable
        A row for each kind and treatment.
    columns : CohortColumns
        What its columns are called; `allowed` (0 or 1) may be there, too.
    hidden : sequence of str
        The features that are not public.
    redraws : DataTable, optional
        The same rows again for each value of a column `draw`.

    Raises
    ------
    DataError
        A line for each bad row: values that are missing, negative or no number; rows that repeat, or are missing;
        patients that differ within a kind; hidden levels without rows; `allowed` by a hidden feature.
    """
    _require_columns(table, columns)
    levels = {name: _levels_in(table, name) for name in (*columns.features, columns.treatment)}
    actions = tuple(map(str, levels.pop(columns.treatment)))
    # Levels 0 and 1 say what is absent and present.
    features = [
        Feature(name, flag=True) if set(known) == set(BINARY) else Feature(name, known)
        for name, known in levels.items()
    ]
    space = RecordSpace(tuple(features))
    stated = _tabulated(table, columns, space, actions)
    cohort = Cohort(table, space, actions, stated, _allowed(table, stated.rows[0]))
    cohort.require_hidden(hidden)
    if redraws is None:
        return cohort
    _require_columns(redraws, columns, DRAW)
    return replace(cohort, redraws=_tabulated(redraws, columns, space, actions, like=stated.rows[0] >= 0))


def problem_from_frame(
    frame: pd.DataFrame,
    *,
    features: Sequence[str],
    treatment: str,
    patients: str,
    weights: Mapping[str, float],
    sensitive: Sequence[str] = (),
    adjacency: Adjacency | None = None,
    costs: Mapping[str, float] | None = None,
    lead: str | None = None,
) -> DecisionProblem:
    """Make a decision problem from a table of your own: a model's mean outcomes for each kind of patient and treatment.

    Parameters
    ----------
    frame : DataFrame
        A row for each kind of patient and treatment. A column `allowed` (0 or 1) may say which treatments a kind may
        get, by public features only.
    features : sequence of str
        The columns that define a kind of patients.
    treatment : str
        The column of the treatment; treatments are in the order of their first rows.
    patients : str
        The column of how many patients are of this kind, equal in all its rows; 0 for none.
    weights : mapping of str to float
        The columns of outcomes, each expected per patient and at least 0, and what one costs in utility, >= 0; 0 for
        what is counted only.
    sensitive : sequence of str, optional
        The hidden features; all others are public.
    adjacency : Adjacency, optional
        In place of them: `AnyRecord()`, which is the default, hides all.
    costs : mapping of str to float, optional
        What a treatment costs in utility.
    lead : str, optional
        The outcome that leads: it is reported first, and `optimal-safe` keeps it. It may be a share of patients, or a
        number, such as days in hospital. None, the default, for none.

    Returns
    -------
    DecisionProblem
        Its records are all combinations of levels; of what is public, those without rows have no patients.

    Raises
    ------
    ValueError
        For columns or names that are not there, weights and costs that are no such numbers, `sensitive` beside an
        adjacency, and (`DataError`) for bad rows.

    Examples
    --------
    >>> rows = [("A", "low", 3, 0.1), ("A", "high", 3, 0.4), ("B", "low", 1, 0.6), ("B", "high", 1, 0.2)]
    >>> frame = pd.DataFrame(rows, columns=["gene", "dose", "patients", "wrong"])
    >>> problem = problem_from_frame(
    ...     frame, features=["gene"], treatment="dose", patients="patients", weights={"wrong": 1.0}, sensitive=["gene"]
    ... )
    >>> problem.actions, problem.fixed_values.round(3).tolist()
    (('low', 'high'), [-0.225, -0.35])
    """
    for name in sensitive:
        if name not in features:
            raise ValueError(unknown("feature", name, list(features)))
    if sensitive and adjacency is not None:
        raise ValueError("give sensitive or adjacency, not both.")
    hidden = [features[axis] for axis in adjacency.axes] if isinstance(adjacency, Sensitive) else sensitive or features
    if not weights:
        raise ValueError(f"weights must name the columns of outcomes, and the cost of one, got weights={weights!r}.")
    utility = Utility(weights, {} if costs is None else costs)
    table = read_table(frame, "frame")
    cohort = read_cohort(table, CohortColumns(features, treatment, patients, list(weights)), hidden=hidden)
    if sensitive:
        adjacency = Sensitive(cohort.space.shape, tuple(map(cohort.space.axis, sensitive)))
    return cohort.problem(utility, adjacency or AnyRecord(), lead=lead)


def _require_columns(table: DataTable, columns: CohortColumns, *more: str) -> None:
    for name in (*columns.features, columns.treatment, columns.patients, *columns.outcomes, *more):
        if refusal := table.unknown_column(name):
            raise DataError(refusal)
    names = [*columns.features, columns.treatment, columns.patients, *columns.outcomes]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise DataError(f"{table.name}: {name}: is named twice: each column has one use")


def _levels_in(table: DataTable, name: str) -> tuple[str | int, ...]:
    """The levels that occur in a column, in the order of their first rows; DataError for fewer than two."""
    levels = tuple(dict.fromkeys(level_of(key) for key in coded(table[name])[1] if key != MISSING))
    if len(levels) < 2:
        only = f"only {str(levels[0])!r}" if levels else "none"
        raise DataError(f"{table.name}: {name}: needs at least two levels, got {only}")
    return levels


def _allowed(table: DataTable, rows: IntArray) -> BoolArray | None:
    """Which treatments each record may get, from the column `allowed`, if there is one and it forbids any."""
    if ALLOWED not in table.columns:
        return None
    values, bad = numbers(table[ALLOWED]), BadRows()
    bad.add_values(table, ~np.isin(values, (0.0, 1.0)), ALLOWED, table[ALLOWED].array, "must be 0 or 1")
    mask = (rows < 0) | (values[rows] == 1)
    nothing = np.isin(np.arange(len(table)), rows[~mask.any(axis=1), 0])
    bad.add(table, nothing, ALLOWED, lambda _: "no treatment is allowed to this kind")
    bad.raise_if_any()
    return None if mask.all() else mask


def _tabulated(
    table: DataTable, columns: CohortColumns, space: RecordSpace, actions: Sequence[str], like: BoolArray | None = None
) -> Draws:
    """The rows of a table by draw, record and action.

    With `like`, (n_records, n_actions), it has a column `draw`, and each draw must have these rows.
    """
    codes, bad = [], BadRows()
    described: list[FeatureLevels] = [*space.features, Levels(columns.treatment, actions)]
    for feature in described:
        codes.append(table.codes(feature))
        bad.add_values(table, codes[-1] < 0, feature.name, table[feature.name].array, level_wanted(feature))
    counted = {name: numbers(table[name]) for name in (columns.patients, *columns.outcomes)}
    for name, values in counted.items():
        wrong = ~((values >= 0) & (values <= FINITE))
        bad.add_values(table, wrong, name, table[name].array, "must be a number >= 0")
    bad.raise_if_any()
    draw, draws = (np.zeros(len(table), dtype=np.intp), [MISSING]) if like is None else coded(table[DRAW])
    cells = (draw, space.indices(np.column_stack(codes[:-1])), codes[-1])
    rows = np.full((len(draws), space.size, len(actions)), len(table))
    # Of those that repeat, the first counts.
    np.minimum.at(rows, cells, np.arange(len(table)))
    rows[rows == len(table)] = -1
    _refuse_differences(table, columns.patients, counted[columns.patients], rows, cells)
    there = rows >= 0
    wanted = np.broadcast_to(there.any(axis=2, keepdims=True) if like is None else like, there.shape)
    for where, words in ((there & ~wanted, "has rows, but none in the cohort"), (wanted & ~there, "has no row for {}")):
        if where.any():
            place, record, action = map(int, np.argwhere(where)[0])
            near = rows[place, record].max()
            location = table.places([int(near)])[0] if near >= 0 else table.name
            of_draw = f" in {DRAW} {level_of(draws[place])}" if like is not None else ""
            raise DataError(f"{location}: [{space.describe(record)}] {words.format(actions[action])}{of_draw}")
    # What has no rows has no patients, and no treatment is better for it.
    filled = {name: np.where(there, values[rows], 0.0) for name, values in counted.items()}
    patients = filled.pop(columns.patients)[:, :, 0]
    sums = patients.sum(axis=1, keepdims=True)
    if not sums.all():
        raise DataError(f"{table.name}: {columns.patients}: there must be some, got 0 in every row")
    return Draws(rows, patients / sums, filled)


def _refuse_differences(
    table: DataTable, name: str, patients: FloatArray, rows: IntArray, cells: tuple[IntArray, ...]
) -> None:
    """Rows that repeat, and numbers of patients that differ within a kind."""
    bad, first = BadRows(), rows[cells]
    repeated = first != np.arange(len(table))
    bad.add(table, repeated, "", lambda row: f"is of the same kind and treatment as {table.short_place(first[row])}")
    kind = np.where(rows < 0, len(table), rows).min(axis=2)[cells[:2]]

    def differs(row: int) -> str:
        there = f"{patients[kind[row]]:g} in {table.short_place(kind[row])}"
        return f"must be equal in all rows of a kind, got {patients[row]:g}, and {there}"

    bad.add(table, patients != patients[kind], name, differs)
    bad.raise_if_any()

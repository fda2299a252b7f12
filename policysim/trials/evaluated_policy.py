"""A policy made elsewhere: a table of action probabilities, its rows found by the columns that it shares with a log.

A policy of the catalogue on the records of a scenario: its exact value is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from envs.toml_reader import unknown
from policies.arrays import FloatArray, IntArray
from policies.policy import Policy
from policysim.course.simulation import spread_of_returns
from policysim.files.bad_rows import BadRows, LogError, level_key
from policysim.files.probability_table import PREFIX, ROUNDED_SUM
from policysim.logs.cells import coded, numbers, with_sums_of_one
from policysim.logs.log_frame import OUTCOME_PREFIX
from policysim.logs.log_tables import LogTable, read_table
from policysim.study.basis import hidden
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem
from policysim.trials.evaluated_log import PANDAS_INDEX, Exact


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """A table of action probabilities from a file.

    Attributes
    ----------
    table : LogTable
        The file.
    actions : tuple of str
        Those that have a column p_<action>.
    keys : tuple of str
        The other columns, by which rows are found; none if the rows are those of the log, in its order.
    rows : array, (n_table_rows, n_actions)
        p(a|x).
    """

    table: LogTable
    actions: tuple[str, ...]
    keys: tuple[str, ...]
    rows: FloatArray
    exact = None

    @property
    def title(self) -> str:
        """The file, and how its rows are found."""
        found = f"found by {', '.join(self.keys)}" if self.keys else "in the log's order"
        return f"{self.table.name}, {len(self.table):,} rows, {found}"

    @property
    def privacy(self) -> str:
        """Nothing but a table is known."""
        return f"The ε of {self.table.name} is not checked here; policysim audit --table does that for a CSV file."

    def probabilities(self, table: LogTable) -> FloatArray:
        """p(a|x) for each row of a log; LogError lists rows that do not have exactly one row here."""
        if not self.keys:
            if len(table) != len(self.table):
                raise LogError(
                    f"{self.table.name}: has only columns {PREFIX}<action>, so that its rows must be those of the log, "
                    f"in its order; it has {len(self.table):,} rows, and {len(table):,} of {table.name} are used"
                )
            return self.rows
        for name in self.keys:
            if name not in table.frame.columns:
                known = [str(column) for column in table.frame.columns]
                raise LogError(f"{self.table.name}: no such column in {table.name}: {unknown('column', name, known)}")
            if name.startswith(OUTCOME_PREFIX):
                raise LogError(
                    f"{self.table.name}: {name}: an outcome is known only after treatment: no policy knows it"
                )
        wanted, offered = _groups(table, self.table, self.keys)
        row_of, copies = _rows_of_groups(offered, int(max(wanted.max(), offered.max())) + 1)
        bad = BadRows()
        for number, words in ((0, "no row"), (2, "more than one row")):
            wrong = np.minimum(copies[wanted], 2) == number
            bad.add(table, wrong, ", ".join(self.keys), _finder(table.frame[list(self.keys)], self.table.name, words))
        bad.raise_if_any()
        return self.rows[row_of[wanted]]


def read_table_policy(path: Path) -> TablePolicy:
    """Read a .csv or .parquet file with a column p_<action> for each action.

    Raises
    ------
    LogError
        For a file that cannot be read, fewer than two actions, and a line for each of the first twenty rows with a
        value that is no probability, or with a sum further than 1e-6 from 1. Sums that were rounded by less are made 1.
    """
    table = read_table(path, "table")
    names = [str(name) for name in table.frame.columns]
    columns = [name for name in names if name.startswith(PREFIX)]
    if len(columns) < 2:
        only = f"only {columns[0]} is" if columns else "no column is"
        raise LogError(f"{table.name}: needs a column {PREFIX}<action> for each action; {only} named so")
    bad = BadRows()
    rows: FloatArray = np.column_stack([numbers(table[name]) for name in columns])
    for position, name in enumerate(columns):
        proper = (rows[:, position] >= 0) & (rows[:, position] <= 1 + ROUNDED_SUM)
        bad.add_values(table, ~proper, name, table[name], "must be a probability in [0, 1]")
    sums = rows.sum(axis=1)
    off = np.abs(sums - 1) > ROUNDED_SUM
    title = ", ".join(columns) if len(columns) <= 4 else f"{columns[0]} ... {columns[-1]}"
    bad.add(table, off, title, lambda row: f"must sum to 1 within {ROUNDED_SUM:g}, got a sum of {sums[row]:.9g}")
    bad.raise_if_any()
    rows = with_sums_of_one(rows, sums)
    keys = tuple(name for name in names if name not in columns and not name.startswith(PANDAS_INDEX))
    return TablePolicy(table, tuple(name.removeprefix(PREFIX) for name in columns), keys, rows)


def _groups(first: LogTable, second: LogTable, keys: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Rows of two tables numbered so that equal numbers are equal keys: 1, 1.0, true and "1" are the same value."""
    group: IntArray = np.zeros(len(first) + len(second), dtype=np.intp)
    for name in keys:
        places: dict[object, int] = {}
        codes = []
        for table in (first, second):
            positions, values = coded(table[name])
            codes.append(
                np.array([places.setdefault(value, len(places)) for value in values], dtype=np.intp)[positions]
            )
        # Numbered anew each time, so that the product never overflows.
        group = np.asarray(pd.factorize(group * len(places) + np.concatenate(codes))[0], dtype=np.intp)
    return group[: len(first)], group[len(first) :]


def _rows_of_groups(offered: IntArray, n_groups: int) -> tuple[IntArray, IntArray]:
    """For each group a row that offers it (0 where none does), and how many do."""
    row_of: IntArray = np.zeros(n_groups, dtype=np.intp)
    row_of[offered] = np.arange(len(offered))
    return row_of, np.bincount(offered, minlength=n_groups)


def _finder(keys: pd.DataFrame, name: str, words: str) -> Callable[[int], str]:
    """What to say of a row that does not have exactly one row in the table."""

    def say(row: int) -> str:
        values = ", ".join(str(value) for value in keys.iloc[row])
        return f"{name} has {words} for {values}"

    return say


@dataclass(frozen=True, eq=False)
class CataloguePolicy:
    """A policy on the problem of a study.

    Attributes
    ----------
    policy : Policy
        With its epsilon.
    study : ScenarioStudy
        Whose records, utility and adjacency it works on.
    """

    policy: Policy
    study: ScenarioStudy

    @property
    def title(self) -> str:
        """Its name, epsilon and study."""
        spends = f" at ε = {self.policy.epsilon:g}" if self.policy.uses_epsilon else ""
        return f"{self.policy.name}{spends}, on the records of {self.study.name}"

    @property
    def privacy(self) -> str:
        """What its epsilon protects."""
        return f"Hidden by ε: {hidden(self.study)}." if self.policy.uses_epsilon else "This policy has no ε."

    @property
    def actions(self) -> tuple[str, ...]:
        """The treatments of the scenario."""
        return self.study.scenario.actions

    @cached_property
    def _table_and_value(self) -> tuple[FloatArray, float]:
        problem = build_problem(self.study)
        table = self.policy.probabilities(problem)
        return table, problem.value(table)

    @property
    def exact(self) -> Exact:
        """Its value to the cohort of the scenario."""
        return Exact(self._table_and_value[1], spread_of_returns(self.study, 1))

    def probabilities(self, table: LogTable) -> FloatArray:
        """p(a|x) for each row of a log; LogError lists rows that are no records of the scenario."""
        return self._table_and_value[0][self._records(table)]

    def _records(self, table: LogTable) -> IntArray:
        bad = BadRows()
        space = self.study.space
        for name in space.names:
            message = table.unknown_column(name)
            if message:
                raise LogError(f"{message}; it is a feature of {self.study.name}")
        codes = []
        for feature in space.features:
            positions, keys = coded(table[feature.name])
            places = {level_key(level): place for place, level in enumerate(feature.levels)}
            found = np.array([places.get(key, -1) for key in keys], dtype=np.intp)[positions]
            must = f"must be one of {', '.join(map(str, feature.levels))}"
            bad.add_values(table, found < 0, feature.name, table[feature.name], must)
            codes.append(found)
        bad.raise_if_any()
        return space.indices(np.column_stack(codes))

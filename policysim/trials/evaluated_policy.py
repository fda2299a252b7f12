"""A policy made elsewhere: a table of action probabilities, its rows found by the columns that it shares with a log.

A policy of the catalogue on the records of a scenario: its exact value is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from envs.records import Feature
from envs.toml_reader import unknown
from policies.arrays import FloatArray, IntArray
from policies.policy import Policy
from policysim.files.bad_rows import MISSING, BadRows, DataError, level_of, sorted_keys
from policysim.files.data_table import DataTable, coded
from policysim.files.probability_table import PREFIX, ProbabilityTable
from policysim.logs.log_frame import OUTCOME_PREFIX
from policysim.logs.log_source import NO_VALUE
from policysim.study.basis import hidden
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem
from policysim.trials.contraindicated import level_codes
from policysim.trials.evaluated_log import Exact


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """A table of action probabilities from a file.

    Its rows are found by its features; without any they are those of the log, in its order.

    Attributes
    ----------
    found : ProbabilityTable
        The file.
    study : ScenarioStudy or None
        Whose contraindications it must keep to, its features being columns of the log.
    """

    found: ProbabilityTable
    study: ScenarioStudy | None = None
    exact = None

    @property
    def table(self) -> DataTable:
        """The file."""
        return self.found.table

    @property
    def actions(self) -> tuple[str, ...]:
        """Those that have a column p_<action>."""
        return self.found.actions

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows are found."""
        return self.found.features

    @property
    def title(self) -> str:
        """The file, and how its rows are found."""
        found = f"found by {', '.join(self.keys)}" if self.keys else "in the log's order"
        return f"{self.table.name}, {len(self.table):,} rows, {found}"

    @property
    def privacy(self) -> str:
        """Nothing but a table is known."""
        return f"The ε of {self.table.name} is not checked here; policysim audit --table does that."

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns by which rows are found, with the values that they have here, and what contraindications read."""
        if not self.keys:
            raise DataError(
                f"{self.table.name}: has only columns {PREFIX}<action>, for the rows of a log in its order, and this "
                "log is counted: name columns by which patients are found"
            )
        found = []
        for name in self.keys:
            codes, keys = coded(self.table[name])
            occurring = sorted_keys({keys[code] for code in np.unique(codes)})
            found.append(Feature(name, tuple(NO_VALUE if key == MISSING else level_of(key) for key in occurring)))
        if self.study is not None:
            read = self.study.scenario.contraindication_features
            found += [self.study.space.feature(name) for name in read if name not in self.keys]
        return tuple(found)

    def probabilities(self, table: DataTable) -> FloatArray:
        """p(a|x) for each row of a log; DataError lists rows that do not have exactly one row here."""
        if not self.keys:
            if len(table) != len(self.table):
                raise DataError(
                    f"{self.table.name}: has only columns {PREFIX}<action>, so that its rows must be those of the log, "
                    f"in its order; it has {len(self.table):,} rows, and {len(table):,} of {table.name} are used"
                )
            return self.found.probabilities
        for name in self.keys:
            if name not in table.columns:
                hint = unknown("column", name, table.columns)
                raise DataError(f"{self.table.name}: no such column in {table.name}: {hint}")
            if name.startswith(OUTCOME_PREFIX):
                raise DataError(
                    f"{self.table.name}: {name}: an outcome is known only after treatment: no policy knows it"
                )
        wanted, offered = _groups(table, self.table, self.keys)
        row_of, copies = _rows_of_groups(offered, int(max(wanted.max(), offered.max())) + 1)
        bad = BadRows()
        for number, words in ((0, "no row"), (2, "more than one row")):
            wrong = np.minimum(copies[wanted], 2) == number
            bad.add(table, wrong, ", ".join(self.keys), _finder(table.frame_of(self.keys), self.table.name, words))
        bad.raise_if_any()
        return self.found.probabilities[row_of[wanted]]


def _groups(first: DataTable, second: DataTable, keys: Sequence[str]) -> tuple[IntArray, IntArray]:
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

    @property
    def features(self) -> tuple[Feature, ...]:
        """Those of the scenario's records."""
        return self.study.space.features

    @cached_property
    def _table_and_value(self) -> tuple[FloatArray, float]:
        problem = build_problem(self.study)
        table = self.policy.probabilities(problem)
        return table, problem.value(table)

    @property
    def exact(self) -> Exact:
        """Its value to the cohort of the scenario."""
        return Exact(self._table_and_value[1], self.study.utility.spread(self.study.scenario, 1))

    def probabilities(self, table: DataTable) -> FloatArray:
        """p(a|x) for each row of a log; DataError lists rows that are no records of the scenario."""
        space = self.study.space
        return self._table_and_value[0][space.indices(level_codes(self.study, space.names, table))]

"""A policy of the catalogue on the records of a scenario: its exact value is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from envs.records import IntArray
from policies.arrays import FloatArray
from policies.policy import Policy
from policysim.evaluation.target import Exact
from policysim.logs.bad_rows import BadRows, LogError
from policysim.logs.cells import coded
from policysim.logs.reading import LogTable
from policysim.logs.values import level_key
from policysim.problem import build_problem
from policysim.simulation import spread_of_returns
from policysim.study import ScenarioStudy
from policysim.words import hidden


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

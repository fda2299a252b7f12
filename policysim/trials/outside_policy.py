"""A policy made elsewhere, as a log evaluates it: a table of action probabilities, or a policy of the catalogue.

The rows of a table are found by the columns that it shares with a log. A policy of the catalogue works on the records
of a scenario: its exact value is known. Either must keep to what the contraindications of a scenario leave to patients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd

from envs.records import Feature, Lookup
from envs.toml_reader import unknown
from envs.treatment_response import contraindication_of, forbidden
from policies.arrays import FloatArray, IntArray
from policies.mask import BoolArray
from policies.policy import Policy
from policysim.files.bad_rows import MISSING, BadRows, DataError, level_key, level_of, sorted_keys
from policysim.files.data_table import DataTable, coded, codes_among
from policysim.files.probability_table import PREFIX, ProbabilityTable
from policysim.logs.log_frame import OUTCOME_PREFIX, LoggedData, summed
from policysim.logs.log_source import NO_VALUE
from policysim.study.basis import hidden
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem


class OutsidePolicy(Protocol):
    """A policy made elsewhere."""

    @property
    def title(self) -> str:
        """What it is, in words."""

    @property
    def privacy(self) -> str:
        """What is known of its privacy loss, in a sentence."""

    @property
    def actions(self) -> tuple[str, ...]:
        """In the order of its columns."""

    @property
    def exact(self) -> tuple[float, float] | None:
        """Its value per patient under a scenario's model, and how far two patients' rewards can be apart at most.

        None where no model says.
        """

    @property
    def study(self) -> ScenarioStudy | None:
        """Whose contraindications it must keep to; None where nothing is known of any."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """What it knows of a patient; DataError if it knows only the patients' order."""

    def probabilities(self, table: DataTable) -> FloatArray:
        """p(a|x) for each row of a log, (n_rows, n_actions); ValueError lists rows that it does not cover."""


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
    def actions(self) -> tuple[str, ...]:
        """Those that have a column p_<action>."""
        return self.found.actions

    @property
    def title(self) -> str:
        """The file, and how its rows are found."""
        found = f"found by {', '.join(self.found.features)}" if self.found.features else "in the log's order"
        return f"{self.found.table.name}, {len(self.found.table):,} rows, {found}"

    @property
    def privacy(self) -> str:
        """Nothing but a table is known."""
        return f"The ε of {self.found.table.name} is not checked here; policysim audit --table does that."

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns by which rows are found, with the values that they have here, and what contraindications read."""
        table, keys = self.found.table, self.found.features
        if not keys:
            raise DataError(
                f"{table.name}: has only columns {PREFIX}<action>, for the rows of a log in its order, and this "
                "log is counted: name columns by which patients are found"
            )
        found = []
        for name in keys:
            codes, values = coded(table[name])
            occurring = sorted_keys({values[code] for code in np.unique(codes)})
            found.append(Feature(name, tuple(NO_VALUE if key == MISSING else level_of(key) for key in occurring)))
        if self.study is not None:
            read = self.study.scenario.contraindication_features
            found += [self.study.space.feature(name) for name in read if name not in keys]
        return tuple(found)

    def probabilities(self, table: DataTable) -> FloatArray:
        """p(a|x) for each row of a log; DataError lists rows that do not have exactly one row here."""
        own, keys = self.found.table, self.found.features
        if not keys:
            if len(table) != len(own):
                raise DataError(
                    f"{own.name}: has only columns {PREFIX}<action>, so that its rows must be those of the log, "
                    f"in its order; it has {len(own):,} rows, and {len(table):,} of {table.name} are used"
                )
            return self.found.probabilities
        for name in keys:
            if name not in table.columns:
                hint = unknown("column", name, table.columns)
                raise DataError(f"{own.name}: no such column in {table.name}: {hint}")
            if name.startswith(OUTCOME_PREFIX):
                raise DataError(f"{own.name}: {name}: an outcome is known only after treatment: no policy knows it")
        wanted, offered = _groups(table, own, keys)
        # For each group a row that offers it (0 where none does), and how many do.
        n_groups = int(max(wanted.max(), offered.max())) + 1
        row_of: IntArray = np.zeros(n_groups, dtype=np.intp)
        row_of[offered] = np.arange(len(offered))
        copies = np.bincount(offered, minlength=n_groups)[wanted]
        asked, bad = table.frame_of(keys), BadRows()
        for wrong, words in ((copies == 0, "no row"), (copies > 1, "more than one row")):

            def say(row: int, words: str = words) -> str:
                return f"{own.name} has {words} for {', '.join(map(str, asked.iloc[row]))}"

            bad.add(table, wrong, ", ".join(keys), say)
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
    def exact(self) -> tuple[float, float]:
        """Its value to the cohort of the scenario, and how far two patients' rewards can be apart."""
        return self._table_and_value[1], self.study.utility.spread(self.study.scenario, 1)

    def probabilities(self, table: DataTable) -> FloatArray:
        """p(a|x) for each row of a log; DataError lists rows that are no records of the scenario."""
        space = self.study.space
        return self._table_and_value[0][space.indices(level_codes(self.study, space.names, table))]


@dataclass(frozen=True, eq=False)
class AllowedTreatments:
    """What contraindications leave to each row of a log.

    Attributes
    ----------
    study : ScenarioStudy
        Whose contraindications they are.
    actions : tuple of str
        In the order of a policy's columns.
    table : DataTable
        The log's rows.
    codes : array of int, (n_rows, n_features)
        The level of each feature of the study that contraindications read; 0 for the others.
    mask : array of bool, (n_rows, n_actions)
        Which action each row may get.
    """

    study: ScenarioStudy
    actions: tuple[str, ...]
    table: DataTable
    codes: IntArray
    mask: BoolArray

    @classmethod
    def of(cls, study: ScenarioStudy | None, actions: Sequence[str], table: DataTable) -> AllowedTreatments | None:
        """Those of a study; None without a study, or if it has no contraindications.

        Raises
        ------
        DataError
            For rows that are no records of the study in what contraindications read, and an action that is none of its
            treatments.
        """
        scenario = None if study is None else study.scenario
        if study is None or scenario is None or not scenario.contraindication_features:
            return None
        for name in actions:
            if name not in scenario.actions:
                raise DataError(f"{study.name}: {unknown('treatment', name, scenario.actions)}")
        codes = level_codes(study, scenario.contraindication_features, table)
        at = Lookup(codes)
        mask = np.column_stack([~at.of(forbidden(scenario, name)) for name in actions])
        return cls(study, tuple(actions), table, codes, mask)

    def require(self, probabilities: FloatArray, data: LoggedData) -> None:
        """DataError if a policy, (n_rows, n_actions), gives a row what it must not get: the first, and how many."""
        given = (probabilities > 0) & ~self.mask
        if not given.any():
            return
        action = int(given.any(axis=0).argmax())
        row = int(given[:, action].argmax())
        wrong, name = int(summed(given[:, action].astype(np.float64), data.counts)), self.actions[action]
        why = contraindication_of(self.study.scenario, name, self.codes[row].tolist())
        raise DataError(
            f"{self.table.places([row])[0]}: {name} is contraindicated for this patient ({why}), and the policy gives "
            f"it with probability {probabilities[row, action]:g}; it does so to {wrong:,} of {data.n_patients:,} "
            "patients, who must not get it"
        )


def level_codes(study: ScenarioStudy, names: Sequence[str], table: DataTable) -> IntArray:
    """The levels of these features in each row, (n_rows, n_features); 0 for the features that are not named.

    DataError for a missing column, and for each value that is no level.
    """
    space, bad = study.space, BadRows()
    for name in names:
        message = table.unknown_column(name)
        if message:
            raise DataError(f"{message}; it is a feature of {study.name}")
    codes: IntArray = np.zeros((len(table), len(space.names)), dtype=np.intp)
    for name in names:
        feature = space.feature(name)
        found = codes_among(table[name], list(map(level_key, feature.levels)))
        must = f"must be one of {', '.join(map(str, feature.levels))}"
        bad.add_values(table, found < 0, name, table[name].array, must)
        codes[:, space.axis(name)] = found
    bad.raise_if_any()
    return codes

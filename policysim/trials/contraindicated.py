"""Which treatments the patients of a log may get: the contraindications of a scenario whose records they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envs.records import Lookup
from envs.toml_reader import unknown
from envs.treatment_response import contraindication_of, forbidden
from policies.arrays import FloatArray, IntArray
from policies.mask import BoolArray
from policysim.files.bad_rows import BadRows, DataError, level_key
from policysim.files.data_table import DataTable, codes_among
from policysim.logs.log_frame import LoggedData, summed
from policysim.study.declared import ScenarioStudy


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

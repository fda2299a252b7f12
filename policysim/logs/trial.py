"""load_log: from what a study says about its log to arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.arrays import FloatArray, IntArray
from policysim.logs.bad_rows import BadRows
from policysim.logs.cells import numbers
from policysim.logs.decisions import Columns, read_decisions
from policysim.logs.outcomes import check_outcomes
from policysim.logs.propensities import estimate_propensities
from policysim.logs.reading import LogTable, read_table
from policysim.logs.source import LogSource
from policysim.logs.tables import LogTables
from policysim.offpolicy.logged import LoggedData


@dataclass(frozen=True, eq=False)
class Log:
    """A study's log, read and checked.

    Attributes
    ----------
    data : LoggedData
        Treatments, rewards and propensities of the rows that are used.
    records : array, (n_rows,)
        The record of each of these rows in `space`.
    space : RecordSpace
        The declared domain.
    missing : tuple of int
        Of all rows that were read: those without an outcome, for each treatment.
    n_read : int
        Rows that were read; more than are used where rows without an outcome are excluded.
    outcomes : mapping of str to array, (n_rows,)
        Each outcome of the rows that are used, those of weight 0 too; NaN where it is missing.
    raw : DataFrame, n_rows, optional
        The numbers of the features that are declared by cuts.
    """

    data: LoggedData
    records: IntArray
    space: RecordSpace
    missing: tuple[int, ...]
    n_read: int
    outcomes: Mapping[str, FloatArray]
    raw: pd.DataFrame | None = None

    @cached_property
    def covariates(self) -> pd.DataFrame:
        """The features of the rows that are used: levels, and numbers as they were before they were cut."""
        levels = self.space.decode(self.records)
        return levels if self.raw is None else levels.assign(**{str(name): self.raw[name] for name in self.raw})


def load_log(source: LogSource) -> Log:
    """Read and check the log of a study.

    Estimated propensities (`propensity = "estimate"`) are those of a multinomial logistic regression on the declared
    features, cross-fitted on the rows that are used. They make confounding possible: see
    `propensities.estimate_propensities`. Where rows without an outcome are left out (`missing = "exclude"`), known
    propensities are made those of the rows that are used (`propensities.observed_propensities`), which is right if
    outcomes are missing by chance within each treatment.

    Raises
    ------
    LogError
        One line for each of the first twenty bad rows, and how many more there are: a value that is no declared level,
        no known treatment, a propensity outside (0, 1], an outcome that is missing, infinite or out of range, an id
        that is missing, not unique or without a match. Or one line about a file as a whole.
    InputFileError
        For an outcome that cannot be one: an id, a column known before treatment, a time of follow-up; with the line of
        the study.
    """
    tables = LogTables({role: read_table(path) for role, path in source.files.items()}, source.id)
    tables.require([(tables.features, name) for name in source.features])
    bad = BadRows()
    records = _records(tables.features, source, bad)
    # First: a wrong column would only be told by values out of range.
    check_outcomes(source, tables)
    decisions = read_decisions(tables, _columns(source), bad)
    kept = decisions.kept()
    actions = decisions.actions[kept]
    propensities = decisions.known_propensities()
    if propensities is None:
        propensities = _estimated(source.space, records[kept], actions, decisions.names)
    return Log(
        data=LoggedData(actions, decisions.rewards[kept], propensities, decisions.names),
        records=records[kept],
        space=source.space,
        missing=decisions.missing_by_action(),
        n_read=len(records),
        outcomes={name: column[kept] for name, column in decisions.outcomes.items()},
        raw=pd.DataFrame(
            {name: numbers(tables.features[name])[kept] for name, binning in source.features.items() if binning.cuts},
            index=range(len(kept)),
        ),
    )


def _columns(source: LogSource) -> Columns:
    return Columns(
        treatment=source.treatment,
        treatments=source.treatments,
        propensity=source.propensity,
        outcome=source.outcome,
        utility_range=source.utility_range,
        missing=source.missing,
    )


def _records(table: LogTable, source: LogSource, bad: BadRows) -> IntArray:
    """The record of each row, numbered as in the source's space."""
    index = np.zeros(len(table), dtype=np.intp)
    for name, binning in source.features.items():
        codes = binning.codes(table[name])
        bad.add_values(table, codes < 0, name, table[name], binning.allowed)
        index = index * len(binning.feature.levels) + codes
    return index


def _estimated(space: RecordSpace, records: IntArray, actions: IntArray, names: tuple[str, ...]) -> FloatArray:
    """Propensities from the declared features, a column of 0 and 1 for each level."""
    occurring, groups = np.unique(records, return_inverse=True)
    levels = zip(space.codes(occurring).T, space.shape, strict=True)
    covariates = np.hstack([codes[:, None] == np.arange(size) for codes, size in levels]).astype(np.float64)
    return estimate_propensities(covariates, groups, actions, names)

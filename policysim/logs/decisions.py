"""What was decided for each patient of a log, how probably, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policysim.logs.bad_rows import BadRows, LogError
from policysim.logs.cells import BoolArray
from policysim.logs.propensities import equal_propensities, observed_propensities, read_propensities
from policysim.logs.rewards import read_rewards
from policysim.logs.source import EQUAL, ESTIMATE
from policysim.logs.tables import LogTables
from policysim.logs.treatments import Taken, one_hot_columns, taken_in_column, taken_one_hot
from policysim.offpolicy.log_frame import PROPENSITY

# For a standard error.
FEWEST_ROWS = 2


@dataclass(frozen=True)
class Columns:
    """What the columns of a log mean; see `LogSource`. No `utility_range`: none was declared."""

    treatment: str
    treatments: tuple[tuple[str, str], ...]
    propensity: str
    outcome: Mapping[str, float]
    utility_range: tuple[float, float] | None
    missing: str

    @property
    def names_propensity(self) -> bool:
        """Whether propensities are a column."""
        return self.propensity not in (EQUAL, ESTIMATE)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Arrays with an entry for each row of a log, in the order of its features.

    Attributes
    ----------
    actions : array, (n_rows,)
        Positions in `names`.
    names : tuple of str
        All treatments.
    propensities : array, (n_rows,), or None
        None: they are to be estimated.
    rewards : array, (n_rows,)
        NaN in rows that are to be left out.
    missing : array of bool, (n_rows,)
        Whether an outcome is.
    outcomes : dict of str to array, (n_rows,)
        Each outcome; NaN where it is missing.
    """

    actions: IntArray
    names: tuple[str, ...]
    propensities: FloatArray | None
    rewards: FloatArray
    missing: BoolArray
    outcomes: dict[str, FloatArray]

    def kept(self) -> IntArray:
        """The rows that have a reward; LogError if they are too few."""
        rows = np.flatnonzero(~np.isnan(self.rewards))
        if len(rows) < FEWEST_ROWS:
            raise LogError(f"a log must have at least {FEWEST_ROWS} rows with an outcome, got {len(rows)}")
        return rows

    def known_propensities(self) -> FloatArray | None:
        """Those of the rows that have a reward, see `observed_propensities`; None: they are to be estimated."""
        if self.propensities is None:
            return None
        return observed_propensities(self.propensities, self.actions, ~np.isnan(self.rewards), len(self.names))

    def missing_by_action(self) -> tuple[int, ...]:
        """How many rows of each treatment have no outcome."""
        return tuple(np.bincount(self.actions[self.missing], minlength=len(self.names)).tolist())


def read_decisions(tables: LogTables, columns: Columns, bad: BadRows) -> Decisions:
    """Read treatments, propensities and outcomes, and join them to the features.

    Raises
    ------
    LogError
        For all bad rows, those already in `bad` included.
    """
    actions, outcomes = tables.actions, tables.outcomes
    tables.require(
        [
            *([(actions, columns.treatment)] if columns.treatment else []),
            *([(actions, columns.propensity)] if columns.names_propensity else []),
            *((outcomes, column) for column in columns.outcome),
        ]
    )
    taken = _taken(tables, columns, bad)
    propensities = None
    if columns.propensity != ESTIMATE:
        propensities = (
            read_propensities(actions, columns.propensity, bad)
            if columns.names_propensity
            else equal_propensities(len(actions), len(taken.names))
        )
    rewards, missing, values = read_rewards(outcomes, columns.outcome, columns.utility_range, columns.missing, bad)
    of_actions, of_outcomes = tables.matched(bad)
    return Decisions(
        actions=taken.codes[of_actions],
        names=taken.names,
        propensities=None if propensities is None else propensities[of_actions],
        rewards=rewards[of_outcomes],
        missing=missing[of_outcomes],
        outcomes={name: column[of_outcomes] for name, column in values.items()},
    )


def _taken(tables: LogTables, columns: Columns, bad: BadRows) -> Taken:
    if columns.treatment:
        return taken_in_column(tables.actions, columns.treatment, columns.treatments, bad)
    others = (tables.id, columns.propensity, PROPENSITY)
    if not columns.treatments:
        _refuse_shared(tables, others)
    return taken_one_hot(tables.actions, one_hot_columns(tables.actions, columns.treatments, others), bad)


def _refuse_shared(tables: LogTables, others: Sequence[str]) -> None:
    """LogError for a column of another table among the treatments: it is more likely the patients' ids."""
    for table in (tables.features, tables.outcomes):
        shared = [name for name in tables.actions.frame.columns if name in table.frame.columns and name not in others]
        if shared:
            raise LogError(
                f"{tables.actions.name}: the column {shared[0]!r} is in {table.name}, too: name it as the id, or "
                "declare the treatments"
            )

"""The columns action, reward and propensity of a data frame, read and checked.

Covariates of a data frame as numbers: categories become one column of 0 and 1 for each level.

LoggedData: who got what, with which probability, and what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.logs.cells import refuse_rows, several

ACTION, REWARD, PROPENSITY = COLUMNS = ("action", "reward", "propensity")
FEWEST_ROWS = 2  # for a standard error
# Columns that the simulator's own logs have besides. Outcomes are known after treatment: nothing may be predicted from
# them; patients are only counted.
PATIENT, OUTCOME_PREFIX = "patient", "outcome_"


def read_log_frame(log: pd.DataFrame, actions: Sequence[Any] | None = None) -> LoggedData:
    """The log's actions, rewards and propensities as arrays.

    Parameters
    ----------
    log : DataFrame
        With the columns action, reward and propensity.
    actions : sequence, optional
        All actions in the order of a policy's columns. By default the categories of a categorical column, else the
        values that occur, sorted.

    Raises
    ------
    ValueError
        For missing columns, fewer than two rows, and rows with an unknown action, a reward that is missing or
        infinite, or a propensity outside (0, 1].
    """
    require_frame(log)
    absent = [name for name in COLUMNS if name not in log.columns]
    if absent:
        raise ValueError(f"the log has no column {', '.join(absent)}; it needs {', '.join(COLUMNS)}.")
    if not log.columns.is_unique:
        raise ValueError(f"the log's columns must be distinct, got {list(map(str, log.columns))!r}.")
    if len(log) < FEWEST_ROWS:
        raise ValueError(f"the log must have at least {FEWEST_ROWS} rows, got {len(log)}.")
    known = _declared(log[ACTION], actions)
    codes = pd.Index(known).get_indexer(pd.Index(log[ACTION]))
    names = tuple(map(str, known))
    refuse_rows(codes < 0, log[ACTION].array, f"action must be one of {', '.join(names)}")
    rewards = _numbers(log[REWARD])
    refuse_rows(~np.isfinite(rewards), log[REWARD].array, "reward must be a finite number")
    propensities = _numbers(log[PROPENSITY])
    outside = ~((propensities > 0) & (propensities <= 1))
    refuse_rows(outside, log[PROPENSITY].array, "propensity must be > 0 and <= 1")
    return LoggedData(codes, rewards, propensities, names)


def require_frame(log: pd.DataFrame) -> pd.DataFrame:
    """The log itself; ValueError if it is no data frame."""
    if not isinstance(log, pd.DataFrame):
        raise ValueError(f"log must be a pandas DataFrame, got {type(log).__name__}.")
    return log


def covariate_frame(log: pd.DataFrame, covariates: Sequence[str] | None = None) -> pd.DataFrame:
    """The log's covariates: those that are named, else all that `known_before` leaves of the other columns."""
    if covariates is None:
        return known_before(log.drop(columns=list(COLUMNS)))
    named = several(covariates)
    usable = [name for name in log.columns if name not in COLUMNS]
    if named is None or not set(named) <= set(usable) or len(set(named)) < len(named):
        among = ", ".join(map(str, usable))
        raise ValueError(f"covariates must be distinct columns among {among}, got covariates={covariates!r}.")
    return log[named]


def known_before(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns from which something may be predicted: all but `patient` and those named outcome_...

    `policysim simulate --log` writes outcomes under such names; they follow treatment, and a model that knows them
    biases every estimate that it takes part in.
    """
    return frame[[name for name in frame.columns if name != PATIENT and not str(name).startswith(OUTCOME_PREFIX)]]


def _declared(column: pd.Series, actions: Sequence[Any] | None) -> list[Any]:
    """All actions, in the order of a policy's columns."""
    if actions is not None:
        known = several(actions) or []
        if not known or not _are_distinct(known):
            raise ValueError(
                f"actions must be distinct actions, got actions={actions!r}; 1, 1.0 and True are the same."
            )
        return known
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    try:
        return sorted(column.dropna().unique())
    except TypeError:
        raise ValueError("the log's actions cannot be sorted: declare their order with actions=[...].") from None


def _are_distinct(known: list[Any]) -> bool:
    """Whether all are different, as values and as the names that messages and tables use; none missing."""
    try:
        index = pd.Index(known)
        alike = len(set(known)) < len(known) or not index.is_unique
    except TypeError:  # of lists
        return False
    return not (alike or len(set(map(str, known))) < len(known) or pd.isna(index).any())


def _numbers(column: pd.Series) -> FloatArray:
    """A column as float64, NaN where it is no number; times and complex numbers are none."""
    if column.dtype.kind in "mM":
        return np.full(len(column), np.nan)
    plain = column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column
    found = pd.to_numeric(plain, errors="coerce")
    if found.dtype.kind == "c":
        return np.full(len(column), np.nan)
    return found.to_numpy(dtype=np.float64, na_value=np.nan)


# More distinct words than this are names or identifiers, which no outcome model can use.
MOST_LEVELS = 100


def covariate_matrix(frame: pd.DataFrame) -> FloatArray:
    """Finite numbers for outcome models, (n_rows, n_columns); one column of zeros if the frame has none.

    Numbers stay as they are, bool becomes 0 and 1, and text and categories a column for each level that occurs.

    Raises
    ------
    ValueError
        Names the rows in which a value is missing or infinite, or the column that is neither numbers nor categories,
        or that has more than 100 distinct words.
    """
    blocks = [_block(frame.iloc[:, position], str(name)) for position, name in enumerate(frame.columns)]
    return np.column_stack(blocks) if blocks else np.zeros((len(frame), 1))


def _block(column: pd.Series, name: str) -> FloatArray:
    refuse_rows(column.isna().to_numpy(), np.asarray(column.array), f"covariate {name!r} must not be missing")
    if is_real(column):
        numbers: FloatArray = column.to_numpy(dtype=np.float64)
        refuse_rows(~np.isfinite(numbers), numbers, f"covariate {name!r} must be finite")
        return numbers[:, None]
    if not isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype) and column.dtype != object:
        raise ValueError(
            f"covariate {name!r} is {column.dtype}: make it numbers or leave it out with covariates=[...]."
        )
    codes, levels = pd.factorize(column)
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"covariate {name!r} has {len(levels):,} distinct values that are no numbers, at most {MOST_LEVELS} are "
            "allowed: leave it out with covariates=[...]."
        )
    indicators: FloatArray = (codes[:, None] == np.arange(len(levels))).astype(np.float64)
    return indicators


def is_real(column: pd.Series) -> bool:
    """Whether a column holds numbers, or bool as 0 and 1."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


@dataclass(frozen=True, eq=False)
class LoggedData:
    """A log as arrays, already checked (`log_frame.read_log_frame` does).

    Attributes
    ----------
    actions : array, (n_rows,)
        The position, among `names`, of the action that was taken.
    rewards : array, (n_rows,)
        What came of it, in the reward's own unit; more is better.
    propensities : array, (n_rows,)
        The probability, > 0 and <= 1, with which the logging policy took that action for that patient.
    names : tuple of str
        The k actions, in the order of the columns of every policy.
    """

    actions: IntArray
    rewards: FloatArray
    propensities: FloatArray
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.actions)

    @property
    def n_actions(self) -> int:
        """Number of actions, k."""
        return len(self.names)

    def of_taken(self, table: FloatArray) -> FloatArray:
        """The entry of each row's own action: (n_rows, k) -> (n_rows,)."""
        taken: FloatArray = table[np.arange(self.n_rows), self.actions]
        return taken

"""The arguments of evaluate_log, checked and made into arrays.

A data frame with the columns action, reward and propensity becomes `LoggedData`: who got what, with which probability,
and what came of it. Its covariates become numbers: a category is one column of 0 and 1 for each level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from envs.toml_reader import FINITE
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import MISSING, Levels, level_codes, level_key
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import ONE_VALUE, DataTable, missing, numbers
from policysim.files.probability_table import distributions
from policysim.logs.clusters import folds_of_clusters, whole_clusters
from policysim.logs.log_source import NUMBER_WANTED

ACTION, REWARD, PROPENSITY = COLUMNS = ("action", "reward", "propensity")
FEWEST_ROWS = 2  # for a standard error
EXCLUDED = '; read_log(missing="exclude") makes up for missing ones'
# Columns that the simulator's own logs have besides. Outcomes are known after treatment: nothing may be predicted from
# them; patients are only counted.
PATIENT, OUTCOME_PREFIX = "patient", "outcome_"


def read_log_frame(log: pd.DataFrame, actions: Sequence[Any] | None = None) -> LoggedData:
    """The log's actions, rewards and propensities as arrays.

    Parameters
    ----------
    log : DataFrame
        With the columns action, reward and propensity. A reward may be NaN where `read_log` has counted those that are
        missing (`.attrs["missing"]`).
    actions : sequence, optional
        All actions in the order of a policy's columns. By default the categories of a categorical column, else the
        values that occur, sorted.

    Raises
    ------
    DataError
        For missing columns and fewer than two rows; a line each for rows with an unknown action, a reward that is
        missing or infinite, or a propensity outside (0, 1].
    ValueError
        For `actions` that cannot be any.
    """
    require_frame(log)
    absent = [name for name in COLUMNS if name not in log.columns]
    if absent:
        raise DataError(f"the log has no column {', '.join(absent)}; it needs {', '.join(COLUMNS)}.")
    if not log.columns.is_unique:
        raise DataError(f"the log's columns must be distinct, got {list(map(str, log.columns))!r}.")
    if len(log) < FEWEST_ROWS:
        raise DataError(f"the log must have at least {FEWEST_ROWS} rows, got {len(log)}.")
    values = _declared(log[ACTION], actions)
    codes, names = level_codes(Levels(ACTION, values), log[ACTION]), tuple(map(str, values))
    rewards, propensities = numbers(log[REWARD]), numbers(log[PROPENSITY])
    outside = ~((propensities > 0) & (propensities <= 1))
    bad, table = BadRows(), DataTable("log", log)
    bad.add_values(table, codes < 0, ACTION, log[ACTION].array, f"must be one of {', '.join(names)}")
    gaps = missing(log[REWARD], np.isnan(rewards))
    bad.add_values(table, ~(np.abs(rewards) <= FINITE) & ~gaps, REWARD, log[REWARD].array, NUMBER_WANTED)
    counted = log.attrs.get("missing")
    if gaps.sum() > (sum(counted.values()) if isinstance(counted, dict) else 0):
        bad.add_values(table, gaps, REWARD, log[REWARD].array, NUMBER_WANTED, hint=EXCLUDED)
    bad.add_values(table, outside, PROPENSITY, log[PROPENSITY].array, "must be a probability > 0 and <= 1")
    bad.raise_if_any()
    return LoggedData(codes, rewards, propensities, names)


def require_frame(log: pd.DataFrame) -> pd.DataFrame:
    """The log itself; ValueError if it is no data frame, or has two columns of one of the names that it must have."""
    if not isinstance(log, pd.DataFrame):
        raise ValueError(f"log must be a pandas DataFrame, got {type(log).__name__}.")
    names = [str(name) for name in log.columns]
    twice = [name for name in COLUMNS if names.count(name) > 1]
    several_rows = log.columns.nlevels > 1
    if several_rows or twice or pd.isna(log.columns).any():
        wrong = "names of columns in several rows" if several_rows else "a column without a name"
        wrong = f"two columns {twice[0]}" if twice else wrong
        raise ValueError(f"log must have a column for each name, got {wrong}.")
    for name in COLUMNS:
        if name in names:
            _ = DataTable("log", log)[name]  # DataError for one of lists
    return log


def covariate_frame(log: pd.DataFrame, covariates: Sequence[str] | None = None) -> pd.DataFrame:
    """The log's covariates: those that are named, else all that `known_before` leaves of the other columns."""
    if covariates is None:
        return known_before(log.drop(columns=list(COLUMNS)))
    named = as_list(covariates)
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


def row_probabilities(values: ArrayLike, n_rows: int, names: Sequence[str]) -> FloatArray:
    """The evaluated policy, (n_rows, k), a distribution over the k named actions in each row; ValueError if not.

    Sums that were rounded by at most 1e-6, as those of float32 are, are made 1.
    """
    try:
        rows: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("probabilities must be an array of numbers.") from None
    if rows.shape != (n_rows, len(names)):
        raise ValueError(
            f"probabilities must be (n_rows, k) = ({n_rows}, {len(names)}), k the actions {', '.join(names)}, got "
            f"shape {rows.shape}; actions that the log never takes must be declared with actions=[...]."
        )
    return distributions(DataTable("probabilities", pd.DataFrame(rows, columns=list(names))), rows, names)[0]


def one_of(value: object, allowed: Sequence[str], name: str) -> None:
    """ValueError unless `value` is one of the words that are allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}.")


def as_list(values: object) -> list[Any] | None:
    """What was given as several, as a list; None if it was one value or a string."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else None


def check_seed(seed: object) -> None:
    """ValueError unless `seed` is a whole number >= 0."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise ValueError(f"seed must be a whole number >= 0, got seed={seed!r}.")


def _declared(column: pd.Series, actions: Sequence[Any] | None) -> list[Any]:
    """All actions, in the order of a policy's columns."""
    if actions is not None:
        values = as_list(actions) or []
        keys = set(map(level_key, values))
        if not values or len(keys) < len(values) or MISSING in keys:
            raise ValueError(
                f"actions must be distinct actions, got actions={actions!r}; 1, 1.0 and True are the same."
            )
        return values
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    try:
        return sorted(column.dropna().unique())
    except TypeError:
        raise DataError("the log's actions cannot be sorted: declare their order with actions=[...].") from None


# More distinct words than this are names or identifiers, which no outcome model can use.
MOST_LEVELS = 100


def covariate_matrix(frame: pd.DataFrame) -> FloatArray:
    """Finite numbers for outcome models, (n_rows, n_columns); one column of zeros if the frame has none.

    Numbers stay as they are, bool becomes 0 and 1, and text and categories a column for each level that occurs.

    Raises
    ------
    DataError
        For rows in which a value is missing or infinite; or it names the column that is neither numbers nor categories,
        or that has more than 100 distinct words.
    """
    bad, table = BadRows(), DataTable("log", frame)
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        absent = column.isna().to_numpy()
        bad.add(table, absent, str(name), lambda _: "is missing: a covariate must have a value in each row")
        if is_real(column):
            infinite = np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
            bad.add_values(table, infinite, str(name), column.array, "must be finite")
    bad.raise_if_any()
    blocks: list[FloatArray] = []
    for position, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, position]
        if is_real(column):
            blocks.append(column.to_numpy(dtype=np.float64)[:, None])
            continue
        if not has_words(column):
            raise DataError(
                f"covariate {name!r} is {column.dtype}: make it numbers or leave it out with covariates=[...]."
            )
        try:
            codes, levels = pd.factorize(column)
        except TypeError:
            raise DataError(f"covariate {name!r} {ONE_VALUE}; or leave it out with covariates=[...].") from None
        if len(levels) > MOST_LEVELS:
            raise DataError(
                f"covariate {name!r} has {len(levels):,} distinct values that are no numbers, at most {MOST_LEVELS} "
                "are allowed: leave it out with covariates=[...]."
            )
        blocks.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
    return np.column_stack(blocks) if blocks else np.zeros((len(frame), 1))


def is_real(column: pd.Series) -> bool:
    """Whether a column holds numbers, or bool as 0 and 1."""
    types = pd.api.types
    truth = types.is_bool_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype)
    return truth or (types.is_numeric_dtype(column) and not types.is_complex_dtype(column))


def has_words(column: pd.Series) -> bool:
    """Whether a column holds text or categories; object columns may hold anything."""
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype):  # of which dictionaries have a type for their values
        return pd.api.types.is_string_dtype(column) or hasattr(dtype.pyarrow_dtype, "value_type")
    return isinstance(dtype, pd.CategoricalDtype | pd.StringDtype) or pd.api.types.is_object_dtype(dtype)


def patients_by_code(codes: IntArray, counts: IntArray | None, n_codes: int) -> IntArray:
    """How many patients have each code, (n_codes,); `counts` as those of `LoggedData`."""
    if counts is None:
        return np.bincount(codes, minlength=n_codes)
    patients: IntArray = np.zeros(n_codes, dtype=np.int64)
    np.add.at(patients, codes, counts)
    return patients


def summed(values: FloatArray, counts: IntArray | None) -> FloatArray:
    """The sum over patients, (n_rows, ...) -> (...)."""
    total: FloatArray = values.sum(axis=0) if counts is None else counts @ values
    return total


def averaged(values: FloatArray | BoolArray, counts: IntArray | None) -> FloatArray:
    """The mean over patients, (n_rows, ...) -> (...)."""
    mean: FloatArray = values.mean(axis=0) if counts is None else counts @ values / counts.sum()
    return mean


def rows_of(values: Any, rows: IntArray | BoolArray) -> Any:
    """Some rows of an array, of a data frame, or of what has them in a method `of`; None where there is nothing."""
    if isinstance(values, pd.DataFrame):
        return values.iloc[rows].reset_index(drop=True)
    if values is None or isinstance(values, np.ndarray):
        return None if values is None else values[rows]
    return values.of(rows)


@dataclass(frozen=True, eq=False)
class Observed:
    """What is known of each row's outcome where it may be missing, or follow-up may end before it.

    Attributes
    ----------
    rewards : array, (n_rows,)
        The outcome where it is known; any number where it is not.
    weights : array, (n_rows,)
        The inverse probability that it is known; 0 where it is not.
    """

    rewards: FloatArray
    weights: FloatArray

    def of(self, rows: IntArray | BoolArray) -> Observed:
        """The same of some rows."""
        return Observed(self.rewards[rows], self.weights[rows])


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
    observed : Observed or None
        Where outcomes may be missing, or follow-up may end before them: `rewards` are then numbers to be averaged
        (`with_missing`, `pseudo_outcomes`), which need not be outcomes that are possible, and outcome models are fitted
        to what is known.
    counts : array of int, (n_rows,), or None
        How many patients each row stands for, >= 0, where equal ones were counted; None: one each.
    costs : array, (k,), or None
        What each action costs beside the reward, in the same unit: the value of an action is its reward less its cost,
        which is known exactly. None where none costs anything.
    clusters : array of int, (n_rows,), or None
        The number of each row's cluster, whose patients resemble each other; None: patients are independent. A log that
        is counted has none.
    """

    actions: IntArray
    rewards: FloatArray
    propensities: FloatArray
    names: tuple[str, ...]
    observed: Observed | None = None
    counts: IntArray | None = None
    costs: FloatArray | None = None
    clusters: IntArray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.actions)

    @property
    def n_patients(self) -> int:
        """Number of patients."""
        return self.n_rows if self.counts is None else int(self.counts.sum())

    @property
    def sizes(self) -> FloatArray:
        """How many patients each row stands for, (n_rows,)."""
        return np.ones(self.n_rows) if self.counts is None else self.counts.astype(np.float64)

    @property
    def n_actions(self) -> int:
        """Number of actions, k."""
        return len(self.names)

    @property
    def n_units(self) -> int:
        """Number of clusters, or of patients where these are independent."""
        return self.n_patients if self.clusters is None else len(np.unique(self.clusters))

    @cached_property
    def whole_clusters(self) -> IntArray | None:
        """How many clusters each action has, (k,), where whole clusters were allocated; else None."""
        return None if self.clusters is None else whole_clusters(self.clusters, self.actions, self.n_actions)

    def of(self, rows: IntArray | BoolArray) -> LoggedData:
        """The same of some rows."""
        of_rows = ("actions", "rewards", "propensities", "observed", "counts", "clusters")
        return replace(self, **{name: rows_of(getattr(self, name), rows) for name in of_rows})

    def dealt(self, n_folds: int, rng: np.random.Generator) -> tuple[LoggedData, IntArray, IntArray]:
        """The rows in folds at random: the data, which row each was, and its fold.

        Folds differ by at most one row, or by one cluster: whole clusters are dealt. Of counted rows each patient falls
        into a fold by chance, so that folds differ by about the root of their size, and a row is divided among them:
        one for each fold that some of it falls into.
        """
        if self.clusters is not None:
            return self, np.arange(self.n_rows), folds_of_clusters(self.clusters, self.actions, n_folds, rng)
        if self.counts is None:
            return self, np.arange(self.n_rows), rng.permutation(self.n_rows) % n_folds
        counts = rng.multinomial(self.counts, np.full(n_folds, 1 / n_folds))
        rows, folds = np.nonzero(counts)
        return replace(self.of(rows), counts=counts[rows, folds]), rows, folds

    @property
    def inverse_propensities(self) -> FloatArray:
        """Of the patients of each row together, (n_rows,)."""
        return self.sizes / self.propensities

    def by_action(self, rows: BoolArray | None = None) -> IntArray:
        """How many patients got each action, (k,), of all or of some rows."""
        data = self if rows is None else self.of(rows)
        return patients_by_code(data.actions, data.counts, self.n_actions)

    @property
    def known(self) -> Observed:
        """What outcome models are fitted to: the rewards, or what is known of them."""
        return self.observed or Observed(self.rewards, np.ones(self.n_rows))

    def less_costs(self, table: FloatArray) -> FloatArray:
        """What each action is worth, rewards less costs: (m, k) -> (m, k); the table itself where nothing costs."""
        return table if self.costs is None else table - self.costs

    @property
    def standardised(self) -> LoggedData:
        """The same with what is known weighted by the arm's share over the propensity: each arm stands for all."""
        shares = self.by_action() / self.n_patients
        known = self.known
        return replace(self, observed=Observed(known.rewards, known.weights * shares[self.actions] / self.propensities))

    @property
    def is_binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return bool(np.isin(self.known.rewards, (0.0, 1.0)).all())

    def of_taken(self, table: FloatArray) -> FloatArray:
        """The entry of each row's own action: (n_rows, k) -> (n_rows,)."""
        taken: FloatArray = table[np.arange(self.n_rows), self.actions]
        return taken

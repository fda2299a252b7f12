"""read_log: from files, data frames or arrays to a data frame that evaluate_log takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from envs.toml_reader import FINITE
from policies.levels import level_key
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import read_table, typed
from policysim.logs.load_log import LoggedDecisions, read_decisions
from policysim.logs.log_frame import (
    ACTION,
    COLUMNS,
    PROPENSITY,
    REWARD,
    as_list,
    covariate_matrix,
    known_before,
    one_of,
)
from policysim.logs.log_source import (
    EQUAL,
    ESTIMATE,
    JOINT,
    MISSING_CHOICES,
    SHARES,
    TABLE,
    THREE_TABLES,
    WORST,
    LogColumns,
    is_column,
)
from policysim.logs.log_tables import LogTables
from policysim.logs.treatments import arm_shares, estimate_propensities

Data: TypeAlias = str | Path | pd.DataFrame | NDArray[Any]


class NoPropensityError(DataError):
    """A log without a column `propensity`, of which nothing else was said."""


def read_log(
    table: Data | None = None,
    *,
    features: Data | None = None,
    actions: Data | None = None,
    outcomes: Data | None = None,
    treatment: str | int | Sequence[str | int] = ACTION,
    outcome: str | int | Mapping[Any, float] | None = None,
    propensity: str | int | None = None,
    treatments: Mapping[str, str] | None = None,
    id: str | int | None = None,  # noqa: A002 - as the study file's key
    header: bool = True,
    missing: str = "refuse",
    range: tuple[float, float] | None = None,  # noqa: A002 - as the study file's key
) -> pd.DataFrame:
    """Read a log of treatments, check it, and make it ready for `evaluate_log`.

    Parameters
    ----------
    table : path, DataFrame or array, optional
        One table with a row for each decision; a path ends in .csv or .parquet. Columns of an array, and of a CSV file
        without a header, are named by their places, "0" first; 0 means the same as "0" wherever a column is named.
    features, actions, outcomes : path, DataFrame or array, optional
        Three tables in place of one. They are joined by `id`, else row by row. `actions` holds the column `treatment`,
        or a column of 0 and 1 for each treatment; columns of the last two that are not named here are left out.
    treatment : str, or sequence of str
        The column that holds the treatment. Several make it together, as in a factorial trial: their values, with ", "
        between, are the treatment's. Columns of 0 and 1, one for each treatment, are such columns.
    outcome : str or mapping of str to float, optional
        The outcome, or outcomes and their weights: the reward is the weighted sum. By default the column `reward`.
    propensity : str, optional
        "equal" (each of k treatments has 1/k), "estimate" (a cross-fitted multinomial logistic regression on the
        covariates, which makes confounding possible), "arm shares" (of a randomisation: the shares of the treatments,
        see `treatments.arm_shares`), or a column. By default the column `propensity`.
    treatments : mapping of str to str, optional
        Value (or column) and name of each treatment, in the order of a policy's columns. By default those that occur,
        sorted, by their values.
    id : str, optional
        The column of patients' ids, which must be unique; it becomes the index.
    header : bool
        Whether the first line of a CSV file names its columns.
    missing : str
        What is done with rows without an outcome: "refuse" (they are bad rows), "exclude" (their number for each
        treatment is in `.attrs["missing"]`), or "worst" (they get the lowest reward of `range`). "exclude" is right if
        outcomes are missing by chance within each treatment: propensities become those of the rows that are left,
        multiplied by the share of their treatment's rows that have an outcome over that of all rows. Rows without a
        treatment are left out with "exclude", and bad rows otherwise.
    range : tuple of float, optional
        The lowest and the highest possible reward; rows outside are bad. By default any finite reward will do.

    Returns
    -------
    DataFrame
        `action` (categorical: all treatments), `reward`, `propensity`, then the covariates, which are all other columns
        of `table` or `features`, as they were (numbers in CSV are numbers). A column `action`, `reward` or
        `propensity` in whose place another was asked for is left out. Covariates are not checked here.

    Raises
    ------
    DataError
        A ValueError. One line for each of the first twenty bad rows (of files counted from 1, with the line of a CSV
        file; of data frames from 0), and how many more there are; or one line about a table as a whole.
    ValueError
        For arguments that do not go together.

    Examples
    --------
    >>> import pandas as pd
    >>> trial = pd.DataFrame({"arm": [1, 0, 1], "success": [1, 0, 1], "age": [30, 41, 52]})
    >>> log = read_log(trial, treatment="arm", outcome="success", propensity="equal")
    >>> log.columns.tolist(), log["action"].cat.categories.tolist(), log["propensity"].tolist()
    (['action', 'reward', 'propensity', 'age'], ['0', '1'], [0.5, 0.5, 0.5])
    """
    one_of(missing, MISSING_CHOICES, "missing")
    limits = _checked_range(range, missing)
    three = dict(zip(THREE_TABLES, (features, actions, outcomes), strict=True))
    tables = _tables(table, three, "" if id is None else str(id), header=header)
    together = as_list(treatment)
    tables = tables.with_joined(list(map(str, together or ())))
    declared = tuple((str(value), str(name)) for value, name in (treatments or {}).items())
    if len({level_key(value) for value, _ in declared}) < len(declared) or len({n for _, n in declared}) < len(
        declared
    ):
        raise DataError(f"treatments must have distinct values and names, got treatments={treatments!r}.")
    chance = None if propensity is None else str(propensity)
    if chance is None and PROPENSITY not in tables.actions.columns:
        raise NoPropensityError(
            f"{tables.actions.name}: there is no column {PROPENSITY}: choose propensity={EQUAL!r} (each treatment was "
            f"as probable), {SHARES!r} (of a randomisation), {ESTIMATE!r}, or the column that holds it"
        )
    columns = LogColumns(
        treatment=_treatment_column(tables, JOINT.join(map(str, together or [treatment])), {chance, PROPENSITY}),
        treatments=declared,
        propensity=chance or PROPENSITY,
        outcome=_outcome(outcome),
        utility_range=limits,
        missing=missing,
        features={},
    )
    _refuse_two_uses(tables, columns)
    decisions = read_decisions(tables, columns, BadRows())
    covariates = _covariates(tables, columns, [str(column) for column in together or ()])
    return _finished(decisions, covariates, by_shares=chance == SHARES)


def _checked_range(ends: tuple[float, float] | None, missing: str) -> tuple[float, float] | None:
    if ends is None:
        if missing == WORST:
            raise ValueError("missing='worst' needs the lowest possible reward: range=(low, high).")
        return None
    low, high = ends
    if not -FINITE <= low < high <= FINITE:
        most = f"within ±{FINITE:g}"
        raise ValueError(f"range must be (low, high), finite and low < high, {most}, got range={ends!r}.")
    return float(low), float(high)


def _tables(table: Data | None, three: Mapping[str, Data | None], ids: str, *, header: bool) -> LogTables:
    given = {role: data for role, data in three.items() if data is not None}
    if (table is None) != bool(given) or len(given) not in (0, len(three)):
        raise ValueError("read_log needs one table, or all three of features, actions and outcomes.")
    if table is not None:
        given = {TABLE: table}
    return LogTables({role: read_table(data, role, header=header) for role, data in given.items()}, ids)


def _treatment_column(tables: LogTables, treatment: str, propensities: set[str | None]) -> str:
    """The column of treatments; "" where three tables have one for each."""
    names = [name for name in tables.actions.columns if name not in {tables.id, *propensities}]
    if not tables.are_three or treatment in names:
        return treatment
    return str(names[0]) if len(names) == 1 else ""


def _outcome(outcome: str | int | Mapping[Any, float] | None) -> dict[str, float]:
    if not isinstance(outcome, Mapping):
        return {REWARD if outcome is None else str(outcome): 1.0}
    usable = all(isinstance(w, Real) and not isinstance(w, bool) and abs(w) <= FINITE for w in outcome.values())
    if not usable or not any(outcome.values()):
        most = f"within ±{FINITE:g}"
        raise ValueError(f"outcome must be columns and finite weights {most}, not all 0, got outcome={outcome!r}.")
    return {str(column): float(weight) for column, weight in outcome.items()}


def _refuse_two_uses(tables: LogTables, columns: LogColumns) -> None:
    """ValueError if a column of a table is asked for as two things."""
    actions = {"id": tables.id, "treatment": columns.treatment}
    if is_column(columns.propensity):
        actions["propensity"] = columns.propensity
    outcomes = {"id": tables.id} if tables.are_three else dict(actions)
    for uses, use, column in (
        *((actions, use, column) for use, column in actions.items()),
        *((outcomes, "outcome", column) for column in columns.outcome),
    ):
        other = next((name for name, taken in uses.items() if taken == column and name != use), None)
        if column and other:
            raise ValueError(f"the column {column!r} cannot be both the {other} and the {use}.")


def _covariates(tables: LogTables, columns: LogColumns, together: Sequence[str]) -> pd.DataFrame:
    """All columns of the features that are nothing else; the ids are the index, and `together` make the treatment.

    A column with the name of a log's own is none: another was asked for in its place.
    """
    table = tables.features
    chance = [columns.propensity] if is_column(columns.propensity) else []
    used = {columns.treatment, *together, *chance, *columns.outcome}
    clash = [name for name in COLUMNS if name in table.columns and name in used]
    if tables.are_three and clash:
        raise DataError(f"{table.name}: the covariate {clash[0]} has the name of a log's own column: rename it")
    without = {tables.id, *COLUMNS} | (set() if tables.are_three else used)
    names = [name for name in table.columns if name not in without]
    frame = table.frame_of(names)
    if table.is_text:
        frame = pd.DataFrame({name: typed(frame[name]) for name in names}, index=frame.index)
    return frame.set_index(table[tables.id]) if tables.id else frame


def _finished(decisions: LoggedDecisions, covariates: pd.DataFrame, *, by_shares: bool) -> pd.DataFrame:
    kept = decisions.kept()
    covariates, actions = covariates.iloc[kept], decisions.actions[kept]
    propensities = decisions.known_propensities()
    if by_shares:
        propensities = arm_shares(actions, len(decisions.names))
    elif propensities is None:
        matrix = covariate_matrix(known_before(covariates))
        propensities = estimate_propensities(matrix, np.arange(len(kept)), actions, decisions.names)
    taken = pd.Categorical.from_codes(actions, categories=pd.Index(decisions.names))
    own = {ACTION: taken, REWARD: decisions.rewards[kept], PROPENSITY: propensities}
    log = pd.concat([pd.DataFrame(own, index=covariates.index), covariates], axis=1)
    log.attrs["missing"] = dict(zip(decisions.names, decisions.missing_by_action(), strict=True))
    return log

"""read_log: from files, data frames or arrays to a data frame that evaluate_log takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from envs.toml_reader import FINITE
from policies.levels import LevelKey, level_key
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.csv_format import CsvFormat
from policysim.files.data_table import read_table, typed
from policysim.logs.adjusters import Covariates
from policysim.logs.load_log import LoggedDecisions, read_decisions
from policysim.logs.log_frame import (
    ACTION,
    COLUMNS,
    PROPENSITY,
    REWARD,
    as_list,
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
    coded_outcome,
    declared_values,
    is_column,
    unknown_of,
)
from policysim.logs.log_tables import LogTables
from policysim.logs.treatments import with_propensities

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
    outcome: str | int | Mapping[Any, float | Mapping[Any, float]] | None = None,
    propensity: str | int | None = None,
    treatments: Mapping[str, str] | None = None,
    id: str | int | None = None,  # noqa: A002 - as the study file's key
    header: bool = True,
    separator: str = "",
    decimal: str = "",
    encoding: str = "",
    missing: str = "refuse",
    range: tuple[float, float] | None = None,  # noqa: A002 - as the study file's key
    unknown: Sequence[Any] | Mapping[Any, Sequence[Any]] = (),
) -> pd.DataFrame:
    """Read a log of treatments, check it, and make it ready for `evaluate_log`.

    Parameters
    ----------
    table : path, DataFrame or array, optional
        One table with a row for each decision; a path ends in .csv, .tsv, .txt, .dat (.gz and .zst may follow) or
        .parquet. Columns of an array, and of a text file without a header, are named by their places, "0" first; 0
        means the same as "0" wherever a column is named.
    features, actions, outcomes : path, DataFrame or array, optional
        Three tables in place of one. They are joined by `id`, else row by row. `actions` holds the column `treatment`,
        or a column of 0 and 1 for each treatment; columns of the last two that are not named here are left out.
    treatment : str, or sequence of str
        The column that holds the treatment. Several make it together, as in a factorial trial: their values, with ", "
        between, are the treatment's. Columns of 0 and 1, one for each treatment, are such columns.
    outcome : str or mapping, optional
        The outcome, or outcomes and their weights: the reward is the weighted sum. In place of a weight, the utility of
        each word or code of a column: {"death": {"Yes": -1, "No": 0}}. By default the column `reward`.
    propensity : str, optional
        "equal" (each of k treatments has 1/k), "estimate" (a cross-fitted multinomial logistic regression on the
        covariates, which makes confounding possible), "arm shares" (of a randomisation: the shares of the treatments,
        see `treatments.arm_shares`), or a column. By default the column `propensity`.
    treatments : mapping of str to str, optional
        Value (or column) and name of each treatment, in the order of a policy's columns; values of the same name are
        one. By default those that occur, sorted, by their values.
    id : str, optional
        The column of patients' ids, which must be unique; it becomes the index.
    header : bool
        Whether the first line of a text file names its columns.
    separator, decimal, encoding : str
        How a text file is written, where its beginning leaves that open (`policysim.files.csv_format.CsvFormat`).
    missing : str
        What is done with rows without an outcome: "refuse" (they are bad rows), "exclude" (their `reward` is NaN, and
        their number for each treatment is in `.attrs["missing"]`), or "worst" (they get the lowest reward of `range`).
        With "exclude" `evaluate_log` makes up for them by a model of which outcomes are observed, as for the log of a
        study. Rows without a treatment are left out with "exclude", and bad rows otherwise.
    range : tuple of float, optional
        The lowest and the highest possible reward; rows outside are bad. By default any finite reward will do.
    unknown : sequence, or mapping of str to sequence
        Values that mean unknown, such as [9, 999, "?"], in the treatment, the outcomes and the covariates; or those of
        single columns: {"cured": [9]}. They are missing, and `.attrs["unknown"]` counts them for each column. A
        treatment or a code that is declared is not among them.

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
    tables = _tables(table, three, "" if id is None else str(id), CsvFormat(header, separator, decimal, encoding))
    joined = tuple(map(str, as_list(treatment) or ()))
    probability = _propensity(tables, propensity)
    weights, codes = _outcome(outcome)
    columns = LogColumns(
        treatment=JOINT.join(joined) or _treatment_column(tables, str(treatment), {probability, PROPENSITY}),
        treatments=_declared(treatments or {}),
        propensity=probability,
        outcome=weights,
        utility_range=limits,
        missing=missing,
        features={},
        joined=joined,
        codes=codes,
    )
    _refuse_two_uses(tables, columns)
    covariates = _covariates(tables, columns)
    tables, unknown_rows = tables.without_unknown(_unknown(unknown, columns, covariates))
    decisions = read_decisions(tables.with_joined(joined), columns, BadRows())
    log = _finished(decisions, _covariate_frame(tables, covariates), probability)
    log.attrs["unknown"] = {column: int(np.count_nonzero(rows)) for column, rows in unknown_rows.items()}
    return log


def _checked_range(ends: Sequence[Any] | None, missing: str) -> tuple[float, float] | None:
    if ends is None:
        if missing == WORST:
            raise ValueError("missing='worst' needs the lowest possible reward: range=(low, high).")
        return None
    is_pair = len(ends) == 2 and all(isinstance(end, Real) for end in ends)
    low, high = ends if is_pair else (0.0, 0.0)
    if not -FINITE <= low < high <= FINITE:
        most = f"within ±{FINITE:g}"
        raise ValueError(f"range must be (low, high), finite and low < high, {most}, got range={ends!r}.")
    return float(low), float(high)


def _tables(table: Data | None, three: Mapping[str, Data | None], ids: str, form: CsvFormat) -> LogTables:
    given = {role: data for role, data in three.items() if data is not None}
    if (table is None) != bool(given) or len(given) not in (0, len(three)):
        raise ValueError("read_log needs one table, or all three of features, actions and outcomes.")
    if table is not None:
        given = {TABLE: table}
    return LogTables({role: read_table(data, role, stated=form) for role, data in given.items()}, ids)


def _treatment_column(tables: LogTables, treatment: str, propensities: set[str]) -> str:
    """The column of treatments; "" where three tables have one for each."""
    names = [name for name in tables.actions.columns if name not in {tables.id, *propensities}]
    if not tables.are_three or treatment in names:
        return treatment
    return str(names[0]) if len(names) == 1 else ""


def _declared(treatments: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if len({level_key(str(value)) for value in treatments}) < len(treatments):
        raise DataError(f"treatments must have distinct values, got treatments={treatments!r}.")
    return tuple((str(value), str(name)) for value, name in treatments.items())


def _propensity(tables: LogTables, propensity: str | int | None) -> str:
    if propensity is None and PROPENSITY not in tables.actions.columns:
        raise NoPropensityError(
            f"{tables.actions.name}: there is no column {PROPENSITY}: choose propensity={EQUAL!r} (each treatment was "
            f"as probable), {SHARES!r} (of a randomisation), {ESTIMATE!r}, or the column that holds it"
        )
    return PROPENSITY if propensity is None else str(propensity)


def _outcome(
    outcome: str | int | Mapping[Any, float | Mapping[Any, float]] | None,
) -> tuple[dict[str, float], dict[str, Mapping[str, float]]]:
    """Columns and weights, and the numbers of those that are words or codes; ValueError for weights that are none."""
    if not isinstance(outcome, Mapping):
        return {REWARD if outcome is None else str(outcome): 1.0}, {}
    most = f"within ±{FINITE:g}"
    wrong = ValueError(f"outcome must be columns and finite weights {most}, not all 0, got outcome={outcome!r}.")
    weights: dict[str, float] = {}
    codes: dict[str, Mapping[str, float]] = {}
    for column, weight in outcome.items():
        numbers = list(weight.values()) if isinstance(weight, Mapping) else [weight]
        if not all(isinstance(w, Real) and not isinstance(w, bool) and abs(w) <= FINITE for w in numbers):
            raise wrong
        if isinstance(weight, Mapping):
            utilities = {str(value): float(number) for value, number in weight.items()}
            try:
                weights[str(column)], codes[str(column)] = coded_outcome(utilities)
            except ValueError as error:
                raise ValueError(f"outcome[{column!r}]: {error}.") from None
        else:
            weights[str(column)] = float(weight)
    if not any(weights.values()):
        raise wrong
    return weights, codes


def _unknown(
    unknown: Sequence[Any] | Mapping[Any, Sequence[Any]], columns: LogColumns, covariates: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The values of each column that mean unknown; ValueError for a column that is nothing, or no values."""
    declared = {name: set[LevelKey]() for name in covariates} | declared_values(columns)
    by_column: dict[str, list[Any]] = {}
    for column, values in unknown.items() if isinstance(unknown, Mapping) else dict.fromkeys(declared, unknown).items():
        named = as_list(values)
        if named is None or str(column) not in declared:
            raise ValueError(
                f"unknown must be a list of values, or a list for each of the columns {', '.join(declared)}, got "
                f"unknown={unknown!r}."
            )
        by_column[str(column)] = named
    return unknown_of(by_column, declared)


def _refuse_two_uses(tables: LogTables, columns: LogColumns) -> None:
    """ValueError if a column of a table is asked for as two things."""
    propensity = columns.propensity if is_column(columns.propensity) else ""
    uses = [("propensity", propensity), ("treatment", columns.treatment), ("id", tables.id)]
    uses += [("outcome", column) for column in columns.outcome]
    for (use, column), (other_use, other) in combinations(uses, 2):
        in_one_table = use == "id" or other_use != "outcome" or not tables.are_three
        if column and column == other and in_one_table:
            raise ValueError(f"the column {column!r} cannot be both the {use} and the {other_use}.")


def _covariates(tables: LogTables, columns: LogColumns) -> list[str]:
    """All columns of the features that are nothing else.

    A column with the name of a log's own is none: another was asked for in its place.
    """
    table = tables.features
    used = {columns.treatment, *columns.columns}
    clash = [name for name in COLUMNS if name in table.columns and name in used]
    if tables.are_three and clash:
        raise DataError(f"{table.name}: the covariate {clash[0]} has the name of a log's own column: rename it")
    without = {tables.id, *COLUMNS} | (set() if tables.are_three else used)
    return [name for name in table.columns if name not in without]


def _covariate_frame(tables: LogTables, names: Sequence[str]) -> pd.DataFrame:
    """The covariates; the ids are the index."""
    table = tables.features
    frame = table.frame_of(names)
    if table.is_text:
        frame = pd.DataFrame({name: typed(frame[name]) for name in names}, index=frame.index)
    return frame.set_index(table[tables.id]) if tables.id else frame


def _finished(decisions: LoggedDecisions, covariates: pd.DataFrame, propensity: str) -> pd.DataFrame:
    used = decisions.treated().data
    covariates = covariates.iloc[np.flatnonzero(decisions.data.actions >= 0)]
    asked = propensity == ESTIMATE
    patients = Covariates.of_frame(known_before(covariates)) if asked else Covariates.none(used.n_rows)
    used = with_propensities(propensity, used, patients)
    taken = pd.Categorical.from_codes(used.actions, categories=pd.Index(used.names))
    own = {ACTION: taken, REWARD: used.rewards, PROPENSITY: used.propensities}
    log = pd.concat([pd.DataFrame(own, index=covariates.index), covariates], axis=1)
    log.attrs["missing"] = dict(zip(used.names, decisions.missing_by_action(), strict=True))
    return log

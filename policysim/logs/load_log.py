"""load_log: from what a study says about its log to arrays.

What was decided for each patient of a log, how probably, and what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.arrays import BoolArray, FloatArray, IntArray
from policies.levels import codes_of_keys, level_wanted, missing_hint
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded, missing, numbers, read_table
from policysim.logs.adjusters import Covariates, as_read, read_adjusters, undeclared
from policysim.logs.censoring import CENSORING, check_horizons, free_at, read_times
from policysim.logs.clusters import DecidingColumn, deciding_columns, read_clusters, repeated_ids, require_clusters
from policysim.logs.incomplete import Incomplete
from policysim.logs.log_frame import FEWEST_ROWS, PROPENSITY, LoggedData, rows_of
from policysim.logs.log_source import ESTIMATE, EXCLUDE, STACKED, LogColumns, LogSource, is_column
from policysim.logs.log_tables import LogTables
from policysim.logs.outcomes import check_outcomes, place_in_study, read_rewards, refuse_constant, refuse_totals
from policysim.logs.toml_text import toml_text
from policysim.logs.treatments import (
    counted_parts,
    lot,
    one_hot_columns,
    read_propensities,
    taken_in_column,
    taken_one_hot,
    with_propensities,
)
from policysim.numbers import percent


@dataclass(frozen=True, eq=False)
class Log:
    """A study's log, read and checked.

    Attributes
    ----------
    data : LoggedData
        Treatments, rewards and propensities of the rows that are used: all that have a treatment. Where outcomes are
        missing or censored, its rewards are numbers to be averaged, see `Observed`.
    records : array, (n_rows,)
        The record of each of these rows in `space`.
    space : RecordSpace
        The declared domain.
    missing : tuple of int
        Of all rows that were read: those without an outcome, for each treatment.
    n_read : int
        Rows that were read; more than are used where rows without an outcome or a treatment are excluded.
    n_untreated : int
        Rows without a treatment or a feature, which are excluded.
    outcomes : mapping of str to array, (n_rows,)
        Each outcome of the rows that are used, those of weight 0 too; NaN where it is missing. Of being free of an
        event, numbers to be averaged.
    raw : DataFrame, n_rows, optional
        The numbers of the features that are declared by cuts.
    adjusters : DataFrame, n_rows, optional
        What is adjusted for beside the features: `adjusters.read_adjusters`.
    undeclared : DataFrame, optional
        Columns of the file that nothing is said of, of some of the rows: `adjusters.undeclared`.
    predicted : array, (n_rows, n_actions), optional
        q(x, a) by features, their raw numbers and adjusters, by models that were fitted without the row; where
        propensities are estimated, or there are adjusters.
    shown : mapping of str to LoggedData
        Of outcomes that are missing or censored, numbers to be averaged.
    others_predicted : mapping of str to array, (n_rows, n_actions)
        The same as `predicted` of each outcome that is not the rewards.
    censored : DataFrame
        Where follow-up may end early, how much of it is missing in each arm: `censoring.CENSORING`.
    deciding : tuple of DecidingColumn
        Columns that the study leaves out and that decide the treatment.
    repeated_ids : tuple of str
        Where the study names no patients, columns of ids that it leaves out and of which values repeat.
    unknown : mapping of str to int
        For each column with values that mean unknown, in how many of all rows that were read they are.
    single : mapping of str to str
        The arms with a single row that is used, and where it is.
    """

    data: LoggedData
    records: IntArray
    space: RecordSpace
    missing: tuple[int, ...]
    n_read: int
    outcomes: Mapping[str, FloatArray]
    raw: pd.DataFrame | None = None
    adjusters: pd.DataFrame | None = None
    undeclared: pd.DataFrame | None = None
    predicted: FloatArray | None = None
    shown: Mapping[str, LoggedData] = field(default_factory=dict)
    others_predicted: Mapping[str, FloatArray] = field(default_factory=dict)
    censored: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=CENSORING))
    n_untreated: int = 0
    deciding: tuple[DecidingColumn, ...] = ()
    repeated_ids: tuple[str, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)
    single: Mapping[str, str] = field(default_factory=dict)

    def dealt(self, n_folds: int, rng: np.random.Generator) -> tuple[Log, IntArray]:
        """The log with its rows in folds at random, and the fold of each; see `LoggedData.dealt`."""
        data, rows, folds = self.data.dealt(n_folds, rng)
        if data is self.data:
            return self, folds
        outcomes = {name: values[rows] for name, values in self.outcomes.items()}
        predicted = None if self.predicted is None else self.predicted[rows]
        return replace(self, data=data, records=self.records[rows], outcomes=outcomes, predicted=predicted), folds

    @cached_property
    def covariates(self) -> pd.DataFrame:
        """Features and adjusters of the rows that are used; numbers as they were before they were cut."""
        known = self.space.decode(self.records)
        for more in (self.raw, None if self.adjusters is None else as_read(self.adjusters)):
            known = known if more is None else known.assign(**{str(name): more[name] for name in more})
        return known

    @property
    def confounders_are_finer(self) -> bool:
        """Whether more is adjusted for than a record tells."""
        return self.adjusters is not None or (self.raw is not None and self.raw.shape[1] > 0)

    @cached_property
    def rewarded(self) -> str:
        """The name of the outcome that is the reward; "" if that is none of them alone."""
        known, rewards = self.data.known.weights > 0, self.data.known.rewards
        for name, values in self.outcomes.items():
            alone = np.array_equal(np.isfinite(values), known) and np.array_equal(values[known], rewards[known])
            if np.array_equal(values, self.data.rewards) or alone:
                return name
        return ""


def load_log(source: LogSource) -> Log:
    """Read and check the rows of a study's log. Messages show no value of a feature, unless the source says so.

    Estimated propensities (`propensity = "estimate"`) are cross-fitted by stacked classifiers on the features, with
    numbers as they were before they were cut, and on the columns that are adjusted for. They make confounding possible:
    see `treatments.estimate_propensities`; "arm shares" are `treatments.arm_shares`. Rows without an outcome
    (`missing = "exclude"`) are made up for by a model of which outcomes are observed (`incomplete.with_missing`),
    which is right if outcomes are missing by chance given treatment and covariates. So is censoring
    (`censoring.pseudo_outcomes`).

    Raises
    ------
    DataError
        One line for each of the first twenty bad rows, and how many more there are: a value that is no declared level,
        no known treatment, a propensity outside (0, 1], an outcome that is missing, infinite or out of range, an id
        that is missing, not unique or without a match. Or one line about a file as a whole.
    InputFileError
        For an outcome that cannot be one: an id, a column known before treatment, a time of follow-up; with the line of
        the study.
    """
    tables, decisions, unknown = read_rows(source, BadRows())
    data = decisions.data
    refuse_constant(source, data.rewards)
    others = [name for name in tables.features.columns if name not in source.named]
    return replace(
        log_of(source, decisions),
        deciding=tuple(deciding_columns(tables.features, others, data.actions, data.n_actions)),
        repeated_ids=() if source.id or source.cluster else tuple(repeated_ids(tables.features, others)),
        unknown=unknown,
        single=single_patients(tables, data),
        undeclared=undeclared(tables.features, others, np.flatnonzero(data.actions >= 0)),
    )


def load_rows(source: LogSource, *, show: bool) -> LoggedDecisions:
    """The rows of a study's log that have a treatment, read and checked as by `load_log`; nothing is modelled.

    Unless messages may `show` values of other columns than features, or the source says so, none shows any. Of being
    free of an event the rewards are 1 or 0 where that is known at the horizon that decides, and NaN elsewhere.
    """
    decisions = read_rows(source, BadRows(show=show or source.show_values))[1]
    if show:
        refuse_constant(source, decisions.data.rewards)
    used = used_rows(source, decisions)
    if used.followed is None or source.follow_up is None:
        return used
    times, states = (used.followed[column].to_numpy() for column in ("time", "state"))
    return replace(used, data=replace(used.data, rewards=free_at(times, states, source.follow_up.horizon)))


def read_rows(source: LogSource, bad: BadRows) -> tuple[LogTables, LoggedDecisions, dict[str, int]]:
    """The tables of a study's log; what it says of each row; and in how many rows a column's value means unknown."""
    read = {role: read_table(path, stated=source.form) for role, path in source.files.items()}
    for table in read.values():
        refuse_totals(source, table)
    tables, unknown = LogTables(read, source.id, source.cluster).without_unknown(source.unknown)
    tables = tables.with_joined(source.joined)
    tables.require([(tables.features, name) for name in source.features])
    for key, names in {"adjust_for": source.adjust_for, "cluster": filter(None, [source.cluster])}.items():
        for absent in filter(None, map(tables.features.unknown_column, names)):
            raise DataError(f"{place_in_study(source, key)}data.{key}: {absent}")
    adjusters = read_adjusters(tables.features, source.adjust_for, bad) if source.adjust_for else None
    clusters = read_clusters(tables.features, source.cluster, bad) if source.cluster else None
    # First: a wrong column would only be told by values out of range.
    check_outcomes(source, tables)
    decisions = read_decisions(tables, source, bad)
    data = replace(decisions.data, clusters=clusters)
    if is_column(source.propensity):
        refuse_one_heavy_row(tables, source.propensity, data, show=bad.show)
    cut = {name: numbers(tables.features[name]) for name, feature in source.features.items() if feature.cuts}
    decisions = replace(decisions, data=data, raw=pd.DataFrame(cut, index=range(data.n_rows)), adjusters=adjusters)
    return tables, decisions, {column: int(np.count_nonzero(rows)) for column, rows in unknown.items()}


def used_rows(source: LogSource, decisions: LoggedDecisions) -> LoggedDecisions:
    """The rows that have a treatment.

    Raises
    ------
    DataError
        For outcomes, or clusters (`clusters.require_clusters`), that are too few.
    InputFileError
        For a horizon that says nothing (`censoring.check_horizons`).
    """
    used = decisions.treated()
    data, known = used.data, ~np.isnan(used.data.rewards)
    if data.clusters is not None:
        place = next(iter(source.files.values())).as_posix()
        require_clusters(place, source.cluster, data.clusters[known], data.actions[known], data.names)
    if used.followed is not None:
        check_horizons(used.followed, source, data)
    return used


def single_patients(tables: LogTables, data: LoggedData) -> dict[str, str]:
    """The treatments that one row alone got, of those with an outcome, and where it is."""
    rows = {name: rows_with_outcome(data, arm) for arm, name in enumerate(data.names)}
    return {name: tables.place_of_action(of_arm[0]) for name, of_arm in rows.items() if len(of_arm) == 1}


def rows_with_outcome(data: LoggedData, arm: int) -> IntArray:
    """The rows of an arm that have an outcome, of rows of which some have none (NaN)."""
    return np.flatnonzero((data.actions == arm) & ~np.isnan(data.rewards))


# A row with more than this share of its arm's weight leaves nothing to the others; of fewer rows that is no wonder.
HEAVY, FEWEST_FOR_HEAVY = 0.95, 10


def refuse_one_heavy_row(tables: LogTables, column: str, data: LoggedData, *, show: bool) -> None:
    """DataError for a row that has nearly all weight (1 / propensity) of its arm's rows with an outcome.

    `show` says whether the message has the row's probability, and its share of the weight.
    """
    for arm, name in enumerate(data.names):
        rows = rows_with_outcome(data, arm)
        if len(rows) < FEWEST_FOR_HEAVY:
            continue
        weights = 1 / data.propensities[rows]
        row, share = rows[weights.argmax()], weights.max() / weights.sum()
        if share > HEAVY:
            value, most = (f"{data.propensities[row]:g}: ", percent(share)) if show else ("", "nearly all")
            raise DataError(
                f"{tables.place_of_action(row)}: {column}: {value}this row alone has {most} of the weight of {name} "
                f"(1 / probability, {len(rows):,} rows), so that the others hardly count: correct the probability, or "
                "leave the row out"
            )


def log_of(source: LogSource, decisions: LoggedDecisions) -> Log:
    """The log of a study from its rows; raises what `used_rows` does."""
    used, parts = _in_parts(source, used_rows(source, decisions))
    covariates = Covariates.of_log(source.space, used.records, used.raw, used.adjusters)
    data = replace(used.data, costs=np.array(source.costs) if source.costs else None)
    data = with_propensities(source.propensity, data, covariates, parts)
    incomplete = Incomplete.of(data, covariates, ~np.isnan(data.rewards), parts)
    data, outcomes, shown, censored = _completed(source, used, incomplete)
    predicted, others = None, dict[str, FloatArray]()
    if data.counts is None and (source.propensity == ESTIMATE or used.adjusters is not None):
        predicted = incomplete.predicted(data, STACKED)  # by trees, which are grown on rows
        complete = {name: replace(data, rewards=values, observed=None) for name, values in outcomes.items()}
        for name, other in (complete | shown).items():
            if not (np.isnan(other.rewards).any() or np.array_equal(other.rewards, data.rewards)):
                others[name] = incomplete.predicted(other, STACKED)
    return Log(
        data=data,
        records=used.records,
        space=source.space,
        missing=decisions.missing_by_action(),
        n_read=decisions.data.n_patients,
        outcomes=outcomes,
        censored=censored,
        raw=used.raw,
        adjusters=used.adjusters,
        predicted=predicted,
        others_predicted=others,
        shown=shown,
        n_untreated=decisions.data.of(decisions.data.actions < 0).n_patients,
    )


def _in_parts(source: LogSource, used: LoggedDecisions) -> tuple[LoggedDecisions, IntArray | None]:
    """The same rows; and their parts where counted rows must be divided."""
    data, estimated = used.data, source.propensity == ESTIMATE
    if data.counts is None or not (estimated or source.follow_up or np.isnan(data.rewards).any()):
        return used, None
    rows, parts, counts = counted_parts(data.actions, data.counts, data.names, estimated=estimated)
    used = used.of(rows)
    return replace(used, data=replace(used.data, counts=counts)), parts


def _completed(
    source: LogSource, used: LoggedDecisions, incomplete: Incomplete
) -> tuple[LoggedData, dict[str, FloatArray], dict[str, LoggedData], pd.DataFrame]:
    """The log with numbers to be averaged; all outcomes, those of them that are incomplete; how much is censored."""
    rewards = used.data.rewards
    outcomes = {str(name): column.to_numpy() for name, column in used.outcomes.items()}
    shown: dict[str, LoggedData] = {}
    if source.follow_up and used.followed is not None:
        horizons = source.follow_up.horizons
        at_horizons, censored = incomplete.at_horizons(used.followed, horizons)
        data = at_horizons[0]
        shown = dict(zip(map(source.follow_up.title_at, horizons), at_horizons, strict=True))
        outcomes = {title: completed.rewards for title, completed in shown.items()} | outcomes
    else:
        data, censored = incomplete.column(rewards), pd.DataFrame(columns=CENSORING)
    for name, column in outcomes.items():
        gaps = np.isnan(column)
        if gaps.any() and not gaps.all() and not np.array_equal(column, rewards, equal_nan=True):
            shown[name] = incomplete.column(column)
    return data, outcomes, shown, censored


def read_records(table: DataTable, columns: LogColumns, bad: BadRows) -> IntArray:
    """The record of each row, numbered as in the space of the declared features; -1: to be left out, as one is missing.

    Rows are left out where the study leaves out rows in which something is missing (`missing = "exclude"`).
    """
    index = np.zeros(len(table), dtype=np.intp)
    left_out = np.zeros(len(table), dtype=np.bool_)
    for name, feature in columns.features.items():
        column, must = table[name], level_wanted(feature)
        positions, keys = coded(column)
        code_of_key = codes_of_keys(feature, keys)
        codes = code_of_key[positions]
        index = index * len(feature.levels) + codes
        if (code_of_key >= 0).all():
            continue
        gone = missing(column, codes < 0)
        if columns.missing == EXCLUDE:
            left_out |= gone
        else:
            bad.add_values(table, gone, name, column.array, must, hint=missing_hint(feature))
        named = f"; a value that means unknown is named in [data]: unknown = {{ {toml_text(name)} = [...] }}"
        hint = "" if feature.cuts else named
        bad.add_values(table, (codes < 0) & ~gone, name, column.array, must, show=columns.show_values, hint=hint)
    return np.where(left_out, -1, index)


@dataclass(frozen=True, eq=False)
class LoggedDecisions:
    """What a log says of each of its rows, in the order of its features.

    Attributes
    ----------
    data : LoggedData
        Actions are -1 in rows without a treatment, or a feature, which are to be left out; rewards are NaN in these and
        where there is no outcome; propensities are NaN where they are to be made of the treatments of all, by a model
        or as the arms' shares (`treatments.with_propensities`).
    records : array, (n_rows,)
        The record of each row among those of the declared features; -1 as for actions.
    missing : array of bool, (n_rows,)
        Whether an outcome is.
    outcomes : DataFrame, n_rows
        Each outcome; NaN where it is missing.
    followed : DataFrame, n_rows, or None
        Where the outcome is to be free of an event: what `censoring.read_times` read. Rewards are then 0, or NaN.
    raw : DataFrame, n_rows, or None
        The numbers of the features that are declared by cuts.
    adjusters : DataFrame, n_rows, or None
        From `read_adjusters`.
    """

    data: LoggedData
    records: IntArray
    missing: BoolArray
    outcomes: pd.DataFrame
    followed: pd.DataFrame | None = None
    raw: pd.DataFrame | None = None
    adjusters: pd.DataFrame | None = None

    def of(self, rows: IntArray) -> LoggedDecisions:
        """The same of some rows."""
        return LoggedDecisions(**{name: rows_of(values, rows) for name, values in vars(self).items()})

    def treated(self) -> LoggedDecisions:
        """The rows that have a treatment; DataError if too few of them have an outcome."""
        n_patients = self.data.of(~np.isnan(self.data.rewards)).n_patients
        if n_patients < FEWEST_ROWS:
            raise DataError(f"a log must have at least {FEWEST_ROWS} rows with an outcome, got {n_patients}")
        return self.of(np.flatnonzero(self.data.actions >= 0))

    def missing_by_action(self) -> tuple[int, ...]:
        """How many rows of each treatment have no outcome."""
        return tuple(self.data.by_action(self.missing & (self.data.actions >= 0)).tolist())


def read_decisions(tables: LogTables, columns: LogColumns, bad: BadRows) -> LoggedDecisions:
    """Read records, treatments, propensities and outcomes, and join them to the features.

    Raises
    ------
    DataError
        For all bad rows, those already in `bad` included.
    """
    table, outcomes, follow_up = tables.actions, tables.outcomes, columns.follow_up
    tables.require(
        [
            *([(table, columns.treatment)] if columns.treatment else []),
            *([(table, columns.propensity)] if is_column(columns.propensity) else []),
            *((outcomes, column) for column in (*columns.outcome, *columns.later)),
        ]
    )
    records = read_records(tables.features, columns, bad)
    if columns.treatment:
        codes, names = taken_in_column(table, columns.treatment, columns.treatments, columns.missing, bad)
    else:
        others = (tables.id, str(columns.propensity), PROPENSITY)
        if not columns.treatments:
            tables.refuse_shared(others)
        codes, names = taken_one_hot(table, one_hot_columns(table, columns.treatments, others), bad)
    chances = lot(columns.propensity, len(names))
    if is_column(columns.propensity):
        propensities = read_propensities(table, columns.propensity, bad)
    else:
        propensities = np.full(len(table), np.nan) if chances is None else chances[codes]
    rewards, absent, values = read_rewards(outcomes, columns, bad)
    followed = None
    if follow_up:
        followed, absent = read_times(outcomes, follow_up, columns.missing, bad)
        rewards = np.where(followed["time"].isna(), np.nan, 0.0)
    of_actions, of_outcomes = tables.matched(bad)
    actions = np.where(records < 0, -1, codes[of_actions])
    rewards = np.where(actions < 0, np.nan, rewards[of_outcomes])
    return LoggedDecisions(
        data=LoggedData(actions, rewards, propensities[of_actions], names),
        records=records,
        missing=absent[of_outcomes],
        outcomes=rows_of(pd.DataFrame(values, index=range(len(absent))), of_outcomes),
        followed=rows_of(followed, of_outcomes),
    )

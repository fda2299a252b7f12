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
from policies.levels import MISSING, codes_of_keys, level_wanted, missing_hint
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.data_table import DataTable, coded, numbers, read_table
from policysim.logs.adjusters import Covariates, read_adjusters, undeclared
from policysim.logs.censoring import CENSORING, check_horizons, read_times
from policysim.logs.clusters import DecidingColumn, deciding_columns, read_clusters, repeated_ids, require_clusters
from policysim.logs.incomplete import Incomplete
from policysim.logs.log_frame import FEWEST_ROWS, PROPENSITY, LoggedData, patients_by_code
from policysim.logs.log_source import ESTIMATE, EXCLUDE, SHARES, STACKED, LogColumns, LogSource, is_column
from policysim.logs.log_tables import LogTables
from policysim.logs.outcomes import check_outcomes, place_in_study, refuse_constant, refuse_totals
from policysim.logs.rewards import read_rewards
from policysim.logs.toml_text import toml_text
from policysim.logs.treatments import (
    arm_shares,
    counted_parts,
    estimate_propensities,
    lot,
    one_hot_columns,
    read_propensities,
    taken_in_column,
    taken_one_hot,
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
        """The features of the rows that are used: levels, and numbers as they were before they were cut."""
        levels = self.space.decode(self.records)
        return levels if self.raw is None else levels.assign(**{str(name): self.raw[name] for name in self.raw})

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


def load_log(source: LogSource, *, all_hidden: bool = False, models: bool = True) -> Log:
    """Read and check the rows of a study's log.

    Messages show no value of a feature, nor, where `all_hidden`, of any other column, unless the source says so. Then,
    and without `models`, nothing is modelled.

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
    models = models and not all_hidden
    read = {role: read_table(path, stated=source.form) for role, path in source.files.items()}
    for table in read.values():
        refuse_totals(source, table)
    tables, unknown = LogTables(read, source.id, source.cluster).without_unknown(source.unknown)
    tables = tables.with_joined(source.joined)
    tables.require([(tables.features, name) for name in source.features])
    for key, names in {"adjust_for": source.adjust_for, "cluster": filter(None, [source.cluster])}.items():
        for absent in filter(None, map(tables.features.unknown_column, names)):
            raise DataError(f"{place_in_study(source, key)}data.{key}: {absent}")
    bad = BadRows(show=source.show_values or not all_hidden)
    records = read_records(tables.features, source, bad)
    adjusters = read_adjusters(tables.features, source.adjust_for, bad) if source.adjust_for else None
    clusters = read_clusters(tables.features, source.cluster, bad) if source.cluster else None
    # First: a wrong column would only be told by values out of range.
    check_outcomes(source, tables)
    decisions = read_decisions(tables, source, bad).without(records < 0)
    if not all_hidden:
        refuse_constant(source, decisions.rewards)
    if is_column(source.propensity):
        refuse_one_heavy_row(tables, source.propensity, decisions, show=bad.show)
    cut = [name for name, feature in source.features.items() if feature.cuts]
    columns = {name: numbers(tables.features[name]) for name in cut}
    raw = pd.DataFrame(columns, index=range(len(records)))
    log = log_of(source, records, decisions, raw, adjusters=adjusters, clusters=clusters, models=models)
    if not models:
        return log
    others = [name for name in tables.features.columns if name not in source.named]
    return replace(
        log,
        deciding=tuple(deciding_columns(tables.features, others, decisions.actions, log.data.n_actions)),
        repeated_ids=() if source.id or source.cluster else tuple(repeated_ids(tables.features, others)),
        unknown={column: int(np.count_nonzero(rows)) for column, rows in unknown.items()},
        single=single_patients(tables, decisions),
        undeclared=undeclared(tables.features, others, np.flatnonzero(decisions.actions >= 0)),
    )


def single_patients(tables: LogTables, decisions: LoggedDecisions) -> dict[str, str]:
    """The treatments that one row alone got, of those with an outcome, and where it is."""
    actions = np.where(np.isnan(decisions.rewards), -1, decisions.actions)
    rows = {name: np.flatnonzero(actions == arm) for arm, name in enumerate(decisions.names)}
    return {name: tables.place_of_action(found[0]) for name, found in rows.items() if len(found) == 1}


# A row with more than this share of its arm's weight leaves nothing to the others; of fewer rows that is no wonder.
HEAVY, FEWEST_FOR_HEAVY = 0.95, 10


def refuse_one_heavy_row(tables: LogTables, column: str, decisions: LoggedDecisions, *, show: bool) -> None:
    """DataError for a row that has nearly all weight (1 / propensity) of its arm's rows with an outcome.

    `show` says whether the message has the row's probability, and its share of the weight.
    """
    known = ~np.isnan(decisions.rewards)
    for arm, name in enumerate(decisions.names):
        rows = np.flatnonzero(known & (decisions.actions == arm))
        if decisions.propensities is None or len(rows) < FEWEST_FOR_HEAVY:
            continue
        weights = 1 / decisions.propensities[rows]
        row, share = rows[weights.argmax()], weights.max() / weights.sum()
        if share > HEAVY:
            value, most = (f"{decisions.propensities[row]:g}: ", percent(share)) if show else ("", "nearly all")
            raise DataError(
                f"{tables.place_of_action(row)}: {column}: {value}this row alone has {most} of the weight of {name} "
                f"(1 / probability, {len(rows):,} rows), so that the others hardly count: correct the probability, or "
                "leave the row out"
            )


def log_of(
    source: LogSource,
    records: IntArray,
    decisions: LoggedDecisions,
    raw: pd.DataFrame | None = None,
    *,
    adjusters: pd.DataFrame | None = None,
    clusters: IntArray | None = None,
    models: bool = True,
) -> Log:
    """The log of a study from its rows: those without a treatment are left out.

    Parameters
    ----------
    source : LogSource
    records : array, (n_rows,)
        The record of each row.
    decisions : LoggedDecisions
        What was decided for each, and what came of it.
    raw : DataFrame, n_rows, optional
        The numbers of the features that are declared by cuts.
    adjusters : DataFrame, n_rows, optional
        From `read_adjusters`.
    clusters : array, (n_rows,), optional
        The number of each row's cluster.
    models : bool, optional
        Whether outcomes that are missing, and censoring, are modelled by what is known of patients; else by the arm
        alone.

    Raises
    ------
    DataError
        For clusters that are too few (`clusters.require_clusters`).
    """
    if clusters is not None:
        known, place = decisions.kept(), next(iter(source.files.values())).as_posix()
        require_clusters(place, source.cluster, clusters[known], decisions.actions[known], decisions.names)
    rows, used, parts = _used(source, decisions)
    raw, adjusters = (None if each is None else each.iloc[rows].reset_index(drop=True) for each in (raw, adjusters))
    clusters = None if clusters is None else clusters[rows]
    covariates = Covariates.of_log(source.space, records[rows], raw, adjusters)
    costs, unknown = np.array(source.costs) if source.costs else None, np.zeros(len(rows))
    data = LoggedData(used.actions, unknown, unknown, used.names, counts=used.counts, costs=costs, clusters=clusters)
    if source.propensity == SHARES:
        data = replace(data, propensities=arm_shares(used.actions, len(used.names), used.counts))
    elif used.propensities is None:
        data = replace(data, propensities=estimate_propensities(covariates, data, parts))
    else:
        data = replace(data, propensities=used.propensities)
    if not models:
        covariates = Covariates(np.zeros((1, 0)), np.zeros(len(rows), dtype=np.intp))
    incomplete = Incomplete.of(data, covariates, ~np.isnan(used.rewards), parts)
    data, outcomes, shown, censored = _completed(source, used, incomplete, models=models)
    predicted = None
    if used.counts is None and models and (source.propensity == ESTIMATE or adjusters is not None):
        predicted = incomplete.predicted(data, STACKED)  # by trees, which are grown on rows
    return Log(
        data=data,
        records=records[rows],
        space=source.space,
        missing=decisions.missing_by_action(),
        n_read=decisions.n_patients(np.ones(len(records), dtype=np.bool_)),
        outcomes=outcomes,
        censored=censored,
        raw=raw,
        adjusters=adjusters,
        predicted=predicted,
        shown=shown,
        n_untreated=decisions.n_patients(decisions.actions < 0),
    )


def _used(source: LogSource, decisions: LoggedDecisions) -> tuple[IntArray, LoggedDecisions, IntArray | None]:
    """The rows with a treatment, what was decided for them, and their parts where counted rows must be divided."""
    rows = decisions.treated()
    used, estimated = decisions.of(rows), source.propensity == ESTIMATE
    if used.counts is None or not (estimated or used.followed or np.isnan(used.rewards).any()):
        return rows, used, None
    places, parts, counts = counted_parts(used.actions, used.counts, used.names, estimated=estimated)
    return rows[places], replace(used.of(places), counts=counts), parts


def _completed(
    source: LogSource, used: LoggedDecisions, incomplete: Incomplete, *, models: bool
) -> tuple[LoggedData, dict[str, FloatArray], dict[str, LoggedData], pd.DataFrame]:
    """The log with numbers to be averaged; all outcomes, those of them that are incomplete; how much is censored."""
    outcomes, shown = used.outcomes, dict[str, LoggedData]()
    if source.follow_up and used.followed:
        times, states = used.followed
        seen, horizons = ~np.isnan(used.rewards), source.follow_up.horizons
        check_horizons((times[seen], states[seen]), source, used.actions[seen], used.names)
        found, censored = incomplete.at_horizons((np.where(seen, times, np.nan), states), horizons)
        data = found[0]
        shown = dict(zip(map(source.follow_up.title_at, horizons), found, strict=True))
        outcomes = {title: each.rewards for title, each in shown.items()} | outcomes
    else:
        data, censored = incomplete.column(used.rewards), pd.DataFrame(columns=CENSORING)
    for name, column in outcomes.items() if models else ():
        gaps = np.isnan(column)
        if gaps.any() and not gaps.all() and not np.array_equal(column, used.rewards, equal_nan=True):
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
        gone = (codes < 0) & np.array([key == MISSING for key in keys], dtype=np.bool_)[positions]
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
    """Arrays with an entry for each row of a log, in the order of its features.

    Attributes
    ----------
    actions : array, (n_rows,)
        Positions in `names`; -1 in rows without a treatment, or a feature, which are to be left out.
    names : tuple of str
        All treatments.
    propensities : array, (n_rows,), or None
        None: they are to be made of the treatments of all, by a model or as the arms' shares.
    rewards : array, (n_rows,)
        NaN in rows that are to be left out.
    missing : array of bool, (n_rows,)
        Whether an outcome is.
    outcomes : dict of str to array, (n_rows,)
        Each outcome; NaN where it is missing.
    followed : two arrays, (n_rows,), or None
        Where the outcome is to be free of an event: the time, and what happened then, `EVENT`, `CENSORED` or
        `COMPETING`. `rewards` are then 0, or NaN.
    counts : array of int, (n_rows,), or None
        How many patients each row stands for, where equal ones were counted; None: one each.
    """

    actions: IntArray
    names: tuple[str, ...]
    propensities: FloatArray | None
    rewards: FloatArray
    missing: BoolArray
    outcomes: dict[str, FloatArray]
    followed: tuple[FloatArray, IntArray] | None = None
    counts: IntArray | None = None

    def without(self, rows: BoolArray) -> LoggedDecisions:
        """The same, some rows to be left out as if they had no treatment."""
        return replace(self, actions=np.where(rows, -1, self.actions), rewards=np.where(rows, np.nan, self.rewards))

    def n_patients(self, rows: BoolArray) -> int:
        """How many patients some rows stand for."""
        return int(np.count_nonzero(rows) if self.counts is None else self.counts[rows].sum())

    def of(self, rows: IntArray) -> LoggedDecisions:
        """The same of some rows."""
        return replace(
            self,
            actions=self.actions[rows],
            propensities=None if self.propensities is None else self.propensities[rows],
            rewards=self.rewards[rows],
            missing=self.missing[rows],
            outcomes={name: column[rows] for name, column in self.outcomes.items()},
            followed=(self.followed[0][rows], self.followed[1][rows]) if self.followed else None,
            counts=None if self.counts is None else self.counts[rows],
        )

    def kept(self) -> IntArray:
        """The rows that have a reward; DataError if they are too few."""
        known = ~np.isnan(self.rewards)
        if self.n_patients(known) < FEWEST_ROWS:
            raise DataError(
                f"a log must have at least {FEWEST_ROWS} rows with an outcome, got {self.n_patients(known)}"
            )
        return np.flatnonzero(known)

    def treated(self) -> IntArray:
        """The rows that have a treatment; DataError as `kept`."""
        self.kept()
        return np.flatnonzero(self.actions >= 0)

    def missing_by_action(self) -> tuple[int, ...]:
        """How many rows of each treatment have no outcome."""
        lost = self.of(np.flatnonzero(self.missing & (self.actions >= 0)))
        return tuple(patients_by_code(lost.actions, lost.counts, len(self.names)).tolist())


def read_decisions(tables: LogTables, columns: LogColumns, bad: BadRows) -> LoggedDecisions:
    """Read treatments, propensities and outcomes, and join them to the features.

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
    if columns.treatment:
        codes, names = taken_in_column(table, columns.treatment, columns.treatments, columns.missing, bad)
    else:
        others = (tables.id, str(columns.propensity), PROPENSITY)
        if not columns.treatments:
            tables.refuse_shared(others)
        codes, names = taken_one_hot(table, one_hot_columns(table, columns.treatments, others), bad)
    propensities: FloatArray | None
    if is_column(columns.propensity):
        propensities = read_propensities(table, columns.propensity, bad)
    else:
        chances = lot(columns.propensity, len(names))
        propensities = None if chances is None else chances[codes]
    rewards, absent, values = read_rewards(outcomes, columns, bad)
    if follow_up:
        times, states, absent = read_times(outcomes, follow_up, columns.missing, bad)
        rewards = np.where(np.isnan(times), np.nan, 0.0)
    of_actions, of_outcomes = tables.matched(bad)
    actions = codes[of_actions]
    return LoggedDecisions(
        actions=actions,
        names=names,
        propensities=None if propensities is None else propensities[of_actions],
        rewards=np.where(actions < 0, np.nan, rewards[of_outcomes]),
        missing=absent[of_outcomes],
        outcomes={name: column[of_outcomes] for name, column in values.items()},
        followed=(times[of_outcomes], states[of_outcomes]) if follow_up else None,
    )

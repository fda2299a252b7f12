"""Logs on which a policy that was made elsewhere is evaluated: of a study, of a file, or counted from many files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from envs.records import RecordSpace
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import open_columns
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.data_table import PANDAS_INDEX, DataTable
from policysim.files.many_files import files_of
from policysim.logs.adjusters import Covariates
from policysim.logs.censoring import censoring_words
from policysim.logs.counted_log import count_parts, open_log
from policysim.logs.log_frame import (
    ACTION,
    COLUMNS,
    PROPENSITY,
    REWARD,
    LoggedData,
    covariate_matrix,
    known_before,
    read_log_frame,
)
from policysim.logs.log_source import EQUAL, ESTIMATE, REFUSE, LogColumns, outcome_words
from policysim.logs.read_log import NoPropensityError, read_log
from policysim.progress import SILENT, Progress
from policysim.study.declared import LoggedStudy
from policysim.trials.arms import arm_means, arms_of, utility_of_arms
from policysim.trials.diagnostics import LogCaveats, log_caveats
from policysim.trials.outside_policy import OutsidePolicy


@dataclass(frozen=True, eq=False)
class LogToEvaluate:
    """The rows of a log on which a policy is evaluated.

    Attributes
    ----------
    table : DataTable
        What is known of each row beside its action and reward; it can say where a row is.
    data : LoggedData
        Actions, rewards and propensities.
    known : DataFrame
        What was known before treatment, and an outcome model can predict from.
    about : mapping
        What --json says of the log: `rows_read`, how many of each arm are `missing` an outcome and the `missing_rule`,
        whether there are `estimated_propensities`, and in words the `outcome` where it is not a column alone, and the
        `censoring`; what treatments `costs`, and the limits `capacity` and `at_most` of a study; and how many
        `clusters` there are, if any.
    looked_at : DataFrame
        Where overlap is looked for: all that was known, if possible before numbers were cut into levels.
    doubts : LogCaveats
        What may be wrong with it, of the log of a study; of a file nothing says how treatments were given. Beside
        errors nothing is concluded.
    arms : DataFrame
        Each arm, had everyone been given it: of the log of a study as `compare` has it (`arms.utility_of_arms`), of a
        file `arms.arm_means`.
    """

    table: DataTable
    data: LoggedData
    known: pd.DataFrame
    about: Mapping[str, Any]
    looked_at: pd.DataFrame
    doubts: LogCaveats = field(default_factory=LogCaveats)
    arms: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True, eq=False)
class LogRows(DataTable):
    """The rows of a study's log that are used: fewer than in its files, where rows without an outcome are left out.

    Where it was counted they are kinds of patients, which have no place among the rows.
    """

    counted: bool = False

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row, counted from 1 among those that are used; of kinds of patients the log alone."""
        return [self.name if self.counted else f"{self.name}: row {row + 1} of those with an outcome" for row in rows]


def read_study_log(
    study: LoggedStudy, executor: Executor | None = None, progress: Progress = SILENT, *, counted: bool = False
) -> LogToEvaluate:
    """The log of a study, its patients known by the declared levels and bins of their features."""
    log = open_log(study.log, executor, progress, counted=counted)
    frame = log.space.decode(log.records)
    table = LogRows(study.name, frame, counted=log.data.counts is not None)
    known = frame
    if log.predicted is not None and log.confounders_are_finer:
        own = [f"{name} (number)" for name in (log.raw.columns if log.raw is not None else ())]
        own += [" ".join(pair).strip() for pair in (log.adjusters.columns if log.adjusters is not None else ())]
        finer = Covariates.of_log(log.space, log.records, log.raw, log.adjusters).rows[:, sum(log.space.shape) :]
        known = pd.concat([frame, pd.DataFrame(finer[:, : len(own)], columns=own)], axis=1)
    about = {
        "rows_read": log.n_read,
        "missing": dict(zip(log.data.names, log.missing, strict=True)),
        "missing_rule": study.log.missing,
        "estimated_propensities": study.log.propensity == ESTIMATE,
        "outcome": outcome_words(study.log),
        "costs": dict(zip(log.data.names, study.log.costs, strict=False)),
        "capacity": dict(study.capacity),
        "at_most": dict(study.at_most),
        "censoring": censoring_words(study.log.follow_up, log.censored),
        "unknown": dict(log.unknown),
        **({} if log.data.clusters is None else {"clusters": log.data.n_units}),
    }
    arms, doubts = utility_of_arms(log, arms_of(log, study.log)), log_caveats(log, study.log)
    arms = arms[["arm", "rows", "mean", "low", "high"]]
    return LogToEvaluate(table, log.data, known, about, log.covariates, doubts, arms)


def all_with_reward(data: LoggedData) -> dict[str, Any]:
    """The facts about a log whose rows all have a reward and a propensity."""
    words = {"missing_rule": REFUSE, "estimated_propensities": False, "outcome": "", "censoring": ""}
    none = {"missing": dict.fromkeys(data.names, 0), "unknown": {}, "costs": {}, "capacity": {}, "at_most": {}}
    return {"rows_read": data.n_patients, **words, **none}


def read_log_file(path: Path, actions: Sequence[str], stated: CsvFormat = RECOGNISED) -> LogToEvaluate:
    """A file, text or Parquet, with the columns action, reward, propensity and covariates.

    Nothing is predicted from what `log_frame.known_before` leaves out, nor from columns that `covariate_matrix`
    refuses: those with gaps, for instance, or text with so many distinct values that it names patients. `actions` are
    those of the policy; the log may hold no others.

    Raises
    ------
    DataError
        As `read_log`; where there are no propensities it says what to do.
    """
    try:
        frame = read_log(path, treatments={name: name for name in actions}, **asdict(stated))
    except NoPropensityError:
        raise DataError(
            f"{path.as_posix()}: there is no column {PROPENSITY}: add it (the probability with which each patient got "
            f"the action that is logged), or write a study file, which may say {EQUAL!r} or {ESTIMATE!r} instead: "
            f"policysim init {path.as_posix()}"
        ) from None
    data = read_log_frame(frame)
    table = DataTable(path.as_posix(), frame.drop(columns=list(COLUMNS)), open_columns(path, stated))
    known = known_before(table.frame_of(table.columns))
    known = known[[name for name in known.columns if not str(name).startswith(PANDAS_INDEX)]]
    predictors = []
    for name in known.columns:
        with suppress(ValueError, TypeError):  # TypeError: of lists
            covariate_matrix(known[[name]])
            predictors.append(name)
    return LogToEvaluate(table, data, known[predictors], all_with_reward(data), known, arms=arm_means(data))


def count_log_file(
    path: Path,
    policy: OutsidePolicy,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    stated: CsvFormat = RECOGNISED,
) -> LogToEvaluate:
    """The same of a file, a folder or a pattern, whose rows are counted by what the policy knows of them.

    Raises
    ------
    DataError
        As `counted_log.count_parts`, and for a policy whose rows are those of the log.
    """
    space = RecordSpace(policy.features())
    columns = LogColumns(
        treatment=ACTION,
        treatments=tuple((name, name) for name in policy.actions),
        propensity=PROPENSITY,
        outcome={REWARD: 1.0},
        utility_range=None,
        missing=REFUSE,
        features={feature.name: feature for feature in space.features},
        form=stated,
    )
    decisions, _ = count_parts(columns, files_of(path), executor, progress)
    frame, data = space.decode(decisions.records), decisions.data
    table = LogRows(path.as_posix(), frame, counted=True)
    return LogToEvaluate(table, data, frame, all_with_reward(data), frame, arms=arm_means(data))

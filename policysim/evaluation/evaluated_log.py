"""A log, from a study file or a single file, ready for a policy to be evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from policysim.evaluation.target import PANDAS_INDEX
from policysim.logs.frame import read_log
from policysim.logs.reading import LogTable
from policysim.logs.source import ESTIMATE, REFUSE
from policysim.logs.trial import load_log
from policysim.offpolicy.covariates import MOST_LEVELS
from policysim.offpolicy.log_frame import covariate_frame, read_log_frame
from policysim.offpolicy.logged import LoggedData
from policysim.simulated_log import OUTCOME_PREFIX, PATIENT
from policysim.study import LoggedStudy


@dataclass(frozen=True, eq=False)
class EvaluatedLog:
    """The rows of a log.

    Attributes
    ----------
    table : LogTable
        What is known of each row beside its action and reward; it can say where a row is.
    data : LoggedData
        Actions, rewards and propensities.
    predictors : tuple of str
        The columns of `table` from which an outcome model may predict.
    missing : tuple of int
        For each action, the rows that were read without an outcome.
    missing_rule : str
        What was done with them: "refuse", "exclude" or "worst".
    n_read : int
        Rows that were read.
    estimated_propensities : bool
        Whether nobody knows the propensities, and they were estimated.
    """

    table: LogTable
    data: LoggedData
    predictors: tuple[str, ...]
    missing: tuple[int, ...]
    missing_rule: str
    n_read: int
    estimated_propensities: bool = False

    @property
    def known(self) -> pd.DataFrame:
        """The predictors: what was known before treatment."""
        return self.table.frame[list(self.predictors)]


@dataclass(frozen=True, eq=False)
class UsedRows(LogTable):
    """The rows of a study's log that are used: fewer than in its files, where rows without an outcome are left out."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row, counted from 1 among those that are used."""
        return [f"{self.name}: row {row + 1} of those with an outcome" for row in rows]


def read_study_log(study: LoggedStudy) -> EvaluatedLog:
    """The log of a study, its patients known by the declared levels and bins of their features."""
    log = load_log(study.log)
    frame = log.space.decode(log.records)
    return EvaluatedLog(
        table=UsedRows(study.name, frame),
        data=log.data,
        predictors=log.space.names,
        missing=log.missing,
        missing_rule=study.log.missing,
        n_read=log.n_read,
        estimated_propensities=study.log.propensity == ESTIMATE,
    )


def read_log_file(path: Path, actions: Sequence[str]) -> EvaluatedLog:
    """A .csv or .parquet file with the columns action, reward, propensity and covariates.

    Outcomes (columns named outcome_...) are known after treatment and predict nothing; nor do a column `patient`, or
    text with so many distinct values that it names patients.

    Parameters
    ----------
    actions : sequence of str
        Those of the policy that is evaluated; the log may hold no others.
    """
    frame = read_log(path, treatments={name: name for name in actions})
    data = read_log_frame(frame)
    covariates = covariate_frame(frame)
    predictors = tuple(str(name) for name in covariates.columns if _predicts(covariates[name], str(name)))
    table = LogTable(path.as_posix(), covariates, path)
    return EvaluatedLog(table, data, predictors, (0,) * data.n_actions, REFUSE, len(frame))


def _predicts(column: pd.Series, name: str) -> bool:
    if name == PATIENT or name.startswith((OUTCOME_PREFIX, PANDAS_INDEX)):
        return False
    words = not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))
    return not (words and column.nunique() > MOST_LEVELS)


def extended(log: EvaluatedLog, actions: Sequence[str]) -> LoggedData:
    """The log's data with the actions of a policy that it never takes behind its own.

    Raises
    ------
    ValueError
        For an action of the log that the policy does not know.
    """
    data = log.data
    for name in data.names:
        if name not in actions:
            raise ValueError(
                f"{log.table.name}: the policy has no probability of the arm {name!r}; it has {', '.join(actions)}"
            )
    others = tuple(name for name in actions if name not in data.names)
    return LoggedData(data.actions, data.rewards, data.propensities, data.names + others)

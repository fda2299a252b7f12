"""A log, from a study file or a single file, ready for a policy made elsewhere; and all it says about that policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from envs.records import Feature, RecordSpace
from policies.arrays import FloatArray
from policysim.files.bad_rows import DataError
from policysim.files.data_table import PANDAS_INDEX, DataTable
from policysim.files.many_files import parts_of
from policysim.files.workers import Workers
from policysim.logs.counted_log import Counting, count_parts, open_log
from policysim.logs.load_log import Columns
from policysim.logs.log_frame import (
    ACTION,
    COLUMNS,
    PROPENSITY,
    REWARD,
    LoggedData,
    covariate_matrix,
    known_before,
    read_log_frame,
    summed,
)
from policysim.logs.log_source import EQUAL, ESTIMATE, REFUSE, Binning
from policysim.logs.outcome_models import check_outcome_model
from policysim.logs.read_log import NoPropensityError, read_log
from policysim.question.protocol import SILENT, Progress
from policysim.study.checks import Agreement
from policysim.study.declared import LoggedStudy, ScenarioStudy
from policysim.trials.arms import ArmDifference, arm_means, difference_from_best_arm
from policysim.trials.contraindicated import AllowedTreatments
from policysim.trials.diagnostics import censoring_words, outcome_words
from policysim.trials.estimate_value import cross_fit, estimate_value, estimator_named
from policysim.trials.estimators import OffPolicyEstimate, importance_weights
from policysim.trials.holes import where_caveats


@dataclass(frozen=True, eq=False)
class EvaluatedLog:
    """The rows of a log.

    Attributes
    ----------
    table : DataTable
        What is known of each row beside its action and reward; it can say where a row is.
    data : LoggedData
        Actions, rewards and propensities.
    known : DataFrame
        The columns of `table` that were known before treatment.
    predictors : tuple of str
        Those from which an outcome model can predict.
    missing : tuple of int
        For each action, the rows that were read without an outcome.
    missing_rule : str
        What was done with them: "refuse", "exclude" or "worst".
    n_read : int
        Rows that were read.
    estimated_propensities : bool
        Whether nobody knows the propensities, and they were estimated.
    looked_at : DataFrame or None
        Where overlap is looked for if not in `known`: the same before numbers were cut into levels.
    outcome, censoring : str
        In words, what the outcome is where it is not a column alone, and who is not followed to the horizon.
    """

    table: DataTable
    data: LoggedData
    known: pd.DataFrame
    predictors: tuple[str, ...]
    missing: tuple[int, ...]
    missing_rule: str
    n_read: int
    estimated_propensities: bool = False
    looked_at: pd.DataFrame | None = None
    outcome: str = ""
    censoring: str = ""


@dataclass(frozen=True, eq=False)
class UsedRows(DataTable):
    """The rows of a study's log that are used: fewer than in its files, where rows without an outcome are left out."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """Each row, counted from 1 among those that are used."""
        return [f"{self.name}: row {row + 1} of those with an outcome" for row in rows]


@dataclass(frozen=True, eq=False)
class CountedRows(DataTable):
    """The kinds of patients of a log that was counted."""

    def places(self, rows: Sequence[int]) -> list[str]:
        """A kind has no place among the rows."""
        return [self.name for _ in rows]


def read_study_log(study: LoggedStudy, workers: Workers | None = None, progress: Progress = SILENT) -> EvaluatedLog:
    """The log of a study, its patients known by the declared levels and bins of their features."""
    log = open_log(study.log, workers, progress)
    frame = log.space.decode(log.records)
    return EvaluatedLog(
        table=(UsedRows if log.data.counts is None else CountedRows)(study.name, frame),
        data=log.data,
        known=frame,
        predictors=log.space.names,
        missing=log.missing,
        missing_rule=study.log.missing,
        n_read=log.n_read,
        estimated_propensities=study.log.propensity == ESTIMATE,
        looked_at=log.covariates,
        outcome=outcome_words(study.log),
        censoring=censoring_words(log, study.log),
    )


def read_log_file(path: Path, actions: Sequence[str]) -> EvaluatedLog:
    """A .csv or .parquet file with the columns action, reward, propensity and covariates.

    Nothing is predicted from what `log_frame.known_before` leaves out, nor from columns that `covariate_matrix`
    refuses: those with gaps, for instance, or text with so many distinct values that it names patients.

    Parameters
    ----------
    actions : sequence of str
        Those of the policy that is evaluated; the log may hold no others.

    Raises
    ------
    DataError
        As `read_log`; where there are no propensities it says what to do.
    """
    try:
        frame = read_log(path, treatments={name: name for name in actions})
    except NoPropensityError:
        raise DataError(
            f"{path.as_posix()}: there is no column {PROPENSITY}: add it (the probability with which each patient got "
            f"the action that is logged), or write a study file, which may say {EQUAL!r} or {ESTIMATE!r} instead: "
            f"policysim init {path.as_posix()}"
        ) from None
    data = read_log_frame(frame)
    table = DataTable(path.as_posix(), frame.drop(columns=list(COLUMNS)), path)
    known = known_before(table.frame_of(table.columns))
    known = known[[name for name in known.columns if not str(name).startswith(PANDAS_INDEX)]]
    predictors = tuple(str(name) for name in known.columns if _predicts(known[[name]]))
    return EvaluatedLog(table, data, known, predictors, (0,) * data.n_actions, REFUSE, len(frame))


def count_log_file(path: Path, target: Target, workers: Workers, progress: Progress = SILENT) -> EvaluatedLog:
    """The same of a file, a folder or a pattern, whose rows are counted by what the policy knows of them.

    Raises
    ------
    DataError
        As `counted_log.count_parts`, and for a policy whose rows are those of the log.
    UsageError
        As `Workers.map`.
    """
    features = {feature.name: Binning(feature.name, feature.levels) for feature in target.features}
    actions = tuple((name, name) for name in target.actions)
    columns = Columns(ACTION, actions, PROPENSITY, {REWARD: 1.0}, None, REFUSE)
    records, found = count_parts(Counting(features, columns), parts_of(path), workers, progress)
    space = RecordSpace(tuple(binning.feature for binning in features.values()))
    frame = space.decode(records)
    propensities = np.asarray(found.propensities)
    data = LoggedData(found.actions, found.rewards, propensities, found.names, counts=found.counts)
    return EvaluatedLog(
        table=CountedRows(path.as_posix(), frame),
        data=data,
        known=frame,
        predictors=space.names,
        missing=(0,) * data.n_actions,
        missing_rule=REFUSE,
        n_read=data.n_patients,
    )


def _predicts(column: pd.DataFrame) -> bool:
    try:
        covariate_matrix(column)
    except (ValueError, TypeError):  # TypeError: of lists
        return False
    return True


def extended(log: EvaluatedLog, actions: Sequence[str]) -> LoggedData:
    """The log's data with the actions of a policy that it never takes behind its own.

    Raises
    ------
    DataError
        For an action of the log that the policy does not know.
    """
    data = log.data
    for name in data.names:
        if name not in actions:
            raise DataError(
                f"{log.table.name}: the policy has no probability of the arm {name!r}; it has {', '.join(actions)}"
            )
    others = tuple(name for name in actions if name not in data.names)
    return replace(data, names=data.names + others)


@dataclass(frozen=True)
class Exact:
    """What a policy is worth under a scenario's model.

    Attributes
    ----------
    value : float
        Per patient.
    spread : float
        How far two patients' rewards can be apart at most.
    """

    value: float
    spread: float


class Target(Protocol):
    """A policy to evaluate."""

    @property
    def title(self) -> str:
        """What it is, in words."""

    @property
    def privacy(self) -> str:
        """What is known of its privacy loss, in a sentence."""

    @property
    def actions(self) -> tuple[str, ...]:
        """In the order of its columns."""

    @property
    def exact(self) -> Exact | None:
        """Its exact value, where that is known."""

    @property
    def study(self) -> ScenarioStudy | None:
        """Whose contraindications it must keep to; None where nothing is known of any."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """What it knows of a patient; DataError if it knows only the patients' order."""

    def probabilities(self, table: DataTable) -> FloatArray:
        """p(a|x) for each row of a log, (n_rows, n_actions); ValueError lists rows that it does not cover."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A policy on a log.

    Attributes
    ----------
    arms : DataFrame
        See `arms.arm_means`.
    estimate : OffPolicyEstimate
        The policy's value.
    difference : ArmDifference
        From the best single arm.
    agreement : Agreement or None
        The estimate beside the exact value, where that is known.
    contraindicated : mapping of str to int
        How many patients must not get an arm, if there are any.
    """

    arms: pd.DataFrame
    estimate: OffPolicyEstimate
    difference: ArmDifference
    agreement: Agreement | None
    contraindicated: Mapping[str, int]


def evaluate(
    log: EvaluatedLog,
    target: Target,
    *,
    estimator: str,
    outcome_model: str,
    clip: float | None,
    seed: int,
    progress: Progress = SILENT,
) -> Evaluation:
    """Evaluate a policy on a log.

    The estimate agrees with the exact value if they are at most five standard errors apart, or by no more than outcomes
    can explain that are too rare to be in the log (`Agreement`): one row may count as often as the largest
    importance weight says.

    Raises
    ------
    DataError
        For a policy that gives a patient what is contraindicated, and as `extended` and `Target.probabilities`.
    """
    data = extended(log, target.actions)
    order = [target.actions.index(name) for name in data.names]
    probabilities = target.probabilities(log.table)[:, order]
    allowed = AllowedTreatments.of(target.study, data.names, log.table)
    contraindicated, mask = {}, None
    if allowed is not None:
        allowed.require(probabilities, data)
        mask = allowed.mask
        numbers = summed((~mask).astype(np.float64), data.counts).tolist()
        contraindicated = {name: int(number) for name, number in zip(data.names, numbers, strict=True) if number}
    fitted = None
    kind = estimator_named(estimator)
    if kind.needs_model:
        check_outcome_model(outcome_model, data.known.rewards, log.table)
        folds = min(kind.folds, data.n_rows if data.counts is None else data.n_patients)
        data, rows, dealt = data.dealt(folds, np.random.default_rng(seed))
        probabilities, known = probabilities[rows], log.known.iloc[rows]
        mask = None if mask is None else mask[rows]
        log = replace(log, known=known, looked_at=None if log.looked_at is None else log.looked_at.iloc[rows])
        fitted = cross_fit(
            data,
            covariate_matrix(known[list(log.predictors)]),
            outcome_model=outcome_model,
            folds=folds,
            seed=seed,
            dealt=dealt,
            progress=progress,
        )
    estimate = estimate_value(data, probabilities, estimator=estimator, fitted=fitted, clip=clip)
    estimate = replace(estimate, warnings=(*_where(data, probabilities, log), *estimate.warnings))
    difference = difference_from_best_arm(data, probabilities, mask, estimator=estimator, fitted=fitted, clip=clip)
    return Evaluation(arm_means(data), estimate, difference, _agreement(estimate, target), contraindicated)


def _where(data: LoggedData, probabilities: FloatArray, log: EvaluatedLog) -> list[str]:
    """To which patients the log seems never to give what the policy would."""
    weights = importance_weights(data, probabilities)
    looked_at = log.known if log.looked_at is None else log.looked_at
    return where_caveats(data, probabilities, weights.raw, looked_at)


def _agreement(estimate: OffPolicyEstimate, target: Target) -> Agreement | None:
    if target.exact is None:
        return None
    return Agreement(
        patients=estimate.n_rows,
        mean=estimate.value,
        standard_error=estimate.standard_error,
        exact=target.exact.value,
        spread=target.exact.spread * max(1.0, estimate.largest_weight),
    )

"""Evaluation: what a log says about a policy, all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from policies.arrays import FloatArray
from policysim.course.simulation import Simulation
from policysim.logs.log_frame import LoggedData, covariate_matrix
from policysim.logs.outcome_models import check_outcome_model
from policysim.question.progress import SILENT, Progress
from policysim.trials.arms import ArmDifference, arm_means, difference_from_best_arm
from policysim.trials.estimate_value import cross_fit, estimate_value, estimator_named
from policysim.trials.estimators import OffPolicyEstimate, importance_weights
from policysim.trials.evaluated_log import EvaluatedLog, Target, extended
from policysim.trials.holes import where_caveats


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
    agreement : Simulation or None
        The estimate beside the exact value, where that is known.
    """

    arms: pd.DataFrame
    estimate: OffPolicyEstimate
    difference: ArmDifference
    agreement: Simulation | None


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
    can explain that are too rare to be in the log (`simulation.Simulation`): one row may count as often as the largest
    importance weight says.
    """
    data = extended(log, target.actions)
    order = [target.actions.index(name) for name in data.names]
    probabilities = target.probabilities(log.table)[:, order]
    fitted = None
    kind = estimator_named(estimator)
    if kind.needs_model:
        check_outcome_model(outcome_model, data.rewards, log.table)
        covariates = covariate_matrix(log.known[list(log.predictors)])
        folds = min(kind.folds, data.n_rows)
        fitted = cross_fit(data, covariates, outcome_model=outcome_model, folds=folds, seed=seed, progress=progress)
    estimate = estimate_value(data, probabilities, estimator=estimator, fitted=fitted, clip=clip)
    estimate = replace(estimate, warnings=(*_where(data, probabilities, log), *estimate.warnings))
    difference = difference_from_best_arm(data, probabilities, estimator=estimator, fitted=fitted, clip=clip)
    return Evaluation(arm_means(data), estimate, difference, _agreement(estimate, target))


def _where(data: LoggedData, probabilities: FloatArray, log: EvaluatedLog) -> list[str]:
    """To which patients the log seems never to give what the policy would."""
    weights = importance_weights(data, probabilities)
    looked_at = log.known if log.looked_at is None else log.looked_at
    return where_caveats(data, probabilities, weights.raw, looked_at)


def _agreement(estimate: OffPolicyEstimate, target: Target) -> Simulation | None:
    if target.exact is None:
        return None
    return Simulation(
        patients=estimate.n_rows,
        mean=estimate.value,
        standard_error=estimate.standard_error,
        exact=target.exact.value,
        spread=target.exact.spread * max(1.0, estimate.largest_weight),
    )

"""From arrays to an estimate, and what each row adds to it."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from policies.arrays import FloatArray
from policysim.offpolicy.caveats import MODEL_BIAS, model_caveats, overlap_caveats, spread_caveats, weight_caveats
from policysim.offpolicy.checks import one_of
from policysim.offpolicy.cross_fitting import CrossFit, direct_method, row_values
from policysim.offpolicy.estimators import Moments, doubly_robust, ips, moments, snips
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.result import OffPolicyEstimate
from policysim.offpolicy.weights import Weights, importance_weights

ESTIMATORS = ("ips", "snips", "dm", "dr")
NEED_MODEL = ("dm", "dr")
UPPER = 0.975  # of a 95 % interval


def estimate_value(
    log: LoggedData,
    probabilities: FloatArray,
    *,
    estimator: str = "dr",
    fitted: CrossFit | None = None,
    clip: float | None = None,
) -> OffPolicyEstimate:
    """Estimate the value of a policy from a log: the core of `evaluate_log`, on arrays that are already checked.

    Parameters
    ----------
    log : LoggedData
        Actions, rewards and propensities.
    probabilities : array, (n_rows, k)
        p(a|x) of the evaluated policy for each row.
    estimator : str
        "ips", "snips", "dm" or "dr".
    fitted : CrossFit, optional
        Outcome models of this log; needed for "dm" and "dr".
    clip : float, optional
        The most that an importance weight may be.

    Raises
    ------
    ValueError
        For an unknown estimator, a model that is missing, a clip out of range, or a log that never does what the
        policy would.
    """
    one_of(estimator, ESTIMATORS, "estimator")
    weights = importance_weights(log, probabilities, clip)
    shares = probabilities.T @ np.full(log.n_rows, 1 / log.n_rows)  # ten times as fast as a mean over long columns
    caveats = overlap_caveats(log, shares, weights.raw)
    if estimator == "dm":
        model = _needed(fitted, estimator)
        value, error = direct_method(probabilities, model)
        quantile = float(stdtrit(len(model.models) - 1, UPPER))
        caveats += [*spread_caveats(Moments(log.n_rows, value, error)), MODEL_BIAS]
    else:
        found = moments(contributions(log, probabilities, weights, estimator=estimator, fitted=fitted))
        value, error, quantile = found.mean, found.standard_error, found.quantile
        caveats += weight_caveats(weights, clip) + spread_caveats(found)
    if estimator in NEED_MODEL:
        caveats += model_caveats(log, shares, _needed(fitted, estimator).thin)
    return OffPolicyEstimate(
        value=value,
        standard_error=error,
        interval=(value - quantile * error, value + quantile * error),
        ess=weights.ess,
        largest_weight=weights.largest,
        clipped_share=weights.clipped_share,
        warnings=tuple(caveats),
        estimator=estimator,
        n_rows=log.n_rows,
    )


def contributions(
    log: LoggedData,
    probabilities: FloatArray,
    weights: Weights,
    *,
    estimator: str = "dr",
    fitted: CrossFit | None = None,
) -> FloatArray:
    """What each row adds: the estimate is their mean, (n_rows,).

    The difference of two policies on the same log has the standard error of the mean of the difference of their
    contributions, much smaller than the two errors added. The direct method has no such rows.
    """
    if not weights.used.any():
        raise ValueError("no row of the log does anything that the evaluated policy would: it cannot be evaluated.")
    if estimator == "ips":
        return ips(weights.used, log.rewards)
    if estimator == "snips":
        return snips(weights.used, log.rewards)
    predictions = _needed(fitted, estimator).predictions
    return doubly_robust(weights.used, log.rewards, row_values(probabilities, predictions), log.of_taken(predictions))


def _needed(fitted: CrossFit | None, estimator: str) -> CrossFit:
    if fitted is None:
        raise ValueError(f"estimator={estimator!r} needs an outcome model: pass fitted=cross_fit(...).")
    return fitted

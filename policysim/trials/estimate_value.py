"""From arrays to an estimate: the estimators, with the computations and words of each.

Cross-fitting: each row's reward is predicted by a model that was fitted without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from policies.arrays import ROUNDING, FloatArray, IntArray
from policysim.files.bad_rows import DataError
from policysim.logs.log_frame import LoggedData, averaged, check_seed, one_of, summed
from policysim.logs.outcome_models import FEWEST_ROWS, OutcomeModel, check_outcome_model, fit_to_log
from policysim.progress import SILENT, Progress
from policysim.trials.estimators import (
    MODEL_BIAS,
    Moments,
    OffPolicyEstimate,
    doubly_robust,
    effective_size,
    importance_weights,
    ips,
    moments,
    overlap_caveats,
    range_caveats,
    snips,
    spread_caveats,
    weight_caveats,
)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Outcome models of a log, one for each fold, fitted on all other folds.

    Attributes
    ----------
    covariates : array, (n_rows, n_covariates)
        What they predict from.
    folds : array, (n_rows,)
        The fold of each row, 0 to K - 1.
    models : tuple of OutcomeModel
        Model j was fitted without fold j.
    predictions : array, (n_rows, k)
        q(x, a) of each row, by the model that was fitted without it.
    thin : tuple of int
        Actions with fewer than 10 rows in the training part of some fold, for which it predicts a mean.
    counts : array of int, (n_rows,), or None
        How many patients each row stands for; None: one each.
    """

    covariates: FloatArray
    folds: IntArray
    models: tuple[OutcomeModel, ...]
    predictions: FloatArray
    thin: tuple[int, ...]
    counts: IntArray | None = None


def cross_fit(
    log: LoggedData,
    covariates: FloatArray,
    *,
    outcome_model: str = "linear",
    folds: int = 5,
    seed: int = 0,
    dealt: IntArray | None = None,
    progress: Progress = SILENT,
) -> CrossFit:
    """Fit an outcome model for each fold of a log's rows.

    Parameters
    ----------
    log : LoggedData
        Actions and rewards to fit.
    covariates : array, (n_rows, n_covariates)
        Finite numbers.
    outcome_model : str
        See `outcome_models.fit_to_log`.
    folds : int
        K, >= 2 and at most the number of rows, or of clusters; the folds differ by at most one of these.
    seed : int
        Decides which row falls into which fold.
    dealt : array, (n_rows,), optional
        The fold of each row, where that is decided already.
    progress : Progress, optional
        Reports each fold.

    Raises
    ------
    ValueError
        For an unknown model, rewards that it cannot take, or folds or a seed out of range.
    """
    most = log.n_rows if log.clusters is None else log.n_units
    if isinstance(folds, bool) or not isinstance(folds, Integral) or not 2 <= folds <= most:
        units = "rows" if log.clusters is None else "clusters"
        raise ValueError(f"folds must be from 2 to the number of {units} ({most:,}), got folds={folds!r}.")
    check_seed(seed)
    check_outcome_model(outcome_model, log.known.rewards)
    if dealt is None:
        _, _, dealt = replace(log, counts=None).dealt(int(folds), np.random.default_rng(seed))
    predictions = np.empty((log.n_rows, log.n_actions))
    models, fewest = [], np.full(log.n_actions, log.n_patients)
    progress.expect(int(folds))
    for fold in range(int(folds)):
        rest = dealt != fold
        mine = log.of(rest)
        model = fit_to_log(outcome_model, covariates[rest], mine, seed=seed)
        predictions[~rest] = model.predict(covariates[~rest])
        models.append(model)
        np.minimum(fewest, mine.by_action(mine.known.weights > 0), out=fewest)
        progress.advance()
    thin = tuple(np.flatnonzero(fewest < FEWEST_ROWS).tolist())
    return CrossFit(covariates, dealt, tuple(models), predictions, thin, log.counts)


def direct_method(probabilities: FloatArray, fitted: CrossFit, costs: FloatArray | None = None) -> tuple[float, float]:
    """The direct method: the mean of sum_a p(a|x) q(x, a) over the rows, and its standard error.

    `costs`, (k,), are taken off q(x, a).

    The spread of these numbers over the rows says nothing about how far off q itself is. The standard error is that of
    the delete-a-group jackknife (Kott 2001, equation 1), the groups being the folds: with v_j the value over the rows
    outside fold j under the model that never saw fold j, and v their mean, the variance is
    (K - 1) / K sum_j (v_j - v)^2, with K - 1 degrees of freedom. It covers the rows and the fit; it cannot see the bias
    of a wrong model. With 5 folds it is off by 35 % (one standard deviation), with 20 by 16 %: use 20.
    """
    taken_off = 0.0 if costs is None else costs
    value = float(averaged(row_values(probabilities, fitted.predictions - taken_off), fitted.counts))
    left_out = []
    for fold, model in enumerate(fitted.models):
        rest = fitted.folds != fold
        values = row_values(probabilities[rest], model.predict(fitted.covariates[rest]) - taken_off)
        left_out.append(float(averaged(values, None if fitted.counts is None else fitted.counts[rest])))
    spread = np.array(left_out) - np.mean(left_out)
    n_folds = len(left_out)
    error = float(np.sqrt((n_folds - 1) / n_folds * (spread @ spread)))
    return value, 0.0 if error <= ROUNDING * abs(value) else error


def row_values(probabilities: FloatArray, predictions: FloatArray) -> FloatArray:
    """sum_a p(a|x) q(x, a) of each row, (n_rows, k) and (n_rows, k) -> (n_rows,)."""
    values: FloatArray = np.einsum("ij,ij->i", probabilities, predictions)
    return values


class Estimator(NamedTuple):
    """The computations and words of an off-policy estimator: another one is another entry of `ESTIMATORS`.

    Attributes
    ----------
    title : str
        In words.
    contribution : callable or None
        What each row adds, so that the estimate is the mean, (n_rows,): of the log, the probabilities of the evaluated
        policy, (n_rows, k), the weights in use, (n_rows,), and the predictions of the outcome models, (n_rows, k), or
        None where it takes none. None for the direct method, whose rows say nothing about its error.
    folds : int
        By how many outcome models it is cross-fitted, if nobody says otherwise; 0 for one that needs none.
    doubt : str
        What may be behind an estimate that is not the exact value.
    """

    title: str
    contribution: Callable[[LoggedData, FloatArray, FloatArray, Any], FloatArray] | None
    folds: int = 0
    doubt: str = "Other patients, utilities or propensities made the log, or overlap fails"


ESTIMATORS = {
    "ips": Estimator("inverse propensity", lambda log, _, weights, __: ips(weights, log.rewards)),
    "snips": Estimator("self-normalised", lambda log, _, weights, __: snips(weights, log.rewards, log.counts)),
    # Its standard error is made from the folds, and is as rough as they are few.
    "dm": Estimator("direct method", None, 20, "The direct method is as wrong as its outcome model"),
    "dr": Estimator(
        "doubly robust",
        lambda log, probabilities, weights, predictions: doubly_robust(
            weights, log.rewards, row_values(probabilities, predictions), log.of_taken(predictions)
        ),
        5,
    ),
}
# Those that take an outcome model.
NEED_MODEL = tuple(name for name, kind in ESTIMATORS.items() if kind.folds)


def mean_of(
    estimator: str,
    log: LoggedData,
    policies: Sequence[FloatArray],
    fitted: CrossFit | None = None,
    clip: float | None = None,
) -> Moments:
    """The value of a policy, or of one minus another.

    The difference of two policies on the same log has the standard error of the mean of the difference of what their
    rows add, much smaller than the two errors added. The direct method is linear in the probabilities.
    """
    one_of(estimator, tuple(ESTIMATORS), "estimator")
    kind = ESTIMATORS[estimator]
    if kind.folds and fitted is None:
        raise ValueError(f"estimator={estimator!r} needs an outcome model: pass fitted=cross_fit(...).")
    if kind.contribution is None and fitted is not None:
        apart = policies[0] if len(policies) == 1 else policies[0] - policies[1]
        value, error = direct_method(apart, fitted, log.costs)
        return Moments(len(fitted.models), value, error)
    rows = []
    for place, probabilities in enumerate(policies):
        used = importance_weights(log, probabilities, clip)
        if not used.any() and (place == 0 or estimator == "snips"):
            raise DataError("no row of the log does anything that the evaluated policy would: it cannot be evaluated.")
        assert kind.contribution is not None
        mine = kind.contribution(log, probabilities, used, fitted.predictions if kind.folds and fitted else None)
        # What actions cost is known, and not weighted.
        rows.append(mine if log.costs is None else mine - probabilities @ log.costs)
    return moments(rows[0] if len(rows) == 1 else rows[0] - rows[1], log.counts, clusters=log.clusters)


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
    found = mean_of(estimator, log, [probabilities], fitted, clip)
    weights = importance_weights(log, probabilities)
    used = weights if clip is None else np.minimum(weights, clip)
    # Rows without an outcome are made up for by the others, whose weights grow.
    ess, total = effective_size(used * log.known.weights, log.counts), float(summed(weights, log.counts))
    # What clipping cut off.
    clipped = 1 - float(summed(used, log.counts)) / total if clip is not None and total > 0 else 0.0
    # A product is ten times as fast as a mean over long columns.
    each = np.full(log.n_rows, 1 / log.n_rows) if log.counts is None else log.counts / log.n_patients
    shares = probabilities.T @ each
    caveats, kind = overlap_caveats(log, shares, weights), ESTIMATORS[estimator]
    interval = found.interval
    if kind.contribution is None:  # of few folds it is Student's
        reach = found.reach * found.standard_error
        interval = found.mean - reach, found.mean + reach
    caveats += range_caveats("the value", found.mean, interval, (0.0, 1.0)) if log.is_binary else []
    caveats += weight_caveats(ess, log.n_patients, clip, clipped) if kind.contribution else []
    caveats += spread_caveats(found) + ([] if kind.contribution else [MODEL_BIAS])
    thin = [log.names[action] for action in fitted.thin if shares[action] > 0] if kind.folds and fitted else []
    if thin:
        caveats.append(f"too few rows to model the outcome of {', '.join(thin)}: a mean stands in for it.")
    return OffPolicyEstimate(
        value=found.mean,
        standard_error=found.standard_error,
        interval=interval,
        ess=ess,
        largest_weight=float(weights.max()),
        clipped_share=clipped,
        warnings=tuple(caveats),
        estimator=estimator,
        n_rows=log.n_patients,
    )

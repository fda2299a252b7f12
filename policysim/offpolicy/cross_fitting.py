"""Cross-fitting: each row's reward is predicted by a model that was fitted without it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from policies.arrays import ROUNDING, FloatArray, IntArray
from policysim.offpolicy.checks import check_seed
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.outcome_models import FEWEST_ROWS, OutcomeModel, check_outcome_model, fit_outcome_model


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
    """

    covariates: FloatArray
    folds: IntArray
    models: tuple[OutcomeModel, ...]
    predictions: FloatArray
    thin: tuple[int, ...]


def cross_fit(
    log: LoggedData, covariates: FloatArray, *, outcome_model: str = "linear", folds: int = 5, seed: int = 0
) -> CrossFit:
    """Fit an outcome model for each fold of a log's rows.

    Parameters
    ----------
    log : LoggedData
        Actions and rewards to fit.
    covariates : array, (n_rows, n_covariates)
        Finite numbers.
    outcome_model : str
        See `fit_outcome_model`.
    folds : int
        K, >= 2 and at most the number of rows; the folds differ by at most one row.
    seed : int
        Decides which row falls into which fold.

    Raises
    ------
    ValueError
        For an unknown model, rewards that it cannot take, or folds or a seed out of range.
    """
    if isinstance(folds, bool) or not isinstance(folds, Integral) or not 2 <= folds <= log.n_rows:
        raise ValueError(f"folds must be from 2 to the number of rows ({log.n_rows:,}), got folds={folds!r}.")
    check_seed(seed)
    check_outcome_model(outcome_model, log.rewards)
    fold_of: IntArray = np.random.default_rng(seed).permutation(log.n_rows) % int(folds)
    predictions = np.empty((log.n_rows, log.n_actions))
    models, fewest = [], np.full(log.n_actions, log.n_rows)
    for fold in range(int(folds)):
        rest = fold_of != fold
        actions, rewards = log.actions[rest], log.rewards[rest]
        model = fit_outcome_model(outcome_model, covariates[rest], actions, rewards, log.n_actions, seed=seed)
        predictions[~rest] = model.predict(covariates[~rest])
        models.append(model)
        np.minimum(fewest, np.bincount(actions, minlength=log.n_actions), out=fewest)
    thin = tuple(np.flatnonzero(fewest < FEWEST_ROWS).tolist())
    return CrossFit(covariates, fold_of, tuple(models), predictions, thin)


def direct_method(probabilities: FloatArray, fitted: CrossFit) -> tuple[float, float]:
    """The direct method: the mean of sum_a p(a|x) q(x, a) over the rows, and its standard error.

    The spread of these numbers over the rows says nothing about how far off q itself is. The standard error is that of
    the delete-a-group jackknife (Kott 2001, equation 1), the groups being the folds: with v_j the value over the rows
    outside fold j under the model that never saw fold j, and v their mean, the variance is
    (K - 1) / K sum_j (v_j - v)^2, with K - 1 degrees of freedom. It covers the rows and the fit; it cannot see the bias
    of a wrong model. With 5 folds it is off by 35 % (one standard deviation), with 20 by 16 %: use 20.
    """
    value = float(row_values(probabilities, fitted.predictions).mean())
    left_out = []
    for fold, model in enumerate(fitted.models):
        rest = fitted.folds != fold
        left_out.append(float(row_values(probabilities[rest], model.predict(fitted.covariates[rest])).mean()))
    spread = np.array(left_out) - np.mean(left_out)
    n_folds = len(left_out)
    error = float(np.sqrt((n_folds - 1) / n_folds * (spread @ spread)))
    return value, 0.0 if error <= ROUNDING * abs(value) else error


def row_values(probabilities: FloatArray, predictions: FloatArray) -> FloatArray:
    """sum_a p(a|x) q(x, a) of each row, (n_rows, k) and (n_rows, k) -> (n_rows,)."""
    values: FloatArray = np.einsum("ij,ij->i", probabilities, predictions)
    return values

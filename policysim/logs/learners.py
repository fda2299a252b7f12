"""Which outcome model to fit, chosen from the rows alone: how far its scores may leave the arms' means.

Scores that merely follow chance choose worse than one treatment for all. So a model's scores are shrunk to the means of
the arms, by as much as held-out rows of the same training part say, and the arms' means win where nothing is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from policies.arrays import FloatArray, IntArray
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.outcome_models import (
    CHOSEN,
    CONSTANT,
    LINEAR,
    LOGISTIC,
    SMALL_TREES,
    OutcomeModel,
    fit_outcome_model,
)

FOLDS = 4


def fit_to_log(name: str, covariates: FloatArray, data: LoggedData, *, seed: int = 0) -> OutcomeModel:
    """Fit q(x, a) to a log: `fit_outcome_model` on what is known of its outcomes, or the model that is "chosen".

    Parameters
    ----------
    name : str
        An outcome model; or "chosen": see `chosen_model`.
    covariates : array, (n_rows, n_covariates)
        Finite numbers.
    data : LoggedData
        The rows to fit to.
    seed : int
        For boosting, and for the folds of the choice.

    Raises
    ------
    ValueError
        As `fit_outcome_model`.
    """
    if name == CHOSEN:
        return chosen_model(covariates, data, seed)
    known = data.known
    return fit_outcome_model(
        name,
        covariates,
        data.actions,
        known.rewards,
        data.n_actions,
        weights=known.weights,
        counts=data.counts,
        seed=seed,
    )


def chosen_model(covariates: FloatArray, data: LoggedData, seed: int) -> OutcomeModel:
    """The arms' means, a regression or small boosted trees, shrunk to the arms' means.

    The regression is logistic for outcomes of 0 and 1, else linear. Each candidate predicts every row from the other
    folds of these same rows; `follows` says how well its differences between arms agree with what was seen. With slope
    b and z = b over its standard error, the scores become m + (q - m) times min(1, b (1 - 1 / z^2)), m the mean of the
    arm: the slope of the best linear predictor (Chernozhukov, Demirer, Duflo & Fernandez-Val 2018) under the positive
    part of James and Stein's factor. The candidate of the largest z is taken if that is above 1 (the one-standard-error
    rule of Breiman et al. 1984), else the means alone.
    """
    folds: IntArray = np.random.default_rng(seed).permutation(data.n_rows) % FOLDS
    means = fit_to_log(CONSTANT, covariates, data)
    best, candidate, shrink = 1.0, "", 0.0
    for name in (LOGISTIC if data.is_binary else LINEAR, SMALL_TREES):
        predicted = np.empty((data.n_rows, data.n_actions))
        for fold in range(FOLDS):
            own, rest = folds == fold, folds != fold
            model = fit_to_log(name, covariates[rest], data.of(rest), seed=seed)
            predicted[own] = model.predict(covariates[own])
        slope, z = follows(data, predicted, folds)
        if z > best:
            best, candidate, shrink = z, name, min(1.0, slope * (1 - 1 / z**2))
    if not candidate:
        return means
    model = fit_to_log(candidate, covariates, data, seed=seed)
    levels = means.predict(covariates[:1])[0]
    return replace(
        model,
        regressions=tuple(
            _shrunk(predict, float(level), shrink) for predict, level in zip(model.regressions, levels, strict=True)
        ),
    )


def follows(data: LoggedData, predicted: FloatArray, folds: IntArray) -> tuple[float, float]:
    """How predicted differences between arms go with what was seen: the slope, and it over its standard error.

    Parameters
    ----------
    predicted : array, (n_rows, k)
        q(x, a) of each row, by a model that was fitted without it.
    folds : array, (n_rows,)
        Rows that share a model.

    Returns
    -------
    slope, z : float
        1 where differences are as large as predicted; 0 and 0 where none are predicted.

    Notes
    -----
    The doubly robust score of an arm is q(x, a) + 1{a} (r - q(x, a)) / propensity (Robins, Rotnitzky & Zhao 1994). From
    it and from q the mean over the arms is taken away, and from each arm its mean over the fold: what is left is how
    patients differ in what the arms do to them. The slope is that of the scores on q through 0, over rows and arms.
    """
    slope_part, size = contrasts(data, predicted, folds)
    total = float(size.sum())
    if total <= 0:
        return 0.0, 0.0
    slope = float(slope_part.sum()) / total
    error = float(np.sqrt(((slope_part - slope * size) ** 2).sum())) / total
    return slope, slope / error if error > 0 else 0.0


def contrasts(data: LoggedData, predicted: FloatArray, folds: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of each row: the sum over arms of score times prediction, and of prediction squared, both centred, (n_rows,)."""
    scores = predicted.copy()
    rows = np.arange(data.n_rows)
    scores[rows, data.actions] += (data.rewards - data.of_taken(predicted)) / data.propensities
    seen, told = _centred(scores, folds, data.counts), _centred(predicted, folds, data.counts)
    return (seen * told).sum(axis=1), (told * told).sum(axis=1)


def _centred(table: FloatArray, folds: IntArray, counts: IntArray | None) -> FloatArray:
    """Without the mean of each row, and then of each column in each fold; 0 where only rounding is left."""
    apart: FloatArray = table - table.mean(axis=1, keepdims=True)
    for fold in np.unique(folds):
        rows = folds == fold
        apart[rows] -= averaged(apart[rows], None if counts is None else counts[rows])
    apart[np.abs(apart) <= 1e-12 * (1 + np.abs(table))] = 0.0
    return apart


def _shrunk(predict: Callable[[FloatArray], FloatArray], level: float, by: float) -> Callable[[FloatArray], FloatArray]:
    return lambda covariates: level + by * (predict(covariates) - level)

"""Models of the expected reward q(x, a), by name, from scikit-learn: one regression for each action.

Scores that merely follow chance choose worse than one treatment for all. So the model that is "chosen" from the rows
alone is shrunk to the means of the arms, by as much as held-out rows of the same training part say, and the arms' means
win where nothing is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from threadpoolctl import ThreadpoolController

from policies.arrays import ROUNDING, FloatArray, IntArray
from policysim.errors import optional
from policysim.files.bad_rows import BadRows
from policysim.files.data_table import DataTable
from policysim.logs.log_frame import REWARD, LoggedData, averaged, one_of
from policysim.logs.log_source import CHOSEN, CONSTANT, LINEAR, LOGISTIC, OUTCOME_MODELS, STACKED

# With fewer rows of an action there is nothing to fit but a mean.
FEWEST_ROWS = 10
# Ridge penalties, in rows: the best by leave-one-out error is taken (Golub, Heath & Wahba 1979).
PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
# Parts in which the rows of one fit are held out from each other, to choose among models or to stack them.
FOLDS = 4
# Products of more than about 40 covariates are too many.
MOST_PRODUCTS = 800
# What "chosen" tries beside a regression: ridge regression on the covariates and their pairwise products.
PRODUCTS = "products"
# What is stacked. Trees are few and small, as many are fitted.
SMALL_TREES = "small-trees"
FEW_TREES = {"max_iter": 40, "max_leaf_nodes": 8, "max_bins": 32}
STACK = (LINEAR, PRODUCTS, SMALL_TREES)
# Rows to predict, (m, n_covariates) -> (m,).
Predictor: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class OutcomeModel:
    """A fitted model of the reward.

    Attributes
    ----------
    centre, spread : array, (n_covariates,)
        Covariates are centred and divided by these.
    regressions : tuple
        For each action: what predicts its reward from covariates, (m, n_covariates) -> (m,).
    """

    centre: FloatArray
    spread: FloatArray
    regressions: tuple[Predictor, ...]

    def predict(self, covariates: FloatArray) -> FloatArray:
        """q(x, a), the expected reward of each row under each action: (m, n_covariates) -> (m, k)."""
        scaled = (covariates - self.centre) / self.spread
        return np.column_stack([predict(scaled) for predict in self.regressions])


def check_outcome_model(name: str, rewards: FloatArray, table: DataTable | None = None) -> None:
    """ValueError for an unknown name; DataError for rewards that are not 0 or 1 where a probability is modelled."""
    one_of(name, OUTCOME_MODELS, "outcome_model")
    if name == LOGISTIC:
        bad, must = BadRows(), f"must be 0 or 1 for the outcome model {LOGISTIC}"
        place = table or DataTable("log", pd.DataFrame({REWARD: rewards}))
        bad.add(place, ~np.isin(rewards, (0, 1)), REWARD, lambda row: f"{must}, got {rewards[row]:g}")
        bad.raise_if_any()


def fit_to_log(name: str, covariates: FloatArray, data: LoggedData, *, seed: int = 0) -> OutcomeModel:
    """Fit q(x, a) to what is known of a log's outcomes.

    Parameters
    ----------
    name : str
        "linear": ridge regression, its penalty chosen by leave-one-out error. "logistic": penalised logistic
        regression, for rewards of 0 and 1. "gradient-boosting": scikit-learn's histogram gradient boosting.
        "constant": the mean of each action. "stacked": ridge regression, the same with pairwise products, and small
        boosted trees, weighted by held-out rows. "chosen": see `chosen_model`.
        An action of fewer than 10 rows gets their mean reward instead; one of none, the mean reward of all rows.
    covariates : array, (n_rows, n_covariates)
        Finite numbers.
    data : LoggedData
        The rows to fit to; those of weight 0 have no part.
    seed : int
        For boosting, and for the folds of the choice.

    Raises
    ------
    ValueError
        For an unknown name, or rewards other than 0 and 1 with "logistic".
    """
    if name == CHOSEN:
        return chosen_model(covariates, data, seed)
    known = data.known
    if name != PRODUCTS:
        check_outcome_model(name, known.rewards)
    centre = averaged(covariates, data.counts)
    spread = np.sqrt(averaged((covariates - centre) ** 2, data.counts))
    spread[spread <= 10 * ROUNDING * np.abs(centre)] = 1  # a constant column
    scaled = (covariates - centre) / spread
    weights = known.weights * data.sizes
    regressions = []
    for action in range(data.n_actions):
        rows = (data.actions == action) & (weights > 0)
        rewards = known.rewards[rows]
        if name == CONSTANT or data.sizes[rows].sum() < FEWEST_ROWS or np.ptp(rewards) == 0:
            among = rows if rows.any() else weights > 0
            regressions.append(_constant(float(np.average(known.rewards[among], weights=weights[among]))))
        else:
            regressions.append(_fit(name, scaled[rows], data.of(rows), seed))
    return OutcomeModel(centre, spread, tuple(regressions))


def predicted_without(
    name: str, covariates: FloatArray, data: LoggedData, parts: IntArray, *, seed: int = 0
) -> FloatArray:
    """q(x, a) of each row by a model, see `fit_to_log`, that was fitted without the rows of its part, (n_rows, k).

    If no outcome is known in the other parts, as of a handful of rows, the model is fitted to all.
    """
    predicted = np.empty((data.n_rows, data.n_actions))
    for part in np.unique(parts):
        held_out = parts == part
        rest = ~held_out if data.known.weights[~held_out].any() else np.ones_like(held_out)
        model = fit_to_log(name, covariates[rest], data.of(rest), seed=seed)
        predicted[held_out] = model.predict(covariates[held_out])
    return predicted


def _constant(value: float) -> Predictor:
    return lambda covariates: np.full(len(covariates), value)


def _fit(name: str, covariates: FloatArray, data: LoggedData, seed: int) -> Predictor:
    """Fit one action's regression to its rows; scikit-learn is imported here, as that takes a second."""
    if name == LINEAR:
        return _fit_ridge(covariates, data)
    if name == PRODUCTS:
        ridge = _fit_ridge(with_products(covariates), data)
        return lambda rows: ridge(with_products(rows))
    if name == STACKED:
        return _fit_stack(covariates, data, seed)
    rewards, weights = data.known.rewards, data.known.weights * data.sizes
    with optional():
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    if name == LOGISTIC:
        logistic = LogisticRegression(max_iter=1000).fit(covariates, rewards, weights)
        return lambda rows: np.asarray(logistic.predict_proba(rows)[:, 1])
    options = FEW_TREES if name == SMALL_TREES else {}
    with one_thread():
        trees = HistGradientBoostingRegressor(random_state=seed, **options)
        # Of equal weights scikit-learn finds the bins of numbers many times as fast without them.
        trees.fit(covariates, rewards, None if (weights == 1).all() else weights)

    def predict(rows: FloatArray) -> FloatArray:
        with one_thread():
            return np.asarray(trees.predict(rows))

    return predict


def with_products(covariates: FloatArray) -> FloatArray:
    """The covariates, (m, p), and after them their pairwise products, unless they are more than `MOST_PRODUCTS`."""
    one, other = np.triu_indices(covariates.shape[1], 1)
    if len(one) > MOST_PRODUCTS:
        return covariates
    return np.hstack([covariates, covariates[:, one] * covariates[:, other]])


def one_thread() -> Any:
    """For boosted trees: where others use the processors too, more threads wait for each other for long."""
    return _threads().limit(limits=1)


@cache
def _threads() -> Any:
    return ThreadpoolController()


def _fit_stack(covariates: FloatArray, data: LoggedData, seed: int) -> Predictor:
    """What three regressions add to the mean, each with a weight >= 0: those that predict held-out rows best.

    Breiman 1996, Stacked regressions; van der Laan, Polley & Hubbard 2007, Super learner.
    """
    rewards, weights = data.known.rewards, data.known.weights * data.sizes
    folds = replace(data, counts=None).dealt(FOLDS, np.random.default_rng(seed))[2]
    predictions = np.empty((data.n_rows, len(STACK)))
    for fold, (column, name) in product(range(FOLDS), enumerate(STACK)):
        held_out, rest = folds == fold, folds != fold
        predictions[held_out, column] = _fit(name, covariates[rest], data.of(rest), seed)(covariates[held_out])
    root, mean = np.sqrt(weights), float(np.average(rewards, weights=weights))
    shares = nnls((predictions - mean) * root[:, None], (rewards - mean) * root)[0]
    fits = [_fit(name, covariates, data, seed) for name in STACK]
    return lambda rows: mean + (np.column_stack([predict(rows) for predict in fits]) - mean) @ shares


def _fit_ridge(covariates: FloatArray, data: LoggedData) -> Predictor:
    """Ridge regression, its penalty that of least leave-one-out error; of counted rows, one patient is left out.

    With A = X'CWX + penalty, X centred, C the counts and W the weights of one patient each, a patient has leverage
    h = w (1 / sum CW + x'A^-1 x), and the residual without the patient is (r - fitted) / (1 - h) (Golub, Heath & Wahba
    1979), whose square counts w times.
    """
    rewards, weight = data.known.rewards, data.known.weights
    weights = data.sizes * weight
    total, centre = weights.sum(), weights @ covariates / weights.sum()
    mean, apart = float(weights @ rewards / total), covariates - centre
    gram, right = (apart.T * weights) @ apart, (apart.T * weights) @ (rewards - mean)
    values, vectors = np.linalg.eigh(gram)
    turned = apart @ vectors
    inverses = 1 / (np.maximum(values, 0)[:, None] + np.array(PENALTIES))
    of_penalties = inverses * (vectors.T @ right)[:, None]
    leverage = weight[:, None] * (1 / total + (turned * turned) @ inverses)
    left_out = (rewards[:, None] - mean - turned @ of_penalties) / (1 - leverage)
    slopes = vectors @ of_penalties[:, int(np.argmin(weights @ (left_out * left_out)))]
    return lambda rows: mean + (rows - centre) @ slopes


def chosen_model(covariates: FloatArray, data: LoggedData, seed: int) -> OutcomeModel:
    """The arms' means, a regression, or one with pairwise products, shrunk to the arms' means.

    Both are ridge regressions. Each candidate predicts every row from the other folds of these same rows; `follows`
    says how well its differences between arms agree with what was seen. With slope b and z = b over its standard error,
    the scores become m + (q - m) times min(1, b (1 - 1 / z^2)), m the mean of the arm: the slope of the best linear
    predictor (Chernozhukov, Demirer, Duflo & Fernandez-Val 2018) under the positive part of James and Stein's factor.
    The candidate of the largest z is taken if that is above 1 (the one-standard-error rule of Breiman et al. 1984),
    else the means alone.
    """
    folds = replace(data, counts=None).dealt(FOLDS, np.random.default_rng(seed))[2]
    means = fit_to_log(CONSTANT, covariates, data)
    best, candidate, shrink = 1.0, "", 0.0
    for name in (LINEAR, PRODUCTS):
        slope, z = follows(data, predicted_without(name, covariates, data, folds, seed=seed), folds)
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
    apart: FloatArray = slope_part - slope * size
    if data.clusters is not None:
        apart = np.bincount(data.clusters, apart).astype(np.float64)
    error = float(np.sqrt((apart**2).sum())) / total
    return slope, slope / error if error > 0 else 0.0


def contrasts(data: LoggedData, predicted: FloatArray, folds: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of each row: the sum over arms of value times prediction, and of prediction squared, both centred, (n_rows,)."""
    values = _centred(robust_values(data, predicted), folds, data.counts)
    predictions = _centred(predicted, folds, data.counts)
    return (values * predictions).sum(axis=1), (predictions**2).sum(axis=1)


def robust_values(data: LoggedData, predicted: FloatArray) -> FloatArray:
    """The doubly robust value of each action to each row, (n_rows, k): q(x, a) + 1{a} (r - q(x, a)) / propensity.

    With q fitted without the row, the mean over the rows of sum_a p(a|x) of it is the cross-fitted estimate of a policy
    (Robins, Rotnitzky & Zhao 1994; Chernozhukov et al. 2018, definition 3.2).
    """
    values = predicted.copy()
    values[np.arange(data.n_rows), data.actions] += (data.rewards - data.of_taken(predicted)) / data.propensities
    return values


def mean_residuals(data: LoggedData, predicted: FloatArray) -> FloatArray:
    """The mean of r - q(x, a) over each action's rows, weighted by inverse propensities, (k,); 0 without rows."""
    known = data.known
    weights = data.sizes * known.weights / data.propensities
    total, residuals = (
        np.bincount(data.actions, weights * each, data.n_actions)
        for each in (1.0, known.rewards - data.of_taken(predicted))
    )
    return np.divide(residuals, total, out=np.zeros(data.n_actions), where=total > 0)


def _centred(table: FloatArray, folds: IntArray, counts: IntArray | None) -> FloatArray:
    """Without the mean of each row, and then of each column in each fold; 0 where only rounding is left."""
    apart: FloatArray = table - table.mean(axis=1, keepdims=True)
    for fold in np.unique(folds):
        rows = folds == fold
        apart[rows] -= averaged(apart[rows], None if counts is None else counts[rows])
    apart[np.abs(apart) <= 1e-12 * (1 + np.abs(table))] = 0.0
    return apart


def _shrunk(predict: Predictor, level: float, by: float) -> Predictor:
    return lambda covariates: level + by * (predict(covariates) - level)

"""Models of the expected reward q(x, a), by name, from scikit-learn: one regression for each action.

Scores that merely follow chance choose worse than one treatment for all. So the model that is "chosen" from the rows
alone is shrunk to the means of the arms, by as much as held-out rows of the same training part say, and the arms' means
win where nothing is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING, FloatArray, IntArray
from policysim.files.bad_rows import BadRows
from policysim.files.data_table import DataTable
from policysim.logs.log_frame import REWARD, LoggedData, averaged, one_of
from policysim.question.extras import optional

# With fewer rows of an action there is nothing to fit but a mean.
FEWEST_ROWS = 10
# Ridge penalties, in rows: the best by leave-one-out error is taken (Golub, Heath & Wahba 1979).
PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
OUTCOME_MODELS = ("linear", "logistic", "gradient-boosting", "constant", "chosen")
LINEAR, LOGISTIC, _, CONSTANT, CHOSEN = OUTCOME_MODELS
# What "chosen" tries beside a regression: boosted trees that are few and small, as it fits many.
SMALL_TREES = "small-trees"
FEW_TREES = {"max_iter": 40, "max_leaf_nodes": 4}


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
    regressions: tuple[Callable[[FloatArray], FloatArray], ...]

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


def fit_outcome_model(
    name: str,
    covariates: FloatArray,
    actions: IntArray,
    rewards: FloatArray,
    n_actions: int,
    *,
    weights: FloatArray | None = None,
    counts: IntArray | None = None,
    seed: int = 0,
) -> OutcomeModel:
    """Fit q(x, a) on rows: covariates (m, n_covariates), actions (m,), rewards (m,).

    Parameters
    ----------
    name : str
        "linear": ridge regression, its penalty chosen by leave-one-out error. "logistic": penalised logistic
        regression, for rewards of 0 and 1. "gradient-boosting": scikit-learn's histogram gradient boosting.
        "constant": the mean of each action. "chosen" is `outcome_models.chosen_model`.
        An action of fewer than 10 rows gets their mean reward instead; one of none, the mean reward of all rows.
    weights : array, (m,), optional
        How much each row counts, >= 0; rows of weight 0 have no part. By default all count the same.
    counts : array of int, (m,), optional
        How many rows each stands for, where equal ones were counted.
    seed : int
        For gradient boosting.

    Raises
    ------
    ValueError
        For an unknown name, or rewards other than 0 and 1 with "logistic".
    """
    if name == CHOSEN:
        raise ValueError(f"outcome_model={CHOSEN!r} looks at propensities: it is fitted by fit_to_log.")
    if name != SMALL_TREES:
        check_outcome_model(name, rewards)
    centre = averaged(covariates, counts)
    spread = np.sqrt(averaged((covariates - centre) ** 2, counts))
    spread[spread <= 10 * ROUNDING * np.abs(centre)] = 1  # a constant column
    scaled = (covariates - centre) / spread
    each = np.ones(len(rewards)) if weights is None else weights
    each = each if counts is None else each * counts
    regressions = []
    for action in range(n_actions):
        rows = (actions == action) & (each > 0)
        own = rewards[rows]
        n_rows = len(own) if counts is None else counts[rows].sum()
        if name == CONSTANT or n_rows < FEWEST_ROWS or own.min() == own.max():
            among = rows if len(own) else each > 0
            regressions.append(_constant(float(np.average(rewards[among], weights=each[among]))))
        else:
            weighted = each[rows] if (each[rows] != 1).any() else None
            if name == LINEAR and counts is not None:
                each_patient = None if weights is None else weights[rows]
                regressions.append(_fit_counted_ridge(scaled[rows], own, counts[rows], each_patient))
            else:
                regressions.append(_fit(name, scaled[rows], own, weighted, seed))
    return OutcomeModel(centre, spread, tuple(regressions))


def _constant(value: float) -> Callable[[FloatArray], FloatArray]:
    return lambda covariates: np.full(len(covariates), value)


def _fit(
    name: str, covariates: FloatArray, rewards: FloatArray, weights: FloatArray | None, seed: int
) -> Callable[[FloatArray], FloatArray]:
    """Fit one action's regression; scikit-learn is imported here, as that takes a second."""
    if name == LINEAR:
        with optional():
            from sklearn.linear_model import RidgeCV  # noqa: PLC0415

        ridge = RidgeCV(PENALTIES).fit(covariates, rewards, weights)
        return lambda rows: np.asarray(ridge.predict(rows))
    if name == LOGISTIC:
        with optional():
            from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        logistic = LogisticRegression(max_iter=1000).fit(covariates, rewards, weights)
        return lambda rows: np.asarray(logistic.predict_proba(rows)[:, 1])
    options = FEW_TREES if name == SMALL_TREES else {}
    return _fit_trees(covariates, rewards, weights, seed, options)


def _fit_counted_ridge(
    covariates: FloatArray, rewards: FloatArray, counts: IntArray, weights: FloatArray | None
) -> Callable[[FloatArray], FloatArray]:
    """As `RidgeCV` on all the rows that were counted; to leave one out is not to leave out all that equal it.

    With A = X'CWX + penalty, X centred, C the counts and W the weights of one patient each, a patient has leverage
    h = w (1 / sum CW + x'A^-1 x), and the residual without the patient is (r - fitted) / (1 - h) (Golub, Heath & Wahba
    1979), whose square counts w times.
    """
    weight = np.ones(len(rewards)) if weights is None else weights
    each = counts * weight
    total, centre = each.sum(), each @ covariates / each.sum()
    mean, apart = float(each @ rewards / total), covariates - centre
    gram, right = (apart.T * each) @ apart, (apart.T * each) @ (rewards - mean)
    values, vectors = np.linalg.eigh(gram)
    turned = apart @ vectors
    inverses = 1 / (np.maximum(values, 0)[:, None] + np.array(PENALTIES))
    found = inverses * (vectors.T @ right)[:, None]
    leverage = weight[:, None] * (1 / total + (turned * turned) @ inverses)
    left_out = (rewards[:, None] - mean - turned @ found) / (1 - leverage)
    slopes = vectors @ found[:, int(np.argmin(each @ (left_out * left_out)))]
    return lambda rows: mean + (rows - centre) @ slopes


def _fit_trees(
    covariates: FloatArray, rewards: FloatArray, weights: FloatArray | None, seed: int, options: Mapping[str, int]
) -> Callable[[FloatArray], FloatArray]:
    """Boosted trees, in one thread: where others use the processors too, more threads wait for each other for long."""
    with optional():
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415
        from threadpoolctl import threadpool_limits  # noqa: PLC0415

    def predict(rows: FloatArray) -> FloatArray:
        with threadpool_limits(1):
            return np.asarray(trees.predict(rows))

    with threadpool_limits(1):
        trees = HistGradientBoostingRegressor(random_state=seed, **options).fit(covariates, rewards, weights)
    return predict


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

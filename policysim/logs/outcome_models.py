"""Models of the expected reward q(x, a), by name, from scikit-learn: one regression for each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING, FloatArray, IntArray
from policysim.files.bad_rows import BadRows
from policysim.files.data_table import DataTable
from policysim.logs.log_frame import REWARD, averaged, one_of
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
        "constant": the mean of each action. "chosen" is `learners.chosen_model`.
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
    centre, spread = _centre_and_spread(covariates, counts)
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


def _centre_and_spread(covariates: FloatArray, counts: IntArray | None) -> tuple[FloatArray, FloatArray]:
    """The mean and the standard deviation of each column over the rows, (n_covariates,) each."""
    if counts is None:
        return covariates.mean(axis=0), covariates.std(axis=0)
    centre = averaged(covariates, counts)
    return centre, np.sqrt(averaged((covariates - centre) ** 2, counts))


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

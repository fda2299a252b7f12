"""Outcome models, cross-fitting and covariates."""

import numpy as np
import pandas as pd
import pytest
from small_trials import SPACE, make_trial

from policysim.files.bad_rows import DataError
from policysim.logs.log_frame import LoggedData, covariate_matrix, read_log_frame
from policysim.logs.log_source import CONSTANT, LINEAR, OUTCOME_MODELS
from policysim.logs.outcome_models import FOLDS, PENALTIES, PRODUCTS, contrasts, fit_to_log, follows, predicted_without
from policysim.study.study_problem import indicators
from policysim.trials.estimate_value import cross_fit, direct_method
from policysim.trials.evaluate_log import evaluate_log


def small_log(n=80, seed=0, binary=False):
    rng = np.random.default_rng(seed)
    x = rng.normal([0, 50, 3], [1, 20, 0.1], (n, 3))
    actions = rng.integers(2, size=n)
    rewards = x[:, 0] * (1 - 2 * actions) + x[:, 1] / 40 + rng.normal(size=n)
    rewards = (rewards > 1).astype(float) if binary else rewards
    return LoggedData(actions, rewards, np.full(n, 0.5), ("a", "b")), x


def ridge_by_hand(x, r, penalty):
    """Ridge regression of r on x with a free intercept, by the normal equations."""
    centred = x - x.mean(axis=0)
    slope = np.linalg.solve(centred.T @ centred + penalty * np.eye(x.shape[1]), centred.T @ (r - r.mean()))
    return lambda rows: r.mean() + (rows - x.mean(axis=0)) @ slope


def best_ridge(x, r):
    """The penalty of least squared error, every row predicted by a fit without it."""

    def error(penalty):
        rows = range(len(r))
        return sum((r[i] - ridge_by_hand(np.delete(x, i, 0), np.delete(r, i), penalty)(x[[i]])[0]) ** 2 for i in rows)

    return ridge_by_hand(x, r, min(PENALTIES, key=error))


def test_the_linear_model_is_ridge_with_the_penalty_of_least_leave_one_out_error():
    log, x = small_log(60)
    fitted = cross_fit(log, x, folds=2, seed=1)
    for fold in range(2):
        rest, own = fitted.folds != fold, fitted.folds == fold
        centre, spread = x[rest].mean(axis=0), x[rest].std(axis=0)
        for action in range(2):
            rows = rest & (log.actions == action)
            model = best_ridge((x[rows] - centre) / spread, log.rewards[rows])
            expected = model((x[own] - centre) / spread)
            np.testing.assert_allclose(fitted.predictions[own, action], expected, rtol=1e-8)


@pytest.mark.parametrize("name", OUTCOME_MODELS)
def test_no_row_is_predicted_by_a_model_that_saw_it(name):
    log, x = small_log(90, binary=True)
    changed = log.rewards.copy()
    changed[7] = 1 - changed[7]
    other = LoggedData(log.actions, changed, log.propensities, log.names)
    before, after = (cross_fit(one, x, outcome_model=name, folds=2) for one in (log, other))
    own = before.folds == before.folds[7]
    np.testing.assert_array_equal(before.predictions[own], after.predictions[own])
    # A planted bug, one model for all rows, does move: the test can fail.
    seen = [fit_to_log(name, x, one).predict(x[own]) for one in (log, other)]
    assert not np.array_equal(*seen)


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("name", [name for name in OUTCOME_MODELS if name != CONSTANT])
def test_models_learn_what_each_action_does(name):
    log, x = small_log(1000, seed=2, binary=True)
    predicted = fit_to_log(name, x, log).predict(x)
    assert predicted.shape == (1000, 2)
    # Action a is better where the first covariate is high, b where it is low.
    better = predicted[:, 0] > predicted[:, 1]
    assert (better == (x[:, 0] > 0))[np.abs(x[:, 0]) > 0.5].mean() > 0.95


def test_folds_are_even_and_decided_by_the_seed():
    log, x = small_log(83)
    one, same, other = (cross_fit(log, x, seed=seed) for seed in (1, 1, 2))
    assert sorted(np.bincount(one.folds)) == [16, 16, 17, 17, 17]
    np.testing.assert_array_equal(one.predictions, same.predictions)
    assert not np.array_equal(one.folds, other.folds)


def test_an_action_of_few_rows_is_predicted_by_a_mean_and_one_of_none_by_the_mean_of_all():
    log, x = small_log(30)
    actions = np.where(np.arange(30) < 4, 0, 1)
    taken = LoggedData(actions, log.rewards, log.propensities, ("a", "b", "c"))
    predicted = fit_to_log("linear", x, taken).predict(x)
    np.testing.assert_allclose(predicted[:, 0], log.rewards[:4].mean())
    np.testing.assert_allclose(predicted[:, 2], log.rewards.mean())
    assert len(np.unique(predicted[:, 1])) > 1
    assert cross_fit(taken, x).thin == (0, 2)


def test_a_constant_covariate_changes_nothing():
    log, x = small_log()
    constant = np.full((80, 1), 0.1)
    with_it = cross_fit(log, np.hstack([x, constant]))
    np.testing.assert_allclose(with_it.predictions, cross_fit(log, x).predictions, rtol=1e-6)


def test_the_error_of_the_direct_method_is_its_true_spread():
    rng = np.random.default_rng(6)
    found, share, n = [], np.array([0.5, 0.3, 0.2]), 400
    policy = np.tile([0.1, 0.2, 0.7], (n, 1))
    for seed in range(50):
        x = rng.normal(size=(n, 1))
        actions = rng.choice(3, n, p=share)
        rewards = x[:, 0] * (actions == 1) + actions + rng.normal(size=n)
        log = LoggedData(actions, rewards, share[actions], ("a", "b", "c"))
        found.append(direct_method(policy, cross_fit(log, x, folds=5, seed=seed)))
    values, errors = np.array(found).T
    # The ratio of two root mean squares over 50 logs: relative standard errors 1/sqrt(100) = 0.1 of the spread and
    # 1/sqrt(2 * 4 * 50) = 0.05 of the jackknife's, 0.11 together; four of them.
    assert np.sqrt(np.mean(errors**2)) / values.std() == pytest.approx(1, abs=0.45)


def test_categories_become_indicators_and_numbers_stay():
    frame = pd.DataFrame(
        {
            "age": [30, 41, 28],
            "site": ["north", "south", "north"],
            "arm": pd.Categorical(["x", "x", "y"], ["x", "y", "never"]),
            "smoker": [True, False, True],
            "visits": pd.array([1, 2, 3], dtype="Int64"),
        }
    )
    expected = [[30, 1, 0, 1, 0, 1, 1], [41, 0, 1, 1, 0, 0, 2], [28, 1, 0, 0, 1, 1, 3]]
    np.testing.assert_array_equal(covariate_matrix(frame), expected)


@pytest.mark.parametrize("name", OUTCOME_MODELS)
def test_a_log_without_covariates_is_modelled_by_the_means_of_its_actions(name, six_rows):
    log = pd.concat([six_rows] * 20, ignore_index=True).drop(columns=["propensity"]).assign(propensity=0.5)
    data = read_log_frame(log)
    fitted = cross_fit(data, covariate_matrix(log[[]]), outcome_model=name, folds=2)
    for fold in range(2):
        rest = fitted.folds != fold
        means = [data.rewards[rest & (data.actions == action)].mean() for action in range(2)]
        # Logistic regression stops at a gradient of 1e-4 of 60 rows.
        np.testing.assert_allclose(fitted.predictions[~rest], np.tile(means, (60, 1)), atol=1e-4)
    for estimator in ("dm", "dr"):
        options = {"estimator": estimator, "outcome_model": name, "folds": 2}
        assert np.isfinite(evaluate_log(log, np.full((120, 2), 0.5), **options).value)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1.0, np.nan, 3.0], "^log: row 1: z: is missing: a covariate must have a value in each row$"),
        (
            pd.array([True, None, None], dtype="boolean"),
            r"^log: row 1: z: is missing: .*\nlog: row 2: z: is missing: .*$",
        ),
        ([1.0, np.inf, 3.0], "^log: row 1: z: must be finite, got inf$"),
        ([f"p{i}" for i in range(101)], "covariate 'z' has 101 distinct values that are no numbers, at most 100"),
        (pd.to_datetime(["2020-01-01"] * 3), "covariate 'z' is datetime64"),
        ([1j, 2, 3], "covariate 'z' is complex128"),
    ],
)
def test_covariates_that_are_missing_infinite_or_no_numbers_are_refused(column, said):
    with pytest.raises(ValueError, match=said):
        covariate_matrix(pd.DataFrame({"z": column}))


def test_the_logistic_model_is_for_rewards_of_0_and_1():
    log, x = small_log(30)
    with pytest.raises(DataError) as error:
        cross_fit(log, x, outcome_model="logistic")
    lines = str(error.value).splitlines()
    assert lines[0] == f"log: row 0: reward: must be 0 or 1 for the outcome model logistic, got {log.rewards[0]:g}"
    assert lines[20:] == ["... and 10 more"]


@pytest.mark.parametrize("folds", [1, 0, 81, 2.5, True])
def test_folds_out_of_range_are_refused(folds):
    log, x = small_log(80)
    with pytest.raises(ValueError, match=r"folds must be from 2 to the number of rows \(80\), got folds="):
        cross_fit(log, x, folds=folds)


# The model that held-out rows choose: the arms' means where nothing is there, else scores that follow.

EVERY = indicators(SPACE, np.arange(SPACE.size))


def chosen(trial, name="chosen"):
    """The scores of all records."""
    return fit_to_log(name, indicators(SPACE, trial.log.records), trial.log.data, seed=1).predict(EVERY)


def test_without_an_effect_the_arms_means_mostly_win_and_scores_are_shrunk_otherwise():
    personal, spread = 0, []
    for seed in range(8):
        trial = make_trial(400, 0.0, seed)
        found, plain = chosen(trial), chosen(trial, "logistic")
        data = trial.log.data
        means = [data.rewards[data.actions == arm].mean() for arm in range(3)]
        personal += not np.allclose(found, means)
        spread.append(np.ptp(found - found.mean(axis=1, keepdims=True), axis=0).max() / np.ptp(plain, axis=0).max())
    # z > 1 for one of two candidates that are alike: about a quarter of logs.
    assert personal <= 6
    assert np.mean(spread) < 0.3


def test_with_an_effect_the_scores_choose_as_the_truth_does():
    trial = make_trial(2000, 0.3, seed=3)
    found = chosen(trial)
    best = trial.truth.argmax(axis=1)
    assert np.array_equal(found.argmax(axis=1), best)


def test_scores_are_shrunk_to_the_arms_means_by_what_held_out_rows_show():
    trial = make_trial(400, 0.12, seed=0)
    data, x = trial.log.data, indicators(SPACE, trial.log.records)
    folds, factors = data.dealt(FOLDS, np.random.default_rng(1))[2], {}
    for name in (LINEAR, PRODUCTS):
        slope, z = follows(data, predicted_without(name, x, data, folds, seed=1), folds)
        factors[z] = name, min(1, slope * (1 - 1 / z**2))
    name, factor = factors[max(factors)]
    assert max(factors) > 1 and factor < 0.9
    means = np.array([data.rewards[data.actions == arm].mean() for arm in range(3)])
    assert chosen(trial) - means == pytest.approx(factor * (chosen(trial, name) - means), abs=1e-9)


def test_the_slope_is_that_of_doubly_robust_scores_on_predictions_written_as_loops():
    trial = make_trial(60, 0.2, seed=4)
    data = trial.log.data
    rng = np.random.default_rng(0)
    predicted, folds = rng.random((60, 3)), rng.integers(2, size=60)
    seen, told = np.zeros((60, 3)), np.zeros((60, 3))
    for i in range(60):
        score = predicted[i].copy()
        score[data.actions[i]] += 3 * (data.rewards[i] - predicted[i, data.actions[i]])
        seen[i], told[i] = score - score.mean(), predicted[i] - predicted[i].mean()
    for fold in (0, 1):
        seen[folds == fold] -= seen[folds == fold].mean(axis=0)
        told[folds == fold] -= told[folds == fold].mean(axis=0)
    slope = (seen * told).sum() / (told * told).sum()
    rows = ((seen - slope * told) * told).sum(axis=1)
    assert follows(data, predicted, folds) == pytest.approx((slope, slope / np.sqrt(rows @ rows) * (told**2).sum()))


def test_predictions_that_are_the_same_for_all_have_no_slope():
    trial = make_trial(60, 0.2, seed=4)
    predicted = np.tile([0.1, 0.2, 0.3], (60, 1)) + np.linspace(0, 1, 60)[:, None]  # ill or well, whatever the arm
    assert follows(trial.log.data, predicted, np.zeros(60, dtype=int)) == (0.0, 0.0)
    assert not contrasts(trial.log.data, predicted, np.zeros(60, dtype=int))[1].any()

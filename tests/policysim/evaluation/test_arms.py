"""The arms of a log before any model, and a policy against the best of them."""

import numpy as np
import pytest
from scipy.stats import norm

from policysim.logged.arms import arm_means
from policysim.logged.best_arm import difference_from_best_arm
from policysim.offpolicy.cross_fitting import cross_fit
from policysim.offpolicy.logged import LoggedData

NAMES = ("a", "b", "c")


def a_log(seed, n_rows=60, effects=(0.0, 0.5, 1.0), propensities=(0.2, 0.3, 0.5)):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.array(propensities) * 20, n_rows)
    actions = np.array([rng.choice(3, p=row) for row in chances])
    rewards = np.array(effects)[actions] + rng.normal(size=n_rows)
    return LoggedData(actions, rewards, chances[np.arange(n_rows), actions], NAMES)


def random_policy(seed, n_rows=60):
    return np.random.default_rng(seed).dirichlet(np.ones(3), n_rows)


def test_with_equal_propensities_means_and_errors_are_the_plain_ones():
    rng = np.random.default_rng(0)
    actions, rewards = rng.integers(0, 3, 900), rng.normal(size=900)
    found = arm_means(LoggedData(actions, rewards, np.full(900, 1 / 3), NAMES))
    assert found["arm"].tolist() == list(NAMES)
    for arm in range(3):
        own = rewards[actions == arm]
        row = found.iloc[arm]
        assert row["rows"] == len(own)
        assert row["mean"] == pytest.approx(own.mean(), rel=1e-12)
        # Normal rewards: 1.96 standard errors and at most 1 % more for the number of rows.
        reach = norm.ppf(0.975) * own.std(ddof=1) / np.sqrt(len(own))
        assert reach <= (row["high"] - row["low"]) / 2 <= 1.01 * reach
        assert (row["high"] + row["low"]) / 2 == pytest.approx(row["mean"])


def test_with_unequal_propensities_they_are_weighted_by_hand():
    # Arm a: weights 2, 4, 10, rewards 1, 3, 5; sum 16, mean (2 + 12 + 50) / 16 = 4.
    # Residuals -3, -1, 1; variance 3 / 2 (36 + 16 + 100) / 256.
    data = LoggedData(
        np.array([0, 1, 0, 0, 1]), np.array([1.0, 7, 3, 5, 7]), np.array([0.5, 0.5, 0.25, 0.1, 0.9]), ("a", "b")
    )
    found = arm_means(data)
    assert found["mean"].tolist() == pytest.approx([4, 7])
    error = np.sqrt(1.5 * 152 / 256)
    # Three rows: the interval is wider than the normal one, and centred.
    assert found["high"][0] - 4 == pytest.approx(4 - found["low"][0]) and found["high"][0] - 4 > norm.ppf(0.975) * error
    # Two rewards of 7 do not vary: there is no interval to tell.
    assert np.isnan(found["low"][1]) and np.isnan(found["high"][1])


def test_an_arm_without_rows_has_no_mean():
    found = arm_means(LoggedData(np.array([0, 0, 1]), np.array([1.0, 2, 3]), np.full(3, 0.5), NAMES))
    assert found["rows"].tolist() == [2, 1, 0]
    assert np.isnan(found["mean"][2]) and found["mean"][1] == 3 and np.isnan(found["low"][1])


@pytest.mark.parametrize("estimator", ["ips", "dr", "dm"])
@pytest.mark.parametrize("seed", range(4))
def test_the_difference_is_that_of_a_loop_over_folds(seed, estimator):
    """Row by row, in plain loops: the arm of a fold is the best weighted mean outside of it."""
    data, p = a_log(seed), random_policy(seed)
    covariates = np.random.default_rng(seed + 1).normal(size=(60, 2))
    fitted = None if estimator == "ips" else cross_fit(data, covariates, folds=6)
    found = difference_from_best_arm(data, p, estimator=estimator, fitted=fitted, seed=9)
    folds = np.random.default_rng(9).permutation(60) % 5
    terms, arms = [], []
    for fold in range(5):
        means = []
        for arm in range(3):
            rows = [i for i in range(60) if folds[i] != fold and data.actions[i] == arm]
            weight = sum(1 / data.propensities[i] for i in rows)
            means.append(sum(data.rewards[i] / data.propensities[i] for i in rows) / weight)
        arms.append(int(np.argmax(means)))
    for i in range(60):
        a, r, arm = data.actions[i], data.rewards[i], arms[folds[i]]
        w = p[i, a] / data.propensities[i]
        w_arm = (a == arm) / data.propensities[i]
        if estimator == "ips":
            terms.append((w - w_arm) * r)
            continue
        q = fitted.predictions[i]
        direct = p[i] @ q - q[arm]
        terms.append(direct if estimator == "dm" else direct + (w - w_arm) * (r - q[a]))
    assert found.arms == tuple(NAMES[arm] for arm in arms)
    assert found.value == pytest.approx(np.mean(terms), rel=1e-9)
    if estimator != "dm":
        assert found.standard_error == pytest.approx(np.std(terms, ddof=1) / np.sqrt(60), rel=1e-9)
    low, high = found.interval
    assert low < found.value < high


def test_self_normalised_it_is_the_difference_of_two_weighted_means():
    data, p = a_log(3, n_rows=400, effects=(0.0, 0.0, 3.0)), random_policy(3, 400)
    found = difference_from_best_arm(data, p, estimator="snips")
    assert found.arms == ("c",) * 5
    weights = p[np.arange(400), data.actions] / data.propensities
    weights_c = (data.actions == 2) / data.propensities
    expected = np.average(data.rewards, weights=weights) - np.average(data.rewards, weights=weights_c)
    assert found.value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "dm"])
def test_the_best_arm_itself_differs_by_nothing(estimator):
    data = a_log(5, n_rows=300, effects=(0.0, 0.0, 3.0))
    everyone = np.tile([0.0, 0.0, 1.0], (300, 1))
    fitted = cross_fit(data, np.zeros((300, 1)))
    found = difference_from_best_arm(data, everyone, estimator=estimator, fitted=fitted)
    assert (found.value, found.standard_error, found.interval) == (0, 0, (0, 0))


def test_choosing_the_arm_on_other_rows_takes_the_optimism_away():
    """All arms and the policy are worth 0, so the difference should be 0 on average; on the same rows it is not.

    Five standard errors over 300 logs: 1 in 1.7 million.
    """
    honest, naive = [], []
    uniform = np.full((60, 3), 1 / 3)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        data = LoggedData(rng.integers(0, 3, 60), rng.normal(size=60), np.full(60, 1 / 3), NAMES)
        found = difference_from_best_arm(data, uniform, estimator="ips", seed=seed)
        honest.append(found.value)
        naive.append(data.rewards.mean() - arm_means(data)["mean"].max())
    error = np.std(honest, ddof=1) / np.sqrt(300)
    assert abs(np.mean(honest)) <= 5 * error
    # The planted mistake: the largest mean of three arms with 20 rows is 0.85 sd / sqrt(20) = 0.19 too large.
    assert np.mean(naive) < -0.12


def test_an_arm_that_some_patients_never_get_is_named():
    rng = np.random.default_rng(2)
    sick = rng.random(2000) < 0.5
    actions = np.where(sick, 1, rng.integers(0, 2, 2000))  # the sick always get b
    rewards = np.where(actions == 0, 2.0, 0.0) + rng.normal(size=2000)
    data = LoggedData(actions, rewards, np.where(sick, 1.0, 0.5), ("a", "b"))
    found = difference_from_best_arm(data, np.full((2000, 2), 0.5), estimator="ips")
    assert set(found.arms) == {"a"}
    assert any("giving everyone a" in warning and "overlap fails" in warning for warning in found.warnings)

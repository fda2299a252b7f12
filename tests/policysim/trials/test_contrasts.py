"""Arms against each other where their means depend on each other: by the differences of what each row adds to both."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm
from small_trials import make_trial

from policysim.logs.log_frame import LoggedData
from policysim.trials import trial_columns
from policysim.trials.arms import arm_means
from policysim.trials.contrasts import against_highest, difference_of_means

NAMES = ("a", "b", "c")


def a_log(rng, predicted, noise=0.03):
    """By lot; outcomes are those predicted, but for a little noise."""
    n, k = predicted.shape
    actions = rng.integers(k, size=n)
    rewards = predicted[np.arange(n), actions] + rng.normal(0, noise, n)
    return LoggedData(actions, rewards, np.full(n, 1 / k), NAMES[:k])


def scores_of(data, predicted):
    """The augmented scores, by their formula."""
    given = data.actions[:, None] == np.arange(data.n_actions)
    return predicted + given * (data.rewards[:, None] - predicted) * data.n_actions


@pytest.mark.parametrize("opposite", [False, True])
def test_doubly_robust_arms_are_compared_row_by_row(opposite):
    rng = np.random.default_rng(1)
    z = rng.uniform(size=800)
    predicted = 0.8 * np.column_stack([z, 1 - z if opposite else z]) + [0.1, 0.12]
    data = a_log(rng, predicted)
    arms = arm_means(data, predicted=predicted)
    found = against_highest(arms, data, predicted).iloc[0]
    apart = np.diff(scores_of(data, predicted))[:, 0]
    sign = 1 if found["arm"] == "b" else -1
    assert found["value"] == pytest.approx(sign * apart.mean())
    reach = norm.ppf(0.975) * apart.std(ddof=1) / np.sqrt(800)
    assert found["high"] - found["value"] == pytest.approx(reach, rel=0.01)
    # As independent means, either would be far off.
    alone = np.diff(difference_of_means(*arms[["mean", "low", "high"]].to_numpy())[1:])[0] / 2
    assert alone < 0.8 * reach if opposite else alone > 3 * reach


def test_opposite_effects_make_no_arm_better_more_often_than_they_should():
    rng, false = np.random.default_rng(2), 0
    for _ in range(200):
        z = rng.uniform(size=200)
        predicted = 0.1 + 0.8 * np.column_stack([z, 1 - z])
        data = a_log(rng, predicted)
        false += against_highest(arm_means(data, predicted=predicted), data, predicted)["low"][0] > 0
    # As independent means about 33 would be. 5 in 100, and 1 in 1,000 beyond.
    assert 0 < false <= binom.ppf(0.999, 200, 0.05)


def test_what_all_scores_have_in_common_does_not_change_how_many_errors_three_arms_must_be_apart():
    rng = np.random.default_rng(3)
    rewards, actions = rng.normal(size=900), np.arange(900) % 3
    data = LoggedData(actions, rewards, np.full(900, 1 / 3), NAMES)
    arms = arm_means(data)
    independent = against_highest(arms, data)
    common = np.repeat(rng.normal(0, 9, size=(900, 1)), 3, axis=1)
    shifted = LoggedData(actions, rewards + common[:, 0], np.full(900, 1 / 3), NAMES)
    together = against_highest(arm_means(shifted, predicted=common), shifted, common)
    assert list(together["arm"]) == list(independent["arm"]) and (together["low"] < 0).all()
    reach, alone = (found["high"] - found["value"] for found in (together, independent))
    # Means of 0 predicted in place of the arms' own: what differs besides is the simulation's.
    assert reach.to_numpy() == pytest.approx(alone.to_numpy(), rel=0.03)


def test_an_arm_in_which_all_fare_alike_has_an_interval_and_is_better(monkeypatch):
    actions = np.repeat([0, 1], 200)
    rewards = np.where(np.arange(400) < 300, 1.0, 0.0)
    data = LoggedData(actions, rewards, np.full(400, 0.5), NAMES[:2])
    predicted = np.tile([1.0, 0.5], (400, 1))
    arms = arm_means(data, predicted=predicted)
    square = norm.ppf(0.975) ** 2
    assert arms["low"][0] == pytest.approx(200 / (200 + square)) and arms["high"][0] == 1  # Wilson's of 200 of 200
    found = against_highest(arms, data, predicted).iloc[0]
    # Agresti and Caffo's error has one success and one failure more in each arm.
    error = np.hypot(np.sqrt(201 / 202**2 / 203), np.sqrt(101**2 / 202**2 / 203))
    assert found["high"] - found["value"] == pytest.approx(norm.ppf(0.975) * error, rel=0.03)
    trial = make_trial(400, 0.3, seed=3, policies=("best-fixed", "uniform"))
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    monkeypatch.setattr(trial_columns, "MOST_TIMES", 1)
    log = trial.log
    sure = LoggedData(log.data.actions, (log.data.actions == 2).astype(float), log.data.propensities, log.data.names)
    row = trial_columns.compare_log(trial.study, replace(log, data=sure)).iloc[0]
    assert row["value_low"] < row["value"] == row["value_high"] == 1


def test_an_arm_that_one_patient_got_is_in_no_interval():
    rng = np.random.default_rng(4)
    actions = np.array([2, *rng.integers(2, size=299)])
    predicted = np.tile(rng.uniform(size=(300, 1)), (1, 3))
    data = LoggedData(actions, predicted[:, 0] + rng.normal(size=300), np.full(300, 1 / 3), NAMES)
    found = against_highest(arm_means(data, predicted=predicted), data, predicted)
    two = found[found["than"].ne("c") & found["arm"].ne("c")]
    assert found["low"].isna().sum() + len(two) == 2 and two["low"].notna().all()


def test_an_arm_whose_rewards_do_not_vary_has_an_interval_where_rewards_have_limits():
    costs = np.random.default_rng(5).normal(-500, 50, 100)
    actions, rewards = np.repeat([0, 1], 100), np.append(np.zeros(100), costs)
    arms = arm_means(LoggedData(actions, rewards, np.full(200, 0.5), NAMES[:2]), (-1000.0, 0.0))
    # So many of 100 may have another cost, and it is 1,000 at most (Clopper and Pearson).
    assert arms["low"][0] == pytest.approx(-1000 * (1 - 0.025 ** (1 / 100))) and arms["high"][0] == 0
    assert against_highest(arms)["low"][0] > 400
    alone = arm_means(LoggedData(actions, rewards, np.full(200, 0.5), NAMES[:2]))
    assert np.isnan(alone["low"][0]) and alone["low"][1] < -490


def test_a_doubly_robust_mean_beyond_the_limits_is_in_its_own_interval():
    rng = np.random.default_rng(6)
    predicted = np.tile([0.99, 0.5], (60, 1))
    data = LoggedData(np.arange(60) % 2, rng.uniform(0.97, 1, 60), np.full(60, 0.02), NAMES[:2])
    arms = arm_means(replace(data, rewards=np.where(data.actions == 0, 1.0, data.rewards)), (0.0, 1.0), predicted)
    assert arms["mean"][0] > 1 and arms["low"][0] <= arms["mean"][0] <= arms["high"][0]

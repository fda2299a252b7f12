"""What a log can show: how much confounding takes it away, different effects in different patients, and its power."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small_trials import ARMS, make_trial, small_study

from policysim.logs.log_frame import LoggedData
from policysim.trials.arms import arm_means
from policysim.trials.estimators import Moments, over_splits
from policysim.trials.evidence import LOOKS, confounding_needed, e_value, heterogeneity, power_of, shown_gain


def test_published_e_values_come_out():
    # VanderWeele & Ding 2017: breastfeeding and death from respiratory infection, 3.9 (1.8 to 8.7).
    assert e_value(3.9) == pytest.approx(7.26, abs=0.005)
    assert e_value(1.8) == pytest.approx(3.0, abs=0.005)
    assert e_value(1.0) == 1.0
    assert e_value(0.5) == e_value(2.0)


def test_e_values_of_arms_are_against_the_first_and_at_the_nearer_end_of_the_interval():
    n = 400
    actions = np.repeat([0, 1, 2], n)
    rewards = np.concatenate([np.arange(n) < share * n for share in (0.4, 0.6, 0.42)]).astype(float)
    data = LoggedData(actions, rewards, np.full(3 * n, 1 / 3), ARMS)
    rows = confounding_needed(data, "pill")
    found, failures = rows.iloc[0], rows.iloc[1]
    assert rows["of"].tolist() == ["successes", "failures"]
    assert (found.better, found.other, found.ratio) == ("pill", "wait", pytest.approx(1.5))
    assert found.value == pytest.approx(1.5 + np.sqrt(1.5 * 0.5))
    assert failures.ratio == pytest.approx(0.4 / 0.6) and failures.value == pytest.approx(e_value(1.5))
    error = np.sqrt((0.4 / 0.6 + 0.6 / 0.4) / n * 3 * n / (3 * n - 1))
    assert found.at_limit == pytest.approx(e_value(1.5 * np.exp(-1.959964 * error)), rel=1e-5)
    second = confounding_needed(replace(data, actions=(actions + 2) % 3), "wait")
    assert second["other"][0] == "pill"  # of which more are well than under the drip
    little = confounding_needed(data, "drip")
    assert little["at_limit"][0] == 1.0
    assert confounding_needed(replace(data, rewards=rewards - 1), "pill").empty
    assert confounding_needed(replace(data, rewards=rewards + 1), "pill")["of"].tolist() == ["means"]


def test_e_values_are_of_the_doubly_robust_means_that_arms_have():
    """Of the ill, who fare worse, more get the pill: it looks worse, and is not."""
    rng = np.random.default_rng(3)
    ill = rng.integers(2, size=2000)
    actions = (rng.random(2000) < 0.2 + 0.6 * ill).astype(int)
    rewards = (rng.random(2000) < 0.7 - 0.4 * ill).astype(float)
    data = LoggedData(actions, rewards, np.where(actions, 0.3, 0.7), ARMS[:2])  # too simple a model of who got it
    predicted = np.column_stack([0.7 - 0.4 * ill] * 2)
    wait, pill = arm_means(data, predicted=predicted)["mean"]
    found = confounding_needed(data, "pill", predicted).iloc[0]
    assert found["ratio"] == pytest.approx(pill / wait) and found["at_limit"] == 1
    assert confounding_needed(data, "pill")["ratio"][0] < 0.8


def test_where_nearly_all_succeed_the_failures_tell():
    # 97 against 95 of 100: a ratio of 1.02 of successes, and of 0.6 of failures.
    actions = np.repeat([0, 1], 100)
    rewards = np.concatenate([np.arange(100) < 95, np.arange(100) < 97]).astype(float)
    found = confounding_needed(LoggedData(actions, rewards, np.full(200, 0.5), ARMS[:2]), "pill")
    assert found["value"].round(2).tolist() == [1.17, 2.72]


# The test for different effects: its size, its power, and that other splits say the same.


def test_a_strong_effect_is_found_with_a_slope_near_1():
    trial = make_trial(1500, 0.3, seed=5)
    found = heterogeneity(trial.log, trial.study).iloc[0]
    assert found["p"] < 1e-5 and found["signs"] == 1
    assert 0.7 < found["slope"] < 1.3


def test_another_seed_tells_the_same_though_single_splits_do_not():
    trial = make_trial(700, 0.13, seed=9)
    found = [heterogeneity(trial.log, replace(trial.study, seed=seed)).iloc[0] for seed in range(4)]
    assert len({each["signs"] for each in found}) == 1
    # By single splits it would depend on the seed.
    assert any(each["p_low"] < 0.05 < each["p_high"] for each in found)


def test_an_effect_that_is_the_same_for_all_is_none():
    # Success depends on the patient and on the arm, but no arm does more for one patient than for another.
    rng = np.random.default_rng(3)
    told = 0
    for seed in range(8):
        trial = make_trial(400, 0.0, seed)
        data = trial.log.data
        rewards = (rng.random(400) < trial.truth[trial.log.records, 0] + 0.2 * (data.actions == 2)).astype(float)
        log = replace(trial.log, data=replace(data, rewards=rewards))
        found = heterogeneity(log, trial.study).iloc[0]
        assert found["splits"] in LOOKS and found["p_low"] <= found["p_high"]
        told += found["signs"]
    assert told <= 2  # Binomial(8, 0.05): more has probability 6e-3


def test_scores_that_predict_nothing_have_no_slope():
    trial = make_trial(300, 0.0, seed=1)
    data = replace(trial.log.data, rewards=np.full(300, 0.5))
    found = heterogeneity(replace(trial.log, data=data), small_study())
    assert math.isnan(found["slope"][0]) and found["p"][0] == 1.0 and found["signs"][0] == 0


# The gain that a log can show, against simulation and by hand.


def test_where_splits_agree_the_shown_gain_is_the_usual_formula():
    found = shown_gain([Moments(10**6, 0.02, 0.05)] * 20)
    # The 80 % point of 1,000 drawn normal numbers has an error of 0.045 of their deviation.
    assert found / 0.05 == pytest.approx(norm.ppf(0.975) + norm.ppf(0.8), abs=4 * 0.045)
    assert math.isnan(shown_gain([Moments(50, 0.0, 0.0)] * 20))


def test_a_planted_gain_of_that_size_is_called_better_in_8_of_10_logs():
    """Logs by another model of what splits do: each split's estimate is common chance and its own, by hand."""
    rng, error, between = np.random.default_rng(4), 0.05, 0.045

    def splits(gain):
        common = gain + error * rng.normal()
        return [Moments(10**4, common + between * rng.normal(), error) for _ in range(20)]

    gain = np.mean([shown_gain(splits(0.0)) for _ in range(20)])
    better = np.mean([over_splits(splits(gain)).low > 0 for _ in range(2000)])
    # Four errors of a share of 2,000, and as much again for the drawn gain.
    assert better == pytest.approx(0.8, abs=0.05)


def test_patients_for_a_gain_are_counted_by_the_square_of_it():
    options = pd.DataFrame({"epsilon": [1.0, 1.0], "option": ["C", "B"], "shown_gain": [0.05, math.nan]})
    found = power_of(options, 400, 1.0)
    assert set(found["option"]) == {"C"}
    assert found["gain"].tolist() == [0.05, 0.01, 0.02]
    assert found["patients"].tolist() == pytest.approx([400, 400 * 25, 400 * 6.25])
    assert len(power_of(options, 400, None)) == 1  # the range is a guess
    assert power_of(options, 400, 10.0)["gain"].tolist()[1:] == [0.1, 0.2]

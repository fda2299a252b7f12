"""The test for different effects in different patients: its size, its power, and that other splits say the same."""

import math
from dataclasses import replace

import numpy as np
from small_trials import make_trial, small_study

from policysim.trials.evidence import LOOKS, heterogeneity


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

"""The test for anything to individualise: its size and its power."""

import math
from dataclasses import replace

import numpy as np
from small_trials import make_trial, small_study

from policysim.trials.evidence import heterogeneity


def test_without_any_effect_it_is_rejected_about_as_often_as_it_says():
    chances = [heterogeneity(trial.log, trial.study)["p"][0] for trial in (make_trial(400, 0.0, s) for s in range(80))]
    # Binomial(80, 0.05): more than 11 has probability 1e-3; uniform: the mean is 0.5 with an error of 0.032.
    assert sum(chance < 0.05 for chance in chances) <= 11
    assert 0.4 < np.mean(chances) < 0.6


def test_a_strong_effect_is_found_with_a_slope_near_1():
    trial = make_trial(1500, 0.3, seed=5)
    found = heterogeneity(trial.log, trial.study)
    assert found["p"][0] < 1e-6
    assert 0.7 < found["slope"][0] < 1.3


def test_an_effect_that_is_the_same_for_all_is_none():
    # Success depends on the patient and on the arm, but no arm does more for one patient than for another.
    rng = np.random.default_rng(3)
    chances = []
    for seed in range(25):
        trial = make_trial(500, 0.0, seed)
        data = trial.log.data
        rewards = (rng.random(500) < trial.truth[trial.log.records, 0] + 0.2 * (data.actions == 2)).astype(float)
        log = replace(trial.log, data=replace(data, rewards=rewards))
        chances.append(heterogeneity(log, trial.study)["p"][0])
    assert sum(chance < 0.05 for chance in chances) <= 5  # Binomial(25, 0.05): more has probability 1e-3


def test_scores_that_predict_nothing_have_no_slope():
    trial = make_trial(300, 0.0, seed=1)
    data = replace(trial.log.data, rewards=np.full(300, 0.5))
    found = heterogeneity(replace(trial.log, data=data), small_study())
    assert math.isnan(found["slope"][0]) and found["p"][0] == 1.0

"""The model that held-out rows choose: the arms' means where nothing is there, else scores that follow."""

import numpy as np
import pytest
from small_trials import SPACE, make_trial

from policysim.logs.outcome_models import contrasts, fit_to_log, follows
from policysim.study.study_problem import indicators

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

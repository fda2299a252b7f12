"""One arm for everybody, learned privately: its privacy over all neighbours of a log, exactly, and what is refused."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from small_trials import ARMS, make_trial, small_study

from policies.selection import select
from policysim.logs.log_frame import LoggedData, Observed
from policysim.trials.private_arm import learn_arm, private_arm_words

SOURCE = small_study().log


def log_of(rows):
    """A log of patients (arm, reward)."""
    actions, rewards = (np.array(column) for column in zip(*rows, strict=True))
    return LoggedData(actions, rewards.astype(float), np.full(len(rows), 1 / 3), ARMS)


def largest_loss(choose, n=3):
    """Over all logs of n patients and all changes of the first one's row, the largest log ratio of a probability."""
    worst = 0.0
    states = list(product(range(3), (0.0, 0.5, 1.0)))
    for others in product(states, repeat=n - 1):
        table = np.log([choose([first, *others]) for first in states])
        worst = max(worst, float(np.ptp(table, axis=0).max()))
    return worst


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_loss_over_all_neighbours_is_at_most_epsilon_and_nearly_spent(epsilon):
    def chances(rows):
        return learn_arm(log_of(rows), SOURCE, epsilon).selection.probabilities

    loss = largest_loss(chances)
    assert 0.6 * epsilon < loss <= epsilon * (1 + 1e-12)


def test_a_score_with_twice_the_weight_would_be_found():
    def chances(rows):
        scores = np.zeros(3)
        for arm, reward in rows:
            scores[arm] += 2 * (2 * reward - 1)  # the planted bug
        return select(scores, epsilon=1.0, sensitivity=1).probabilities

    assert largest_loss(chances) > 1.0


def test_probabilities_are_the_exponential_mechanism_s_and_right_is_that_of_the_first_arm():
    trial = make_trial(300, 0.3, seed=2)
    found = learn_arm(trial.log.data, SOURCE, 0.1)
    data = trial.log.data
    scores = [(2 * data.rewards[data.actions == arm] - 1).sum() for arm in range(3)]
    weights = np.exp(0.05 * np.array(scores))
    assert np.allclose(found.selection.probabilities, weights / weights.sum())
    assert found.right == pytest.approx(found.selection.probabilities[int(np.argmax(scores))])
    means = [data.rewards[data.actions == arm].mean() for arm in range(3)]
    assert found.loss == pytest.approx(max(means) - weights / weights.sum() @ means)
    assert learn_arm(data, SOURCE, 50.0).right == pytest.approx(1.0, abs=1e-6)
    assert found.selection.release() in ARMS
    said = " ".join(private_arm_words(found))
    assert f"with probability {found.right:.2f} the arm that the log puts first" in said
    assert "Private is here the row of each patient of the log" in said


def test_other_ranges_are_put_on_the_same_scale_and_unknown_outcomes_count_for_no_arm():
    data = make_trial(90, 0.3, seed=2).log.data
    plain = learn_arm(data, SOURCE, 1.0).selection.scores
    shifted = replace(data, rewards=10 * data.rewards - 4)
    assert np.allclose(learn_arm(shifted, replace(SOURCE, utility_range=(-4.0, 6.0)), 1.0).selection.scores, plain)
    weights = np.where(np.arange(90) < 30, 0.0, 1.3)
    censored = replace(data, observed=Observed(data.rewards, weights))
    kept = LoggedData(data.actions[30:], data.rewards[30:], data.propensities[30:], data.names)
    assert np.allclose(learn_arm(censored, SOURCE, 1.0).selection.scores, learn_arm(kept, SOURCE, 1.0).selection.scores)


def test_propensities_that_are_data_are_refused():
    data = make_trial(90, 0.3, seed=2).log.data
    for propensity in ("estimate", "p"):
        with pytest.raises(ValueError, match=f'needs propensity = "equal", got "{propensity}"'):
            learn_arm(data, replace(SOURCE, propensity=propensity), 1.0)


def test_more_epsilon_is_more_often_right():
    data = make_trial(300, 0.3, seed=2).log.data
    rights = [learn_arm(data, SOURCE, epsilon).right for epsilon in (0.01, 0.1, 1.0)]
    assert rights == sorted(rights)
    assert rights[0] == pytest.approx(1 / 3, abs=0.1)
    assert not math.isnan(rights[-1])

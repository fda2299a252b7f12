"""Against the best of several arms: the interval holds whichever arm is the best."""

import numpy as np
import pytest

from policysim.trials.arms import against_best


@pytest.mark.parametrize("arms", [[0.0, 0.0, 0.0, 0.0], [0.0] * 12, [1.0, 0.2, 0.0], [3.0, 0.0]])
def test_intervals_cover_the_difference_to_the_truly_best_arm(arms):
    rng = np.random.default_rng(len(arms))
    n_draws, covered, better = 2000, 0, 0
    truth = 0.5 - max(arms)
    for _ in range(n_draws):
        policy, means = 0.5 + rng.normal(0, 0.3), np.array(arms) + rng.normal(0, 0.2, len(arms))
        errors = np.full(len(arms), np.hypot(0.3, 0.2))
        found = against_best(policy - means, errors, 10_000)
        covered += found.interval[0] <= truth <= found.interval[1]
        better += found.interval[0] > truth
    # At least 95 %: 2,000 draws give fewer than 1,865 with probability 2e-4. Too good: at most 2.5 %, 80 with 1e-5.
    assert covered >= 1865
    assert better <= 80


def test_one_arm_is_an_ordinary_interval():
    found = against_best([0.2], [0.1], 10_000_000)
    assert found.interval == pytest.approx((0.2 - 1.959964 * 0.1, 0.2 + 1.959964 * 0.1), abs=1e-6)


def test_better_than_the_best_means_better_than_each():
    assert (
        against_best([0.5, 0.1], [0.1, 0.1], 1000).interval[0]
        < 0
        < against_best([0.5, 0.4], [0.1, 0.1], 1000).interval[0]
    )

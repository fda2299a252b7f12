"""What is told of planted logs is right, a small version of benchmarks/offpolicy.py --trials: few splits and logs."""

from dataclasses import replace

import numpy as np
import pytest
from planted_logs import GAINS, NULLS, OLD, WORLDS, planted_log, repeated, told_of
from scipy.stats import binom

from policysim.trials import trial_columns
from policysim.trials.estimators import over_splits

LOGS = 12
# Were 93 of 100 covered, fewer would be with probability 1e-3 at most.
FEWEST = int(binom.ppf(1e-3, LOGS, 0.93))


# Where no arm is best, and where few patients decide.
@pytest.mark.parametrize("world", ["tied arms", "poor overlap"])
def test_intervals_hold_the_difference_to_the_arm_chosen_elsewhere(world, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    found = repeated(WORLDS[world], LOGS, seed=3, look=False)
    for _, mine in found.groupby("policy"):
        assert mine["covered"].sum() >= FEWEST
        # No winner's curse: of so many logs the mean error has a standard error of a fifth of its deviation.
        assert abs(mine["error"].mean()) <= 4 * mine["error"].std() / np.sqrt(LOGS)
    # Called better though it is not: at most 2.5 of 100; more than 3 of 12 have probability 2e-4.
    assert found.groupby("policy")["invented"].sum().max() <= 3


@pytest.mark.usefixtures("few_trees")
def test_confounding_by_two_features_together_is_modelled():
    """Arms are .05 apart; by plain means, as by models of main effects, they would be .25 apart."""
    world, rng = WORLDS["interaction confounding"], np.random.default_rng(11)
    apart = []
    for _ in range(2):
        study, log = planted_log(world, rng)
        values = next(trial_columns.split_log(log, study)).values
        apart.append((values[:, 1] - values[:, 0]).mean())
    # The standard error of a mean of two differences among 1,000 patients is about .025.
    assert np.mean(apart) == pytest.approx(0.05, abs=0.08)


def test_without_a_gain_nothing_is_called_better_and_a_large_one_is(monkeypatch):
    """Few splits of few logs; benchmarks/log_verdicts.py has more."""
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    large = replace(GAINS["gain .10, two arms"], success=np.column_stack([0.9 - 0.8 * OLD, 0.1 + 0.8 * OLD]))
    better = []
    for world in (NULLS["one arm differs, no gain"], large):
        rng = np.random.default_rng(21)
        for _ in range(3):
            study, log = planted_log(world, rng)
            for name, truth, estimates in told_of(world, study, log):
                told = over_splits(estimates)
                assert told.low - 0.05 <= truth <= told.high + 0.05
                better.append((world is large, name, told.low > 0))
    assert not any(called for gains, _, called in better if not gains)
    assert all(called for gains, name, called in better if gains and name == "greedy")

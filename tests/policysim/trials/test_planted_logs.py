"""What is told of planted logs is right, a small version of benchmarks/offpolicy.py --trials: few splits and logs."""

import numpy as np
import pytest
from planted_logs import WORLDS, planted_log, repeated
from scipy.stats import binom

from policysim.trials import trial_columns

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

"""What is told of planted logs is right, a small version of benchmarks/offpolicy.py --trials: few splits and logs."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from planted_logs import GAINS, NULLS, OLD, WORLDS, planted_log, repeated, told_of
from scipy.stats import binom

from policies.reference import BestFixed, Greedy
from policysim.report.findings import EQUAL, NOT_SHOWN
from policysim.study.study_problem import problem_of_log
from policysim.trials import splits, trial_columns
from policysim.trials.estimators import Moments, over_splits
from policysim.trials.splits import Measured

USE = ["p_wait", "p_pill", "p_drip"]
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
        values = next(splits.split_log(log, study)).values
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


def test_a_policy_that_is_one_arm_for_all_is_equal_though_a_few_splits_differ(monkeypatch):
    """On all data it is, and in 9 of 10 splits: whatever the seed. Where more splits differ, it is not."""
    monkeypatch.setattr(trial_columns, "REPEATS", 10)
    monkeypatch.setattr(trial_columns, "MOST_TIMES", 1)
    greedy, world = Greedy(), NULLS["a strong effect in all"]
    for draw, differing in ((3, {0: 0, 2: 1}), (9, {0: 7, 1: 4})):
        study, log = planted_log(world, np.random.default_rng(draw))
        on_all = problem_of_log(study, log)
        assert np.array_equal(greedy.probabilities(on_all), BestFixed().probabilities(on_all))
        for seed, n_splits in differing.items():
            seeded = replace(study, seed=seed, policies=("greedy", "best-fixed", "uniform"))
            assert n_splits == sum(
                any((greedy.probabilities(each) != BestFixed().probabilities(each)).any() for each in split.problems)
                for split in islice(splits.split_log(log, seeded), 10)
            )
            judged = trial_columns.judged_on_splits(seeded, log, [greedy]).iloc[0]
            equal = n_splits <= 1
            assert judged["verdict"] == (EQUAL if equal else NOT_SHOWN)
            assert (judged["low"] == judged["high"]) == equal
            rows = trial_columns.compare_log(seeded, log).set_index("policy")
            of_greedy, of_one, of_uniform = (rows.loc[name] for name in seeded.policies)
            assert of_greedy[["value", "loss", *USE]].equals(of_one[["value", "loss", *USE]]) == equal
            if equal:
                assert not of_one[["loss", "loss_low", "loss_high"]].any()
                assert of_uniform["loss"] == -of_uniform["difference"] > 0
                # Only the difference from one arm for all allows for successes and failures that nobody had.
                assert of_uniform["loss_low"] == pytest.approx(-of_uniform["difference_high"], abs=0.002)


def test_a_policy_that_differs_on_all_data_is_not_equal_though_nearly_all_splits_do_not():
    none, some = Moments(500, 0.0, 0.0), Moments(500, 0.02, 0.01)
    study, log = planted_log(GAINS["gain .10, two arms"], np.random.default_rng(0))
    on_all = problem_of_log(study, log)
    assert (Greedy().probabilities(on_all) != BestFixed().probabilities(on_all)).any()
    measured = {Greedy(): [Measured([{"difference": each}], [{}], 0.0, 0.0, 0.0) for each in (*[none] * 9, some)]}
    assert trial_columns.settled(study, log, measured, trial_columns.groups_of(log, ())) == measured

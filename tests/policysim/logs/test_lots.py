"""Unequal allocation: a declared ratio, and the shares of the arms; what a wrong one does, and what it costs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from policysim.logs.counted_log import count_log
from policysim.logs.load_log import load_log
from policysim.logs.log_frame import LoggedData
from policysim.logs.treatments import arm_shares
from policysim.trials.diagnostics import log_caveats
from policysim.trials.estimate_value import estimate_value

STUDY = """
[data]
file = "trial.csv"
treatment = "arm"
propensity = {propensity}
outcome = {{ employed = 1.0 }}
missing = "exclude"
[data.treatments]
0 = "control"
1 = "drug"
[data.features]
black = {{ levels = [0, 1] }}
"""
# Of the experiment of the National Supported Work Demonstration (LaLonde 1986), in the sample of Dehejia & Wahba.
SIZES = (260, 185)


def trial(sizes=SIZES, seed=0):
    """So many patients by lot, of whom a feature and an outcome are known."""
    rng = np.random.default_rng(seed)
    arm = rng.permutation(np.repeat((0, 1), sizes))
    chance = 0.5 + 0.15 * arm
    return pd.DataFrame(
        {"black": rng.integers(2, size=len(arm)), "arm": arm, "employed": (rng.random(len(arm)) < chance).astype(float)}
    )


@pytest.fixture
def read(tmp_path, read_section):
    def of(frame, propensity, counted=False):
        frame.to_csv(tmp_path / "trial.csv", index=False)
        source = read_section(STUDY.format(propensity=propensity))
        return (count_log(source) if counted else load_log(source)), source

    return of


def chances(log):
    """The propensity of each arm, which must be one number."""
    found = [np.unique(log.data.propensities[log.data.actions == arm]) for arm in (0, 1)]
    assert list(map(len, found)) == [1, 1]
    return [float(own[0]) for own in found]


@pytest.mark.parametrize("counted", [False, True])
def test_propensities_are_the_ratio_or_the_shares(read, counted):
    frame = trial()
    assert chances(read(frame, "{ drug = 2, control = 1 }", counted)[0]) == [1 / 3, 2 / 3]
    assert chances(read(frame, '"arm shares"', counted)[0]) == [260 / 445, 185 / 445]
    equal, one_to_one = (read(frame, said, counted)[0] for said in ('"equal"', "{ control = 3, drug = 3 }"))
    assert equal.data.propensities.tobytes() == one_to_one.data.propensities.tobytes()


@pytest.mark.parametrize("counted", [False, True])
def test_shares_are_those_of_the_patients_who_have_a_treatment(read, counted):
    frame = trial()
    frame.loc[frame.index[frame["arm"] == 1][:85], "employed"] = np.nan
    frame.loc[frame.index[frame["arm"] == 0][:20], "arm"] = np.nan
    log = read(frame, '"arm shares"', counted)[0]
    # Those without an outcome are used, too.
    assert chances(log) == [240 / 425, 185 / 425]
    assert (log.missing, log.n_untreated) == ((0, 85), 20)


def test_what_is_declared_is_doubted_where_the_arms_are_not_like_it_and_only_there(read):
    frame = trial()
    said = {
        propensity: log_caveats(*read(frame, propensity)).errors
        for propensity in ('"equal"', '"arm shares"', "{ control = 260, drug = 185 }", "{ control = 1, drug = 2 }")
    }
    assert list(map(len, said.values())) == [1, 0, 0, 1]
    # Pearson's statistic is 445 (1/2 - 185/445)^2 / (1/4) = 12.6 on one degree of freedom.
    assert said['"equal"'][0].startswith('propensity = "equal" is doubtful: the treatments have control 260, drug 185')
    assert said['"equal"'][0].endswith("which a randomisation gives with probability 0.0004.")
    assert said["{ control = 1, drug = 2 }"][0].startswith("propensity = 1:2 is doubtful: the treatments have control")


def test_an_arm_that_nobody_got_makes_the_shares_doubtful(read):
    log, source = read(trial(), '"equal"')
    data = replace(log.data, names=(*log.data.names, "surgery"))
    assert "surgery 0" in log_caveats(replace(log, data=data), source).errors[0]


@pytest.mark.parametrize("propensity", ['"arm shares"', "{ control = 260, drug = 185 }"])
def test_who_got_a_treatment_by_a_feature_is_told_whatever_the_shares(read, propensity):
    frame = trial()
    frame["black"] = np.where(np.random.default_rng(1).random(len(frame)) < 0.3, 1 - frame["arm"], frame["arm"])
    (said,) = log_caveats(*read(frame, propensity)).errors
    assert "who got which treatment depends on black" in said


def test_intervals_that_take_shares_as_known_are_not_too_narrow():
    # Simple randomisation 1:2, so that the shares differ from log to log; the value of giving either to half is 2.2.
    rng, found, covered = np.random.default_rng(4), [], 0
    for _ in range(600):
        actions = (rng.random(150) < 2 / 3).astype(int)
        rewards = 2 + 0.4 * actions + rng.normal(size=150) * 0.3
        data = LoggedData(actions, rewards, arm_shares(actions, 2), ("control", "drug"))
        one = [estimate_value(data, np.full((150, 2), 0.5), estimator=name) for name in ("ips", "snips")]
        found.append([(each.value, each.standard_error) for each in one])
        covered += np.array([each.interval[0] <= 2.2 <= each.interval[1] for each in one])
    values, errors = np.moveaxis(np.array(found), 2, 0)
    ratio = errors.mean(axis=0) / values.std(axis=0)
    # Weighting by shares is comparing means of arms, on whose spread the sizes of arms have no part; in what is said of
    # "ips" they have much, as rewards are far from 0. Of 600 draws a standard deviation is known to 3 %.
    assert ratio[0] > 1.5
    assert (ratio > 0.91).all()
    # 95 %, give or take three standard deviations of a count of 600.
    assert (covered >= 600 * 0.95 - 3 * np.sqrt(600 * 0.95 * 0.05)).all()

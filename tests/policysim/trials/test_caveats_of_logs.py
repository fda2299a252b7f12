"""What may be wrong with a log: doubtful allocation is told, good allocation is not."""

from dataclasses import replace

import numpy as np
from small_trials import make_trial

from policysim.logs.log_frame import LoggedData
from policysim.trials.diagnostics import log_caveats
from policysim.trials.estimators import range_caveats


def every(log, source):
    found = log_caveats(log, source)
    return [*found.errors, *found.others]


def with_actions(trial, actions):
    return replace(trial.log, data=replace(trial.log.data, actions=actions))


def test_good_trials_are_rarely_doubted():
    said = 0
    for seed in range(40):
        trial = make_trial(600, 0.2, seed=seed)
        said += bool(every(trial.log, trial.study.log))
    # At most 0.002 each for the allocation tests; more than 2 of 40 has probability 8e-5.
    assert said <= 2


def test_allocation_by_a_feature_is_told():
    trial = make_trial(600, 0.2, seed=1)
    old = trial.log.space.codes(trial.log.records)[:, 0]
    actions = np.where(old == 1, 2, trial.log.data.actions)
    said = " ".join(every(with_actions(trial, actions), trial.study.log))
    assert "who got which treatment depends on old" in said
    assert "the treatments have wait" in said


def test_estimated_propensities_and_few_patients_are_told():
    trial = make_trial(60, 0.0, seed=3)
    said = log_caveats(trial.log, replace(trial.study.log, propensity="estimate"))
    assert not said.errors  # what no interval covers, and is seen
    said = said.others
    assert any("confounding" in caveat for caveat in said)
    assert any("effective sample size of the log is 60" in caveat for caveat in said)


def recorded(n_rows=1500):
    """A log of doctors who give treatment 1 to half of x = 0, 65 % of x = 1, 80 % of x = 2; and P(1)."""
    rng = np.random.default_rng(5)
    trial = make_trial(n_rows, 0.0, seed=5, log=replace(make_trial(30, 0.0, 1).study.log, propensity="ps"))
    x = trial.log.space.codes(trial.log.records)[:, 1]
    chance = 0.5 + 0.15 * x
    actions = (rng.random(n_rows) < chance).astype(int)
    data = LoggedData(actions, trial.log.data.rewards, np.where(actions == 1, chance, 1 - chance), ("0", "1"))
    return trial.study.log, replace(trial.log, data=data, missing=(0, 0)), chance


def test_recorded_propensities_that_fit_are_believed_and_others_are_named_with_the_likely_cause():
    source, log, chance = recorded()
    assert not every(log, source)
    for arm, of in ((1, chance), (0, 1 - chance)):
        wrong = replace(log, data=replace(log.data, propensities=of))
        (said,) = log_caveats(wrong, source).errors
        rows = log.data.actions == 1 - arm
        total = (1 / of[rows]).sum()
        assert (
            f"over the {rows.sum():,} rows of “{1 - arm}” 1 / ps sums to {total:,.0f}, and should sum to about 1,500"
            in said
        )
        assert f"seems to be the probability of “{arm}”" in said
        assert f"put 1 - ps into the rows of “{1 - arm}”" in said
    # All too small: no treatment's probability explains it.
    said = log_caveats(replace(log, data=replace(log.data, propensities=log.data.propensities / 2)), source).errors
    assert len(said) == 2 and not any("seems to be" in text for text in said)


def test_an_impossible_value_and_an_interval_of_nearly_everything_are_called_that():
    one, other = (range_caveats("A", *each, (0.0, 1.0), str) for each in ((1.2, (0.4, 2.0)), (0.5, (0.04, 0.96))))
    assert "A is 1.2, which is impossible (0.0 to 1.0 are possible)" in one[0]
    assert "A may be nearly anything: its 95 % interval is 0.04 to 0.96" in other[0]
    assert not range_caveats("A", 0.5, (0.1, 0.9), (0.0, 1.0), str)
    assert not range_caveats("A", 1.0, (1.0, 1.0), (0.0, 1.0), str)

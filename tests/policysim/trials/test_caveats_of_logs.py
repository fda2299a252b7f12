"""What may be wrong with a log: doubtful allocation is told, good allocation is not."""

from dataclasses import replace

import numpy as np
from small_trials import make_trial

from policysim.trials.diagnostics import log_caveats


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

"""What may be wrong with a log: doubtful allocation is told, good allocation is not."""

from dataclasses import replace

import numpy as np
import pandas as pd
from small_trials import make_trial

from policysim.logs.load_log import load_log
from policysim.study.study_reader import load_study
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


def test_a_hole_is_named_though_propensities_are_estimated(tmp_path):
    """The old never get the drip; the model of propensities follows that, so that no weight is large."""
    rng = np.random.default_rng(2)
    n = 2000
    age = rng.integers(40, 90, n)
    arm = rng.integers(0, 3, n)
    arm[(age >= 80) & (arm == 2)] = 0
    pd.DataFrame({"age": age, "ill": rng.integers(0, 2, n), "arm": arm, "success": rng.integers(0, 2, n)}).to_csv(
        tmp_path / "log.csv", index=False
    )
    study = tmp_path / "study.toml"
    study.write_text(
        '[data]\nfile = "log.csv"\ntreatment = "arm"\npropensity = "estimate"\noutcome = { success = 1.0 }\n'
        "[data.treatments]\n0 = 'wait'\n1 = 'pill'\n2 = 'drip'\n"
        "[data.features]\nage = { cuts = [55, 70] }\nill = { levels = [0, 1] }\n"
    )
    source = load_study(study).log
    said = every(load_log(source), source)
    old = (age >= 80).sum()
    assert any(f"no overlap, age ≥ 80: nobody got drip (0 of {old} patients)" in caveat for caveat in said)

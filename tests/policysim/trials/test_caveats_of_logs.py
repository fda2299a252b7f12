"""What may be wrong with a log: doubtful allocation is told, good allocation is not."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from small_trials import make_trial

from policysim.logs.log_frame import LoggedData, Observed
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


def test_recorded_propensities_that_fit_all_patients_and_not_those_with_a_level_are_named():
    source, log, chance = recorded()
    balanced = np.where(chance == 0.65, 0.5, np.where(chance > 0.65, 0.8, 0.2))  # half of all patients get each arm
    rng = np.random.default_rng(3)
    actions = (rng.random(len(chance)) < balanced).astype(int)
    true = replace(log.data, actions=actions, propensities=np.where(actions == 1, balanced, 1 - balanced))
    assert not log_caveats(replace(log, data=true), source).errors
    wrong = replace(true, propensities=np.full(len(chance), 0.5))
    said = log_caveats(replace(log, data=wrong), source).errors
    assert len(said) == 2
    name, labels = log.space.names[1], log.space.groups(log.space.names[1])[1]
    for arm, text in enumerate(said):
        label = min(re.findall(rf"with {name} = (\S+)", text))
        inside = log.space.codes(log.records)[:, 1] == labels.index(label)
        rows = np.count_nonzero(inside & (actions == arm))
        assert f"over the {rows} rows of “{arm}” with {name} = {label} 1 / ps sums to {2 * rows}" in text
        assert f"should sum to about {inside.sum()}" in text


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.02])
def test_true_propensities_are_believed_however_small(chance):
    """The bound is Bernstein's: of 1,000 logs with their true propensities one may be doubted."""
    source, log, _ = recorded(400)
    rng, doubted = np.random.default_rng(1), 0
    for _ in range(60):
        actions = (rng.random(400) < chance).astype(int)
        data = replace(log.data, actions=actions, propensities=np.where(actions == 1, chance, 1 - chance))
        doubted += bool(_recorded_errors(replace(log, data=data), source))
    assert not doubted


def _recorded_errors(log, source):
    return [text for text in log_caveats(log, source).errors if "does not fit" in text]


@pytest.mark.parametrize("of_outcomes", [False, True])
def test_a_level_of_which_nobody_got_an_arm_or_has_an_outcome_is_named_as_soon_as_chance_would_not_do_it(of_outcomes):
    told = []
    for n_rows in (40, 60, 90, 150, 250, 400):
        source, log, _ = recorded(n_rows)
        name, inside = log.space.names[1], log.space.codes(log.records)[:, 1] == 2
        actions = np.where(inside & ~of_outcomes, 0, log.data.actions)
        seen = ~(inside & (actions == 1)) if of_outcomes else np.ones(n_rows, dtype=bool)
        among = actions == 1 if of_outcomes else np.ones(n_rows, dtype=bool)
        share = (seen if of_outcomes else actions == 1)[among].mean()
        chance = binom.pmf(0, np.count_nonzero(inside & among), 0.4 * share)
        n_levels = sum(len(feature.levels) for feature in log.space.features)
        data = replace(log.data, actions=actions, observed=Observed(log.data.rewards, seen.astype(float)))
        said = " ".join(log_caveats(replace(log, data=data), replace(source, propensity="estimate")).errors)
        empty = f"{name} = {log.space.groups(name)[1][2]}: nobody {'with' if of_outcomes else 'got'} 1"
        told.append(chance < 0.01 / (2 * n_levels))
        assert (empty in said) == told[-1]
    assert {*told} == {False, True}


def test_an_impossible_value_and_an_interval_of_nearly_everything_are_called_that():
    one, other = (range_caveats("A", *each, (0.0, 1.0)) for each in ((1.2, (0.4, 2.0)), (0.5, (0.04, 0.96))))
    assert "A is 1.2, which is impossible (0 to 1 are possible)" in one[0]
    assert "A may be nearly anything: its 95 % interval is 0.040 to 0.96" in other[0]
    assert range_caveats("A", 1.0359, (0.9, 1.0), (0.0, 1.0))[0].startswith("A is 1.04, which is impossible")
    assert not range_caveats("A", 0.5, (0.1, 0.9), (0.0, 1.0))
    assert not range_caveats("A", 1.0, (1.0, 1.0), (0.0, 1.0))

"""The warnings of an estimate: each where it is due, and none where all is well."""

import numpy as np
import pandas as pd
import pytest

from policysim.offpolicy import evaluate_log


def trial(n=2000, seed=0, *, share=(1 / 3, 1 / 3, 1 / 3), avoid=False, stated=None):
    """A trial of three arms whose reward is normal; `avoid`: arm c is never given to those with x > 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    share = np.tile(share, (n, 1))
    if avoid:
        share[x > 0] = [0.5, 0.5, 0]
    actions = (rng.random(n)[:, None] >= np.cumsum(share, axis=1)).sum(axis=1)
    propensity = share[np.arange(n), actions] if stated is None else np.array(stated)[actions]
    columns = {"action": np.array(list("abc"))[actions], "reward": rng.normal(size=n), "propensity": propensity, "x": x}
    return pd.DataFrame(columns)


POLICY = np.tile([0.2, 0.2, 0.6], (2000, 1))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_nothing_is_said_of_a_good_trial(estimator):
    assert evaluate_log(trial(), POLICY, estimator=estimator).warnings == ()


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_an_action_that_the_log_never_takes_is_named_with_its_share(estimator):
    log = trial(share=(0.5, 0.5, 0))
    said = evaluate_log(log, POLICY, estimator=estimator, actions=["a", "b", "c"]).warnings
    assert said[0].startswith("no overlap: the log never takes c, on which the evaluated policy puts 60.0% of its")


def test_an_action_that_some_patients_never_get_is_named_with_about_the_share_that_is_missing():
    # Half of the patients (x > 0) never get c, to which the policy gives 0.6: 30 % are missing.
    (said,) = evaluate_log(trial(avoid=True), POLICY, estimator="dr").warnings
    assert said.startswith("overlap fails for c: about ")
    missing = float(said.split("about ")[1].split("%")[0]) / 100
    # The mean of w 1{c} has variance at most 0.6 * 1.8 / 2000, a standard deviation of 0.023; four of them.
    assert missing == pytest.approx(0.3, abs=4 * 0.023)


def test_propensities_that_are_too_small_are_noticed():
    said = evaluate_log(trial(stated=[1 / 3, 1 / 3, 0.15]), POLICY, estimator="ips").warnings
    assert said[0].startswith("propensities of c seem too small: its weights sum to 2.")


def test_full_overlap_is_seldom_doubted_however_rare_an_action():
    # At most 0.3 % each for three actions, were sums of few large weights normal; they are not quite: 2 % are allowed,
    # of 500 logs in which c has about four rows of weight 60.
    rng = np.random.default_rng(1)
    share, doubted = np.array([0.6, 0.39, 0.01]), 0
    for _ in range(500):
        actions = rng.choice(3, 400, p=share)
        log = pd.DataFrame({"action": actions, "reward": rng.normal(size=400), "propensity": share[actions]})
        said = evaluate_log(log, POLICY[:400], estimator="ips", actions=[0, 1, 2]).warnings
        doubted += any(word.startswith(("overlap", "propensities")) for word in said)
    assert doubted <= 10


def test_few_effective_rows_are_said():
    said = evaluate_log(trial(100), POLICY[:100], estimator="ips").warnings
    assert any(word.startswith("effective sample size ") and "of 100 rows: below 200" in word for word in said)


def test_rare_and_large_losses_are_said():
    log = trial()
    log["reward"] = 0.0
    log.loc[[5, 900], "reward"] = -100.0
    for estimator in ("ips", "snips", "dr"):
        assert any(
            word.startswith("a few rows decide") for word in evaluate_log(log, POLICY, estimator=estimator).warnings
        )


def test_rewards_that_do_not_vary_are_no_certainty():
    log = trial().assign(reward=1.0)
    found = evaluate_log(log, POLICY, estimator="snips")
    assert found.standard_error == 0
    assert found.warnings == ("no two rows say anything different: the standard error of 0 is no sign of certainty.",)


def test_an_action_of_too_few_rows_to_model_is_named():
    log = trial(400, share=(0.49, 0.49, 0.02))
    assert 0 < (log["action"] == "c").sum() < 10
    said = evaluate_log(log, POLICY[:400], estimator="dm").warnings
    assert said[-1] == "too few rows to model the outcome of c: a mean stands in for it."

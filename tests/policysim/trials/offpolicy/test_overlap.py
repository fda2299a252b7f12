"""The warnings of an estimate: each where it is due, and none where all is well."""

import numpy as np
import pandas as pd
import pytest

from policysim.trials.estimators import MODEL_BIAS
from policysim.trials.evaluate_log import evaluate_log


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
    # Of the direct method always what its interval leaves out.
    assert evaluate_log(trial(), POLICY, estimator=estimator).warnings == (() if estimator != "dm" else (MODEL_BIAS,))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_an_action_that_the_log_never_takes_is_named_with_its_share(estimator):
    log = trial(share=(0.5, 0.5, 0))
    said = evaluate_log(log, POLICY, estimator=estimator, actions=["a", "b", "c"]).warnings
    assert said[0].startswith("no overlap: the log never takes c, on which the evaluated policy puts 60.0% of its")


def test_an_action_that_some_patients_never_get_is_named_with_about_the_share_that_is_missing():
    # Half of the patients (x > 0) never get c, to which the policy gives 0.6: 30 % are missing.
    where, said = evaluate_log(trial(avoid=True), POLICY, estimator="dr").warnings
    cut = float(where.split("x ≥ ")[1].split(":")[0])
    assert where.startswith("no overlap, x ≥ ") and ": nobody got c (0 of " in where and abs(cut) < 0.05
    assert said.startswith("overlap fails for c: about ")
    missing = float(said.split("about ")[1].split("%")[0]) / 100
    # The mean of w 1{c} has variance at most 0.6 * 1.8 / 2000, a standard deviation of 0.023; four of them.
    assert missing == pytest.approx(0.3, abs=4 * 0.023)


def test_propensities_that_are_too_small_are_noticed():
    said = evaluate_log(trial(stated=[1 / 3, 1 / 3, 0.15]), POLICY, estimator="ips").warnings
    assert said[0].startswith("propensities of c seem too small: its weights sum to 2.")


def test_full_overlap_is_seldom_doubted_however_rare_an_action():
    # At most 0.05 % each for three actions, were sums of few large weights normal. But c has Poisson(4) rows of weight
    # 60, and 11 of them (0.3 %) are beyond 3.5 standard deviations: of 60 logs 0.2, and 4 with probability 3e-5.
    rng = np.random.default_rng(1)
    share, doubted = np.array([0.6, 0.39, 0.01]), 0
    for _ in range(60):
        actions = rng.choice(3, 400, p=share)
        log = pd.DataFrame({"action": actions, "reward": rng.normal(size=400), "propensity": share[actions]})
        said = evaluate_log(log, POLICY[:400], estimator="ips", actions=[0, 1, 2]).warnings
        doubted += any(word.startswith(("overlap", "propensities")) for word in said)
    assert doubted <= 3


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


@pytest.mark.parametrize("estimator", ["snips", "dm", "dr"])
def test_rewards_that_do_not_vary_are_no_certainty(estimator):
    log = trial().assign(reward=1.0)
    found = evaluate_log(log, POLICY, estimator=estimator)
    assert found.standard_error == 0
    said = "nothing varies from row to row: the standard error of 0 is no sign of certainty."
    assert found.warnings == ((said, MODEL_BIAS) if estimator == "dm" else (said,))


def test_an_action_of_too_few_rows_to_model_is_named():
    log = trial(400, share=(0.49, 0.49, 0.02))
    assert 0 < (log["action"] == "c").sum() < 10
    said = evaluate_log(log, POLICY[:400], estimator="dm").warnings
    assert said[-1] == "too few rows to model the outcome of c: a mean stands in for it."

"""Outcomes that are missing more often in one arm than in another: rows that are left out must not bias anything."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from policysim.logs.read_log import read_log
from policysim.logs.treatments import estimate_propensities, observed_propensities
from policysim.trials.evaluate_log import evaluate_log

LOGS = 16
THIRD_ARM = np.array([0, 0, 1.0])


def trial(seed, n=1500, shares=(1 / 3, 1 / 3, 1 / 3)):
    """Three arms by lot, worth 0.5 each; 30 % of the outcomes of the last one are missing by chance."""
    rng = np.random.default_rng(seed)
    x, arm = rng.normal(size=n), rng.choice(3, n, p=shares)
    success = (rng.random(n) < np.clip(0.5 + 0.2 * x, 0, 1)).astype(float)
    success[(arm == 2) & (rng.random(n) < 0.3)] = np.nan
    return pd.DataFrame({"arm": arm, "success": success, "x": x, "chance": np.array(shares)[arm]})


@cache
def logs(propensity, shares):
    """Trials as they are read, the same for all estimators."""
    options = {"treatment": "arm", "outcome": "success", "propensity": propensity, "missing": "exclude"}
    read = (read_log(trial(seed, shares=shares), **options) for seed in range(LOGS))
    return [log[["action", "reward", "propensity", "x"]] for log in read]


def off(estimator, propensity, shares=(1 / 3, 1 / 3, 1 / 3), policy=THIRD_ARM):
    """Standard errors that the mean estimate over many logs is from 0.5, which is true by symmetry."""
    found = [
        evaluate_log(log, np.tile(policy, (len(log), 1)), estimator=estimator).value for log in logs(propensity, shares)
    ]
    return (np.mean(found) - 0.5) / (np.std(found, ddof=1) / np.sqrt(LOGS))


# Four standard errors of a mean over 16 logs, themselves estimated: by Student's t 1 in 860 each, and the seeds are
# fixed. Without the share of observed rows IPS of the third arm is 0.7 / 0.9 of what it should be: 0.11 too little, 19
# of them.
@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
@pytest.mark.parametrize(
    ("propensity", "shares"),
    [("equal", (1 / 3, 1 / 3, 1 / 3)), ("chance", (0.5, 0.3, 0.2))],
)
def test_no_estimator_is_biased_by_outcomes_missing_by_chance_in_one_arm(estimator, propensity, shares):
    assert abs(off(estimator, propensity, shares)) <= 4


def test_propensities_are_those_of_the_rows_that_are_left():
    taken = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    seen = np.array([True, True, True, True, True, False, False, True])
    # 6 of 8 are left: 4 of 4 and 2 of 4, so factors 4/3 and 2/3, and never more than 1.
    given = np.array([0.5, 0.6, 0.9, 0.3, 0.5, 0.1, 0.1, 0.9])
    found = observed_propensities(given, taken, seen, 3)
    np.testing.assert_allclose(found, [2 / 3, 0.8, 1, 0.4, 1 / 3, 0.6], rtol=1e-15)
    # Nothing missing changes nothing, bit for bit.
    assert observed_propensities(given, taken, np.ones(8, dtype=bool), 3).tolist() == given.tolist()


@pytest.mark.usefixtures("few_trees")
def test_estimated_propensities_are_fitted_to_the_rows_that_are_left():
    table = trial(3, n=300)
    log = read_log(table, treatment="arm", outcome="success", propensity="estimate", missing="exclude")
    left = table.dropna()
    kept = left[["x", "chance"]].to_numpy()
    expected = estimate_propensities(kept, np.arange(len(left)), left["arm"].to_numpy(), ("0", "1", "2"))
    np.testing.assert_allclose(log["propensity"], expected, rtol=1e-9)


@pytest.mark.usefixtures("few_trees")
def test_outcomes_of_simulated_logs_do_not_predict_the_treatment():
    table = trial(4, n=300)
    options = {"treatment": "arm", "outcome": "success", "propensity": "estimate", "missing": "exclude"}
    found = read_log(table.assign(outcome_ill=table["arm"], patient=range(300)), **options)
    assert found["propensity"].tolist() == read_log(table, **options)["propensity"].tolist()
    assert {"outcome_ill", "patient"} <= set(found.columns)

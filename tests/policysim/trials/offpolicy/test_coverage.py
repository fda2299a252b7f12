"""Intervals on simulated logs of the covid scenario with known values, a small version of benchmarks/offpolicy.py."""

import numpy as np
import pytest

from policysim.trials.estimate_value import cross_fit, estimate_value
from policysim.trials.estimators import importance_weights, snips
from policysim.trials.evaluate_log import evaluate_log

# Rows for an effective sample size of about 500: a trial by lot keeps 47 % of its rows effective for this policy.
ROWS = 1067
MANY, FEW, RARE = 200, 20, 60


def misses(covered, repetitions):
    """How many standard errors coverage is outside 93 to 97 %, with the standard error at those ends."""
    low, high = (covered - end for end in (0.93, 0.97))
    return max(-low / np.sqrt(0.93 * 0.07 / repetitions), high / np.sqrt(0.97 * 0.03 / repetitions), 0.0)


@pytest.fixture(scope="module")
def trials(infected):
    """IPS and SNIPS of many logs: (covered, ess) each, and the coverage of a planted bug."""
    rng = np.random.default_rng(11)
    rows = {"ips": [], "snips": [], "bug": []}
    for log, _, policy in infected.trials(ROWS, MANY, rng):
        for name in ("ips", "snips"):
            found = estimate_value(log, policy, estimator=name)
            assert found.ess > 200
            rows[name].append(found.interval[0] <= infected.value <= found.interval[1])
        # The planted bug: the weighted spread of the rewards over all rows, as if every row were a whole one.
        w = importance_weights(log, policy)
        value = snips(w, log.rewards).mean()
        error = np.sqrt(w @ (log.rewards - value) ** 2 / w.sum() / ROWS)
        rows["bug"].append(abs(value - infected.value) <= 1.96 * error)
    return {name: float(np.mean(covered)) for name, covered in rows.items()}


@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_intervals_of_weighted_estimates_cover(estimator, trials):
    # Four standard errors (of 1.8 percentage points at 93 %): a false alarm in 30,000 at the ends of what is allowed.
    assert misses(trials[estimator], MANY) < 4


def test_a_wrong_standard_error_is_caught(trials):
    # 47 % of the rows are effective: 1.96 sqrt(0.47) standard errors would cover 82 %, and 86 % is the threshold.
    assert misses(trials["bug"], MANY) > 4


def test_doubly_robust_is_unbiased_covers_and_is_narrower_than_ips(infected):
    rng = np.random.default_rng(12)
    errors, widths = [], []
    for seed, (log, records, policy) in enumerate(infected.trials(ROWS, FEW, rng)):
        covariates = infected.scenario.space.codes(records).astype(float)
        found = estimate_value(log, policy, estimator="dr", fitted=cross_fit(log, covariates, seed=seed))
        errors.append((found.value - infected.value) / found.standard_error)
        widths.append(found.standard_error / estimate_value(log, policy, estimator="ips").standard_error)
    # Standardised errors have mean 0 and square 1: four standard errors of their means, 1/sqrt(20) and sqrt(2/20).
    assert abs(np.mean(errors)) < 4 / np.sqrt(FEW)
    assert abs(np.mean(np.square(errors)) - 1) < 4 * np.sqrt(2 / FEW)
    assert np.mean(widths) < 1


def test_where_deaths_decide_the_interval_fails_and_says_so(everyone):
    rng = np.random.default_rng(13)
    covered, said = [], []
    for log, _, policy in everyone.trials(ROWS, RARE, rng):
        found = estimate_value(log, policy, estimator="ips")
        covered.append(found.interval[0] <= everyone.value <= found.interval[1])
        said.append(any(word.startswith("a few rows decide") for word in found.warnings))
    # Were the coverage 93 %, 60 logs would show less than 0.93 - 4 * 0.033 = 0.80 once in 30,000 runs.
    assert np.mean(covered) < 0.80
    # Nothing can be said of a log without a death: with 0.4 % deaths, exp(-0.004 * 1067) = 1.4 % of them.
    assert np.mean(said) > 1 - 0.014 - 4 * np.sqrt(0.014 / RARE)


def test_a_log_of_the_scenario_as_a_data_frame_gives_what_the_arrays_give(infected, covid):
    ((log, records, policy),) = infected.trials(600, 1, np.random.default_rng(14))
    frame = covid.scenario.space.decode(records)
    actions = np.array(covid.scenario.actions)[log.actions]
    frame = frame.assign(action=actions, reward=log.rewards, propensity=log.propensities)
    for name in ("ips", "snips"):
        by_arrays = estimate_value(log, policy, estimator=name)
        assert evaluate_log(frame, policy, estimator=name).value == by_arrays.value
    assert np.isfinite(evaluate_log(frame, policy, estimator="dr").standard_error)

"""Every estimator: by hand on six rows, against independent formulas, unbiased, doubly robust."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kurtosis, skew
from scipy.stats import t as student

from policysim.logs.log_frame import LoggedData
from policysim.trials.estimate_value import CrossFit, cross_fit, estimate_value, mean_of
from policysim.trials.estimators import Moments, doubly_robust, importance_weights, ips
from policysim.trials.evaluate_log import evaluate_log

WEIGHTED = ("ips", "snips", "dr")


def halves():
    """A seed for which the two folds are the first three and the last three rows; fold 0 first."""
    data = LoggedData(np.zeros(6, dtype=int), np.zeros(6), np.ones(6), ("a", "b"))
    dealt = (cross_fit(data, np.zeros((6, 1)), folds=2, seed=seed).folds for seed in range(10_000))
    return next(seed for seed, folds in enumerate(dealt) if folds[:3].tolist() == [0, 0, 0])


def test_clipping_six_rows_at_one(six_rows, policy_of_six):
    found = evaluate_log(six_rows, policy_of_six, estimator="ips", clip=1)
    # 1 + 0 + 1 + 0 + 0.5 + 1 of weights 1, 0.4, 1, 1, 0.5, 1.
    assert found.value == pytest.approx(3.5 / 6)
    assert found.clipped_share == pytest.approx(1.6 / 6.5)
    assert found.ess == pytest.approx(4.9**2 / (4 + 0.16 + 0.25))
    assert found.largest_weight == pytest.approx(2)
    assert any(said.startswith("clip=1 cuts off 24.6%") for said in found.warnings)


def test_direct_method_of_six_rows(six_rows, policy_of_six):
    # Means stand in for models of so few rows. Rows 3-5 give a 1 and b 1/2, rows 0-2 give a 1/2 and b 1. So the rows
    # are worth 0.9, 0.6, 0.75, 0.75, 0.8, 0.75. Left out: (0.75 + 0.7 + 0.75) / 3 on rows 3-5,
    # (0.6 + 0.9 + 0.75) / 3 on rows 0-2.
    found = evaluate_log(six_rows, policy_of_six, estimator="dm", folds=2, seed=halves())
    assert found.value == pytest.approx(4.55 / 6)
    error = math.sqrt(1 / 2 * 2 * ((0.75 - 2.2 / 3) / 2) ** 2)
    assert found.standard_error == pytest.approx(error)
    assert found.interval[1] - found.value == pytest.approx(student.ppf(0.975, 1) * error)


def test_doubly_robust_of_six_rows(six_rows, policy_of_six):
    # As above, plus w (r - q of the action taken): 0, -0.4, +1, -1, +0.25, 0.
    found = evaluate_log(six_rows, policy_of_six, estimator="dr", folds=2, seed=halves())
    rows = [0.9, 0.2, 1.75, -0.25, 1.05, 0.75]
    assert found.value == pytest.approx(4.4 / 6)
    assert found.standard_error == pytest.approx(np.std(rows, ddof=1) / math.sqrt(6))
    # 1.96 (1 + [(z^4 + 2 z^2 - 3) / 18 g^2 - (z^2 - 3) / 12 k + (z^2 + 1) / 4] / 6), in numbers:
    quantile = 1.959963985 * (1 + (1.0799846 * skew(rows) ** 2 - 0.0701216 * kurtosis(rows) + 1.210365) / 6)
    assert found.interval == pytest.approx([found.value + side * quantile * found.standard_error for side in (-1, 1)])


@st.composite
def logs(draw):
    """A log of any weights and rewards that the evaluated policy agrees with somewhere, and outcome predictions."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, k = draw(st.integers(2, 40)), draw(st.integers(2, 5))
    logging, evaluated = rng.dirichlet(np.ones(k), n), rng.dirichlet(np.ones(k), n)
    actions = rng.integers(k, size=n)
    rewards = rng.normal(draw(st.sampled_from((0, 100))), 1, n)
    log = LoggedData(actions, rewards, logging[np.arange(n), actions] + 0.01, tuple("abcde"[:k]))
    fitted = CrossFit(np.zeros((n, 1)), np.zeros(n, dtype=int), (), rng.normal(size=(n, k)), ())
    return log, evaluated, fitted


@given(logs())
def test_estimates_agree_with_sums_over_rows(drawn):
    log, evaluated, fitted = drawn
    n = log.n_rows
    w = [evaluated[i][log.actions[i]] / log.propensities[i] for i in range(n)]
    r, q = log.rewards, fitted.predictions
    ratio = sum(w[i] * r[i] for i in range(n)) / sum(w)
    added = [
        sum(evaluated[i][a] * (q[i][a] + (a == log.actions[i]) * (r[i] - q[i][a]) / log.propensities[i])
            for a in range(log.n_actions))
        for i in range(n)
    ]  # fmt: skip
    weighted = [w[i] * r[i] for i in range(n)]
    expected = {
        "ips": (np.mean(weighted), np.sqrt(np.var(weighted, ddof=1) / n)),
        "snips": (ratio, np.sqrt(sum((w[i] * (r[i] - ratio)) ** 2 for i in range(n)) * n / (n - 1)) / sum(w)),
        "dr": (np.mean(added), np.sqrt(np.var(added, ddof=1) / n)),
    }
    for name, (value, error) in expected.items():
        found = estimate_value(log, evaluated, estimator=name, fitted=fitted)
        assert found.value == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert found.standard_error == pytest.approx(error, rel=1e-7, abs=1e-9)
        assert found.ess == pytest.approx(sum(w) ** 2 / sum(x * x for x in w))
        assert found.largest_weight == pytest.approx(max(w))


class Small:
    """Two kinds of patients, three actions, rewards 0 and 1: every expectation is a sum of twelve terms."""

    prior = np.array([0.3, 0.7])
    logging = np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    evaluated = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    success = np.array([[0.2, 0.9, 0.5], [0.7, 0.1, 0.4]])
    wrong_success = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.6]])
    wrong_logging = np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])
    value = float(prior @ (evaluated * success).sum(axis=1))

    def expected(self, *, logging, success):
        """The exact expectation of the doubly robust contribution where propensities and the model are as stated."""
        x, a, r = (part.ravel() for part in np.indices((2, 3, 2)))
        chance = self.prior[x] * self.logging[x, a] * np.where(r == 1, self.success[x, a], 1 - self.success[x, a])
        direct = (self.evaluated[x] * success[x]).sum(axis=1)
        w = self.evaluated[x, a] / logging[x, a]
        return float(chance @ doubly_robust(w, r.astype(float), direct, success[x, a]))


def test_doubly_robust_is_unbiased_if_either_the_propensities_or_the_model_are_right():
    small = Small()
    for logging, success in ((small.logging, small.wrong_success), (small.wrong_logging, small.success)):
        assert small.expected(logging=logging, success=success) == pytest.approx(small.value)
    wrong = small.expected(logging=small.wrong_logging, success=small.wrong_success)
    assert abs(wrong - small.value) > 0.1


def test_without_skewness_the_interval_is_students():
    for n in (100, 1000):
        # What is left out: (5 z^5 + 16 z^3 + 3 z) / 96 = 2.8 and, from n - 1 to n, (z^3 + z) / 4 = 2.4, over n^2.
        assert Moments(n, 0, 1).quantile == pytest.approx(student.ppf(0.975, n - 1), abs=6 / n**2)


def test_with_skewness_the_interval_of_a_mean_covers_where_the_plain_one_does_not():
    # Means of 50 exponential numbers (skewness 2, kurtosis 6), 100,000 times.
    n, repetitions = 50, 100_000
    numbers = np.random.default_rng(5).exponential(size=(repetitions, n))
    distance = np.abs(numbers.mean(axis=1) - 1) / (numbers.std(axis=1, ddof=1) / np.sqrt(n))
    corrected = np.mean(distance <= Moments(n, 1, 1, skewness=2, kurtosis=6).quantile)
    plain = np.mean(distance <= Moments(n, 1, 1).quantile)
    # Hall's shortfall of the plain one is z phi(z) (2.16 * 4 - 0.14 * 6) / 50 = 1.8 percentage points. The corrected
    # one is off by terms in 1/n^2 (allowed: a third of that) and the simulation's 0.07 points, four of them.
    assert plain == pytest.approx(0.95 - 0.018, abs=0.006 + 4 * 0.0007)
    assert corrected == pytest.approx(0.95, abs=0.006 + 4 * 0.0007)
    assert corrected > plain + 0.01


def test_the_difference_of_two_policies_comes_from_their_rows():
    rng = np.random.default_rng(4)
    n = 500
    actions = rng.integers(2, size=n)
    log = LoggedData(actions, rng.normal(10, 1, n), np.full(n, 0.5), ("a", "b"))
    first, second = np.tile([0.5, 0.5], (n, 1)), np.tile([0.6, 0.4], (n, 1))
    added = [ips(importance_weights(log, policy), log.rewards) for policy in (first, second)]
    pair = mean_of("ips", log, [first, second])
    alone = [estimate_value(log, policy, estimator="ips") for policy in (first, second)]
    assert pair.mean == pytest.approx(alone[0].value - alone[1].value)
    assert pair.standard_error == pytest.approx(np.std(added[0] - added[1], ddof=1) / np.sqrt(n))


@pytest.mark.parametrize("estimator", WEIGHTED)
def test_a_log_that_never_does_what_the_policy_would_is_refused(estimator, six_rows):
    only_b = six_rows.assign(action="a")
    with pytest.raises(ValueError, match="no row of the log does anything"):
        evaluate_log(only_b, np.tile([0.0, 1.0], (6, 1)), estimator=estimator, actions=["a", "b"], folds=2)


def test_the_arrays_need_a_model_where_the_estimator_does():
    log = LoggedData(np.array([0, 1]), np.ones(2), np.full(2, 0.5), ("a", "b"))
    for name in ("dm", "dr"):
        with pytest.raises(ValueError, match="needs an outcome model"):
            estimate_value(log, np.full((2, 2), 0.5), estimator=name)


def test_rows_without_an_outcome_do_not_count_in_the_effective_size():
    rng = np.random.default_rng(3)
    arm, seen = np.repeat([0, 1], 100), np.ones(200, dtype=bool)
    seen[rng.choice(100, 60, replace=False)] = False
    seen[100 + rng.choice(100, 45, replace=False)] = False
    rewards = np.where(seen, rng.integers(0, 2, 200), np.nan)
    log = pd.DataFrame({"action": arm, "reward": rewards, "propensity": 0.5})
    log.attrs["missing"] = {"0": 60, "1": 45}
    found = evaluate_log(log, np.tile([0.2, 0.8], (200, 1)), estimator="ips")
    # Kish: of each arm's observed rows, weighted for those that are not.
    weights = np.repeat([0.4 / 0.40, 1.6 / 0.55], [40, 55])
    assert found.ess == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.ess <= seen.sum()
    assert any("effective sample size 79 of 200 rows" in text for text in found.warnings)

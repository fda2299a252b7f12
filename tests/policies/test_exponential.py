"""The exponential mechanism: published figures, theory, base measures."""

import math

import numpy as np
import pytest

from policies import AnyRecord, DecisionProblem, make_policy, privacy_loss
from policies.exponential import softmax


def test_probabilities_follow_the_definition():
    rng = np.random.default_rng(3)
    utilities = rng.normal(size=(50, 4))
    problem = DecisionProblem(utilities, np.full(50, 0.02), AnyRecord())
    delta = np.ptp(utilities, axis=0).max()
    weights = np.exp(0.7 * utilities / (2 * delta))
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(make_policy("exponential", epsilon=0.7).probabilities(problem), expected, rtol=1e-13)


def test_one_action_against_many_spends_almost_the_whole_epsilon():
    # u(x) = (1, 0, ..., 0), u(x') = (0, 1, ..., 1): log p_1(x)/p_1(x') = 1/s + log((1 + m e^(1/s)) / (e^(1/s) + m)),
    # with m other actions, which tends to 2/s = eps.
    n_others, epsilon = 200, 1.3
    table = np.zeros((2, n_others + 1))
    table[0, 0] = table[1, 1:] = 1.0
    problem = DecisionProblem(table, [0.5, 0.5], AnyRecord())
    found = privacy_loss(make_policy("exponential", epsilon=epsilon).probabilities(problem), AnyRecord()).epsilon
    t = math.exp(epsilon / 2)
    assert found == pytest.approx(epsilon / 2 + math.log((1 + n_others * t) / (t + n_others)), rel=1e-9)
    assert 0.99 * epsilon < found < epsilon


def test_a_base_measure_is_what_epsilon_zero_gives_and_what_it_forbids_never_happens():
    problem = DecisionProblem([[0.0, 1.0, 9.0], [1.0, 0.0, 9.0]], [0.5, 0.5], AnyRecord())
    for epsilon, expected in ((0, [[0.25, 0.75, 0], [0.25, 0.75, 0]]), (math.inf, [[0, 1, 0], [1, 0, 0]])):
        policy = make_policy("exponential", epsilon=epsilon, base_measure=(1, 3, 0))
        np.testing.assert_allclose(policy.probabilities(problem), expected, atol=1e-15)
    middle = make_policy("exponential", epsilon=2.0, base_measure=(1, 3, 0)).probabilities(problem)
    weights = np.exp(problem.utilities[:, :2] * 2.0 / 2) * (1, 3)
    np.testing.assert_allclose(middle[:, :2], weights / weights.sum(axis=1, keepdims=True), rtol=1e-13)
    assert (middle[:, 2] == 0).all()


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2), (math.nan, 1), (math.inf, 1)])
def test_a_base_measure_that_is_no_measure_is_refused(weights):
    with pytest.raises(ValueError, match="base_measure must be finite weights >= 0, not all 0"):
        make_policy("exponential", epsilon=1.0, base_measure=weights)


def test_a_base_measure_of_another_length_is_refused():
    problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    with pytest.raises(ValueError, match="base_measure must have 2 numbers, one for each action, got 3"):
        make_policy("exponential", epsilon=1.0, base_measure=(1, 1, 1)).probabilities(problem)


def test_an_action_beyond_float64_for_everyone_is_dropped_for_everyone():
    logs, _ = softmax(np.array([[0.0, -1e9, -1.0], [-1.0, -2e9, 0.0]]), 1.0, np.zeros(3), AnyRecord())
    assert (logs[:, 1] == -np.inf).all()
    assert np.isfinite(logs[:, [0, 2]]).all()


def test_an_action_beyond_float64_for_one_record_only_keeps_its_logarithm():
    logs, _ = softmax(np.array([[0.0, -1e4], [-1.0, 0.0]]), 1.0, np.zeros(2), AnyRecord())
    assert logs[0, 1] == pytest.approx(-1e4)

"""Permute-and-flip against all permutations, its order, its sampler."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import problems
from scipy.stats import chi2

from policies import AnyRecord, DecisionProblem
from policies.exponential import Exponential, ExponentialBoundedRange
from policies.noisy_max import PermuteAndFlip
from policies.privacy_loss import privacy_loss_of_logs

EPSILONS = (0, 0.01, 0.1, 1, 5, 20, 100)


def by_permutations(utilities, scale):
    """P(a): in each order, a is taken if the coins before it show tails and its own shows heads."""
    heads = [np.exp((u - max(utilities)) / scale) for u in utilities]
    orders = list(permutations(range(len(utilities))))
    wins = np.zeros(len(utilities))
    for order in orders:
        reached = 1.0
        for action in order:
            wins[action] += reached * heads[action]
            reached *= 1 - heads[action]
    return wins / len(orders)


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=5), epsilon=st.sampled_from(EPSILONS[1:]))
def test_the_integral_agrees_with_all_permutations(problem, epsilon):
    scale = problem.sensitivity.range / epsilon
    if scale == 0:
        return
    found = PermuteAndFlip(epsilon).probabilities(problem)
    expected = [by_permutations(row, scale) for row in problem.utilities]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


# By the range it is in the catalogue, and tested there.
@settings(max_examples=80, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS))
def test_the_exact_loss_stays_within_epsilon_by_sensitivity_too(problem, epsilon):
    logs = PermuteAndFlip(epsilon, "sensitivity").log_probabilities(problem)
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= epsilon * (1 + 1e-9) + 1e-12


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS))
def test_it_is_worth_at_least_the_exponential_mechanism_of_the_same_scale(problem, epsilon):
    tolerance = 1e-12 * np.abs(problem.utilities).max()
    for calibration, exponential in (("sensitivity", Exponential), ("range", ExponentialBoundedRange)):
        value = problem.value(PermuteAndFlip(epsilon, calibration).probabilities(problem))
        assert value >= problem.value(exponential(epsilon).probabilities(problem)) - tolerance


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS[1:]))
def test_its_loss_stays_within_the_bound_from_theory(problem, epsilon):
    policy = PermuteAndFlip(epsilon)
    loss = problem.prior @ problem.utilities.max(axis=1) - problem.value(policy.probabilities(problem))
    assert loss <= policy.loss_bound(problem) + 1e-12 * np.abs(problem.utilities).max()


def test_the_scale_by_sensitivity_is_the_published_one():
    problem = DecisionProblem([[0.0, 1.0], [2.0, 2.0]], [0.5, 0.5], AnyRecord())
    assert PermuteAndFlip(0.5, "sensitivity").scale(problem) == 2 * 2.0 / 0.5
    assert PermuteAndFlip(0.5).scale(problem) == 1.0 / 0.5


def test_half_the_scale_would_break_the_claim():
    problem = DecisionProblem(np.eye(4) * 3, np.full(4, 0.25), AnyRecord())
    halved = PermuteAndFlip(2.0).log_probabilities(problem)
    assert privacy_loss_of_logs(halved, problem.adjacency).epsilon > 1.0 + 1e-3


def test_a_gap_of_a_million_scales_keeps_its_logarithm():
    # With k = 2 the second action has p/2, whatever p is; here log p = -10^6.
    table = [[0.0, -1e6], [0.0, -1e6 + 1.0], [0.0, -1.0]]
    problem = DecisionProblem(table, [0.5, 0.25, 0.25], AnyRecord())
    logs = PermuteAndFlip(1e6 - 1).log_probabilities(problem)
    np.testing.assert_allclose(logs[:, 1], np.array([-1e6, -1e6 + 1, -1]) + np.log(0.5), rtol=1e-12)


def test_an_unknown_calibration_is_refused():
    with pytest.raises(ValueError, match=r"calibration must be one of .*, got calibration='tight'"):
        PermuteAndFlip(1.0, "tight")


def test_a_public_difference_is_no_privacy_loss():
    # Nobody is told apart: the third action is out of reach for both, and rounding at log p = -10^12 must not show.
    table = [[1e-12, 0.0, -1.0], [0.0, 0.0, -1.0 + 1e-12]]
    problem = DecisionProblem(table, [0.5, 0.5], AnyRecord())
    logs = PermuteAndFlip(1.0).log_probabilities(problem)
    assert (logs[:, 2] == -np.inf).all()
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= 1 + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 3.0])
def test_the_sampler_draws_from_the_exact_probabilities(epsilon):
    table = np.array([[0.0, 0.3, 1.0, 1.0], [2.0, 1.9, 0.0, 1.0]])
    problem = DecisionProblem(table, [0.5, 0.5], AnyRecord())
    policy = PermuteAndFlip(epsilon)
    records = np.repeat([0, 1], 500_000)
    actions = policy.sample(problem, records, np.random.default_rng(11))
    observed = np.bincount(records * 4 + actions, minlength=8).reshape(2, 4)
    expected = 500_000 * policy.probabilities(problem)
    # Two rows of four counts with fixed sums.
    assert ((observed - expected) ** 2 / expected).sum() <= chi2.ppf(1 - 1e-6, 6)


def test_the_sampler_takes_the_best_action_without_privacy():
    problem = DecisionProblem([[0.0, 1.0], [3.0, 2.0]], [0.5, 0.5], AnyRecord())
    drawn = PermuteAndFlip().sample(problem, np.array([0, 1, 0]), np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, [1, 0, 1])

"""Mechanisms with noisy scores: against numerical integration and all permutations, their scales, their privacy."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import loss_by_pairs, masked_problems, neighbour_pairs, problems, wins_by_permutations
from scipy.integrate import quad

from policies import AnyRecord, DecisionProblem
from policies.exponential import Exponential
from policies.noisy_max import PermuteAndFlip, ReportNoisyMax, log_win_probabilities
from policies.policy import NotApplicableError
from policies.privacy_loss import privacy_loss_of_logs

EPSILONS = (0, 0.01, 0.1, 1, 5, 20, 100)


def by_integration(scores, action):
    """P(action wins): the density of its noisy score times the chance that every other one stays below."""
    others = np.delete(scores, action)

    def integrand(x):
        below = [math.exp(x - other) / 2 if x < other else 1 - math.exp(other - x) / 2 for other in others]
        return math.exp(-abs(x - scores[action])) / 2 * math.prod(below)

    # Smooth between the scores; beyond 50 scales the density is below 1e-21.
    edges = np.unique([min(scores) - 50, *scores, max(scores) + 50])
    pieces = (quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12) for a, b in pairwise(edges))
    return sum(value for value, _ in pieces)


@pytest.mark.parametrize("n_actions", range(2, 9))
@pytest.mark.parametrize("spread", [1e-12, 0.1, 1.0, 5.0])
def test_the_sum_agrees_with_numerical_integration(n_actions, spread):
    rng = np.random.default_rng(n_actions)
    scores = np.sort(rng.normal(size=n_actions) * spread)[::-1]
    scores[1] = scores[0]
    logs = log_win_probabilities(scores[:, None].copy(), 1.0)[:, 0]
    expected = [by_integration(scores, action) for action in range(n_actions)]
    np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(problem=problems(max_actions=4), epsilon=st.sampled_from((0.1, 1, 5)))
def test_tables_agree_with_numerical_integration(problem, epsilon):
    policy = ReportNoisyMax(epsilon)
    if policy.scale(problem) == 0:
        return
    found = policy.probabilities(problem)[0]
    row = problem.utilities[0]
    scores = (row - row.max()) / policy.scale(problem)
    np.testing.assert_allclose(found, [by_integration(scores, a) for a in range(len(row))], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gap", [1e-12, 1e-3, 1.0, 30.0, 1e3, 1e6])
def test_two_actions_agree_with_the_closed_form_at_any_gap(gap):
    # The difference of two Laplace variables exceeds g with probability e^-g (2 + g) / 4.
    logs = log_win_probabilities(np.array([[0.0], [-gap]]), 1.0)[:, 0]
    log_second = -gap + np.log1p(gap / 2) - np.log(2)
    np.testing.assert_allclose(logs, [np.log1p(-np.exp(log_second)), log_second], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("n_actions", [2, 3, 5, 17, 40])
def test_equal_scores_share_equally(n_actions):
    logs = log_win_probabilities(np.zeros((n_actions, 1)), 1.0)
    np.testing.assert_allclose(logs, -np.log(n_actions), rtol=1e-12)


@pytest.mark.parametrize("n_actions", [3, 9, 30])
@pytest.mark.parametrize("spread", [1e-9, 0.3, 4.0, 200.0, 1e6])
def test_probabilities_sum_to_one_for_any_number_of_actions(n_actions, spread):
    scores = -np.sort(-np.random.default_rng(5).normal(size=(n_actions, 50)) * spread, axis=0)
    np.testing.assert_allclose(np.exp(log_win_probabilities(scores, 1.0)).sum(axis=0), 1, rtol=1e-12)


def test_a_smaller_scale_than_range_over_epsilon_would_break_the_claim():
    # One action against many, far below and far above: here the loss comes close to Gamma / s.
    table = np.zeros((2, 30))
    table[0, 0], table[1, 0] = -9.0, -10.0
    problem = DecisionProblem(table, [0.5, 0.5], AnyRecord())
    logs = ReportNoisyMax(1.0).log_probabilities(problem)
    assert 0.95 < privacy_loss_of_logs(logs, problem.adjacency).epsilon <= 1.0
    tight = ReportNoisyMax(1.1).log_probabilities(problem)
    assert privacy_loss_of_logs(tight, problem.adjacency).epsilon > 1.0


# By the range it is in the catalogue, and tested there.
@pytest.mark.parametrize("mechanism", [PermuteAndFlip, ReportNoisyMax])
@settings(max_examples=100, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS))
def test_the_exact_loss_stays_within_epsilon_by_sensitivity_too(mechanism, problem, epsilon):
    logs = mechanism(epsilon, "sensitivity").log_probabilities(problem)
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= epsilon * (1 + 1e-9) + 1e-12


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=5), epsilon=st.sampled_from(EPSILONS[1:]))
def test_the_integral_agrees_with_all_permutations(problem, epsilon):
    scale = problem.sensitivity.range / epsilon
    if scale == 0:
        return
    found = PermuteAndFlip(epsilon).probabilities(problem)
    expected = [wins_by_permutations(np.exp((row - row.max()) / scale)) for row in problem.utilities]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS))
def test_it_is_worth_at_least_the_exponential_mechanism_of_the_same_scale(problem, epsilon):
    tolerance = 1e-12 * np.abs(problem.utilities).max()
    for calibration in ("sensitivity", "range"):
        value = problem.value(PermuteAndFlip(epsilon, calibration).probabilities(problem))
        assert value >= problem.value(Exponential(epsilon, calibration=calibration).probabilities(problem)) - tolerance


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


# Calibrated to the exact loss of the table.


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, ReportNoisyMax])
@settings(max_examples=40, deadline=None)
@given(problem=problems(), epsilon=st.sampled_from(EPSILONS[1:]))
def test_calibrated_to_the_exact_loss_all_of_epsilon_is_spent_and_no_more(mechanism, problem, epsilon):
    policy, ranged = mechanism(epsilon, "exact"), mechanism(epsilon)
    table = policy.probabilities(problem)
    pairs = neighbour_pairs(problem.adjacency, problem.n_records)
    # Where a float holds 0 there is only the loss of the logarithms.
    spent = privacy_loss_of_logs(policy.log_probabilities(problem), problem.adjacency).epsilon
    # Gamma / epsilon itself may spend all of it, but for rounding.
    assert spent <= epsilon * (1 + 1e-12) + 1e-14
    assert loss_by_pairs(table, pairs) == pytest.approx(spent, abs=1e-9) or (table < 1e-300).any()
    best = problem.best_actions
    if all(best[x] == best[y] for x, y in pairs):
        # Nothing is hidden by noise: everybody's best action is public.
        assert (table[np.arange(problem.n_records), best] == 1).all()
    else:
        assert spent == pytest.approx(epsilon, rel=1e-6)
        closer = policy.logs_at(problem, policy.scale(problem) * (1 - 1e-5))
        assert privacy_loss_of_logs(closer, problem.adjacency).epsilon > epsilon
    assert policy.scale(problem) <= ranged.scale(problem)
    assert problem.value(table) >= problem.value(ranged) - 1e-9 * np.ptp(problem.utilities)


@settings(max_examples=10, deadline=None)
@given(problem=masked_problems(), epsilon=st.sampled_from((0.1, 2.0)))
def test_with_a_mask_each_class_is_calibrated_by_itself(problem, epsilon):
    for part in problem.classes:
        if part.problem is not None:
            spent = PermuteAndFlip(epsilon, "exact").fit(part.problem).epsilon_spent
            assert spent == 0 or spent == pytest.approx(epsilon, rel=1e-6)
    assert PermuteAndFlip(epsilon, "exact").fit(problem).epsilon_spent <= epsilon


def test_an_epsilon_that_rounding_hides_is_spent_by_the_range():
    problem = DecisionProblem(np.eye(3), np.full(3, 1 / 3), AnyRecord())
    for epsilon in (0.0, 1e-15, math.inf):
        assert PermuteAndFlip(epsilon, "exact").scale(problem) == PermuteAndFlip(epsilon).scale(problem)


def test_report_noisy_max_of_many_actions_is_refused_at_once_and_sums_to_one_up_to_there():
    many = DecisionProblem(np.random.default_rng(0).random((2, 65)), [0.5, 0.5], AnyRecord())
    for ask in (ReportNoisyMax(1.0).check, ReportNoisyMax(1.0).tables, ReportNoisyMax(1.0, "exact").fit):
        with pytest.raises(NotApplicableError, match="report-noisy-max takes at most 64 actions, got 65"):
            ask(many)
    most = DecisionProblem(many.utilities[:, 1:], [0.5, 0.5], AnyRecord())
    fitted = ReportNoisyMax(1.0).fit(most)
    assert fitted.epsilon_spent <= 1.0
    np.testing.assert_allclose(fitted.probabilities.sum(axis=1), 1, rtol=1e-12)

"""Calibrations of the exponential mechanism: tight, capped."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import problems

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.exponential import Exponential, ExponentialBoundedRange, ExponentialCapped, ExponentialTight, softmax
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import once_per_problem
from policies.reference import Greedy, Uniform

EPSILONS = (0, 0.01, 0.1, 1, 5, 20, 100)
ALL = [ExponentialTight, ExponentialCapped]
CHAIN = [[0.0, 0.5, 0.2], [1.0, 0.7, 0.3], [2.0, 0.9, 2.5]]


def exact_loss(policy, problem):
    return privacy_loss_of_logs(policy.log_probabilities(problem), problem.adjacency).epsilon


def weighted(policy, epsilon, problem, seed):
    """The policy with a random base measure, of which some weights may be 0."""
    rng = np.random.default_rng(seed)
    weights = rng.random(problem.n_actions) ** 3 * (rng.random(problem.n_actions) < 0.8)
    weights[rng.integers(problem.n_actions)] = 1.0
    return policy(epsilon, tuple(weights))


def test_half_the_scale_would_break_the_claim_on_scores_that_are_not_monotone():
    table = np.zeros((2, 20))
    table[0, 0] = table[1, 1:] = 1.0
    logs, _ = softmax(table, 1.0, np.zeros(20), AnyRecord())
    assert privacy_loss_of_logs(logs, AnyRecord()).epsilon > 1.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-300])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e6])
def test_an_epsilon_that_no_float_can_be_divided_by_reveals_nothing(epsilon, spread):
    problem = DecisionProblem([[0.0, spread], [spread, 0.0]], [0.5, 0.5], AnyRecord())
    logs = ExponentialTight(epsilon).log_probabilities(problem)
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= epsilon
    np.testing.assert_array_equal(np.exp(logs), 0.5)


@settings(max_examples=120, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS[1:]))
def test_the_tight_scale_spends_all_of_epsilon_and_never_more(problem, epsilon):
    policy = ExponentialTight(epsilon)
    loss = exact_loss(policy, problem)
    assert loss <= epsilon
    gamma = problem.sensitivity.range
    if gamma == 0:
        np.testing.assert_array_equal(policy.probabilities(problem), Greedy().probabilities(problem))
    else:
        at = gamma / (policy.scale(problem) * epsilon)
        assert 1 - 1e-6 < at <= 2
        assert loss > epsilon * (1 - 1e-6) or at == 2


@settings(max_examples=80, deadline=None)
@given(problem=problems(max_actions=6), epsilon=st.sampled_from(EPSILONS), seed=st.integers(0, 1000))
def test_the_tight_scale_holds_with_a_base_measure(problem, epsilon, seed):
    assert exact_loss(weighted(ExponentialTight, epsilon, problem, seed), problem) <= epsilon


@settings(max_examples=30, deadline=None)
@given(problem=problems(max_actions=4), epsilon=st.sampled_from((0.1, 1, 5)), seed=st.integers(0, 1000))
def test_no_larger_t_on_a_fine_grid_keeps_to_epsilon(problem, epsilon, seed):
    policy = weighted(ExponentialTight, epsilon, problem, seed)
    scale = policy.scale(problem)
    if scale == 0:
        return
    with np.errstate(divide="ignore"):
        log_base = np.log(policy.base_measure)
    for t in np.geomspace(1.00001 / scale, 2.5 / scale, 200):
        logs, _ = softmax(problem.utilities, 1 / t, log_base, problem.adjacency)
        assert privacy_loss_of_logs(logs, problem.adjacency).epsilon > epsilon * (1 - 1e-6)


def test_a_loss_that_falls_with_t_is_searched_from_the_top():
    # The second action starts rare and ends up almost certain; in between, p = 1/2, neither action's ratio is large.
    table, base, epsilon = np.array([[0.0, 10.0], [0.0, 9.0]]), (1.0, 1e-6), 0.85
    problem = DecisionProblem(table, [0.5, 0.5], AnyRecord())
    fine = np.linspace(epsilon, 2 * epsilon, 2001)
    losses = [
        privacy_loss_of_logs(softmax(table, 1 / t, np.log(base), AnyRecord())[0], AnyRecord()).epsilon for t in fine
    ]
    feasible = np.array(losses) <= epsilon
    assert np.diff(feasible.astype(int)).tolist().count(1) == 1
    found = 1 / ExponentialTight(epsilon, base).scale(problem)
    assert fine[feasible].max() <= found < fine[feasible].max() + (fine[1] - fine[0])


def test_the_tight_scale_does_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(3)
    table, prior = rng.normal(size=(48, 4)), np.full(48, 1 / 48)
    for adjacency in (AnyRecord(), OneFeature((2, 4, 6)), Sensitive((2, 4, 6), (0, 2))):
        fresh = [ExponentialTight(e).scale(DecisionProblem(table, prior, adjacency)) for e in (0.3, 1.0, 7.0)]
        problem = DecisionProblem(table, prior, adjacency)
        backwards = [ExponentialTight(e).scale(problem) for e in (7.0, 1.0, 0.3)]
        assert fresh == backwards[::-1]


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from(EPSILONS))
def test_tight_is_worth_most_and_the_published_scale_least(problem, epsilon):
    tolerance = 1e-12 * np.abs(problem.utilities).max()
    policies = (ExponentialTight, ExponentialBoundedRange, Exponential)
    tight, bounded, published = (problem.value(policy(epsilon).probabilities(problem)) for policy in policies)
    # The grid of tight scales may lie 1e-8 below the largest feasible one.
    assert tight >= bounded - tolerance - 1e-7 * abs(bounded - published)
    assert bounded >= published - tolerance


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_actions=8),
    epsilon=st.sampled_from(EPSILONS),
    seed=st.integers(0, 1000),
    cap=st.sampled_from([None, 1e-13, 0.3, 1e7, np.inf]),
)
def test_any_cap_keeps_to_epsilon(problem, epsilon, seed, cap):
    assert exact_loss(ExponentialCapped(epsilon, cap=cap), problem) <= epsilon * (1 + 1e-9) + 1e-12
    base = weighted(ExponentialCapped, epsilon, problem, seed).base_measure
    assert exact_loss(ExponentialCapped(epsilon, base, cap), problem) <= epsilon * (1 + 1e-9) + 1e-12


def test_a_cap_is_the_bounded_range_mechanism_on_capped_regrets():
    problem = DecisionProblem(CHAIN, [0.2, 0.3, 0.5], AnyRecord())
    regrets = np.array([[0.4, 0.0, 0.3], [0.0, 0.3, 0.4], [0.4, 0.4, 0.0]])
    scores = DecisionProblem(-regrets, [0.2, 0.3, 0.5], AnyRecord())
    found = ExponentialCapped(2.0, cap=0.4).probabilities(problem)
    np.testing.assert_allclose(found, ExponentialBoundedRange(2.0).probabilities(scores), rtol=1e-12)


def test_no_cap_is_the_bounded_range_mechanism():
    problem = DecisionProblem(CHAIN, [0.2, 0.3, 0.5], AnyRecord())
    found = ExponentialCapped(2.0, cap=np.inf).probabilities(problem)
    np.testing.assert_allclose(found, ExponentialBoundedRange(2.0).probabilities(problem), rtol=1e-12)


def test_the_chosen_cap_beats_other_caps():
    rng = np.random.default_rng(9)
    table = np.where(rng.random((200, 1)) < 0.05, 40.0, 0.1) * rng.random((200, 3))
    problem = DecisionProblem(table, np.full(200, 1 / 200), AnyRecord())
    for epsilon in (1.0, 4.0, 16.0):
        chosen = problem.value(ExponentialCapped(epsilon).probabilities(problem))
        others = [
            problem.value(ExponentialCapped(epsilon, cap=cap).probabilities(problem))
            for cap in np.geomspace(1e-3, 50, 9)
        ]
        span = problem.value(Greedy().probabilities(problem)) - problem.value(Uniform().probabilities(problem))
        assert chosen >= max(others) - 0.02 * span
        assert chosen > problem.value(ExponentialBoundedRange(epsilon).probabilities(problem)) + 0.05 * span


def test_many_records_are_grouped_without_changing_the_choice():
    # Copies of the same rows, once below and once above the number of records that are looked at one by one.
    rng = np.random.default_rng(4)
    table = np.exp(rng.normal(size=(500, 3)) * 2)
    few = DecisionProblem(table, np.full(500, 1 / 500), AnyRecord())
    many = DecisionProblem(np.tile(table, (40, 1)), np.full(20_000, 1 / 20_000), AnyRecord())
    for epsilon in (1.0, 10.0):
        policy = ExponentialCapped(epsilon)
        value = few.value(policy.probabilities(few))
        assert many.value(policy.probabilities(many)) == pytest.approx(value, rel=1e-3)


def test_a_cap_that_only_shows_what_is_public_costs_no_privacy():
    # The hidden feature changes how good the second action is, but never by so much that the regrets fall below 0.1.
    table = [[1.0, 0.2], [1.0, 0.6], [0.1, 0.9], [0.1, 0.5]]
    problem = DecisionProblem(table, np.full(4, 0.25), Sensitive((2, 2), (1,)))
    policy = ExponentialCapped(0.5, cap=0.1)
    np.testing.assert_array_equal(policy.probabilities(problem), [[1, 0], [1, 0], [0, 1], [0, 1]])


@pytest.mark.parametrize("cap", [0, -1.0, np.nan, "1"])
def test_a_cap_that_is_not_positive_is_refused(cap):
    with pytest.raises(ValueError, match=r"cap must be >=? 0, got cap="):
        ExponentialCapped(1.0, cap=cap)


@pytest.mark.parametrize("policy", ALL)
def test_epsilon_zero_is_the_base_measure_and_infinity_greedy_within_it(policy):
    problem = DecisionProblem(CHAIN, [0.2, 0.3, 0.5], AnyRecord())
    np.testing.assert_allclose(policy(0.0).probabilities(problem), 1 / 3, rtol=1e-15)
    np.testing.assert_array_equal(policy().probabilities(problem), Greedy().probabilities(problem))
    base = (3.0, 0.0, 1.0)
    np.testing.assert_allclose(policy(0.0, base).probabilities(problem), [[0.75, 0, 0.25]] * 3, rtol=1e-15)
    np.testing.assert_array_equal(policy(np.inf, base).probabilities(problem), [[0, 0, 1], [1, 0, 0], [0, 0, 1]])


def test_what_is_remembered_is_computed_once_and_forgotten_with_the_problem():
    calls = []

    @once_per_problem
    def widest(problem, factor):
        calls.append(factor)
        return factor * problem.sensitivity.range

    problem = DecisionProblem(CHAIN, [0.2, 0.3, 0.5], AnyRecord())
    assert widest(problem, 2.0) == widest(problem, 2.0) == 2 * problem.sensitivity.range
    assert widest(problem, 3.0) == 3 * problem.sensitivity.range
    assert calls == [2.0, 3.0]
    ExponentialTight(1.0).log_probabilities(problem)
    ExponentialCapped(1.0).log_probabilities(problem)
    gone = weakref.ref(problem)
    del problem
    gc.collect()
    assert gone() is None

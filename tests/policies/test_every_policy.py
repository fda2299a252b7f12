"""The contract of every policy: probabilities, guarantee, limits, sampler."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import problems, with_all

from policies import CATALOGUE, AnyRecord, DecisionProblem, Policy, make_policy
from policies.privacy_loss import guess_rate_within, privacy_loss_of_logs

EPSILONS = (0, 0.01, 0.1, 1, 5, 20, 100)
PRIVATE = [name for name, policy in CATALOGUE.items() if policy.uses_epsilon]


def log_table(name, epsilon, problem):
    return make_policy(name, epsilon=epsilon).log_probabilities(problem)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_exact_loss_never_exceeds_the_guarantee(name, random_problems):
    for index, case in enumerate(random_problems[:84]):
        problem, epsilon = case.problem, EPSILONS[index % len(EPSILONS)]
        logs = log_table(name, epsilon, problem)
        guarantee = make_policy(name, epsilon=epsilon).guarantee
        # exp(log p) carries a relative rounding error of about |log p| * 2^-53.
        assert privacy_loss_of_logs(logs, problem.adjacency).epsilon <= guarantee * (1 + 1e-9) + 1e-12, index
        table = np.exp(logs)
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
        # So no guess between two neighbours does better than e^epsilon / (1 + e^epsilon), computed without that bound.
        guessed = guess_rate_within(table, problem.adjacency, math.inf).rate
        assert guessed <= 1 / (1 + math.exp(-guarantee)) + 1e-12, index


# The value under the prior is not what optimal-robust is the best for: see test_robust.
@pytest.mark.parametrize("name", sorted(set(PRIVATE) - {"optimal-robust"}))
def test_more_epsilon_never_loses_value(name, random_problems):
    for index, case in enumerate(random_problems[:32]):
        problem = case.problem
        tables = [log_table(name, epsilon, problem) for epsilon in (*EPSILONS, math.inf)]
        values = [problem.value(np.exp(logs)) for logs in tables]
        scale = np.abs(problem.utilities).max()
        assert all(later >= earlier - 1e-9 * scale for earlier, later in pairwise(values)), index
        if name != "optimal-safe":  # the best for each may cost more deaths than one for all
            best = problem.value(make_policy("greedy").probabilities(problem))
            assert values[-1] == pytest.approx(best, rel=1e-12), index


@pytest.mark.parametrize("name", [*PRIVATE, "best-fixed", "uniform"])
def test_nothing_private_is_worth_more_than_the_optimum(name, random_problems):
    for index, case in enumerate(random_problems[:80]):
        problem = case.problem
        logs = log_table(name, case.epsilon, problem)
        # The solver's tolerance, and the rounding of sums.
        tolerance = 1e-8 * np.ptp(problem.utilities) + 1e-12 * np.abs(problem.utilities).max()
        assert problem.value(np.exp(logs)) <= problem.value(case.optimum) + tolerance, index


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_policy_says_whether_it_depends_on_the_prior_and_on_epsilon(name):
    utilities = [[3.0, 0.0, 1.0, 2.0], [0.0, 2.0, 1.0, 0.0], [0.0, 0.5, 4.0, 1.0], [0.0, 0.5, 1.0, 0.4]]
    first, last = (with_all(utilities, prior, AnyRecord()) for prior in ([0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]))

    def differs(problem, epsilon):
        here = make_policy(name, epsilon=1.0).probabilities(first)
        return not np.allclose(make_policy(name, epsilon=epsilon).probabilities(problem), here, rtol=1e-6)

    policy = CATALOGUE[name]
    assert (differs(last, 1.0), differs(first, 2.0)) == (policy.uses_prior, policy.uses_epsilon)


@pytest.mark.parametrize("name", ["exponential", "randomized-response"])
def test_epsilon_zero_is_uniform(name):
    problem = DecisionProblem([[3.0, 1.0, 0.0], [0.0, 2.0, 0.0]], [0.5, 0.5], AnyRecord())
    np.testing.assert_allclose(make_policy(name, epsilon=0).probabilities(problem), 1 / 3, rtol=1e-15)


# In the worst case another action may be as good.
@pytest.mark.parametrize("name", sorted(set(PRIVATE) - {"optimal-robust"}))
@settings(max_examples=20, deadline=None)
@given(drawn=problems())
def test_epsilon_infinity_is_greedy(name, drawn):
    problem = with_all(drawn.utilities, drawn.prior, drawn.adjacency)  # nobody dies, which one policy would avoid
    table = make_policy(name, epsilon=math.inf).probabilities(problem)
    np.testing.assert_array_equal(table, make_policy("greedy").probabilities(problem))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_shift_of_each_record_changes_nothing(name):
    rng = np.random.default_rng(1)
    # Multiples of 1/8 and shifts by powers of two stay exact.
    table = np.round(rng.normal(size=(12, 3)) * 8) / 8
    prior = np.full(12, 1 / 12)
    deaths = rng.random(table.shape)
    plain, shifted = (with_all(scores, prior, AnyRecord(), deaths) for scores in (table, table + 1024))
    policy = make_policy(name, epsilon=2.0)
    np.testing.assert_allclose(policy.probabilities(shifted), policy.probabilities(plain), rtol=1e-12)


@pytest.mark.parametrize(
    "name", [name for name, kind in CATALOGUE.items() if kind._loss_bound is not Policy._loss_bound]
)
@settings(max_examples=60, deadline=None)
@given(problem=problems(max_actions=8), epsilon=st.sampled_from([0.05, 1.0, 7.0]))
def test_no_policy_loses_more_than_its_bound_from_theory(name, problem, epsilon):
    policy = make_policy(name, epsilon=epsilon)
    loss = problem.prior @ problem.utilities.max(axis=1) - problem.value(policy)
    # exponential-fitted has none.
    assert not loss > policy.loss_bound(problem) + 1e-12 * np.abs(problem.utilities).max()


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, -math.inf, True, "1", None])
def test_an_epsilon_that_is_no_number_from_zero_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be >= 0, got epsilon="):
        make_policy("exponential", epsilon=epsilon)


def test_an_unknown_policy_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="unknown policy 'exponental'; did you mean 'exponential'"):
        make_policy("exponental", epsilon=1.0)


@pytest.mark.parametrize("name", CATALOGUE)
def test_threads_that_share_a_problem_get_what_one_thread_gets(name):
    rng = np.random.default_rng(9)
    table, prior = rng.normal(size=(300, 4)), np.full(300, 1 / 300)
    deaths = rng.random(table.shape) / 8
    epsilons = np.geomspace(0.05, 20, 40).tolist()

    def logs(problem):
        return lambda epsilon: make_policy(name, epsilon=epsilon).log_probabilities(problem)

    alone = list(map(logs(with_all(table, prior, AnyRecord(), deaths)), epsilons))
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(logs(with_all(table, prior, AnyRecord(), deaths)), epsilons))
        np.testing.assert_array_equal(together, alone)

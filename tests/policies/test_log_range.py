"""eta of a policy: formulas against tables, and tables against a loop over pairs of neighbours."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import neighbour_pairs, problems

from policies import CATALOGUE, AnyRecord, DecisionProblem, Sensitive, make_policy
from policies.accounting import bounded_range_rho, concentrated_rho, log_range, log_ratio_range, loss_and_range
from policies.calibration import ExponentialTight
from policies.capped import ExponentialCapped
from policies.exponential import ExponentialFamily
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError
from policies.privacy_loss import privacy_loss_of_logs
from policies.randomized_response import RandomizedResponse

# At 3000 some actions are out of reach for everyone, at inf all but one.
EPSILONS = (0, 0.01, 1, 20, 3000, math.inf)
FAMILY = [name for name, policy in CATALOGUE.items() if issubclass(policy, ExponentialFamily)]
DISAGREE = DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], AnyRecord())


def range_over_pairs(logs, adjacency):
    """max over neighbours of max_a d_a - min_a d_a, pair by pair; an action that both never get is left out."""
    worst = 0.0
    for x, y in neighbour_pairs(adjacency, len(logs)):
        possible = (logs[x] > -np.inf) | (logs[y] > -np.inf)
        ratio = logs[x, possible] - logs[y, possible]
        worst = max(worst, np.inf if np.isinf(ratio).any() else np.ptp(ratio))
    return worst


def assert_is_range_of_table(policy, problem):
    try:
        logs = policy.log_probabilities(problem)
    except NotApplicableError:
        with pytest.raises(NotApplicableError):
            log_range(policy, problem)
        return
    # Rounding: entries of the table reach a few thousand, at 2e-16 each.
    expected = pytest.approx(range_over_pairs(logs, problem.adjacency), rel=1e-9, abs=1e-11)
    assert log_range(policy, problem) == expected
    assert log_ratio_range(logs, problem.adjacency) == expected
    loss = privacy_loss_of_logs(logs, problem.adjacency).epsilon
    known, eta = loss_and_range(policy, problem)
    assert eta == expected
    # exponential-tight is said to lose epsilon, and loses up to 1e-6 of it less; never more than is said.
    assert loss <= known * (1 + 1e-9) + 1e-11
    assert known <= loss * (1 + (2e-6 if isinstance(policy, ExponentialTight) else 1e-9)) + 1e-11
    assert loss * (1 - 1e-9) - 1e-11 <= log_range(policy, problem) <= 2 * loss * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize("name", CATALOGUE)
@settings(max_examples=25)
@given(problem=problems(max_actions=4), epsilon=st.sampled_from(EPSILONS))
def test_eta_of_every_policy_is_that_of_its_table(name, problem, epsilon):
    assert_is_range_of_table(make_policy(name, epsilon=epsilon), problem)


@settings(max_examples=25)
@given(problem=problems(max_actions=4), epsilon=st.sampled_from(EPSILONS))
def test_eta_of_the_optimum_within_bounds_is_not_that_of_the_optimum(problem, epsilon):
    assert_is_range_of_table(Optimal(epsilon, at_most={"deaths": "one for all"}), problem)
    assert_is_range_of_table(Optimal(epsilon, priors=list(problem.priors.values())), problem)


@pytest.mark.parametrize("name", FAMILY)
@settings(max_examples=40)
@given(data=st.data())
def test_eta_with_a_base_measure_is_that_of_its_table(name, data):
    problem = data.draw(problems(max_actions=4))
    weight = st.sampled_from([0.0, 1e-300, 0.3, 1.0, 1e6])
    weights = data.draw(st.lists(weight, min_size=problem.n_actions, max_size=problem.n_actions).filter(any))
    epsilon = data.draw(st.sampled_from(EPSILONS))
    assert_is_range_of_table(make_policy(name, epsilon=epsilon, base_measure=weights), problem)


def test_an_action_out_of_reach_for_everyone_does_not_count_though_its_scores_differ_most():
    # The third action is never better than 1e5 below the others, but its scores span a range of 1000.
    problem = DecisionProblem([[0.0, 1.0, -1e5], [1.0, 0.0, -1e5 - 1000]], [0.5, 0.5], AnyRecord())
    policy = make_policy("exponential-bounded-range", epsilon=100.0)
    scale = policy.scale(problem)
    assert scale == pytest.approx(1001 / 100)
    # What is left: d = (0 - 1, 1 - 0) / s.
    assert log_range(policy, problem) == pytest.approx(2 / scale, rel=1e-9)
    # At a hundredth of epsilon it is within reach.
    assert log_range(make_policy("exponential-bounded-range", epsilon=1.0), problem) == 1.0


@pytest.mark.parametrize("k", [2, 3, 4])
def test_randomized_response_has_twice_epsilon_if_neighbours_disagree_and_nothing_otherwise(k):
    problem = DecisionProblem(np.eye(k), np.full(k, 1 / k), AnyRecord())
    assert log_range(RandomizedResponse(1.5), problem) == 3.0
    assert log_range(RandomizedResponse(math.inf), problem) == math.inf
    agree = DecisionProblem(np.eye(k)[[0, 0, 0]], np.full(3, 1 / 3), AnyRecord())
    assert log_range(RandomizedResponse(1.5), agree) == log_range(RandomizedResponse(math.inf), agree) == 0.0
    # Best actions differ between the public classes {0, 1} and {2, 3}, and within none of them.
    public = DecisionProblem(np.eye(k)[[0, 0, 1, 1]], np.full(4, 1 / 4), Sensitive((2, 2), (1,)))
    assert log_range(RandomizedResponse(1.5), public) == 0.0


@pytest.mark.parametrize("name", [*FAMILY, RandomizedResponse.name, "uniform", "best-fixed"])
def test_a_formula_needs_no_table(name, monkeypatch):
    def refuse(*_):
        raise AssertionError("a table was made")

    for policy in (ExponentialFamily, CATALOGUE[name]):
        for method in ("log_probabilities", "tables"):
            monkeypatch.setattr(policy, method, refuse)
    chain = DecisionProblem([[0.0, 1.0, 2.0], [1.0, 2.0, 4.0]], [0.5, 0.5], AnyRecord())
    # Delta = 2 and Gamma = 1, also of the regrets (2, 1, 0) and (3, 2, 0). The best action is the same for both.
    options = {"cap": 3.0} if name == ExponentialCapped.name else {}
    eta = log_range(make_policy(name, epsilon=0.5, **options), chain)
    if name == ExponentialTight.name:
        assert 0.5 <= eta <= 1.0
    elif name in FAMILY:
        assert eta == pytest.approx(0.5 / 4 if name == "exponential" else 0.5, rel=1e-12)
    else:
        assert eta == 0.0


def test_what_a_policy_refuses_is_refused():
    with pytest.raises(NotApplicableError, match='bounds the outcome "deaths"'):
        log_range(make_policy("optimal-safe", epsilon=1.0), DISAGREE)
    with pytest.raises(ValueError, match="base_measure must have 2 weights, got 3"):
        log_range(make_policy("exponential", epsilon=1.0, base_measure=[1, 1, 1]), DISAGREE)


def test_the_loss_is_not_the_range():
    # Binary response at epsilon 1: log-ratios +1 and -1. Its loss is 1, its eta 2, and its rho 1/2, not 1/8.
    policy = make_policy("exponential-tight", epsilon=1.0)
    assert log_range(policy, DISAGREE) == pytest.approx(2.0, rel=1e-6)
    assert concentrated_rho(policy.log_probabilities(DISAGREE), AnyRecord()) == pytest.approx(
        bounded_range_rho(2.0), rel=1e-6
    )

"""The policy `optimal` against an independent linear programme, and what it promises about privacy and value."""

import numpy as np
import pytest
from full_programme import full_value
from random_problems import with_all

from policies import CATALOGUE, AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.optimal.optimum import Optimal, OptimalRobust, OptimalSafe, catalogue_name, daily_name
from policies.optimal.whole_programme import MAX_ENTRIES, private_logs
from policies.policy import NotApplicableError
from policies.privacy_loss import privacy_loss_of_logs
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed

SHAPE = (3, 2, 4)
ADJACENCIES = {
    "any-record": AnyRecord(),
    "one-feature": OneFeature(SHAPE),
    "sensitive-one": Sensitive(SHAPE, (1,)),
    "sensitive-two": Sensitive(SHAPE, (0, 2)),
}


def random_problem(seed, adjacency, *, n_records=24, n_actions=4, kind="smooth"):
    """A problem with records of probability 0; `ties` has equal utilities and constant rows."""
    rng = np.random.default_rng(seed)
    utilities = rng.normal(size=(n_records, n_actions)) * rng.gamma(0.5, size=(n_records, 1))
    if kind == "ties":
        utilities = rng.integers(0, 3, size=(n_records, n_actions)).astype(float)
        utilities[rng.random(n_records) < 0.2] = 1.0
    prior = rng.dirichlet(np.full(n_records, 0.4)) * (rng.random(n_records) < 0.8)
    if not prior.any():
        prior[0] = 1.0
    return DecisionProblem(utilities, prior / prior.sum(), adjacency)


def value(policy, problem):
    return problem.value(policy.probabilities(problem))


def assert_private(logs, adjacency, epsilon):
    assert privacy_loss_of_logs(logs, adjacency).epsilon <= epsilon * (1 + 1e-9) + 1e-12
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, atol=1e-12)


def test_the_value_is_that_of_the_full_linear_programme(random_problems):
    small = [case for case in random_problems if case.is_small]
    assert len(small) > 100
    for case in small:
        problem = case.problem
        tolerance = 1e-6 * np.ptp(problem.utilities) + 1e-12 * np.abs(problem.utilities).max()
        assert problem.value(case.optimum) == pytest.approx(full_value(problem, case.epsilon), rel=0, abs=tolerance)


@pytest.mark.parametrize(
    ("adjacency", "n_records", "n_actions"),
    [
        (AnyRecord(), 200, 3),
        (OneFeature((4, 4, 4, 3)), 192, 4),
        (Sensitive((60, 5), (1,)), 300, 5),
        (Sensitive((20, 15), (1,)), 300, 3),
    ],
    ids=["any-record", "one-feature", "sensitive-60x5", "sensitive-20x15"],
)
def test_the_value_is_that_of_the_full_linear_programme_on_some_hundreds_of_records(adjacency, n_records, n_actions):
    problem = random_problem(7, adjacency, n_records=n_records, n_actions=n_actions)
    expected = full_value(problem, 1.0)
    assert value(Optimal(1.0), problem) == pytest.approx(expected, rel=0, abs=1e-6 * np.ptp(problem.utilities))


@pytest.mark.parametrize("epsilon", [1e-300, 1e-15, 1e-9, 36.0, 745.0, 1000.0, 1e6])
@pytest.mark.parametrize("name", ADJACENCIES)
def test_extreme_epsilons_stay_private_and_no_worse_than_one_action_for_all(name, epsilon):
    problem = random_problem(3, ADJACENCIES[name])
    policy = Optimal(epsilon)
    assert_private(policy.log_probabilities(problem), problem.adjacency, epsilon)
    assert value(policy, problem) >= value(BestFixed(), problem) - 1e-12


@pytest.mark.parametrize("name", ["any-record", "one-feature"])
def test_epsilon_zero_is_the_best_action_for_all(name):
    problem = random_problem(11, ADJACENCIES[name])
    np.testing.assert_array_equal(Optimal(0.0).probabilities(problem), BestFixed().probabilities(problem))


def test_epsilon_zero_is_the_best_action_of_each_public_class():
    problem = random_problem(12, Sensitive(SHAPE, (1,)))
    weighted = (problem.prior[:, None] * problem.utilities).reshape(*SHAPE, 4).sum(axis=1)
    chosen = Optimal(0.0).probabilities(problem).reshape(*SHAPE, 4)
    comes = problem.prior.reshape(SHAPE).sum(axis=1) > 0
    for sex in range(2):
        np.testing.assert_array_equal(chosen[:, sex].argmax(axis=-1)[comes], weighted.argmax(axis=-1)[comes])
    assert set(np.unique(chosen)) == {0.0, 1.0}
    assert len(np.unique(chosen.argmax(axis=-1))) > 1


def test_two_equally_likely_opposites_get_randomized_response():
    # By hand: the two records have opposite orders, so M_0 = M_1 = e^eps / (1 + e^eps).
    problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    for epsilon in (0.5, 3.0):
        np.testing.assert_allclose(
            Optimal(epsilon).probabilities(problem), RandomizedResponse(epsilon).probabilities(problem), rtol=1e-12
        )


def test_a_class_that_never_comes_is_still_protected():
    rng = np.random.default_rng(5)
    utilities, prior = rng.normal(size=(12, 3)), np.repeat([0.0, 0.5, 0.5], 4) / 4
    problem = DecisionProblem(utilities, prior, Sensitive((3, 4), (1,)))
    logs = Optimal(1.0).log_probabilities(problem)
    assert_private(logs, problem.adjacency, 1.0)
    alone = DecisionProblem(utilities[:4], np.full(4, 0.25), AnyRecord())
    np.testing.assert_allclose(np.exp(logs[:4]), Optimal(1.0).probabilities(alone), atol=1e-9)


@pytest.mark.parametrize("tiny", [1e-20, 1e-300])
def test_a_class_of_tiny_probability_is_still_served_at_its_optimum(tiny):
    rng = np.random.default_rng(6)
    utilities = rng.normal(size=(6, 3))
    within = rng.dirichlet(np.ones(3))
    problem = DecisionProblem(utilities, np.r_[within * tiny, within * (1 - tiny)], Sensitive((2, 3), (1,)))
    alone = DecisionProblem(utilities[:3], within, AnyRecord())
    np.testing.assert_allclose(
        Optimal(1.0).probabilities(problem)[:3], Optimal(1.0).probabilities(alone), rtol=1e-9, atol=1e-12
    )


def test_many_actions_and_as_many_orders_as_records_are_no_obstacle():
    problem = random_problem(15, AnyRecord(), n_records=200, n_actions=14)
    logs = Optimal(2.0).log_probabilities(problem)
    assert_private(logs, problem.adjacency, 2.0)
    assert problem.value(np.exp(logs)) > max(value(BestFixed(), problem), value(RandomizedResponse(2.0), problem))


def test_more_actions_than_bits_are_refused_and_as_many_are_not():
    problem = DecisionProblem(np.zeros((2, 63)), [0.5, 0.5], AnyRecord())
    with pytest.raises(ValueError, match="optimal takes at most 62 actions, got 63"):
        Optimal(1.0).log_probabilities(problem)
    problem = DecisionProblem(np.zeros((2, 62)), [0.5, 0.5], AnyRecord())
    np.testing.assert_allclose(Optimal(1.0).probabilities(problem).sum(axis=1), 1)


def test_one_feature_with_too_many_records_is_refused_in_one_line_that_names_the_alternative():
    problem = with_all(np.zeros((2**13, 4)), np.full(2**13, 2.0**-13), OneFeature((2,) * 13))
    for policy in (Optimal(1.0), OptimalSafe(1.0), OptimalRobust(1.0)):
        for refuses in (policy.check, policy.log_probabilities):
            message = rf"takes at most {MAX_ENTRIES // 4} records of 4 actions.* n_records=8192; .*value_limit"
            with pytest.raises(NotApplicableError, match=message):
                refuses(problem)


def test_one_feature_with_a_single_feature_that_varies_is_any_record():
    rng = np.random.default_rng(8)
    utilities, prior = rng.normal(size=(6, 3)), rng.dirichlet(np.ones(6))
    one = DecisionProblem(utilities, prior, OneFeature((1, 6, 1)))
    every = DecisionProblem(utilities, prior, AnyRecord())
    np.testing.assert_allclose(Optimal(1.0).probabilities(one), Optimal(1.0).probabilities(every), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 30.0, 1000.0])
def test_the_repair_makes_any_table_private(epsilon):
    adjacency = OneFeature((2, 3))
    table = np.eye(3)[np.array([0, 1, 2, 2, 1, 0])]
    logs = private_logs(table, adjacency.partitions(6), epsilon)
    assert_private(logs, adjacency, epsilon)
    # The weight of the uniform table is e^-eps k / (1 + ...) at most: nothing is given away at a large epsilon.
    assert np.exp(logs).max(axis=1).min() >= 1 / (1 + 3 * np.exp(-epsilon) / -np.expm1(-epsilon))


def test_the_repair_leaves_a_private_table_as_it_is():
    adjacency = OneFeature((2, 2))
    table = np.array([[0.6, 0.4], [0.5, 0.5], [0.5, 0.5], [0.4, 0.6]])
    np.testing.assert_allclose(np.exp(private_logs(table, adjacency.partitions(4), 1.0)), table, rtol=1e-15)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_name_for_the_decisions_of_each_day_leads_back_to_the_policy(name):
    assert catalogue_name(daily_name(name)) == name

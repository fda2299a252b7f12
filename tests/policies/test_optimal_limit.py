"""The limit as a number or an interval: between what is reached and what cannot be beaten."""

import numpy as np
import pytest

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.adjacency import Listed
from policies.optimal import whole_programme
from policies.optimal.optimum import Optimal
from policies.optimal.value_limit import value_limit
from policies.policy import NotApplicableError
from policies.privacy_loss import privacy_loss_of_logs
from policies.reference import BestFixed, Greedy

SHAPE = (2, 3, 2, 2)

# Entries of a programme: fewer than the 24 records with 3 actions have, but enough for any two features.
TOO_SMALL = 30

ADJACENCIES = [AnyRecord(), OneFeature(SHAPE), Sensitive(SHAPE, (0, 3))]


def random_problem(seed, adjacency, shape=SHAPE):
    """Utilities in which the first features matter most, and some records of probability 0."""
    rng = np.random.default_rng(seed)
    levels = np.indices(shape).reshape(len(shape), -1).T
    utilities = levels @ (rng.normal(size=(len(shape), 3)) / 2.0 ** np.arange(len(shape))[:, None])
    prior = rng.dirichlet(np.full(len(levels), 0.5)) * (rng.random(len(levels)) < 0.9)
    return DecisionProblem(utilities, prior / prior.sum(), adjacency)


def value(policy, problem):
    return problem.value(policy.probabilities(problem))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 20.0, 1000.0, np.inf])
@pytest.mark.parametrize("adjacency", ADJACENCIES, ids=lambda a: a.name)
def test_where_the_optimum_is_solved_for_the_two_ends_are_its_value(adjacency, epsilon):
    for seed in range(5):
        problem = random_problem(seed, adjacency)
        limit = value_limit(problem, epsilon)
        tolerance = 1e-7 * np.ptp(problem.utilities)
        assert limit.exact
        assert 0 <= limit.unbeatable - limit.achievable <= tolerance
        assert limit.achievable == pytest.approx(value(Optimal(epsilon), problem), rel=0, abs=tolerance)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0, 20.0])
def test_beyond_the_largest_size_the_interval_holds_the_optimum(monkeypatch, epsilon):
    for seed in range(6):
        problem = random_problem(seed, OneFeature(SHAPE))
        exact = value(Optimal(epsilon), problem)
        with monkeypatch.context() as patch:
            patch.setattr(whole_programme, "MAX_ENTRIES", TOO_SMALL)
            limit = value_limit(problem, epsilon)
        assert not limit.exact
        assert limit.achievable <= exact + 1e-9
        assert exact <= limit.unbeatable + 1e-9
        assert limit.achievable >= value(BestFixed(), problem) - 1e-12
        assert limit.unbeatable <= value(Greedy(), problem) + 1e-12


def test_the_interval_is_closed_where_one_feature_decides_everything(monkeypatch):
    # Only the first feature matters: looking at it alone is optimal, and hiding it alone is as hard as hiding all.
    utilities = np.repeat([[0.0, 1.0], [1.0, 0.0]], 12, axis=0)
    problem = DecisionProblem(utilities, np.full(24, 1 / 24), OneFeature(SHAPE))
    monkeypatch.setattr(whole_programme, "MAX_ENTRIES", TOO_SMALL)
    limit = value_limit(problem, 1.0)
    truth = np.e / (1 + np.e)
    assert limit.achievable == pytest.approx(truth, abs=1e-9)
    assert limit.unbeatable == pytest.approx(truth, abs=1e-9)


def test_looking_at_few_features_is_optimal_where_no_others_matter(monkeypatch):
    rng = np.random.default_rng(3)
    utilities = np.repeat(rng.normal(size=(6, 3)), 4, axis=0)
    problem = DecisionProblem(utilities, np.full(24, 1 / 24), OneFeature(SHAPE))
    exact = value(Optimal(1.0), problem)
    every = DecisionProblem(utilities, problem.prior, AnyRecord())
    monkeypatch.setattr(whole_programme, "MAX_ENTRIES", TOO_SMALL)
    assert value_limit(problem, 1.0).achievable == pytest.approx(exact, abs=1e-8)
    assert exact > value_limit(every, 1.0).achievable + 1e-3


def test_a_feature_too_large_to_look_at_leaves_the_other_policies(monkeypatch):
    problem = random_problem(5, OneFeature((24, 2)), (24, 2))
    monkeypatch.setattr(whole_programme, "MAX_ENTRIES", 5)
    limit = value_limit(problem, 1.0)
    assert value(BestFixed(), problem) - 1e-12 <= limit.achievable <= limit.unbeatable


def test_epsilon_zero_without_the_full_programme_is_the_best_action_for_all(monkeypatch):
    problem = random_problem(4, OneFeature(SHAPE))
    monkeypatch.setattr(whole_programme, "MAX_ENTRIES", 10)
    limit = value_limit(problem, 0.0)
    assert limit.exact
    assert limit.achievable == limit.unbeatable == pytest.approx(value(BestFixed(), problem), rel=1e-12)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan])
def test_a_negative_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be >= 0"):
        value_limit(random_problem(0, AnyRecord()), epsilon)


@pytest.mark.parametrize("adjacency", ADJACENCIES, ids=lambda a: a.name)
def test_constant_utilities_cost_nothing_and_count_as_solved(adjacency):
    limit = value_limit(DecisionProblem(np.full((24, 3), 0.1), np.full(24, 1 / 24), adjacency), 1.0)
    assert limit.exact
    assert limit.achievable == pytest.approx(0.1, rel=1e-12)


def listed(problem, adjacency, order):
    """The same problem over a list of its records in another order, and the same neighbours."""
    codes = np.indices(SHAPE).reshape(len(SHAPE), -1).T[order]
    same = {
        "any-record": Listed.any_record(codes),
        "one-feature": Listed.one_feature(codes),
        "sensitive": Listed.sensitive(codes, (0, 3)),
    }
    return DecisionProblem(problem.utilities[order], problem.prior[order], same[adjacency.name])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES, ids=lambda a: a.name)
def test_a_list_of_all_records_has_the_limit_of_the_grid(adjacency, epsilon):
    problem = random_problem(11, adjacency)
    on_list = listed(problem, adjacency, np.random.default_rng(1).permutation(24))
    limit, same = value_limit(on_list, epsilon), value_limit(problem, epsilon)
    tolerance = 1e-7 * np.ptp(problem.utilities)
    assert limit.exact
    assert limit.achievable == pytest.approx(same.achievable, rel=0, abs=tolerance)
    assert limit.unbeatable == pytest.approx(same.unbeatable, rel=0, abs=tolerance)
    assert limit.unbeatable >= value(Optimal(epsilon), on_list) - tolerance


def test_the_cliques_of_a_list_may_differ_in_size_and_each_has_its_own_limit():
    # Three rows share what is public, two others, and one is alone: no policy treats them as one class.
    rng = np.random.default_rng(2)
    codes = np.array([[0, 0], [1, 1], [0, 1], [2, 0], [1, 0], [0, 2]])
    utilities, prior = rng.normal(size=(6, 3)), rng.dirichlet(np.ones(6))
    rows = [[0, 3, 4], [1, 2], [5]]
    values = 0.0
    for clique in rows:
        mass = prior[clique].sum()
        values += mass * value(Optimal(0.7), DecisionProblem(utilities[clique], prior[clique] / mass, AnyRecord()))
    problem = DecisionProblem(utilities, prior, Listed.sensitive(codes, [0]))
    limit = value_limit(problem, 0.7)
    assert limit.achievable == pytest.approx(values, rel=1e-9)
    assert limit.unbeatable == pytest.approx(values, rel=1e-9)
    table = Optimal(0.7).log_probabilities(problem)
    assert privacy_loss_of_logs(table, problem.adjacency).epsilon <= 0.7 * (1 + 1e-12)
    assert problem.value(np.exp(table)) == pytest.approx(values, rel=1e-9)
    together = value_limit(DecisionProblem(utilities, prior, AnyRecord()), 0.7)
    assert limit.achievable > together.unbeatable + 0.01


def test_one_feature_over_a_list_is_refused_where_only_steps_between_records_would_bound_it(monkeypatch):
    problem = listed(random_problem(3, OneFeature(SHAPE)), OneFeature(SHAPE), np.arange(24))
    with pytest.raises(NotApplicableError, match="over a list of records is known at epsilon > 0"):
        value_limit(problem, 0.0)
    monkeypatch.setattr(whole_programme, "MAX_ENTRIES", TOO_SMALL)
    with pytest.raises(NotApplicableError, match="at most 10 records of 3 actions, got epsilon=1, n_records=24"):
        value_limit(problem, 1.0)

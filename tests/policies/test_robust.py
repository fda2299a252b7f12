"""The best in the worst case over several priors: against the whole programme, and where nothing is to be gained."""

import numpy as np
import pytest
from checked_optima import check_robust
from random_problems import small_adjacency

from policies import AnyRecord, DecisionProblem, make_policy, privacy_loss
from policies.distinct import once_each
from policies.optimal.bounded import robust_optimum
from policies.optimal.optimum import Optimal, OptimalRobust
from policies.policy import NotApplicableError

EPSILONS = [0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, np.inf]


def random_problem(rng, kind):
    """Two to four priors, four in ten with ties, and in one of six nothing to gain under the first prior."""
    k = int(rng.integers(2, 5))
    adjacency, n = small_adjacency(rng, kind)
    utilities = rng.normal(size=(n, k))
    utilities = np.round(2 * utilities) / 2 if rng.random() < 0.4 else utilities
    priors = rng.dirichlet(np.full(n, 0.6), size=int(rng.integers(2, 5)))
    if rng.random() < 1 / 6:
        priors[0] = np.eye(1, n)[0]
    return DecisionProblem(utilities, priors[0], adjacency), priors


def gains_of(problem, priors):
    """Best for each less best for all under each prior; of those without any, the least of the others."""
    gains = np.array([prior @ problem.utilities.max(axis=1) - (prior @ problem.utilities).max() for prior in priors])
    some = gains > 1e-12
    return np.where(some, gains, gains[some].min() if some.any() else 1.0)


@pytest.mark.parametrize(("kind", "count"), [("any-record", 60), ("sensitive", 40), ("one-feature", 10)])
def test_it_keeps_most_in_the_worst_case_by_the_whole_programme(kind, count):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        problem, priors = random_problem(rng, kind)
        epsilon = float(rng.choice(EPSILONS if kind != "one-feature" else EPSILONS[:8]))
        check_robust(problem, epsilon, priors, gains_of(problem, priors), seed=seed)


def test_with_one_prior_it_is_the_optimum_under_it():
    rng = np.random.default_rng(2)
    problem, priors = random_problem(rng, "any-record")
    for epsilon in (0.0, 1.0, np.inf):
        found = Optimal(epsilon, priors=priors[1:2]).probabilities(problem)
        under = problem.with_prior(priors[1])
        assert under.value(found) == pytest.approx(under.value(Optimal(epsilon).probabilities(under)), abs=1e-12)


def test_two_opposite_groups_by_hand():
    # Under each prior one action is best for all, so that losses count; k-ary response loses 1 / (1 + e) under both.
    problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.9, 0.1], AnyRecord())
    found = robust_optimum(problem, 1.0, np.eye(2))
    np.testing.assert_allclose(np.exp(found.log_probabilities)[:, 1], [np.e / (1 + np.e), 1 / (1 + np.e)], rtol=1e-9)
    assert found.kept == pytest.approx(1 - 1 / (1 + np.e))
    mixed = problem.with_prior(found.weights)
    assert mixed.utilities.max() - mixed.value(Optimal(1.0).probabilities(mixed)) == pytest.approx(1 - found.kept)


def test_where_nothing_is_to_be_gained_the_loss_is_bounded_by_the_gain_of_others():
    # In the first group a0 is best for all. If it had to keep its benefit, everybody would get a0.
    utilities = [[1.0, 0.0], [1.0, 0.5], [0.0, 2.0], [1.0, 0.0]]
    problem = DecisionProblem(utilities, np.full(4, 0.25), AnyRecord())
    groups = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    found = robust_optimum(problem, 2.0, groups)
    assert privacy_loss(np.exp(found.log_probabilities), AnyRecord()).epsilon > 0.1
    # Of the second group, best for each is worth 1.5 and a1 for all 1: its gain of 0.5 is the unit of both losses.
    lost = groups @ (np.max(utilities, axis=1) - (np.exp(found.log_probabilities) * utilities).sum(axis=1))
    assert lost.max() / 0.5 == pytest.approx(1 - found.kept)
    assert 0 < found.kept < 1


def test_the_priors_of_the_problem_are_used_and_summed_over_distinct_rows():
    rng = np.random.default_rng(4)
    which = rng.integers(5, size=30)
    priors = {name: rng.dirichlet(np.ones(30)) for name in ("here", "there")}
    problem = DecisionProblem(rng.normal(size=(5, 3))[which], priors["here"], AnyRecord(), priors=priors)
    policy = make_policy("optimal-robust", epsilon=1.0)
    given = OptimalRobust(1.0, priors=list(priors.values()))
    np.testing.assert_allclose(policy.probabilities(problem), given.probabilities(problem), atol=1e-12)
    on = once_each(policy, problem)
    assert on.n_records == 5
    np.testing.assert_allclose(policy.probabilities(on)[[*which]][:1], policy.probabilities(problem)[:1], atol=1e-12)
    # Vectors of records know nothing of rows.
    for other in (given, Optimal(1.0, priors=list(priors.values()))):
        assert once_each(other, problem) is problem
    assert once_each(Optimal(1.0), problem).n_records == 5


def test_it_reads_the_worst_case_and_not_the_prior_of_the_problem():
    problem, priors = random_problem(np.random.default_rng(11), "any-record")
    elsewhere = problem.with_prior(priors[-1])
    for policy in (Optimal(1.0, priors=priors), OptimalRobust(1.0, priors=priors)):
        np.testing.assert_array_equal(policy.log_probabilities(problem), policy.log_probabilities(elsewhere))


def test_policies_with_the_same_priors_are_the_same_key():
    first, second, third = (OptimalRobust(1.0, priors=np.array(rows)) for rows in ([[1, 0]], [[1, 0]], [[0, 1]]))
    assert first == second != third
    assert len({first, second, third, OptimalRobust(1.0)}) == 3
    assert Optimal(1.0, priors=[[1.0, 0.0]]) != Optimal(1.0)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([], "priors must be a sequence of at least one array"),
        ("here", "priors must be a sequence of at least one array"),
        ({"here": [1.0, 0.0]}, "priors must be a sequence of at least one array"),
        ([[0.5, 0.6]], r"priors\[0\] must sum to 1, got a sum of 1.1"),
        ([[0.5, 0.5], [1.0]], r"priors\[1\] must have shape \(2,\), got \(1,\)"),
        ([[0.5, 0.5], [1.5, -0.5]], r"priors\[1\] must be finite and >= 0, got priors\[1\]\[1\]=-0.5"),
    ],
)
def test_priors_that_do_not_fit_are_refused(priors, message):
    problem = DecisionProblem(np.eye(2), [0.5, 0.5], AnyRecord())
    with pytest.raises(ValueError, match=message):
        OptimalRobust(1.0, priors=priors).log_probabilities(problem)
    with pytest.raises(ValueError, match=message):
        Optimal(1.0, priors=priors).log_probabilities(problem)


def test_a_problem_without_priors_is_refused():
    problem = DecisionProblem(np.eye(2), [0.5, 0.5], AnyRecord())
    policy = make_policy("optimal-robust", epsilon=1.0)
    for refuses in (policy.check, policy.log_probabilities):
        with pytest.raises(
            NotApplicableError, match="needs the priors that patients may come from: the problem has none"
        ):
            refuses(problem)
    OptimalRobust(1.0, priors=[[0.5, 0.5]]).check(problem)

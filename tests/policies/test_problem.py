"""Decision problems: what they accept, refuse and compute."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import AnyRecord, DecisionProblem, OneFeature, make_policy, privacy_loss
from policies.arrays import Changed
from policies.catalogue import CATALOGUE
from policies.noisy_max import PermuteAndFlip, ReportNoisyMax
from policies.optimal.optimum import OptimalRobust, OptimalSafe
from policies.problem import once_per_problem


def test_a_problem_keeps_its_own_copies():
    utilities, prior = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5])
    problem = DecisionProblem(utilities, prior, AnyRecord())
    utilities[0, 0] = prior[0] = 9.0
    assert problem.utilities[0, 0] == 0
    assert problem.prior[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        problem.utilities[0, 0] = 1


def test_values_are_prior_means():
    problem = DecisionProblem([[0.0, 4.0], [2.0, 0.0]], [0.25, 0.75], AnyRecord())
    np.testing.assert_allclose(problem.fixed_values, [1.5, 1.0])
    assert problem.best_fixed_action == 0
    assert problem.value(np.array([[0.5, 0.5], [0.0, 1.0]])) == pytest.approx(0.5)


def test_actions_are_numbered_by_default_and_must_be_distinct():
    assert DecisionProblem(np.zeros((1, 3)), [1.0], AnyRecord()).actions == ("a0", "a1", "a2")
    for names in (("a", "b"), ("a", "b", "a")):
        with pytest.raises(ValueError, match="actions must be 3 distinct names"):
            DecisionProblem(np.zeros((1, 3)), [1.0], AnyRecord(), actions=names)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.4], "prior must sum to 1, got a sum of 0.9"),
        ([1.5, -0.5], r"prior must be finite and >= 0, got prior\[1\]=-0.5"),
        ([np.nan, 0.5], r"got prior\[0\]=nan"),
        ([np.inf, 0.5], r"got prior\[0\]=inf"),
        ([1.0], r"prior must have shape \(2,\), got \(1,\)"),
        ([0.5, 0.500002], r"prior must sum to 1, got a sum of 1\.00000[12]"),
        ([1e308, 1e308], "prior must sum to 1, got a sum of inf"),
    ],
)
def test_a_prior_that_is_no_distribution_is_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        DecisionProblem(np.zeros((2, 2)), prior, AnyRecord())


def test_an_adjacency_over_other_records_is_refused_at_once():
    with pytest.raises(ValueError, match="the adjacency is over 6 records"):
        DecisionProblem(np.zeros((2, 2)), [0.5, 0.5], OneFeature((2, 3)))


def test_outcomes_of_another_shape_are_refused_by_name():
    with pytest.raises(ValueError, match=r"outcomes\['death'\] must have shape \(2, 2\), got \(2, 3\)"):
        DecisionProblem(np.zeros((2, 2)), [0.5, 0.5], AnyRecord(), outcomes={"death": np.zeros((2, 3))}, lead="death")


def test_a_problem_without_features_has_no_groups():
    problem = DecisionProblem(np.zeros((2, 2)), [0.5, 0.5], AnyRecord())
    assert problem.records.describe(1) == "record 1"
    with pytest.raises(ValueError, match="unknown group 'age'"):
        problem.records.groups("age")


def test_other_priors_are_checked_at_once_or_when_they_are_asked_for():
    utilities = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"priors\['here'\] must sum to 1, got a sum of 0\.9"):
        DecisionProblem(utilities, [0.5, 0.5], AnyRecord(), priors={"here": [0.5, 0.4]})
    asked = []
    lazy = Changed({"here": [0.5, 0.5], "there": [1.0]}, lambda prior: asked.append(prior) or np.array(prior))
    problem = DecisionProblem(utilities, [0.5, 0.5], AnyRecord(), priors=lazy)
    assert asked == []
    assert list(problem.with_prior([1.0, 0.0]).priors) == ["here", "there"]
    assert asked == []
    assert problem.priors["here"].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"priors\['there'\] must have shape \(2,\), got \(1,\)"):
        problem.priors["there"]
    with pytest.raises(KeyError):
        problem.priors["nowhere"]
    assert problem.with_adjacency(OneFeature((2,))).priors is problem.priors


def test_other_utilities_keep_all_else():
    problem = DecisionProblem(
        np.zeros((2, 2)), [0.25, 0.75], AnyRecord(), outcomes={"death": np.ones((2, 2))}, lead="death"
    )
    other = problem.with_utilities([[0.0, 4.0], [2.0, 0.0]])
    np.testing.assert_allclose(other.fixed_values, [1.5, 1.0])
    assert problem.fixed_values.tolist() == [0, 0]
    assert other.outcomes is problem.outcomes
    with pytest.raises(ValueError, match=r"utilities must have shape \(2, 2\), got \(2, 3\)"):
        problem.with_utilities(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"utilities must be finite, got utilities\[0, 1\]=nan"):
        problem.with_utilities([[0.0, np.nan], [0.0, 0.0]])


def test_threads_that_ask_for_the_same_compute_it_once_and_an_error_is_not_remembered():
    problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    asked, computed = Barrier(2), []

    @once_per_problem
    def slow(_: DecisionProblem, number: int) -> int:
        computed.append(number)
        sleep(0.02)
        if computed == [3]:
            raise ArithmeticError
        return 2 * number

    def ask(number):
        asked.wait()
        return slow(problem, number)

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(ArithmeticError):
            slow(problem, 3)
        assert list(pool.map(ask, [4, 4])) == [8, 8]
        assert sorted(pool.map(ask, [5, 6])) == [10, 12]
    assert slow(problem, 3) == 6
    assert sorted(computed) == [3, 3, 4, 5, 6]


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 1e307])
def test_utilities_that_cannot_be_computed_with_are_refused(largest):
    problem = DecisionProblem(np.eye(2), [0.5, 0.5], AnyRecord())
    for make in (lambda table: DecisionProblem(table, [0.5, 0.5], AnyRecord()), problem.with_utilities):
        with pytest.raises(ValueError, match=r"utilities must differ by 1e-290 to 1e\+290, got .*; give another unit"):
            make(np.eye(2) * largest)


def test_utilities_whose_difference_is_no_float_are_refused():
    with pytest.raises(ValueError, match=r"utilities must differ by less than 1.8e308, got values from -1e\+308 to 1e"):
        DecisionProblem([[1e308, -1e308], [0.0, 1.0]], [0.5, 0.5], AnyRecord())


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_torch_computes_is_a_distribution_and_what_sums_to_one_stays_bit_by_bit(seed):
    table = np.random.default_rng(seed).dirichlet(np.ones(5), size=3)
    single = table.astype(np.float32)
    exact = single.astype(np.float64) / single.astype(np.float64).sum(axis=1, keepdims=True)
    prior = DecisionProblem(np.eye(5), single[0], AnyRecord()).prior
    np.testing.assert_allclose(prior, exact[0], rtol=1e-8, atol=0)
    assert prior.sum() == pytest.approx(1, abs=1e-9)
    assert privacy_loss(single, AnyRecord()).epsilon == pytest.approx(
        privacy_loss(exact, AnyRecord()).epsilon, abs=2e-8
    )
    np.testing.assert_array_equal(DecisionProblem(np.eye(5), table[0], AnyRecord()).prior, table[0])
    with pytest.raises(ValueError, match=r"must sum to 1 in each row, row 0 sums to 1\.0000[01]"):
        privacy_loss(table * 1.00001, AnyRecord())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    powers=st.tuples(st.integers(-323, 307), st.integers(-323, 307)),
    epsilon=st.sampled_from([1e-300, 1e-5, 1.0, 30.0, 700.0, 1e6, 1e300]),
)
def test_utilities_of_any_size_are_refused_or_no_claim_is_broken(seed, powers, epsilon):
    rng = np.random.default_rng(seed)
    table = rng.choice([-1.0, 0.0, 1.0, 3.0], (3, 3)) * rng.choice([float(f"1e{power}") for power in powers], (3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            problem = DecisionProblem(table, np.full(3, 1 / 3), AnyRecord())
        except ValueError as error:
            assert "utilities must differ by 1e-290 to 1e+290" in str(error)
            return
        mechanisms = [make_policy(name, epsilon=epsilon) for name in CATALOGUE.built_in]
        for policy in [*mechanisms, PermuteAndFlip(epsilon, "exact"), ReportNoisyMax(epsilon, "exact")]:
            if isinstance(policy, OptimalSafe | OptimalRobust):
                continue  # which need an outcome that leads, and priors
            assert policy.fit(problem).epsilon_spent <= policy.guarantee * (1 + 1e-9) + 1e-12, policy.name

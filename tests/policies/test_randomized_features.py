"""Randomised features against an enumeration of all reports, its privacy, its sampler."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.privacy_loss import privacy_loss_of_logs
from policies.randomized_response import FeatureChannel, RandomizedFeatures


class Shaped:
    """Records over a product space."""

    names = ()

    def __init__(self, shape):
        self.shape = shape

    def describe(self, record):
        return f"record {record}"


def chance(record, report, shape, shares):
    """K(report | record), feature by feature from its definition."""
    result = 1.0
    for x, y, levels, share in zip(record, report, shape, shares, strict=True):
        if share is None:
            result *= x == y
        else:
            result *= (math.exp(share) if x == y else 1) / (math.exp(share) + levels - 1)
    return result


def by_enumeration(table, prior, shape, shares):
    """p(a|x) by going through all records and reports one by one."""
    records = list(product(*map(range, shape)))
    found = np.zeros(table.shape)
    for report in records:
        weights = np.array([chance(record, report, shape, shares) for record in records])
        action = (weights * prior @ table).argmax()
        found[:, action] += weights
    return found


CASES = {
    "any-record": (AnyRecord(), lambda e: (e / 3, e / 3, e / 3)),
    "one-feature": (OneFeature((2, 3, 4)), lambda e: (e, e, e)),
    "one sensitive": (Sensitive((2, 3, 4), (1,)), lambda e: (None, e, None)),
    "two sensitive": (Sensitive((2, 3, 4), (2, 0)), lambda e: (e / 2, None, e / 2)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 9.0, 60.0])
def test_the_table_agrees_with_an_enumeration_of_reports(case, epsilon):
    adjacency, shares = CASES[case]
    rng = np.random.default_rng(17)
    table, prior = rng.normal(size=(24, 4)), rng.dirichlet(np.ones(24))
    problem = DecisionProblem(table, prior, adjacency, records=Shaped((2, 3, 4)))
    found = RandomizedFeatures(epsilon).probabilities(problem)
    expected = by_enumeration(table, prior, (2, 3, 4), shares(epsilon))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_record_without_features_is_one_feature():
    rng = np.random.default_rng(18)
    table, prior = rng.normal(size=(200, 3)), rng.dirichlet(np.ones(200))
    problem = DecisionProblem(table, prior, AnyRecord())
    found = RandomizedFeatures(4.0).probabilities(problem)
    np.testing.assert_allclose(found, by_enumeration(table, prior, (200,), (4.0,)), rtol=1e-10)


def test_features_with_one_level_take_no_share():
    rng = np.random.default_rng(19)
    table, prior = rng.normal(size=(6, 3)), rng.dirichlet(np.ones(6))
    problem = DecisionProblem(table, prior, AnyRecord(), records=Shaped((2, 1, 3)))
    found = RandomizedFeatures(2.0).probabilities(problem)
    np.testing.assert_allclose(found, by_enumeration(table, prior, (2, 1, 3), (1.0, 0.0, 1.0)), rtol=1e-10)


@pytest.mark.parametrize("n_features", [3, 8, 12])
def test_probabilities_too_small_for_a_float_keep_their_logarithms(n_features):
    # Each feature has 1: only the record without any gets the second action for certain.
    shape, epsilon = (2,) * n_features, 150.0
    table = np.zeros((2**n_features, 2))
    table[:, 1] = np.where(np.arange(2**n_features) == 0, 1.0, -1.0)
    problem = DecisionProblem(table, np.full(2**n_features, 2.0**-n_features), OneFeature(shape))
    logs = RandomizedFeatures(epsilon).log_probabilities(problem)
    ones = np.indices(shape).sum(axis=0).ravel()
    np.testing.assert_allclose(
        logs[:, 1], -epsilon * ones - n_features * np.log1p(np.exp(-epsilon)), rtol=1e-12, atol=1e-15
    )
    assert privacy_loss_of_logs(logs, problem.adjacency).epsilon == pytest.approx(epsilon, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 5, 150]), min_size=1, max_size=3),
    share=st.sampled_from([0.0, 1e-3, 1.0, 30.0, np.inf]),
    seed=st.integers(0, 1000),
)
def test_logarithms_and_probabilities_go_through_the_same_channel(shape, share, seed):
    rng = np.random.default_rng(seed)
    shares = [share if rng.random() < 0.7 else 2.0 for _ in shape]
    channel = FeatureChannel(tuple(shape), tuple(shares))
    column = rng.random(math.prod(shape)) + 0.1
    expected = channel.apply(column)
    np.testing.assert_allclose(np.exp(channel.apply_to_logs(np.log(column))), expected, rtol=1e-11)
    # A channel neither adds nor loses mass, and it is symmetric.
    assert expected.sum() == pytest.approx(column.sum(), rel=1e-11)


@pytest.mark.parametrize("case", CASES)
def test_epsilon_zero_is_the_best_action_of_each_public_part(case):
    adjacency, shares = CASES[case]
    rng = np.random.default_rng(21)
    table, prior = rng.normal(size=(24, 4)), rng.dirichlet(np.ones(24))
    problem = DecisionProblem(table, prior, adjacency, records=Shaped((2, 3, 4)))
    found = RandomizedFeatures(0.0).probabilities(problem)
    hidden = tuple(axis for axis, share in enumerate(shares(1.0)) if share is not None)
    sums = (prior[:, None] * table).reshape(2, 3, 4, 4).sum(axis=hidden, keepdims=True)
    best = np.broadcast_to(sums.argmax(axis=-1), (2, 3, 4)).ravel()
    np.testing.assert_array_equal(found, np.eye(4)[best])


def test_epsilon_infinity_is_greedy_even_for_records_that_never_come():
    problem = DecisionProblem([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0.5, 0.0, 0.5], AnyRecord())
    np.testing.assert_array_equal(RandomizedFeatures().probabilities(problem), [[0, 1], [0, 1], [1, 0]])


def test_records_of_another_shape_are_refused():
    problem = DecisionProblem(np.eye(4), np.full(4, 0.25), AnyRecord(), records=Shaped((2, 3)))
    with pytest.raises(ValueError, match="4 records are not all combinations of their features"):
        RandomizedFeatures(1.0).log_probabilities(problem)

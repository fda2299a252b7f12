"""The privacy profile of a table, against the divergence of every pair of neighbours."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import neighbour_pairs

import policies.privacy_profile
from policies.adjacency import AnyRecord, OneFeature, Sensitive
from policies.policy import NotApplicableError
from policies.privacy_profile import profile

SHAPE = (2, 3, 2)
ADJACENCIES = (AnyRecord(), OneFeature(SHAPE), Sensitive(SHAPE, (1, 2)))
EPSILONS = np.linspace(0, 6, 25)


def random_logs(seed, k, scale):
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(12, k)) * scale
    if seed % 4 == 0:
        logs[rng.random((12, k)) < 0.2] = -np.inf
        logs[:, 0] = 0.0
    return logs - np.logaddexp.reduce(logs, axis=1)[:, None]


def divergences(p, q):
    return np.array([np.maximum(p - math.exp(epsilon) * q, 0).sum(axis=-1).max() for epsilon in EPSILONS])


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5), scale=st.sampled_from([0.01, 1.0, 4.0, 30.0]))
def test_the_profile_and_its_pair_are_the_worst_divergence_of_neighbours(seed, k, scale):
    logs, adjacency = random_logs(seed, k, scale), ADJACENCIES[seed % 3]
    x, y = np.array(neighbour_pairs(adjacency, 12)).T
    exact = divergences(np.exp(logs[x]), np.exp(logs[y]))
    by_sets = profile(logs, adjacency)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies.privacy_profile, "SORTING", 0)
        by_pairs = profile(logs, adjacency)
    for found in (by_sets, by_pairs):
        np.testing.assert_allclose(found.delta_at(EPSILONS), exact, atol=1e-12)
        for p, q in (found.pair, found.pair[::-1]):
            np.testing.assert_allclose(divergences(p, q), exact, atol=1e-12)
            assert math.fsum(p) == pytest.approx(1, abs=1e-9)


def test_an_action_that_rules_a_record_out_leaves_a_delta_at_every_epsilon():
    found = profile(np.log([[0.99, 0.01], [1.0, 1e-300]]), AnyRecord())
    assert found.delta_at([0.0, 700.0]) == pytest.approx([0.01, 0.0], abs=1e-3)
    with np.errstate(divide="ignore"):
        found = profile(np.log([[0.99, 0.01], [1.0, 0.0]]), AnyRecord())
    assert found.delta_at([0.0, 700.0, math.inf]) == pytest.approx(0.01)


def test_many_actions_of_few_records_and_too_many_of_both():
    logs = np.log(np.random.default_rng(0).dirichlet(np.ones(5000), size=2))
    exact = np.abs(np.diff(np.exp(logs), axis=0)).sum() / 2
    assert profile(logs, AnyRecord()).delta_at(0.0) == pytest.approx(exact, abs=1e-12)
    with pytest.raises(NotApplicableError, match="profile of 64 actions for 5,000 records takes too long"):
        profile(np.full((5000, 64), -math.log(64)), AnyRecord())

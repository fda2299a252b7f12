"""What several uses reveal: eta against a loop over pairs, rho against exact Renyi divergences."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, neighbour_pairs

from policies import AnyRecord, DecisionProblem, Sensitive, make_policy
from policies.accounting import bounded_range_rho, bounded_use, compose, log_ratio_range, policy_use, policy_uses
from policies.adjacency import Listed
from policies.privacy_loss import privacy_loss_of_logs

ORDERS = (1 + 1e-3, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000)


def concentrated_rho(logs, adjacency):
    return bounded_range_rho(log_ratio_range(logs, adjacency))


def renyi(p, q, order):
    """D_order(P || Q) from logs, along the last axis: log sum p^order q^(1 - order) / (order - 1)."""
    return np.logaddexp.reduce(order * p + (1 - order) * q, axis=-1) / (order - 1)


def log_tables(draw, n_records):
    """Normalised logs, mild or extreme."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logs = rng.normal(size=(n_records, draw(st.integers(2, 5)))) * draw(st.sampled_from([0.01, 1.0, 8.0]))
    return logs - np.logaddexp.reduce(logs, axis=1)[:, None]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_renyi_divergence_between_neighbours_exceeds_rho_times_its_order(data):
    adjacency, n_records = data.draw(adjacencies())
    logs = log_tables(data.draw, n_records)
    rho = concentrated_rho(logs, adjacency)
    x, y = np.array(neighbour_pairs(adjacency, n_records)).T
    for order in ORDERS:
        # Dividing by order - 1 >= 1e-3 magnifies the rounding of logs, a few 1e-15 each.
        assert renyi(logs[x], logs[y], order).max() <= rho * order * (1 + 1e-9) + 1e-10


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_eta_is_the_range_of_the_log_ratio_in_a_loop_over_pairs(data):
    adjacency, n_records = data.draw(adjacencies())
    logs = log_tables(data.draw, n_records)
    x, y = np.array(neighbour_pairs(adjacency, n_records)).T
    eta = np.ptp(logs[x] - logs[y], axis=1).max()
    assert concentrated_rho(logs, adjacency) == pytest.approx(bounded_range_rho(eta), rel=1e-9, abs=1e-28)
    assert eta <= 2 * privacy_loss_of_logs(logs, adjacency).epsilon * (1 + 1e-12) + 1e-14


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), listed=st.booleans())
def test_each_class_reveals_what_its_own_table_does_whatever_it_allows(seed, listed):
    rng = np.random.default_rng(seed)
    codes, allowed = np.repeat(np.arange(3), 4), rng.random((3, 4)) < 0.6
    allowed[:, 0] = True
    records = rng.permutation(12)
    codes, mask = codes[records], allowed[codes[records]]
    adjacency = Listed.sensitive(np.column_stack([codes, np.arange(12)]), [1])
    if not listed:
        order = np.argsort(codes, kind="stable")
        codes, mask, adjacency = codes[order], mask[order], Sensitive((3, 4), (1,))
    problem = DecisionProblem(rng.normal(size=(12, 4)), np.full(12, 1 / 12), adjacency, admissible=mask)
    policy = make_policy("exponential", epsilon=2.0)
    uses, logs = policy_uses(policy, problem), policy.log_probabilities(problem)
    # Classes are numbered by the first record of each.
    for use, code in zip(uses, dict.fromkeys(codes.tolist()), strict=True):
        own = logs[np.ix_(codes == code, mask[codes == code][0])]
        apart = own[:, None] - own
        assert use.loss == pytest.approx(apart.max(), abs=1e-9)
        assert use.eta == pytest.approx(np.ptp(apart, axis=2).max(), abs=1e-9)
        variation = np.abs(np.exp(own)[:, None] - np.exp(own)).sum(axis=2).max() / 2
        assert use.profile.delta_at(0.0) == pytest.approx(variation, abs=1e-9)
    together = policy_use(policy, problem)
    assert (together.loss, together.eta) == (max(use.loss for use in uses), max(use.eta for use in uses))


def test_an_action_that_nobody_in_a_clique_gets_is_left_out_there():
    with np.errstate(divide="ignore"):
        logs = np.log([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    eta = math.log(0.5 / 0.4) - math.log(0.5 / 0.6)
    assert concentrated_rho(logs, Sensitive((2, 2), (1,))) == pytest.approx(bounded_range_rho(eta), rel=1e-12)
    assert concentrated_rho(logs, AnyRecord()) == math.inf


def test_the_exponential_mechanism_calibrated_by_range_has_eta_epsilon():
    problem = DecisionProblem(np.random.default_rng(3).normal(size=(20, 4)), np.full(20, 0.05), AnyRecord())
    for epsilon in (0.1, 1.0, 7.0):
        logs = make_policy("exponential", epsilon=epsilon, calibration="range").log_probabilities(problem)
        assert concentrated_rho(logs, problem.adjacency) == pytest.approx(bounded_range_rho(epsilon), rel=1e-12)


def test_binary_response_needs_four_times_the_rho_that_epsilon_suggests():
    problem = DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], AnyRecord())
    logs = make_policy("randomized-response", epsilon=1.0).log_probabilities(problem)
    # log-ratios are +1 and -1: eta = 2.
    assert concentrated_rho(logs, problem.adjacency) == pytest.approx(bounded_range_rho(2.0), rel=1e-12)
    # and that is not slack: the divergence near order 1 is tanh(1/2) = 0.462, against 0.125.
    assert renyi(logs[0], logs[1], 1 + 1e-6) == pytest.approx(math.tanh(0.5), rel=1e-5)


@pytest.mark.parametrize("use", [bounded_use(0.0), bounded_use(0.0, 1.0), bounded_use(1.0, 0.0)])
def test_what_is_never_seen_to_differ_costs_no_rho(use):
    assert use.rho == 0.0


def test_basic_composition_counts_every_use():
    assert compose([0.1] * 10) == 1.0
    assert compose([]) == 0.0
    assert compose([1.0, math.inf]) == math.inf


@pytest.mark.parametrize("bad", [-0.1, math.nan, "1", True])
def test_a_loss_that_is_no_number_from_zero_is_refused(bad):
    with pytest.raises(ValueError, match="epsilon must be >= 0, got epsilon="):
        compose([1.0, bad])


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_the_exact_loss_of_two_uses_is_at_most_the_composed_one(data):
    adjacency, n_records = data.draw(adjacencies())
    first, second = log_tables(data.draw, n_records), log_tables(data.draw, n_records)
    product = (first[:, :, None] + second[:, None, :]).reshape(n_records, -1)
    composed = compose(privacy_loss_of_logs(logs, adjacency).epsilon for logs in (first, second))
    assert privacy_loss_of_logs(product, adjacency).epsilon <= composed * (1 + 1e-12) + 1e-12
    rho = sum(concentrated_rho(logs, adjacency) for logs in (first, second))
    x, y = np.array(neighbour_pairs(adjacency, n_records)).T
    assert renyi(product[x], product[y], 2).max() <= 2 * rho * (1 + 1e-9) + 1e-12

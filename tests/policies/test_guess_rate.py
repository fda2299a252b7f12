"""Exact guess rates against a loop over all pairs of neighbours and all sets of actions."""

import math
import sys
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, neighbour_pairs

from policies import AnyRecord, OneFeature, Sensitive, guess_rate, privacy_loss
from policies.adjacency import Listed, largest_difference
from policies.policy import NotApplicableError
from policies.privacy_loss import guess_rate_within


def brute_force(table, pairs):
    """(1 + max over pairs and sets of actions of p(A|x) - p(A|x')) / 2."""
    actions = range(table.shape[1])
    events = [list(event) for event in chain.from_iterable(combinations(actions, size) for size in range(len(actions)))]
    best = max(table[x, event].sum() - table[y, event].sum() for x, y in pairs for event in events)
    return (1 + best) / 2


def random_table(rng, n_records, n_actions):
    """Ties, equal rows, actions that nobody gets, and some that only one record gets."""
    table = rng.random((n_records, n_actions)) ** 3 + 1e-3
    if rng.random() < 0.3:
        table = np.round(table, 1) + 0.1
    if rng.random() < 0.3:
        table[:, 0] = 0
    if rng.random() < 0.3:
        table[rng.integers(n_records)] = table[0]
    return table / table.sum(axis=1, keepdims=True)


def check(table, adjacency, pairs):
    found = guess_rate(table, adjacency)
    assert found.rate == pytest.approx(brute_force(table, pairs), rel=1e-14)
    # Never above the bound that the exact loss sets, by no bit.
    assert 0.5 <= found.rate <= 1 / (1 + math.exp(-privacy_loss(table, adjacency).epsilon))
    witness, actions = found.witness, list(found.actions)
    assert (witness.record, witness.neighbour) in pairs
    attained = table[witness.record, actions].sum() - table[witness.neighbour, actions].sum()
    assert (1 + attained) / 2 == pytest.approx(found.rate, rel=1e-14)


@settings(max_examples=150, deadline=None)
@given(drawn=adjacencies(), seed=st.integers(0, 2**32 - 1), n_actions=st.integers(2, 6))
def test_the_rate_is_that_of_all_pairs_and_all_sets_of_actions(drawn, seed, n_actions):
    adjacency, n_records = drawn
    table = random_table(np.random.default_rng(seed), n_records, n_actions)
    check(table, adjacency, neighbour_pairs(adjacency, n_records))


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 20),
    n_actions=st.integers(2, 5),
    hidden=st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=3),
)
def test_the_rate_of_a_list_of_rows_is_that_of_its_pairs(seed, n_rows, n_actions, hidden):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=(n_rows, 3))
    alike = [(codes[:, None] == codes[None]).all(axis=2)] + [
        (codes[:, None] == codes[None])[:, :, [axis for axis in range(3) if axis not in features]].all(axis=2)
        for features in hidden
    ]
    pairs = list(zip(*np.nonzero(np.logical_or.reduce(alike)), strict=True))
    check(random_table(rng, n_rows, n_actions), Listed(codes, hidden, "listed"), pairs)


def test_a_search_that_forgets_the_sets_of_several_actions_is_caught():
    # Two actions speak for each record: no single action tells them apart half as well.
    table = np.array([[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]])
    single = max(largest_difference(column, AnyRecord()).value for column in table.T)
    assert (1 + single) / 2 == pytest.approx(0.65)
    found = guess_rate(table, AnyRecord())
    assert found.rate == pytest.approx(0.8) == brute_force(table, [(0, 1)])
    assert set(found.actions) in ({0, 1}, {2, 3})


@pytest.mark.parametrize(
    "adjacency",
    [
        AnyRecord(),
        OneFeature((40, 50)),
        Sensitive((40, 50), (0,)),
        Sensitive((5, 8, 50), (0, 2)),
    ],
    ids=repr,
)
def test_in_blocks_of_records_the_pair_that_is_farthest_apart_is_found(adjacency, monkeypatch):
    for module in ("policies.privacy_loss", "policies.arrays"):
        monkeypatch.setattr(sys.modules[module], "BLOCK", 20)
    rng = np.random.default_rng(3)
    table = rng.dirichlet(np.ones(12), size=2000)
    by_hand = 0.0
    for partition in adjacency.partitions(2000):
        for rows in partition.by_clique(np.arange(2000)):
            for place, row in enumerate(rows):
                by_hand = max(by_hand, abs(table[rows[place:]] - table[row]).sum(axis=1).max() / 2)
    # Once in an early block, once in a late one.
    for ordered in (table, table[::-1]):
        found = guess_rate(ordered, adjacency)
        assert found.rate == pytest.approx((1 + by_hand) / 2, rel=1e-14)
        pair = [found.witness.record, found.witness.neighbour]
        assert abs(np.diff(ordered[pair], axis=0)).sum() / 2 == pytest.approx(by_hand)


def test_many_actions_are_quick_where_records_are_few_and_refused_where_they_are_many():
    rng = np.random.default_rng(4)
    table = rng.dirichlet(np.ones(200), size=60)
    expected = max(abs(one - other).sum() for one, other in combinations(table, 2)) / 2
    assert guess_rate(table, AnyRecord()).rate == pytest.approx((1 + expected) / 2, rel=1e-14)
    many = np.broadcast_to(np.full(30, 1 / 30), (10_000, 30))
    with pytest.raises(NotApplicableError, match="guess_rate of 30 actions for 10,000 records takes too long"):
        guess_rate(many, AnyRecord())
    # The same records on short lines are soon compared pair by pair.
    assert guess_rate(many, Sensitive((5000, 2), (1,))).rate == 0.5


def test_where_no_neighbours_differ_guessing_is_blind():
    found = guess_rate([[0.2, 0.8], [0.2, 0.8]], AnyRecord())
    assert (found.rate, found.actions) == (0.5, ())


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, math.log(9), 3.0, 40.0])
def test_response_between_two_actions_attains_the_bound_and_rounding_does_not_pass_it(epsilon):
    right = 1 / (1 + math.exp(-epsilon))
    table = np.array([[right, 1 - right], [1 - right, right]])
    assert guess_rate(table, AnyRecord()).rate == pytest.approx(right, rel=1e-15)
    # As if the table had been rounded upwards.
    less = epsilon * (1 - 1e-12)
    assert guess_rate_within(table, AnyRecord(), less).rate <= 1 / (1 + math.exp(-less))


def test_a_notebook_shows_the_rate_the_records_and_the_split():
    shown = guess_rate([[0.4, 0.4, 0.2], [0.2, 0.2, 0.6]], AnyRecord())._repr_html_()
    assert "70" in shown
    assert "actions that speak for the record" in shown

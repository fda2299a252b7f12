"""Exact privacy loss against a loop over all pairs of neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, neighbour_pairs

from policies import AnyRecord, Sensitive, privacy_loss


def brute_force(table, adjacency):
    """max over neighbours and actions of log p(a|x)/p(a|x'), 0/0 counting as no loss."""
    worst = 0.0
    for x, y in neighbour_pairs(adjacency, len(table)):
        for p, q in zip(table[x], table[y], strict=True):
            if p > 0:
                worst = max(worst, np.inf if q == 0 else np.log(p) - np.log(q))
    return worst


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_loss_equals_a_loop_over_all_pairs_and_its_witness_attains_it(data):
    adjacency, n_records = data.draw(adjacencies())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    table = rng.random((n_records, data.draw(st.integers(3, 5)))) ** 3 + 1e-3
    if data.draw(st.booleans()):
        table[:, 0] = 0
    if data.draw(st.booleans()):
        table[rng.integers(n_records), 1] = 0
    table /= table.sum(axis=1, keepdims=True)
    found = privacy_loss(table, adjacency)
    expected = brute_force(table, adjacency)
    assert found.epsilon == pytest.approx(expected, rel=1e-12, abs=1e-14)
    x, y, a = found.witness.record, found.witness.neighbour, found.witness.action
    assert (x, y) in neighbour_pairs(adjacency, n_records)
    if 0 < found.epsilon < np.inf:
        assert np.log(table[x, a] / table[y, a]) == pytest.approx(found.epsilon, rel=1e-9)


def test_an_action_that_nobody_gets_reveals_nothing():
    assert privacy_loss([[1.0, 0.0], [1.0, 0.0]], AnyRecord()).epsilon == 0


def test_an_action_that_only_some_can_get_reveals_everything():
    assert privacy_loss([[1.0, 0.0], [0.5, 0.5]], AnyRecord()).epsilon == np.inf


def test_public_parts_may_be_told_apart():
    table = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert privacy_loss(table, AnyRecord()).epsilon == np.inf
    assert privacy_loss(table, Sensitive((2, 2), (1,))).epsilon == 0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], "row 0 sums to 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], r"got probabilities\[1, 1\]=-0.5"),
        ([[0.5, 0.5], [np.nan, 0.5]], r"got probabilities\[1, 0\]=nan"),
    ],
)
def test_a_table_that_holds_no_probabilities_is_refused_by_row(table, message):
    with pytest.raises(ValueError, match=message):
        privacy_loss(table, AnyRecord())

"""Exact privacy loss against a loop over all pairs of neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, loss_by_pairs, neighbour_pairs

from policies import AnyRecord, OneFeature, guess_rate, privacy_loss


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
    expected = loss_by_pairs(table, neighbour_pairs(adjacency, n_records))
    assert found.epsilon == pytest.approx(expected, rel=1e-12, abs=1e-14)
    x, y, a = found.witness.record, found.witness.neighbour, found.witness.action
    assert (x, y) in neighbour_pairs(adjacency, n_records)
    if 0 < found.epsilon < np.inf:
        assert np.log(table[x, a] / table[y, a]) == pytest.approx(found.epsilon, rel=1e-9)


@pytest.mark.parametrize("measure", [privacy_loss, guess_rate])
@pytest.mark.parametrize(
    ("table", "adjacency", "message"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], AnyRecord(), "row 0 sums to 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], AnyRecord(), r"got probabilities\[1, 1\]=-0.5"),
        ([[0.5, 0.5], [np.nan, 0.5]], AnyRecord(), r"got probabilities\[1, 0\]=nan"),
        ([[0.5, 0.5]], OneFeature((2,)), "the table has 1 rows"),
        ([[0.5, 0.5]], "any-record", r"adjacency must be AnyRecord\(\)"),
    ],
)
def test_what_is_no_table_or_no_adjacency_is_refused(measure, table, adjacency, message):
    with pytest.raises(ValueError, match=message):
        measure(table, adjacency)

"""Sensitivity against a loop over all pairs of neighbours."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies, neighbour_pairs, random_table, tables

from policies import AnyRecord, OneFeature, Sensitive, sensitivity
from policies.sensitivity import MANY_ACTIONS, Witness


def brute_force(table, adjacency):
    """Delta and Gamma by their definitions."""
    value, spread = 0.0, 0.0
    for x, y in neighbour_pairs(adjacency, len(table)):
        d = table[x] - table[y]
        value = max(value, np.abs(d).max())
        spread = max(spread, d.max() - d.min())
    return value, spread


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_sensitivity_equals_a_loop_over_all_pairs_and_every_witness_attains_its_value(data):
    adjacency, n_records = data.draw(adjacencies())
    table = data.draw(tables(n_records))
    found = sensitivity(table, adjacency)
    value, spread = brute_force(table, adjacency)
    # Both subtract the same numbers in another order: a few units in the last place of the utilities.
    rounding = 8 * np.finfo(float).eps * np.abs(table).max()
    assert found.value == value
    assert found.range == pytest.approx(spread, rel=1e-12, abs=rounding)
    pairs = set(neighbour_pairs(adjacency, n_records))
    x, y, a = found.witness.record, found.witness.neighbour, found.witness.action
    assert (x, y) in pairs
    assert abs(table[x, a] - table[y, a]) == found.value
    x, y, (a, b) = found.range_witness.record, found.range_witness.neighbour, found.range_witness.actions
    assert (x, y) in pairs
    assert (table[x, a] - table[x, b]) - (table[y, a] - table[y, b]) == found.range


@pytest.mark.parametrize("adjacency", [AnyRecord(), Sensitive((2, 40), (1,)), OneFeature((20, 4))])
def test_the_range_of_many_pairs_is_that_of_all_of_them(adjacency):
    """So many that some are looked at later than others, and that those that cannot be the best are left out."""
    rng = np.random.default_rng(0)
    for scores in (rng.random((80, 1_200)), np.outer(rng.random(80), rng.random(1_200))):
        found = sensitivity(scores, adjacency)
        if isinstance(adjacency, OneFeature):
            cliques = [*scores.reshape(20, 4, -1), *scores.reshape(20, 4, -1).transpose(1, 0, 2)]
        else:
            cliques = scores.reshape(1 if isinstance(adjacency, AnyRecord) else 2, -1, 1_200)
        apart = [row - other for clique in cliques for row, other in combinations(clique, 2)]
        assert found.range == pytest.approx(max(map(np.ptp, apart)), rel=1e-12)


def test_a_clique_that_is_looked_at_later_may_have_a_range_that_is_a_little_larger():
    wide = np.random.default_rng(1).random((40, 7_000)) * np.repeat([1.0, 1.05], 20)[:, None]
    found = sensitivity(wide, Sensitive((2, 20), (1,)))
    apart = [np.ptp(row - other) for row, other in combinations(wide[20:], 2)]
    assert found.range == pytest.approx(max(apart), rel=1e-12)
    assert {found.range_witness.record // 20, found.range_witness.neighbour // 20} == {1}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_range_of_many_actions_is_that_of_a_loop_over_all_pairs_whatever_is_allowed(data):
    adjacency, n_records = data.draw(adjacencies())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    table = random_table(rng, n_records, MANY_ACTIONS + 4)
    # Neighbours must allow the same: so all allow the same here.
    mask = np.tile(rng.random(table.shape[1]) < data.draw(st.sampled_from([0.0, 0.1, 1.0])), (n_records, 1))
    mask[:, 3] = True
    found = sensitivity(table, adjacency, mask)
    value, spread = brute_force(table[:, mask[0]], adjacency)
    rounding = 8 * np.finfo(float).eps * np.abs(table).max()
    assert found.value == value
    assert found.range == pytest.approx(spread, rel=1e-12, abs=rounding)
    x, y, (a, b) = found.range_witness.record, found.range_witness.neighbour, found.range_witness.actions
    assert (x, y) in set(neighbour_pairs(adjacency, n_records)) and (spread == 0 or (mask[0, a] and mask[0, b]))
    assert (table[x, a] - table[y, a]) - (table[x, b] - table[y, b]) == pytest.approx(spread, rel=1e-12, abs=rounding)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_utility_that_is_not_finite_is_refused_by_place(bad):
    table = np.zeros((3, 2))
    table[1, 1] = bad
    with pytest.raises(ValueError, match=r"utilities must be finite, got utilities\[1, 1\]="):
        sensitivity(table, AnyRecord())


@pytest.mark.parametrize("adjacency", [OneFeature((2, 2)), Sensitive((5,), (0,))])
def test_a_table_of_another_size_is_refused(adjacency):
    with pytest.raises(ValueError, match="the table has 3 rows"):
        sensitivity(np.zeros((3, 2)), adjacency)


@pytest.mark.parametrize("shape", [(), (0,), (3, -1)])
def test_a_shape_without_levels_is_refused(shape):
    with pytest.raises(ValueError, match="shape must list a positive number of levels"):
        OneFeature(shape)


@pytest.mark.parametrize("axes", [(), (2,), (-1,), (0, 0)])
def test_axes_that_do_not_exist_are_refused(axes):
    with pytest.raises(ValueError, match="axes must be distinct axes"):
        Sensitive((2, 2), axes)


@pytest.mark.parametrize("table", [np.zeros(3), np.zeros((3, 1)), np.zeros((0, 2)), np.zeros((2, 2, 2))])
def test_a_table_of_another_shape_is_refused(table):
    with pytest.raises(ValueError, match=r"must be \(n_records, k\) with k >= 2"):
        sensitivity(table, AnyRecord())


def test_a_range_that_no_float_holds_is_refused_as_in_a_problem():
    with pytest.raises(ValueError, match=r"utilities must differ by 1e-290 to 1e\+290, got 1.6e\+308"):
        sensitivity([[8e307, -8e307], [-8e307, 8e307]], AnyRecord())


def test_what_other_witnesses_attain_is_computed_anew():
    found = sensitivity(np.array([[0.0, 1.0, 5.0], [2.0, 2.0, 1.0], [0.5, 0.0, 4.0]]), AnyRecord())
    assert (found.value, found.range) == (4.0, 6.0)
    other = replace(found, witness=Witness(0, 1, (0,)), range_witness=Witness(2, 1, (1, 0)))
    assert (other.value, other.range) == (2.0, 0.5)
    assert replace(other, utilities=2 * found.utilities).value == 4.0
    with pytest.raises(ValueError, match="value"):
        replace(found, value=1.0)

"""Adjacency over listed rows: against the grids on full products, and against loops over pairs on any list."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive, privacy_loss, sensitivity
from policies.adjacency import Listed, ListedPartition, largest_difference
from policies.optimal.certificate import optimal_certificate


def listed(kind, codes, features=()):
    if kind == "sensitive":
        return Listed.sensitive(codes, features)
    return {"any-record": Listed.any_record, "one-feature": Listed.one_feature}[kind](codes)


def are_neighbours(kind, x, y, features):
    """By the definition of each adjacency and nothing else; a row of the same record is a neighbour too."""
    differing = {feature for feature, (a, b) in enumerate(zip(x, y, strict=True)) if a != b}
    return {
        "any-record": True,
        "one-feature": len(differing) <= 1,
        "sensitive": differing <= set(features),
    }[kind]


@st.composite
def lists(draw):
    """Some rows over a few features, with gaps and repeated records, and an adjacency over them."""
    n_features = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = rng.integers(0, 3, size=(draw(st.integers(1, 24)), n_features))
    if draw(st.booleans()):
        codes = np.array([-5, 3, 2**60])[codes]
    kind = draw(st.sampled_from(["any-record", "one-feature", "sensitive"]))
    features = tuple(draw(st.sets(st.integers(0, n_features - 1), min_size=1)))
    return kind, codes, features


@pytest.mark.parametrize(
    ("kind", "grid"),
    [("any-record", AnyRecord()), ("one-feature", OneFeature((2, 3, 4))), ("sensitive", Sensitive((2, 3, 4), (0, 2)))],
)
def test_on_a_full_product_it_is_the_adjacency_over_the_grid(kind, grid):
    codes = list(product(range(2), range(3), range(4)))
    adjacency = listed(kind, codes, (0, 2))
    assert adjacency.name == grid.name
    rng = np.random.default_rng(4)
    table = rng.dirichlet(np.ones(3), size=24)
    assert privacy_loss(table, adjacency) == privacy_loss(table, grid)
    utilities = rng.normal(size=(24, 3))
    here, there = sensitivity(utilities, adjacency), sensitivity(utilities, grid)
    assert (here.value, here.range) == (there.value, there.range)


@settings(max_examples=200, deadline=None)
@given(drawn=lists(), seed=st.integers(0, 2**32 - 1))
def test_the_largest_difference_is_that_of_a_loop_over_pairs(drawn, seed):
    kind, codes, features = drawn
    column = np.random.default_rng(seed).normal(size=len(codes))
    found = largest_difference(column, listed(kind, codes, features))
    pairs = [
        (i, j)
        for (i, x), (j, y) in product(enumerate(codes.tolist()), repeat=2)
        if are_neighbours(kind, x, y, features)
    ]
    assert found.value == max(column[i] - column[j] for i, j in pairs)
    assert (found.record, found.neighbour) in pairs
    assert column[found.record] - column[found.neighbour] == found.value


@settings(max_examples=200, deadline=None)
@given(drawn=lists())
def test_a_row_has_a_neighbour_if_another_row_is_one(drawn):
    kind, codes, features = drawn
    rows = list(enumerate(codes.tolist()))
    expected = [any(j != i and are_neighbours(kind, x, y, features) for j, y in rows) for i, x in rows]
    assert listed(kind, codes, features).has_neighbour.tolist() == expected


@settings(max_examples=100, deadline=None)
@given(drawn=lists(), seed=st.integers(0, 2**32 - 1))
def test_cliques_of_all_sizes_hold_each_row_once_per_partition(drawn, seed):
    kind, codes, features = drawn
    column = np.random.default_rng(seed).permutation(len(codes))
    for partition in listed(kind, codes, features).partitions(len(codes)):
        cliques = [partition.members(clique).tolist() for clique in range(len(partition.starts))]
        assert sorted(np.concatenate(cliques)) == list(range(len(codes)))
        assert all(clique == sorted(clique) for clique in cliques)
        padded = partition.by_clique(column)
        assert [set(row) for row in padded.tolist()] == [set(column[clique].tolist()) for clique in cliques]


def test_more_features_than_fit_into_one_key_still_make_the_right_cliques():
    # 2^70 possible keys, more than an int64 holds: rows 0 and 1 differ in the first feature only, row 2 in the last.
    # The last row is nobody's neighbour; it gives every feature a second level.
    codes = np.zeros((4, 70), dtype=int)
    codes[1, 0] = codes[2, -1] = 1
    codes[3] = 1
    column = np.array([0.0, 1.0, 5.0, 100.0])
    for hidden, expected in (([0], 1.0), ([69], 5.0), ([30], 0.0)):
        assert largest_difference(column, Listed.sensitive(codes, hidden)).value == expected
    assert largest_difference(column, Listed.one_feature(codes)).value == 5.0


def test_to_code_that_only_knows_grids_it_is_one_clique_of_all_rows():
    (partition,) = Listed.sensitive([[0, 0], [0, 1], [1, 1]], [1]).partitions(3)
    assert isinstance(partition, ListedPartition)
    assert (partition.shape, partition.axes) == ((3,), (0,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Listed.sensitive([[0, 1]], [2]), r"hidden must name features in \[0, 2\), got \(2,\)"),
        (lambda: Listed.sensitive([[0, 1]], [-1]), r"got \(-1,\)"),
        (lambda: Listed.any_record([0, 1]), r"codes must be \(n_rows, n_features\) .*, got shape \(2,\)"),
        (lambda: Listed.one_feature(np.zeros((0, 2))), r"got shape \(0, 2\)"),
        (lambda: Listed.one_feature([[0], [1]]).partitions(3), "lists 2 records, the table has 3 rows"),
    ],
)
def test_lists_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_partitions_of_one_list_are_different_things():
    first, second = Listed.one_feature([[0, 0], [0, 1], [1, 1]]).partitions(3)
    assert first != second
    assert len({first, second}) == 2


def test_a_list_that_hides_its_last_feature_alone_has_the_proof_of_that():
    rng = np.random.default_rng(0)
    utilities, prior = rng.normal(size=(6, 2)), np.full(6, 1 / 6)
    codes = [[0, 0], [0, 1], [1, 2], [1, 3], [2, 4], [2, 5]]
    listed = DecisionProblem(utilities, prior, Listed.one_feature(codes))
    proof = optimal_certificate(listed, 0.5)
    assert proof.hidden == (1,)
    assert proof.holds(listed)
    on_grid = DecisionProblem(utilities, prior, Sensitive((3, 2), (1,)))
    assert proof.bound == pytest.approx(optimal_certificate(on_grid, 0.5).bound, rel=1e-12)

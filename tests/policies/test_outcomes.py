"""Tables of outcomes that are made when they are asked for, against dense ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import AnyRecord, DecisionProblem, OneFeature, make_policy
from policies.distinct import once_each
from policies.outcomes import MOST_ROWS, Outcomes, RepeatedRows, outcome_table, whole_table

SHAPE = (3, 2, 4)
SIZE = 24


@st.composite
def grids(draw, n_actions=3):
    """A grid for each action, each of length 1 along some features."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    shapes = [tuple(length if draw(st.booleans()) else 1 for length in SHAPE) for _ in range(n_actions)]
    return [rng.random(shape) for shape in shapes]


def dense(found):
    return np.column_stack([np.broadcast_to(grid, SHAPE).ravel() for grid in found])


def problem_of(tables, adjacency=None, mask=None):
    rng = np.random.default_rng(3)
    utilities, prior = rng.integers(-1, 2, size=(SIZE, 3)), rng.dirichlet(np.ones(SIZE))
    return DecisionProblem(utilities, prior, adjacency or AnyRecord(), outcomes=tables, admissible=mask)


@given(found=grids())
def test_a_table_made_of_few_rows_is_the_dense_one(found):
    table = outcome_table(found, SHAPE)
    assert isinstance(table, RepeatedRows)
    assert (table.table() == dense(found)).all() and (whole_table(found, SHAPE) == dense(found)).all()
    outcomes = Outcomes({"sick": table, "dead": whole_table(found, SHAPE)})
    assert outcomes.repeated == ("sick",) and outcomes.whole == ("dead",)
    some, actions = np.array([5, 0, 23, 5]), np.array([2, 0])
    part = outcomes.of_records(some, actions)
    for name in outcomes:
        assert (part[name] == dense(found)[np.ix_(some, actions)]).all()
        with pytest.raises(ValueError, match="read-only"):
            problem_of(outcomes).outcomes[name][0, 0] = 1.0


def test_a_table_with_many_rows_is_stored_as_it_is():
    shape = (MOST_ROWS + 1,)
    grid = np.random.default_rng(0).random(shape)
    assert isinstance(outcome_table([grid[:MOST_ROWS]] * 2, (MOST_ROWS,)), RepeatedRows)
    assert (outcome_table([grid, grid], shape) == np.column_stack([grid, grid])).all()


@given(tables=st.lists(grids(), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_expectations_are_those_of_the_dense_tables(tables, seed):
    lazy = {f"outcome {place}": outcome_table(found, SHAPE) for place, found in enumerate(tables)}
    problem = problem_of(Outcomes(lazy | {"whole": dense(tables[0])}))
    odds = np.random.default_rng(seed).dirichlet(np.ones(3), SIZE)
    means = problem.expectations(odds)
    assert list(means) == list(problem.outcomes) == [*lazy, "whole"]
    for name, found in zip(lazy, tables, strict=True):
        wanted = sum(problem.prior[x] * odds[x, a] * dense(found)[x, a] for x in range(SIZE) for a in range(3))
        assert means[name] == pytest.approx(wanted, abs=1e-14)
        assert problem.expectation(name, odds) == pytest.approx(wanted, abs=1e-14)


@given(found=grids(), adjacency=st.sampled_from([AnyRecord(), OneFeature(SHAPE)]))
def test_distinct_rows_agree_in_every_outcome_and_keep_the_means(found, adjacency):
    # Utilities of few values: many records share a row of them, and differ in the outcome.
    problem = problem_of(Outcomes({"sick": outcome_table(found, SHAPE)}), adjacency)
    policy = make_policy("exponential", epsilon=1.0)
    on = once_each(policy, problem)
    rows = {(*u, *o) for u, o in zip(problem.utilities.tolist(), dense(found).tolist(), strict=True)}
    assert on.n_records == (len(rows) if isinstance(adjacency, AnyRecord) else SIZE)
    mean = on.expectations(policy.probabilities(on))["sick"]
    assert mean == pytest.approx(problem.expectations(policy.probabilities(problem))["sick"], abs=1e-14)


def test_what_a_mask_forbids_has_the_worst_that_is_allowed():
    found = [np.array([0.1, 0.2, 0.3]).reshape(3, 1, 1), np.array([0.5]).reshape(1, 1, 1), np.zeros((1, 1, 1))]
    mask = np.ones((SIZE, 3), dtype=bool)
    mask[:, 1] = False
    problem = problem_of(Outcomes({"sick": outcome_table(found, SHAPE)}), mask=mask)
    expected = dense(found).copy()
    expected[:, 1] = expected[:, 0]
    assert (problem.outcomes["sick"] == expected).all()


def test_an_outcome_of_another_shape_or_name_is_refused():
    wrong = outcome_table([np.zeros((1, 1, 1))] * 2, SHAPE)
    with pytest.raises(ValueError, match=r"outcomes\['sick'\] must have shape \(24, 3\), got \(24, 2\)"):
        problem_of(Outcomes({"sick": wrong}))
    with pytest.raises(ValueError, match="sick must be finite"):
        problem_of(Outcomes({"sick": outcome_table([np.full((1, 1, 1), np.nan)] * 3, SHAPE)}))
    with pytest.raises(KeyError):
        problem_of({}).outcomes["sick"]

"""Each distinct row once: what is computed on these is what is computed on all records, and only where it is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import tables

from policies import CATALOGUE, AnyRecord, DecisionProblem, OneFeature, Sensitive, make_policy
from policies.distinct import distinct_rows, once_each, reweighted
from policies.exponential import Exponential
from policies.privacy_loss import privacy_loss_of_logs
from policies.sensitivity import sensitivity

ROW_WISE = [name for name, kind in CATALOGUE.items() if kind.row_wise]


@st.composite
def repeated(draw, largest=30):
    """A problem under any-record some of whose rows occur several times; some have probability 0."""
    n_rows = draw(st.integers(1, 6))
    rows = draw(tables(n_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    which = rng.integers(n_rows, size=draw(st.integers(2, largest)))
    prior = rng.random(len(which)) * (rng.random(len(which)) < 0.8)
    prior[0] += 0.1
    deaths = rng.random((n_rows, rows.shape[1]))
    other = {name: rng.dirichlet(np.ones(len(which))) for name in ("here", "there")}
    return DecisionProblem(
        rows[which], prior / prior.sum(), AnyRecord(), outcomes={"death": deaths[which]}, lead="death", priors=other
    )


def tables_or_refusal(policy, problem):
    try:
        return policy.tables(problem)
    except ValueError:
        return None


def test_which_policies_are_row_wise_is_said_by_each_and_others_are_computed_for_every_record():
    assert set(CATALOGUE) - set(ROW_WISE) == {"randomized-features"}
    problem = DecisionProblem(np.ones((4, 2)), np.full(4, 1 / 4), AnyRecord())
    assert once_each(make_policy("randomized-features", epsilon=1.0), problem) is problem
    assert once_each(Exponential(1.0), problem).n_records == 1


@given(problem=repeated())
def test_the_rows_are_those_that_brute_force_finds(problem):
    whole = [(*u, *d) for u, d in zip(problem.utilities.tolist(), problem.outcomes["death"].tolist(), strict=True)]
    found = distinct_rows(problem)
    first = sorted({row: whole.index(row) for row in whole}.values())
    if found is None:
        assert len(first) == len(whole)
        return
    assert found.first.tolist() == first
    assert [whole[first[row]] for row in found.row] == whole
    for place, mass in enumerate(found.summed(problem.prior)):
        assert mass == pytest.approx(math.fsum(problem.prior[found.row == place]), rel=1e-15, abs=0)


@pytest.mark.parametrize("name", ROW_WISE)
@settings(max_examples=40, deadline=None)
@given(problem=repeated(), epsilon=st.sampled_from([0, 0.01, 1, 5, 100, math.inf]))
def test_a_policy_is_the_same_on_distinct_rows_and_on_all_records(name, problem, epsilon):
    policy = make_policy(name, epsilon=epsilon)
    on, found = once_each(policy, problem), distinct_rows(problem)
    whole, reduced = tables_or_refusal(policy, problem), tables_or_refusal(policy, on)
    assert (whole is None) == (reduced is None)
    if whole is None or found is None:
        return
    assert on.n_records == len(found.first)
    for all_records, rows in zip(whole, reduced, strict=True):
        np.testing.assert_allclose(rows[found.row], all_records, rtol=1e-12, atol=1e-300)
    scale = np.abs(problem.utilities).max()
    assert on.value(reduced[1]) == pytest.approx(problem.value(whole[1]), abs=1e-12 * scale)
    loss = privacy_loss_of_logs(whole[0], problem.adjacency).epsilon
    assert privacy_loss_of_logs(reduced[0], on.adjacency).epsilon == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert policy.loss_bound(on) == pytest.approx(policy.loss_bound(problem), rel=1e-12, nan_ok=True)
    # What a policy trusts is the prior that it was made for; it may be evaluated under another one.
    others = np.roll(problem.prior, 1)
    value = problem.with_prior(others).value(whole[1])
    assert reweighted(on, problem, others).value(reduced[1]) == pytest.approx(value, abs=1e-12 * scale)


@given(problem=repeated())
def test_what_is_carried_is_what_the_rows_have(problem):
    on = once_each(Exponential(1.0), problem)
    found = sensitivity(on.utilities, on.adjacency)
    for name in ("value", "range"):
        assert getattr(on.sensitivity, name) == getattr(found, name) == getattr(problem.sensitivity, name)
    witness = on.sensitivity.witness
    gap = on.utilities[witness.record, witness.action] - on.utilities[witness.neighbour, witness.action]
    assert abs(gap) == on.sensitivity.value
    assert on.best_fixed_action == problem.best_fixed_action


def test_rows_that_agree_after_a_shift_stay_apart():
    # Less their maxima all rows are the same: merged, Delta would be 0 instead of 5, and exponential not private.
    utilities = np.array([[0.0, 1.0], [5.0, 6.0], [5.0, 6.0]])
    problem = DecisionProblem(utilities, np.full(3, 1 / 3), AnyRecord())
    on = once_each(Exponential(1.0), problem)
    assert on.n_records == 2
    assert on.sensitivity.value == problem.sensitivity.value == 5


def test_rows_that_differ_in_an_outcome_alone_stay_apart():
    deaths = np.array([[0.1, 0.2], [0.1, 0.3], [0.1, 0.2]])
    problem = DecisionProblem(np.ones((3, 2)), np.full(3, 1 / 3), AnyRecord(), outcomes={"death": deaths}, lead="death")
    assert distinct_rows(problem).row.tolist() == [0, 1, 0]


@pytest.mark.parametrize("adjacency", [OneFeature((2, 2)), Sensitive((2, 2), (1,))])
def test_where_not_all_records_are_neighbours_nothing_is_merged(adjacency):
    problem = DecisionProblem(np.ones((4, 2)), np.full(4, 1 / 4), adjacency)
    assert all(once_each(make_policy(name, epsilon=1.0), problem) is problem for name in CATALOGUE)
    hides_all = problem.with_adjacency(Sensitive((2, 2), (0, 1)))
    assert once_each(Exponential(1.0), hides_all).n_records == 1


def test_sums_of_many_small_weights_are_not_worn_away():
    # 10^6 records with one row: adding one by one would be off by 10^-11.
    weights = np.random.default_rng(0).random(1_000_000)
    weights /= weights.sum()
    problem = DecisionProblem(np.ones((len(weights), 2)), weights, AnyRecord())
    assert distinct_rows(problem).summed(weights)[0] == pytest.approx(math.fsum(weights), rel=3e-16, abs=0)

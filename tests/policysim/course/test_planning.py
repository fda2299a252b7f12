"""Planning over a finite horizon, and what policies are worth, against enumeration of paths and policies."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from small_processes import all_policies, dense_value, expected_by_paths, random_arrays, random_table

from policies import make_policy
from policies.masked import masked_problem
from policysim.course.planning import optimal_course, plan, policy_value, policy_values
from policysim.course.tabular import TabularMDP

HORIZON = 3


def small(seed, *, discount=1.0, masked=False, horizon=HORIZON):
    rng = np.random.default_rng(seed)
    moves, rewards, initial, ends = random_arrays(rng, 3, 2, ends=0.2, sparse=True)
    mask = np.array([[True, True], [False, True], [True, True]]) if masked else np.ones((3, 2), dtype=bool)
    given = mask if masked else None
    return moves, rewards, mask, TabularMDP(moves, rewards, initial, discount, horizon, ends=ends, admissible=given)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_backward_induction_finds_the_best_of_all_policies(discount, masked):
    moves, rewards, mask, mdp = small(1, discount=discount, masked=masked)
    deterministic = all_policies(mask)
    best = np.full(3, -np.inf)
    for daily in product(deterministic, repeat=HORIZON):
        tables = [np.eye(2)[chosen] for chosen in daily]
        values = [expected_by_paths(moves, rewards, tables, state, discount=discount) for state in range(3)]
        best = np.maximum(best, values)
    found = plan(mdp)
    assert found.values[0] == pytest.approx(best)
    assert found.value == pytest.approx(float(mdp.initial @ best))
    assert found.q_values.shape == (HORIZON, 3, 2)
    assert found.q_values[0].flags.f_contiguous
    assert (np.isneginf(found.q_values) == ~mask).all()
    assert policy_value(mdp, np.eye(2)[found.actions]) == pytest.approx(found.value)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_value_of_a_policy_is_that_of_its_paths(seed, masked):
    moves, rewards, mask, mdp = small(seed, discount=0.8, masked=masked)
    rng = np.random.default_rng(seed + 100)
    daily = np.stack([random_table(rng, 3, 2, mask) for _ in range(HORIZON)])
    values = [expected_by_paths(moves, rewards, daily, state, discount=0.8) for state in range(3)]
    assert policy_values(mdp, daily) == pytest.approx(values)
    assert policy_value(mdp, daily) == pytest.approx(float(mdp.initial @ values))
    assert policy_value(mdp, list(daily)) == policy_value(mdp, daily)
    assert policy_value(mdp, daily[0]) == policy_value(mdp, np.stack([daily[0]] * HORIZON))
    assert policy_value(mdp, daily[0].tolist()) == policy_value(mdp, daily[0])


def days_of(mdp, daily):
    """The mass of each state on each day, (H, n), as the process pushes it."""
    mass = [mdp.initial]
    for table in daily[:-1]:
        mass.append(mdp.push(mass[-1], table))
    return np.array(mass)


@pytest.mark.parametrize(
    "name", ["greedy", "exponential", "randomized-response", "optimal", "exponential-fitted", "best-fixed"]
)
def test_under_its_own_continuation_each_day_is_decided_by_what_that_policy_will_earn(name):
    moves, rewards, mask, mdp = small(3, masked=True)
    policy = make_policy(name, epsilon=1.0)
    found = plan(mdp, policy=policy)
    priors = optimal_course(mdp).priors()
    values = np.zeros(3)
    for day in reversed(range(HORIZON)):
        q_values = rewards + np.einsum("sat,t->sa", moves, values)
        assert found.q_values[day][mask] == pytest.approx(q_values[mask])
        table = masked_problem(q_values, priors[day], mask).tables(policy)[1]
        values = (table * q_values).sum(axis=1)
        assert found.values[day] == pytest.approx(values)
    assert found.value == pytest.approx(float(mdp.initial @ values))


def test_the_reference_priors_are_the_states_under_optimal_actions():
    *_, mdp = small(11)
    mass = days_of(mdp, np.eye(2)[plan(mdp).actions])
    expected = mass / mass.sum(axis=1, keepdims=True)
    assert np.array(optimal_course(mdp).priors()) == pytest.approx(expected)
    course = optimal_course(mdp)
    assert np.array([day.whole.prior for day in course.days]) == pytest.approx(expected)
    assert course.values == pytest.approx(plan(mdp).values[0])


def test_where_nobody_is_left_the_prior_is_that_of_the_last_day_with_somebody():
    moves = np.zeros((2, 2, 2))
    moves[0, :, 1] = 1
    mdp = TabularMDP(moves, np.ones((2, 2)), [1, 0], horizon=4, ends=[[0, 0], [1, 1]], axes="SAS")
    assert [prior.tolist() for prior in optimal_course(mdp).priors()] == [[1, 0], [0, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.full((3, 2), 0.4), "row 0 sums to 0.8"),
        ([[0.5, 0.5], [0.5, 0.5], [1, 0]], r"probabilities\[1, 0\] must be 0, got 0.5: state 1 does not allow a0"),
        (np.full((2, 2), 0.5), r"must have shape \(3, 2\), got \(2, 2\)"),
        (np.full((2, 3, 2), 0.5), "must hold 3 days or be one table, got 2 tables"),
        ([np.eye(2)[[0, 1, 1]]] * 2 + [[[1.5, -0.5], [0, 1], [0, 1]]], r"probabilities\[2\] must be >= 0"),
    ],
)
def test_a_table_that_is_no_policy_of_the_process_is_refused(table, message):
    *_, mdp = small(0, masked=True)
    with pytest.raises(ValueError, match=message):
        policy_value(mdp, table)


def test_daily_tables_need_a_horizon():
    *_, mdp = small(0, horizon=None)
    with pytest.raises(ValueError, match="must hold None days or be one table"):
        policy_value(mdp, np.full((3, 3, 2), 0.5))
    with pytest.raises(ValueError, match="need a horizon"):
        plan(mdp, policy=make_policy("exponential", epsilon=1.0))


def test_one_day_is_one_decision_and_many_days_tend_to_the_infinite_horizon():
    moves, rewards, _, long = small(2, horizon=400)
    table = random_table(np.random.default_rng(0), 3, 2)
    *_, one = small(2, horizon=1)
    assert plan(one).q_values[0] == pytest.approx(rewards)
    # A step ends the process with probability 0.2: what is left after 400 is 0.8^400 < 1e-38.
    assert policy_values(long, table) == pytest.approx(dense_value(moves, rewards, table), abs=1e-12)


@pytest.mark.parametrize("given", [[], 0.5, iter([1]), None])
def test_probabilities_that_are_no_table_are_refused(given):
    mdp = TabularMDP(np.ones((1, 2, 1)), [[0, 1]], [1], horizon=2)
    with pytest.raises(ValueError, match="probabilities must be"):
        policy_value(mdp, given)


def test_what_is_no_process_and_no_policy_is_named():
    with pytest.raises(ValueError, match="plan takes a process, such as a TabularMDP, got 5"):
        plan(5)
    mdp = TabularMDP(np.ones((1, 2, 1)), [[0, 1]], [1], horizon=2)
    with pytest.raises(ValueError, match="policy must be a Policy"):
        plan(mdp, policy="exponential")


@pytest.mark.parametrize("horizon", [3, None])
def test_a_plan_is_worth_what_its_values_are_from_its_first_states(horizon):
    moves, rewards, initial, _ = random_arrays(np.random.default_rng(2))
    found = plan(TabularMDP(moves, rewards, initial, 0.9, horizon, axes="SAS"))
    first = found.values if horizon is None else found.values[0]
    assert found.value == initial @ first
    other = np.eye(len(initial))[1]
    assert replace(found, initial=other).value == first[1]
    assert replace(found, values=2 * found.values).value == pytest.approx(2 * found.value)

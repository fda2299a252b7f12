"""Planning without a horizon, against linear programmes, dense solves and enumeration of all policies."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from small_processes import (
    all_policies,
    dense_value,
    loopy_arrays,
    random_arrays,
    random_table,
    totals_of_policies,
    toy_text_arrays,
)

from policysim.course import planning_infinite
from policysim.course.planning import plan, policy_value, policy_values
from policysim.course.planning_infinite import EndlessError, chain_visits, solve_infinite
from policysim.course.tabular import TabularMDP


def linear_programme(moves, rewards, discount):
    """V: the smallest v with v >= r + discount P v for every action (Puterman 1994, section 6.9)."""
    n, k = rewards.shape
    rows = np.repeat(np.eye(n), k, axis=0) - discount * moves.reshape(n * k, n)
    solved = linprog(np.ones(n), A_ub=-rows, b_ub=-rewards.ravel(), bounds=(None, None), method="highs")
    assert solved.status == 0
    return solved.x


@pytest.mark.parametrize("seed", range(8))
def test_policy_iteration_solves_the_linear_programme(seed):
    rng = np.random.default_rng(seed)
    ends = 0.1 * (seed % 2)
    moves, rewards, initial, last = random_arrays(rng, 12, 4, ends=ends, sparse=True)
    discount = 1.0 if ends else 0.95
    found = plan(TabularMDP(moves, rewards, initial, discount, ends=last))
    # HiGHS is accurate to 1e-7 in each constraint, and at most 20 steps add up.
    assert found.values == pytest.approx(linear_programme(moves, rewards, discount), abs=1e-5)
    bellman = rewards + discount * np.einsum("sat,t->sa", moves, found.values)
    assert found.q_values == pytest.approx(bellman, abs=1e-12)
    assert found.values == pytest.approx(bellman.max(axis=1), abs=1e-11)
    assert found.value == pytest.approx(float(initial @ found.values))


@given(st.integers(0, 2**32 - 1))
def test_loops_ties_and_dead_ends_against_all_policies(seed):
    moves, rewards, initial, last = loopy_arrays(np.random.default_rng(seed))
    mdp = TabularMDP(moves, rewards, initial, ends=last)
    total, settles = totals_of_policies(moves, rewards, all_policies(np.ones(rewards.shape, dtype=bool)))
    try:
        found = solve_infinite(mdp)
        q_values, values, actions = found.q_values, found.values, found.actions
    except ValueError as error:
        state = int(str(error).split()[2])
        if "grows for ever" in str(error):
            # 2^40 steps of an average reward that is not tiny
            assert total[:, state].max() > 1e6
        else:
            assert "never ends" in str(error)
            assert not settles[:, state].any()
        return
    assert settles.any(axis=0).all()
    assert values == pytest.approx(np.where(settles, total, -np.inf).max(axis=0), abs=1e-9)
    assert q_values.max(axis=1) == pytest.approx(values, abs=1e-9)
    # and its own policy attains it, though equally good actions may never end
    assert policy_values(mdp, np.eye(3)[actions]) == pytest.approx(values, abs=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_the_value_of_a_policy_with_loops_is_its_limit_or_says_that_there_is_none(seed):
    rng = np.random.default_rng(seed)
    moves, rewards, initial, last = loopy_arrays(rng)
    mdp = TabularMDP(moves, rewards, initial, ends=last)
    chosen = rng.integers(3, size=(1, 4))
    total, settles = (found[0] for found in totals_of_policies(moves, rewards, chosen))
    values = policy_values(mdp, np.eye(3)[chosen[0]])
    assert (np.isfinite(values) == settles).all()
    assert values[settles] == pytest.approx(total[settles], abs=1e-9)
    assert (total[values == -np.inf] < -1e6).all()
    assert (total[values == np.inf] > 1e6).all()


def test_walls_on_the_way_do_not_stop_a_sure_walk_over_the_lake():
    # Every state on the way is worth 1, and so is bumping into a wall there: the largest Q-value says nothing.
    mdp = TabularMDP.from_env(gymnasium.make("FrozenLake-v1", is_slippery=False))
    found = plan(mdp)
    assert found.value == 1
    assert policy_value(mdp, np.eye(4)[found.actions]) == 1
    assert policy_value(mdp, np.eye(4)[found.q_values.argmax(axis=1)]) == 0


TOY_TEXT = ["FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v4", "CliffWalking-v1", "CliffWalkingSlippery-v1"]


@pytest.mark.parametrize("name", TOY_TEXT)
def test_toy_text_environments_by_a_dense_solve(name):
    env = gymnasium.make(name)
    moves, rewards = toy_text_arrays(env)
    mdp = TabularMDP.from_env(env)
    initial = env.unwrapped.initial_state_distrib
    uniform = np.full(rewards.shape, 1 / rewards.shape[1])
    assert policy_value(mdp, uniform) == pytest.approx(float(initial @ dense_value(moves, rewards, uniform)), rel=1e-9)
    found = plan(mdp)
    # The policy attains the value, and the value solves Bellman's equation: no other policy that ends has more.
    best = np.eye(rewards.shape[1])[found.actions]
    assert found.value == pytest.approx(float(initial @ dense_value(moves, rewards, best)), rel=1e-10)
    bellman = (rewards + np.einsum("sat,t->sa", moves, found.values)).max(axis=1)
    assert found.values == pytest.approx(bellman, rel=1e-11, abs=1e-11)


def test_a_state_from_which_nothing_ends_is_named():
    moves = np.zeros((9, 2, 9))
    moves[np.arange(8), 0, np.arange(1, 9)] = 1
    moves[np.arange(8), 1, np.arange(8)] = 1
    moves[7] = 0
    moves[7, :, 7] = 1
    moves[8, :, 8] = 1
    rewards = np.full((9, 2), -1.0)
    rewards[8] = 0
    initial = np.eye(9)[0]
    with pytest.raises(ValueError, match="from state 0 the process never ends, nor rests at rewards of 0"):
        plan(TabularMDP(moves, rewards, initial))
    moves[:7, 1] = np.eye(9)[8]
    with pytest.raises(ValueError, match="from state 7 the process never ends"):
        plan(TabularMDP(moves, rewards, initial))
    assert np.isfinite(plan(TabularMDP(moves, rewards, initial, 0.99)).value)
    assert plan(TabularMDP(moves, rewards, initial, horizon=5)).value == -1


def test_a_reward_that_grows_for_ever_is_named():
    moves = np.zeros((3, 2, 3))
    moves[:, 0, 2] = 1
    moves[0, 1, 1] = moves[1, 1, 0] = moves[2, 1, 2] = 1
    rewards = np.array([[0, 3.0], [0, -2.9], [0, 0]])
    with pytest.raises(ValueError, match="from state 0 the total reward grows for ever"):
        plan(TabularMDP(moves, rewards, [1, 0, 0]))
    rewards[1, 1] = -3.1
    # Once round costs 0.1: take the 3 and stop.
    assert plan(TabularMDP(moves, rewards, [1, 0, 0])).value == 3


def test_a_loop_that_breaks_even_is_left_at_its_best_point():
    moves = np.zeros((2, 2, 2))
    moves[0, 0, 1] = moves[1, 0, 0] = 1
    mdp = TabularMDP(moves, [[1, 0], [-1, 0]], [0.5, 0.5], ends=[[0, 1], [0, 1]], axes="SAS")
    found = plan(mdp)
    assert found.values.tolist() == [1, 0]
    with pytest.raises(EndlessError, match="from state 0 the process may go on for ever, with rewards that are not 0"):
        policy_value(mdp, [[1, 0], [1, 0]])
    assert np.isnan(policy_values(mdp, [[1, 0], [1, 0]])).all()


def test_masked_actions_are_never_taken():
    moves, rewards, initial, last = random_arrays(np.random.default_rng(0), 6, 3, ends=0.1)
    mask = np.random.default_rng(1).random((6, 3)) < 0.6
    mask[:, 0] = True
    rewards[~mask] = 1e6
    found = plan(TabularMDP(moves, rewards, initial, ends=last, admissible=mask))
    best, _ = totals_of_policies(moves, rewards, all_policies(mask))
    assert found.values == pytest.approx(best.max(axis=0))
    assert (np.isneginf(found.q_values) == ~mask).all()
    assert mask[np.arange(6), found.actions].all()


def test_sparse_and_dense_solvers_agree(monkeypatch):
    mdp = TabularMDP.from_env(gymnasium.make("Taxi-v4"))
    table = random_table(np.random.default_rng(0), 500, 6)
    dense = plan(mdp).values, policy_values(mdp, table), chain_visits(mdp, table)
    monkeypatch.setattr(planning_infinite, "DENSE", 0)
    for one, other in zip(dense, (plan(mdp).values, policy_values(mdp, table), chain_visits(mdp, table)), strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def rare_exit(rare):
    moves = np.zeros((2, 2, 2))
    moves[0, :, 0], moves[0, :, 1] = 1 - rare, rare
    return TabularMDP(moves, [[-1, -1], [0, 0]], [1, 0], ends=[[0, 0], [1, 1]], axes="SAS")


def test_a_rare_exit_is_not_rounded_away_until_it_cannot_be_told_from_none():
    assert policy_value(rare_exit(1e-11), np.full((2, 2), 0.5)) == pytest.approx(-1e11, rel=1e-12)
    assert plan(rare_exit(1e-11)).value == pytest.approx(-1e11, rel=1e-12)
    with pytest.raises(EndlessError, match=r"from state 0 the process goes on for more than 1e\+12 steps"):
        policy_value(rare_exit(1e-13), np.full((2, 2), 0.5))


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_visits_times_rewards_are_the_value(discount):
    moves, rewards, initial, last = random_arrays(np.random.default_rng(4), 5, 3, ends=0.2)
    mdp = TabularMDP(moves, rewards, initial, discount, ends=last)
    table = random_table(np.random.default_rng(5), 5, 3)
    visits = chain_visits(mdp, table)
    decisions = policy_value(TabularMDP(moves, np.ones((5, 3)), initial, discount, ends=last), table)
    assert visits.sum() == pytest.approx(decisions)
    assert float(visits @ (table * rewards).sum(axis=1)) == pytest.approx(policy_value(mdp, table))


def test_a_process_that_rests_at_once_decides_nothing():
    mdp = TabularMDP(np.tile(np.eye(2)[:, None], (1, 2, 1)), np.zeros((2, 2)), [0.3, 0.7], axes="SAS")
    assert chain_visits(mdp, np.full((2, 2), 0.5)).tolist() == [0, 0]
    assert plan(mdp).values.tolist() == [0, 0]


def test_other_processes_need_a_horizon():
    class Other:
        horizon = None
        continuation = None

    with pytest.raises(ValueError, match="must be a TabularMDP, got Other"):
        plan(Other())


def test_a_huge_value_elsewhere_does_not_hide_a_gain():
    # State 0 earns 1e15 and ends; state 1 chooses between 1 and 1.02, and both end.
    mdp = TabularMDP(np.zeros((2, 2, 2)), [[1e15, 1e15], [1.0, 1.02]], [0, 1], ends=np.ones((2, 2)), axes="SAS")
    assert plan(mdp).value == 1.02


# Modified policy iteration.


@pytest.fixture
def large(monkeypatch):
    """Every process counts as a large one."""
    monkeypatch.setattr(planning_infinite, "DENSE", 0)


@pytest.mark.parametrize("ends", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("discount", [0.3, 0.95, 0.999])
def test_modified_policy_iteration_is_within_its_proved_error(monkeypatch, ends, discount):
    for seed in range(3):
        moves, rewards, initial, last = random_arrays(np.random.default_rng(seed), 12, 4, ends=ends, sparse=True)
        mask = np.random.default_rng(seed).random((12, 4)) < 0.7
        mask[:, 0] = True
        mdp = TabularMDP(moves, rewards, initial, discount, ends=last, admissible=mask)
        exact = plan(mdp)
        with monkeypatch.context() as patch:
            patch.setattr(planning_infinite, "DENSE", 0)
            found = plan(mdp)
            table = np.eye(4)[found.actions]
            assert policy_values(mdp, table) == pytest.approx(exact.values, abs=1e-8)
            visits = chain_visits(mdp, table)
        assert exact.error == 0 < found.error <= 1e-8
        assert np.abs(found.values - exact.values).max() <= found.error + 1e-12
        assert np.isneginf(found.q_values[~mask]).all()
        assert visits == pytest.approx(chain_visits(mdp, table), abs=1e-9)


@pytest.mark.usefixtures("large")
def test_a_sure_walk_in_a_circle_mixes_never_and_is_solved_all_the_same():
    n, discount = 40, 0.97
    step = np.roll(np.eye(n), 1, axis=1)
    moves = np.stack([step, np.eye(n)], axis=1)
    rewards = np.zeros((n, 2))
    rewards[0, 1], rewards[7, 0] = 0.5, 3.0
    found = plan(TabularMDP(moves, rewards, np.full(n, 1 / n), discount))
    # Staying in state 0 for ever is worth .5 / .03; passing state 7 once in 40 steps 3 / (1 - .97^40).
    stay = 0.5 / (1 - discount)
    assert found.values[0] == pytest.approx(max(stay, discount**7 * (3 + discount**33 * stay)), abs=1e-8)
    assert found.values[7] == pytest.approx(3 + discount**33 * found.values[0], abs=1e-8)
    assert found.error <= 1e-9


@pytest.mark.usefixtures("large")
def test_what_iterates_too_long_is_solved_directly(monkeypatch):
    moves, rewards, initial, last = random_arrays(np.random.default_rng(3), 8, 3)
    mdp = TabularMDP(moves, rewards, initial, 0.99, ends=last)
    monkeypatch.setattr(planning_infinite, "MOST_SWEEPS", 2)
    found = plan(mdp)
    assert found.error == 0
    assert found.values == pytest.approx(linear_programme(moves, rewards, 0.99), abs=1e-4)


def test_thousands_of_states_are_planned_without_solving_a_system(monkeypatch):
    n, k, rng = 3000, 4, np.random.default_rng(0)
    following = rng.integers(0, n, size=(k, n, 5))
    rows = np.repeat(np.arange(n), 5)
    moves = [sparse.csr_array((np.full(5 * n, 0.2), (rows, each.ravel())), shape=(n, n)) for each in following]
    rewards = rng.normal(size=(n, k))
    monkeypatch.setattr(planning_infinite, "splu", None)
    found = plan(TabularMDP(moves, rewards, np.full(n, 1 / n), 0.95))
    backup = np.stack([rewards[:, a] + 0.95 * (moves[a] @ found.values) for a in range(k)], axis=1)
    # |v - best| <= |B v - v| / (1 - discount).
    assert np.abs(backup.max(axis=1) - found.values).max() / 0.05 <= 1e-8 and found.error <= 1e-9

"""TabularMDP: arrays in, checked, and the two questions that planning asks of them."""

import numpy as np
import pytest
from scipy import sparse
from small_processes import random_arrays, random_table

from policysim.course.tabular import TabularMDP

MOVES, REWARDS, INITIAL, ENDS = random_arrays(np.random.default_rng(3), ends=0.2, sparse=True)


def test_continuation_and_push_are_sums_over_the_table():
    mdp = TabularMDP(MOVES, REWARDS, INITIAL, ends=ENDS)
    rng = np.random.default_rng(0)
    values, table = rng.normal(size=4), random_table(rng, 4, 3)
    assert mdp.continuation(values) == pytest.approx(np.einsum("sat,t->sa", MOVES, values))
    assert mdp.push(INITIAL, table) == pytest.approx(np.einsum("s,sa,sat->t", INITIAL, table, MOVES))
    assert mdp.push(INITIAL, table).sum() == pytest.approx(0.8)
    assert mdp.rewards.flags.f_contiguous
    assert not mdp.rewards.flags.writeable


def test_float32_is_divided_by_its_sums():
    with np.errstate(all="raise"):
        found = TabularMDP(MOVES.astype(np.float32), REWARDS, INITIAL.astype(np.float32), ends=ENDS.astype(np.float32))
    sums = np.asarray(found.stacked.sum(axis=1)).reshape(3, 4).T + found.ends
    np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-15)
    assert found.continuation(np.arange(4.0)) == pytest.approx(np.einsum("sat,t->sa", MOVES, np.arange(4.0)), abs=1e-6)


def test_sparse_matrices_per_action_are_the_same_process():
    dense = TabularMDP(MOVES, REWARDS, INITIAL, ends=ENDS)
    for make in (sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix):
        given = TabularMDP([make(MOVES[:, a]) for a in range(3)], REWARDS, INITIAL, ends=ENDS)
        assert (given.stacked != dense.stacked).nnz == 0


def test_sparse_entries_that_are_given_twice_add_up():
    twice = sparse.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 1])), shape=(2, 2))
    mdp = TabularMDP([twice, twice], np.zeros((2, 2)), [1, 0])
    assert mdp.continuation(np.array([0.0, 1.0])).tolist() == [[1, 1], [1, 1]]


def test_rewards_of_transitions_are_averaged_over_what_can_happen():
    moves, _, initial, _ = random_arrays(np.random.default_rng(4), sparse=True)
    rewards = np.random.default_rng(5).normal(size=(4, 3, 4))
    expected = (moves * rewards).sum(axis=2)
    impossible = np.where(moves > 0, rewards, np.nan)
    per_action = [sparse.csr_array(rewards[:, a]) for a in range(3)]
    for given in (rewards, impossible, per_action):
        assert TabularMDP(moves, given, initial).rewards == pytest.approx(expected)


def test_either_order_of_states_and_actions_is_the_same_process():
    moves, table, initial, _ = random_arrays(np.random.default_rng(4), sparse=True)
    rewards = np.random.default_rng(5).normal(size=(4, 3, 4))
    first, *others = [
        TabularMDP(given, paid, initial, axes=axes)
        for given, paid, axes in (
            (moves, rewards, None),
            (moves.transpose(1, 0, 2), rewards.transpose(1, 0, 2), None),
            (moves.transpose(1, 0, 2), rewards, None),
            ([sparse.csr_array(moves[:, a]) for a in range(3)], rewards.transpose(1, 0, 2), None),
            (moves, rewards, "SAS"),
            (list(moves.transpose(1, 0, 2)), rewards.transpose(1, 0, 2), "ASS"),
        )
    ]
    for other in others:
        assert (other.stacked != first.stacked).nnz == 0
        assert other.rewards.tolist() == first.rewards.tolist()
    given = TabularMDP(moves.transpose(1, 0, 2), table, initial)
    assert given.rewards.tolist() == table.tolist()


def test_with_as_many_actions_as_states_the_order_is_asked_for():
    moves, table, initial, _ = random_arrays(np.random.default_rng(6), 3, 3)
    rewards = np.random.default_rng(7).normal(size=(3, 3, 3))
    by_state = TabularMDP(moves, rewards, initial, axes="SAS")
    by_action = TabularMDP(moves.transpose(1, 0, 2), rewards.transpose(1, 0, 2), initial, axes="ASS")
    assert by_state.stacked.toarray().tolist() == by_action.stacked.toarray().tolist()
    assert by_state.rewards.tolist() == by_action.rewards.tolist()
    # The order of two axes is that of the table itself.
    assert TabularMDP(moves.transpose(1, 0, 2), table, initial, axes="ASS").rewards.tolist() == table.tolist()
    with pytest.raises(ValueError, match=r'transitions of shape \(3, 3, 3\) may be .* axes="SAS" or axes="ASS"'):
        TabularMDP(moves, table, initial)
    sparsely = [sparse.csr_array(moves[:, a]) for a in range(3)]
    with pytest.raises(ValueError, match=r"rewards of shape \(3, 3, 3\) may be"):
        TabularMDP(sparsely, rewards, initial)
    assert TabularMDP(sparsely, table, initial).n_actions == 3


def test_rewards_that_cancel_are_0_and_not_their_rounding():
    moves, rewards = np.tile([0.1, 0.2, 0.7], (3, 2, 1)), np.tile([1, 1, -3 / 7], (3, 2, 1))
    assert 0.1 * 1 + 0.2 * 1 + 0.7 * (-3 / 7) != 0
    assert (TabularMDP(moves, rewards, [1, 0, 0]).rewards == 0).all()


def test_what_stands_at_inadmissible_actions_is_ignored():
    mask = np.ones((4, 3), dtype=bool)
    mask[1, 2] = mask[3, 0] = False
    moves, rewards, ends = MOVES.copy(), REWARDS.copy(), ENDS.copy()
    moves[1, 2], rewards[1, 2], ends[1, 2] = np.nan, np.nan, 7
    moves[3, 0], rewards[3, 0] = 0, np.inf
    mdp = TabularMDP(moves, rewards, INITIAL, ends=ends, admissible=mask)
    assert (mdp.rewards[~mask] == 0).all()
    assert (mdp.continuation(np.ones(4))[~mask] == 0).all()
    assert mdp.continuation(np.ones(4))[mask] == pytest.approx(0.8)


def broken(**changed):
    given = {"transitions": MOVES, "rewards": REWARDS, "initial": INITIAL, "ends": ENDS} | changed
    return TabularMDP(**given)


def put(array, place, entry):
    changed = np.array(array)
    changed[place] = entry
    return changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"transitions": put(MOVES, (3, 1), MOVES[3, 1] / 2)}, r"s\[3, 1\] and ends\[3, 1\] must sum to 1, got 0\.6"),
        ({"ends": None}, r"transitions\[0, 0\] must sum to 1, got 0\.8\."),
        ({"transitions": put(MOVES, (2, 0, 1), -0.25)}, r"transitions\[2, 0, 1\] must be finite and >= 0, got -0\.25"),
        ({"transitions": MOVES[:3]}, r"transitions must be \(S, A, S\).*got shape \(3, 3, 4\)"),
        ({"axes": "SSA"}, r'axes must be "SAS" or "ASS", got axes=.SSA.'),
        ({"rewards": REWARDS.T}, r"rewards must have shape \(4, 3\), .*got \(3, 4\)"),
        ({"transitions": [sparse.eye_array(4), sparse.eye_array(3)]}, r"got shapes \[\(3, 3\), \(4, 4\)\]"),
        ({"rewards": put(REWARDS, (1, 2), np.nan)}, r"rewards\[1, 2\] must be finite, within ±1e\+50, got nan"),
        ({"rewards": np.zeros((4, 3, 4))}, r"rewards must be \(S, A\) if there are ends"),
        ({"ends": put(ENDS, (0, 1), -0.1)}, r"ends\[0, 1\] must be finite and >= 0, got -0\.1"),
        ({"initial": [0.5, 0.4, 0, 0]}, r"initial must sum to 1, got a sum of 0\.9"),
        ({"discount": 0}, r"discount must be > 0 and <= 1, got discount=0\."),
        ({"horizon": 0}, r"horizon must be a whole number >= 1, or None, got horizon=0\."),
        ({"actions": ["a", "a", "b"]}, "3 distinct names"),
        ({"admissible": put(np.ones((4, 3), dtype=bool), 2, False)}, "row 2 allows none"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        broken(**changed)


def test_a_process_is_shown_in_one_line():
    assert repr(TabularMDP(MOVES, REWARDS, INITIAL, 0.9, 5, ends=ENDS)).startswith("TabularMDP(4 states, 3 actions, ")
    assert repr(TabularMDP(MOVES, REWARDS, INITIAL, 0.9, 5, ends=ENDS)).endswith("discount=0.9, horizon=5)")
    mask = np.ones((4, 3), dtype=bool)
    mask[0, 0] = False
    assert repr(TabularMDP(MOVES, REWARDS, INITIAL, ends=ENDS, admissible=mask)).endswith("horizon=None, hidden mask)")


def test_a_list_of_action_numbers_says_what_is_wanted():
    with pytest.raises(ValueError, match=r"admissible must be True \(every action\) or an array of bool of shape"):
        TabularMDP(MOVES, REWARDS, INITIAL, admissible=[[0, 1], [0], [2], [1, 2]])

"""Processes read from environments."""

from contextlib import nullcontext

import gymnasium
import numpy as np
import pytest
from small_processes import random_arrays, toy_text_arrays

import policysim as ps
from policysim.course.tabular import TabularMDP

TOY_TEXT = ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "CliffWalkingSlippery-v1"]


@pytest.mark.parametrize("name", TOY_TEXT)
def test_a_toy_text_table_is_read_entry_by_entry(name):
    env = gymnasium.make(name)
    moves, rewards = toy_text_arrays(env)
    mdp = TabularMDP.from_env(env, horizon=7)
    n, k = rewards.shape
    assert np.abs(mdp.stacked.toarray().reshape(k, n, n).transpose(1, 0, 2) - moves).max() < 1e-12
    assert mdp.rewards == pytest.approx(rewards)
    assert mdp.ends == pytest.approx(1 - moves.sum(axis=2), abs=1e-12)
    assert (mdp.initial == env.unwrapped.initial_state_distrib).all()
    assert mdp.horizon == 7
    assert mdp.admissible is None


class Shown:
    """An environment that shows nothing but the given attributes."""

    def __init__(self, **shown):
        self.__dict__.update(shown)


def test_an_action_that_the_table_lacks_is_inadmissible_and_equal_entries_add_up():
    table = {
        0: {0: [(0.25, 1, 2.0, False), (0.25, 1, 4.0, False), (0.5, 0, 0.0, True)], 1: [(1.0, 1, 0.0, False)]},
        1: {1: [(1.0, 0, 1.0, True), (0.0, 0, np.nan, False)]},
    }
    mdp = TabularMDP.from_env(Shown(P=table, initial_state_distrib=[1, 0]))
    assert mdp.admissible.tolist() == [[True, True], [False, True]]
    assert mdp.rewards.tolist() == [[1.5, 0], [0, 1]]
    assert mdp.ends.tolist() == [[0.5, 0], [0, 1]]
    assert mdp.continuation(np.array([0.0, 1.0])).tolist() == [[0.5, 1], [0, 0]]


NAMES = [("transitions", "rewards", "initial", "admissible"), ("tx_mat", "r_mat", "d_0", "admissible_actions")]
MASK = np.array([[True, True, False], [True, True, True], [False, False, True], [True, False, True]])
NUMBERS = [[0, 1], [0, 1, 2], [2], [0, 2]]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("allowed", [MASK, MASK.tolist(), NUMBERS], ids=["array", "truth values", "numbers"])
def test_a_mapping_of_arrays_is_read_under_either_name(names, allowed):
    moves, rewards, initial, _ = random_arrays(np.random.default_rng(0))
    env = Shown(dynamics=dict(zip(names, (moves, rewards, initial, allowed), strict=True)))
    mdp = TabularMDP.from_env(env, discount=0.9, admissible="listed", mask_public=True)
    same = TabularMDP(moves, rewards, initial, 0.9, admissible=MASK, mask_public=True)
    assert (mdp.stacked != same.stacked).nnz == 0
    assert (mdp.rewards == same.rewards).all()
    assert (mdp.admissible == MASK).all()
    assert mdp.mask_public
    assert mdp.discount == 0.9


def test_a_mask_can_be_given_in_place_of_the_environments():
    env = gymnasium.make("Taxi-v4")
    mask = np.array([env.unwrapped.action_mask(state) for state in range(500)])
    assert TabularMDP.from_env(env).admissible is None
    with pytest.warns(ps.InfiniteLossWarning, match=r"TaxiEnv takes every action .*Leave out admissible") as told:
        assert (TabularMDP.from_env(env, admissible=mask).admissible == mask).all()
    assert told[0].filename == __file__
    assert (TabularMDP.from_env(env, admissible=mask, mask_public=True).admissible == mask).all()
    TabularMDP.from_env(env, admissible=np.ones((500, 6), dtype=bool))


def listing(strategy=None, *, complete=True, name="inadmissible_action_strategy"):
    """An environment with a list of admissible actions, (1, 2) in state 0 and (0, 1, 2) in the others."""
    moves, rewards, initial, _ = random_arrays(np.random.default_rng(4))
    if not complete:
        moves[0, 0] = 0.0
    dynamics = {"transitions": moves, "rewards": rewards, "initial": initial}
    dynamics["admissible_actions"] = [[1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    return Shown(dynamics=dynamics, **({} if strategy is None else {name: strategy}))


HARD = [[False, True, True], [True] * 3, [True] * 3, [True] * 3]


@pytest.mark.parametrize("name", ["inadmissible_action_strategy", "_inadmissible_action_strategy"])
def test_a_list_of_actions_means_what_the_environment_does_with_the_others(name):
    # It takes them, and its table says what follows: no state is told apart by what it allows.
    for env in (listing(), listing("mean", name=name)):
        mdp = TabularMDP.from_env(env, horizon=2)
        assert mdp.admissible is None
        assert mdp.rewards[0, 0] == env.dynamics["rewards"][0, 0] != 0
        assert np.isfinite(ps.compare(mdp, policies=["exponential"], epsilons=[1])["epsilon_spent"]).all()
    # It raises, or has no transitions to follow: they cannot be taken.
    for env in (listing("raise_exception", name=name), listing(complete=False)):
        assert TabularMDP.from_env(env).admissible.tolist() == HARD
    with pytest.raises(
        ValueError, match=r"Shown does not follow its table .*'terminate'\): give admissible=\"listed\""
    ):
        TabularMDP.from_env(listing("terminate", name=name))
    # What is asked for comes first.
    for env, takes in ((listing(), True), (listing("terminate"), False), (listing("raise_exception"), False)):
        # A mask that the environment does not have costs every guarantee, and that is said.
        with pytest.warns(ps.InfiniteLossWarning, match="Shown takes every action") if takes else nullcontext():
            assert TabularMDP.from_env(env, admissible="listed").admissible.tolist() == HARD
        assert TabularMDP.from_env(env, admissible=True).admissible is None
        with pytest.warns(ps.InfiniteLossWarning, match="Shown takes every action") if takes else nullcontext():
            assert TabularMDP.from_env(env, admissible=[[0], [1], [2], [0, 1, 2]]).admissible.sum() == 6


@pytest.mark.parametrize("asked", [False, "all", "lsted"])
def test_any_other_word_for_the_admissible_actions_is_refused(asked):
    with pytest.raises(ValueError, match=f'admissible must be True .*"listed".* got admissible={asked!r}'):
        TabularMDP.from_env(listing(), admissible=asked)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (gymnasium.make("Blackjack-v1"), "BlackjackEnv shows no table: from_env needs P"),
        (Shown(P={0: {0: [(1.0, 0, 0.0, True)]}}), "no initial_state_distrib"),
        (Shown(P={1: {0: [(1.0, 1, 0.0, True)]}}, initial_state_distrib=[1]), "the states 0 to 0 as its keys, got 1"),
        (gymnasium.make("Taxi-v4", fickle_passenger=True), "fickle_passenger=True"),
        (Shown(P={0: {0: [(1.0, 0, 0.0)]}}, initial_state_distrib=[1]), r"Shown.P\[0\]\[0\] must list"),
        (Shown(P={0: {0: [(1.0, 3, 0.0, False)]}}, initial_state_distrib=[1]), "states from 0 to 0"),
        (Shown(dynamics={"tx_mat": [], "d_0": [1]}), r"must hold 'rewards' \(or 'r_mat'\), got 'tx_mat'"),
    ],
)  # fmt: skip
def test_an_environment_without_a_table_is_told_what_is_needed(env, message):
    with pytest.raises(ValueError, match=message):
        TabularMDP.from_env(env)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ([[0], [5]], "numbers from 0 to 2, got 5 in state 1"),
        ([[0]], "listed for 2 states, got 1"),
        ([[True], [1]], "got True"),
    ],
)
def test_action_numbers_are_checked(allowed, message):
    dynamics = {
        "transitions": np.full((2, 3, 2), 0.5),
        "rewards": np.zeros((2, 3)),
        "initial": [1, 0],
        "admissible_actions": allowed,
    }
    with pytest.raises(ValueError, match=message):
        TabularMDP.from_env(Shown(dynamics=dynamics))

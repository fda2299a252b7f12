"""What environments show of their table: Gymnasium's toy-text P, or a mapping of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from policies.arrays import SUM_TOLERANCE, FloatArray, IntArray
from policysim.course.process import stack_actions

# The names under which environments keep each array; the second ones are those of icu-sepsis 2.0.
TRANSITIONS, REWARDS = ("transitions", "tx_mat"), ("rewards", "r_mat")
INITIAL, ADMISSIBLE = ("initial", "d_0"), ("admissible", "admissible_actions")
# What an environment says that it does with an action that it does not list, as icu-sepsis does. "mean": it takes it.
STRATEGY = ("inadmissible_action_strategy", "_inadmissible_action_strategy")
TAKES, RAISES = "mean", "raise_exception"


@dataclass(frozen=True)
class EnvTable:
    """The arrays of an environment, as `TabularMDP` takes them; unchecked but for their form.

    Attributes
    ----------
    name : str
        The environment's class.
    transitions, rewards, initial, ends
        As for `TabularMDP`.
    shape : tuple of int
        (S, A).
    listed : array of bool, (S, A), or None
        The actions that the environment lists for each state; None if it lists all, or has no list.
    strategy : str or None
        What it says that it does with the others: "raise_exception", "mean" (it follows the table), or anything else.
    """

    name: str
    transitions: Any
    rewards: Any
    initial: Any
    ends: FloatArray | None
    shape: tuple[int, int]
    listed: NDArray[np.bool_] | None
    strategy: str | None


def read_env(env: Any) -> EnvTable:
    """Read the table of an environment, wrapped or not; ValueError says what is needed if it shows none."""
    raw = getattr(env, "unwrapped", env)
    name = type(raw).__name__
    dynamics = getattr(raw, "dynamics", None)
    if isinstance(dynamics, Mapping):
        return _from_mapping(raw, dynamics, name)
    if isinstance(getattr(raw, "P", None), (Mapping, Sequence)):
        return _from_toy_text(raw, name)
    raise ValueError(
        f"{name} shows no table: from_env needs P[s][a] = [(probability, next state, reward, terminated), ...] with "
        "initial_state_distrib, or a mapping `dynamics` with transitions, rewards and initial."
    )


def chosen_mask(table: EnvTable, asked: Any) -> Any:
    """Which actions each state allows, as `TabularMDP` takes it: what is asked for, or what the environment does."""
    if asked is True:
        return None
    if isinstance(asked, str) and asked == "listed":
        return table.listed
    if isinstance(asked, str | bool):
        raise ValueError(
            'admissible must be True (every action), "listed" (the environment\'s own list), an array of bool, (S, A), '
            f"or a list of each state's action numbers, got admissible={asked!r}."
        )
    if asked is not None:
        return _mask(asked, table.shape)
    if table.listed is None or table.strategy == RAISES:
        return table.listed
    if table.strategy not in (None, TAKES):
        raise ValueError(
            f"{table.name} does not follow its table at actions that it does not list "
            f'(inadmissible_action_strategy={table.strategy!r}): give admissible="listed" to leave them out.'
        )
    return None if takes_all(table) else table.listed


def takes_all(table: EnvTable) -> bool:
    """Whether the environment takes the actions that it does not list too, as far as it shows."""
    if table.listed is None:
        return True
    listed = np.asarray(table.listed)
    # A list that does not fit is refused by TabularMDP.
    fits = listed.shape == table.shape and table.strategy in (None, TAKES)
    return fits and _says_what_follows(table, listed == 0)


def tells_apart(mask: Any) -> bool:
    """Whether some states allow other actions than others, in a mask that fits."""
    rows = np.asarray(True if mask is None else mask)
    return rows.ndim == 2 and bool((rows != rows[:1]).any())


def _says_what_follows(table: EnvTable, where: NDArray[np.bool_]) -> bool:
    """Whether the table has distributions of the next state at some states and actions, (S, A)."""
    stacked = stack_actions(table.transitions, "transitions")
    sums = np.asarray(stacked.sum(axis=1)).reshape(-1, stacked.shape[1]).T
    sums = sums if table.ends is None else sums + table.ends
    return bool((np.abs(sums[where] - 1) <= SUM_TOLERANCE).all())


def _from_mapping(raw: Any, dynamics: Mapping[str, Any], name: str) -> EnvTable:
    transitions, rewards, initial = (_entry(dynamics, keys, name) for keys in (TRANSITIONS, REWARDS, INITIAL))
    allowed = next((dynamics[key] for key in ADMISSIBLE if dynamics.get(key) is not None), None)
    # Dense (S, A, S), or one sparse (S, S) for each action.
    by_action = isinstance(transitions, (list, tuple)) and len(transitions) > 0 and sparse.issparse(transitions[0])
    shape = (transitions[0].shape[0], len(transitions)) if by_action else np.shape(transitions)[:2]
    listed = None if allowed is None else _mask(allowed, shape)
    strategy = next((str(found) for key in STRATEGY if (found := getattr(raw, key, None)) is not None), None)
    return EnvTable(name, transitions, rewards, initial, None, shape, listed, strategy)


def _entry(dynamics: Mapping[str, Any], keys: tuple[str, ...], name: str) -> Any:
    for key in keys:
        if key in dynamics:
            return dynamics[key]
    raise ValueError(
        f"{name}.dynamics must hold {keys[0]!r} (or {keys[1]!r}), got {', '.join(map(repr, dynamics)) or 'nothing'}."
    )


def _mask(allowed: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """(S, A) of bool, from an array of that shape or from a list of action numbers for each state."""
    if isinstance(allowed, np.ndarray) and allowed.dtype != np.object_:
        # Anything but true and false is found by TabularMDP.
        return allowed
    if all(isinstance(row, Sequence) and all(isinstance(entry, (bool, np.bool_)) for entry in row) for row in allowed):
        return np.array(allowed, dtype=np.bool_)
    mask = np.zeros(shape, dtype=np.bool_)
    if len(allowed) != shape[0]:
        raise ValueError(f"admissible actions must be listed for {shape[0]} states, got {len(allowed)}.")
    for state, actions in enumerate(allowed):
        for action in np.atleast_1d(actions).tolist():
            if isinstance(action, bool) or not isinstance(action, int) or not 0 <= action < shape[1]:
                raise ValueError(
                    f"admissible actions must be numbers from 0 to {shape[1] - 1}, got {action!r} in state {state}."
                )
            mask[state, action] = True
    return mask


def _from_toy_text(raw: Any, name: str) -> EnvTable:
    table = raw.P
    initial = getattr(raw, "initial_state_distrib", None)
    if initial is None:
        raise ValueError(f"{name} has a table P but no initial_state_distrib, the distribution of its first state.")
    if getattr(raw, "fickle_passenger", False):
        # Taxi draws a new destination outside of P.
        raise ValueError(f"{name} does not follow its table P with fickle_passenger=True: make it without.")
    n_states = len(table)
    if isinstance(table, Mapping) and set(table) != set(range(n_states)):
        raise ValueError(f"{name}.P must have the states 0 to {n_states - 1} as its keys, got {_first_keys(table)}.")
    n_actions = 1 + max((int(action) for state in range(n_states) for action in table[state]), default=0)
    moves, listed = _moves(table, n_states, n_actions, name)
    row, probability, following, reward, terminated = moves
    goes_on = ~terminated
    # Entries that lead to the same state are summed.
    stacked = sparse.coo_array(
        (probability[goes_on], (row[goes_on], following[goes_on])), shape=(n_actions * n_states, n_states)
    ).tocsr()

    def totals(weights: FloatArray) -> FloatArray:
        sums = np.bincount(row, weights=weights, minlength=n_actions * n_states)
        return sums.astype(np.float64, copy=False).reshape(n_actions, n_states).T

    return EnvTable(
        name,
        [stacked[action * n_states : (action + 1) * n_states] for action in range(n_actions)],
        totals(probability * reward),
        initial,
        totals(probability * terminated),
        (n_states, n_actions),
        None if listed.all() else listed,
        None,
    )


def _first_keys(table: Mapping[Any, Any]) -> str:
    """The first keys of a table."""
    return ", ".join(map(repr, list(table)[:5])) + (", ..." if len(table) > 5 else "")


def _moves(
    table: Any, n_states: int, n_actions: int, name: str
) -> tuple[tuple[IntArray, FloatArray, IntArray, FloatArray, NDArray[np.bool_]], NDArray[np.bool_]]:
    """Every entry of P with a probability other than 0, column by column, and which actions P lists."""
    entries: list[tuple[int, float, int, float, bool]] = []
    listed = np.zeros((n_states, n_actions), dtype=np.bool_)
    for state in range(n_states):
        actions = table[state]
        for action in actions if isinstance(actions, Mapping) else range(len(actions)):
            listed[state, action] = True
            for entry in actions[action]:
                if len(entry) != 4 or not 0 <= entry[1] < n_states:
                    raise ValueError(
                        f"{name}.P[{state}][{action}] must list (probability, next state, reward, terminated) with "
                        f"states from 0 to {n_states - 1}, got {entry!r}."
                    )
                if entry[0] != 0:
                    entries.append((action * n_states + state, *entry))
    columns = list(zip(*entries, strict=True)) or [()] * 5
    row, following = (np.array(columns[i], dtype=np.intp) for i in (0, 2))
    probability, reward = (np.array(columns[i], dtype=np.float64) for i in (1, 3))
    return (row, probability, following, reward, np.array(columns[4], dtype=np.bool_)), listed

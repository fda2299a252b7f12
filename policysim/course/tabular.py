"""TabularMDP: any decision process that is given as arrays, or by an environment that shows its table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from envs.treatment_response import is_whole
from policies.arrays import (
    ROUNDED_SUM,
    BoolArray,
    FloatArray,
    Frozen,
    IntArray,
    conditional,
    probability_vector,
    read_only,
)
from policies.mask import admissible_mask, mask_classes
from policies.records import NumberedRecords, Records, SomeRecords
from policysim.course.process import (
    WHY_UNCHANGING,
    InfiniteLossWarning,
    Matrix,
    Transitions,
    checked_discount,
    checked_ends,
    checked_features,
    checked_horizon,
    expected_rewards,
    refined,
    require_distributions,
    stack_actions,
)

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
        for keys in (TRANSITIONS, REWARDS, INITIAL):
            if not any(key in dynamics for key in keys):
                there = ", ".join(map(repr, dynamics)) or "nothing"
                raise ValueError(f"{name}.dynamics must hold {keys[0]!r} (or {keys[1]!r}), got {there}.")
        transitions, rewards, initial = (
            next(dynamics[key] for key in keys if key in dynamics) for keys in (TRANSITIONS, REWARDS, INITIAL)
        )
        allowed = next((dynamics[key] for key in ADMISSIBLE if dynamics.get(key) is not None), None)
        # Dense (S, A, S), or one sparse (S, S) for each action.
        by_action = isinstance(transitions, (list, tuple)) and len(transitions) > 0 and sparse.issparse(transitions[0])
        shape = (transitions[0].shape[0], len(transitions)) if by_action else np.shape(transitions)[:2]
        listed = None if allowed is None else _mask(allowed, shape)
        strategy = next((str(found) for key in STRATEGY if (found := getattr(raw, key, None)) is not None), None)
        return EnvTable(name, transitions, rewards, initial, None, shape, listed, strategy)
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
    if listed.shape != table.shape or table.strategy not in (None, TAKES):
        return False
    # It takes them if the table has distributions of the next state there.
    stacked = stack_actions(table.transitions, "transitions", "SAS")
    sums = np.asarray(stacked.sum(axis=1)).reshape(-1, stacked.shape[1]).T
    sums = sums if table.ends is None else sums + table.ends
    return bool((np.abs(sums[listed == 0] - 1) <= ROUNDED_SUM).all())


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
            if not is_whole(action) or not 0 <= action < shape[1]:
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
        first = ", ".join(map(repr, list(table)[:5])) + (", ..." if len(table) > 5 else "")
        raise ValueError(f"{name}.P must have the states 0 to {n_states - 1} as its keys, got {first}.")
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


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TabularMDP(Frozen):
    """A decision process over a table of states; the states are the records of its decisions.

    Parameters
    ----------
    transitions : array, (S, A, S) or (A, S, S), or sequence of A scipy sparse matrices, (S, S)
        The probability of the next state, for each state and action.
    rewards : array, (S, A), or (S, A, S) or (A, S, S), or sequence of A scipy sparse matrices, (S, S)
        The expected reward of each state and action, or the reward of each transition.
    initial : array, (S,)
        The distribution of the first state.
    discount : float, optional
        What a reward is worth one decision later, in (0, 1].
    horizon : int, optional
        The number of decisions, >= 1; by default the process goes on until it ends or rests at rewards of 0.
    actions : sequence of str, optional
        Names; a0, a1, ... by default.
    admissible : array of bool, (S, A), or True, optional
        Which actions each state allows; all by default, and with True. Whatever stands at the others is ignored.
    mask_public : bool, optional
        Whether it is public which actions a state allows. If not, an action that only some states allow identifies
        them, at an infinite privacy loss.
    ends : array, (S, A), optional
        The probability that the process ends with a step; 0 by default. It makes up a row's sum of 1 together with
        the transitions. When a process ends is public. Hide it by an absorbing state instead.
    records : Records, optional
        Words and groups for states; numbers by default.
    axes : {"SAS", "ASS"}, optional
        The order of arrays with three axes. By default it follows from their lengths; needed if A = S.

    Attributes
    ----------
    stacked : scipy.sparse.csr_array, (A * S, S)
        The transitions; row a * S + s is that of action a in state s. All zero where a is not admissible.
    classes : array of int, (S,), or None
        The public class of each state, if what it allows is public, or features are (`with_public`).

    Raises
    ------
    ValueError
        For arrays that do not fit together, a row that is no distribution, or a reward that is not finite (each names
        the state and the action), a discount or a horizon out of range.

    Examples
    --------
    Wait in state 0 for a reward of 1 a day, or move to state 1, where waiting earns 2:

    >>> mdp = TabularMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [2, 2]], [1, 0], horizon=3, axes="SAS")
    >>> mdp.continuation(np.array([10.0, 20.0])).tolist()
    [[10.0, 20.0], [20.0, 20.0]]
    """

    stacked: Matrix = field(init=False)
    ends: FloatArray = field(init=False)
    rewards: FloatArray = field(init=False)
    initial: FloatArray = field(init=False)
    discount: float = field(init=False)
    horizon: int | None = field(init=False)
    actions: tuple[str, ...] = field(init=False)
    admissible: BoolArray | None = field(init=False)
    mask_public: bool = field(init=False)
    records: Records = field(init=False)
    classes: IntArray | None = field(init=False)
    outcomes: Mapping[str, FloatArray] = field(init=False)

    def __init__(
        self,
        transitions: Transitions,
        rewards: Transitions,
        initial: ArrayLike,
        discount: float = 1.0,
        horizon: int | None = None,
        *,
        actions: Sequence[str] | None = None,
        admissible: ArrayLike | bool | None = None,
        mask_public: bool = False,
        ends: ArrayLike | None = None,
        records: Records | None = None,
        axes: Literal["SAS", "ASS"] | None = None,
    ) -> None:
        """Check the arrays and keep read-only copies of them."""
        stacked = stack_actions(transitions, "transitions", axes)
        n_states = stacked.shape[1]
        n_actions = stacked.shape[0] // n_states
        mask = admissible_mask(admissible, (n_states, n_actions))
        if mask is not None:
            # Whatever stood there.
            stacked.data[np.repeat(~mask.T.ravel(), np.diff(stacked.indptr))] = 0.0
            stacked.eliminate_zeros()
        last = np.zeros((n_states, n_actions)) if ends is None else checked_ends(ends, mask, (n_states, n_actions))
        require_distributions(stacked, last, mask)
        names = tuple(f"a{i}" for i in range(n_actions)) if actions is None else tuple(map(str, actions))
        if len(names) != n_actions or len(set(names)) != n_actions:
            raise ValueError(f"actions must be {n_actions} distinct names, got actions={names!r}.")
        vars(self).update(
            stacked=stacked,
            ends=read_only(np.asfortranarray(last)),
            rewards=expected_rewards(rewards, stacked, last, mask, axes),
            initial=probability_vector(initial, "initial", n_states),
            discount=checked_discount(discount),
            horizon=checked_horizon(horizon),
            actions=names,
            admissible=mask,
            mask_public=bool(mask_public),
            records=NumberedRecords() if records is None else records,
            classes=mask_classes(mask) if mask is not None and mask_public else None,
            outcomes={},
        )

    @classmethod
    def from_env(
        cls,
        env: Any,
        *,
        discount: float = 1.0,
        horizon: int | None = None,
        admissible: ArrayLike | Literal["listed"] | bool | None = None,
        mask_public: bool = False,
    ) -> TabularMDP:
        """The process of an environment that shows its table.

        Parameters
        ----------
        env : gymnasium.Env
            Wrappers are looked through: what they change, such as rewards, is not in the table.
            Either with Gymnasium's toy-text table `P[s][a] = [(probability, next state, reward, terminated), ...]` and
            `initial_state_distrib`: a terminated transition ends the process; an action that P[s] lacks is
            inadmissible. Or with a mapping `dynamics` of arrays, as medical environments show it: transitions
            (or tx_mat), (S, A, S); rewards (r_mat), (S, A) or (S, A, S); initial (d_0), (S,); and optionally
            admissible (admissible_actions): (S, A) of bool, or a list of each state's action numbers. What such a
            list means is what the environment does with the other actions: see `admissible`.
        discount, horizon : optional
            As for `TabularMDP`. A limit on the number of steps that a wrapper sets is not part of the table: give it
            as the horizon, if it is meant.
        admissible : optional
            Which actions each state allows. By default what the environment does with an action that it does not
            list: if it takes it, and the table says what follows, every action is admissible; if it raises (it has
            `inadmissible_action_strategy` "raise_exception") or the table has no transitions there, the list is a
            hard mask, and tells states apart. "listed": the list is a hard mask whatever the environment does. True:
            every action. Or an array of bool, (S, A), or a list of each state's action numbers, in place of what the
            environment says. A method `action_mask` is not asked: Taxi's only marks actions that would have no
            effect, and its table says what they do all the same.
        mask_public : bool, optional
            As for `TabularMDP`.

        Raises
        ------
        ValueError
            For an environment without such a table, or one that does not follow its table at actions that it does not
            list; the message says what is needed.

        Warns
        -----
        InfiniteLossWarning
            If a mask that is not public is given for an environment that takes every action: no epsilon is finite then.

        Examples
        --------
        >>> import gymnasium
        >>> TabularMDP.from_env(gymnasium.make("FrozenLake-v1")).rewards.shape
        (16, 4)
        """
        table: EnvTable = read_env(env)
        mask = chosen_mask(table, admissible)
        rows = np.asarray(True if mask is None else mask)
        tells_apart = rows.ndim == 2 and bool((rows != rows[:1]).any())
        if admissible is not None and not mask_public and tells_apart and takes_all(table):
            warnings.warn(
                f"{table.name} takes every action in every state, and a list of allowed actions identifies "
                "states: the privacy loss is then infinite at every epsilon. Leave out admissible, or give "
                "mask_public=True if it is public which actions a state allows.",
                InfiniteLossWarning,
                stacklevel=2,
            )
        return cls(
            table.transitions,
            table.rewards,
            table.initial,
            discount,
            horizon,
            ends=table.ends,
            admissible=mask,
            mask_public=mask_public,
            axes="SAS",
        )

    def __repr__(self) -> str:
        """One line: how large it is, and for how long it goes on."""
        masked = "" if self.admissible is None else f", {'public' if self.mask_public else 'hidden'} mask"
        return (
            f"TabularMDP({self.n_states:,} states, {self.n_actions} actions, {self.stacked.nnz:,} transitions, "
            f"discount={self.discount:g}, horizon={self.horizon}{masked})"
        )

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.initial)

    @property
    def n_actions(self) -> int:
        """A."""
        return len(self.actions)

    def continuation(self, values: FloatArray, actions: list[int] | None = None) -> FloatArray:
        """E[values(next state)], (S, A), of the (S,) values; not discounted. 0 at inadmissible actions.

        With `actions` it has their columns only.
        """
        expected: FloatArray = (self.stacked @ values).reshape(self.n_actions, self.n_states).T
        return expected if actions is None else expected[:, actions]

    def push(self, distribution: FloatArray, probabilities: FloatArray, actions: list[int] | None = None) -> FloatArray:
        """The mass of the next state, (S,), from that of this one, (S,), and p(a|s), (S, A), or of some actions."""
        if actions is not None:
            table = np.zeros((self.n_states, self.n_actions))
            table[:, actions] = probabilities
            probabilities = table
        mass: FloatArray = (distribution * probabilities.T).ravel() @ self.stacked
        return mass

    def by_class(self) -> tuple[tuple[IntArray, TabularMDP], ...]:
        """The states of each class and the process among these, if none is left for another; else all, and itself."""
        everybody: IntArray = np.arange(self.n_states)
        if self.classes is None or self._leaves(self.classes) is not None:
            return ((everybody, self),)
        order = np.argsort(self.classes, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(self.classes[order])) + 1)
        return tuple((states, self._among(states)) for states in members)

    def with_public(self, features: Sequence[str]) -> TabularMDP:
        """The same process in which features of the state are public: only states that agree in them are hidden.

        Parameters
        ----------
        features : sequence of str
            Of `records`. No action may lead to a state in which one of them differs: an absorbing state that several
            classes share is such a state, so each needs its own.

        Raises
        ------
        ValueError
            For features that change, or that the records do not have.
        """
        other, classes = copy(self), self.classes
        for feature in checked_features(features):
            levels = self.records.groups(feature)[0]
            leaves = self._leaves(levels)
            if leaves is not None:
                raise ValueError(
                    f"public must name features that never change, got {feature!r}, which differs between state "
                    f"{leaves[0]} and state {leaves[1]}, which may follow it: {WHY_UNCHANGING}"
                )
            classes = refined(classes, levels)
        object.__setattr__(other, "classes", classes)
        return other

    def _leaves(self, classes: IntArray) -> tuple[int, int] | None:
        """Two states of different classes, of which the second may follow the first; None if there are none."""
        row, following = self.stacked.tocoo().coords
        state = row % self.n_states
        apart = np.flatnonzero(classes[state] != classes[following])
        return (int(state[apart[0]]), int(following[apart[0]])) if apart.size else None

    def _among(self, states: IntArray) -> TabularMDP:
        """The process of states that no action leaves."""
        rows = (np.arange(self.n_actions)[:, None] * self.n_states + states).ravel()
        part = copy(self)
        vars(part).update(
            stacked=self.stacked[rows][:, states],
            ends=read_only(np.asfortranarray(self.ends[states])),
            rewards=read_only(np.asfortranarray(self.rewards[states])),
            initial=read_only(conditional(self.initial, states)),
            admissible=None if self.admissible is None else read_only(self.admissible[states]),
            records=SomeRecords(self.records, states),
            classes=None,
            outcomes={name: table[states] for name, table in self.outcomes.items()},
        )
        return part

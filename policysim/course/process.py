"""Process: a decision process over days, as the questions that planning asks of it.

Which of its states are hidden among each other; and its arrays, as users give them, checked, in the form that solvers
work on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from envs.toml_reader import FINITE
from envs.treatment_response import is_whole
from policies.arrays import ROUNDED_SUM, SUM_TOLERANCE, BoolArray, FloatArray, IntArray, finite_table
from policies.records import Records


class InfiniteLossWarning(UserWarning):
    """No finite epsilon holds: an action that only some states allow identifies these states."""

    EXPLAINED: ClassVar[str] = (
        "the privacy loss is infinite at every epsilon: an action that only some states allow identifies them. Give "
        "mask_public=True if it is public which actions a state allows; or make the process with "
        "admissible=True if every state can take every action."
    )


class NotEnoughMemoryError(ValueError):
    """A horizon of which the tables would not fit into memory; str() says how much they need."""


def require_memory(process: Process, bytes_a_state: int) -> None:
    """NotEnoughMemoryError if tables of so many bytes for each state and day would not fit into this machine.

    Parameters
    ----------
    process : Process
        With a finite horizon.
    bytes_a_state : int
        Of one state on one day.
    """
    a_day, days = bytes_a_state * len(process.initial), process.horizon or 1
    there = memory()
    if a_day * days > there:
        raise NotEnoughMemoryError(
            f"a horizon of {days} needs about {a_day * days / 1e9:,.1f} GB for the Q-values of "
            f"{len(process.initial):,} states on each day, this machine has {there / 1e9:,.1f} GB: "
            f"a horizon of {int(there // a_day)} would fit."
        )


def memory() -> float:
    """The bytes of memory of this machine; inf where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # such as on Windows
        return math.inf


class Process(Protocol):
    """A decision process: each day one state (the record) is seen, one action is taken, and the state moves on.

    Tables are column-major, (n_states, n_actions): code that works on a process goes along columns, day by day, and
    never needs a matrix of states by states.
    """

    @property
    def horizon(self) -> int | None:
        """The number of decisions, or None for a process that goes on until it ends by itself."""

    @property
    def discount(self) -> float:
        """What a reward is worth one decision later, in (0, 1]."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the k actions."""

    @property
    def records(self) -> Records:
        """Words and groups for the states."""

    @property
    def initial(self) -> FloatArray:
        """The distribution of the first state, (n,)."""

    @property
    def rewards(self) -> FloatArray:
        """The expected reward of one step, (n, k), read-only and column-major; 0 at inadmissible actions."""

    @property
    def admissible(self) -> BoolArray | None:
        """Which actions each state allows, (n, k); None if every state allows all."""

    @property
    def classes(self) -> IntArray | None:
        """The public class of each state, (n,), numbered from 0: only states of one class are hidden among each other.

        None if all states are. What puts a state into its class is public on every day: what it allows, or features
        that never change.
        """

    def by_class(self) -> Sequence[tuple[IntArray, Process]]:
        """The states of each class, in their order, and the process among these alone, from its own first states.

        Only where no action leads from one class to another. Otherwise, and without classes, all states, and itself.
        """

    def with_public(self, features: Sequence[str]) -> Process:
        """The same process in which features of the state are public besides.

        ValueError for features that may change, or that no state has.
        """

    def continuation(self, values: FloatArray, actions: list[int] | None = None) -> FloatArray:
        """E[values(next state)], (n, k), of the (n,) values; a step that ends the process adds nothing.

        Not discounted. Anything finite may stand at inadmissible actions. With `actions` it has their columns only.
        """

    def push(self, distribution: FloatArray, probabilities: FloatArray, actions: list[int] | None = None) -> FloatArray:
        """The mass of the next state, (n,), if states have mass `distribution`, (n,), and act by `probabilities`.

        `probabilities` is (n, k) with 0 at inadmissible actions, or has a column for each of `actions`. Mass that ends
        with the step is left out, so that the result sums to at most what it was given.
        """


def q_table(process: Process, values: FloatArray) -> FloatArray:
    """Rewards + discount * continuation of the (n,) values, (n, k), -inf where inadmissible."""
    q_values = process.continuation(values)
    if process.discount != 1:
        q_values *= process.discount
    q_values += process.rewards
    if process.admissible is not None:
        q_values[~process.admissible] = -np.inf
    return q_values


def require_process(process: Process, takes: str) -> None:
    """ValueError for something else than a process, with the words for who takes one."""
    if not hasattr(process, "continuation"):
        raise ValueError(f"{takes} a process, such as a TabularMDP, got {process!r}.")


def outcomes_of(process: Process) -> Mapping[str, FloatArray]:
    """What one step of a process leads to besides its reward, (n, k) of each name; none of one that has no outcomes."""
    found: Mapping[str, FloatArray] = getattr(process, "outcomes", {})
    return found


def counts_of(process: Process, occupied: Callable[[], FloatArray]) -> Mapping[str, float]:
    """What everyone is expected to have in all, if the process counts that (`TreatmentCourse.counted`); else nothing.

    `occupied` computes the occupancy, (n, k), which is asked for in the first case alone.
    """
    counted: Any = getattr(process, "counted", None)
    found: Mapping[str, float] = {} if counted is None else counted(occupied())
    return found


WHY_UNCHANGING = "what is public of it on later days would reveal the hidden part of the first record."


def checked_features(features: Any) -> list[str]:
    """The names as a list; ValueError for a single text."""
    if isinstance(features, str) or not isinstance(features, Sequence):
        raise ValueError(f"public must be a list of features, got public={features!r}.")
    return list(features)


def refined(classes: IntArray | None, levels: IntArray) -> IntArray:
    """Classes of which each is split by the levels of one more feature, (n,), numbered from 0.

    Examples
    --------
    >>> refined(np.array([0, 0, 1, 1]), np.array([0, 2, 2, 2])).tolist()
    [0, 1, 2, 2]
    """
    codes = levels if classes is None else classes * (int(levels.max()) + 1) + levels
    found: IntArray = np.unique(codes, return_inverse=True)[1]
    return found


def one_start(initial: FloatArray, classes: IntArray | None) -> bool:
    """Whether each public class has one possible first state: what looks at that alone then learns nothing hidden.

    Examples
    --------
    >>> one_start(np.array([0.0, 1.0]), None), one_start(np.array([0.5, 0.5]), None)
    (True, False)
    >>> one_start(np.array([0.5, 0.5]), np.array([0, 1]))
    True
    """
    possible = np.flatnonzero(initial)
    return len(possible) == (1 if classes is None else len(np.unique(classes[possible])))


Transitions: TypeAlias = "ArrayLike | Sequence[sparse.sparray | sparse.spmatrix]"
# scipy's matrices have no static types that serve here.
Matrix: TypeAlias = Any

# A sum of rewards below this share of what was added up is the rounding of 0.
CANCELLED = 1e-15


def is_sparse(table: Any) -> bool:
    """Whether a table is given as sparse matrices, one per action."""
    return isinstance(table, (list, tuple)) and any(map(sparse.issparse, table))


def by_action(dense: FloatArray, name: str, axes: str | None) -> FloatArray:
    """(A, S, S) from three axes, the last of which are states; their order, if not given, follows from the lengths.

    Examples
    --------
    >>> by_action(np.zeros((4, 3, 4)), "transitions", None).shape, by_action(np.zeros((3, 4, 4)), "rewards", None).shape
    ((3, 4, 4), (3, 4, 4))
    """
    wanted = {"SAS": "(S, A, S)", "ASS": "(A, S, S)"}
    if axes not in (None, *wanted):
        raise ValueError(f'axes must be "SAS" or "ASS", got axes={axes!r}.')
    first, second, last = dense.shape
    orders = [order for order, n in (("SAS", first), ("ASS", second)) if n == last and axes in (None, order)]
    if not orders:
        words = wanted[axes] if axes else "(S, A, S) or (A, S, S)"
        raise ValueError(f"{name} must be {words}, or a list of A sparse (S, S) matrices, got shape {dense.shape}.")
    if len(orders) == 2:
        raise ValueError(
            f'{name} of shape {dense.shape} may be (S, A, S) or (A, S, S): say which with axes="SAS" or axes="ASS".'
        )
    return dense.transpose(1, 0, 2) if orders[0] == "SAS" else dense


def stack_actions(table: Any, name: str, axes: str | None) -> Matrix:
    """(A * S, S) from three axes (`by_action`) or from A sparse matrices."""
    if is_sparse(table):
        parts: list[Matrix] = [sparse.coo_array(part) for part in table]
        shapes = {part.shape for part in parts}
        if len(shapes) != 1 or parts[0].shape[0] != parts[0].shape[1]:
            raise ValueError(f"{name} must be sparse (S, S) matrices, one per action, got shapes {sorted(shapes)}.")
        stacked: Matrix = sparse.vstack(parts, format="csr", dtype=np.float64)
        stacked.sum_duplicates()
    else:
        dense: FloatArray = np.asarray(table if not sparse.issparse(table) else 0, dtype=np.float64)
        if dense.ndim != 3 or 0 in dense.shape:
            wanted = "(S, A, S), (A, S, S), or a list of A sparse (S, S) matrices"
            raise ValueError(f"{name} must be {wanted}, got shape {dense.shape}.")
        stacked = sparse.csr_array(by_action(dense, name, axes).reshape(-1, dense.shape[2]))
    stacked.eliminate_zeros()
    return stacked


def checked_ends(ends: ArrayLike, mask: BoolArray | None, shape: tuple[int, int]) -> FloatArray:
    """The probabilities that a step ends the process, (S, A); 0 at inadmissible actions."""
    last: FloatArray = np.array(ends, dtype=np.float64)
    if last.shape != shape:
        raise ValueError(f"ends must have shape {shape}, got {last.shape}.")
    if mask is not None:
        last[~mask] = 0.0
    _refuse(last, ~(last >= 0) | (last == np.inf), "ends[{state}, {action}] must be finite and >= 0, got {entry}.")
    return last


def require_distributions(stacked: Matrix, last: FloatArray, mask: BoolArray | None) -> None:
    """ValueError for a state and action whose transitions and ends are no distribution.

    What is off by rounding alone (`ROUNDED_SUM`) is divided by its sum, in place.
    """
    bad = np.flatnonzero(~(stacked.data >= 0) | (stacked.data == np.inf))
    if bad.size:
        row = int(np.searchsorted(stacked.indptr, bad[0], side="right")) - 1
        action, state = divmod(row, stacked.shape[1])
        raise ValueError(
            f"transitions[{state}, {action}, {int(stacked.indices[bad[0]])}] must be finite and >= 0, "
            f"got {float(stacked.data[bad[0]])!r}."
        )
    sums = np.asarray(stacked.sum(axis=1)).reshape(-1, stacked.shape[1]).T + last
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if mask is not None:
        off &= mask
    wrong = off & ~(np.abs(sums - 1) <= ROUNDED_SUM)
    beside = " and ends[{state}, {action}]" if last.any() else ""
    _refuse(sums, wrong, "transitions[{state}, {action}]" + beside + " must sum to 1, got {entry:.10g}.")
    divisor = np.where(off, sums, 1.0)
    stacked.data /= np.repeat(divisor.T.ravel(), np.diff(stacked.indptr))
    last /= divisor


def expected_rewards(
    rewards: Any, stacked: Matrix, last: FloatArray, mask: BoolArray | None, axes: str | None
) -> FloatArray:
    """(S, A), 0 at inadmissible actions; transitions that never happen do not count."""
    shape, n_states = last.shape, len(last)
    if is_sparse(rewards):
        expected = _mean_rewards(stack_actions(rewards, "rewards", axes), stacked, last)
    else:
        given: FloatArray = np.array(rewards, dtype=np.float64)
        if given.shape in ((*shape, n_states), (*shape[::-1], n_states)):
            expected = _mean_rewards(by_action(given, "rewards", axes).reshape(stacked.shape), stacked, last)
        elif given.shape == shape:
            expected = given
        else:
            wanted = f"{shape}, {(*shape, n_states)} or {(*shape[::-1], n_states)}"
            raise ValueError(f"rewards must have shape {wanted}, got {given.shape}.")
    if mask is not None:
        expected[~mask] = 0.0
    # Sums of many, and their squares, must be finite, too.
    must = f"rewards[{{state}}, {{action}}] must be finite, within ±{FINITE:g}, got {{entry}}."
    _refuse(expected, ~(np.abs(expected) <= FINITE), must)
    return finite_table(expected, "rewards")


def _mean_rewards(rewards: FloatArray | Matrix, stacked: Matrix, last: FloatArray) -> FloatArray:
    """The mean of rewards that depend on the next state, (A * S, S) -> (S, A)."""
    if last.any():
        raise ValueError("rewards must be (S, A) if there are ends: a step that ends has no next state.")
    n_states, shape = stacked.shape[1], stacked.shape
    if rewards.shape != shape:
        raise ValueError(f"rewards must have the shapes of transitions, got {rewards.shape} in place of {shape}.")
    moves = stacked.tocoo()
    row, following = moves.coords
    parts = moves.data * np.asarray(rewards[row, following]).ravel()
    total = np.bincount(row, weights=parts, minlength=shape[0])
    total[np.abs(total) <= CANCELLED * np.bincount(row, weights=np.abs(parts), minlength=shape[0])] = 0.0
    return np.array(total.reshape(-1, n_states).T)


def _refuse(table: FloatArray, bad: BoolArray, message: str) -> None:
    places = np.argwhere(bad)
    if places.size:
        state, action = (int(i) for i in places[0])
        raise ValueError(message.format(state=state, action=action, entry=float(table[state, action])))


def checked_discount(discount: float) -> float:
    """The discount as a float; ValueError unless it is in (0, 1]."""
    if isinstance(discount, bool) or not isinstance(discount, Real) or not 0 < float(discount) <= 1:
        raise ValueError(f"discount must be > 0 and <= 1, got discount={discount!r}.")
    return float(discount)


def checked_horizon(horizon: int | None) -> int | None:
    """The horizon as an int or None; ValueError unless it is a whole number >= 1."""
    if horizon is None:
        return None
    if not is_whole(horizon) or horizon < 1:
        raise ValueError(f"horizon must be a whole number >= 1, or None, got horizon={horizon!r}.")
    return int(horizon)

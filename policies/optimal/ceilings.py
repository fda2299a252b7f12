"""The least utility loss of a class of records that must all be hard to tell apart, and the ceilings that attain it.

In such a class a policy is epsilon-private if and only if every action has a ceiling M_a with
e^-epsilon M_a <= p(a|x) <= M_a. The best row for given ceilings fills the floors and pours the rest in order of
utility up to the ceilings, so the probability of the set T of a record's best actions is
min(M(T), 1 - e^-epsilon M(not T)), and the class loses, with w_T from `class_weights`,

    loss(M) = sum over T of w_T max(1 - M(T), e^-epsilon M(not T)).

This is convex in M >= 0, and sum M < 1 or > e^epsilon never helps: scaling M back loses less. With
h_Ta = 1 for a in T and e^-epsilon otherwise, its dual (after scaling by e^epsilon) is the packing programme

    maximise e^-epsilon sum_T v_T
    such that sum_T h_Ta v_T <= the sum of w_T over the T without a, for each a, and 0 <= v_T <= e^epsilon w_T,

and *any* v within these bounds proves that no epsilon-private policy loses less. (For one class and k = 2 the solution
is the staircase mechanism of Kairouz, Oh & Viswanath 2016, Extremal mechanisms for local differential privacy.)

Only the value of each set of actions for the records that prefer it is needed. Let the actions of a
record be sorted by utility, best first. The value of a row p(.|x) is then

    u_worst + sum over j of (u_j - u_{j+1}) p(the j best actions | x),

so w_T = sum of prior(x) (u_j - u_{j+1}) over the records whose j best actions are the set T: at most 2^k - 2 numbers,
at any number of records, and ties weigh nothing. Blocks of records are given as `columns`, (k, ...): one array per
action, every pass runs along it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray, logs_of
from policies.optimal.programmes import minimise, solve_packing
from policies.policy import NotApplicableError

# Up to this many actions all 2^k - 2 sets are listed; beyond it only those that some record prefers.
_LIST_ALL = 10

# A set is a bit mask in an int64.
MAX_ACTIONS = 62


def comes_before(columns: FloatArray, other: int, action: int) -> NDArray[np.bool_]:
    """Where `other` precedes `action` in the order of preference; of equals the first precedes. Shape of a column."""
    compare = np.greater_equal if other < action else np.greater
    before: NDArray[np.bool_] = compare(columns[other], columns[action])
    return before


def preferences(columns: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
    """For each action a and record: the set of the actions down to a, and the utility lost by the next one.

    Parameters
    ----------
    columns : array, (k, ...)
        Utilities.

    Yields
    ------
    mask : array of int, (...)
        Of action a: bit b is set if action b is a or precedes it.
    gap : array, (...)
        u_a - u_next >= 0; 0 for the last action, whose set is all of them.

    Raises
    ------
    NotApplicableError
        For more than 62 actions.
    """
    n_actions = len(columns)
    require_few(n_actions)
    for action in range(n_actions):
        mask = np.full(columns.shape[1:], 1 << action, dtype=np.intp)
        following = np.full(columns.shape[1:], -np.inf)
        for other in range(n_actions):
            if other != action:
                before = comes_before(columns, other, action)
                mask += before * np.intp(1 << other)
                np.maximum(following, columns[other], out=following, where=~before)
        np.subtract(columns[action], following, out=following)
        following[np.isinf(following)] = 0.0
        yield mask, following


def require_few(n_actions: int, name: str = "optimal") -> None:
    """NotApplicableError for more than 62 actions, whose sets are no bit masks."""
    if n_actions > MAX_ACTIONS:
        raise NotApplicableError(f"{name} takes at most {MAX_ACTIONS} actions, got {n_actions}.")


def class_weights(columns: FloatArray, priors: FloatArray) -> tuple[IntArray, FloatArray]:
    """w_T of each class.

    Parameters
    ----------
    columns : array, (k, n_classes, size)
        Utilities of the members of each class.
    priors : array, (n_classes, size)
        Their weights.

    Returns
    -------
    masks : array of int, (n_sets,)
        The sets of actions, as bit masks; neither empty nor complete.
    weights : array, (n_classes, n_sets)
        w_T >= 0, in units of utility.
    """
    n_actions, n_classes = columns.shape[:2]
    # One action at a time, unless the sets that occur must be found first.
    found: Iterable[tuple[IntArray, FloatArray]] = preferences(columns)
    if n_actions <= _LIST_ALL:
        known = np.arange(1, (1 << n_actions) - 1)
    else:
        found = list(found)
        known = np.unique(np.concatenate([mask[gap > 0] for mask, gap in found]))
    weights = np.zeros((n_classes, max(1, len(known))))
    if not len(known):
        return np.ones(1, dtype=np.intp), weights
    rows = np.arange(n_classes)[:, None] * len(known)
    for mask, gap in found:
        places = np.minimum(np.searchsorted(known, mask), len(known) - 1)
        sums = np.bincount((rows + places).ravel(), (priors * gap).ravel(), minlength=weights.size)
        weights += sums.reshape(weights.shape)
    return known, weights


def members_of(masks: IntArray, n_actions: int) -> FloatArray:
    """The sets as an indicator matrix, (n_actions, n_sets)."""
    indicator: FloatArray = ((masks >> np.arange(n_actions)[:, None]) & 1).astype(np.float64)
    return indicator


# e^epsilon is finite up to here; beyond it the bound e^epsilon w_T on v_T cannot bind.
_LARGEST_EXPONENT = 700.0

# A ceiling below this is the rounding of 0; dropping the action costs less than the last digits of the loss.
_SMALLEST_CEILING = 1e-12

# An answer counts as proven if the dual agrees to this: relative to the loss, or absolute for weights of sum 1.
_RELATIVE_GAP, _ABSOLUTE_GAP = 1e-9, 1e-14


@dataclass(frozen=True)
class Ceilings:
    """The solution of N classes with k actions and S sets; losses are in the units of the weights.

    Attributes
    ----------
    ceilings : array, (N, k)
        M_a; their sum lies in [1, e^epsilon].
    losses : array, (N,)
        What each class loses with these ceilings, against greedy.
    amounts : array, (N, S)
        e^-epsilon v_T, in [0, w_T].
    proven : array, (N,)
        What every epsilon-private policy loses at least: the sum of the amounts.
    """

    ceilings: FloatArray
    losses: FloatArray
    amounts: FloatArray
    proven: FloatArray


def best_ceilings(members: FloatArray, weights: FloatArray, epsilon: float) -> Ceilings:
    """The best ceilings of each class.

    Parameters
    ----------
    members : array, (k, S)
        1 where an action belongs to a set.
    weights : array, (N, S)
        w_T >= 0; in any unit, each class is scaled to a sum of 1.
    epsilon : float
        Finite, >= 0.
    """
    total = weights.sum(axis=1)
    programmes = _Programmes(members, weights / np.where(total > 0, total, 1.0)[:, None], epsilon)
    ceilings, amounts = programmes.constants.copy(), np.zeros_like(programmes.weights)
    # Where one action is best for all members, it is the optimum and loses nothing.
    unsolved = np.flatnonzero(programmes.regrets.min(axis=1) > 0)
    if len(unsolved):
        ceilings[unsolved], amounts[unsolved] = _Programmes(members, programmes.weights[unsolved], epsilon).solve()
    amounts = amounts * np.exp(-epsilon) * total[:, None]
    return Ceilings(ceilings, programmes.losses(ceilings) * total, amounts, amounts.sum(axis=1))


class _Programmes:
    """The packing programmes of N classes, with weights (N, S) of sum 1.

    Attributes
    ----------
    columns : array, (k, S)
        h.
    regrets : array, (N, k)
        What a constant action loses: the weight of the sets without it. Also the capacities.
    uppers : array, (N, S)
        The largest v_T. No v_T exceeds the capacity of its own actions, at most 1: 2 stands for no bound.
    constants : array, (N, k)
        The ceilings of the best constant action.
    """

    def __init__(self, members: FloatArray, weights: FloatArray, epsilon: float) -> None:
        self.members, self.weights, self.epsilon = members, weights, epsilon
        self.columns: FloatArray = members + np.exp(-epsilon) * (1 - members)
        self.regrets: FloatArray = weights @ (1 - members).T
        self.uppers: FloatArray = np.minimum(np.exp(min(epsilon, _LARGEST_EXPONENT)) * weights, 2.0)
        self.constants: FloatArray = np.eye(len(members))[self.regrets.argmin(axis=1)]

    def losses(self, ceilings: FloatArray) -> FloatArray:
        """loss(M), (N,)."""
        poured = 1 - ceilings @ self.members
        floors = np.exp(-self.epsilon) * (ceilings @ (1 - self.members))
        lost: FloatArray = np.einsum("ns,ns->n", self.weights, np.maximum(poured, floors))
        return lost

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """Repaired ceilings and v of each class: by the batch, and one by one, by HiGHS, where that is not proven."""
        if len(self.weights) == 1:
            found = minimise(-np.ones(self.weights.shape[1]), self.columns, self.regrets[0], self.uppers[0])
            if found is None:
                # Still a private policy and a true bound, only not known to be the best ones.
                return self.constants, np.zeros_like(self.weights)
            point, price = found
            return self._repaired(price[None], point[None])
        prices, amounts = solve_packing(self.columns, self.regrets, self.uppers)
        ceilings, amounts = self._repaired(prices, amounts)
        least = np.exp(-self.epsilon) * amounts.sum(axis=1)
        losses = self.losses(ceilings)
        for row in np.flatnonzero(losses - least > _RELATIVE_GAP * losses + _ABSOLUTE_GAP):
            one = np.array([row])
            ceilings[one], amounts[one] = _Programmes(self.members, self.weights[one], self.epsilon).solve()
        return ceilings, amounts

    def _repaired(self, prices: FloatArray, amounts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ceilings and v within their constraints, whatever the solver's rounding."""
        amounts = np.clip(amounts, 0.0, self.uppers)
        used = np.maximum((amounts @ self.columns.T) / self.regrets, 1.0)
        amounts = amounts / used.max(axis=1)[:, None]
        # Ceilings with a sum in [1, e^epsilon], never worse than the best constant action.
        ceilings = np.where(prices > _SMALLEST_CEILING, prices, 0.0)
        total = ceilings.sum(axis=1)
        total = np.where(total > 0, total, 1.0)
        largest = np.exp(min(self.epsilon, _LARGEST_EXPONENT))
        ceilings = ceilings * (np.clip(total, 1.0, largest) / total)[:, None]
        worse = self.losses(ceilings) > self.losses(self.constants)
        return np.where(worse[:, None], self.constants, ceilings), amounts


def ceiling_logs(columns: FloatArray, ceilings: FloatArray, epsilon: float) -> FloatArray:
    """log p(a|x) of the best rows under the ceilings, (k, N, size).

    Entries at a ceiling or floor are exactly log M_a and log M_a - epsilon and the one between is clipped to them, so
    no rounding of the sums can spend more than epsilon.

    Parameters
    ----------
    columns : array, (k, N, size)
        Utilities of the members of each class.
    ceilings : array, (N, k)
        M_a, with a sum in [1, e^epsilon].
    epsilon : float
        Finite, >= 0.
    """
    logs = np.empty_like(columns)
    tops = ceilings.T[:, :, None]
    log_tops = logs_of(tops)
    for action in range(len(columns)):
        left = np.ones(columns.shape[1:])
        for other in range(len(columns)):
            if other != action:
                before = comes_before(columns, other, action)
                left -= np.where(before, tops[other], np.exp(-epsilon) * tops[other])
        logs[action] = logs_of(np.maximum(left, 0.0))
        np.clip(logs[action], log_tops[action] - epsilon, log_tops[action], out=logs[action])
    return logs

"""What the optimum needs to know of the records: how much each set of actions is worth to those who prefer it.

Let the actions of a record be sorted by utility, best first. The value of a row p(.|x) is then

    u_worst + sum over j of (u_j - u_{j+1}) p(the j best actions | x),

so all that matters of a class of records is w_T = sum of prior(x) (u_j - u_{j+1}) over the records whose j best
actions are the set T: at most 2^k - 2 numbers, at any number of records, and ties weigh nothing.

Blocks of records are given as `columns`, (k, ...): one array per action, every pass runs along it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray
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
    if n_actions > MAX_ACTIONS:
        raise NotApplicableError(f"optimal takes at most {MAX_ACTIONS} actions, got {n_actions}.")
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

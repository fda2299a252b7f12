"""Which actions a record allows: the checks of such a mask, and the records that allow the same.

A mask must be public. Under epsilon-privacy, if a record gets an action with probability q, a neighbour
gets it with probability at least e^-epsilon q: so if neighbours did not allow the same actions, what some of them may
get could be given to none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.adjacency import Adjacency, AnyRecord, Listed, Sensitive
from policies.arrays import BoolArray, FloatArray, IntArray, as_floats, finite_table, non_negative, read_only


def admissible_mask(values: ArrayLike | None, shape: tuple[int, ...]) -> BoolArray | None:
    """A read-only copy of which actions each record allows, (n_records, n_actions); None if all allow all, or for True.

    ValueError for another shape, entries other than true and false (or 1 and 0), or a record that allows no action.
    """
    if values is None or values is True:
        return None
    try:
        given: NDArray[Any] = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"admissible must be True (every action) or an array of bool of shape {shape}, got rows of several lengths."
        ) from None
    if given.shape != shape or given.ndim != 2:
        raise ValueError(f"admissible must have shape {shape}, got {given.shape}.")
    mask = np.array(given, dtype=np.bool_, order="F")
    if not np.array_equal(mask, given):
        raise ValueError("admissible must hold true and false (or 1 and 0) only.")
    none_left = np.flatnonzero(~mask.any(axis=1))
    if none_left.size:
        raise ValueError(f"admissible must allow an action in each row, row {int(none_left[0])} allows none.")
    return None if mask.all() else read_only(mask)


def require_public(
    mask: BoolArray, adjacency: Adjacency, actions: tuple[str, ...], describe: Callable[[int], str]
) -> None:
    """ValueError if two neighbours do not allow the same actions; it names them, by `describe`, and the action."""
    found = told_apart(mask, adjacency)
    if found is None:
        return
    allows, forbids, action = describe(found[0]), describe(found[1]), actions[found[2]]
    raise ValueError(
        f"admissible must be public: under {adjacency.name}, [{allows}] allows {action}, and its neighbour [{forbids}] "
        f"does not. If the first gets {action} with probability q, every epsilon-private policy gives it to the second "
        f"with probability at least e^-epsilon q. Declare public what decides this (Sensitive(shape, axes) hides all "
        f"else), or allow {action} and count its harm as an outcome with a weight."
    )


def told_apart(mask: BoolArray, adjacency: Adjacency) -> tuple[int, int, int] | None:
    """The first neighbours that do not allow the same action.

    Who allows it, who does not, and the action; None if all neighbours allow the same.
    """
    for partition in adjacency.partitions(len(mask)):
        for action, column in enumerate(mask.T):
            widest, clique = partition.widest(column.astype(np.float64))
            if widest > 0:
                members = partition.members(clique)
                allowed = column[members]
                return int(members[allowed.argmax()]), int(members[allowed.argmin()]), action
    return None


def filled_table(values: ArrayLike, mask: BoolArray | None, name: str, *, highest: bool = False) -> FloatArray:
    """`finite_table` of what is allowed; what is not gets the lowest allowed entry of its row, or the highest.

    So the largest and smallest entry of each row, and all that follows from them, are those of what is allowed. And no
    policy gains by an action that costs a record as much as the worst that it allows: what bounds every policy on the
    filled table bounds those that keep to the mask, and as closely.
    """
    given = as_floats(values, name)
    if mask is None or given.shape != mask.shape:
        return finite_table(given, name)  # what has another shape is refused later
    table = finite_table(np.where(mask, given, 0.0), name).copy(order="F")
    worst = np.where(mask, table, -np.inf if highest else np.inf)
    np.copyto(table, (worst.max(axis=1) if highest else worst.min(axis=1))[:, None], where=~mask)
    return read_only(table)


def mask_classes(mask: BoolArray) -> IntArray:
    """The classes of records that allow the same actions, (n_records,), numbered from 0.

    Examples
    --------
    >>> mask_classes(np.array([[True, False], [True, True], [True, False]])).tolist()
    [0, 1, 0]
    """
    codes: IntArray = np.zeros(len(mask), dtype=np.intp)
    for column in mask.T:
        # Numbered anew after each column, so that the codes stay small for any number of actions.
        codes = np.unique(2 * codes + column, return_inverse=True)[1]
    return codes


def same_masks(mask: BoolArray, adjacency: Adjacency) -> Iterator[tuple[IntArray, IntArray, Adjacency]]:
    """The sets of records that allow the same actions; all neighbours of a record are in its set.

    Of each the records, the actions that they allow, and the adjacency over the records in this order.
    """
    codes = mask_classes(mask)
    for code in range(int(codes.max()) + 1):
        rows: IntArray = np.flatnonzero(codes == code)
        columns: IntArray = np.flatnonzero(mask[rows[0]])
        if len(rows) == len(mask):
            yield rows, columns, adjacency
        elif isinstance(adjacency, Sensitive):
            # Clique by clique: what is public is one feature, and the hidden features stay.
            cliques = adjacency.partitions(len(codes))[0].by_clique(np.arange(len(codes)))
            mine = cliques[codes[cliques[:, 0]] == code]
            hidden = [adjacency.shape[axis] for axis in adjacency.axes]
            grid = Sensitive((len(mine), *hidden), tuple(range(1, len(hidden) + 1)))
            yield mine.ravel(), columns, grid
        else:
            yield rows, columns, listed_among(rows, adjacency, len(mask))


def listed_among(rows: IntArray, adjacency: Adjacency, n_records: int) -> Adjacency:
    """The adjacency among some of the records, (m,), in their order, by the numbers of their cliques."""
    partitions = adjacency.partitions(n_records)
    numbers = np.empty((n_records, len(partitions)), dtype=np.intp)
    for place, partition in enumerate(partitions):
        cliques = partition.by_clique(np.arange(n_records))
        numbers[cliques, place] = np.arange(len(cliques))[:, None]
    every = range(len(partitions))
    listed = Listed(numbers[rows], [[other for other in every if other != one] for one in every], adjacency.name)
    return AnyRecord() if all(part.whole for part in listed.partitions(len(rows))) else listed


def least_given(probability: float, epsilon: float) -> float:
    """The least probability of an action for the neighbours of somebody who gets it with probability q.

    max(e^-epsilon q, 1 - e^epsilon (1 - q)), from p(a|x') >= e^-epsilon p(a|x) and the same of all other actions
    together; some epsilon-private policy attains it. So where the records of a group must not get an action, and each
    has a neighbour who gets it with probability q, no epsilon-private policy treats a smaller share of them wrongly.

    Parameters
    ----------
    probability : float
        q, in [0, 1].
    epsilon : float
        >= 0.

    Raises
    ------
    ValueError
        For a number outside these ranges.

    Examples
    --------
    >>> round(least_given(0.8, 1.0), 4), round(least_given(0.99, 1.0), 4)
    (0.4563, 0.9728)
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be in [0, 1], got probability={probability!r}.")
    odds = math.exp(-non_negative(epsilon, "epsilon"))
    # At epsilon = inf the second is -inf, or 1 where everybody gets it.
    others = 1 - (1 - probability) / odds if odds > 0 else float(probability == 1)
    return max(odds * probability, others, 0.0)

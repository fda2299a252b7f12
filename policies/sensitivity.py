"""Sensitivity of a utility table: by how much neighbours can differ, exactly."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, Difference, Partition, largest_difference, require_adjacency
from policies.arrays import BoolArray, FloatArray, finite_table
from policies.html_table import html_table

LEAST_SCALE = sys.float_info.min
# Between these utilities must differ, if they do: products and quotients of differences are still normal floats.
LEAST_SPREAD, MOST_SPREAD = 1e-290, 1e290


@dataclass(frozen=True)
class Witness:
    """Two neighbours and the action(s) at which they attain a value: the proof that it is not smaller.

    Attributes
    ----------
    record, neighbour : int
        Record indices.
    actions : tuple of int
        One action for a difference, two for a range.
    """

    record: int
    neighbour: int
    actions: tuple[int, ...]

    @property
    def action(self) -> int:
        """The first (for a difference: the only) action."""
        return self.actions[0]


@dataclass(frozen=True)
class Sensitivity:
    """How far utilities can differ between neighbours.

    Attributes
    ----------
    utilities : array, (n_records, n_actions)
        u(x, a).
    witness : Witness
        The neighbours and the action that attain `value`.
    range_witness : Witness
        The neighbours and the two actions that attain `range`; a single action where there is no other.
    value : float
        Delta = max over neighbours x, x' and actions a of |u(x, a) - u(x', a)|, in units of utility.
    range : float
        Gamma = max over neighbours of max_a d_a - min_a d_a with d_a = u(x, a) - u(x', a); at most 2 Delta.
    """

    utilities: FloatArray = field(repr=False, compare=False)
    witness: Witness
    range_witness: Witness
    value: float = field(init=False)
    range: float = field(init=False)

    def __post_init__(self) -> None:
        """What the witnesses attain."""
        apart = self.utilities[self.witness.record] - self.utilities[self.witness.neighbour]
        object.__setattr__(self, "value", abs(float(apart[self.witness.action])))
        first, second = self.range_witness.actions[0], self.range_witness.actions[-1]
        table = self.utilities[[self.range_witness.record, self.range_witness.neighbour]]
        over, under = table[:, first] - table[:, second]
        object.__setattr__(self, "range", abs(float(over - under)))

    def _repr_html_(self) -> str:
        """What a notebook shows: each number, and the two records and the actions that attain it."""
        numbers = [
            ("value Δ", self.value, self.witness),
            ("range Γ", self.range, self.range_witness),
        ]
        header = ("", "", "record", "neighbour", "actions")
        rows = [
            (name, shown, str(pair.record), str(pair.neighbour), ", ".join(map(str, pair.actions)))
            for name, shown, pair in numbers
        ]
        return html_table("sensitivity of utilities between neighbours", rows, header)


def noise_scale(spread: float, epsilon: float) -> float:
    """Spread / epsilon, in units of utility, for epsilon > 0; 0 only for a spread of 0 or an infinite epsilon.

    A quotient below the normal floats, which has lost digits or is 0, would hide less than epsilon says: it is rounded
    up.
    """
    return max(spread / epsilon, LEAST_SCALE) if spread > 0 and epsilon < math.inf else 0.0


def with_range(utilities: FloatArray) -> FloatArray:
    """The same utilities; ValueError where they differ by too little or too much to be computed with."""
    spread = float(utilities.max() - utilities.min())
    if spread and not LEAST_SPREAD <= spread <= MOST_SPREAD:
        raise ValueError(
            f"utilities must differ by {LEAST_SPREAD:g} to {MOST_SPREAD:g}, got {spread:.3g}; give another unit."
        )
    return utilities


class Solved(Protocol):
    """What knows its own sensitivity: a `policies.problem.DecisionProblem`."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Of its utilities."""


def sensitivity(
    utilities: ArrayLike | Solved, adjacency: Adjacency | None = None, admissible: BoolArray | None = None
) -> Sensitivity:
    """Exact sensitivity of a utility table: all pairs of actions, or of neighbours where these are fewer.

    Parameters
    ----------
    utilities : array, (n_records, n_actions), or DecisionProblem
        u(x, a), finite; or a problem, which has all else, too.
    adjacency : Adjacency
        Which records are neighbours.
    admissible : array of bool, (n_records, n_actions), optional
        Which actions each record allows: others are left out. Neighbours must allow the same.

    Returns
    -------
    Sensitivity

    Raises
    ------
    ValueError
        For a table that is not finite, does not fit the adjacency, or differs by less than 1e-290 or more than 1e290.

    References
    ----------
    Delta: McSherry & Talwar (2007), Mechanism design via differential privacy, section 3.
    Gamma (bounded range): Durfee & Rogers (2019), Practical differentially private top-k selection, section 4.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> found = sensitivity([[0.0, 1.0], [2.0, 2.0]], AnyRecord())
    >>> found.value, found.range
    (2.0, 1.0)
    """
    if hasattr(utilities, "sensitivity"):
        if adjacency is not None or admissible is not None:
            raise ValueError("a problem has an adjacency of its own: problem.with_adjacency(...) gives it another one.")
        return utilities.sensitivity
    given, adjacency = with_range(finite_table(utilities, "utilities")), require_adjacency(adjacency)
    # Neighbours allow the same: what is 0 for all of them makes no difference.
    table = given if admissible is None else np.where(admissible, given, 0.0)
    witness = largest_of_choices(table, [(a,) for a in range(table.shape[1])], adjacency)[1]
    return Sensitivity(given, witness, largest_range(table, adjacency, admissible)[1])


# With more actions, pairs of neighbours may take less than pairs of actions, which are columns and quick.
MANY_ACTIONS = 32
# Differences that are computed at a time.
_AT_A_TIME = 1 << 18


def largest_range(table: FloatArray, adjacency: Adjacency, mask: BoolArray | None = None) -> tuple[float, Witness]:
    """Gamma of a table of scores, (n_records, n_actions), and what attains it; of what a mask allows.

    It takes n k^2 / 2 steps for each partition by pairs of actions, and k steps for each pair of neighbours.
    """
    n_records, n_actions = table.shape
    partitions = adjacency.partitions(n_records)
    of_columns = len(partitions) * n_records * n_actions * (n_actions - 1) // 2
    of_pairs = n_actions * sum(partition.n_pairs for partition in partitions)
    if n_actions > MANY_ACTIONS and of_pairs < of_columns:
        found = [_range_of_pairs(table, partition, mask) for partition in partitions]
        return max(found, key=lambda pair: pair[0])
    pairs = list(combinations(range(n_actions), 2))
    return largest_of_choices(table, pairs, adjacency, mask) if pairs else (0.0, Witness(0, 0, (0,)))


def _range_of_pairs(table: FloatArray, partition: Partition, admissible: BoolArray | None) -> tuple[float, Witness]:
    """max over pairs in a clique of max_a d_a - min_a d_a, with d the difference of their rows.

    No d_a of x and y is above what x has over the least of its clique, nor above what y lacks to the most: pairs that
    cannot beat the best by this are left out. Differences are rounded alike, so none of them would.
    """
    rows, cliques = np.ascontiguousarray(table), partition.by_clique(np.arange(len(table)))
    if admissible is not None:
        # Neighbours allow the same: what they do not counts as the first action that they do.
        rows = np.where(admissible, rows, rows[np.arange(len(rows)), admissible.argmax(axis=1)][:, None])
    best, attained, step = 0.0, (0, 0), max(1, _AT_A_TIME // (cliques.shape[1] * rows.shape[1]))
    at_a_time = max(1, _AT_A_TIME // rows.shape[1])
    for start in range(0, len(cliques), step):
        numbers = cliques[start : start + step]
        members = rows[numbers]
        over = (members - members.min(axis=1, keepdims=True)).max(axis=-1)
        under = (members.max(axis=1, keepdims=True) - members).max(axis=-1)
        most = np.minimum(over[:, :, None], under[:, None, :])
        most += most.transpose(0, 2, 1).copy()
        clique, one, other = np.nonzero(np.triu(most > best, 1))
        most = most[clique, one, other]
        order = np.argsort(-most, kind="stable")
        for first in range(0, len(order), at_a_time):
            pairs = order[first : first + at_a_time]
            pairs = pairs[most[pairs] > best]
            if not len(pairs):
                break
            records, neighbours = numbers[clique[pairs], one[pairs]], numbers[clique[pairs], other[pairs]]
            apart = rows[records] - rows[neighbours]
            spread = apart.max(axis=-1) - apart.min(axis=-1)
            place = int(spread.argmax())
            if spread[place] > best:
                best, attained = float(spread[place]), (int(records[place]), int(neighbours[place]))
    record, neighbour = attained
    apart, allowed = rows[record] - rows[neighbour], True if admissible is None else admissible[record]
    highest, lowest = np.where(allowed, apart, -np.inf).argmax(), np.where(allowed, apart, np.inf).argmin()
    return best, Witness(record, neighbour, (int(highest), int(lowest)))


def largest_of_choices(
    table: FloatArray, choices: Sequence[tuple[int, ...]], adjacency: Adjacency, admissible: BoolArray | None = None
) -> tuple[float, Witness]:
    """The largest difference of single columns u_a, or of differences u_a - u_b of two."""
    best, best_actions = Difference(-1.0, 0, 0), choices[0]
    for actions in choices:
        column = table[:, actions[0]]
        if len(actions) == 2:
            column = column - table[:, actions[1]]
            if admissible is not None:
                column[~admissible[:, actions].all(axis=1)] = 0.0
        found = largest_difference(column, adjacency)
        if found.value > best.value:
            best, best_actions = found, actions
    return best.value, Witness(best.record, best.neighbour, best_actions)

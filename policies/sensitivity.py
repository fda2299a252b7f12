"""Sensitivity of a utility table: by how much neighbours can differ, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, Difference, Partition, largest_difference, require_adjacency
from policies.arrays import FloatArray, finite_table
from policies.html_table import html_table
from policies.mask import BoolArray

# Of so few levels of a feature, each pair is compared; of more, the records along it are sorted.
_FEW_LEVELS = 16


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
    """How far a utility table can move between neighbours.

    Attributes
    ----------
    value : float
        Delta = max over neighbours x, x' and actions a of |u(x, a) - u(x', a)|, in units of utility.
    range : float
        Gamma = max over neighbours of max_a d_a - min_a d_a with d_a = u(x, a) - u(x', a); at most 2 Delta.
    monotone : bool
        Whether between any two neighbours no action gains while another loses (then Gamma <= Delta).
    witness : Witness
        The neighbours and the action that attain `value`.
    range_witness : Witness
        The neighbours and the two actions that attain `range`.
    monotone_witness : Witness or None
        Neighbours and two actions of which one gains while the other loses; None if monotone.
    """

    value: float
    range: float
    monotone: bool
    witness: Witness
    range_witness: Witness
    monotone_witness: Witness | None

    def _repr_html_(self) -> str:
        """What a notebook shows: each number, and the two records and the actions that attain it."""
        numbers = [
            ("value Δ", self.value, self.witness),
            ("range Γ", self.range, self.range_witness),
            ("monotone", self.monotone, self.monotone_witness),
        ]
        header = ("", "", "record", "neighbour", "actions")
        rows = [(name, shown, *_cells(witness)) for name, shown, witness in numbers]
        return html_table("sensitivity of utilities between neighbours", rows, header)


def _cells(witness: Witness | None) -> tuple[str, str, str]:
    if witness is None:
        return ("", "", "")
    return (str(witness.record), str(witness.neighbour), ", ".join(map(str, witness.actions)))


def sensitivity(utilities: ArrayLike, adjacency: Adjacency, admissible: BoolArray | None = None) -> Sensitivity:
    """Exact sensitivity of a utility table, in O(n k^2) and without a loop over pairs of records.

    Parameters
    ----------
    utilities : array, (n_records, n_actions)
        u(x, a), finite.
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
        For a table that is not finite or does not fit the adjacency.

    References
    ----------
    Delta: McSherry & Talwar (2007), Mechanism design via differential privacy, section 3.
    Gamma (bounded range): Durfee & Rogers (2019), Practical differentially private top-k selection, section 4.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> found = sensitivity([[0.0, 1.0], [2.0, 2.0]], AnyRecord())
    >>> found.value, found.range, found.monotone
    (2.0, 1.0, True)
    """
    table = finite_table(utilities, "utilities")
    require_adjacency(adjacency)
    actions = range(table.shape[1])
    if admissible is not None:
        # Neighbours allow the same: what is 0 for all of them makes no difference.
        table = np.where(admissible, table, 0.0)
    value, witness = _largest(table, [(a,) for a in actions], adjacency)
    spread, range_witness = _largest(table, list(combinations(actions, 2)), adjacency, admissible)
    conflict = find_conflict(table, adjacency)
    return Sensitivity(value, spread, conflict is None, witness, range_witness, conflict)


def _largest(
    table: FloatArray, choices: list[tuple[int, ...]], adjacency: Adjacency, admissible: BoolArray | None = None
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


def find_conflict(utilities: FloatArray, adjacency: Adjacency) -> Witness | None:
    """Two neighbours between which one action gains and another loses, or None if the scores are monotone.

    Within a clique, scores are monotone if and only if its rows are a chain in the componentwise order. A chain
    keeps its order under a lexicographic sort, so it is enough to compare each row with the next one: O(n log n).
    """
    partitions = adjacency.partitions(len(utilities))
    for partition in partitions:
        if len(partition.axes) == 1 and len(partition.shape) > 1 and partition.shape[partition.axes[0]] <= _FEW_LEVELS:
            found = _conflict_on_lines(utilities, partition)
            if found is not None:
                return found
            continue
        # Most tables are refuted by a few thousand rows; only one that is (nearly) monotone is sorted whole.
        for limit in (1 << 12, len(utilities)):
            found = _conflict_in(utilities, partition, limit)
            if found is not None:
                return found
    return None


def _conflict_on_lines(utilities: FloatArray, partition: Partition) -> Witness | None:
    """Cliques along one feature are short: each pair of its levels is compared, for all of them at a time."""
    records = partition.by_clique(np.arange(len(utilities)))
    for first, second in combinations(range(records.shape[1]), 2):
        rises, falls = np.zeros((2, len(records)), dtype=np.bool_)
        for column in utilities.T:
            before, after = column[records[:, first]], column[records[:, second]]
            rises |= after > before
            falls |= after < before
        conflicts = np.flatnonzero(rises & falls)
        if conflicts.size:
            record, neighbour = int(records[conflicts[0], second]), int(records[conflicts[0], first])
            step = utilities[record] - utilities[neighbour]
            return Witness(record, neighbour, (int(step.argmax()), int(step.argmin())))
    return None


def _conflict_in(utilities: FloatArray, partition: Partition, limit: int) -> Witness | None:
    records = partition.by_clique(np.arange(len(utilities)))
    n_cliques, size = records.shape
    members = max(1, min(size, limit))
    records = records[:: max(1, n_cliques * members // limit), :: max(1, size // members)]
    clique = np.repeat(np.arange(records.shape[0]), records.shape[1])
    flat = records.ravel()
    rows = utilities[flat]
    order = np.lexsort((*rows.T[::-1], clique))
    step = np.diff(rows[order], axis=0)
    same_clique = np.diff(clique[order]) == 0
    falls = same_clique & (step < 0).any(axis=1)
    if not falls.any():
        return None
    # The lexicographic order rises in the first column that differs, so a fall elsewhere is a conflict.
    at = int(np.flatnonzero(falls)[0])
    gains, loses = int(step[at].argmax()), int(step[at].argmin())
    return Witness(int(flat[order[at + 1]]), int(flat[order[at]]), (gains, loses))

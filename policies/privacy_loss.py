"""What a table of action probabilities reveals, exactly: its privacy loss, and how often the best guess is right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, Difference, Partition, largest_difference, require_adjacency
from policies.arrays import BLOCK, FloatArray, blocks, logs_of, probability_table
from policies.html_table import html_table
from policies.policy import NotApplicableError
from policies.sensitivity import Witness, largest_of_choices


@dataclass(frozen=True)
class PrivacyLoss:
    """What a published action can reveal.

    Attributes
    ----------
    epsilon : float
        max over neighbours x, x' and actions a of log(p(a|x) / p(a|x')); inf if an action rules a record out.
    witness : Witness
        The neighbours (`record` the likelier) and the action that attain it.
    """

    epsilon: float
    witness: Witness

    def _repr_html_(self) -> str:
        """What a notebook shows: the loss, what it means to somebody who guesses, and which records attain it."""
        rows: list[tuple[str, object]] = [
            ("epsilon", self.epsilon),
            ("better guess between two equally likely neighbours right, of 100", 100 / (1 + math.exp(-self.epsilon))),
            ("record", str(self.witness.record)),
            ("neighbour", str(self.witness.neighbour)),
            ("action", str(self.witness.action)),
        ]
        return html_table("exact privacy loss", rows)


def privacy_loss(probabilities: ArrayLike, adjacency: Adjacency) -> PrivacyLoss:
    """Exact privacy loss of a policy given as a table.

    Parameters
    ----------
    probabilities : array, (n_records, n_actions)
        p(a|x); rows sum to 1 within 1e-6, and are divided by their sum. An action that no member of a clique ever gets
        reveals nothing there.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    PrivacyLoss

    Raises
    ------
    ValueError
        For negative entries, rows that do not sum to 1, or a shape that does not fit the adjacency.

    Notes
    -----
    A float table holds 0 where a probability is below about 1e-308; against a positive neighbour that is an
    infinite loss. Policies give their exact logarithms, for which `privacy_loss_of_logs` has no such limit.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity, definition 1.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> round(privacy_loss([[0.75, 0.25], [0.25, 0.75]], AnyRecord()).epsilon, 4)
    1.0986
    """
    table = probability_table(probabilities, "probabilities")
    require_adjacency(adjacency)
    return privacy_loss_of_logs(logs_of(table), adjacency)


def privacy_loss_of_logs(log_probabilities: FloatArray, adjacency: Adjacency) -> PrivacyLoss:
    """`privacy_loss` from log p(a|x), (n_records, n_actions), where -inf stands for a probability of 0."""
    actions = [(action,) for action in range(log_probabilities.shape[1])]
    return PrivacyLoss(*largest_of_choices(log_probabilities, actions, adjacency))


# Probabilities that are looked at, at most: about two seconds. A comparison asks for a hundred tables.
MOST_STEPS = 1 << 30


@dataclass(frozen=True)
class GuessRate:
    """How well somebody who sees a published action can guess which of two neighbours it was chosen for.

    Attributes
    ----------
    rate : float
        How often the best guess between two equally likely neighbours is right, at most, in [1/2, 1].
    witness : Witness
        The two neighbours that attain it, and the actions that are likelier for the first: the best guess is the first
        record after one of these actions, and the second after any other.
    """

    rate: float
    witness: Witness

    @property
    def actions(self) -> tuple[int, ...]:
        """The actions that speak for the first record of the witness; none where no neighbours differ."""
        return self.witness.actions

    def _repr_html_(self) -> str:
        """What a notebook shows: the rate, and which records and actions attain it."""
        rows: list[tuple[str, object]] = [
            ("better guess between two equally likely neighbours right, of 100", 100 * self.rate),
            ("record", str(self.witness.record)),
            ("neighbour", str(self.witness.neighbour)),
            ("actions that speak for the record", ", ".join(map(str, self.actions))),
        ]
        return html_table("how often two records are told apart, exactly", rows)


def guess_rate(probabilities: ArrayLike, adjacency: Adjacency) -> GuessRate:
    """How often an observer tells two records apart by an action: (1 + the largest total variation of neighbours) / 2.

    An observer sees an action, and guesses for which of two equally likely neighbours x and x' it was chosen. The best
    guess is the record that makes the action likelier. It is right (1 + TV(x, x')) / 2 of the time, where TV is the
    total variation, the largest difference of p(A|x) over sets A of actions. A policy with privacy loss epsilon has a
    rate of at most e^epsilon / (1 + e^epsilon), 0.731 at epsilon = 1, and mostly a lower one. The converse does not
    hold: a rate of little more than 1/2 can go with an infinite privacy loss. Nor does the rate of several actions
    follow from the rate of each.

    Parameters
    ----------
    probabilities : array, (n_records, n_actions)
        p(a|x); rows sum to 1 within 1e-6, and are divided by their sum.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    GuessRate
        `rate`, `witness` and `actions`. The rate is never above e^loss / (1 + e^loss), with the exact `privacy_loss` of
        the same table, whatever the rounding.

    Raises
    ------
    ValueError
        For negative entries, rows that do not sum to 1, or a shape that does not fit the adjacency.
    NotApplicableError
        A ValueError, where it would take more than seconds. Either all pairs of neighbours are compared, or p(A|.) for
        the 2^(k - 1) - 1 splits of k actions into A and the others, whichever is less; both may be too many.

    References
    ----------
    Wasserman & Zhou (2010), A statistical framework for differential privacy, JASA 105:375, section 2.4 (privacy as a
    limit on tests); Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy, ICML, section 2.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> found = guess_rate([[0.4, 0.4, 0.2], [0.2, 0.2, 0.6]], AnyRecord())
    >>> round(found.rate, 12), found.witness.record, found.witness.neighbour, found.actions
    (0.7, 0, 1, (0, 1))
    """
    table = probability_table(probabilities, "probabilities")
    require_adjacency(adjacency)
    return guess_rate_within(table, adjacency, privacy_loss_of_logs(logs_of(table), adjacency).epsilon)


def guess_rate_within(probabilities: FloatArray, adjacency: Adjacency, epsilon: float) -> GuessRate:
    """`guess_rate` of a table, (n_records, n_actions), whose privacy loss is known to be at most epsilon.

    The bound e^epsilon / (1 + e^epsilon) cuts off what rounding leaves above it.
    """
    n_records, n_actions = probabilities.shape
    partitions = adjacency.partitions(n_records)
    of_pairs = n_actions * sum(each.n_pairs for each in partitions)
    of_splits = n_records * len(partitions) * (2 ** (n_actions - 1) - 1)
    if min(of_pairs, of_splits) > MOST_STEPS:
        raise NotApplicableError(
            f"guess_rate of {n_actions} actions for {n_records:,} records takes too long: both the splits of the "
            "actions and the pairs of neighbours are too many."
        )
    if of_pairs < of_splits:
        found = max((_by_pairs(probabilities, each) for each in partitions), key=lambda pair: pair.value)
    else:
        # The largest difference of p(A|.) between neighbours, over all splits of the actions into A and the others.
        single = [largest_difference(column, adjacency) for column in probabilities.T]
        found = max(single, key=lambda pair: pair.value)
        # One of each split and its complement: the last action is in none.
        inside = (np.arange(1, 2 ** (n_actions - 1))[:, None] >> np.arange(n_actions)) & 1 == 1
        inside = inside[(inside.sum(axis=1) > 1) & (inside.sum(axis=1) < n_actions - 1)]
        # p(A|.) differs by no more than its columns do together, nor than those of the other actions do, nor than
        # epsilon allows: so splits that cannot beat the best are left out.
        spreads = np.array([each.value for each in single])
        bounds = np.minimum(np.minimum(inside @ spreads, ~inside @ spreads), math.tanh(epsilon / 2))
        for place in np.argsort(-bounds, kind="stable"):
            if bounds[place] <= found.value:
                break
            other = largest_difference(reduce(np.add, probabilities.T[inside[place]]), adjacency)
            found = other if other.value > found.value else found
    gains = probabilities[found.record] - probabilities[found.neighbour]
    rate = min((1 + math.fsum(gains[gains > 0])) / 2, 1 / (1 + math.exp(-epsilon)))
    return GuessRate(rate, Witness(found.record, found.neighbour, tuple(np.flatnonzero(gains > 0).tolist())))


def _by_pairs(table: FloatArray, partition: Partition) -> Difference:
    """The largest total variation between two records of a clique: half the sum of |p(a|x) - p(a|x')|."""
    grids = [partition.lines(column) for column in table.T]
    outer, size, inner = grids[0].shape
    best, lines = (-1.0, 0, 0, 0), max(1, BLOCK // (inner * size))
    for start in range(0, outer, lines):
        for places in blocks(inner):
            columns = [grid[start : start + lines, :, places] for grid in grids]
            for first in range(size - 1):
                apart = reduce(np.add, (abs(each[:, first + 1 :] - each[:, first : first + 1]) for each in columns))
                place = int(apart.argmax())
                if apart.ravel()[place] > 2 * best[0]:
                    line, level, within = np.unravel_index(place, apart.shape)
                    clique = (start + int(line)) * inner + places.start + int(within)
                    best = (float(apart.ravel()[place]) / 2, clique, first, first + 1 + int(level))
    value, clique, first, second = best
    members = partition.members(clique)
    return Difference(value, int(members[first]), int(members[second]))

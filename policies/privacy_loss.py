"""The exact privacy loss of a table of action probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import Adjacency, Difference, largest_difference, require_adjacency
from policies.arrays import FloatArray, probability_table
from policies.html_table import html_table
from policies.sensitivity import Witness


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
        p(a|x); rows sum to 1 within 1e-9. An action that no member of a clique ever gets reveals nothing there.
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
    with np.errstate(divide="ignore"):
        return privacy_loss_of_logs(np.log(table), adjacency)


def privacy_loss_of_logs(log_probabilities: FloatArray, adjacency: Adjacency) -> PrivacyLoss:
    """`privacy_loss` from log p(a|x), (n_records, n_actions), where -inf stands for a probability of 0."""
    best, best_action = Difference(-1.0, 0, 0), 0
    for action in range(log_probabilities.shape[1]):
        found = largest_difference(log_probabilities[:, action], adjacency)
        if found.value > best.value:
            best, best_action = found, action
    return PrivacyLoss(best.value, Witness(best.record, best.neighbour, (best_action,)))

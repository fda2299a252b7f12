"""LoggedData: who got what, with which probability, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LoggedData:
    """A log as arrays, already checked (`log_frame.read_log_frame` does).

    Attributes
    ----------
    actions : array, (n_rows,)
        The position, among `names`, of the action that was taken.
    rewards : array, (n_rows,)
        What came of it, in the reward's own unit; more is better.
    propensities : array, (n_rows,)
        The probability, > 0 and <= 1, with which the logging policy took that action for that patient.
    names : tuple of str
        The k actions, in the order of the columns of every policy.
    """

    actions: IntArray
    rewards: FloatArray
    propensities: FloatArray
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.actions)

    @property
    def n_actions(self) -> int:
        """Number of actions, k."""
        return len(self.names)

    def of_taken(self, table: FloatArray) -> FloatArray:
        """The entry of each row's own action: (n_rows, k) -> (n_rows,)."""
        taken: FloatArray = table[np.arange(self.n_rows), self.actions]
        return taken

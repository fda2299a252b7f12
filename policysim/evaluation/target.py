"""What is evaluated: actions, and their probabilities for the rows of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from policies.arrays import FloatArray
from policysim.logs.reading import LogTable

# What pandas may write into a Parquet file beside the columns.
PANDAS_INDEX = "__index_level_"


@dataclass(frozen=True)
class Exact:
    """What a policy is worth under a scenario's model.

    Attributes
    ----------
    value : float
        Per patient.
    spread : float
        How far two patients' rewards can be apart at most.
    """

    value: float
    spread: float


class Target(Protocol):
    """A policy to evaluate."""

    @property
    def title(self) -> str:
        """What it is, in words."""

    @property
    def privacy(self) -> str:
        """What is known of its privacy loss, in a sentence."""

    @property
    def actions(self) -> tuple[str, ...]:
        """In the order of its columns."""

    @property
    def exact(self) -> Exact | None:
        """Its exact value, where that is known."""

    def probabilities(self, table: LogTable) -> FloatArray:
        """p(a|x) for each row of a log, (n_rows, n_actions); ValueError lists rows that it does not cover."""

"""Channel: how one value becomes a report that is safe to hand over, and what that reveals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray

# (n,) report codes, or (n, k) bits.
Reports: TypeAlias = NDArray[np.integer[Any]]
Words: TypeAlias = NDArray[np.uint64]


class Channel(ABC):
    """A local mechanism: each person's value 0..k-1 is randomised before anybody else sees it.

    Every channel here is a *pure* protocol (Wang et al. 2017): a report counts for some of the values, and counts for
    v with one probability if v is the person's value and with another, the same for all other values, if it is not.
    That is all that estimation from counts needs.

    Attributes
    ----------
    n_values : int
        k, the number of values, >= 2.
    epsilon : float
        The exact privacy loss: max over values v, v' and reports r of log p(r|v) / p(r|v').
    matrix : array, (n_values, n_reports)
        p(report | value), read-only; rows sum to 1.
    lie : array, (n_values,)
        P(a report counts for v | the value is another one): q* in the reference.
    gap : array, (n_values,)
        P(a report counts for v | the value is v) - lie: p* - q*, without cancellation.
    parameters : dict
        What the channel can be made of again, in JSON's types.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, definition 1.
    """

    name: ClassVar[str]
    n_values: int
    epsilon: float

    @property
    @abstractmethod
    def matrix(self) -> FloatArray:
        """p(report | value)."""

    @property
    @abstractmethod
    def lie(self) -> FloatArray:
        """P(a report counts for v | the value is another one)."""

    @property
    @abstractmethod
    def gap(self) -> FloatArray:
        """P(a report counts for v | the value is v) - lie."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What the channel can be made of again."""

    @property
    def words(self) -> int:
        """How many random words one report takes."""
        return 1

    @abstractmethod
    def report(self, values: IntArray, words: Words) -> Reports:
        """The reports of (m,) values for (m * self.words,) words that are uniform on 0..TOTAL - 1."""

    def count(self, reports: Reports) -> IntArray:
        """How many reports count for each value, (k,)."""
        return np.bincount(reports, minlength=self.n_values)

    @abstractmethod
    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """What `count` gives when the same people report again and again, (runs, k); `counts` (k,) are the true ones.

        A run is drawn as a whole: its cost does not depend on the number of people. Simulation only.
        """

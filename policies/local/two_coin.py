"""Two-coin randomised response: a yes-or-no question, two coins, and a reason not to be ashamed of the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policies.arrays import FloatArray, IntArray, read_only
from policies.local.channel import Channel, Reports, Words
from policies.local.parameters import TOTAL, ceil, exp_floor, probability, require_order


@dataclass(frozen=True)
class TwoCoin(Channel):
    """Heads of the first coin: the truth. Tails: whatever the second coin says.

    The loss is log(1 + first / ((1 - first) min(second, 1 - second))): ln 3 for fair coins, 0 if the truth is never
    told, infinite if a report can be a confession (first = 1, or a second coin that always falls on the same side).
    With r the rate of reports 1, the share of ones is (r - (1 - first) second) / first: 2 r - 1/2 for fair coins.

    Parameters
    ----------
    first : float
        Probability that the first coin asks for the truth, in [0, 1].
    second : float
        Probability that the second coin answers 1, in [0, 1].

    Raises
    ------
    ValueError
        For a probability outside [0, 1].

    References
    ----------
    Warner (1965), Randomized response: a survey technique for eliminating evasive answer bias.
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, section 3.2: fair coins, ln 3.

    Examples
    --------
    >>> TwoCoin().matrix
    array([[0.75, 0.25],
           [0.25, 0.75]])
    >>> round(TwoCoin().epsilon, 6), round(math.log(3), 6)
    (1.098612, 1.098612)
    """

    first: float = 0.5
    second: float = 0.5
    n_values: int = field(default=2, init=False, repr=False)
    epsilon: float = field(init=False, repr=False)
    name = "two-coin"

    def __post_init__(self) -> None:
        """Check the coins; the loss comes from the less likely side of the second one."""
        object.__setattr__(self, "first", probability(self.first, "first"))
        object.__setattr__(self, "second", probability(self.second, "second"))
        least = (1 - self.first) * min(self.second, 1 - self.second)
        told = math.inf if least == 0 else float(np.log1p(self.first / least))
        object.__setattr__(self, "epsilon", told if self.first > 0 else 0.0)

    @classmethod
    def truth_or_opposite(cls, first: float = 0.5, second: float = 0.5) -> TwoCoin:
        """The variant in which tails of the second coin asks for the opposite of the truth.

        Heads of the first coin: the truth; tails: heads of the second the truth, tails the opposite. The truth is told
        with probability t = first + (1 - first) second whatever it is, as by a first coin of bias 2 t - 1 and a fair
        second one. With fair coins the two ways to answer are the same channel.

        Parameters
        ----------
        first, second : float
            Probabilities of heads, in [0, 1].

        Raises
        ------
        ValueError
            If lies would be likelier than the truth: swap the two answers instead.

        Examples
        --------
        >>> TwoCoin.truth_or_opposite()
        TwoCoin(first=0.5, second=0.5)
        """
        first, second = probability(first, "first"), probability(second, "second")
        # 2 t - 1, of terms that are exact for coins such as 1/2, 1/4, ...
        bias = first - (1 - first) * (1 - 2 * second)
        if bias < 0:
            raise ValueError(f"the truth must be told at least half the time, got first={first!r}, second={second!r}.")
        return cls(bias, 0.5)

    @property
    def parameters(self) -> dict[str, Any]:
        """The two biases."""
        return {"first": self.first, "second": self.second}

    @property
    def lie(self) -> FloatArray:
        """P(report v | the other value)."""
        return (1 - self.first) * np.array([1 - self.second, self.second])

    @property
    def gap(self) -> FloatArray:
        """The first coin's bias."""
        return np.full(2, self.first)

    @cached_property
    def matrix(self) -> FloatArray:
        """p(report | value), (2, 2)."""
        return read_only(self.first * np.eye(2) + self.lie)

    @cached_property
    def weights(self) -> tuple[int, int]:
        """The probabilities of reporting 1 for the values 0 and 1, times TOTAL; loss at most epsilon, exactly."""
        first, second = Fraction(self.first), Fraction(self.second)
        low = ceil(TOTAL * (1 - first) * second)
        high = TOTAL * (first + (1 - first) * second) // 1
        if 0 < self.epsilon < math.inf:
            # epsilon is a rounded logarithm: raise p(1|0), then lower p(1|1), until both reports keep to it.
            ratio = exp_floor(self.epsilon)
            low = max(low, ceil(high / ratio))
            high = min(high, TOTAL - ceil((TOTAL - low) / ratio))
            require_order(high, low, self.epsilon)
        return low, high

    def report(self, values: IntArray, words: Words) -> Reports:
        """1 if the word is below the threshold of the value."""
        return (words < np.array(self.weights, dtype=np.uint64)[values]).astype(np.intp)

    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """Two binomial draws for each run."""
        ones = rng.binomial(counts, self.matrix[:, 1], size=(runs, 2)).sum(axis=1)
        return np.stack([counts.sum() - ones, ones], axis=1)

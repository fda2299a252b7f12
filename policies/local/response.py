"""Randomised response: to a yes-or-no question with two coins, among k categories, and by unary encoding.

In unary encoding a value becomes k bits, one of which is set, and every bit is randomised on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray, IntArray, positive, read_only
from policies.local.channel import Channel, Reports, at_least, probability


@dataclass(frozen=True)
class TwoCoin(Channel):
    """Heads of the first coin: the truth. Tails: whatever the second coin says.

    The loss is log(1 + first / ((1 - first) min(second, 1 - second))): ln 3 for fair coins, 0 if no report is
    true, infinite if a report can be a confession (first = 1, or a second coin that always falls on the same side).
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
        loss = math.inf if least == 0 else float(np.log1p(self.first / least))
        object.__setattr__(self, "epsilon", loss if self.first > 0 else 0.0)

    @classmethod
    def truth_or_opposite(cls, first: float = 0.5, second: float = 0.5) -> TwoCoin:
        """The variant in which tails of the second coin asks for the opposite of the truth.

        Heads of the first coin: the truth; tails: heads of the second the truth, tails the opposite. A report is
        true with probability t = first + (1 - first) second whatever it is, as by a first coin of bias 2 t - 1 and a
        fair second one. With fair coins the two ways to answer are the same channel.

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
            raise ValueError(f"reports must be true at least half the time, got first={first!r}, second={second!r}.")
        return cls(bias, 0.5)

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

    def report(self, values: IntArray, uniforms: FloatArray) -> Reports:
        """1 if the random number is below the probability of the value."""
        chances: FloatArray = self.matrix[:, 1]
        return (uniforms < chances[values]).astype(np.intp)

    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """Two binomial draws for each run."""
        ones = rng.binomial(counts, self.matrix[:, 1], size=(runs, 2)).sum(axis=1)
        return np.stack([counts.sum() - ones, ones], axis=1)


@dataclass(frozen=True)
class KAry(Channel):
    """The truth with probability p = e^epsilon / (e^epsilon + k - 1), each other category with q = (1 - p) / (k - 1).

    Nothing is ever built of size (people, k) or, but for `matrix`, (k, k).

    Parameters
    ----------
    n_values : int
        k, >= 2.
    epsilon : float
        The privacy loss, > 0 and finite; it is attained.

    Raises
    ------
    ValueError
        For fewer than two categories or an epsilon that is not > 0 and finite.

    References
    ----------
    Kairouz, Oh & Viswanath (2016), Extremal mechanisms for local differential privacy, equation 17.

    Examples
    --------
    >>> KAry(4, 1.0).matrix[0].round(4)
    array([0.4754, 0.1749, 0.1749, 0.1749])
    """

    n_values: int
    epsilon: float
    name = "k-ary"

    def __post_init__(self) -> None:
        """Check both."""
        object.__setattr__(self, "n_values", at_least(self.n_values, "n_values", 2))
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    @classmethod
    def joint(cls, sizes: Sequence[int], epsilon: float) -> KAry:
        """One answer about several columns at once: the value is the code of the combination, in C order.

        Parameters
        ----------
        sizes : sequence of int
            Levels of each column, >= 2. The code is ``np.ravel_multi_index(levels, sizes)``.
        epsilon : float
            The privacy loss of all columns together.

        Raises
        ------
        ValueError
            For no column, or a column with fewer than two levels.

        Examples
        --------
        >>> KAry.joint((2, 5), 1.0)
        KAry(n_values=10, epsilon=1.0)
        """
        if not len(sizes):
            raise ValueError(f"sizes must name the levels of at least one column, got sizes={tuple(sizes)!r}.")
        return cls(math.prod(at_least(size, f"sizes[{i}]", 2) for i, size in enumerate(sizes)), epsilon)

    @property
    def truth(self) -> float:
        """p, the probability of a true report."""
        return 1 / (1 + (self.n_values - 1) * math.exp(-self.epsilon))

    @property
    def lie(self) -> FloatArray:
        """q, for every category."""
        return np.full(self.n_values, math.exp(-self.epsilon) * self.truth)

    @property
    def gap(self) -> FloatArray:
        """p - q = p (1 - e^-epsilon), for every category."""
        return np.full(self.n_values, -math.expm1(-self.epsilon) * self.truth)

    @cached_property
    def matrix(self) -> FloatArray:
        """p(report | value), (k, k)."""
        matrix = np.full((self.n_values, self.n_values), self.lie[0])
        np.fill_diagonal(matrix, self.truth)
        return read_only(matrix)

    def report(self, values: IntArray, uniforms: FloatArray) -> Reports:
        """Numbers below (k - 1) q are k - 1 equal parts, one for each other category; the rest is the truth."""
        # Random numbers have 53 bits: no smaller q would ever be seen.
        part = np.minimum(uniforms / max(float(self.lie[0]), 2.0**-60), self.n_values - 1).astype(np.intp)
        return np.where(part < self.n_values - 1, part + (part >= values), values)

    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """With probability p - q a value stays, else it is drawn anew from all k."""
        stayed = rng.binomial(counts, self.gap[0], size=(runs, self.n_values))
        redrawn = rng.multinomial(counts.sum() - stayed.sum(axis=1), np.full(self.n_values, 1 / self.n_values))
        return stayed + redrawn


# A matrix of 2^k reports is for looking at; beyond this it would only fill memory.
LARGEST_MATRIX = 16


@dataclass(frozen=True)
class Unary(Channel):
    """The report is k bits: the value's own bit is 1 with probability p, each other one with probability q.

    The loss is log(p (1 - q) / (q (1 - p))) = epsilon: two values differ in two bits. *Optimized* unary encoding has
    p = 1/2 and q = 1 / (e^epsilon + 1), which gives the estimates of least variance; *symmetric* has p + q = 1, with
    epsilon / 2 for each bit (basic one-time RAPPOR). The variance of k-ary response grows with k and theirs does not:
    from k > 3 e^epsilon + 2 on, the optimized encoding has less.

    Parameters
    ----------
    n_values : int
        k, >= 2.
    epsilon : float
        The privacy loss, > 0 and finite; it is attained.
    optimized : bool
        Optimized (True) or symmetric (False).

    Raises
    ------
    ValueError
        For fewer than two categories or an epsilon that is not > 0 and finite.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, sections 4.3, 5.
    Erlingsson, Pihur & Korolova (2014), RAPPOR, section 2.

    Examples
    --------
    >>> Unary(2, np.log(3)).matrix.round(3)  # reports 00, 01, 10, 11
    array([[0.375, 0.125, 0.375, 0.125],
           [0.375, 0.375, 0.125, 0.125]])
    """

    n_values: int
    epsilon: float
    optimized: bool = True
    name = "unary"

    def __post_init__(self) -> None:
        """Check all three."""
        object.__setattr__(self, "n_values", at_least(self.n_values, "n_values", 2))
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        if not isinstance(self.optimized, bool):
            raise ValueError(f"optimized must be True or False, got optimized={self.optimized!r}.")

    @property
    def lie(self) -> FloatArray:
        """q, for every bit."""
        odds = math.exp(-self.epsilon if self.optimized else -self.epsilon / 2)
        return np.full(self.n_values, odds / (1 + odds))

    @property
    def gap(self) -> FloatArray:
        """p - q, for every bit."""
        gap = math.tanh(self.epsilon / 2) / 2 if self.optimized else math.tanh(self.epsilon / 4)
        return np.full(self.n_values, gap)

    @cached_property
    def matrix(self) -> FloatArray:
        """p(report | value), (k, 2^k); report r has the bits of the number r, category 0's the highest.

        Raises
        ------
        ValueError
            For more than 16 categories.
        """
        k = self.n_values
        if k > LARGEST_MATRIX:
            raise ValueError(f"the matrix has 2^k columns: n_values must be <= {LARGEST_MATRIX}, got n_values={k}.")
        bits = np.arange(2**k) >> np.arange(k)[::-1, None] & 1  # (k, 2^k)
        lie = self.lie[0]
        others = np.where(bits, lie, 1 - lie)
        own = np.where(bits, lie + self.gap[0], 1 - lie - self.gap[0])
        return read_only(np.stack([own[v] * np.delete(others, v, axis=0).prod(axis=0) for v in range(k)]))

    @property
    def words(self) -> int:
        """One for each bit."""
        return self.n_values

    def report(self, values: IntArray, uniforms: FloatArray) -> Reports:
        """(m, k) bits; each is 1 if its random number is below its probability."""
        uniforms = uniforms.reshape(-1, self.n_values)
        bits = (uniforms < self.lie).astype(np.uint8)
        people = np.arange(len(values))
        bits[people, values] = uniforms[people, values] < self.lie[0] + self.gap[0]
        return bits

    def count(self, reports: Reports) -> IntArray:
        """How often each bit is set, (k,)."""
        counts: IntArray = reports.sum(axis=0, dtype=np.intp)
        return counts

    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """Two binomial draws for each bit and run."""
        size = (runs, self.n_values)
        own = rng.binomial(counts, self.lie + self.gap, size=size)
        return own + rng.binomial(counts.sum() - counts, self.lie, size=size)

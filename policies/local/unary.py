"""Unary encoding: a value becomes k bits, one of which is set, and every bit is randomised on its own.

Maximum likelihood from whole unary reports: the counts of the bits alone do not determine it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, IntArray, read_only
from policies.local.channel import Channel, Reports, Words, count_reports
from policies.local.estimation import Estimate, checked_counts, spread
from policies.local.likelihood import expectation_maximization
from policies.local.parameters import TOTAL, at_least, ceil, exp_floor, inner_probability, local_epsilon, require_order

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
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        if not isinstance(self.optimized, bool):
            raise ValueError(f"optimized must be True or False, got optimized={self.optimized!r}.")

    @property
    def parameters(self) -> dict[str, Any]:
        """k, epsilon and which of the two encodings."""
        return {"n_values": self.n_values, "epsilon": self.epsilon, "optimized": self.optimized}

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

    @cached_property
    def weights(self) -> tuple[int, int]:
        """(own, other): p and q times TOTAL; the loss is at most epsilon, exactly."""
        # (TOTAL - other) / other <= ratio; symmetric: its square <= e^epsilon.
        other = ceil(TOTAL / (exp_floor(self.epsilon, halves=0 if self.optimized else 1) + 1))
        own = TOTAL // 2 if self.optimized else TOTAL - other
        require_order(own, other, self.epsilon)
        return own, other

    @property
    def words(self) -> int:
        """A word for each bit."""
        return self.n_values

    def report(self, values: IntArray, words: Words) -> Reports:
        """(m, k) bits; each is 1 if its word is below its threshold."""
        own, other = (np.uint64(weight) for weight in self.weights)
        words = words.reshape(-1, self.n_values)
        bits = (words < other).astype(np.uint8)
        people = np.arange(len(values))
        bits[people, values] = words[people, values] < own
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


def estimate_bits(reports: ArrayLike, channel: Unary, *, confidence: float = 0.95, sampled: bool = False) -> Estimate:
    """Estimate the shares of the true values from whole unary reports, by maximum likelihood.

    A report is e^epsilon times as likely for a value whose bit is set as for one whose bit is not; equal reports are
    counted once. It takes memory for (distinct reports, k) numbers and many passes over them: for many reports and
    categories, `estimate` with "projected" needs the counts of the bits only.

    Parameters
    ----------
    reports : array, (n, k) of 0 and 1
        As `privatize` gives them.
    channel : Unary
        How the reports were made.
    confidence, sampled
        As for `estimate`; standard errors and intervals are those of the unbiased estimate.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        For reports that are not (n, k) bits, or none; if EM does not converge.

    Examples
    --------
    >>> estimate_bits([[1, 0], [1, 0], [0, 1], [1, 1]], Unary(2, 2.0)).shares.round(3)
    array([0.719, 0.281])
    """
    bits = np.asarray(reports)
    counts = count_reports(bits, channel)
    counts, n = checked_counts(counts, channel, len(bits))
    level = inner_probability(confidence, "confidence")
    errors, interval = spread(counts / n, channel, n, level, sampled=sampled)
    distinct, times = np.unique(bits, axis=0, return_counts=True)
    likelihood = np.where(distinct, 1.0, np.exp(-channel.epsilon))
    shares = expectation_maximization(times, likelihood)
    return Estimate(shares, errors, np.clip(interval, 0, 1), n, "maximum-likelihood")

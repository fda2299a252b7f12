"""k-ary randomised response: the true category most of the time, any other one otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from policies.arrays import FloatArray, IntArray, read_only
from policies.local.channel import Channel, Reports, Words
from policies.local.parameters import TOTAL, at_least, ceil, exp_floor, inner_probability, local_epsilon, require_order


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
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))

    @classmethod
    def from_truth_share(cls, n_values: int, truth_share: float) -> KAry:
        """The truth with probability `truth_share`, else any of all k at random: epsilon = ln(1 + k s / (1 - s)).

        Parameters
        ----------
        n_values : int
            k, >= 2.
        truth_share : float
            s, > 0 and < 1.

        Raises
        ------
        ValueError
            For a share that tells nothing (0) or everything (1).

        Examples
        --------
        >>> round(KAry.from_truth_share(2, 0.5).epsilon, 6), round(math.log(3), 6)
        (1.098612, 1.098612)
        """
        n_values, share = at_least(n_values, "n_values", 2), inner_probability(truth_share, "truth_share")
        return cls(n_values, float(np.log1p(n_values * share / (1 - share))))

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
    def parameters(self) -> dict[str, Any]:
        """k and epsilon."""
        return {"n_values": self.n_values, "epsilon": self.epsilon}

    @property
    def truth(self) -> float:
        """p, the probability to tell the truth."""
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

    @cached_property
    def weights(self) -> tuple[int, int]:
        """(truth, lie): p and q times TOTAL, with truth + (k - 1) lie = TOTAL and a loss of at most epsilon, exactly.

        Raises
        ------
        ValueError
            For an epsilon so small (about k^2 / TOTAL) that whole numbers cannot keep to it.
        """
        ratio = exp_floor(self.epsilon)
        # truth <= ratio * lie with truth = TOTAL - (k - 1) lie.
        lie = ceil(TOTAL / (ratio + self.n_values - 1))
        truth = TOTAL - (self.n_values - 1) * lie
        require_order(truth, lie, self.epsilon)
        return truth, lie

    def report(self, values: IntArray, words: Words) -> Reports:
        """Words below (k - 1) lie are k - 1 equal parts, one for each other category; the rest is the truth."""
        part = (words // np.uint64(self.weights[1])).astype(np.intp)
        other = part + (part >= values)
        return np.where(part < self.n_values - 1, other, values)

    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """With probability p - q a value stays, else it is drawn anew from all k."""
        stayed = rng.binomial(counts, self.gap[0], size=(runs, self.n_values))
        redrawn = rng.multinomial(counts.sum() - stayed.sum(axis=1), np.full(self.n_values, 1 / self.n_values))
        return stayed + redrawn

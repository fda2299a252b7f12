"""Exact probabilities: of what a private choice from counts gives, what it reveals, and what a single run may show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from policies.arrays import FloatArray, IntArray
from policies.selection import select

CONFIDENCE = 0.95
# Probabilities that differ by less are equal but for rounding (the factor of scipy.stats.binomtest).
EQUAL = 1 + 1e-7
REPLACE_ONE, ADD_OR_REMOVE = "replace-one", "add-or-remove-one"

# From counts (k,) to the probabilities of the candidates (k,).
Choice = Callable[[IntArray], FloatArray]


def choice(epsilon: float, sensitivity: float, *, divisor: float = 1, **how: Any) -> Choice:
    """One candidate chosen privately, where scores are counts / divisor: see `policies.selection.select`."""
    return lambda counts: select(counts / divisor, epsilon=epsilon, sensitivity=sensitivity, **how).probabilities


@dataclass(frozen=True)
class SingleRun:
    """What to expect of a number that one run gives."""

    expected: float
    band: tuple[float, float]  # each end has at most 2.5 % beyond it
    chance: float | None = None  # of a number that is as unlikely as the one seen, or more


def binomial_run(seen: int, *parts: tuple[int, float]) -> SingleRun:
    """`seen` of independent draws: each part has so many, with one probability.

    The counts of two parts are convolved by FFT, whose error of about 1e-17 is far below the tails that count.

    Examples
    --------
    >>> found = binomial_run(40, (100, 0.5))
    >>> found.band, round(found.chance, 4)
    ((40.0, 60.0), 0.0569)
    """
    chances = reduce(fftconvolve, [binom.pmf(np.arange(n + 1), n, p) for n, p in parts]).clip(min=0)
    tail, below = (1 - CONFIDENCE) / 2, np.cumsum(chances)
    low, high = (float(np.searchsorted(below, level)) for level in (tail, 1 - tail))
    unlikely = chances <= chances[seen] * EQUAL
    return SingleRun(float(np.arange(len(chances)) @ chances), (low, high), min(1.0, float(chances[unlikely].sum())))


def neighbours(counts: IntArray, adjacency: str) -> list[IntArray]:
    """The tables that one person makes of this one: by another value, or by coming or going."""
    one = np.eye(len(counts), dtype=np.intp)
    taken, values = np.flatnonzero(counts), range(len(counts))
    if adjacency == REPLACE_ONE:
        return [counts - one[i] + one[j] for i in taken for j in values if j != i]
    return [*(counts + one[j] for j in values), *(counts - one[i] for i in taken)]


def loss_at(counts: IntArray, choice: Choice, adjacency: str) -> float:
    """max over the neighbours of one table, and over candidates, of |log p - log p'|."""
    here = np.log(choice(counts))
    return max(float(np.abs(np.log(choice(other)) - here).max()) for other in neighbours(counts, adjacency))


def largest_loss(people: int, candidates: int, choice: Choice, adjacency: str) -> float:
    """The exact privacy loss over all tables of this many people, for a choice that grows with exp(count / s).

    It is attained where everybody has one value: the person who leaves it for another one then changes that other
    candidate's weight while the sum of all weights moves as much as it can, the other way.
    """
    return loss_at(people * np.eye(candidates, dtype=np.intp)[0], choice, adjacency)

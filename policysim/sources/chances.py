"""Exact probabilities: what a single run may show, and what a private choice from counts gives and reveals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom, binomtest

from policies.arrays import FloatArray, IntArray
from policies.selection import select

CONFIDENCE = 0.95
# Probabilities that differ by less are equal but for rounding (the factor of scipy.stats.binomtest).
EQUAL = 1 + 1e-7
MOST_CANDIDATES = 500
REPLACE_ONE, ADD_OR_REMOVE = "replace-one", "add-or-remove-one"

# From counts (k,) to the probabilities of the candidates (k,).
Choice = Callable[[IntArray], FloatArray]


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


def choice(divisor: float, **how: Any) -> Choice:
    """One candidate, by `policies.selection.select`, where scores are counts / divisor; proportions if that is 0."""
    return lambda counts: select(counts / (divisor or counts.sum()), **how).probabilities


def neighbouring_tables(counts: IntArray, adjacency: str) -> list[IntArray]:
    """The tables that one person makes of this one: by another value, or by coming or going."""
    one = np.eye(len(counts), dtype=np.intp)
    taken, values = np.flatnonzero(counts), range(len(counts))
    if adjacency == REPLACE_ONE:
        return [counts - one[i] + one[j] for i in taken for j in values if j != i]
    return [*(counts + one[j] for j in values), *(counts - one[i] for i in taken)]


def loss_at(counts: IntArray, choice: Choice, adjacency: str) -> float:
    """max over the neighbours of one table, and over candidates, of |log p - log p'|."""
    here = np.log(choice(counts))
    return max(float(np.abs(np.log(choice(other)) - here).max()) for other in neighbouring_tables(counts, adjacency))


def largest_loss(people: int, candidates: int, choice: Choice, adjacency: str) -> float:
    """The exact privacy loss over all tables of this many people, for a choice that grows with exp(count / s).

    It is attained where everybody has one value: the person who leaves it for another one then changes that other
    candidate's weight while the sum of all weights moves as much as it can, the other way.
    """
    return loss_at(people * np.eye(candidates, dtype=np.intp)[0], choice, adjacency)


class Larger(NamedTuple):
    """All that a source tells of a table.

    With the largest count L and the others c_j, the mechanism is right with probability
    1 / (1 + sum_j exp(-epsilon (L - c_j) / 2)). Given how many candidates there are (m, public) and the count of the
    runner-up, the sum is convex in the other counts: it is largest where as many as possible of them equal the
    runner-up, and least where one does and the rest are equal. So the probabilities that are possible are exact.
    """

    people: int  # all
    largest: int  # those of the largest candidate
    epsilon: float
    runs: int  # draws
    right: int  # those of the largest candidate
    where: str = ""  # where the source has this

    @property
    def others(self) -> int:
        """People outside the largest candidate."""
        return self.people - self.largest


def chance_range(larger: Larger, candidates: int, gap: int) -> tuple[float, float] | None:
    """The least and the largest probability of the right answer, over all tables; None if there is no such table.

    Of `candidates` in all (>= 3), whose runner-up has `gap` people fewer than the largest.
    """
    runner_up, rest = larger.largest - gap, larger.others - (larger.largest - gap)
    if not 0 <= rest <= (candidates - 2) * runner_up:
        return None
    whole, left = divmod(larger.others, runner_up)
    most = np.zeros(candidates - 1)
    most[:whole] = runner_up
    most[whole : whole + 1] = left
    equal, more = divmod(rest, candidates - 2)
    least = np.array([runner_up, *[equal + 1] * more, *[equal] * (candidates - 2 - more)])
    first, second = (
        1 / (1 + np.exp(-larger.epsilon / 2 * (larger.largest - counts)).sum()) for counts in (most, least)
    )
    return float(first), float(second)


def agreeing_gaps(larger: Larger, candidates: int) -> tuple[int, int] | None:
    """The least and the largest gap to the runner-up that agree with what was drawn; None if no table does.

    They do within the exact 95 % interval of the share that was drawn (Clopper & Pearson 1934).
    """
    interval = binomtest(larger.right, larger.runs).proportion_ci(CONFIDENCE)
    ranges = {gap: chance_range(larger, candidates, gap) for gap in range(larger.largest)}
    gaps = [
        gap for gap, range_ in ranges.items() if range_ and range_[1] >= interval.low and range_[0] <= interval.high
    ]
    return (gaps[0], gaps[-1]) if gaps else None


def fewest_candidates(larger: Larger) -> int:
    """With fewer of them, no table agrees with what was drawn: the others would be too close.

    ValueError if no table of up to 500 candidates does.
    """
    for candidates in range(3, MOST_CANDIDATES + 1):
        if agreeing_gaps(larger, candidates) is not None:
            return candidates
    raise ValueError(
        f"no table of up to {MOST_CANDIDATES} candidates agrees with {larger.right} right of {larger.runs} draws"
    )

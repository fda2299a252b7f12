"""Where a single run of a mechanism lies, exactly: a random figure of a source is checked for plausibility."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from policies.arrays import FloatArray

CONFIDENCE = 0.95
# Probabilities that differ by less are equal but for rounding (the factor of scipy.stats.binomtest).
EQUAL = 1 + 1e-7


@dataclass(frozen=True)
class SingleRun:
    """What to expect of a count that one run gives.

    Attributes
    ----------
    expected : float
        Its mean.
    band : tuple of float
        (low, high): each end has at most 2.5 % beyond it.
    chance : float
        Probability of a count that is as unlikely as the one seen, or more.
    """

    expected: float
    band: tuple[float, float]
    chance: float


def binomial_run(runs: int, probability: float, seen: int) -> SingleRun:
    """`seen` of `runs` independent draws, each with this probability.

    Examples
    --------
    >>> found = binomial_run(100, 0.5, 40)
    >>> found.band, round(found.chance, 4)
    ((40.0, 60.0), 0.0569)
    """
    return _single_run(binom.pmf(np.arange(runs + 1), runs, probability), seen)


def report_run(truthful: int, truth: float, others: int, lie: float, seen: int) -> SingleRun:
    """`seen` reports of a value that `truthful` people have and report with probability `truth`, `others` with `lie`.

    The two binomial counts are convolved by FFT, whose error of about 1e-17 is far below the tails that count.
    """
    own, foreign = (binom.pmf(np.arange(n + 1), n, p) for n, p in ((truthful, truth), (others, lie)))
    return _single_run(np.maximum(fftconvolve(own, foreign), 0), seen)


def _single_run(probabilities: FloatArray, seen: int) -> SingleRun:
    """From the probabilities of the counts 0, 1, ..."""
    tail = (1 - CONFIDENCE) / 2
    below = np.cumsum(probabilities)
    low, high = (float(np.searchsorted(below, level)) for level in (tail, 1 - tail))
    unlikely = probabilities <= probabilities[seen] * EQUAL
    expected = float(np.arange(len(probabilities)) @ probabilities)
    return SingleRun(expected, (low, high), min(1.0, float(probabilities[unlikely].sum())))

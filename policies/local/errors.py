"""How far estimates will be from the true counts, before any report is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import IntArray
from policies.local.channel import Channel
from policies.local.estimation import shares_of, variances
from policies.local.parameters import at_least, inner_probability, whole_counts

# Numbers simulated at a time.
CELLS = 1 << 22


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected errors of the unbiased estimate of counts, in people.

    Attributes
    ----------
    l1 : float
        Expected sum of |estimated count - true count|, for normally distributed errors.
    l2 : float
        Root mean square of the Euclidean distance: the square root of the sum of the variances, exactly.
    """

    l1: float
    l2: float


@dataclass(frozen=True)
class ErrorBands:
    """Where the errors of a single run lie, in people: (low, high) with equal chances to be below and above.

    Attributes
    ----------
    l1 : tuple of float
        For the sum of |estimated count - true count|.
    l2 : tuple of float
        For the Euclidean distance.
    """

    l1: tuple[float, float]
    l2: tuple[float, float]


def expected_errors(counts: ArrayLike, channel: Channel) -> ExpectedErrors:
    """Expected L1 and L2 errors of the unbiased estimate, in closed form.

    With s_v the standard deviation of value v's estimated count, L1 = sqrt(2 / pi) sum_v s_v (the mean of |N(0, s)|,
    an approximation that the central limit theorem makes good for more than some hundred reports) and
    L2 = sqrt(sum_v s_v^2). The randomness is the mechanism's; the people are given.

    Parameters
    ----------
    counts : array, (k,)
        How many people have each value.
    channel : Channel
        The mechanism.

    Returns
    -------
    ExpectedErrors

    Raises
    ------
    ValueError
        For counts that are not (k,) whole numbers >= 0, or none; a channel that never tells the truth.

    Examples
    --------
    >>> from policies.local.k_ary import KAry
    >>> errors = expected_errors([8196, 14831, 6499, 15696], KAry(4, 1.0))
    >>> round(errors.l1), round(errors.l2)
    (932, 585)
    """
    true, n = _true_counts(counts, channel)
    deviations = n * np.sqrt(np.maximum(variances(true / n, channel, n), 0))
    return ExpectedErrors(float(np.sqrt(2 / np.pi) * deviations.sum()), float(np.linalg.norm(deviations)))


def error_bands(
    counts: ArrayLike,
    channel: Channel,
    *,
    method: str = "unbiased",
    confidence: float = 0.95,
    runs: int = 20_000,
    rng: np.random.Generator,
) -> ErrorBands:
    """In which band the L1 and L2 errors of one run lie, by simulating many.

    Parameters
    ----------
    counts : array, (k,)
        How many people have each value.
    channel : Channel
        The mechanism.
    method : str
        How a run is estimated; see `estimate`.
    confidence : float
        Share of runs within the band, > 0 and < 1.
    runs : int
        Simulated runs, each drawn as a whole: the cost does not depend on the number of people.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    ErrorBands

    Raises
    ------
    ValueError
        As for `expected_errors`; for an unknown method or fewer than one run.
    """
    true, n = _true_counts(counts, channel)
    tail = (1 - inner_probability(confidence, "confidence")) / 2
    at_least(runs, "runs", 1)
    step = max(1, CELLS // channel.n_values)
    distances = []
    for start in range(0, runs, step):
        seen = channel.simulate_counts(true, runs=min(step, runs - start), rng=rng)
        errors = n * shares_of(seen / n, channel, method) - true
        distances.append(np.stack([np.abs(errors).sum(axis=1), np.linalg.norm(errors, axis=1)]))
    low, high = np.quantile(np.concatenate(distances, axis=1), [tail, 1 - tail], axis=1)
    return ErrorBands((float(low[0]), float(high[0])), (float(low[1]), float(high[1])))


def _true_counts(counts: ArrayLike, channel: Channel) -> tuple[IntArray, int]:
    true = whole_counts(counts, channel.n_values)
    if true.sum() == 0:
        raise ValueError("there must be at least one person, got none.")
    if not channel.gap.min() > 0:
        raise ValueError(f"reports of {channel!r} say nothing about the values.")
    return true, int(true.sum())

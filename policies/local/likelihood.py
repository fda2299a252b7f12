"""Maximum likelihood of the true shares, given what was reported.

The nearest proportions: Euclidean projection onto the probability simplex.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import ROUNDING, FloatArray

# The log-likelihood may be this far below its maximum. Near it, that is half the squared distance from the maximum in
# standard errors: 1e-3 of one.
TOLERANCE = 5e-7

LARGEST_NUMBER_OF_LEAPS = 20_000

# A leap leaves at least this part of a share: a share of 0 could never grow again.
SMALLEST_PART = 1e-3

# The longest leap is so many times longer after one that held, and shorter after one that did not.
GROWTH = 4.0


def most_likely_shares(counts: ArrayLike, lie: FloatArray, gap: FloatArray) -> FloatArray:
    """The maximum in closed form where a report is one value r, with probability lie[r] + gap[r] [r is the value].

    The log-likelihood sum_r c_r log(lie_r + gap f_r) is concave. Where f_r > 0 its slope c_r gap / (lie_r + gap f_r) is
    one constant, so f_r = max(0, c_r / m - lie_r / gap), with the m that makes the shares sum to 1: a value stays in
    while c_r / lie_r > m / gap, so the ones with the largest c_r / lie_r do. Where no unbiased share is negative, all
    stay and the result is the unbiased estimate.

    Parameters
    ----------
    counts : array, (..., k)
        Reports of each value; not all 0.
    lie : array, (k,)
        P(report r | another value).
    gap : array, (k,)
        The same for all values, > 0.

    Returns
    -------
    array, (..., k)
    """
    c: FloatArray = np.asarray(counts, dtype=np.float64)
    odds = lie / gap
    with np.errstate(divide="ignore", invalid="ignore"):
        # A report that only its own value can make (lie = 0) stays if it was made.
        evidence = np.where(odds > 0, c / odds, np.where(c > 0, np.inf, -np.inf))
    order = np.argsort(-evidence, axis=-1, kind="stable")
    levels = np.cumsum(np.take_along_axis(c, order, axis=-1), axis=-1) / (1 + np.cumsum(odds[order], axis=-1))
    kept = np.sum(np.take_along_axis(evidence, order, axis=-1) > levels, axis=-1, keepdims=True)
    shares: FloatArray = np.maximum(c / np.take_along_axis(levels, kept - 1, axis=-1) - odds, 0)
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def expectation_maximization(counts: ArrayLike, likelihood: ArrayLike) -> FloatArray:
    """The shares that make reports most likely, by expectation-maximisation; any channel, any kind of report.

    A step of EM gives every value the share of reports that it is expected to have made. Two of them show where they
    lead, and a leap goes there if that is likelier still (plain steps can be 10^5 at a small epsilon); the likelihood
    never falls. The log-likelihood l is concave, so its maximum is at most l(f) + max_v g_v - n, with
    g_v = sum_r c_r L_rv / (L f)_r its gradient: the result is certified to be within 5e-7 of it.

    Parameters
    ----------
    counts : array, (n_reports,)
        How often each report was made, > 0.
    likelihood : array, (n_reports, k)
        p(report | value), up to a factor for each report; >= 0, no row of zeros.

    Returns
    -------
    array, (k,)
        Proportions.

    Raises
    ------
    ValueError
        For counts or likelihoods that are not of this kind; if 20,000 leaps are not enough.

    References
    ----------
    Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm.
    Varadhan & Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM
    algorithm, scheme S3: the leap.
    Boyd & Vandenberghe (2004), Convex optimization, section 5.5.1: the certificate is a duality gap.

    Examples
    --------
    >>> expectation_maximization([45, 55], [[0.75, 0.25], [0.25, 0.75]]).round(3)
    array([0.4, 0.6])
    """
    c, table = _checked(counts, likelihood)
    n = float(c.sum())
    shares: FloatArray = np.full(table.shape[1], 1 / table.shape[1])
    longest = GROWTH
    for _ in range(LARGEST_NUMBER_OF_LEAPS):
        gradient = table.T @ (c / (table @ shares))
        if gradient.max() - n <= TOLERANCE + ROUNDING * n:
            return shares
        once = shares * gradient / n
        twice = once * (table.T @ (c / (table @ once))) / n
        leap, length = _leap(shares, once, twice, longest)
        if c @ np.log(table @ leap) >= c @ np.log(table @ twice):
            shares, longest = leap, longest * (GROWTH if length == longest else 1)
        else:
            shares, longest = twice, max(longest / GROWTH, GROWTH)
    raise ValueError(f"maximum likelihood did not converge in {LARGEST_NUMBER_OF_LEAPS} leaps.")


def _leap(shares: FloatArray, once: FloatArray, twice: FloatArray, longest: float) -> tuple[FloatArray, float]:
    """Where steps that shrink as the last two did would lead, and its length; `twice` is at length 1."""
    step = once - shares
    turn = twice - once - step
    ratio = float(np.linalg.norm(step)) / max(float(np.linalg.norm(turn)), sys.float_info.min)
    length = min(max(ratio, 1.0), longest)
    leap: FloatArray = np.maximum(shares + 2 * length * step + length**2 * turn, SMALLEST_PART * twice)
    leap /= leap.sum()
    return leap, length


def _checked(counts: ArrayLike, likelihood: ArrayLike) -> tuple[FloatArray, FloatArray]:
    c: FloatArray = np.asarray(counts, dtype=np.float64)
    table: FloatArray = np.asarray(likelihood, dtype=np.float64)
    if c.ndim != 1 or not c.size or not ((c > 0) & np.isfinite(c)).all():
        raise ValueError("counts must be (n_reports,) finite numbers > 0, at least one.")
    if table.ndim != 2 or len(table) != len(c) or not ((table >= 0) & np.isfinite(table)).all():
        raise ValueError(f"likelihood must be ({len(c)}, k) finite numbers >= 0, got shape {table.shape}.")
    if not table.any(axis=1).all():
        raise ValueError(f"report {int(np.argmin(table.any(axis=1)))} is possible for no value.")
    return c, table


def project_onto_simplex(points: ArrayLike) -> FloatArray:
    """The proportions nearest to each point: max(x - t, 0), with the t that makes them sum to 1.

    Parameters
    ----------
    points : array, (..., k)
        Finite numbers.

    Returns
    -------
    array, (..., k)
        >= 0, summing to 1.

    Raises
    ------
    ValueError
        For numbers that are not finite, or none.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer & Chandra (2008), Efficient projections onto the l1-ball, figure 1.
    Wang & Carreira-Perpinan (2013), Projection onto the probability simplex, algorithm 1.

    Examples
    --------
    >>> project_onto_simplex([0.75, 0.5, -0.25])
    array([0.625, 0.375, 0.   ])
    """
    x: FloatArray = np.asarray(points, dtype=np.float64)
    if x.ndim < 1 or x.shape[-1] < 1 or not np.isfinite(x).all():
        raise ValueError(f"points must be (..., k) finite numbers, got {points!r}.")
    x = x - x.max(axis=-1, keepdims=True)  # moving a point along (1, ..., 1) changes nothing, and large ones round less
    falling = -np.sort(-x, axis=-1)
    shifts = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, x.shape[-1] + 1)
    kept = np.sum(falling > shifts, axis=-1, keepdims=True)
    return np.maximum(x - np.take_along_axis(shifts, kept - 1, axis=-1), 0)

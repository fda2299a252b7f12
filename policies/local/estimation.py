"""From reports to the shares of the true values; and how far estimates will be off, before any report is made.

Shares without bias, the nearest proportions (Euclidean projection onto the probability simplex), or maximum likelihood:
in closed form, or from whole unary reports, whose counts of bits alone do not determine it.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, logit

from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.local.channel import Channel, at_least, count_reports, inner_probability, whole_counts
from policies.local.response import Unary

METHODS = ("unbiased", "clipped", "projected", "maximum-likelihood")


@dataclass(frozen=True)
class Estimate:
    """What reports say about the true values.

    Attributes
    ----------
    shares : array, (k,)
        Estimated share of each value. Unbiased ones may be negative, exceed 1 and (unary) not sum to 1.
    standard_errors : array, (k,)
        Of the unbiased estimate.
    interval : array, (k, 2)
        Lower and upper end for each value on its own, within [0, 1], whatever the method: it holds the true share at
        least as often as the confidence says (of 1/2 or more), however rare the value is. The estimate itself may lie
        outside: an unbiased one below 0, or another where many shares are near 0.
    n : int
        Number of reports.
    method : str
        How `shares` was estimated.
    """

    shares: FloatArray
    standard_errors: FloatArray
    interval: FloatArray
    n: int
    method: str


def estimate(
    counts: ArrayLike,
    channel: Channel,
    *,
    n: int | None = None,
    method: str = "unbiased",
    confidence: float = 0.95,
    sampled: bool = False,
) -> Estimate:
    """Estimate the shares of the true values from counts of reports.

    Parameters
    ----------
    counts : array, (k,)
        How many reports count for each value (`count_reports`).
    channel : Channel
        How the reports were made.
    n : int, optional
        The number of reports; needed for unary encoding, else it is the sum of the counts.
    method : str
        "unbiased": (counts / n - lie) / gap. "projected": the nearest proportions. "maximum-likelihood": the
        proportions under which the reports are most likely, equal to the unbiased ones where those are proportions.
        "clipped": each unbiased share cut off at 0 and 1, for comparison only, as it need not sum to 1.
    confidence : float
        Of the interval, > 0 and < 1.
    sampled : bool
        False: the shares are those of the people who reported. True: those of a population that these people are an
        independent sample of, which adds f (1 - f) / n to the variance and makes the interval wider.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        For counts that are not (k,) whole numbers >= 0 or do not fit n; no report at all; a channel that is never
        true; an unknown method; maximum likelihood for unary encoding (`estimate_bits` has it).

    Notes
    -----
    The variance is q (1 - q) / (n d^2) + f (1 - 2 q - d) / (n d) with q = lie, d = gap (Wang et al. 2017, theorem 2).
    It is linear in f, so that the estimated variance is unbiased too.

    The interval is exact. If m of n given people have a value, Bin(m, q + d) + Bin(n - m, q) reports count for it. The
    interval holds each m with which so many reports or more, and so many or fewer, both have a probability above half
    of 1 - confidence. For a sample of a population the reports are one binomial, with q + d f (Clopper & Pearson 1934).
    That interval is valid for given people, too (Hoeffding 1956, theorem 4), if up to some times as wide, and is theirs
    where n times the number of different counts is over 4 * 10^9.

    Fewer reports than n q, which are expected if nobody has the value, can refuse each m by themselves, and would leave
    no interval, or one that chance made narrow. So does the score interval (Wilson 1927): its upper end is then below
    0. The upper end is therefore never below that of n q reports, rounded down, and the lower end never above that of
    n (q + d), rounded up (a power-constrained limit; Cowan et al. 2011). That makes an interval only wider.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation.
    Clopper & Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the binomial.
    Hoeffding (1956), On the distribution of the number of successes in independent trials.
    Wilson (1927), Probable inference, the law of succession, and statistical inference.
    Cowan, Cranmer, Gross & Vitells (2011), Power-constrained limits (arXiv:1105.3166).

    Examples
    --------
    >>> from policies.local.response import TwoCoin
    >>> found = estimate([550, 450], TwoCoin())  # a rate of 0.45 for 1: 2 * 0.45 - 0.5
    >>> found.shares.round(3), found.standard_errors.round(4), found.interval.round(3).tolist()
    (array([0.6, 0.4]), array([0.0274, 0.0274]), [[0.546, 0.654], [0.346, 0.454]])
    """
    checked, total = checked_counts(counts, channel, n)
    shares = shares_of(checked / total, channel, method)
    interval = exact_interval(checked, channel, total, inner_probability(confidence, "confidence"), sampled=sampled)
    return Estimate(shares, standard_errors(checked, channel, total, sampled=sampled), interval, total, method)


def checked_counts(counts: ArrayLike, channel: Channel, n: Any) -> tuple[IntArray, int]:
    """The counts and the number of reports, once they fit each other and the channel."""
    checked = whole_counts(counts, channel.n_values)
    if n is None and channel.words > 1:
        raise ValueError(f"n, the number of reports, is needed for a {channel.name} channel.")
    total = int(checked.sum()) if n is None else at_least(n, "n", 0)
    if channel.words == 1 and checked.sum() != total:
        raise ValueError(f"counts must sum to n, got a sum of {checked.sum()} and n={total}.")
    if total == 0:
        raise ValueError("there must be at least one report, got none.")
    if checked.max() > total:
        raise ValueError(f"counts must be <= n, got counts[{checked.argmax()}]={checked.max()} and n={total}.")
    if not channel.gap.min() > 0:
        raise ValueError(f"reports of {channel!r} say nothing about the values.")
    return checked, total


def shares_of(frequencies: FloatArray, channel: Channel, method: str) -> FloatArray:
    """Estimated shares from frequencies of reports, (..., k) each; one row for each repetition."""
    if method == "maximum-likelihood":
        if channel.words > 1:
            raise ValueError(
                f"maximum likelihood for a {channel.name} channel needs the whole reports: use estimate_bits."
            )
        return most_likely_shares(frequencies, channel.lie, channel.gap)
    unbiased = (frequencies - channel.lie) / channel.gap
    if method == "unbiased":
        return unbiased
    if method == "clipped":
        return np.clip(unbiased, 0, 1)
    if method == "projected":
        return project_onto_simplex(unbiased)
    raise ValueError(f"method must be one of {', '.join(METHODS)}, got method={method!r}.")


def variances(shares: FloatArray, channel: Channel, n: int) -> FloatArray:
    """Var of the unbiased estimate for people whose true shares are these, (k,)."""
    fixed, slope = _variance_line(channel, n)
    return fixed + slope * shares


def standard_errors(counts: IntArray, channel: Channel, n: int, *, sampled: bool) -> FloatArray:
    """Of the unbiased estimate, (..., k)."""
    f = shares_of(counts / n, channel, "unbiased")
    fixed, slope = _variance_line(channel, n)
    variance = fixed + slope * f + (f * (1 - f) / n if sampled else 0.0)
    return np.sqrt(np.maximum(variance, 0))


# Different counts times people; beyond, the exact intervals of given people take ten seconds or more.
LARGEST_INTERVAL = 4 * 10**9

# -log of half the probability that a window of a binomial leaves out, 1e-12.
WINDOW = 28.4


def exact_interval(counts: IntArray, channel: Channel, n: int, confidence: float, *, sampled: bool) -> FloatArray:
    """Of each share, (..., k, 2); see the notes of `estimate`."""
    tail = (1 - confidence) / 2
    # Counts for the upper end: at least what is expected if nobody has the value; for the lower end: at most what is if
    # everybody has it.
    raised = np.maximum(counts, np.floor(n * channel.lie).astype(np.int64))
    capped = np.minimum(counts, np.ceil(n * (channel.lie + channel.gap)).astype(np.int64))
    # Clopper and Pearson's of the share of reports. The ends that a beta distribution lacks are 0 and 1.
    low = np.where(capped == 0, 0.0, betaincinv(np.maximum(capped, 1), n - capped + 1, tail))
    high = np.where(raised == n, 1.0, betaincinv(raised + 1, np.maximum(n - raised, 1), 1 - tail))
    ends = np.stack([low, high], axis=-1)
    interval: FloatArray = np.clip((ends - channel.lie[:, None]) / channel.gap[:, None], 0, 1)
    reports = np.stack(np.broadcast_arrays(capped, raised, channel.lie, channel.gap), axis=-1).reshape(-1, 4)
    distinct, which = np.unique(reports, axis=0, return_inverse=True)
    if sampled or n * len(distinct) > LARGEST_INTERVAL:
        return interval
    people = np.array([_people_interval((low, high), lie, gap, n, tail) for low, high, lie, gap in distinct.tolist()])
    return people[which].reshape(interval.shape) / n


def _people_interval(reports: tuple[float, float], lie: float, gap: float, n: int, tail: float) -> tuple[int, int]:
    """The fewest of n people who may have a value, by one count of its reports, and the most, by another."""
    capped, raised = map(int, reports)

    def probability(count: int, people: int) -> float:
        """Of so many reports or more, if so many people have the value, which makes it more probable."""
        first, theirs = _binomial_window(people, min(lie + gap, 1.0))
        first_of_others, others = _binomial_window(n - people, lie)
        at_least = np.append(np.cumsum(others[::-1])[::-1], 0.0)
        needed = count - first_of_others - first - np.arange(len(theirs))
        return float(theirs @ at_least[np.clip(needed, 0, len(others))])

    # More than what the windows leave out and what rounding changes, in sums and in the probability of each person.
    slack = 1e-11 + n * sys.float_info.epsilon
    fewest = bisect_left(range(n + 1), tail - slack, key=lambda people: probability(capped, people))
    too_many = bisect_left(range(n + 1), 1 - tail + slack, key=lambda people: probability(raised + 1, people))
    return min(fewest, n), max(too_many - 1, 0)


def _binomial_window(n: int, p: float) -> tuple[int, FloatArray]:
    """The first count of a window around n p, and the probabilities of the counts in it, which sum to 1.

    By Bernstein's inequality a count is outside with probability <= 1e-12.
    """
    reach = WINDOW / 3 + math.sqrt((WINDOW / 3) ** 2 + 2 * WINDOW * n * p * (1 - p))
    first, last = max(math.floor(n * p - reach), 0), min(math.ceil(n * p + reach), n)
    counts = np.arange(first + 1, last + 1)
    # P(c) / P(c - 1) is (n - c + 1) / c times the odds, which are cut off to stay finite where p is 0 or 1.
    logs = np.cumsum(np.append(0.0, np.log((n + 1 - counts) / counts) + np.clip(logit(p), -700, 700)))
    law = np.exp(logs - logs.max())
    return first, law / law.sum()


def _variance_line(channel: Channel, n: int) -> tuple[FloatArray, FloatArray]:
    """(V, W) with variance V + W f, (k,) each."""
    lie, gap = channel.lie, channel.gap
    return lie * (1 - lie) / (n * gap**2), (1 - 2 * lie - gap) / (n * gap)


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
        As for `estimate`; standard errors are those of the unbiased estimate.

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
    interval = exact_interval(counts, channel, n, inner_probability(confidence, "confidence"), sampled=sampled)
    distinct, times = np.unique(bits, axis=0, return_counts=True)
    likelihood = np.where(distinct, 1.0, np.exp(-channel.epsilon))
    shares = expectation_maximization(times, likelihood)
    errors = standard_errors(counts, channel, n, sampled=sampled)
    return Estimate(shares, errors, interval, n, "maximum-likelihood")


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
        For counts that are not (k,) whole numbers >= 0, or none; a channel that is never true.

    Examples
    --------
    >>> from policies.local.response import KAry
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
    runs: int = 20_000,
    rng: np.random.Generator,
) -> ErrorBands:
    """In which band the L1 and L2 errors of 95 % of runs lie, by simulating many.

    Parameters
    ----------
    counts : array, (k,)
        How many people have each value.
    channel : Channel
        The mechanism.
    method : str
        How a run is estimated; see `estimate`.
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
    at_least(runs, "runs", 1)
    step = max(1, CELLS // channel.n_values)
    distances = []
    for start in range(0, runs, step):
        seen = channel.simulate_counts(true, runs=min(step, runs - start), rng=rng)
        errors = n * shares_of(seen / n, channel, method) - true
        distances.append(np.stack([np.abs(errors).sum(axis=1), np.linalg.norm(errors, axis=1)]))
    low, high = np.quantile(np.concatenate(distances, axis=1), [0.025, 0.975], axis=1)
    return ErrorBands((float(low[0]), float(high[0])), (float(low[1]), float(high[1])))


def _true_counts(counts: ArrayLike, channel: Channel) -> tuple[IntArray, int]:
    true = whole_counts(counts, channel.n_values)
    if true.sum() == 0:
        raise ValueError("there must be at least one person, got none.")
    if not channel.gap.min() > 0:
        raise ValueError(f"reports of {channel!r} say nothing about the values.")
    return true, int(true.sum())


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

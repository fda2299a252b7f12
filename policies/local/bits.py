"""Maximum likelihood from whole unary reports: the counts of the bits alone do not determine it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from policies.local.checks import inner_probability
from policies.local.estimation import Estimate, checked_counts, spread
from policies.local.likelihood import expectation_maximization
from policies.local.release import count_reports
from policies.local.unary import Unary


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

"""Means of held-out contributions with their errors, and what repeated splits say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from policies.arrays import ROUNDING, FloatArray
from policysim.offpolicy.estimators import Moments, moments

UPPER = 0.975  # of a 95 % interval


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error.

    Attributes
    ----------
    value, standard_error : float
        NaN where there is no such number: no patients, or a share of what may be nothing.
    n : int
        Patients that it rests on.
    skewness, kurtosis : float
        Of what it is the mean of; kurtosis above that of normal numbers.
    """

    value: float
    standard_error: float
    n: int
    skewness: float = 0.0
    kurtosis: float = 0.0

    @property
    def quantile(self) -> float:
        """How many standard errors the 95 % interval reaches: Student's t, and more where the patients are skewed.

        The latter as for `policysim evaluate` (`estimators.Moments.quantile`): of a rare outcome, intervals by
        Student's t cover less than 90 % (benchmarks/offpolicy.py --coverage).
        """
        skewed = Moments(self.n, self.value, self.standard_error, self.skewness, self.kurtosis).quantile
        return max(float(stdtrit(self.n - 1, UPPER)), skewed)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval; (NaN, NaN) for fewer than two patients."""
        if self.n < 2:
            return np.nan, np.nan
        reach = self.quantile * self.standard_error
        return self.value - reach, self.value + reach

    @property
    def widened_error(self) -> float:
        """The standard error that, with Student's t, gives the interval."""
        return self.standard_error * self.quantile / float(stdtrit(self.n - 1, UPPER)) if self.n > 1 else np.nan


NOTHING = Estimate(np.nan, np.nan, 0)


def minus(one: FloatArray, other: FloatArray) -> FloatArray:
    """One - other, (m,), exactly 0 where they are equal but for rounding."""
    apart = one - other
    apart[np.abs(apart) <= ROUNDING * (np.abs(one) + np.abs(other))] = 0.0
    return apart


def mean(contributions: FloatArray) -> Estimate:
    """The mean of contributions, (m,); the standard error is that of a mean."""
    n = len(contributions)
    if n < 2:
        return Estimate(float(contributions[0]), np.nan, 1) if n else NOTHING
    found = moments(contributions)
    return Estimate(found.mean, found.standard_error, n, found.skewness, found.kurtosis)


def share(part: FloatArray, whole: FloatArray) -> Estimate:
    """mean(part) / mean(whole), with the delta method's error: of the mean of (part - ratio whole) / mean(whole)."""
    below = float(whole.mean()) if len(whole) else 0.0
    if below == 0:
        return NOTHING
    ratio = float(part.mean()) / below
    apart = mean(minus(part, ratio * whole))
    return Estimate(ratio, abs(apart.standard_error / below), apart.n, apart.skewness, apart.kurtosis)


def over_repeats(estimates: Sequence[Estimate]) -> Estimate:
    """What independent random splits of the same patients say together.

    The mean, with the variance mean(s_r^2 + (v_r - mean)^2), so that it also covers how much depends on the split
    (Chernozhukov et al. 2018, Double/debiased machine learning, definition 3.3). Means and not medians, so
    that the difference of two values is the value of their difference. Skewness and kurtosis are means, too.
    """
    values = np.array([estimate.value for estimate in estimates])
    errors = np.array([estimate.standard_error for estimate in estimates])
    if np.isnan(values).any():
        return NOTHING
    centre = float(values.mean())
    # The mean of equal numbers is off by rounding.
    apart = minus(values, np.full_like(values, centre))
    return Estimate(
        centre,
        float(np.sqrt(np.mean(errors**2 + apart**2))),
        estimates[0].n,
        float(np.mean([estimate.skewness for estimate in estimates])),
        float(np.mean([estimate.kurtosis for estimate in estimates])),
    )

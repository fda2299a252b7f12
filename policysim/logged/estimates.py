"""Means of held-out contributions with their errors, and what repeated splits say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from policies.arrays import ROUNDING, FloatArray

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
    """

    value: float
    standard_error: float
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, by Student's t; (NaN, NaN) for fewer than two patients."""
        if self.n < 2:
            return np.nan, np.nan
        reach = float(stdtrit(self.n - 1, UPPER)) * self.standard_error
        return self.value - reach, self.value + reach


NOTHING = Estimate(np.nan, np.nan, 0)


def minus(one: FloatArray, other: FloatArray) -> FloatArray:
    """One - other, (m,), exactly 0 where they are equal but for rounding."""
    apart = one - other
    apart[np.abs(apart) <= ROUNDING * (np.abs(one) + np.abs(other))] = 0.0
    return apart


def mean(contributions: FloatArray) -> Estimate:
    """The mean of contributions, (m,); the standard error is that of a mean."""
    n = len(contributions)
    if n == 0:
        return NOTHING
    value = float(contributions.mean())
    spread = float(contributions.std(ddof=1)) if n > 1 else np.nan
    # Rounding of equal contributions is no variation.
    return Estimate(value, 0.0 if spread <= ROUNDING * abs(value) else spread / np.sqrt(n), n)


def share(part: FloatArray, whole: FloatArray) -> Estimate:
    """mean(part) / mean(whole), with the delta method's error: of the mean of (part - ratio whole) / mean(whole)."""
    below = float(whole.mean()) if len(whole) else 0.0
    if below == 0:
        return NOTHING
    ratio = float(part.mean()) / below
    return Estimate(ratio, abs(mean(minus(part, ratio * whole)).standard_error / below), len(whole))


def over_repeats(estimates: Sequence[Estimate]) -> Estimate:
    """What independent random splits of the same patients say together.

    The mean, with the variance mean(s_r^2 + (v_r - mean)^2), so that it also covers how much depends on the split
    (Chernozhukov et al. 2018, Double/debiased machine learning, definition 3.3). Means and not medians, so
    that the difference of two values is the value of their difference.
    """
    values = np.array([estimate.value for estimate in estimates])
    errors = np.array([estimate.standard_error for estimate in estimates])
    if np.isnan(values).any():
        return NOTHING
    centre = float(values.mean())
    # The mean of equal numbers is off by rounding.
    apart = minus(values, np.full_like(values, centre))
    return Estimate(centre, float(np.sqrt(np.mean(errors**2 + apart**2))), estimates[0].n)

"""What each row adds to an estimate: the estimate is the mean of its rows' contributions.

The standard error is that of a mean, the contributions' standard deviation over sqrt(n). For SNIPS, whose rows are not
independent of the normalisation, the contributions are its linearisation, so that this is the delta method.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from policies.arrays import ROUNDING, FloatArray

Z = NormalDist().inv_cdf(0.975)  # of a 95 % interval


@dataclass(frozen=True)
class Moments:
    """A mean of n numbers, its standard error, and their skewness and excess kurtosis (0 where nothing varies)."""

    n: int
    mean: float
    standard_error: float
    skewness: float = 0.0
    kurtosis: float = 0.0

    @property
    def quantile(self) -> float:
        """How many standard errors the 95 % interval reaches to either side: 1.96, and more where numbers are skewed.

        The Cornish-Fisher quantile of |t| for the mean of skewed numbers, z (1 + [(z^4 + 2 z^2 - 3) g^2 / 18 -
        (z^2 - 3) k / 12 + (z^2 + 1) / 4] / n), with g the skewness and k the excess kurtosis (Hall 1988, Theoretical
        comparison of bootstrap confidence intervals, table 1; Owen 2025). Without g and k it is Student's, to 1 / n.
        Never less than z: a few numbers tell little about a kurtosis.
        """
        skewed = (Z**4 + 2 * Z**2 - 3) / 18 * self.skewness**2
        return Z * (1 + max(0.0, skewed - (Z**2 - 3) / 12 * self.kurtosis + (Z**2 + 1) / 4) / self.n)


def ips(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """w r (Horvitz & Thompson 1952, equation 9; for policies Dudik, Langford & Li 2011, section 2)."""
    return weights * rewards


def snips(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """v + w (r - v) / mean(w), with v = sum w r / sum w (Hajek 1971; Swaminathan & Joachims 2015, equation 8).

    Their mean is v, as sum w (r - v) = 0. Their variance over n is sum w^2 (r - v)^2 / (sum w)^2, the delta method's
    (Owen 2013, Monte Carlo theory, methods and examples, equation 9.9), but for n - 1 in place of n.
    """
    value = float(weights @ rewards) / float(weights.sum())
    linearised: FloatArray = value + weights * (rewards - value) / weights.mean()
    return linearised


def doubly_robust(
    weights: FloatArray, rewards: FloatArray, direct: FloatArray, predicted_of_taken: FloatArray
) -> FloatArray:
    """sum_a p(a|x) q(x, a) + w (r - q(x, a_logged)), q fitted without the row.

    The augmented inverse propensity estimate (Robins, Rotnitzky & Zhao 1994; Dudik, Langford & Li 2011, equation 2)
    with cross-fitting (Chernozhukov et al. 2018, definition 3.2; variance as in their theorem 3.2).
    """
    residuals = rewards - predicted_of_taken
    residuals *= weights
    residuals += direct
    return residuals


def moments(contributions: FloatArray) -> Moments:
    """The moments of contributions, (n_rows,); the standard error has n - 1."""
    n = len(contributions)
    mean = float(contributions.mean())
    centred = contributions - mean
    squares = centred * centred
    variance = float(squares.mean())
    # Rounding of equal contributions is no variation.
    if variance <= (ROUNDING * abs(mean)) ** 2:
        return Moments(n, mean, 0.0)
    skewness = float(squares @ centred) / n / variance**1.5
    kurtosis = float(squares @ squares) / n / variance**2 - 3
    return Moments(n, mean, float(np.sqrt(variance / (n - 1))), skewness, kurtosis)

"""A policy against the best of several arms, when nobody knows which arm is the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

TAIL = 0.025  # of a 95 % interval, on each side


@dataclass(frozen=True)
class AgainstBest:
    """A policy's value minus that of the best arm.

    Attributes
    ----------
    value : float
        Minus the arm that is estimated best. On average a little too small: the largest of several estimates is too
        large.
    interval : tuple of float
        At least 95 % of such intervals hold the difference to the truly best arm, whichever that is.
    arm : int
        The one that is estimated best.
    """

    value: float
    interval: tuple[float, float]
    arm: int


def against_best(differences: Sequence[float], errors: Sequence[float], n: int) -> AgainstBest:
    """From the differences to each arm to the difference to the best one.

    With d_a the policy's value minus that of arm a, the difference to the best arm is min d_a. Its lower end is
    min(d_a - t s_a): the policy is better than the best arm only if it is better than every one, and no correction is
    needed (intersection-union test; Berger 1982). Its upper end is min(d_a + t' s_a), t' for 0.025 / k in place of
    0.025 (Bonferroni), as each of the k bounds has to hold.

    Parameters
    ----------
    differences, errors : sequence of float, k
        Estimates d_a and their standard errors s_a.
    n : int
        Rows that they rest on; the quantiles are those of Student's t with n - 1 degrees of freedom.

    Examples
    --------
    >>> against_best([0.5, 0.1], [0.0, 0.0], 100)
    AgainstBest(value=0.1, interval=(0.1, 0.1), arm=1)
    """
    apart, spread = np.asarray(differences, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    arm = int(apart.argmin())
    low = float((apart + stdtrit(n - 1, TAIL) * spread).min())
    high = float((apart - stdtrit(n - 1, TAIL / len(apart)) * spread).min())
    return AgainstBest(float(apart[arm]), (low, high), arm)

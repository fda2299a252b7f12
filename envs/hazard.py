"""A hazard that what is left after treatment adds to, and the exact probability that it spares a patient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray

# e^-64 is less than any random number that is not 0.
LEAST_EXPONENT, STEPS = -64.0, 256
POWERS = np.exp(-np.arange(-LEAST_EXPONENT * STEPS + 1) / STEPS)


@dataclass(frozen=True)
class Hazard:
    """The hazard of death or of an event under a treatment: level + slope * (kappa . flags left).

    Attributes
    ----------
    level, slope : array
        Broadcasting over the grid of records, as they are before the treatment.
    kappa : array, (n_transient,)
        What each flag that is left adds.
    """

    level: FloatArray
    slope: FloatArray
    kappa: FloatArray

    @classmethod
    def of(
        cls, scale: FloatArray, acute: NDArray[np.bool_], baselines: tuple[float, float], kappa: FloatArray
    ) -> Hazard:
        """scale * (baseline + kappa . flags left) for the acute, and scale * another baseline for the others."""
        return cls(scale * np.where(acute, *baselines), scale * np.where(acute, 1.0, 0.0), kappa)

    def spared(self, left: Sequence[FloatArray]) -> FloatArray:
        """P(it does not happen), given P(flag left) of independent flags, all broadcasting together.

        E exp(-level - slope * sum of kappa y) is a product over the flags y.
        """
        chance = np.exp(-self.level)
        for kappa, present in zip(self.kappa, left, strict=True):
            if kappa > 0:
                chance = chance * (1 - present * -np.expm1(-self.slope * kappa))
        return chance


def exp_of(exponent: FloatArray) -> FloatArray:
    """e to an exponent <= 0, in place, to 4e-16 relative; below -64, e^-64.

    A table, and five terms of the series for what is left. Functions of libraries differ in the last bit from one
    another; multiplied and added in a fixed order, a number is the same on any machine and in compiled code.
    """
    np.maximum(exponent, LEAST_EXPONENT, out=exponent)
    step = (exponent * -STEPS).astype(np.intp)
    exponent += step * (1 / STEPS)
    series: FloatArray = exponent * (1 / 120)
    for term in (1 / 24, 1 / 6, 0.5, 1.0):
        series += term
        series *= exponent
    series += 1.0
    series *= POWERS.take(step)
    return series

"""A hazard that what is left after treatment adds to, and the exact probability that it spares a patient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray


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

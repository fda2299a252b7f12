"""Whether a mean of simulated or logged patients agrees with the value that was computed exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

Z = NormalDist().inv_cdf(0.975)  # how many standard errors a 95 % interval reaches to either side
# A mean that is so many standard errors off is no chance: one in 1.7 million, if the mean is nearly normal.
MOST_ERRORS = 5.0
# What is rarer than this over the number of patients may not have been seen at all: (1 - 15/n)^n is one in 3 million.
UNSEEN = 15.0
# What summing millions of rewards may leave, relative.
SUM_ROUNDING = 1e-12


@dataclass(frozen=True)
class Agreement:
    """The mean of simulated or logged patients beside the exact value.

    Attributes
    ----------
    patients : int
        How many.
    mean : float
        Mean sum of rewards per patient.
    standard_error : float
        Of the mean; NaN for one patient.
    exact : float
        The value that was computed.
    spread : float
        How far two patients' returns can be apart at most.
    """

    patients: int
    mean: float
    standard_error: float
    exact: float
    spread: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean (normal approximation)."""
        reach = Z * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def errors_apart(self) -> float:
        """|mean - exact| in standard errors; 0 where they are equal but for rounding."""
        distance = abs(self.mean - self.exact)
        if distance <= SUM_ROUNDING * max(1.0, abs(self.exact)):
            return 0.0
        return distance / self.standard_error if self.standard_error > 0 else math.inf

    @property
    def agrees(self) -> bool:
        """Whether they are at most `MOST_ERRORS` apart, or by no more than rare outcomes that were not drawn explain.

        With few patients, none may have died; then the standard error knows nothing of deaths. An outcome that is not
        seen among n patients has a probability below 15 / n, but for one in 3 million, and moves the mean by at most
        that times the spread.
        """
        return self.errors_apart <= MOST_ERRORS or abs(self.mean - self.exact) <= self.unseen

    @property
    def unseen(self) -> float:
        """How much of the mean outcomes may hold that are too rare to be seen among so many patients."""
        return UNSEEN * self.spread / self.patients

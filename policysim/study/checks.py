"""Checks of what is claimed: a policy's table and its privacy loss, and a mean of patients beside the exact value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from policies.arrays import FloatArray
from policies.policy import ClaimError, InadmissibleError, NoTableError, NotApplicableError, Policy
from policies.privacy_loss import guess_rate_within, privacy_loss_of_logs
from policies.problem import DecisionProblem

# What an interval holds, the quantile that is its upper end, and how many standard errors that is, of a normal mean.
LEVEL, UPPER = 0.95, 0.975
Z = NormalDist().inv_cdf(UPPER)
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
        return self.errors_apart <= MOST_ERRORS or abs(self.mean - self.exact) <= UNSEEN * self.spread / self.patients


# What is wrong with a policy that is not what it says: `checked_tables`.
BROKEN = (ClaimError, NoTableError, InadmissibleError)
# Rounding that an exact loss may carry: logarithms of probabilities are exact to about 1e-15 of their size.
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def within_claim(exact: float, claimed: float) -> bool:
    """Whether an exact privacy loss is at most the claimed one, up to rounding."""
    return exact <= claimed * (1 + RELATIVE) + ABSOLUTE


def claim_fault(policy: Policy, exact: float) -> str:
    """What an exact privacy loss shows of a policy that claims less, in words; empty if it keeps its claim."""
    if within_claim(exact, policy.claimed):
        return ""
    return f"{policy.at_epsilon} claims a privacy loss of at most {policy.claimed:g}, and its exact loss is {exact:.6g}"


def checked_tables(policy: Policy, problem: DecisionProblem) -> tuple[FloatArray, FloatArray, float]:
    """log p(a|x) and p(a|x) of a policy on a problem, and its exact privacy loss there, which is within its guarantee.

    Raises
    ------
    NoTableError
        A ValueError, if what it gives is no table of probabilities, or several different ones.
    InadmissibleError
        A ValueError, if it has treatments that a record does not allow.
    ClaimError
        If its exact privacy loss exceeds its guarantee, or it has none.
    """
    logs, probabilities = policy.tables(problem)
    exact = privacy_loss_of_logs(logs, problem.adjacency).epsilon
    if fault := claim_fault(policy, exact):
        raise ClaimError(f"{fault}; audit names the two records that show it")
    return logs, probabilities, exact


def guess_rate_of(probabilities: FloatArray, problem: DecisionProblem, epsilon: float) -> float:
    """How often a table of at most this privacy loss tells two records apart; NaN if that takes too long."""
    try:
        return guess_rate_within(probabilities, problem.adjacency, epsilon).rate
    except NotApplicableError:
        return math.nan

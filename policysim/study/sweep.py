"""What every comparison over epsilon shares: which policies at which epsilon, how many at a time, what is gained."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.arrays import ROUNDING, SUM_TOLERANCE, FloatArray, blocks
from policies.catalogue import CATALOGUE, DEFAULT_POLICIES, make_policy
from policies.distinct import once_each
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError, Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policysim.question.words import rounded
from policysim.study.declared import EPSILONS, checked_epsilons

# numpy releases the interpreter's lock in its loops, and each job needs about 0.1 GB at 1.3 million records.
N_THREADS = min(4, os.cpu_count() or 1)
# Shares of a gain are said where it is at least so much of what the best for each gains over choosing by lot.
LEAST_SHARE = 0.1
# What exceeds one treatment for all by no more than this share of the gain is as good: rounding, not benefit.
NO_BENEFIT = 1e-9


@dataclass(frozen=True)
class Gain:
    """What choosing the best for each patient gains over one treatment for all: the whole of "benefit kept".

    A share of it is a number as long as the gain is more than the rounding of sums, and is worth printing where the
    gain is at least `LEAST_SHARE` of what the best for each gains over choosing by lot. Below that, one treatment for
    all is nearly as good as the best for each, and shares of the rest are large for any mechanism: choosing by lot
    itself keeps 1 - 1 / share of the gain, -900 % at the least share, and without bound below it.

    Attributes
    ----------
    best, fixed, by_lot : float
        The expected utility of the best treatment for each, of the best single treatment for all, of choosing by lot.
    rounding : float
        What the rounding of sums may make of equal values, in units of utility.
    """

    best: float
    fixed: float
    by_lot: float
    rounding: float

    @classmethod
    def of(cls, problem: DecisionProblem) -> Gain:
        """The gain in a problem, under its prior."""
        values = problem.fixed_values
        return cls(
            best=float(problem.prior @ problem.utilities.max(axis=1)),
            fixed=float(values.max()),
            by_lot=float(values.mean()),
            rounding=ROUNDING * float(problem.prior @ np.abs(problem.utilities).max(axis=1)),
        )

    @property
    def exists(self) -> bool:
        """Whether it is more than rounding."""
        return self.best - self.fixed > self.rounding

    @property
    def has_shares(self) -> bool:
        """Whether shares of it are worth printing: the one rule for every percentage of benefit kept."""
        return self.exists and self.best - self.fixed >= LEAST_SHARE * (self.best - self.by_lot)

    @property
    def beaten_from(self) -> float:
        """The least value that is more than one treatment for all, beyond rounding; inf where nothing can be."""
        if not self.exists:
            return np.inf
        return self.fixed + max(NO_BENEFIT * (self.best - self.fixed), self.rounding)

    def kept(self, value: float) -> float:
        """The share that a policy of this value keeps; NaN where there is nothing to gain."""
        return (value - self.fixed) / (self.best - self.fixed) if self.exists else np.nan


# Rounding that an exact loss may carry: logarithms of probabilities are exact to about 1e-15 of their size.
RELATIVE, ABSOLUTE = 1e-9, 1e-12


class ClaimError(Exception):
    """A policy reveals more than it claims; str() says which, and how much."""


def asked_for(
    policies: Sequence[str | Policy] | None, epsilons: Sequence[float] | None, by: Sequence[str]
) -> tuple[list[Policy], tuple[float, ...]]:
    """The policies, each once, and the epsilons, rising; ValueError for something else than lists, or an empty one."""
    if isinstance(policies, str) or isinstance(by, str):
        raise ValueError(f"policies and by must be lists, got policies={policies!r} and by={by!r}.")
    asked = DEFAULT_POLICIES if policies is None else list(policies)
    if not asked:
        raise ValueError("policies must not be empty.")
    templates = list(dict.fromkeys(make_policy(item) if isinstance(item, str) else item for item in asked))
    return templates, checked_epsilons(EPSILONS if epsilons is None else epsilons)


def at(template: Policy, epsilon: float) -> Policy:
    """The policy at an epsilon, or itself if it takes none."""
    return replace(template, epsilon=epsilon) if template.uses_epsilon else template


def at_each(template: Policy, epsilons: Sequence[float]) -> list[Policy]:
    """The policies to evaluate: one that ignores epsilon only once."""
    return list(dict.fromkeys(at(template, epsilon) for epsilon in epsilons))


def usable_policies(
    names: Sequence[str], problem: DecisionProblem, *, named: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The policies that can be used on a problem, and why others cannot.

    Parameters
    ----------
    names : sequence of str
        From the catalogue.
    problem : DecisionProblem
        What is to be decided.
    named : bool
        Whether each was asked for by name.

    Raises
    ------
    NotApplicableError
        For a policy that cannot be used and was asked for by name. The optimum never is: what cannot be computed of
        the limit is bounded instead.
    """
    kept, left_out = [], []
    for name in names:
        try:
            make_policy(name).check(problem)
        except NotApplicableError as error:
            if name != Optimal.name:
                if named:
                    raise
                left_out.append(f"{name}, as {error}")
                continue
        kept.append(name)
    return tuple(kept), tuple(left_out)


def evaluated_on(policy: Policy, problem: DecisionProblem) -> DecisionProblem:
    """The problem of the distinct rows where a policy is the same on it (`policies.distinct`), else the problem itself.

    What is not built in is evaluated on every record: what it declares of itself is not trusted.
    """
    return once_each(policy, problem) if type(policy) in CATALOGUE.built_in.values() else problem


def within_claim(exact: float, claimed: float) -> bool:
    """Whether an exact privacy loss is at most the claimed one, up to rounding."""
    return exact <= claimed * (1 + RELATIVE) + ABSOLUTE


def checked_tables(policy: Policy, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
    """log p(a|x) and p(a|x) of a policy; what is not built in is not trusted, but checked on this problem.

    Raises
    ------
    ValueError
        If what it gives is no table of probabilities.
    ClaimError
        If its exact privacy loss exceeds its guarantee.
    """
    logs, probabilities = policy.tables(problem)
    if type(policy) in CATALOGUE.built_in.values():
        return logs, probabilities
    at_epsilon = f"{policy.name} at ε = {policy.epsilon:g}" if policy.uses_epsilon else policy.name
    fault = table_fault(logs, problem)
    if not fault and not np.allclose(np.exp(logs), probabilities, rtol=0, atol=SUM_TOLERANCE):
        fault = "its probabilities are not those of its logarithms"
    if fault:
        raise ValueError(f"{at_epsilon} gives no table of probabilities: {fault}")
    exact = privacy_loss_of_logs(logs, problem.adjacency).epsilon
    if not within_claim(exact, policy.guarantee):
        raise ClaimError(
            f"{at_epsilon} claims a privacy loss of at most {policy.guarantee:g}, and its exact loss is {exact:.6g}; "
            "audit names the two records that show it"
        )
    return logs, probabilities


def table_fault(logs: FloatArray, problem: DecisionProblem) -> str:
    """Why an array is no table of log-probabilities for the problem; empty if it is one."""
    if np.shape(logs) != problem.utilities.shape:
        return f"its table has shape {np.shape(logs)} instead of {problem.utilities.shape}"
    for rows in blocks(problem.n_records):
        # Rows of NaN or of huge logs fail the comparison too.
        with np.errstate(over="ignore"):
            sums = np.exp(logs[rows]).sum(axis=1)
        bad = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE))
        if bad.size:
            record = problem.records.describe(rows.start + int(bad[0]))
            return f"its probabilities sum to {float(sums[bad[0]]):.9g} for [{record}]"
    return ""


def ratio(part: FloatArray, whole: FloatArray, scale: FloatArray) -> FloatArray:
    """Part / whole; NaN where the whole is 0 (or the rounding of a difference of values), or not finite."""
    ratios = np.full_like(part, np.nan)
    return np.divide(part, whole, out=ratios, where=(whole > ROUNDING * scale) & np.isfinite(whole))


def benefit(gain: Gain) -> str:
    """What shares of the benefit mean, or why there are none."""
    if gain.has_shares:
        return "Benefit kept: 0 % = one treatment for all, which costs no privacy; 100 % = the best for each."
    if not gain.exists:
        return "Benefit kept: –. One treatment for all is as good as the best for each: there is nothing to gain."
    return (
        f"Benefit kept: –. One treatment for all loses only {rounded(gain.best - gain.fixed)} in utility per patient "
        f"against the best for each (choosing by lot: {rounded(gain.best - gain.by_lot)}): too little to say shares "
        "of it."
    )

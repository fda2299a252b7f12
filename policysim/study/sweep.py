"""What every comparison over epsilon shares: which policies at which epsilon, how many at a time, what is gained."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policies.arrays import SUM_TOLERANCE, FloatArray, blocks
from policies.catalogue import CATALOGUE, DEFAULT_POLICIES, make_policy
from policies.optimal.optimum import Optimal
from policies.policy import NotApplicableError, Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy, Uniform
from policysim.study.declared import EPSILONS, checked_epsilons

# numpy releases the interpreter's lock in its loops, and each job needs about 0.1 GB at 1.3 million records.
N_THREADS = min(4, os.cpu_count() or 1)


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


REFERENCES = (Greedy(), BestFixed(), Uniform())


def applies(policy: Policy, problem: DecisionProblem) -> bool:
    """Whether a policy can be used on a problem."""
    try:
        policy.check(problem)
    except NotApplicableError:
        return False
    return True

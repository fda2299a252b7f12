"""Proofs of what no epsilon-private policy can do, from the dual programme; `policies.proof` decides on them.

The shares of the optimum (`policies.optimal.ceilings`) give its multipliers: the weight of each set of a group's best
actions goes into alpha and beta. Any shares make a proof, and those of the optimum the best one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from policies.arrays import FloatArray, IntArray, non_negative
from policies.optimal.bounds import outcome_of
from policies.optimal.classes import hiding_partitions, solve_cliques
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem
from policies.proof import (
    LOST,
    MAX_ENTRIES,
    Certificate,
    ClassOrders,
    as_integers,
    float_below,
    floor_of,
    grouped,
)

# Half the distance from 1 to the next float: no operation is off by more, relative to its result.
_ROUNDING = 2.0**-53

# Products and sums of larger numbers are normal floats.
_SMALLEST = 2.0**-900


def optimal_certificate(
    problem: DecisionProblem, epsilon: float, objective: Mapping[str, float] | None = None
) -> Certificate:
    """Prove how much every epsilon-private policy loses against the best action for each record, or costs otherwise.

    The statement is about the problem's floats, taken as exact numbers. Under any-record and sensitive the bound is the
    optimum but for rounding. Under one-feature it is the best of those that follow from hiding one feature alone at
    epsilon, or all d of them at d epsilon.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    epsilon : float
        >= 0; inf proves that nothing better than the best action for each exists.
    objective : mapping of str to float, optional
        The weights of "utility lost" and of outcomes, finite and >= 0; 1 for the utility lost by default. With the
        multipliers of bounds for weights, it proves what the best within these bounds costs: E[outcome] <= limit for
        each takes weight x limit from the bound at most.

    Raises
    ------
    NotApplicableError
        A ValueError: for more than `MAX_ENTRIES` groups times actions, for more than 62 actions, for one-feature over
        a list of records, for outcomes below 0 in a problem of more than `MAX_ENTRIES` entries, or for numbers too
        large to be rounded.
    ValueError
        If epsilon or a weight is negative or not a number, or for an unknown outcome.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> proof = optimal_certificate(problem, 1.0)  # the optimum errs with probability 1 / (1 + e)
    >>> proof.holds(problem), round(proof.bound, 6)
    (True, 0.268941)
    """
    epsilon = non_negative(epsilon, "epsilon")
    weights = {name: non_negative(of, f"objective[{name!r}]") for name, of in (objective or {LOST: 1.0}).items()}
    for name in weights.keys() - {LOST}:
        outcome_of(problem, name)
    partitions = problem.adjacency.partitions(problem.n_records)
    hiding = tuple(partitions.index(part) for part in hiding_partitions(problem.adjacency, problem.n_records))
    ways = [hiding]
    if len(hiding) > 1 and problem.utilities.size <= MAX_ENTRIES:
        ways += [(place,) for place in hiding]
    drafts = [_of_classes(problem, epsilon, weights, hidden) for hidden in ways]
    best = max(drafts, key=lambda draft: draft.bound)
    least = best.proven(problem)
    if least is None:
        raise NotApplicableError("there is no certificate: rounding left no multipliers that prove anything.")
    return replace(best, bound=float_below(least))


def _of_classes(
    problem: DecisionProblem, epsilon: float, weights: Mapping[str, float], hidden: tuple[int, ...]
) -> Certificate:
    """The certificate of some partitions, with a bound that may be off by rounding."""
    try:
        groups = grouped(problem, hidden, tuple(weights.items()))
    except ValueError as error:
        raise NotApplicableError(str(error)) from None
    gaps = np.zeros_like(groups.costs)
    rising = np.take_along_axis(groups.costs, groups.orders, axis=1)
    gaps[:, :-1] = np.maximum(np.diff(rising, axis=1), 0.0)
    used = gaps * _shares(groups, len(hidden) * epsilon)
    left = gaps - used
    alpha, beta = np.empty_like(gaps), np.empty_like(gaps)
    # An action is in the sets from its own place on, and outside the sets before it.
    np.put_along_axis(alpha, groups.orders, used[:, ::-1].cumsum(axis=1)[:, ::-1], axis=1)
    np.put_along_axis(beta, groups.orders, left.cumsum(axis=1) - left, axis=1)
    beta = np.maximum(beta, 0.0)
    alpha = _feasible(alpha, beta, groups.classes, float_below(floor_of(epsilon) ** len(hidden)))
    bound = float((groups.costs + alpha - beta).min(axis=1).sum())
    return Certificate(problem.digest, epsilon, weights, hidden, alpha, beta, bound)


def document(certificate: Certificate, problem: DecisionProblem) -> dict[str, Any]:
    """A proof for JSON; the group that it costs most to hide comes first.

    `problem`, `epsilon`, `objective`, `hidden` and `bound` as of the certificate, the `actions`, and of the adjacency
    its `name` and `partitions` (`Partition.document`). Of `groups` each has `class`, `order` (names of the actions, the
    best first), `records`, `prior`, `lambda` (rounded down: the least of costs + alpha - beta) and, in the order of
    `actions`, `costs`, `alpha` and `beta`.
    """
    groups = grouped(problem, certificate.hidden, tuple(certificate.objective.items()))
    (costs, alpha, beta), unit = as_integers(groups.costs, certificate.alpha, certificate.beta)
    charges = (costs + alpha - beta).min(axis=1)
    records, priors = np.bincount(groups.codes), np.bincount(groups.codes, problem.prior)
    return {
        "problem": certificate.problem,
        "adjacency": {
            "name": problem.adjacency.name,
            "partitions": [part.document() for part in problem.adjacency.partitions(problem.n_records)],
        },
        "hidden": list(certificate.hidden),
        "epsilon": certificate.epsilon,
        "objective": dict(certificate.objective),
        "actions": list(problem.actions),
        "bound": certificate.bound,
        "groups": [
            {
                "class": int(groups.classes[g]),
                "order": [problem.actions[action] for action in groups.orders[g]],
                "records": int(records[g]),
                "prior": float(priors[g]),
                "lambda": float_below(charges[g] * unit),
                "costs": groups.costs[g].tolist(),
                "alpha": certificate.alpha[g].tolist(),
                "beta": certificate.beta[g].tolist(),
            }
            for g in np.argsort(costs.min(axis=1) - charges, kind="stable")
        ],
    }


def _shares(groups: ClassOrders, epsilon: float) -> FloatArray:
    """The share in [0, 1] of each weight w_gT that goes into alpha, (n_groups, k).

    Entry (g, j) is for the set T of the actions of g down to its (j+1)-th best.
    """
    shares = np.zeros(groups.orders.shape)
    if np.isinf(epsilon):
        return shares
    prefixes = np.bitwise_or.accumulate(np.left_shift(1, groups.orders), axis=1)
    # A group is a record that comes with certainty and loses what the group does; smaller classes repeat their last.
    sizes = np.bincount(groups.classes)[:, None]
    cliques = np.cumsum(sizes)[:, None] - sizes + np.minimum(np.arange(sizes.max()), sizes - 1)
    for solved in solve_cliques(lambda some: -groups.costs.T[:, some], np.ones(len(shares)), cliques, epsilon):
        weights, amounts, wanted = solved.weights, solved.solution.amounts, prefixes[solved.records]
        share = np.divide(amounts, weights, out=np.zeros_like(weights), where=weights > 0).clip(0.0, 1.0)
        places = np.minimum(np.searchsorted(solved.masks, wanted), len(solved.masks) - 1)
        # Sets that are not listed do not matter.
        found = np.where(solved.masks[places] == wanted, share[np.arange(len(share))[:, None, None], places], 0.0)
        shares[solved.records] = found
    return shares


def _feasible(alpha: FloatArray, beta: FloatArray, classes: IntArray, q: float) -> FloatArray:
    """Alpha made smaller where its sums, whatever their rounding, might exceed q times those of beta."""
    size = np.bincount(classes)[:, None]
    used, freed = (np.stack([np.bincount(classes, column) for column in table.T], axis=1) for table in (alpha, beta))
    most = q * freed * (1 - (2 * size + 16) * _ROUNDING)
    fits = np.divide(most, used, out=np.ones_like(used), where=used > 0)
    lowered: FloatArray = alpha * (np.minimum(fits, 1.0) * (1 - 8 * _ROUNDING))[classes]
    # Near the smallest floats a rounding is more than its share; that little proves nothing.
    return np.where(lowered > _SMALLEST, lowered, 0.0)

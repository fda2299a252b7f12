"""A proof that no epsilon-private policy does better, small enough to be checked by a script that knows none of this.

Records that order the actions alike are one group g, with weights c_ga = sum of prior(x) u(x, a). The best policy is

    maximise sum_ga p_ga c_ga   such that   e^-epsilon M_a <= p_ga <= M_a  and  sum_a p_ga = 1,

as averaging a private policy over the records of a group leaves it private. Weak duality: for alpha, beta >= 0 with
sum_g alpha_ga <= e^-epsilon sum_g beta_ga for each a, and lambda_g >= c_ga - alpha_ga + beta_ga for each a,

    sum p c <= sum p c + sum alpha (M - p) + sum beta (p - e^-epsilon M) <= sum_g lambda_g,

so that the sum of lambda is a bound on the value of every epsilon-private policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policies.arrays import FloatArray, non_negative
from policies.optimal_orders import Orders, by_order, solve_orders
from policies.problem import DecisionProblem

# alpha is made smaller by the first of these for which the sums, rounded as they are, keep the inequality.
_SHRINKING = (0.0, 1e-13, 1e-12, 1e-10, 1e-8, 1.0)


def optimal_certificate(problem: DecisionProblem, epsilon: float) -> dict[str, Any]:
    """The proof of the limit under any-record, as a dictionary for JSON.

    Parameters
    ----------
    problem : DecisionProblem
        With the adjacency any-record: all records are neighbours.
    epsilon : float
        Finite, >= 0.

    Returns
    -------
    dict
        `epsilon`, `actions` (names), `bound` (the sum of `lambda` over the groups, in their order), `value` (what the
        optimal policy attains; below the bound by rounding), and `groups`, the one that loses most against greedy
        first. Each group has `order` (names of the actions, best first), `records`, `prior`, `lambda`, `greedy` (the
        largest weight) and, in the order of `actions`, `weights` (c), `alpha` and `beta`; greedy - lambda is the loss
        that the proof charges to the group.

    Raises
    ------
    ValueError
        For another adjacency, or an epsilon that is negative or infinite.
    """
    epsilon = non_negative(epsilon, "epsilon")
    if np.isinf(epsilon):
        raise ValueError("epsilon must be finite for a certificate, got epsilon=inf.")
    if [len(part.extremes(problem.prior)[0]) for part in problem.adjacency.partitions(problem.n_records)] != [1]:
        raise ValueError(f"a certificate needs the adjacency any-record, got {problem.adjacency.name}.")
    groups = by_order(problem)
    shares, loss = _dual_shares(problem, groups, epsilon)
    alpha, beta = _feasible(groups, shares, epsilon)
    bounds = (groups.weights - alpha + beta).max(axis=1)
    greedy = groups.weights.max(axis=1)
    first = np.argsort(bounds - greedy, kind="stable")
    return {
        "epsilon": epsilon,
        "actions": list(problem.actions),
        "bound": float(sum(bounds[first].tolist())),
        "value": float(greedy.sum()) - loss,
        "groups": [
            {
                "order": [problem.actions[action] for action in groups.orders[g]],
                "records": int(groups.records[g]),
                "prior": float(groups.priors[g]),
                "lambda": float(bounds[g]),
                "greedy": float(greedy[g]),
                "weights": groups.weights[g].tolist(),
                "alpha": alpha[g].tolist(),
                "beta": beta[g].tolist(),
            }
            for g in first
        ],
    }


def _dual_shares(problem: DecisionProblem, groups: Orders, epsilon: float) -> tuple[FloatArray, float]:
    """The share in [0, 1] of each weight w_gT that goes into alpha, (n_groups, k), and the least loss.

    Entry (g, j) is for the set T of the actions of g down to its (j+1)-th best.
    """
    masks, weights, solution = solve_orders(problem, epsilon)
    share = np.divide(solution.amounts[0], weights[0], out=np.zeros(len(masks)), where=weights[0] > 0)
    prefixes = np.bitwise_or.accumulate(np.left_shift(1, groups.orders), axis=1)
    places = np.minimum(np.searchsorted(masks, prefixes), len(masks) - 1)
    shares = np.where(masks[places] == prefixes, np.clip(share, 0.0, 1.0)[places], 0.0)
    return shares, float(solution.losses[0])


def _feasible(groups: Orders, shares: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Dual variables alpha and beta, (n_groups, k), that keep their inequality in floating point."""
    ordered = np.take_along_axis(groups.weights, groups.orders, axis=1)
    gaps = np.zeros_like(ordered)
    gaps[:, :-1] = np.maximum(-np.diff(ordered, axis=1), 0.0)
    for shrinking in _SHRINKING:
        used = gaps * shares * (1 - shrinking)
        alpha, beta = np.empty_like(gaps), np.empty_like(gaps)
        # An action is in the sets from its own place on, and outside the sets before it.
        np.put_along_axis(alpha, groups.orders, used[:, ::-1].cumsum(axis=1)[:, ::-1], axis=1)
        np.put_along_axis(beta, groups.orders, (gaps - used).cumsum(axis=1) - (gaps - used), axis=1)
        np.maximum(beta, 0.0, out=beta)
        if (alpha.sum(axis=0) <= np.exp(-epsilon) * beta.sum(axis=0) * (1 - 1e-15 * len(gaps))).all():
            break
    return alpha, beta

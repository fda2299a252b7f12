"""What several uses of private policies reveal together.

The exact loss of a policy, and eta, the range of its log-ratio between neighbours: both say how uses add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from policies.adjacency import Adjacency, AnyRecord, largest_difference
from policies.arrays import FloatArray, non_negative
from policies.calibration import ExponentialTight
from policies.capped import ExponentialCapped, capped_range
from policies.exponential import ExponentialFamily
from policies.optimal.classes import group_logs, hiding_partitions, one_clique
from policies.optimal.optimum import Optimal
from policies.policy import LOG_SMALLEST, Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem, once_per_problem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Uniform
from policies.scores import score_range


def compose(epsilons: Iterable[float]) -> float:
    """The privacy loss of several uses on the same record is at most the sum of their losses (basic composition).

    It also holds if each use is chosen after seeing what the earlier ones published. A policy that is used m times
    counts m times.

    Parameters
    ----------
    epsilons : iterable of float
        The loss of each use, >= 0, inf allowed.

    Raises
    ------
    ValueError
        For a loss that is not >= 0.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, theorem 3.16 and section 3.5.

    Examples
    --------
    >>> compose([1.0] * 50)
    50.0
    """
    return math.fsum(non_negative(epsilon, "epsilon") for epsilon in epsilons)


def log_ratio_range(log_probabilities: FloatArray, adjacency: Adjacency) -> float:
    """eta: max over neighbours x, x' of max_a d_a - min_a d_a, with d_a = log p(a|x) - log p(a|x').

    It is between the privacy loss and twice that: both rows sum to 1, so d changes its sign.

    Parameters
    ----------
    log_probabilities : array, (n_records, n_actions)
        log p(a|x); -inf where an action is never taken. An action that nobody in a clique gets is left out there.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    float
        inf if an action is possible for one of two neighbours only.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> round(log_ratio_range(np.log([[0.75, 0.25], [0.25, 0.75]]), AnyRecord()), 4)  # 2 log 3
    2.1972
    """
    columns = list(log_probabilities.T)
    if any(largest_difference(column, adjacency).value == np.inf for column in columns):
        return np.inf
    # Now each clique either gets an action throughout or not at all; 0 throughout adds nothing to the maximum.
    eta = 0.0
    for first, second in combinations(columns, 2):
        possible = (first > -np.inf) & (second > -np.inf)
        ratio = np.zeros_like(first)
        np.subtract(first, second, out=ratio, where=possible)
        eta = max(eta, largest_difference(ratio, adjacency).value)
    return eta


def concentrated_rho(log_probabilities: FloatArray, adjacency: Adjacency) -> float:
    """The rho of zero-concentrated privacy that a table of probabilities satisfies: eta^2 / 8, for every policy.

    eta is the range of the log-ratio (`log_ratio_range`). Then D_alpha(p(.|x) || p(.|x')) <= rho alpha for all
    alpha > 1, and rho adds up over uses, also if each use is chosen after seeing what the earlier ones published.
    Never put epsilon^2 / 8 in its place: eta may be twice the privacy loss. Only a policy with eta <= epsilon (the
    exponential mechanism with s = Gamma / epsilon) may claim that.

    Parameters
    ----------
    log_probabilities : array, (n_records, n_actions)
        log p(a|x); -inf where an action is never taken.
    adjacency : Adjacency
        Which records are neighbours.

    Returns
    -------
    float
        inf if an action is possible for one of two neighbours only.

    Notes
    -----
    By Hoeffding's lemma, for d = log p/p' within an interval of length eta, log E_p[e^(t d)] <= t E_p[d] +
    t^2 eta^2 / 8. At t = -1 the left side is log sum p' = 0, so E_p[d] <= eta^2 / 8; and with t = alpha - 1,
    D_alpha = log E_p[e^(t d)] / t <= E_p[d] + t eta^2 / 8 <= alpha eta^2 / 8.

    References
    ----------
    Dong, Durfee & Rogers (2020), Optimal differential privacy composition for exponential mechanisms: bounded range.
    Cesar & Rogers (2021), Bounding, concentrating, and truncating: bounded range implies (eta^2 / 8)-zCDP.
    Bun & Steinke (2016), Concentrated differential privacy: zCDP and its composition.

    Examples
    --------
    >>> from policies.adjacency import AnyRecord
    >>> round(concentrated_rho(np.log([[0.75, 0.25], [0.25, 0.75]]), AnyRecord()), 4)
    0.6035
    """
    return log_ratio_range(log_probabilities, adjacency) ** 2 / 8


def log_range(policy: Policy, problem: DecisionProblem) -> float:
    """eta = max over neighbours x, x' of max_a d_a - min_a d_a, with d_a = log p(a|x) - log p(a|x').

    It is what `accounting.log_ratio_range` finds in the policy's table, without the table where a formula gives the
    same: the exponential mechanism (range of the score / scale), randomised response (2 epsilon) and constants (0).

    Parameters
    ----------
    policy : Policy
        With the epsilon that is asked about.
    problem : DecisionProblem
        Utilities and adjacency.

    Returns
    -------
    float
        >= 0; inf if an action is possible for one of two neighbours only. One use is (eta^2 / 8)-zero-concentrated
        (`accounting.concentrated_rho`).

    Raises
    ------
    NotApplicableError
        For a policy that cannot be used on the problem.

    Examples
    --------
    >>> from policies import AnyRecord, make_policy
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> log_range(make_policy("randomized-response", epsilon=1.0), problem)
    2.0
    >>> log_range(make_policy("exponential-bounded-range", epsilon=1.0), problem)
    1.0
    """
    policy.check(problem)
    eta = _range_by_formula(policy, problem)
    return log_ratio_range(*_distinct_rows(policy, problem)) if eta is None else eta


def loss_and_range(policy: Policy, problem: DecisionProblem) -> tuple[float, float]:
    """The privacy loss of a policy's table and eta (`log_range`), from one look at the table.

    The loss is the exact one of `policies.privacy_loss`, without the table where it is known: randomised response
    (epsilon, or 0 where neighbours agree on the best action), constants (0), and `ExponentialTight`, which is
    calibrated to lose epsilon: there epsilon itself stands for what it loses, at most 1e-6 of it less.

    Parameters
    ----------
    policy : Policy
        With the epsilon that is asked about.
    problem : DecisionProblem
        Utilities, prior and adjacency.

    Returns
    -------
    loss, eta : float
        loss <= eta <= 2 loss up to rounding; inf if an action is possible for one of two neighbours only.

    Raises
    ------
    NotApplicableError
        For a policy that cannot be used on the problem.

    Examples
    --------
    >>> from policies import AnyRecord, make_policy
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> loss_and_range(make_policy("randomized-response", epsilon=1.0), problem)
    (1.0, 2.0)
    >>> loss_and_range(make_policy("exponential-tight", epsilon=1.0), problem)[0]
    1.0
    """
    policy.check(problem)
    eta = _range_by_formula(policy, problem)
    if eta is not None:
        if eta == 0:
            return 0.0, 0.0
        if isinstance(policy, RandomizedResponse | ExponentialTight):
            return policy.epsilon, eta
    logs, adjacency = _distinct_rows(policy, problem)
    return privacy_loss_of_logs(logs, adjacency).epsilon, log_ratio_range(logs, adjacency) if eta is None else eta


def _range_by_formula(policy: Policy, problem: DecisionProblem) -> float | None:
    if isinstance(policy, Uniform | BestFixed):
        return 0.0
    if isinstance(policy, RandomizedResponse):
        return _response_range(policy, problem)
    return _exponential_range(policy, problem) if isinstance(policy, ExponentialFamily) else None


def _distinct_rows(policy: Policy, problem: DecisionProblem) -> tuple[FloatArray, Adjacency]:
    """The table, and who is a neighbour of whom in it; of the optimum among neighbours all, each row once."""
    if policy == Optimal(policy.epsilon) and policy.epsilon < np.inf:
        partitions = hiding_partitions(problem.adjacency, problem.n_records)
        if len(partitions) == 1 and one_clique(partitions[0]):
            return group_logs(problem, policy.epsilon), AnyRecord()
    return policy.log_probabilities(problem), problem.adjacency


def _response_range(policy: RandomizedResponse, problem: DecisionProblem) -> float:
    """2 epsilon if two neighbours differ in their best action, else 0.

    log p(a|x) - log p(a|x') is epsilon for the best action of x, -epsilon for that of x', and 0 for any other.
    """
    differ = largest_difference(problem.best_actions.astype(np.float64), problem.adjacency).value > 0
    return 2 * policy.epsilon if differ else 0.0


def _exponential_range(policy: ExponentialFamily, problem: DecisionProblem) -> float | None:
    """(The range of the score over neighbours) / s; None where only the table can tell.

    log p(a|x) - log p(a|x') = (score difference of a) / s - (log Z - log Z'), and the second term is the same for all
    actions; so is mu. The table differs only where an action is out of reach for everyone (`drop_unreachable`) or
    the scale is 0.
    """
    weights = np.ones(problem.n_actions) if policy.base_measure is None else np.asarray(policy.base_measure)
    if len(weights) != problem.n_actions:
        return None  # the policy itself refuses that
    allowed = tuple(int(action) for action in np.flatnonzero(weights))
    if policy.epsilon == 0 or len(allowed) == 1:
        return 0.0
    scale = policy.scale(problem)
    if isinstance(policy, ExponentialCapped):
        cap = policy.cap_for(problem)
        spread, regret = capped_range(problem, cap, allowed), cap
    else:
        spread, regret = _score_spread(problem, allowed)
    if scale == 0 or not _all_within_reach(np.log(weights[list(allowed)]), regret / scale):
        return None
    return spread / scale


def _all_within_reach(log_base: FloatArray, gap: float) -> bool:
    """Whether no log p(a|x) is so small that it is dropped: all are >= log mu(a) - log(sum mu) - regret / s."""
    return float(log_base.min() - np.logaddexp.reduce(log_base)) - gap >= LOG_SMALLEST


@once_per_problem
def _score_spread(problem: DecisionProblem, allowed: tuple[int, ...]) -> tuple[float, float]:
    """The range of the utilities over neighbours, and the largest regret of a record, over the allowed actions."""
    columns = problem.utilities.T[list(allowed)]
    regret = float((columns.max(axis=0) - columns.min(axis=0)).max())
    if len(allowed) == problem.n_actions:
        return problem.sensitivity.range, regret
    return score_range(np.asfortranarray(columns.T), problem.adjacency), regret

"""The exact loss of a policy, and eta, the range of its log-ratio between neighbours: both say how uses add up."""

from __future__ import annotations

import numpy as np

from policies.accounting import log_ratio_range
from policies.adjacency import Adjacency, AnyRecord, largest_difference
from policies.arrays import FloatArray
from policies.calibration import ExponentialTight
from policies.capped import ExponentialCapped, capped_range
from policies.exponential import ExponentialFamily
from policies.optimal import Optimal
from policies.optimal_classes import hiding_partitions, one_clique
from policies.optimal_orders import group_logs
from policies.per_problem import once_per_problem
from policies.policy import LOG_SMALLEST, Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Uniform
from policies.response import RandomizedResponse
from policies.scores import score_range


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
    if isinstance(policy, Optimal) and policy.epsilon < np.inf:
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

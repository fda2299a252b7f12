"""The whole linear programme, for records with several cliques of neighbours (one-feature).

A variable per record and action; between the records of a line along a feature a constraint per pair of neighbours, or
for long lines a ceiling M per action with e^-epsilon M <= p(a|x) <= M: the same policies with fewer constraints. HiGHS
solves it within tolerances. What is returned is repaired to be private exactly, and the bound is recomputed from the
dual variables, so that neither depends on those tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import sparse

from policies.adjacency import Partition
from policies.arrays import FloatArray, IntArray, logs_of
from policies.optimal.classes import class_logs, greedy_value, hiding_partitions
from policies.optimal.programmes import minimise
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem

# Records times actions. Eight programmes of this size, such as 2,048 records of 4 actions, took 3 to 11 s on one core
# at epsilon .1 to 10; of those of twice the size some took over a minute.
MAX_ENTRIES = 1 << 13

# Beyond it e^-epsilon drowns in the solver's tolerances, and hiding the whole record costs (k - 1) e^-18 at most.
_LARGEST_EPSILON = 18.0

# Lines of at most this many records are constrained pair by pair: HiGHS then needs a tenth of the time.
_LONGEST_PAIRED = 3

# The largest entry of the objective. HiGHS works with absolute tolerances; at 1 it takes up to ten times as long.
_LARGEST_REGRET = 1e4


@dataclass(frozen=True)
class FullOptimum:
    """The solution of the whole programme.

    Attributes
    ----------
    log_probabilities : array, (n_records, n_actions)
        An epsilon-private policy.
    bound : float
        No epsilon-private policy has a higher value.
    """

    log_probabilities: FloatArray
    bound: float


def fits(problem: DecisionProblem) -> bool:
    """Whether the whole programme is small enough to be solved within a minute."""
    return problem.utilities.size <= MAX_ENTRIES


def require_fit(problem: DecisionProblem) -> None:
    """NotApplicableError if the whole programme is too large."""
    if not fits(problem):
        raise NotApplicableError(
            f"optimal under {problem.adjacency.name} takes at most {MAX_ENTRIES // problem.n_actions} records of "
            f"{problem.n_actions} actions, got n_records={problem.n_records}; "
            "policies.optimal.value_limit.value_limit gives bounds at any size."
        )


def solve_full(problem: DecisionProblem, epsilon: float) -> FullOptimum:
    """Solve the whole programme, for 0 < epsilon < inf.

    Raises
    ------
    NotApplicableError
        If it is too large.
    """
    require_fit(problem)
    partitions = hiding_partitions(problem.adjacency, problem.n_records)
    # What hides the whole record hides each feature: never worse than one action for all, and all but greedy at 18.
    logs = class_logs(problem, Partition((problem.n_records,), (0,)), epsilon)
    greedy = greedy_value(problem)
    regrets = problem.prior[:, None] * (problem.utilities.max(axis=1)[:, None] - problem.utilities)
    scale = float(regrets.max()) / _LARGEST_REGRET
    if epsilon > _LARGEST_EPSILON or scale == 0:
        return FullOptimum(logs, greedy)
    table, least_loss = _solve(regrets / scale, private_constraints(partitions, problem.n_actions, epsilon))
    found = private_logs(table, partitions, epsilon)
    best = max(found, logs, key=lambda candidate: problem.value(np.exp(candidate)))
    return FullOptimum(best, greedy - scale * least_loss)


def _solve(regrets: FloatArray, constraints: sparse.csr_array) -> tuple[FloatArray, float]:
    """The table that HiGHS finds, (n_records, k) with rows of sum 1, and a loss that it proves to be the least."""
    n_records, n_actions = regrets.shape
    n_ceilings = constraints.shape[1] - regrets.size
    rows = sparse.kron(sparse.eye_array(n_records), np.ones((1, n_actions)))
    found = minimise(
        np.concatenate([regrets.ravel(), np.zeros(n_ceilings)]),
        constraints,
        np.zeros(constraints.shape[0]),
        np.ones(constraints.shape[1]),
        equal=sparse.hstack([rows, sparse.csr_array((n_records, n_ceilings))], format="csr"),
        methods=("highs-ipm", "highs-ds"),
    )
    if found is None:
        # The uniform table is private, and a loss of 0 is always proven.
        return np.full(regrets.shape, 1 / n_actions), 0.0
    point, multipliers = found
    table = np.maximum(point[: regrets.size].reshape(regrets.shape), 0.0)
    # The Lagrangian bound: for any y >= 0, no table in the constraints loses less. Rows sum to 1, so the least of
    # regrets + A^T y over a row is at its smallest entry; ceilings lie in [0, 1].
    prices = constraints.T @ multipliers
    of_rows = (regrets + prices[: regrets.size].reshape(regrets.shape)).min(axis=1)
    bound = float(of_rows.sum() + np.minimum(prices[regrets.size :], 0.0).sum())
    return table / table.sum(axis=1)[:, None], bound


def private_constraints(partitions: tuple[Partition, ...], n_actions: int, epsilon: float) -> sparse.csr_array:
    """A with A (p, M) <= 0; p is (n_records, k) and M (n_lines, k), both in C order."""
    n_records = math.prod(partitions[0].shape)
    paired, ceiled = [sparse.csr_array((0, n_records))], []
    for partition in partitions:
        lines = partition.by_clique(np.arange(n_records))
        if lines.shape[1] <= _LONGEST_PAIRED:
            pairs = [(lines[:, i], lines[:, j]) for i, j in permutations(range(lines.shape[1]), 2)]
            paired += [np.exp(-epsilon) * _pick(x, n_records) - _pick(y, n_records) for x, y in pairs]
        else:
            ceiled.append(lines)
    below = sparse.vstack(paired, format="csr")
    if ceiled:
        members = sparse.vstack([_pick(lines.ravel(), n_records) for lines in ceiled])
        # Each repeats a ceiling for each record of its line, (lines.size, n_lines).
        ceilings = sparse.block_diag(
            [_pick(np.repeat(np.arange(len(lines)), lines.shape[1]), len(lines)) for lines in ceiled]
        )
        below = sparse.block_array([[below, None], [members, -ceilings], [-members, np.exp(-epsilon) * ceilings]])
    return sparse.csr_array(sparse.kron(below, sparse.eye_array(n_actions)))


def _pick(records: IntArray, n_records: int) -> sparse.csr_array:
    """The matrix that selects these records, (len(records), n_records)."""
    return sparse.csr_array((np.ones(len(records)), (np.arange(len(records)), records)), (len(records), n_records))


def private_logs(table: FloatArray, partitions: tuple[Partition, ...], epsilon: float) -> FloatArray:
    """log of the table mixed with the uniform one, by just as much as its privacy needs.

    If e^-epsilon p(a|x) - p(a|x') <= delta for all neighbours, then (1 - w) p + w / k is epsilon-private for
    w = delta / (delta + (1 - e^-epsilon) / k). In logarithms, as delta may be e^-1000.

    Parameters
    ----------
    table : array, (n_records, k)
        Rows of sum 1.
    partitions : tuple of Partition
        The neighbours.
    epsilon : float
        In (0, inf).
    """
    n_actions = table.shape[1]
    logs = np.asfortranarray(logs_of(table))
    log_excess = max(_log_excess(logs[:, a], part, epsilon) for a in range(n_actions) for part in partitions)
    if log_excess == -np.inf:
        return logs
    log_share = np.log(-np.expm1(-epsilon)) - np.log(n_actions)
    log_weight = log_excess - np.logaddexp(log_excess, log_share)
    mixed: FloatArray = np.logaddexp(logs + np.log1p(-np.exp(log_weight)), log_weight - np.log(n_actions))
    return mixed


def _log_excess(column: FloatArray, partition: Partition, epsilon: float) -> float:
    """log of the largest e^-epsilon p(a|x) - p(a|x'), -inf where there is none; `column` is log p(a|.)."""
    low, high = partition.extremes(column)
    taken = high > -np.inf
    over = high[taken] - low[taken] - epsilon
    exceeds = over > 0
    if not exceeds.any():
        return -np.inf
    return float((high[taken][exceeds] - epsilon + np.log(-np.expm1(-over[exceeds]))).max())

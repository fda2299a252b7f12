"""The exponential mechanism calibrated by what it really loses: at the smallest scale that is ε-private."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.adjacency import Difference, largest_difference
from policies.arrays import FloatArray
from policies.exponential import ExponentialFamily, softmax
from policies.literature import MCSHERRY_TALWAR_2007
from policies.policy import LOG_SMALLEST, Look
from policies.problem import DecisionProblem, once_per_problem
from policies.scores import score_range

# exponential-tight tries t = (1 - j / STEPS) 2 epsilon / Gamma for whole j: what it returns does not depend on how
# it searched. One step changes the loss by less than 1e-6 of epsilon.
STEPS = 1 << 26
# What the rounding of logarithms may make of a loss: more than a step where epsilon is below 1e-8.
LOG_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class ExponentialTight(ExponentialFamily):
    """The exponential mechanism with the smallest scale whose exact privacy loss is at most epsilon.

    1/s is the largest t in [epsilon / Gamma, 2 epsilon / Gamma] with a loss of at most epsilon, to 1e-6 relative in
    the loss. The largest t is also the best one: within each row, expected utility never falls with t. No t outside
    the interval can be it: the log-ratios of two neighbours spread over t Gamma, so one of them is at least half.
    """

    name = "exponential-tight"
    gloss = "as little noise as ε allows"
    words = "the exponential mechanism at the smallest scale whose exact privacy loss is within ε"
    formula = "exp(u/s), s that scale"
    works = (MCSHERRY_TALWAR_2007,)
    look = Look("#CC79A7", "D")
    uses_prior = False
    row_wise = True  # reads the row and its scale, which depends on Gamma and on maxima over neighbours

    def scale(self, problem: DecisionProblem) -> float:
        """1/t; found once for each problem, epsilon and base measure."""
        log_base = self._log_base(problem.n_actions)
        return 0.0 if self.epsilon == np.inf else _tight_scale(problem, self.epsilon, tuple(log_base.tolist()))


class Pairs:
    """Neighbours that attained the loss of some table: a lower bound for the loss of any other.

    Parameters
    ----------
    problem : DecisionProblem
        Of the records; not kept.
    found : dict
        (record, neighbour, action) to the largest t at which the table had this as its worst pair.
    """

    def __init__(self, problem: DecisionProblem, found: dict[tuple[int, int, int], float]) -> None:
        self._set(problem, found)

    def add(self, problem: DecisionProblem, worst: list[Difference], t: float) -> None:
        """Remember the pair of each action; other threads go on with what they have."""
        known = dict(self._known[0])
        for action, pair in enumerate(worst):
            if pair.value > 0:
                key = (pair.record, pair.neighbour, action)
                known[key] = max(t, known.get(key, 0.0))
        self._set(problem, known)

    def _set(self, problem: DecisionProblem, found: dict[tuple[int, int, int], float]) -> None:
        records, neighbours, actions = np.array(list(found)).T
        utilities = problem.utilities[np.concatenate([records, neighbours])].T
        # (n_actions, 2 n_pairs): the records and after them their neighbours, for many t.
        regrets = np.ascontiguousarray(utilities - utilities.max(axis=0))
        self._known = found, regrets, np.tile(actions, 2), np.array(list(found.values()))

    def infeasible_below(self, t: float, epsilon: float, log_base: FloatArray) -> float:
        """How far below t, and at t, some pair loses more than epsilon throughout; 0 if none does at t.

        log p is concave in t, and log mu at t = 0. So down to 0 the log p of one record is at least its chord from 0 to
        t, that of the other at most its tangent at t, and the loss of the pair at least its value at t less the
        difference of the two slopes times the way.

        An action that is out of reach for all adds nothing. Where that is so, it stays so at any larger t, because
        log p is concave in t. So a pair counts if one of the two is within reach, or if it was found at t or above.
        """
        _, regrets, actions, found_at = self._known
        each = np.arange(len(actions))
        logs = regrets * t + log_base[:, None]
        logs -= np.logaddexp.reduce(logs, axis=0)
        chosen = logs[actions, each]
        chords = (chosen - (log_base - np.logaddexp.reduce(log_base))[actions]) / t
        slopes = regrets[actions, each] - (np.exp(logs) * regrets).sum(axis=0)
        (first, second), chords, slopes = (both.reshape(2, -1) for both in (chosen, chords, slopes))
        falls = np.where(first > second, chords[0] - slopes[1], chords[1] - slopes[0])
        over = np.abs(first - second) - epsilon
        over[(np.maximum(first, second) < LOG_SMALLEST) & (t > found_at)] = 0.0
        # The loss falls to 0 in the end: only the rounding of an epsilon near 1e-16 finds no slope.
        ways = np.divide(over, falls, out=np.full_like(over, t), where=falls > 0)
        return float(np.max(np.minimum(ways, t / 2), where=over > 0, initial=0.0))


@once_per_problem
def _known_pairs(problem: DecisionProblem, log_weights: tuple[float, ...]) -> Pairs:
    """The pairs that are known for this problem; at first those that attain Gamma, which no t was asked about."""
    witness = problem.sensitivity.range_witness
    allowed = [action for action, weight in enumerate(log_weights) if weight > -np.inf]
    return Pairs(problem, {(witness.record, witness.neighbour, action): 0.0 for action in allowed})


@once_per_problem
def _tight_scale(problem: DecisionProblem, epsilon: float, log_weights: tuple[float, ...]) -> float:
    """The scale of `ExponentialTight`: 1 / (the largest t of the grid with an exact loss of at most epsilon).

    The search runs down from the top and skips only what cannot be feasible. Most steps look at a few pairs of records,
    whose loss is a lower bound; where that one is feasible the whole table is looked at, and either accepted or asked
    for its worst pairs.
    """
    log_base = np.array(log_weights)
    gamma = _range_of(problem, np.isfinite(log_base))
    if gamma == 0:
        return 0.0
    pairs, top, j = _known_pairs(problem, log_weights), 2 * epsilon / gamma, 0
    if top < np.finfo(float).tiny:  # so little that its inverse, and perhaps itself, is no float any more
        return math.inf
    while True:
        t = top * (1 - j / STEPS)
        way = pairs.infeasible_below(t, epsilon, log_base)
        if way == 0:
            logs, _ = softmax(problem.utilities, 1 / t, log_base, problem.adjacency)
            worst = [largest_difference(column, problem.adjacency) for column in logs.T]
            if max(pair.value for pair in worst) <= epsilon:
                return 1 / t
            pairs.add(problem, worst, t)
            way = pairs.infeasible_below(t, epsilon - LOG_ROUNDING, log_base)
        j += max(1, math.ceil(way / top * STEPS))


def _range_of(problem: DecisionProblem, allowed: NDArray[np.bool_]) -> float:
    """Gamma over the actions that the base measure allows; 0 if that is one action."""
    if allowed.all():
        return problem.sensitivity.range
    return score_range(problem.utilities[:, allowed], problem.adjacency) if allowed.sum() > 1 else 0.0

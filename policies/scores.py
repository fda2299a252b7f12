"""What mechanisms on scores share: the scale that spends epsilon, scores in that unit, and actions out of reach."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from policies.adjacency import Adjacency, largest_difference
from policies.arrays import FloatArray, IntArray, blocks
from policies.mask import BoolArray
from policies.policy import Policy, constant_logs, drop_unreachable, one_hot_logs
from policies.problem import DecisionProblem

Calibration = Literal["range", "sensitivity"]

# No scaled gap is larger, so that sums and products of gaps stay finite.
LARGEST_GAP = 1e290


@dataclass(frozen=True)
class NoisyScores(Policy):
    """Add independent noise of scale s to each score u(x, a) and take the action with the largest sum.

    Only differences of scores matter, so the scores of a neighbour may be shifted by a constant until each of them
    is larger by something in [0, Gamma]. Hold the noise of all other actions fixed: then the noise with which an
    action wins only has to grow by at most Gamma, and noise whose survival function falls by a factor of at most
    e^(-1/s) per unit does that at a loss of Gamma / s. Laplace and exponential noise do. Hence s = Gamma / epsilon.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0; 0 gives the uniform choice, inf the best action.
    calibration : {"range", "sensitivity"}, optional
        s = Gamma / epsilon, or s = 2 Delta / epsilon as published (never smaller).

    Raises
    ------
    ValueError
        For an epsilon that is not >= 0 or an unknown calibration.
    """

    calibration: Calibration = "range"

    def __post_init__(self) -> None:
        """Check epsilon and the calibration."""
        super().__post_init__()
        known = get_args(Calibration)
        if self.calibration not in known:
            raise ValueError(f"calibration must be one of {known!r}, got calibration={self.calibration!r}.")

    def scale(self, problem: DecisionProblem) -> float:
        """The scale s that spends epsilon, in units of utility; inf at epsilon = 0."""
        if self.epsilon == 0:
            return np.inf
        found = problem.sensitivity
        return (found.range if self.calibration == "range" else 2 * found.value) / self.epsilon

    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), exact: computed by integrating over the noise."""
        k, scale = problem.n_actions, self.scale(problem)
        if scale == np.inf:
            return constant_logs(np.full(k, -np.log(k)), problem.n_records)
        if scale == 0:
            return one_hot_logs(problem.best_actions, k)
        logs = np.empty_like(problem.utilities, order="F")
        for rows in blocks(problem.n_records):
            logs[rows] = self._logs_of_scores(problem.utilities[rows], scale)
        drop_unreachable(logs, problem.adjacency)
        return logs

    def sample(self, problem: DecisionProblem, records: IntArray, rng: np.random.Generator) -> IntArray:
        """Run the mechanism once for each record index, (m,). Floating point: for simulation, not for release."""
        scale = self.scale(problem)
        if scale == 0:
            best: IntArray = problem.best_actions[records]
            return best
        actions = np.empty(len(records), dtype=np.intp)
        for rows in blocks(len(records)):
            actions[rows] = self._draw(scaled_scores(problem.utilities[records[rows]], scale), rng)
        return actions

    @abstractmethod
    def _logs_of_scores(self, utilities: FloatArray, scale: float) -> FloatArray:
        """log p(a|x) of a block of rows, (m, n_actions), for a finite scale > 0."""

    @abstractmethod
    def _draw(self, scores: FloatArray, rng: np.random.Generator) -> IntArray:
        """One action for each row of scaled scores, (m, n_actions), whose largest entry is 0."""


def scaled_scores(utilities: FloatArray, scale: float) -> FloatArray:
    """(u - max u) / s for each row: at most 0, and exact to rounding for utilities of any size, (m, n_actions)."""
    with np.errstate(over="ignore"):
        scores: FloatArray = (utilities - utilities.max(axis=1)[:, None]) / scale
    return np.maximum(scores, -LARGEST_GAP, out=scores)


def score_range(scores: FloatArray, adjacency: Adjacency, admissible: BoolArray | None = None) -> float:
    """Gamma of a table of scores, (n_records, n_actions): `sensitivity(...).range` without the rest."""
    widest = 0.0
    for a, b in combinations(range(scores.shape[1]), 2):
        column = scores[:, a] - scores[:, b]
        if admissible is not None:
            column[~(admissible[:, a] & admissible[:, b])] = 0.0
        widest = max(widest, largest_difference(column, adjacency).value)
    return widest

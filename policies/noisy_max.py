"""Mechanisms with noisy scores: report noisy max with Laplace noise, and permute-and-flip, with exponential noise.

Their probabilities are exact, by integration over the noise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import roots_legendre

from policies.arrays import FloatArray, blocks
from policies.policy import NotApplicableError, Policy, drop_unreachable, one_hot_logs
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem, once_per_problem
from policies.sensitivity import noise_scale

Calibration = Literal["range", "sensitivity", "exact"]

# The most actions for which the probabilities of report-noisy-max are computed: the work grows with their third power.
MOST_ACTIONS = 64
# Terms of its sums that are held at a time: so many for each record, squared actions.
_TERMS = 1 << 18
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
    calibration : {"range", "sensitivity", "exact"}, optional
        s = Gamma / epsilon; or s = 2 Delta / epsilon as published (never smaller); or the least s found whose table
        has an exact loss of at most epsilon (never larger than the first, see `exact_scale`): then all of epsilon is
        spent.

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
        if self.calibration == "exact":
            return exact_scale(problem, self)
        found = problem.sensitivity
        return noise_scale(found.range if self.calibration == "range" else 2 * found.value, self.epsilon)

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), exact: computed by integrating over the noise."""
        self._check(problem)
        return self.logs_at(problem, self.scale(problem))

    def logs_at(self, problem: DecisionProblem, scale: float) -> FloatArray:
        """log p(a|x), (n_records, n_actions), at a scale >= 0, whatever epsilon is."""
        k = problem.n_actions
        if scale == np.inf:
            return np.full((problem.n_records, k), -np.log(k), order="F")
        if scale == 0:
            return one_hot_logs(problem.best_actions, k)
        logs = np.empty_like(problem.utilities, order="F")
        for rows in blocks(problem.n_records):
            logs[rows] = self.logs_of_scores(problem.utilities[rows], scale)
        drop_unreachable(logs, problem.adjacency)
        return logs

    @abstractmethod
    def logs_of_scores(self, utilities: FloatArray, scale: float) -> FloatArray:
        """log p(a|x) of a block of rows, (m, n_actions), for a finite scale > 0."""


# A loss that was computed is below the true one by less than this share of it and that much.
_RELATIVE, _ABSOLUTE = 1e-12, 1e-14
# To how much the logarithm of the scale is found.
_TOLERANCE = 1e-10


@once_per_problem
def exact_scale(problem: DecisionProblem, policy: NoisyScores) -> float:
    """The least scale found at which the exact loss of a policy's table on a problem is at most epsilon > 0.

    The search begins at Gamma / epsilon, where the loss is within epsilon by the theorem, and ends where it exceeds
    epsilon first. Whatever the loss does between, that of the scale that is returned was computed from its table. It is
    0 where neighbours have the same best action: then there is nothing to hide.
    """
    widest, most = noise_scale(problem.sensitivity.range, policy.epsilon), policy.epsilon * (1 - _RELATIVE) - _ABSOLUTE
    losses: dict[float, float] = {}

    def excess(shrunk: float) -> float:
        logs = policy.logs_at(problem, widest * math.exp(-shrunk))
        losses[shrunk] = privacy_loss_of_logs(logs, problem.adjacency).epsilon
        return min(losses[shrunk] - most, policy.epsilon)

    if widest in (0.0, math.inf):
        return widest
    if excess(math.inf) <= 0:
        return 0.0
    if excess(0.0) > 0:
        return widest
    low, high = 0.0, math.log(2)
    while excess(high) <= 0:
        low, high = high, 2 * high
    excess(brentq(excess, low, high, xtol=_TOLERANCE) - 2 * _TOLERANCE)
    return widest * math.exp(-max(shrunk for shrunk, loss in losses.items() if loss <= most))


def scaled_scores(utilities: FloatArray, scale: float) -> FloatArray:
    """(u - max u) / s for each row: at most 0, and exact to rounding for utilities of any size, (m, n_actions)."""
    with np.errstate(over="ignore"):
        scores: FloatArray = (utilities - utilities.max(axis=1)[:, None]) / scale
    return np.maximum(scores, -LARGEST_GAP, out=scores)


@dataclass(frozen=True)
class PermuteAndFlip(NoisyScores):
    """Visit the actions in random order and take the first whose coin, heads with p_a, shows heads.

    p_a = exp((u(x, a) - max u) / s), so a best action always accepts. Then
    p(a|x) = p_a int_0^1 prod_{b != a} (1 - p_b t) dt (McKenna & Sheldon 2020, Permute-and-flip: a new mechanism for
    differentially private selection). It is report-noisy-max with exponential noise of scale s (Ding et al. 2021,
    The permute-and-flip mechanism is identical to report-noisy-max with exponential noise), which is why s = Gamma /
    epsilon is enough; see `NoisyScores`. At the same s it is never worse than the exponential mechanism.
    """

    name = "permute-and-flip"
    uses_prior = False
    row_wise = True  # reads the row and Gamma (or Delta, or the largest loss)

    def _loss_bound(self, problem: DecisionProblem) -> float:
        """s log k: it does no worse than the exponential mechanism with the same scale."""
        return self.scale(problem) * float(np.log(problem.n_actions))

    def logs_of_scores(self, utilities: FloatArray, scale: float) -> FloatArray:
        """log p(a|x) of a block of rows, (m, n_actions): see `win_integrals`."""
        logs = scaled_scores(utilities, scale)
        logs += np.log(win_integrals(np.exp(logs)))
        return logs


def win_integrals(p: FloatArray) -> FloatArray:
    """int_0^1 prod_{b != a} (1 - p_b t) dt for each row and action.

    Parameters
    ----------
    p : array, (m, k)
        Entries in [0, 1].

    Returns
    -------
    array, (m, k)
        At least 1/k, so nothing is lost in its logarithm.

    Notes
    -----
    The integrand is a polynomial of degree k - 1, for which Gauss-Legendre with ceil(k / 2) nodes is exact; weights
    and values are positive, so nothing cancels either.
    """
    total = np.zeros_like(p)
    for node, weight in _quadrature((p.shape[1] + 1) // 2):
        # No factor is 0, as no node is 1: dividing the product by one of them is safe, and as exact as the product.
        factors = 1 - node * p
        total += weight * (factors.prod(axis=1)[:, None] / factors)
    return total


@cache
def _quadrature(n_nodes: int) -> list[tuple[float, float]]:
    """The nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = roots_legendre(n_nodes)
    return list(zip((nodes + 1) / 2, weights / 2, strict=True))


@dataclass(frozen=True)
class ReportNoisyMax(NoisyScores):
    """Add Laplace noise of scale s to each score and report the action with the largest sum.

    (Dwork & Roth 2014, The algorithmic foundations of differential privacy, section 3.3; there for counts, which can
    only move in one direction. Any scores can be shifted into that case, see `NoisyScores`.)
    """

    name = "report-noisy-max"
    uses_prior = False
    row_wise = True  # reads the row and Gamma (or Delta, or the largest loss)

    def _check(self, problem: DecisionProblem) -> None:
        """NotApplicableError for too many actions."""
        if problem.n_actions > MOST_ACTIONS:
            raise NotApplicableError(f"{self.name} takes at most {MOST_ACTIONS} actions, got {problem.n_actions}.")

    def logs_of_scores(self, utilities: FloatArray, scale: float) -> FloatArray:
        """log p(a|x) of a block of rows, (m, n_actions): see `log_win_probabilities`."""
        order = np.argsort(-utilities, axis=1, kind="stable")
        ranked, logs = np.take_along_axis(utilities, order, axis=1).T, np.empty(utilities.shape)
        step = max(1, _TERMS // utilities.shape[1] ** 2)
        for rows in (slice(start, start + step) for start in range(0, len(utilities), step)):
            found = log_win_probabilities(ranked[:, rows].copy(), scale)
            np.put_along_axis(logs[rows], order[rows], found.T, axis=1)
        return logs


def log_win_probabilities(ranked: FloatArray, scale: float) -> FloatArray:
    """log P(action r has the largest score plus Laplace noise), exact for any number of actions.

    Parameters
    ----------
    ranked : array, (k, m)
        Scores of m records, each in falling order along the first axis.
    scale : float
        Scale of the noise, > 0 and finite, in the units of the scores.

    Returns
    -------
    array, (k, m)

    Notes
    -----
    With z the scores in units of the scale, less the largest, P(r) is the integral over x of the density at x - z_r
    times the product over j != r of the distribution function at x - z_j. The scores split the line into pieces; on
    each one the distribution function of j is either e^(x - z_j) / 2 or 1 - e^(z_j - x) / 2. Every result below is
    P(r) / e^(z_r), which is at least 1 / (2k) whatever the gaps: its logarithm loses nothing, and pieces need small
    errors relative to 1 only. All exponents are <= 0.
    """
    k = len(ranked)
    with np.errstate(over="ignore"):
        z = np.maximum((ranked - ranked[0]) / scale, -LARGEST_GAP)
        gaps = np.minimum((ranked[:-1] - ranked[1:]) / scale, LARGEST_GAP)
    # Above all scores: density e^(z_r - x) / 2, and the substitution y = e^(-x) leaves a polynomial.
    total: FloatArray = win_integrals((np.exp(z) / 2).T).T / 2
    crowding = np.zeros_like(z[0])  # sum over 1 < j < i of z_j - z_i
    for i in range(1, k):
        _add_piece(total, z, gaps[i - 1], i, np.exp(-crowding) * 0.5**i)
        crowding += max(i - 1, 0) * gaps[i - 1]
    # Below all scores every action has the same integrand, a single exponential.
    total += np.exp(-crowding) * 0.5**k / k * np.exp(np.minimum(z[k - 1] - z, 0.0))
    log_p: FloatArray = z + np.log(total)
    return log_p


def _add_piece(total: FloatArray, z: FloatArray, gap: FloatArray, i: int, factor: FloatArray) -> None:
    """Add to P(r) / e^(z_r) what comes from x between the i-th largest score and the next one, `gap` below it.

    At z_i - x = t, the first i actions contribute e^(-i t) and the others 1 - c_j y, with y = e^(t - gap) and
    c_j = e^(z_j - z_(i+1)) / 2. As 1 - c_j y = (1 - c_j) + c_j (1 - y), their product is a polynomial in 1 - y whose
    coefficients are >= 0 and sum to 1: the law of a number of successes. Nothing cancels in the sum.
    """
    chances = np.exp(z[i:] - z[i]) / 2
    n = len(chances)
    upper, lower = map(np.array, _moments(gap, i, n))
    # laws[r, l]: the probability that l of the first r trials succeed.
    laws = np.zeros((n + 1, n + 1, len(gap)))
    laws[0, 0] = 1.0
    for r, chance in enumerate(chances):
        laws[r + 1] = laws[r] * (1 - chance)
        laws[r + 1, 1:] += laws[r, :-1] * chance
    total[:i] += factor * np.exp(z[i - 1] - z[:i]) * (laws[n] * upper).sum(axis=0)
    # Without r: l successes before it, and after it what is expected of `lower` at l and those that follow.
    for r in reversed(range(n)):
        total[i + r] += factor / 2 * (laws[r, : r + 1] * lower[: r + 1]).sum(axis=0)
        lower = lower[:-1] * (1 - chances[r]) + lower[1:] * chances[r]


def _moments(gap: FloatArray, i: int, n: int) -> tuple[list[FloatArray], list[FloatArray]]:
    """B(i, 0..n) and B(i-1, 0..n-1), where B(i, l) = int_0^gap e^(-i t) (1 - e^(t - gap))^l dt.

    Partial integration gives B(0, l) = B(0, l-1) - V^l / l and i B(i, l) = V^l - l e^(-gap) B(i-1, l-1), with
    V = 1 - e^(-gap).
    """
    ratio, fall = np.exp(-gap), -np.expm1(-gap)
    powers = [np.ones_like(gap)]
    for _ in range(n):
        powers.append(powers[-1] * fall)
    row = [gap]
    for m in range(1, n + 1):
        row.append(row[-1] - powers[m] / m)
    previous = row
    for j in range(1, i + 1):
        previous, row = row, [-np.expm1(-j * gap) / j]
        row += [(powers[m] - m * ratio * previous[m - 1]) / j for m in range(1, n + 1)]
    return row, previous[:n]

"""The exponential mechanism, calibrated by sensitivity or by range."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.adjacency import Adjacency
from policies.arrays import FloatArray, IntArray, blocks
from policies.literature import DURFEE_ROGERS_2019, MCSHERRY_TALWAR_2007
from policies.policy import Look, Policy, constant_logs, drop_unreachable, one_hot_logs
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class ExponentialFamily(Policy):
    """p(a|x) proportional to mu(a) exp(u(x, a) / s); subclasses say which scale s spends epsilon.

    epsilon = 0 gives mu (uniform by default), epsilon = inf the best action that mu allows.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0.
    base_measure : sequence of float, optional
        mu, one weight >= 0 per action, not all 0; public, chosen without looking at any record.
    """

    base_measure: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Check epsilon and the base measure."""
        super().__post_init__()
        if self.base_measure is not None:
            weights = tuple(float(weight) for weight in self.base_measure)
            if not all(0 <= weight < np.inf for weight in weights) or sum(weights) <= 0:
                raise ValueError(f"base_measure must be finite weights >= 0, not all 0, got {weights!r}.")
            object.__setattr__(self, "base_measure", weights)

    @abstractmethod
    def scale(self, problem: DecisionProblem) -> float:
        """The scale s that spends epsilon, in units of utility."""

    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), stable for any utilities: only differences within a row are ever exponentiated."""
        return self.tables(problem)[0]

    def tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x), from one pass of exponentials."""
        log_base = self._log_base(problem.n_actions)
        if self.epsilon == 0:
            logs = constant_logs(log_base - np.logaddexp.reduce(log_base), problem.n_records)
            return logs, np.exp(logs)
        scores, scale = self.scores(problem), self.scale(problem)
        if scale == 0:
            allowed = np.where(np.isfinite(log_base), scores, -np.inf)
            logs = one_hot_logs(allowed.argmax(axis=1), problem.n_actions)
            return logs, np.exp(logs)
        return softmax(scores, scale, log_base, problem.adjacency)

    def scores(self, problem: DecisionProblem) -> FloatArray:
        """What is exponentiated, (n_records, n_actions): the utilities."""
        return problem.utilities

    def among(self, actions: IntArray, n_actions: int) -> ExponentialFamily:
        """Of its base measure only the weights of these actions count."""
        if self.base_measure is None:
            return self
        log_base = self._log_base(n_actions)
        weights = [self.base_measure[action] for action in actions]
        if not np.isfinite(log_base[actions]).any():
            raise ValueError(f"base_measure must allow an action wherever records do, got none of {actions.tolist()}.")
        return replace(self, base_measure=weights)

    def loss_bound(self, problem: DecisionProblem) -> float:
        """s log k, for a uniform base measure (McSherry & Talwar 2007, theorem 8; the log k form in expectation).

        By the Gibbs variational principle, p(.|x) maximises E[u] + s H(p), so max u - E[u] <= s H(p) <= s log k.
        """
        if self.base_measure is not None:
            return np.nan
        return np.inf if self.epsilon == 0 else self.scale(problem) * float(np.log(problem.n_actions))

    def _log_base(self, n_actions: int) -> FloatArray:
        if self.base_measure is None:
            return np.zeros(n_actions)
        if len(self.base_measure) != n_actions:
            raise ValueError(f"base_measure must have {n_actions} weights, got {len(self.base_measure)}.")
        with np.errstate(divide="ignore"):
            log_base: FloatArray = np.log(np.asarray(self.base_measure))
        return log_base


@dataclass(frozen=True)
class Exponential(ExponentialFamily):
    """The exponential mechanism as published: s = 2 Delta / epsilon (McSherry & Talwar 2007, theorem 6)."""

    name = "exponential"
    gloss = "as published: noise for the sensitivity"
    words = "the exponential mechanism, its scale set by the sensitivity of the utilities"
    formula = "exp(u/s), s = 2Δ/ε"
    works = (MCSHERRY_TALWAR_2007,)
    look = Look("#0072B2", "o")
    uses_prior = False
    row_wise = True  # reads the row and Delta

    def scale(self, problem: DecisionProblem) -> float:
        """2 Delta / epsilon."""
        return 2 * problem.sensitivity.value / self.epsilon


@dataclass(frozen=True)
class ExponentialBoundedRange(ExponentialFamily):
    """The exponential mechanism calibrated by range: s = Gamma / epsilon (Durfee & Rogers 2019, section 4).

    Between neighbours, log p(a|x) - log p(a|x') = d_a/s - (log Z - log Z'), and log Z - log Z' lies between min d/s
    and max d/s; so the loss is at most Gamma / s. As Gamma <= 2 Delta, it never does worse than `Exponential`.
    """

    name = "exponential-bounded-range"
    gloss = "noise for the range"
    words = "the exponential mechanism, its scale set by the range of the differences in utility"
    formula = "exp(u/s), s = Γ/ε"
    works = (MCSHERRY_TALWAR_2007, DURFEE_ROGERS_2019)
    look = Look("#009E73", "^")
    uses_prior = False
    row_wise = True  # reads the row and Gamma

    def scale(self, problem: DecisionProblem) -> float:
        """Gamma / epsilon."""
        return problem.sensitivity.range / self.epsilon


def softmax(
    scores: FloatArray, scale: float, log_base: FloatArray, adjacency: Adjacency
) -> tuple[FloatArray, FloatArray]:
    """Normalise exp(score / s + log mu) over each row, for scale > 0.

    Parameters
    ----------
    scores : array, (n_records, k)
    scale : float
        s > 0, in the units of the scores.
    log_base : array, (k,)
        log mu; -inf forbids an action.
    adjacency : Adjacency
        For `drop_unreachable`.

    Returns
    -------
    logs, probabilities : arrays, (n_records, k), column-major
    """
    logs, probabilities = np.empty_like(scores, order="F"), np.empty_like(scores, order="F")
    allowed = np.isfinite(log_base)
    for rows in blocks(len(scores)):
        log, weight = logs[rows], probabilities[rows]
        # The largest score is subtracted before the division: it may be 1e6 where the differences are 1.
        np.subtract(scores[rows], scores[rows].max(axis=1)[:, None], out=log)
        log /= scale
        log += log_base
        if not allowed.all():
            log -= log.max(axis=1)[:, None]
        np.exp(log, out=weight)
        total = weight.sum(axis=1)
        weight /= total[:, None]
        log -= np.log(total)[:, None]
    drop_unreachable(logs, adjacency)
    return logs, probabilities

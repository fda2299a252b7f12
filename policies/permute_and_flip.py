"""Permute-and-flip: the exponential mechanism's better half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.literature import MCKENNA_SHELDON_2020
from policies.policy import Look
from policies.problem import DecisionProblem
from policies.scores import NoisyScores, scaled_scores


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
    gloss = "flips coins for treatments in random order"
    words = (
        "permute-and-flip, which visits the treatments in random order and takes each with a probability that falls "
        "with its regret"
    )
    formula = "the first of a random order whose coin, exp(−regret/s), shows heads; s = Γ/ε"
    works = (MCKENNA_SHELDON_2020,)
    look = Look("#56B4E9", "P")
    uses_prior = False
    row_wise = True  # reads the row and Gamma (or Delta)

    def loss_bound(self, problem: DecisionProblem) -> float:
        """s log k: it does no worse than the exponential mechanism with the same scale."""
        return self.scale(problem) * float(np.log(problem.n_actions))

    def _logs_of_scores(self, utilities: FloatArray, scale: float) -> FloatArray:
        logs = scaled_scores(utilities, scale)
        logs += np.log(win_integrals(np.exp(logs)))
        return logs

    def _draw(self, scores: FloatArray, rng: np.random.Generator) -> IntArray:
        # The random order is that of independent uniform keys; a key of inf stands for tails.
        keys = rng.random(scores.shape)
        keys[rng.random(scores.shape) >= np.exp(scores)] = np.inf
        first: IntArray = keys.argmin(axis=1)
        return first


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
    nodes, weights = np.polynomial.legendre.leggauss((p.shape[1] + 1) // 2)
    total = np.zeros_like(p)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        # No factor is 0, as no node is 1: dividing the product by one of them is safe, and as exact as the product.
        factors = 1 - node * p
        total += weight * (factors.prod(axis=1)[:, None] / factors)
    return total

"""Randomised response on the decision: the best action most of the time, any other one otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.literature import KAIROUZ_2016, WARNER_1965
from policies.policy import Look, Policy, two_values
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class RandomizedResponse(Policy):
    """k-ary randomised response on the greedy action; it uses the order of the utilities and not the prior.

    The best action has probability e^epsilon / (e^epsilon + k - 1), each other one 1 / (e^epsilon + k - 1)
    (Kairouz, Oh & Viswanath 2016, Extremal mechanisms for local differential privacy, equation 17).
    """

    name = "randomized-response"
    gloss = "the best treatment most of the time"
    words = (
        "k-ary randomised response, which takes the best treatment with the largest probability that ε allows, and "
        "the others with equal probability"
    )
    formula = "the best with e^ε/(e^ε + k − 1), each other with 1/(e^ε + k − 1)"
    works = (WARNER_1965, KAIROUZ_2016)
    look = Look("#C84F00", "<")
    uses_prior = False
    row_wise = True  # reads which action of the row is best

    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """Two values: log of the probability to tell the truth, and of each lie."""
        return self.tables(problem)[0]

    def tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """Two values in each table."""
        k = problem.n_actions
        truth = -float(np.log1p((k - 1) * np.exp(-self.epsilon)))
        logs = two_values(problem.best_actions, k, truth, truth - self.epsilon)
        return logs, two_values(problem.best_actions, k, np.exp(truth), np.exp(truth - self.epsilon))

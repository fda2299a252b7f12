"""Randomised response on the decision: the best action most of the time, any other one otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.policy import Policy, one_hot_logs
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class RandomizedResponse(Policy):
    """k-ary randomised response on the greedy action; it uses the order of the utilities and not the prior.

    The best action has probability e^epsilon / (e^epsilon + k - 1), each other one 1 / (e^epsilon + k - 1)
    (Kairouz, Oh & Viswanath 2016, Extremal mechanisms for local differential privacy, equation 17).
    """

    name = "randomized-response"

    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """Two values: log of the probability to tell the truth, and of each lie."""
        logs = one_hot_logs(problem.best_actions, problem.n_actions)
        if self.epsilon < np.inf:
            log_truth = -np.log1p((problem.n_actions - 1) * np.exp(-self.epsilon))
            np.maximum(logs, -self.epsilon, out=logs)
            logs += log_truth
        return logs

"""The policies that others are measured against: no privacy, no information, one action for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.policy import Policy, one_hot_logs
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class Greedy(Policy):
    """The best action for each record (the first of equals): the highest value, and no privacy."""

    name = "greedy"
    uses_prior = False
    row_wise = True  # reads which action of the row is best
    uses_epsilon = False
    guarantee = np.inf  # none

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """0 for the best action, -inf for the others."""
        return one_hot_logs(problem.best_actions, problem.n_actions)


@dataclass(frozen=True)
class Uniform(Policy):
    """Every action with the same probability."""

    name = "uniform"
    uses_prior = False
    row_wise = True  # reads nothing
    uses_epsilon = False
    guarantee = 0.0  # it reveals nothing

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """-log k everywhere."""
        return np.full((problem.n_records, problem.n_actions), -np.log(problem.n_actions), order="F")


@dataclass(frozen=True)
class BestFixed(Policy):
    """One action for all: the one with the highest value under the prior.

    Where records do not allow every action, it is the best for all of those who allow the same.

    Parameters
    ----------
    action : int, optional
        This one for all who allow it instead, by its position.
    """

    action: int | None = None
    name = "best-fixed"
    row_wise = True  # reads means under the prior
    across_masks = True
    uses_epsilon = False
    guarantee = 0.0  # it reveals nothing

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """0 for the constant action, -inf for the others."""
        if problem.admissible is not None:
            actions = problem.best_fixed_actions
            if self.action is not None:
                actions = np.where(problem.admissible[:, self.action], self.action, actions)
            return one_hot_logs(actions, problem.n_actions)
        logs = np.full((problem.n_records, problem.n_actions), -np.inf, order="F")
        logs[:, problem.best_fixed_action if self.action is None else self.action] = 0.0
        return logs

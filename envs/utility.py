"""The utility of what happened: minus the weight of each outcome, minus the cost of the treatment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envs.scenario import Scenario


@dataclass(frozen=True)
class Utility:
    """U(outcome, a) = - sum of weight * outcome - cost[a].

    Attributes
    ----------
    weights : mapping of outcome to float
        What an outcome costs, in units of utility; outcomes that are not named cost nothing.
    costs : mapping of action to float
        What a treatment costs, in the same units; actions that are not named cost nothing.
    """

    weights: Mapping[str, float]
    costs: Mapping[str, float]

    def weight_vector(self, outcomes: tuple[str, ...]) -> NDArray[np.float64]:
        """The weights in the order of `outcomes`."""
        return np.array([self.weights.get(name, 0.0) for name in outcomes])

    def cost_vector(self, actions: tuple[str, ...]) -> NDArray[np.float64]:
        """The costs in the order of `actions`."""
        return np.array([self.costs.get(name, 0.0) for name in actions])

    def realized(self, scenario: Scenario, outcomes: ArrayLike, actions: ArrayLike) -> NDArray[np.float64]:
        """The utility of each patient: outcomes (m, n_outcomes) of 0 and 1, actions (m,) -> (m,)."""
        happened = np.asarray(outcomes, dtype=np.float64)
        cost = self.cost_vector(scenario.actions)[np.asarray(actions, dtype=np.intp)]
        return -(happened @ self.weight_vector(scenario.outcomes)) - cost


def default_utility(scenario: Scenario) -> Utility:
    """The utility that the scenario file states."""
    return Utility(scenario.weights, {name: treatment.cost for name, treatment in scenario.treatments.items()})

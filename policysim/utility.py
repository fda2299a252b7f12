"""What outcomes are worth: from outcomes and their weights to u(x, a).

    u(x, a) = - sum over outcomes of weight * E[outcome | x, a] - cost(x, a)

The same for the model of a scenario, whose outcomes are probabilities; for a table of one's own, whose outcomes are
means per patient; and for what happened to a patient, as environments use it for rewards. The sensitivity and the
range of u over neighbours are `DecisionProblem.sensitivity` (`policies.sensitivity`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from envs.records import Lookup
from envs.scenario import Scenario, require_known, utility_numbers
from envs.treatment_response import treatment_costs
from policies.arrays import FloatArray

# What treatments cost, as an outcome of a problem: in units of utility, so that its weight is 1.
COSTS = "costs"


@dataclass(frozen=True)
class Utility:
    """What one of each outcome, and each treatment, costs.

    Attributes
    ----------
    weights : mapping of outcome to float
        In units of utility, >= 0; outcomes that are not named cost nothing.
    costs : mapping of action to float
        In the same units; actions that are not named cost nothing. Rules of a scenario change them by record.

    Raises
    ------
    ValueError
        For what is no mapping, and for values that are no such numbers, each within ±1e50.
    """

    weights: Mapping[str, float]
    costs: Mapping[str, float]

    def __post_init__(self) -> None:
        """Check the numbers, and keep copies."""
        for part in ("weights", "costs"):
            object.__setattr__(self, part, utility_numbers(part, getattr(self, part)))

    def require_names(self, outcomes: Sequence[str], actions: Sequence[str]) -> None:
        """ValueError for the weight of an outcome, or the cost of an action, that is not among these."""
        require_known("outcome", self.weights, outcomes)
        require_known("action", self.costs, actions)

    @classmethod
    def of(cls, scenario: Scenario) -> Utility:
        """The utility that the scenario file states."""
        return cls(scenario.weights, {name: treatment.cost for name, treatment in scenario.treatments.items()})

    def weight_of(self, outcome: str) -> float:
        """What one of an outcome weighs: a unit of costs 1; 0 for a sum of others, which has no weight of its own."""
        return self.weights.get(outcome, 1.0 if outcome == COSTS else 0.0)

    def weight_vector(self, outcomes: Sequence[str]) -> FloatArray:
        """The weights in the order of `outcomes`."""
        return np.array([self.weights.get(name, 0.0) for name in outcomes])

    def cost_vector(self, actions: Sequence[str]) -> FloatArray:
        """The costs in the order of `actions`."""
        return np.array([self.costs.get(name, 0.0) for name in actions])

    def expected(
        self, outcomes: Mapping[str, Sequence[FloatArray]], costs: Sequence[FloatArray], shape: tuple[int, ...]
    ) -> FloatArray:
        """u(x, a), (n_records, n_actions), column-major.

        Parameters
        ----------
        outcomes : mapping of str to sequence of array
            What is expected of each outcome under each action. Each array broadcasts over the grid of records, with
            length 1 along every feature that does not matter.
        costs : sequence of array
            What each action costs, likewise.
        shape : tuple of int
            That of the grid of records.
        """
        weighed = [(self.weights[name], grids) for name, grids in outcomes.items() if self.weights.get(name)]
        # From the smallest grids to the largest: most sums are over few features.
        weighed.sort(key=lambda pair: max(grid.size for grid in pair[1]))
        table: FloatArray = np.empty((math.prod(shape), len(costs)), order="F")
        for action, harm in enumerate(costs):
            for weight, grids in weighed:
                harm = harm + weight * grids[action]  # noqa: PLW2901 - the sum so far
            np.negative(harm, out=table[:, action].reshape(shape))
        return table

    def realized(
        self, scenario: Scenario, outcomes: ArrayLike, actions: ArrayLike, records: ArrayLike | None = None
    ) -> FloatArray:
        """The utility of what happened to each patient, (m,).

        Parameters
        ----------
        scenario : Scenario
            Its outcomes and treatments.
        outcomes : array, (m, n_outcomes)
            0 and 1.
        actions : array, (m,)
            Positions of the treatments.
        records : array of int, (m,), optional
            The records before treatment; needed only where rules say that costs depend on them.

        Raises
        ------
        ValueError
            Without records where they are needed.
        """
        happened, given = np.asarray(outcomes, dtype=np.float64), np.asarray(actions, dtype=np.intp)
        harm = happened @ self.weight_vector(scenario.outcomes)
        if not scenario.costs_by_record:
            return -harm - self.cost_vector(scenario.actions)[given]
        if records is None:
            raise ValueError("the costs of this scenario depend on the record: give records.")
        at = Lookup(scenario.space.codes(records))
        costs = np.stack([at.of(cost) for cost in treatment_costs(scenario, self.costs)])
        return np.asarray(-harm - costs[given, np.arange(len(at.codes))])

    def spread(self, scenario: Scenario, days: int) -> float:
        """How far the returns of two patients can be apart: everything every day and the end of a stay, or nothing."""
        once = self.weights.get(scenario.outcomes[-1], 0.0)
        daily = sum(self.weights.get(name, 0.0) for name in scenario.outcomes[:-1])
        costs = np.concatenate([cost.ravel() for cost in treatment_costs(scenario, self.costs)])
        return once + days * (daily + float(costs.max()) - min(0.0, float(costs.min())))

"""The utility of what happened: minus the weight of each outcome, minus the cost of the treatment.

The reward of the environments: the realised utility of a day, with the user's own values where they are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envs.records import Lookup
from envs.scenario import DEATH, Scenario
from envs.toml_reader import FINITE, is_number, number_wanted, unknown
from envs.treatment_response import treatment_costs


@dataclass(frozen=True)
class Utility:
    """U(outcome, a) = - sum of weight * outcome - cost[a].

    Attributes
    ----------
    weights : mapping of outcome to float
        What an outcome costs, >= 0 and in units of utility; outcomes that are not named cost nothing.
    costs : mapping of action to float
        What a treatment costs, in the same units; actions that are not named cost nothing.

    Raises
    ------
    ValueError
        For what is no mapping, and for values that are no such numbers, each within ±1e50.
    """

    weights: Mapping[str, float]
    costs: Mapping[str, float]

    def __post_init__(self) -> None:
        """Check the numbers, and keep copies."""
        for part, low in (("weights", 0.0), ("costs", -FINITE)):
            numbers = _mapping(part, getattr(self, part))
            for name, value in numbers.items():
                if not is_number(value, low, FINITE):
                    wanted = f"{number_wanted(low, FINITE)} within ±{FINITE:g}"
                    raise ValueError(f"{part}[{name!r}] must be {wanted}, got {value!r}.")
            object.__setattr__(self, part, {name: float(value) for name, value in numbers.items()})

    def require_names(self, outcomes: Sequence[str], actions: Sequence[str]) -> None:
        """ValueError for the weight of an outcome, or the cost of an action, that is not among these."""
        for kind, numbers, names in (("outcome", self.weights, outcomes), ("action", self.costs, actions)):
            for name in numbers:
                if name not in names:
                    raise ValueError(f"{unknown(kind, str(name), names)}.")

    def weight_vector(self, outcomes: tuple[str, ...]) -> NDArray[np.float64]:
        """The weights in the order of `outcomes`."""
        return np.array([self.weights.get(name, 0.0) for name in outcomes])

    def cost_vector(self, actions: tuple[str, ...]) -> NDArray[np.float64]:
        """The costs in the order of `actions`."""
        return np.array([self.costs.get(name, 0.0) for name in actions])

    def realized(
        self, scenario: Scenario, outcomes: ArrayLike, actions: ArrayLike, records: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """The utility of each patient, (m,).

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
        """How far the returns of two patients can be apart: everything every day and death, against nothing."""
        weights = dict(self.weights)
        costs = np.concatenate([cost.ravel() for cost in treatment_costs(scenario, self.costs)])
        death = weights.pop(DEATH, 0.0)
        return death + days * (sum(weights.values()) + float(costs.max()) - min(0.0, float(costs.min())))


def default_utility(scenario: Scenario) -> Utility:
    """The utility that the scenario file states."""
    return Utility(scenario.weights, {name: treatment.cost for name, treatment in scenario.treatments.items()})


def utility_of(scenario: Scenario, values: Mapping[str, Any] | None) -> Utility:
    """The scenario's utility, with `values` in place of those that they name.

    Parameters
    ----------
    scenario : Scenario
        Gives the default.
    values : mapping or None
        {"weights": {outcome: number >= 0}, "costs": {action: number}}, either or both.

    Raises
    ------
    ValueError
        For names that the scenario does not have, and for values that are no such numbers.
    """
    parts: dict[str, Any] = {"weights": {}, "costs": {}}
    for part, numbers in _mapping("utility", {} if values is None else values).items():
        if part not in parts:
            raise ValueError(f"{unknown('part of utility', str(part), list(parts))}.")
        parts[part] = numbers
    stated, default = Utility(**parts), default_utility(scenario)
    stated.require_names(scenario.outcomes, scenario.actions)
    return Utility({**default.weights, **stated.weights}, {**default.costs, **stated.costs})


def _mapping(name: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, got {value!r}.")
    return value

"""What the benefit is made of: the utility that a policy loses, outcome by outcome and in costs of treatments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from envs.scenario import DEATH
from envs.treatment_response import ResponseModel
from policies.arrays import FloatArray
from policies.distinct import distinct_rows
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.decision.prices import COSTS
from policysim.study.declared import ScenarioStudy
from policysim.study.sweep import evaluated_on


def loss_by_outcome(study: ScenarioStudy, problem: DecisionProblem, policies: Sequence[Policy]) -> pd.DataFrame:
    """The utility that each policy loses against the best treatment for each, by what it is lost in.

    As u(x, a) = -sum_o weight_o P(o | x, a) - cost_a, the loss of a policy p against the best treatment for each, g, is
    the sum of weight_o (E_p P(o) - E_g P(o)) over the outcomes, and of E_p cost - E_g cost.

    Parameters
    ----------
    study : ScenarioStudy
        Its outcomes, weights and costs.
    problem : DecisionProblem
        Built from it.
    policies : sequence of Policy
        At their own epsilons.

    Returns
    -------
    DataFrame
        policy, outcome, weight, more, lost: a row for each outcome that has a weight, and one for the costs of
        treatments, policy by policy. `more` is how much likelier the outcome is than under the best for each (for the
        costs, NaN), `lost` what that costs in utility per patient; negative where the policy does better in it. The sum
        of `lost` over the rows of a policy is its loss.
    """
    parts = _Parts(study, problem)
    best = parts.of(Greedy())
    frames = []
    for policy in policies:
        more = parts.of(policy) - best
        weights = np.array([*parts.weights, np.nan])
        frames.append(
            pd.DataFrame(
                {
                    "policy": policy.name,
                    "outcome": [*parts.outcomes, COSTS],
                    "weight": weights,
                    "more": [*more[:-1], np.nan],
                    "lost": np.where(np.isnan(weights), 1.0, weights) * more,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


class _Parts:
    """The expected probability of each outcome, and the expected cost of the treatment, under a policy."""

    def __init__(self, study: ScenarioStudy, problem: DecisionProblem) -> None:
        scenario = study.scenario
        weights = {name: float(study.utility.weights.get(name, 0.0)) for name in scenario.outcomes}
        self.outcomes = [name for name, weight in weights.items() if weight]
        self.weights = [weights[name] for name in self.outcomes]
        self._response = ResponseModel(scenario)
        self._costs = self._response.costs(study.utility.costs)
        self._scenario, self._problem = scenario, problem

    def of(self, policy: Policy) -> FloatArray:
        """(n_outcomes + 1,): the probabilities, and at the end the cost."""
        treated = list(self._treated(policy))
        found = [self._probability(name, treated) for name in self.outcomes]
        return np.array([*found, self._expected(self._costs, treated)])

    def _treated(self, policy: Policy) -> Iterator[FloatArray]:
        """The share of all patients that are a record and get an action, (n_records,) for each action."""
        on = evaluated_on(policy, self._problem)
        table = policy.probabilities(on)
        rows = None if on is self._problem else distinct_rows(self._problem)
        for column in table.T:
            yield self._problem.prior * (column if rows is None else column[rows.row])

    def _probability(self, outcome: str, treated: list[FloatArray]) -> float:
        if outcome == DEATH:
            return float(
                sum(mass @ died for mass, died in zip(treated, self._problem.outcomes["deaths"].T, strict=True))
            )
        return self._expected([self._response.chance(outcome, action) for action in range(len(treated))], treated)

    def _expected(self, grids: Sequence[FloatArray], treated: list[FloatArray]) -> float:
        """The sum of what stands for each action and record, weighted by the share of patients who are and get it."""
        total = 0.0
        for grid, mass in zip(grids, treated, strict=True):
            same = tuple(axis for axis, length in enumerate(grid.shape) if length == 1)
            total += float((mass.reshape(self._scenario.space.shape).sum(axis=same, keepdims=True) * grid).sum())
        return total

"""What drives the sensitivity: how much of it each outcome's weight makes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from envs.response import ResponseModel
from policies.adjacency import largest_difference
from policies.problem import DecisionProblem
from policysim.study import ScenarioStudy

COSTS = "costs of treatments"


def sensitivity_by_outcome(study: ScenarioStudy, problem: DecisionProblem) -> pd.DataFrame:
    """Each outcome's own sensitivity, and its part in the overall one.

    As u(x, a) = -sum_o weight_o P(o | x, a) - cost_a, the difference of u between two records is the sum of
    those of the outcomes; the costs are the same for all records and make none of it.

    Parameters
    ----------
    study : ScenarioStudy
        Its outcomes and weights.
    problem : DecisionProblem
        Built from it.

    Returns
    -------
    DataFrame
        The outcomes that have a weight, the largest contribution first, and last the costs.

        outcome : its name
        weight : in units of utility; NaN for the costs
        sensitivity : max over neighbours x, x' and actions a of weight |P(o | x, a) - P(o | x', a)|
        contribution : to the difference of u between the two neighbours and under the action that attain the overall
            sensitivity; these add up to it. Negative for what makes it smaller
        share : contribution / sensitivity of the problem; 0 where that is 0

    Examples
    --------
    >>> import policysim as ps
    >>> study = ps.load_study("covid")
    >>> table = sensitivity_by_outcome(study, ps.build_problem(study))
    >>> table.loc[0, "outcome"]
    'death'
    """
    scenario, adjacency = study.scenario, problem.adjacency
    response = ResponseModel(scenario)
    found = problem.sensitivity
    pair = [found.witness.record, found.witness.neighbour]
    # (n_outcomes,): less of an outcome is more utility.
    differences = -np.subtract(*response.outcome_probabilities(pair)[:, found.witness.action, :])
    rows = []
    for outcome, difference in zip(scenario.outcomes, differences, strict=True):
        weight = float(study.utility.weights.get(outcome, 0.0))
        if weight:
            columns = response.probability(outcome).T
            largest = max(largest_difference(column, adjacency).value for column in columns)
            rows.append((outcome, weight, abs(weight) * largest, weight * float(difference)))
    rows.sort(key=lambda row: -row[3])
    rows.append((COSTS, np.nan, 0.0, 0.0))
    table = pd.DataFrame(rows, columns=["outcome", "weight", "sensitivity", "contribution"])
    return table.assign(share=table["contribution"] / found.value if found.value > 0 else 0.0)

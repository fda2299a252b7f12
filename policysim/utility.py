"""The expected utility of giving each record each treatment: the table on which every policy works."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envs.response import ResponseModel
from envs.scenario import DEATH
from envs.utility import Utility


def expected_utilities(response: ResponseModel, utility: Utility) -> NDArray[np.float64]:
    """u(x, a) = E[U(outcome, a) | x, a], exactly.

    Parameters
    ----------
    response : ResponseModel
        Outcome probabilities.
    utility : Utility
        Weights of outcomes and costs of treatments.

    Returns
    -------
    array, (n_records, n_actions), column-major
        In units of utility. As U is linear in the outcomes, their probabilities are enough.
    """
    scenario = response.scenario
    space = scenario.space
    weights = dict(zip(scenario.outcomes, utility.weight_vector(scenario.outcomes), strict=True))
    costs = utility.cost_vector(scenario.actions)
    table = np.empty_like(response.death)
    for action in range(table.shape[1]):
        harm = np.full((1,) * len(space.shape), costs[action])
        for position, name in enumerate(scenario.transient):
            harm = harm + weights[name] * space.along(name, response.presence[action, position])
        column = table[:, action]
        np.multiply(response.death[:, action], -weights[DEATH], out=column)
        column -= np.broadcast_to(harm, space.shape).ravel()
    return table

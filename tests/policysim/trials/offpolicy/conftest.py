"""A log of six rows whose estimates are worked out by hand, and logs of the covid scenario with known values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from envs.cohort import PatientSampler
from envs.treatment_response import ResponseModel
from policies.policy import draw_actions
from policysim.logs.log_frame import LoggedData


@pytest.fixture
def six_rows():
    """Weights 8/5, 2/5, 2, 1, 1/2 and 1."""
    return pd.DataFrame(
        {
            "action": ["a", "a", "b", "b", "a", "b"],
            "reward": [1, 0, 1, 0, 1, 1],
            "propensity": [0.5, 0.5, 0.25, 0.5, 0.8, 0.5],
        }
    )


@pytest.fixture
def policy_of_six():
    """The probabilities of a and of b."""
    chance = np.array([0.8, 0.2, 0.5, 0.5, 0.4, 0.5])
    return np.column_stack([chance, 1 - chance])


@dataclass(frozen=True)
class World:
    """Who comes, and the true value of the evaluated policy for a reward."""

    scenario: Any
    response: ResponseModel
    sampler: PatientSampler
    evaluated: np.ndarray
    utility: Any  # None: the reward is to be free of all symptoms
    value: float

    def trials(self, n, how_many, rng):
        """Randomised trials of n patients each: the log, their records, and the evaluated policy for them."""
        records = self.sampler.records(rng.random(n * how_many))
        actions = draw_actions(np.full((n * how_many, 4), 0.25), rng)
        outcomes = self.response.sample(records, actions, rng)  # of all trials at once, which is faster
        if self.utility is None:
            rewards = (~outcomes[:, :-1].any(axis=1)).astype(float)
        else:
            rewards = self.utility.realized(self.scenario, outcomes, actions)
        policy = self.evaluated[records]
        for start in range(0, n * how_many, n):
            rows = slice(start, start + n)
            log = LoggedData(actions[rows], rewards[rows], np.full(n, 0.25), self.scenario.actions)
            yield log, records[rows], policy[rows]


@pytest.fixture(scope="session")
def response(covid):
    return ResponseModel(covid.scenario)


@pytest.fixture(scope="session")
def evaluated(covid_problem):
    return ps.make_policy("randomized-response", epsilon=2).probabilities(covid_problem)


@pytest.fixture(scope="session")
def infected(covid, covid_problem, response, evaluated):
    """Infected patients; the reward is to be free of infection and symptoms afterwards."""
    well = np.ones(covid_problem.utilities.shape)
    for name in covid.scenario.transient:
        well *= 1 - response.probability(name)
    codes, _ = covid.scenario.space.groups("covid_positive")
    prior = covid_problem.prior * codes / (covid_problem.prior @ codes)
    value = float(prior @ (evaluated * well).sum(axis=1))
    return World(covid.scenario, response, PatientSampler.of(prior), evaluated, None, value)


@pytest.fixture(scope="session")
def everyone(covid, covid_problem, response, evaluated):
    """All patients; the reward is the utility, of which a rare death takes 100."""
    sampler = PatientSampler.of(covid_problem.prior)
    return World(covid.scenario, response, sampler, evaluated, covid.utility, covid_problem.value(evaluated))

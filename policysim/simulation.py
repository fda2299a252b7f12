"""Monte Carlo through the vector environment: the check of what is computed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from envs.records import RecordSpace
from policies.arrays import FloatArray
from policies.policy import draw_actions
from policysim.study import Study

ENVIRONMENT = "policysim:policysim/Treatment-v0"
# Patients treated at once: enough to keep the processor busy, few enough for its memory.
BATCH = 1 << 16
# The 97.5 % quantile of the normal distribution.
QUANTILE = 1.959963984540054
# Beyond so many standard errors a difference is no chance: one in 1.7 million.
MOST_ERRORS = 5.0
# What summing millions of rewards may leave, relative.
SUM_ROUNDING = 1e-12


@dataclass(frozen=True)
class Simulation:
    """The mean return of simulated patients beside the exact value.

    Attributes
    ----------
    patients : int
        How many.
    mean : float
        Mean sum of rewards per patient.
    standard_error : float
        Of the mean; NaN for one patient.
    exact : float
        The value that was computed.
    """

    patients: int
    mean: float
    standard_error: float
    exact: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean (normal approximation)."""
        reach = QUANTILE * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def errors_apart(self) -> float:
        """|mean - exact| in standard errors; 0 where they are equal but for rounding."""
        distance = abs(self.mean - self.exact)
        if distance <= SUM_ROUNDING * max(1.0, abs(self.exact)):
            return 0.0
        return distance / self.standard_error if self.standard_error > 0 else math.inf

    @property
    def agrees(self) -> bool:
        """Whether they are at most `MOST_ERRORS` apart."""
        return self.errors_apart <= MOST_ERRORS


def simulate(
    study: Study,
    tables: Sequence[FloatArray],
    *,
    patients: int,
    exact: float,
    seed: int,
    advance: Callable[[int], object] = lambda _: None,
) -> Simulation:
    """Treat simulated patients over `len(tables)` days.

    Parameters
    ----------
    study : Study
        Its scenario and utility.
    tables : sequence of array, (n_records or more, n_actions)
        p(a|x) of each day.
    patients : int
        How many, >= 2.
    exact : float
        The value to compare with.
    seed : int
        Environment and policy draw from separate streams made from it.
    advance : callable, optional
        Called with the number of patients that are done.

    Returns
    -------
    Simulation

    Raises
    ------
    ValueError
        For fewer than two patients.
    """
    if patients < 2:
        raise ValueError(f"patients must be >= 2 for a standard error, got patients={patients}.")
    policy_stream, ward_stream = np.random.SeedSequence(seed).spawn(2)
    rng, space = np.random.default_rng(policy_stream), study.scenario.space
    env = gymnasium.make_vec(
        ENVIRONMENT,
        num_envs=min(BATCH, patients),
        scenario=study.scenario_source,
        utility={"weights": dict(study.utility.weights), "costs": dict(study.utility.costs)},
        horizon=len(tables),
        autoreset_mode="Disabled",
    )
    batches, done = [], 0
    ward_seed: int | None = int(ward_stream.generate_state(1)[0])
    while done < patients:
        kept = min(env.num_envs, patients - done)
        batches.append(_returns(env, space, tables, ward_seed, rng)[:kept])
        ward_seed, done = None, done + kept  # the stream goes on
        advance(kept)
    returns = np.concatenate(batches)
    error = float(returns.std(ddof=1)) / math.sqrt(patients)
    return Simulation(patients, float(returns.mean()), error, exact)


def _returns(
    env: VectorEnv[Any, Any, Any],
    space: RecordSpace,
    tables: Sequence[FloatArray],
    seed: int | None,
    rng: np.random.Generator,
) -> FloatArray:
    """The sum of rewards of each patient, (num_envs,); who is no longer treated has reward 0."""
    observations, _ = env.reset(seed=seed)
    returns = np.zeros(env.num_envs)
    for table in tables:
        records = space.indices(observations[:, : len(space.shape)])
        observations, rewards, *_ = env.step(draw_actions(table[records], rng))
        returns += rewards
    return returns

"""Monte Carlo through the vector environment: the check of what is computed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from envs.records import RecordSpace
from envs.scenario import DEATH
from policies.arrays import FloatArray, IntArray
from policies.policy import draw_actions
from policysim.question.progress import SILENT, Progress
from policysim.study.declared import ScenarioStudy

ENVIRONMENT = "policysim:policysim/Treatment-v0"
# Patients treated at once: enough to keep the processor busy, few enough for its memory.
BATCH = 1 << 16
# The 97.5 % quantile of the normal distribution.
QUANTILE = 1.959963984540054
# A mean that is so many standard errors off is no chance: one in 1.7 million, if the mean is nearly normal.
MOST_ERRORS = 5.0
# What is rarer than this over the number of patients may not have been seen at all: (1 - 15/n)^n is one in 3 million.
UNSEEN = 15.0
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
    spread : float
        How far two patients' returns can be apart at most.
    """

    patients: int
    mean: float
    standard_error: float
    exact: float
    spread: float

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
        """Whether they are at most `MOST_ERRORS` apart, or by no more than rare outcomes that were not drawn explain.

        With few patients, none may have died; then the standard error knows nothing of deaths. An outcome that is not
        seen among n patients has a probability below 15 / n, but for one in 3 million, and moves the mean by at most
        that times the spread.
        """
        return self.errors_apart <= MOST_ERRORS or abs(self.mean - self.exact) <= self.unseen

    @property
    def unseen(self) -> float:
        """How much of the mean outcomes may hold that are too rare to be seen among so many patients."""
        return UNSEEN * self.spread / self.patients


@dataclass(frozen=True, eq=False)
class Decisions:
    """One day's decisions on some patients, and what came of them.

    Attributes
    ----------
    records : array, (m,)
        The record of each patient before treatment.
    actions : array, (m,)
        The position of the treatment.
    rewards : array, (m,)
        The realised utility.
    outcomes : mapping of name to array of bool, (m,)
        What the patient has after treatment, of the scenario's outcomes.
    """

    records: IntArray
    actions: IntArray
    rewards: FloatArray
    outcomes: Mapping[str, NDArray[np.bool_]]


def simulate(
    study: ScenarioStudy,
    tables: Sequence[FloatArray],
    *,
    patients: int,
    exact: float,
    seed: int,
    progress: Progress = SILENT,
    keep: Callable[[Decisions], object] | None = None,
) -> Simulation:
    """Treat simulated patients over `len(tables)` days.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    tables : sequence of array, (n_records or more, n_actions)
        p(a|x) of each day.
    patients : int
        How many, >= 2.
    exact : float
        The value to compare with.
    seed : int
        Environment and policy draw from separate streams made from it.
    progress : Progress, optional
        Told of the patients that are done.
    keep : callable, optional
        Given the decisions of each batch of patients; for one day only. It changes nothing that is drawn.

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
    progress.expect(patients)
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
    done, total, squares = 0, 0.0, 0.0
    ward_seed: int | None = int(ward_stream.generate_state(1)[0])
    while done < patients:
        kept = min(env.num_envs, patients - done)
        # Around the exact value, so that nothing is lost in the squares.
        returns, last = _treat(env, space, tables, ward_seed, rng)
        apart = returns[:kept] - exact
        total, squares = total + float(apart.sum()), squares + float(apart @ apart)
        ward_seed, done = None, done + kept  # the stream goes on
        if keep:
            keep(_first(last, kept))
        progress.advance(kept)
    variance = max(squares - total**2 / patients, 0.0) / (patients - 1)
    error = math.sqrt(variance / patients)
    return Simulation(patients, exact + total / patients, error, exact, spread_of_returns(study, len(tables)))


def spread_of_returns(study: ScenarioStudy, days: int) -> float:
    """How far the returns of two patients can be apart: everything every day and death, against nothing."""
    weights = dict(study.utility.weights)
    death, costs = weights.pop(DEATH, 0.0), study.utility.costs.values()
    return death + days * (sum(weights.values()) + max(costs, default=0.0) - min(0.0, *costs))


def _treat(
    env: VectorEnv[Any, Any, Any],
    space: RecordSpace,
    tables: Sequence[FloatArray],
    seed: int | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, Decisions]:
    """The sum of rewards of each patient, (num_envs,), 0 once no longer treated; and the last day's decisions."""
    observations, _ = env.reset(seed=seed)
    returns = np.zeros(env.num_envs)
    for table in tables:
        records = space.indices(observations[:, : len(space.shape)])
        actions = draw_actions(table[records], rng)
        observations, rewards, _, _, infos = env.step(actions)
        returns += rewards
    return returns, Decisions(records, actions, rewards, infos.get("outcome", {}))


def _first(decisions: Decisions, kept: int) -> Decisions:
    """The first patients; those beyond were only there to fill a batch."""
    outcomes = {name: column[:kept] for name, column in decisions.outcomes.items() if not name.startswith("_")}
    return Decisions(decisions.records[:kept], decisions.actions[:kept], decisions.rewards[:kept], outcomes)

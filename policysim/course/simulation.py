"""Monte Carlo through the vector environment: the check of what is computed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from envs.records import RecordSpace
from policies.arrays import FloatArray, IntArray
from policies.policy import draw_actions
from policysim.course.once import OncePlan
from policysim.question.protocol import SILENT, Progress
from policysim.study.checks import Agreement
from policysim.study.declared import ScenarioStudy

ENVIRONMENT = "policysim:policysim/Treatment-v0"
# Patients treated at once: enough to keep the processor busy, few enough for its memory.
BATCH = 1 << 16


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
    plan: Sequence[FloatArray] | OncePlan,
    *,
    patients: int,
    exact: float,
    seed: int,
    progress: Progress = SILENT,
    keep: Callable[[Decisions], object] | None = None,
) -> Agreement:
    """Treat simulated patients over the days of a plan.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    plan : sequence of array, (n_records or more, n_actions), or OncePlan
        p(a|x) of each day; or a schedule for each first record, which is drawn on the first day and followed.
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
    Agreement

    Raises
    ------
    ValueError
        For fewer than two patients.
    """
    if patients < 2:
        raise ValueError(f"patients must be >= 2 for a standard error, got patients={patients}.")
    progress.expect(patients)
    horizon = plan.schedules.shape[-1] if isinstance(plan, OncePlan) else len(plan)
    policy_stream, ward_stream = np.random.SeedSequence(seed).spawn(2)
    rng, space = np.random.default_rng(policy_stream), study.scenario.space
    env = gymnasium.make_vec(
        ENVIRONMENT,
        num_envs=min(BATCH, patients),
        scenario=study.scenario_source,
        utility={"weights": dict(study.utility.weights), "costs": dict(study.utility.costs)},
        horizon=horizon,
        autoreset_mode="Disabled",
    )
    done, total, squares = 0, 0.0, 0.0
    ward_seed: int | None = int(ward_stream.generate_state(1)[0])
    while done < patients:
        kept = min(env.num_envs, patients - done)
        # Around the exact value, so that nothing is lost in the squares.
        returns, last = _treat(env, space, _followed(plan, rng), ward_seed)
        apart = returns[:kept] - exact
        total, squares = total + float(apart.sum()), squares + float(apart @ apart)
        ward_seed, done = None, done + kept  # the stream goes on
        if keep:
            keep(_first(last, kept))
        progress.advance(kept)
    variance = max(squares - total**2 / patients, 0.0) / (patients - 1)
    error = math.sqrt(variance / patients)
    return Agreement(patients, exact + total / patients, error, exact, study.utility.spread(study.scenario, horizon))


def _followed(plan: Sequence[FloatArray] | OncePlan, rng: np.random.Generator) -> list[Callable[[IntArray], IntArray]]:
    """What gives the actions of each day to these records, (m,) -> (m,), for one batch of patients."""
    if not isinstance(plan, OncePlan):
        return [partial(_drawn, table, rng) for table in plan]
    chosen: list[IntArray] = []

    def of_day(day: int, records: IntArray) -> IntArray:
        if day == 0:
            chosen.extend([records, _drawn(plan.probabilities, rng, records)])
        first, schedule = chosen
        return plan.actions(first, schedule, day)

    return [partial(of_day, day) for day in range(plan.schedules.shape[-1])]


def _drawn(table: FloatArray, rng: np.random.Generator, records: IntArray) -> IntArray:
    return draw_actions(table[records], rng)


def _treat(
    env: VectorEnv[Any, Any, Any], space: RecordSpace, days: list[Callable[[IntArray], IntArray]], seed: int | None
) -> tuple[FloatArray, Decisions]:
    """The sum of rewards of each patient, (num_envs,), 0 once no longer treated; and the last day's decisions."""
    observations, _ = env.reset(seed=seed)
    returns = np.zeros(env.num_envs)
    for choose in days:
        records = space.indices(observations[:, : len(space.shape)])
        actions = choose(records)
        observations, rewards, _, _, infos = env.step(actions)
        returns += rewards
    return returns, Decisions(records, actions, rewards, infos.get("outcome", {}))


def _first(decisions: Decisions, kept: int) -> Decisions:
    """The first patients; those beyond were only there to fill a batch."""
    outcomes = {name: column[:kept] for name, column in decisions.outcomes.items() if not name.startswith("_")}
    return Decisions(decisions.records[:kept], decisions.actions[:kept], decisions.rewards[:kept], outcomes)

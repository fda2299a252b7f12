"""Single patients through the vector environment: what counts of patients are compared with."""

from dataclasses import dataclass

import gymnasium
import numpy as np

from policies.policy import draw_actions
from policysim.course.once import OncePlan

ENVIRONMENT = "policysim:policysim/Treatment-v1"


@dataclass(frozen=True)
class Patients:
    """The return of each patient, (n,), and how often each treatment was given and each outcome was there, of each."""

    returns: np.ndarray
    given: np.ndarray  # (n, n_actions)
    happened: np.ndarray  # (n, n_outcomes)


def single_patients(study, plan, patients, seed):
    """Treat single patients over the days of a plan: p(a|x) of each day, or a schedule that is drawn and followed."""
    once = isinstance(plan, OncePlan)
    horizon = plan.schedules.shape[-1] if once else len(plan)
    space, rng = study.scenario.space, np.random.default_rng([seed, 1])
    env = gymnasium.make_vec(
        ENVIRONMENT,
        num_envs=patients,
        scenario=study.scenario_source,
        utility={"weights": dict(study.utility.weights), "costs": dict(study.utility.costs)},
        horizon=horizon,
        autoreset_mode="Disabled",
    )
    observations, _ = env.reset(seed=seed)
    over = np.zeros(patients, dtype=bool)
    found = Patients(
        np.zeros(patients),
        np.zeros((patients, len(study.scenario.actions)), dtype=int),
        np.zeros((patients, len(study.scenario.outcomes)), dtype=int),
    )
    for day in range(horizon):
        records = space.indices(observations[:, : len(space.shape)])
        if once:
            if day == 0:
                first, chosen = records, draw_actions(plan.probabilities[records], rng)
            actions = plan.actions(first, chosen, day)
        else:
            actions = draw_actions(plan[day][records], rng)
        observations, rewards, terminations, _, infos = env.step(actions)
        found.returns[:] += rewards
        found.given[np.flatnonzero(~over), actions[~over]] += 1
        for place, name in enumerate(study.scenario.outcomes):
            found.happened[:, place] += infos["outcome"][name] if "outcome" in infos else False
        over = terminations
    return found

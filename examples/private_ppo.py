"""Train a PPO agent of stable-baselines3 to treat covid patients over 14 days, then make it private.

By hand, in five to ten minutes and 3 GB: `pip install -e . stable-baselines3==2.9.2 torch==2.13.0`, then
`python examples/private_ppo.py`. docs/private-ppo.md says what each step is for, what came out and what is guaranteed.

Worked with Python 3.11.7, stable-baselines3 2.9.2, torch 2.13.0 (CPU), gymnasium 1.4.0, numpy 2.4.6, policysim 0.1.0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import policysim as ps
from policysim.course.schedules import best_schedule
from policysim.course.treatment_course import TreatmentCourse

ENVIRONMENT, DAYS, STEPS, PATIENTS, SEED = "policysim:policysim/Treatment-v1", 14, 500_000, 1 << 18, 0
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)  # of one day
LOWER, UPPER = -4.0, 0.0  # log-probabilities are never above 0; all actions below e^-4 = 1.8 % count as equally bad
Array = NDArray[Any]


def train() -> Any:
    """A PPO agent, trained through the vectorisation of its own library."""
    import torch  # noqa: PLC0415 - these two are not among what policysim needs
    from stable_baselines3 import PPO  # noqa: PLC0415
    from stable_baselines3.common.env_util import make_vec_env  # noqa: PLC0415
    from stable_baselines3.common.vec_env import VecNormalize  # noqa: PLC0415

    torch.set_num_threads(1)  # figures do not depend on the number of processors
    patients = make_vec_env(ENVIRONMENT, n_envs=64, seed=SEED, env_kwargs={"horizon": DAYS})
    # Unscaled, deaths (-100) drown the policy's share of the clipped gradient; clipped, they would count for less.
    patients = VecNormalize(patients, norm_obs=False, gamma=1.0, clip_reward=np.inf)
    options = {"n_steps": 128, "batch_size": 1024, "n_epochs": 5, "gamma": 1.0}
    agent = PPO("MlpPolicy", patients, learning_rate=lambda left: 1e-3 * left, **options, seed=SEED, device="cpu")
    agent.learn(STEPS)
    agent.policy.set_training_mode(False)  # no score may depend on who else is in the batch
    return agent


def scores_of(agent: Any) -> Callable[[Array], Array]:
    """From observations, (m, features and day), to the agent's log p(a|observation), (m, A)."""
    import torch  # noqa: PLC0415

    def scores(observations: Array) -> Array:
        with torch.no_grad():
            parts = (torch.as_tensor(part) for part in np.array_split(observations, 1 + len(observations) // 65_536))
            return torch.cat([agent.policy.get_distribution(part).distribution.logits for part in parts]).numpy()

    return scores


def every_observation(course: TreatmentCourse) -> Iterator[Array]:
    """The observations of all records on each day."""
    codes = course.records.codes(np.arange(course.records.size)).astype(np.int16)
    for day in range(DAYS):
        yield np.column_stack([codes, np.full(len(codes), day, dtype=np.int16)])


def simulated(private: Any, value: float, seed: int) -> dict[str, float]:
    """Treat new patients, asking the network itself; RuntimeError if that is no chance beside the exact value."""
    env = gymnasium.make_vec(ENVIRONMENT, num_envs=PATIENTS, horizon=DAYS, autoreset_mode="Disabled")
    # Not the patients' own stream, which has the seed alone: actions would go with what is about to happen.
    rng, returns = np.random.default_rng([seed, 1]), np.zeros(PATIENTS)
    observations, _ = env.reset(seed=seed)
    for _ in range(DAYS):
        observations, rewards, *_ = env.step(private.act(observations, rng))
        returns += rewards
    mean, error = float(returns.mean()), float(returns.std(ddof=1)) / PATIENTS**0.5
    if abs(mean - value) > 5 * error:
        raise RuntimeError(f"the exact value is {value}, but the simulated one {mean}, standard error {error}")
    return {"simulated": mean, "standard error": error}


def references(course: TreatmentCourse, daily: Sequence[Array]) -> Iterator[tuple[str, Sequence[Array]]]:
    """The agent as it was trained, the best there is, and what looks at nobody: names and p(a|x) of each day."""
    treatments, everybody = np.eye(len(course.actions)), np.ones((course.records.size, 1))
    yield "optimum", treatments[ps.plan(course).actions]
    yield "agent, likeliest action", [treatments[day.argmax(axis=1)] for day in daily]
    yield "agent, drawn", [np.exp(day) / np.exp(day).sum(axis=1, keepdims=True) for day in daily]
    fixed = max(range(len(treatments)), key=lambda action: ps.policy_value(course, treatments[action] * everybody))
    yield "one for all, by the day", [treatments[a] * everybody for a in best_schedule(course, [fixed] * DAYS)]
    yield "one for all", [treatments[fixed] * everybody] * DAYS
    yield "uniform", [treatments.mean(axis=0) * everybody] * DAYS


def exact(course: TreatmentCourse, name: str, tables: Sequence[Array]) -> dict[str, Any]:
    """The exact value, and the largest loss of a day between any two records."""
    loss = max(ps.privacy_loss(table, ps.AnyRecord()).epsilon for table in tables)
    return {"policy": name, "value": ps.policy_value(course, tables), "exact loss": loss}


def main() -> None:
    """Train, make private, and print the exact value and privacy loss of everything beside a simulation."""
    course = ps.build_course(ps.load_study("covid"), DAYS, length_public=True)
    scores = scores_of(train())
    daily = [scores(observations).astype(np.float64) for observations in every_observation(course)]
    rows = [exact(course, name, tables) for name, tables in references(course, daily)]
    for epsilon in EPSILONS:
        for name, bounds in (("randomized-response", {}), ("exponential-tight", {"lower": LOWER, "upper": UPPER})):
            private = ps.privatize_policy(scores, epsilon, policy=name, **bounds)
            known = replace(private, q_network=np.asarray)  # the same, of scores that were asked for already
            row = exact(course, name, [known.probabilities(day) for day in daily]) | {"claimed loss": epsilon}
            rows.append(row | simulated(private, row["value"], SEED + len(rows)))
    sys.stdout.write(pd.DataFrame(rows).to_string(index=False, float_format="{:.4f}".format) + "\n")


if __name__ == "__main__":
    main()

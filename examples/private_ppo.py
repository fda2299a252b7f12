"""Train a PPO agent to treat covid patients over 14 days, on the native vector environment, then make it private.

By hand, in about a minute and four more for the exact values: `pip install -e '.[fast]' torch==2.14.1`, then
`python examples/private_ppo.py`. docs/notes/private-ppo.md says what each step is for and what came out.

The learner is written out, in the order of CleanRL's single files. Worked with Python 3.11.7, torch 2.14.1 (CPU),
gymnasium 1.4.0, numpy 2.4.6, policysim 0.2.0.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical

import policysim as ps
from policysim.course.schedules import best_schedule
from policysim.course.treatment_course import TreatmentCourse

ENVIRONMENT, DAYS, PATIENTS, SEED = "policysim:policysim/Treatment-v1", 14, 1 << 18, 0
# Of the learner: patients at once, steps of a rollout, rollouts, passes over each, and patients of a step of Adam.
LEARN_FROM, STEPS, ROLLOUTS, PASSES, BATCH = 4096, 16, 70, 4, 8192
RATE, LAMBDA, CLIP, UNITS = 1e-3, 0.95, 0.2, 64
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)  # of one day
SAMPLE = 10_000  # simulated observations whose scores are public
Array = NDArray[Any]


class Network(nn.Module):
    """Two hidden layers over observations whose levels are one-hot, (m, features and day) -> (m, outputs)."""

    def __init__(self, n_levels: Array, n_outputs: int) -> None:
        super().__init__()
        self.inputs = int(n_levels.sum())
        self.first = torch.as_tensor(np.cumsum([0, *n_levels[:-1]]))
        hidden = [nn.Linear(self.inputs, UNITS), nn.Tanh(), nn.Linear(UNITS, UNITS), nn.Tanh()]
        self.layers = nn.Sequential(*hidden, nn.Linear(UNITS, n_outputs))

    def forward(self, observations: Tensor) -> Tensor:
        """The outputs of each observation."""
        hot = torch.zeros(len(observations), self.inputs).scatter_(1, observations + self.first, 1.0)
        return self.layers(hot)


def train() -> Network:
    """The actor of a PPO agent."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # figures do not depend on the number of processors
    env = gymnasium.make_vec(ENVIRONMENT, num_envs=LEARN_FROM, horizon=DAYS, autoreset_mode="SameStep")
    levels = env.single_observation_space.nvec
    actor, critic = Network(levels, int(env.single_action_space.n)), Network(levels, 1)
    nn.init.normal_(actor.layers[-1].weight, std=0.001)  # at first, any treatment is as likely as any other
    parameters = [*actor.parameters(), *critic.parameters()]
    adam, scale = torch.optim.Adam(parameters, eps=1e-5), 0.0
    seen = torch.as_tensor(env.reset(seed=SEED)[0]).long()
    for rollout in range(ROLLOUTS):
        for group in adam.param_groups:
            group["lr"] = RATE * (1 - rollout / ROLLOUTS)
        seen, days = collect(env, actor, critic, seen)
        # Not clipped, or deaths (-100) would count for less than they do.
        scale = scale or float(days["rewards"].std())
        advantages = advantages_of(days["rewards"] / scale, days["ended"], days["values"])
        flat = {name: days[name].flatten(0, 1) for name in ("observations", "actions", "logs")}
        flat |= {"advantages": advantages.flatten(), "returns": (advantages + days["values"][:-1]).flatten()}
        for _ in range(PASSES):
            for some in torch.randperm(LEARN_FROM * STEPS).split(BATCH):
                loss = loss_of(actor, critic, {name: column[some] for name, column in flat.items()})
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                adam.step()
    return actor.eval()


@torch.no_grad()
def collect(env: gymnasium.vector.VectorEnv, actor: Network, critic: Network, seen: Tensor) -> tuple[Tensor, dict]:
    """STEPS days of LEARN_FROM patients, (days, patients, ...), and what is seen then, which is valued, too."""
    days = []
    for _ in range(STEPS):
        choice = Categorical(logits=actor(seen))
        actions = choice.sample()
        day = {"observations": seen, "actions": actions, "logs": choice.log_prob(actions), "values": critic(seen)[:, 0]}
        observations, rewards, ended, *_ = env.step(actions.numpy())
        seen = torch.as_tensor(observations).long()
        days.append(day | {"rewards": torch.as_tensor(rewards).float(), "ended": torch.as_tensor(ended).float()})
    together = {name: torch.stack([day[name] for day in days]) for name in days[0]}
    together["values"] = torch.vstack([together["values"], critic(seen).T])
    return seen, together


def advantages_of(rewards: Tensor, ended: Tensor, values: Tensor) -> Tensor:
    """Generalised advantages (Schulman et al. 2016), not discounted, (days, patients)."""
    advantages, after = torch.empty_like(rewards), torch.zeros(rewards.shape[1])
    for day in reversed(range(len(rewards))):
        goes_on = 1 - ended[day]
        after = rewards[day] + goes_on * (values[day + 1] + LAMBDA * after) - values[day]
        advantages[day] = after
    return advantages


def loss_of(actor: Network, critic: Network, some: dict[str, Tensor]) -> Tensor:
    """PPO's clipped objective (Schulman et al. 2017), and the squared error of the values."""
    ratio = (Categorical(logits=actor(some["observations"])).log_prob(some["actions"]) - some["logs"]).exp()
    gain = (some["advantages"] - some["advantages"].mean()) / (some["advantages"].std() + 1e-8)
    surrogate = torch.min(gain * ratio, gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    error = (critic(some["observations"])[:, 0] - some["returns"]).square().mean()
    return 0.5 * error - surrogate


def scores_of(actor: Network) -> Callable[[Array], Array]:
    """From observations, (m, features and day), to the agent's log p(a|observation), (m, A)."""

    @torch.no_grad()
    def scores(observations: Array) -> Array:
        parts = np.array_split(observations, 1 + len(observations) // 65_536)
        logs = [actor(torch.as_tensor(part).long()).log_softmax(dim=1) for part in parts]
        return torch.cat(logs).numpy()

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
    begin = time.perf_counter()
    scores = scores_of(train())
    sys.stdout.write(f"trained on {LEARN_FROM * STEPS * ROLLOUTS:,} days in {time.perf_counter() - begin:.0f} s\n")
    course = ps.build_course(ps.load_study("covid"), DAYS, length_public=True)
    daily = [scores(observations).astype(np.float64) for observations in every_observation(course)]
    # Scores of patients who do not exist: records as likely as the scenario says, on any day.
    rng = np.random.default_rng(SEED)
    records = rng.choice(course.records.size, size=SAMPLE, p=course.initial)
    sample = np.stack([daily[rng.integers(DAYS)][record] for record in records])
    rows = [exact(course, name, tables) for name, tables in references(course, daily)]
    for epsilon in EPSILONS:
        for name, public in (("randomized-response", {}), ("exponential-fitted", {"sample": sample})):
            private = ps.privatize_policy(scores, epsilon, policy=name, **public)
            known = replace(private, q_network=np.asarray)  # the same, of scores that were asked for already
            row = exact(course, name, [known.probabilities(day) for day in daily]) | {"claimed loss": epsilon}
            rows.append(row | simulated(private, row["value"], SEED + len(rows)))
    sys.stdout.write(pd.DataFrame(rows).to_string(index=False, float_format="{:.4f}".format) + "\n")


if __name__ == "__main__":
    main()

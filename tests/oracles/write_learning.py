"""What libraries of reinforcement learning make of the environment, as files for tests: part of `make oracles`."""

import json
import os
from tempfile import TemporaryDirectory

import minari
import numpy as np
from fixture_file import STAYS, write
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import policysim as ps
from envs.sb3 import TreatmentVecEnv
from envs.treatment import TreatmentEnv
from examples import offline_data

WARD = {"STUDY": "examples/ward/study.toml", "DAYS": 3, "STAYS": 200, "WHERE": {"fever": 1}}
SEED, STEPS, FORBIDS = 3, 60, "tests/envs/data/language.toml"


def plain(value):
    """As JSON keeps it."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def stays():
    """Stays of one patient after another in Stable-Baselines3's own vector environment: what each step returns."""
    arguments = {"scenario": "tests/envs/data/small.toml", "horizon": 4}
    env = DummyVecEnv([lambda: TreatmentEnv(**arguments)])
    env.seed(SEED)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=(STEPS, 1))
    first, steps = env.reset(), []
    for row in actions:
        seen, rewards, ended, (info,) = env.step(row)
        steps.append([seen.tolist(), rewards.tolist(), ended.tolist(), plain(info)])
    return {**arguments, "seed": SEED, "actions": actions.tolist()}, {"first": first.tolist(), "steps": steps}


def learnt():
    """How many patients PPO and MaskablePPO learn from in two rounds, and whether a treatment was refused."""
    made = {}
    for kind, arguments in ((PPO, {"horizon": 5}), (MaskablePPO, {"scenario": FORBIDS, "horizon": 3})):
        patients = VecNormalize(VecMonitor(TreatmentVecEnv(32, **arguments)), norm_obs=False, gamma=1.0)
        agent = kind("MlpPolicy", patients, n_steps=16, batch_size=128, n_epochs=1, gamma=1.0, seed=SEED, device="cpu")
        agent.learn(2 * 16 * 32)  # a treatment that is not allowed would be an error
        lengths = [int(stay["l"]) for stay in agent.ep_info_buffer]
        made[kind.__name__] = {"steps": agent.num_timesteps, "longest": max(lengths), "shortest": min(lengths)}
    return made


def agents():
    """What an actor and a Q-network say of all records of the ward, and the private policies that come of it."""
    ward = {"scenario": "examples/ward/scenario.toml", "utility": {"weights": {"death": 20}}}
    space = ps.build_problem(ps.load_study("examples/ward/study.toml")).records
    codes = space.codes(np.arange(space.size))
    made = {"codes": codes.tolist()}
    # The agent of docs/own-model.md; one after the other, as each sets the seeds of its libraries.
    for kind, patients, steps, options in (
        (PPO, 256, 200_000, {"n_steps": 32, "batch_size": 1024}),
        (DQN, 8, 4_000, {"learning_starts": 100}),
    ):
        agent = kind("MlpPolicy", TreatmentVecEnv(patients, **ward), gamma=1.0, seed=0, device="cpu", **options)
        private = ps.privatize_policy(agent.learn(steps), epsilon=1.0)
        scores, table = private.model.scores(codes), private.predict_proba(codes)
        made[kind.__name__] = {"scores": scores.tolist(), "private": table.tolist()}
    return made


def stable_baselines3():
    """Stay by stay, and learning."""
    given, found = stays()
    packages = ["stable-baselines3", "sb3-contrib", "torch", "gymnasium", "numpy"]
    write("stable-baselines3", packages, given, {**found, "learnt": learnt(), "agents": agents()})


def minari_data_set():
    """What Minari reads of the data set that examples/offline_data.py writes, of a small ward."""
    for name, value in WARD.items():
        setattr(offline_data, name, value)
    with TemporaryDirectory() as folder:
        os.environ["MINARI_DATASETS_PATH"] = folder
        offline_data.main(str(STAYS))  # d3rlpy reads them, too
        read = minari.load_dataset(offline_data.NAME)
        returns = np.array([episode.rewards.sum() for episode in read])
        found = {
            "episodes": read.total_episodes,
            "steps": read.total_steps,
            "exact_values": json.loads(read.storage.metadata["exact_values"]),
            "normalized": float(minari.get_normalized_score(read, returns).mean()),
            "first": [
                {
                    "observations": episode.observations.tolist(),
                    "actions": episode.actions.tolist(),
                    "rewards": episode.rewards.tolist(),
                    "terminations": episode.terminations.tolist(),
                    "behaviour": np.asarray(episode.infos["behaviour"]).tolist(),
                }
                for episode in (read[number] for number in range(20))
            ],
            "environment": str(read.recover_environment().unwrapped.spec.id),
        }
    write("minari", ["minari", "gymnasium", "numpy"], WARD, found)


if __name__ == "__main__":
    stable_baselines3()
    minari_data_set()

"""A PPO agent of Stable-Baselines3 is made private, stands beside other mechanisms, and treats new patients.

By hand, in some minutes: `pip install -e '.[fast]' stable-baselines3==2.9.2`, then `python examples/private_ppo.py`.
docs/notes/private-ppo.md says what came out.
"""

from __future__ import annotations

import sys

import gymnasium
from stable_baselines3 import PPO

import policysim as ps
from envs.sb3 import TreatmentVecEnv

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
BESIDE = ("greedy", "best-fixed", "uniform", "exponential", "exponential-fitted", "randomized-response", "optimal")


def main(name: str = "covid", steps: int = 1_000_000, episodes: int = 100_000) -> None:
    """Train, make private, compare exactly, and simulate at epsilon = 2."""
    study = ps.load_study(name)
    patients = TreatmentVecEnv(256, scenario=study.scenario, utility=vars(study.utility))
    agent = PPO("MlpPolicy", patients, n_steps=32, batch_size=1024, gamma=1.0, seed=0, device="cpu").learn(steps)

    problem = ps.build_problem(study)
    private = ps.privatize_policy(agent, epsilon=2.0, floors=problem, name="private-ppo")
    equal = ps.privatize_policy(agent, epsilon=2.0, name="private-ppo-equal-floors")
    table = ps.compare(problem, policies=[private, equal, *BESIDE], epsilons=EPSILONS)
    columns = ["policy", "epsilon", "value", "benefit_kept", "best_action_rate", "epsilon_spent"]
    sys.stdout.write(table[columns].to_string(index=False, float_format="{:.4f}".format) + "\n")

    many = gymnasium.make_vec(
        "policysim:policysim/Treatment-v1", num_envs=10_000, study=name, autoreset_mode="SameStep"
    )
    found = ps.evaluate(many, private.fit(problem), episodes=episodes, seed=0)
    sys.stdout.write(found.to_string(index=False, float_format="{:.4f}".format) + "\n")


if __name__ == "__main__":
    main()

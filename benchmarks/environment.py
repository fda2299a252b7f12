"""Patient-steps per second of the environments, beside Gymnasium's CartPole: python benchmarks/environment.py."""

import os
import sys
import time

import gymnasium
import numpy as np

import policysim  # noqa: F401 - registers the environment

ID = "policysim/Treatment-v0"
DAYS, ROUNDS = 14, 7
SINGLE_STEPS = 20_000


def rate(steps, work):
    """The best of several rounds, steps per second."""
    best = np.inf
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return steps / best


def show(name, per_second):
    """Print a line of the table."""
    print(f"{name:<66}{per_second / 1e6:8.3f} M/s")


def vector(name, env_id, n, *, reset_every=0, **arguments):
    """Steps of a vector environment, each an action for every place; with whole resets where it does not do them."""
    env = gymnasium.make_vec(env_id, num_envs=n, vectorization_mode="vector_entry_point", **arguments)
    rng = np.random.default_rng(0)
    actions = [rng.integers(env.single_action_space.n, size=n) for _ in range(DAYS)]
    env.reset(seed=0)

    def work():
        for day, row in enumerate(actions):
            if reset_every and day % reset_every == 0:
                env.reset()
            env.step(row)

    show(name, rate(DAYS * n, work))


def single(name, env_id, **arguments):
    """Steps of a single environment without wrappers, admissions and resets among them."""
    env = gymnasium.make(env_id, **arguments).unwrapped
    actions = np.random.default_rng(0).integers(env.action_space.n, size=SINGLE_STEPS).tolist()
    env.reset(seed=0)

    def work():
        for action in actions:
            if env.step(action)[2]:
                env.reset()

    show(name, rate(SINGLE_STEPS, work))


def in_treatment(n):
    """Steps of patients who are still in treatment, in whole stays: the others of a disabled autoreset are idle."""
    env = gymnasium.make_vec(ID, num_envs=n, horizon=DAYS, autoreset_mode="Disabled")
    actions = np.random.default_rng(0).integers(4, size=(DAYS, n))
    env.reset(seed=0)
    return sum(int(env.step(row)[4].get("_outcome", np.zeros(1)).sum()) for row in actions) / (DAYS * n)


def main():
    """Print the table."""
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, Gymnasium {gymnasium.__version__}")
    n = 65_536
    vector(f"Disabled, {DAYS} days, {n:,} patients, all admitted anew after them", ID, n,
           horizon=DAYS, autoreset_mode="Disabled", reset_every=DAYS)  # fmt: skip
    print(f"  (of these, {in_treatment(n):.0%} are of patients still in treatment; the others' stays have ended)")
    vector(f"Disabled, 1 day, {n:,} patients, all admitted anew every step", ID, n,
           horizon=1, autoreset_mode="Disabled", reset_every=1)  # fmt: skip
    for mode in ("NextStep", "SameStep"):
        vector(f"{mode}, {DAYS} days, {n:,} patients", ID, n, horizon=DAYS, autoreset_mode=mode)
    for size in (1_024, n):
        vector(f"CartPole-v1, its native vector environment, {size:,}", "CartPole-v1", size)
    vector("NextStep, 14 days, 1,024 patients", ID, 1_024, horizon=DAYS, autoreset_mode="NextStep")
    single(f"one patient, {DAYS} days", ID, horizon=DAYS)
    single("CartPole-v1, one", "CartPole-v1")


if __name__ == "__main__":
    main()

"""Patient-steps per second of the environments, beside CartPole and icu-sepsis: python benchmarks/environment.py.

CartPole's own vector environment knows NextStep only, which is what all are compared with. icu-sepsis is installed in
an environment of its own, and so is Treatment-v0, from this repository's history.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
from side_by_side import Peer, compared, machine, markdown, paired

import policysim  # noqa: F401 - registers the environments

CARTPOLE, TREATMENT = "CartPole-v1", "policysim/Treatment-v1"
# The last commit that had Treatment-v0.
BEFORE = "4292bb0"
DAYS, ROUNDS = 14, 9
# Steps of a vector environment that are timed together, and of a single one.
STEPS, SINGLE_STEPS = 1 << 20, 20_000
SIZES = 65_536, 1_024
ICU_SEPSIS = """
import time, gymnasium, icu_sepsis
env = gymnasium.make("Sepsis/ICU-Sepsis-v2").unwrapped
actions = [env.action_space.sample() for _ in range(1000)]
env.reset(seed=0)
def work(steps):
    start = time.perf_counter()
    for step in range(steps):
        _, _, terminated, truncated, _ = env.step(actions[step % 1000])
        if terminated or truncated:
            env.reset()
    return time.perf_counter() - start
"""
FIRST = """
import os, sys
# Not the current folder and others that may hold today's environments.
others = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
sys.path[:] = ["BENCHMARKS", *(path for path in sys.path if path not in others)]
from environment import single, vector
ID, works = "policysim/Treatment-v0", {}
def work(n):
    if n not in works:
        works[n] = vector(ID, n, horizon=14) if n else single(ID, horizon=14)
    return works[n]()
"""


def vector(env_id: str, n: int, *, mode: str = "NextStep", **arguments: object) -> Callable[[], float]:
    """Seconds of STEPS steps of a vector environment, or so; Disabled: all anew every 14 steps."""
    if env_id != CARTPOLE:
        arguments["autoreset_mode"] = mode
    env = gymnasium.make_vec(env_id, num_envs=n, vectorization_mode="vector_entry_point", **arguments)
    rng = np.random.default_rng(0)
    actions = [rng.integers(env.single_action_space.n, size=n) for _ in range(DAYS)]
    env.reset(seed=0)

    def work() -> float:
        turns = max(1, STEPS // (n * DAYS))
        start = time.perf_counter()
        for _ in range(turns):
            if mode == "Disabled":
                env.reset()
            for row in actions:
                env.step(row)
        return (time.perf_counter() - start) * STEPS / (turns * DAYS * n)

    return work


def single(env_id: str, **arguments: object) -> Callable[[], float]:
    """Seconds of SINGLE_STEPS steps of a single environment without wrappers, admissions and resets among them."""
    env = gymnasium.make(env_id, **arguments).unwrapped
    actions = np.random.default_rng(0).integers(env.action_space.n, size=SINGLE_STEPS).tolist()
    env.reset(seed=0)

    def work() -> float:
        start = time.perf_counter()
        for action in actions:
            if env.step(action)[2]:
                env.reset()
        return time.perf_counter() - start

    return work


def in_treatment() -> float:
    """The share of steps of Disabled that treat somebody: the others' stays have ended."""
    env = gymnasium.make_vec(TREATMENT, num_envs=10_000, horizon=DAYS, autoreset_mode="Disabled")
    env.reset(seed=0)
    over, idle = np.zeros(10_000, dtype=bool), []
    for row in np.random.default_rng(0).integers(4, size=(DAYS, 10_000)):
        idle.append(over.mean())
        over = env.step(row)[2]
    return 1 - float(np.mean(idle))


def tables(folder: Path) -> list[str]:
    """Tables in Markdown, each after a line that says what it is: many patients, and one."""
    told = [f"Stays of up to {DAYS} days; of the steps of Disabled, {in_treatment():.0%} treat somebody."]
    here = Path(__file__).resolve().parent
    peers: dict[str, Peer] = {}
    source = f"git+file://{here.parent}@{BEFORE}"
    for name, wanted, program in (
        ("Treatment-v0", [source], FIRST.replace("BENCHMARKS", str(here))),
        ("icu-sepsis", ["icu-sepsis"], ICU_SEPSIS),
    ):
        try:
            peers[name] = Peer(folder / name, wanted, program)
        except RuntimeError as error:
            told.append(f"Without {name}: {error}")

    def before(n: int) -> dict[str, Callable[[], float]]:
        return {"Treatment-v0": lambda: peers["Treatment-v0"].ask(n=n)} if "Treatment-v0" in peers else {}

    for n in SIZES:
        next_step = {
            "**Treatment-v1**, NextStep": vector(TREATMENT, n, horizon=DAYS, compiled=True),
            "CartPole, NextStep": vector(CARTPOLE, n),
        }
        by_numpy = {
            "**Treatment-v1** by NumPy, NextStep": vector(TREATMENT, n, horizon=DAYS, compiled=False),
            **before(n),
        }
        disabled = {
            "**Treatment-v1**, Disabled": vector(TREATMENT, n, mode="Disabled", horizon=DAYS, compiled=True),
            "CartPole, NextStep, which is all it has": vector(CARTPOLE, n),
        }
        for works in (next_step, by_numpy, disabled):
            told += [f"{n:,} at once, steps a second:", markdown(compared(paired(works, ROUNDS), STEPS, rate=True))]
    one = {"**Treatment-v1**": single(TREATMENT, horizon=DAYS, compiled=True), "CartPole": single(CARTPOLE)}
    if "icu-sepsis" in peers:
        one["icu-sepsis"] = lambda: peers["icu-sepsis"].ask(steps=SINGLE_STEPS)
    by_numpy = {"**Treatment-v1** by NumPy": single(TREATMENT, horizon=DAYS, compiled=False), **before(0)}
    for works in (one, by_numpy):
        told += ["One at a time, steps a second:", markdown(compared(paired(works, ROUNDS), SINGLE_STEPS, rate=True))]
    return told


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        print(machine(), *tables(Path(folder)), sep="\n\n")


if __name__ == "__main__":
    main()

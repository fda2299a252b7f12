"""Patient-steps per second of the environments, beside CartPole and icu-sepsis: python benchmarks/environment.py.

In each of several rounds all run one after the other, so that a busy machine slows them all; a ratio is the median of
the rounds' ratios. CartPole's own vector environment knows NextStep only, which is what all are compared with.
icu-sepsis is installed in an environment of its own, which is deleted in the end; without a network it is left out.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import gymnasium
import numpy as np

import policysim  # noqa: F401 - registers the environments

CARTPOLE, TREATMENT = "CartPole-v1", "policysim/Treatment-v1"
DAYS, ROUNDS = 14, 9
# Steps of a vector environment that are timed together, and of a single one.
STEPS, SINGLE_STEPS = 1 << 20, 20_000
SIZES = 65_536, 1_024
# Runs beside this program, with a Python of its own: steps a number of times whenever it is asked to.
ICU_SEPSIS = """
import sys, time, warnings
warnings.simplefilter("ignore")
import gymnasium, icu_sepsis
env = gymnasium.make("Sepsis/ICU-Sepsis-v2").unwrapped
actions = [env.action_space.sample() for _ in range(1000)]
env.reset(seed=0)
for line in sys.stdin:
    start = time.perf_counter()
    for step in range(int(line)):
        _, _, terminated, truncated, _ = env.step(actions[step % 1000])
        if terminated or truncated:
            env.reset()
    print(time.perf_counter() - start, flush=True)
"""


def vector(env_id: str, n: int, *, mode: str = "NextStep", **arguments: object) -> Callable[[], float]:
    """Steps per second of a vector environment, each an action for every place; Disabled: all anew every 14 steps."""
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
        return turns * DAYS * n / (time.perf_counter() - start)

    return work


def single(env_id: str, **arguments: object) -> Callable[[], float]:
    """Steps per second of a single environment without wrappers, admissions and resets among them."""
    env = gymnasium.make(env_id, **arguments).unwrapped
    actions = np.random.default_rng(0).integers(env.action_space.n, size=SINGLE_STEPS).tolist()
    env.reset(seed=0)

    def work() -> float:
        start = time.perf_counter()
        for action in actions:
            if env.step(action)[2]:
                env.reset()
        return SINGLE_STEPS / (time.perf_counter() - start)

    return work


@contextmanager
def icu_sepsis() -> Iterator[Callable[[], float] | None]:
    """Steps per second of icu-sepsis in its own environment; nothing where it does not install."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        installed = subprocess.run(
            [python, "-m", "pip", "install", "-q", "icu-sepsis"], capture_output=True, check=False
        )
        if installed.returncode:
            yield None
            return
        with subprocess.Popen(
            [python, "-I", "-c", ICU_SEPSIS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:

            def work() -> float:
                process.stdin.write(f"{SINGLE_STEPS}\n")
                process.stdin.flush()
                return SINGLE_STEPS / float(process.stdout.readline())

            work()
            yield work
            process.stdin.close()


def in_treatment() -> float:
    """The share of steps of Disabled that treat somebody: the others' stays have ended."""
    env = gymnasium.make_vec(TREATMENT, num_envs=10_000, horizon=DAYS, autoreset_mode="Disabled")
    actions = np.random.default_rng(0).integers(4, size=(DAYS, 10_000))
    env.reset(seed=0)
    return float(np.mean([env.step(row)[4].get("_outcome", np.zeros(10_000)).mean() for row in actions]))


def compared(subjects: dict[str, Callable[[], float]], reference: str, rounds: int) -> list[dict[str, object]]:
    """A row for each subject, with its ratio to one of them."""
    for work in subjects.values():
        work()
    found = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, work in subjects.items():
            found[name].append(work())
    return [
        {
            "environment": name,
            "compared with": reference,
            "times as fast": statistics.median(a / b for a, b in zip(rates, found[reference], strict=True)),
            "million steps a second": statistics.median(rates) / 1e6,
        }
        for name, rates in found.items()
    ]


def rows(rounds: int = ROUNDS) -> list[dict[str, object]]:
    """Every environment: how many times as fast as the one it is compared with, and its own speed."""
    table = []
    for n in SIZES:
        reference = f"CartPole, {n:,} at once"
        table += compared(
            {
                f"Treatment-v1, {n:,} at once, NextStep": vector(TREATMENT, n, horizon=DAYS, compiled=True),
                f"Treatment-v1, {n:,} at once, Disabled": vector(
                    TREATMENT, n, mode="Disabled", horizon=DAYS, compiled=True
                ),
                f"Treatment-v1 by NumPy, {n:,} at once, NextStep": vector(TREATMENT, n, horizon=DAYS, compiled=False),
                f"Treatment-v0, {n:,} at once, NextStep": vector("policysim/Treatment-v0", n, horizon=DAYS),
                reference: vector(CARTPOLE, n),
            },
            reference,
            rounds,
        )
    with ExitStack() as stack:
        subjects = {
            "Treatment-v1, one patient": single(TREATMENT, horizon=DAYS),
            "Treatment-v0, one patient": single("policysim/Treatment-v0", horizon=DAYS),
            "CartPole, one": single(CARTPOLE),
        }
        if other := stack.enter_context(icu_sepsis()):
            subjects["icu-sepsis, one patient"] = other
        table += compared(subjects, "CartPole, one", rounds)
    return table


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, Gymnasium {gymnasium.__version__}")
    print(f"Stays of up to {DAYS} days; of the steps of Disabled, {in_treatment():.0%} treat somebody.\n")
    table = rows()
    print("| " + " | ".join(table[0]) + " |\n|---|---|--:|--:|")
    for row in table:
        name, reference, ratio, speed = row.values()
        print(f"| {name} | {reference} | {ratio:.2f} | {speed:.3f} |")


if __name__ == "__main__":
    main()

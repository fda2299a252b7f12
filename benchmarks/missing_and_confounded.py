"""How often a log without an effect is said to show one: python benchmarks/missing_and_confounded.py [--logs 200].

The worlds are those of tests/support/confounded_logs.py: a confounder that is no feature, or a number cut into four,
outcomes that are missing, or censored, in one arm by what patients are. In each log arms are compared as a report
compares them, with what is adjusted for in the study, and without.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from confounded_logs import WORLDS, told_of_arms, written

SEED = 56


def measure(world, logs, *, adjusted):
    """The share of logs whose arms are said to differ, the mean difference, and its error, over some logs."""
    found = []
    for draw in range(logs):
        with tempfile.TemporaryDirectory() as folder:
            path = written(world, Path(folder), np.random.default_rng([SEED, draw]), adjusted=adjusted)
            found.append(told_of_arms(path)[0])
    value, low, high = np.array(found).T
    return ((low > 0) | (high < 0)).mean(), value.mean(), value.std(ddof=1) / np.sqrt(logs), (high - low).mean() / 3.92


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--world", choices=range(len(WORLDS)), type=int)
    options = parser.parse_args()
    print(f"{options.logs} logs each, seed {SEED}; no arm does better than the other\n")
    print("| World | adjusted | false claims | mean difference | standard error, as told | seconds a log |")
    print("|---|---|---:|---:|---:|---:|")
    for place, (name, world) in enumerate(WORLDS.items()):
        for adjusted in (True, False) if world.adjusted else (True,):
            if options.world in (None, place):
                start = time.perf_counter()
                false, mean, error, told = measure(world, options.logs, adjusted=adjusted)
                seconds = (time.perf_counter() - start) / options.logs
                told_of = f"{100 * false:.1f} % | {mean:+.4f} ± {error:.4f} | {told:.4f} | {seconds:.2f}"
                print(f"| {name} | {'yes' if adjusted else 'no'} | {told_of} |", flush=True)


if __name__ == "__main__":
    main()

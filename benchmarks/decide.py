"""How many treatments a second are drawn with the ledger, and how much memory that takes: python benchmarks/decide.py.

`python benchmarks/decide.py 5000000` does it for as many patients, who come as a CSV file, and come again.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import policysim as ps

ASKED = ("--study", "warfarin", "--epsilon", "1", "--id", "patient", "--event", "admission")
STEP = 100_000


def write_patients(path, rows):
    """Patients with different ids, in any order within a step."""
    problem, rng = ps.build_problem(ps.load_study("warfarin")), np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as stream:
        for start in range(0, rows, STEP):
            size = min(STEP, rows - start)
            frame = problem.decode(rng.integers(0, problem.n_records, size))
            frame.insert(0, "patient", [f"P{number:08}" for number in start + rng.permutation(size)])
            frame.insert(1, "admission", rng.integers(0, 9, size))
            frame.to_csv(stream, index=False, header=start == 0)


def measure(folder, rows, name):
    """Run the command line as a whole process; print its time, its processor time and its peak memory."""
    files = ("--ledger", folder / "ledger.sqlite", "--out", folder / f"{name}.csv")
    command = [sys.executable, "-m", "policysim", "decide", folder / "patients.csv", *ASKED, *files]
    start = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, list(map(str, command)), os.environ, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    seconds, processor = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    if status:
        sys.exit(f"{name} failed")
    print(
        f"{name:<12}{rows:12,} rows{seconds:8.1f} s{processor:8.1f} s of processor"
        f"{rows / processor:10,.0f} a second{usage.ru_maxrss / 1e6:8.2f} GB"
    )


if __name__ == "__main__":
    for rows in map(int, sys.argv[1:] or ["100000", "1000000"]):
        with tempfile.TemporaryDirectory() as name:
            write_patients(Path(name) / "patients.csv", rows)
            ps.Ledger(Path(name) / "ledger.sqlite", budget=3)
            measure(Path(name), rows, "drawn")
            measure(Path(name), rows, "as-before")

"""Time and memory of `policysim simulate --log` against the number of patients: python benchmarks/simulated_logs.py.

Whole commands, each in a process of its own, in rounds that go through all of them. Memory should not grow.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from side_by_side import machine, markdown

ROUNDS = 3
PATIENTS = (10**5, 10**6, 10**7)
# What the others of its kind are compared with.
BASE = PATIENTS[0]


def commands(folder: Path) -> list[dict[str, Any]]:
    """What is run: options of `policysim simulate covid`, and for how many patients."""
    return [
        {"name": f"one day, {ending}", "patients": patients, "options": ("--log", str(folder / f"log.{ending}"))}
        for ending in ("csv", "parquet")
        for patients in PATIENTS
    ]


def run(command: dict[str, Any]) -> tuple[float, float, float]:
    """Seconds, seconds of processor time, and the most memory in MiB."""
    words = ["-m", "policysim", "simulate", "covid", "--patients", str(command["patients"]), *command["options"]]
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"policysim {' '.join(words[2:])} ended with {process.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def tables(folder: Path, rounds: int = ROUNDS) -> list[str]:
    """What the table says, and the table in Markdown.

    A row a command: medians of some rounds, and the median of what each round says beside its own base.
    """
    asked = commands(folder)
    measured = [[run(command) for command in asked] for _ in range(rounds)]
    found = []
    for place, command in enumerate(asked):
        base = next(
            number
            for number, other in enumerate(asked)
            if other["name"] == command["name"] and other["patients"] == BASE
        )
        beside = (median(each[place][part] / each[base][part] for each in measured) for part in range(3))
        spent = [median(each[place][part] for each in measured) for part in range(3)]
        row = {"log": command["name"], "patients": f"{command['patients']:,}"}
        names = ("time / base", "processor time / base", "memory / base")
        row |= {name: f"{ratio:.2f}" for name, ratio in zip(names, beside, strict=True)}
        row |= {"seconds": f"{spent[0]:.2f}", "processor seconds": f"{spent[1]:.2f}", "MiB": f"{spent[2]:,.0f}"}
        found.append(row)
    told = f"`policysim simulate covid --log`, whole commands, medians of {rounds} rounds. Base: {BASE:,} patients."
    return [told, markdown(found)]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        print(machine(), *tables(Path(folder)), sep="\n\n")


if __name__ == "__main__":
    main()

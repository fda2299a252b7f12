"""Time and memory of `policysim simulate` against the number of patients: python benchmarks/counts.py.

Whole commands, each in a process of its own, in rounds that go through all of them. Counts should take the same time
however many patients there are, and rows of a log the same memory.
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
COUNTED, LOGGED = (10**4, 10**5, 10**6, 10**7, 10**8, 10**9), (10**5, 10**6, 10**7)
# What the others of its kind are compared with.
BASE = {"counts": 10**6, "rows": 10**5}
DAILY = ("--horizon", "14", "--policy", "exponential")
ONCE = ("--horizon", "14", "--policy", "plan-once")


def commands(folder: Path) -> list[dict[str, Any]]:
    """What is run: options of `policysim simulate covid`, and what is drawn for how many patients."""
    found: list[dict[str, Any]] = []
    for name, options in (("one day", ()), ("14 days", DAILY), ("14 days, plan-once", ONCE)):
        numbers = COUNTED if not options else (10**6, 10**9)
        found += [{"name": name, "drawn": "counts", "patients": each, "options": options} for each in numbers]
    for ending in ("csv", "parquet"):
        log = ("--log", str(folder / f"log.{ending}"))
        found += [{"name": f"one day, {ending}", "drawn": "rows", "patients": each, "options": log} for each in LOGGED]
    return found


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
            if other["name"] == command["name"] and other["patients"] == BASE[command["drawn"]]
        )
        beside = (median(each[place][part] / each[base][part] for each in measured) for part in range(3))
        spent = [median(each[place][part] for each in measured) for part in range(3)]
        row = {"drawn": f"{command['drawn']}, {command['name']}", "patients": f"{command['patients']:,}"}
        names = ("time / base", "processor time / base", "memory / base")
        row |= {name: f"{ratio:.2f}" for name, ratio in zip(names, beside, strict=True)}
        row |= {"seconds": f"{spent[0]:.2f}", "processor seconds": f"{spent[1]:.2f}", "MiB": f"{spent[2]:,.0f}"}
        found.append(row)
    told = (
        f"`policysim simulate covid`, whole commands, medians of {rounds} rounds. "
        f"Base: {BASE['counts']:,} patients for counts, {BASE['rows']:,} for rows of a log."
    )
    return [told, markdown(found)]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        print(machine(), *tables(Path(folder)), sep="\n\n")


if __name__ == "__main__":
    main()

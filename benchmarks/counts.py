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


def rows(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A row a command: medians of some rounds, and the median of what each round says beside its own base."""
    with tempfile.TemporaryDirectory() as folder:
        asked = commands(Path(folder))
        measured = [[run(command) for command in asked] for _ in range(rounds)]
    table = []
    for place, command in enumerate(asked):
        base = next(
            number
            for number, other in enumerate(asked)
            if other["name"] == command["name"] and other["patients"] == BASE[command["drawn"]]
        )
        table.append(
            {
                "what": f"{command['drawn']}, {command['name']}",
                "patients": command["patients"],
                "seconds": median(each[place][0] for each in measured),
                "processor_seconds": median(each[place][1] for each in measured),
                "time_ratio": median(each[place][0] / each[base][0] for each in measured),
                "processor_ratio": median(each[place][1] / each[base][1] for each in measured),
                "memory_mib": median(each[place][2] for each in measured),
                "memory_ratio": median(each[place][2] / each[base][2] for each in measured),
                "base": BASE[command["drawn"]],
            }
        )
    return table


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}; medians of {ROUNDS} rounds\n")
    names = ("time / base", "processor time / base", "memory / base", "seconds", "processor seconds", "MiB")
    print("| drawn | patients |", *(f"{name} |" for name in names))
    print("|---|---:|" + "---:|" * len(names))
    for row in rows():
        ratios = (f"{row[name]:.2f}" for name in ("time_ratio", "processor_ratio", "memory_ratio"))
        spent = (f"{row['seconds']:.2f}", f"{row['processor_seconds']:.2f}", f"{row['memory_mib']:,.0f}")
        print("|", " | ".join([row["what"], f"{row['patients']:,}", *ratios, *spent]), "|")
    print(f"\nBase: {BASE['counts']:,} patients for counts, {BASE['rows']:,} for rows.")


if __name__ == "__main__":
    main()

"""How fast logs in many files are counted, and how much memory that takes: `python benchmarks/logs.py`.

    python benchmarks/logs.py                       two million rows, in a minute
    python benchmarks/logs.py --rows 100000000      100 million, in 100 files of Parquet, about 250 MB
    python benchmarks/logs.py --ending csv
    python benchmarks/logs.py --stages              only one file of a million rows: what each stage takes (SCALE.md)

Prints a Markdown table. Rows are simulated: seven features, three arms by lot, an outcome of 0 and 1. Memory is the
largest resident set of the process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv
from side_by_side import machine, markdown

from policysim.files.many_files import file_digest
from policysim.logs.counted_log import count_part
from policysim.logs.kinds import Kinds
from policysim.study.study_reader import load_study

ARMS = ("wait", "pill", "drip")
LEVELS = {"age": 6, "sex": 2, "severity": 4, "diabetes": 2, "smoker": 3, "region": 8, "year": 5}
STUDY = """title = "a log in many files"
[data]
file = "parts"
treatment = "arm"
propensity = "equal"
outcome = { cured = 1.0 }
model = "linear"
[data.treatments]
"""
WAYS = (("one thread", ["--workers", "1"]), ("two threads", ["--workers", "2"]))


def write(folder: Path, n_rows: int, n_files: int, ending: str) -> None:
    """A study and its log, a file at a time."""
    (folder / "parts").mkdir()
    rng = np.random.default_rng(1)
    effects = rng.normal(0, 0.3, size=(len(ARMS), len(LEVELS)))
    for number in range(n_files):
        size = n_rows * (number + 1) // n_files - n_rows * number // n_files
        features = {name: rng.integers(n_levels, size=size, dtype=np.int8) for name, n_levels in LEVELS.items()}
        arms = rng.integers(len(ARMS), size=size)
        score = sum(effects[arms, place] * values for place, values in enumerate(features.values()))
        cured = (rng.random(size) < 1 / (1 + np.exp(-score))).astype(np.int8)
        rows = pa.table({**features, "arm": np.array(ARMS)[arms], "cured": cured})
        path = folder / "parts" / f"{number:04}.{ending}"
        csv.write_csv(rows, path) if ending == "csv" else pq.write_table(rows, path)
    arms = "".join(f'{name} = "{name}"\n' for name in ARMS)
    levels = "".join(f"{name} = {{ levels = {list(range(count))} }}\n" for name, count in LEVELS.items())
    (folder / "study.toml").write_text(f"{STUDY}{arms}[data.features]\n{levels}", encoding="utf-8")
    lines = ["age,p_wait,p_pill,p_drip", *(f"{age},0.2,{0.1 * age},{0.8 - 0.1 * age}" for age in range(LEVELS["age"]))]
    (folder / "policy.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def measured(folder: Path, way: list[str]) -> tuple[float, float, str]:
    """Seconds, MiB, and what was estimated."""
    command = ["evaluate", "study.toml", "--table", "policy.csv", "--estimator", "dr", "--json", *way]
    # The parent of the measured process is new and small, so that nothing of ours is counted.
    code = (
        "import resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "done = subprocess.run([sys.executable, '-m', 'policysim', *sys.argv[1:]], capture_output=True, text=True)\n"
        "print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n"
        "sys.stderr.write(done.stderr)\n"
        "print(done.stdout)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1])])},
        capture_output=True,
        text=True,
        check=True,
    )
    if done.stderr:
        raise SystemExit(done.stderr)
    first, _, document = done.stdout.partition("\n")
    seconds, memory = map(float, first.split())
    return seconds, memory, json.dumps(json.loads(document)["estimate"], sort_keys=True)


def rows(n_rows: int = 2_000_000, n_files: int = 100, ending: str = "parquet") -> list[dict[str, object]]:
    """A row for each number of rows and each way: rows, files, way, seconds, million rows a second, MiB."""
    found = []
    for size in (max(n_rows // 10, 1000), n_rows):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            start = time.perf_counter()
            write(folder, size, n_files, ending)
            sys.stderr.write(f"{size:,} rows written in {time.perf_counter() - start:.0f} s\n")
            estimates = []
            for way, options in WAYS:
                seconds, memory, estimate = measured(folder, options)
                estimates.append(estimate)
                found.append(
                    {
                        "rows": size,
                        "files": f"{n_files} {ending}",
                        "way": way,
                        "seconds": seconds,
                        "million rows a second": size / seconds / 1e6,
                        "MiB": memory,
                    }
                )
            if len(set(estimates)) > 1:
                raise SystemExit("the estimates differ")
    return found


def stages(ending: str = "parquet") -> list[dict[str, object]]:
    """What is done with one file of a million rows, and what is sent of it: the fastest of five."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, 1_000_000, 1, ending)
        source = load_study(folder / "study.toml").log
        (part,) = source.parts
        found, *_ = count_part(source, part)

        def add() -> None:
            total = Kinds(["cured"])
            for _ in range(11):
                total.add(found)
            total.arrays()

        return [
            {
                "stage": f"read, check and count a file of {part.stat().st_size / 1e6:.1f} MB, where it is worked on",
                "ms": _fastest(lambda: count_part(source, part)),
            },
            {
                "stage": f"add {len(found.columns):,} kinds ({found.columns.nbytes / 1e6:.1f} MB) to the sum, "
                "where the command runs",
                "ms": _fastest(add) / 11,
            },
            {
                "stage": "SHA-256 of the file for the manifest, where the command runs",
                "ms": _fastest(lambda: file_digest(part)),
            },
        ]


def _fastest(work: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def as_table(found: list[dict[str, object]]) -> str:
    """Rows in Markdown."""
    return markdown([{name: _cell(value) for name, value in row.items()} for row in found])


def main() -> None:
    """Print the tables: a log of two sizes, and the stages of one file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--ending", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--stages", action="store_true")
    chosen = parser.parse_args()
    told = [machine()]
    if not chosen.stages:
        found = rows(chosen.rows, chosen.files, chosen.ending)
        told += [f"`policysim evaluate`, doubly robust, of a log in {chosen.files} files:", as_table(found)]
    told += ["What is done with one file of a million rows:", as_table(stages(chosen.ending))]
    print(*told, sep="\n\n")


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()

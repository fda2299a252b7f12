"""The regression net: every number of every table of all reports and examples, and of the JSON, against recorded ones.

    python benchmarks/net/net.py                  check all runs (40 minutes on two cores beside other work)
    python benchmarks/net/net.py ward covid       check some
    python benchmarks/net/net.py --record ward    record what a run gives today; only for a run that is new

A number is known by its run, its table, its row and its column; a row is known by its cells that are text and by the
numbers in KEYS. Order and bytes do not count. Where a later change renames a table, a column, a cell or a run, or takes
something away, names.toml says so beside this file: the recorded values are never changed. Exit code 4 if a number
differs, or is missing and not named there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NUMBERS = HERE / "numbers"
# Numbers that tell rows apart. All other numbers are values.
KEYS = (
    *("epsilon", "total_epsilon", "horizon", "day", "quantile", "patient", "line", "claimed", "index", "record"),
    *("penalty", "splits_from", "threshold"),
)
# Cells that say nothing, in CSV files and in JSON.
EMPTY = ("", "None")
# Tables have eight significant digits, so their last digit may differ by one; the JSON has all.
RELATIVE, ABSOLUTE = 2e-7, 1e-9
JSON = "stdout.json"
# Calls `main(folder=...)` of a module.
CALL = "import importlib, pathlib, sys; importlib.import_module(sys.argv[1]).main(folder=pathlib.Path(sys.argv[2]))"
FIELDS = ["table", "key", "column", "value"]


def runs() -> dict[str, list[str]]:
    """The lines of each run, by its name (runs.toml says what a line is)."""
    return tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))["runs"]


def numbers_of(run: list[str]) -> pd.DataFrame:
    """Execute a run in a folder of its own, and read every number that it wrote or printed; columns as in FIELDS."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in run:
            execute(line, folder)
        frames = [table_numbers(path, path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*.csv"))]
        printed = folder / JSON
        if printed.exists():
            frames.append(json_numbers(json.loads(printed.read_text(encoding="utf-8"))))
    return pd.concat(frames, ignore_index=True)


def execute(line: str, folder: Path) -> None:
    """One line of a run; an exit code that is neither 0 nor 4, a check that did not hold, ends the net."""
    words = [word.replace("FOLDER", str(folder)).replace("ROOT", str(ROOT)) for word in line.split()]
    command = ["-c", CALL, words[1], str(folder)] if words[0] == "script" else ["-m", "policysim", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode not in (0, 4):
        raise SystemExit(f"net: {line}: exit code {result.returncode}\n{result.stderr[-2000:]}")
    if "--json" in words:
        (folder / JSON).write_text(result.stdout, encoding="utf-8")


def table_numbers(path: Path, name: str) -> pd.DataFrame:
    """The numbers of a CSV file."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return pd.DataFrame(rows_numbers(name, frame.to_dict("records")), columns=FIELDS)


def json_numbers(document: object) -> pd.DataFrame:
    """The numbers of a JSON document: lists of objects are tables, by their place in the document."""
    numbers: list[tuple[str, str, str, float]] = []

    def visit(value: object, path: str) -> None:
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            rows = [pd.json_normalize(item).iloc[0].to_dict() for item in value]
            numbers.extend(rows_numbers(f"json:{path}", rows))
        elif isinstance(value, dict):
            for key, item in value.items():
                visit(item, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                visit(item, f"{path}[{index}]")
        elif (number := as_number(value)) is not None:
            numbers.append((f"json:{path}", "", "", number))

    visit(document, "")
    return pd.DataFrame(numbers, columns=FIELDS)


def rows_numbers(table: str, rows: list[dict[str, object]]) -> list[tuple[str, str, str, float]]:
    """(table, key, column, value) for each number of a table."""
    entries = []
    for row in rows:
        numbers = {column: as_number(cell) for column, cell in row.items()}
        names = {
            c: str(cell) for c, cell in row.items() if (numbers[c] is None or c in KEYS) and str(cell) not in EMPTY
        }
        key = "; ".join(f"{column}={cell}" for column, cell in names.items())
        entries += [(table, key, c, n) for c, n in numbers.items() if n is not None and c not in KEYS]
    return entries


def as_number(cell: object) -> float | None:
    """A cell as a number, or None."""
    if isinstance(cell, bool) or cell is None:
        return None
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def renamed(numbers: pd.DataFrame, run: str) -> pd.DataFrame:
    """The recorded numbers under today's names, without those that were taken away (names.toml)."""
    names = changes()
    for rule in names.get("renamed", []):
        if re.fullmatch(rule.get("run", ".*"), run):
            numbers[rule["field"]] = numbers[rule["field"]].str.replace(rule["old"], rule["new"], regex=True)
    for rule in names.get("gone", []):
        if re.fullmatch(rule.get("run", ".*"), run):
            gone = pd.Series(data=True, index=numbers.index)
            for field in FIELDS[:3]:
                gone &= numbers[field].str.fullmatch(rule.get(field, ".*"))
            numbers = numbers[~gone]
    return numbers


def changes() -> dict[str, list[dict[str, str]]]:
    """What names.toml says."""
    return tomllib.loads((HERE / "names.toml").read_text(encoding="utf-8"))


def without_added(numbers: pd.DataFrame) -> pd.DataFrame:
    """Today's numbers; columns of text that were added to a table tell no rows apart (names.toml)."""
    for rule in changes().get("added", []):
        there = numbers["table"].str.fullmatch(rule["table"])
        key = "; " + numbers.loc[there, "key"]
        numbers.loc[there, "key"] = key.str.replace(rf"; {rule['column']}=[^;]*", "", regex=True).str.removeprefix("; ")
    return numbers


def differences(recorded: pd.DataFrame, today: pd.DataFrame) -> pd.DataFrame:
    """Recorded numbers that are missing today, or are others."""
    # Rows that nothing tells apart are compared in their order.
    keyed = [numbers.assign(repetition=numbers.groupby(FIELDS[:3]).cumcount()) for numbers in (recorded, today)]
    both = keyed[0].merge(keyed[1], on=[*FIELDS[:3], "repetition"], how="left", suffixes=("", "_today"))
    near = (both["value"] - both["value_today"]).abs() <= ABSOLUTE + RELATIVE * both["value"].abs()
    same = near | (both["value"] == both["value_today"]) | (both["value"].isna() & both["value_today"].isna())
    missing = both["value_today"].isna() & both["value"].notna()
    return both[~same | missing]


def main() -> int:
    """Check or record the runs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="names in runs.toml; all by default")
    parser.add_argument("--record", action="store_true", help="write the numbers instead of comparing them")
    arguments = parser.parse_args()
    lines, bad = runs(), 0
    for name in arguments.runs or lines:
        start = time.monotonic()
        today = numbers_of(lines[name])
        path = NUMBERS / f"{name}.parquet"
        if arguments.record:
            NUMBERS.mkdir(exist_ok=True)
            today.to_parquet(path, compression="zstd", index=False)
            print(f"{name}: {len(today):,} numbers recorded ({time.monotonic() - start:.0f} s)", flush=True)
            continue
        recorded = renamed(pd.read_parquet(path), name)
        wrong = differences(recorded, without_added(today))
        bad += len(wrong)
        print(
            f"{name}: {len(recorded):,} numbers, {len(wrong):,} differ ({time.monotonic() - start:.0f} s)", flush=True
        )
        if len(wrong):
            print(wrong.head(20).to_string(index=False, max_colwidth=90), flush=True)
    return 4 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

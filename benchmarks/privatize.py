"""How long 10 million rows take to privatise, and how much memory: python benchmarks/privatize.py."""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

ROWS, STEP = 10_000_000, 500_000
PARTS = "parts"
LEVELS = {"age_band": ("young", "old"), "sex": ("0", "1")}
NAMES = ("person", *LEVELS, "income", "ward")
WARDS = ("north", "south, by the sea", "east")


def people(start, rng):
    """STEP rows of five columns of text, two of them private."""
    numbers = {"person": np.arange(start, start + STEP), "income": rng.integers(10_000, 100_000, STEP)}
    cells = {name: pa.array(values).cast(pa.string()) for name, values in numbers.items()}
    for name, levels in {**LEVELS, "ward": WARDS}.items():
        cells[name] = pa.array(levels).take(pa.array(rng.integers(0, len(levels), STEP)))
    return pa.record_batch([cells[name] for name in NAMES], names=NAMES)


def make(folder):
    """The same people as CSV, as Parquet, and as a folder of Parquet files."""
    (folder / PARTS).mkdir()
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.string()) for name in NAMES])
    with (
        pa_csv.CSVWriter(folder / "data.csv", schema) as text,
        pq.ParquetWriter(folder / "data.parquet", schema) as parquet,
    ):
        for start in range(0, ROWS, STEP):
            batch = people(start, rng)
            text.write_batch(batch)
            parquet.write_batch(batch)
            pq.write_table(pa.Table.from_batches([batch]), folder / PARTS / f"{start // STEP:04}.parquet")


def measure(name, *arguments):
    """Run the installed command line as a whole process; print its time, its processor time and its peak memory."""
    command = [str(Path(sys.executable).parent / "policysim"), "privatize", *map(str, arguments)]
    start = time.perf_counter()
    process = os.posix_spawn(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"{name} failed")
    processor = usage.ru_utime + usage.ru_stime
    print(f"{name:<40}{seconds:8.2f} s{processor:8.2f} s of processor{usage.ru_maxrss / 1e6:8.2f} GB")


def main():
    """Print the table."""
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, {ROWS:,} rows, {len(NAMES)} columns")
    declared = [f"--levels={name}={','.join(levels)}" for name, levels in LEVELS.items()]
    columns = [f"--column={name}" for name in LEVELS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        for ending in (".csv", ".parquet"):
            data, out = folder / f"data{ending}", folder / f"private{ending}"
            options = (data, *columns, "--epsilon=1", f"--out={out}", "--uncounted")
            print(f"{ending}, {data.stat().st_size / 1e6:.0f} MB")
            measure("  levels declared, jointly", *options, *declared)
            out.unlink()
            out.with_name(f"{out.name}.privacy.json").unlink()
            measure("  levels declared, separately", *options, *declared, "--separately")
            out.unlink()
            out.with_name(f"{out.name}.privacy.json").unlink()
            measure("  levels from the rows, two passes", *options)
            measure("  estimate from the private file", "--estimate", out)
        print(f"Parquet, a folder of {ROWS // STEP} files")
        options = (*columns, *declared, "--epsilon=1", f"--out={folder / 'private'}", "--uncounted")
        measure("  levels declared, jointly", folder / PARTS, *options)


if __name__ == "__main__":
    main()

"""Readers of CSV beside each other: seconds, memory, and what they say of bad files: `python benchmarks/readers.py`.

    python benchmarks/readers.py                        two million rows
    python benchmarks/readers.py --rows 20000000        half a gigabyte, three minutes
    python benchmarks/readers.py --counted              a log that is counted beside the reader alone
    python benchmarks/readers.py --hangs 30             on one core: does a command that refuses a file always end?

DuckDB and Polars take part if they are installed; policysim does not need them. All read nine columns as text, in
batches, from the page cache, each in a process of its own; memory is the largest resident set of that process.
"""

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import pyarrow as pa
from logs import write
from pyarrow import csv
from side_by_side import machine, markdown

HERE = Path(__file__)
# What is wrong with a file of three columns; all have 400 rows.
ROW = b"1,b,2.5\n"
BAD = {
    "a row of two cells": b"a,b,c\n" + 300 * ROW + b"1,x\n" + 99 * ROW,
    "a byte that is not UTF-8": b"a,b,c\n" + 300 * ROW + b"1,\xfc,2.5\n" + 99 * ROW,
    "a quote that is never closed": b"a,b,c\n" + 300 * ROW + b'1,"x,2.5\n' + 99 * ROW,
    'a cell "1,5"': b"a,b,c\n" + 300 * ROW + b'"1,5",x,2.5\n' + 99 * ROW,
    "semicolons, decimal commas": b"a;b;c\n" + 400 * b"1;b;2,5\n",
    "a line sep=;": b"sep=;\na;b;c\n" + 400 * b"1;b;2.5\n",
    "two comments before the header": b"# one\n# two\na,b,c\n" + 400 * ROW,
    "runs of spaces": b"  a  b   c\n" + 400 * b"  1  b 2.5\n",
    "a title before the header": b"My trial\na,b,c\n" + 400 * ROW,
    "Windows-1252": b"a,b,gr\xf6\xdfe\n" + 400 * ROW,
    "UTF-16": ("a,b,c\n" + 400 * ROW.decode()).encode("utf-16"),
    "a zip called .csv": b"PK\x03\x04\x14\x00\x00\x00" + bytes(400),
    "a cut .gz": gzip.compress(b"a,b,c\n" + b"".join(b"%d,b,2.5\n" % (i * i) for i in range(9000)))[:-900],
}


def read_policysim(path: Path) -> Iterator[pa.RecordBatch]:
    """Ours: pyarrow's, behind a look at the file's beginning."""
    from policysim.files.columns_file import open_columns  # noqa: PLC0415

    yield from open_columns(path).batches()


def read_pyarrow(path: Path) -> Iterator[pa.RecordBatch]:
    """pyarrow's, as it comes, but for types."""
    with csv.open_csv(path) as first:
        text = dict.fromkeys(first.schema.names, pa.string())
    yield from csv.open_csv(path, convert_options=csv.ConvertOptions(column_types=text))


def read_duckdb(path: Path) -> Iterator[pa.RecordBatch]:
    """DuckDB's, which recognises separators and headers, too."""
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    yield from connection.read_csv(str(path), all_varchar=True).to_arrow_reader(1 << 17)


def read_polars(path: Path) -> Iterator[pa.RecordBatch]:
    """Polars', which collects batches of a lazy scan."""
    import polars  # noqa: PLC0415

    for frame in polars.scan_csv(path, infer_schema=False).collect_batches(chunk_size=1 << 17):
        yield from frame.to_arrow().to_batches()


READERS = {"policysim": read_policysim, "pyarrow": read_pyarrow, "duckdb": read_duckdb, "polars": read_polars}


def runs(name: str, *paths: str) -> None:
    """Read files, and print a line for each: rows, seconds, processor seconds, MiB and the first row, or an error."""
    for path in map(Path, paths):
        n_rows, first, start, before = 0, None, time.perf_counter(), time.process_time()
        try:
            for batch in READERS[name](path):
                first = first or {column: batch.column(column)[0].as_py() for column in batch.schema.names}
                n_rows += batch.num_rows
        except BaseException as error:  # a panic of Rust is no Exception
            print("refused:", " ".join(str(error).split()).replace(f"{path.parent}/", "")[:150], flush=True)
            continue
        # The high-water mark of this program: that of getrusage counts the parent's, too.
        memory = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
        spent = f"{time.perf_counter() - start:.2f}\t{time.process_time() - before:.2f}\t{memory:.0f}"
        print(f"{n_rows:,}\t{spent}\t{first}", flush=True)


def lines_of(name: str, *paths: Path, seconds: int = 300) -> list[str]:
    """What `runs` prints in a process of its own."""
    code = (
        f"import sys; sys.path.insert(0, {str(HERE.parent)!r}); import readers; readers.runs({name!r}, *sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    return done.stdout.splitlines()


def speeds(folder: Path, n_rows: int) -> str:
    """What each reader takes for the same file plain and packed; the best of two runs by processor time."""
    write(folder, n_rows, 1, "csv")
    plain = folder / "parts" / "0000.csv"
    packed = folder / "packed.csv.gz"
    with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=1) as target:
        while block := source.read(1 << 22):
            target.write(block)
    titles, rows = ("file", "reader", "rows", "seconds", "processor s", "MiB"), []
    for path in (plain, packed):
        for name in installed():
            found = [lines_of(name, path)[0].split("\t") for _ in range(2)]
            best = min(found, key=lambda run: float(run[2]) if len(run) > 1 else 0.0)
            cells = best[:4] if len(best) > 1 else [best[0], "", "", ""]
            size = f"{path.stat().st_size / 1e6:,.0f} MB {'.gz' if path == packed else 'plain'}"
            rows.append(dict(zip(titles, (size, name, *cells), strict=True)))
    return markdown(rows)


def messages(folder: Path) -> str:
    """What each reader makes of bad and of odd files."""
    paths = []
    for number, (title, content) in enumerate(BAD.items()):
        paths.append(folder / f"bad{number}.csv{'.gz' if '.gz' in title else ''}")
        paths[-1].write_bytes(content)
    rows: list[dict[str, object]] = []
    said = {name: lines_of(name, *paths) for name in installed()}
    for number, title in enumerate(BAD):
        for name, lines in said.items():
            text = lines[number]
            if "\t" in text:
                n_rows, *_, first = text.split("\t")
                text = f"reads {n_rows} rows; the first: {first}"
            rows.append({"file": title, "reader": name, "what it does": text.replace("|", r"\|")})
    return markdown(rows)


def installed() -> list[str]:
    """The readers that are here."""
    return [name for name in READERS if find_spec(name)]


def compared(folder: Path, n_rows: int, n_files: int) -> str:
    """A counted log in CSV beside the reader alone: medians of five rounds, in turn."""
    from policysim.logs.counted_log import count_log  # noqa: PLC0415
    from policysim.study.study_reader import load_study  # noqa: PLC0415

    folder.mkdir()
    write(folder, n_rows, n_files, "csv")
    log = load_study(folder / "study.toml").log
    works: dict[str, Callable[[], object]] = {
        "the reader alone": lambda: [n_rows for part in log.parts for n_rows in map(len, read_policysim(part))],
        "count_log": lambda: count_log(log),
    }
    rounds = [{title: times(work) for title, work in works.items()} for _ in range(5)]
    alone, rows = [spent["the reader alone"] for spent in rounds], []
    for title in works:
        row: dict[str, object] = {"what": title}
        for place, unit in enumerate(("seconds", "processor seconds")):
            own = [spent[title][place] for spent in rounds]
            ratios = [mine / reader[place] for mine, reader in zip(own, alone, strict=True)]
            row |= {unit: f"{median(own):.2f}", f"times the reader's {unit}": f"{median(ratios):.2f}"}
        rows.append(row)
    return markdown(rows)


def times(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and processor seconds of all threads."""
    start, before = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - before


def hangs(folder: Path, times: int) -> str:
    """How often `init` refuses odd files with exit code 3 within 20 seconds, on one core."""
    header = "arm;größe;geheilt"
    contents = {
        "latin.csv": header.encode("cp1252"),
        "latin-rows.csv": (header + "\n1;2;3").encode("cp1252"),
        "utf-16.csv": header.encode("utf-16"),
        "utf-16-rows.csv": (header + "\n1;2;x\n").encode("utf-16"),
        "empty.csv": b"",
        "one-line.csv": b"a,b,c",
        "late.csv": b"a,b\n" + 5_000_000 * b"1,2\n" + b"1,\xfc\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    with zipfile.ZipFile(folder / "workbook.csv", "w") as workbook:
        workbook.writestr("a.xml", "a")
    (folder / "folder.csv").mkdir()
    rows = []
    prefix = ["taskset", "-c", "0"] if find_taskset() else []
    for name in [*contents, "workbook.csv", "folder.csv"]:
        codes: dict[str, int] = {}
        slowest = 0.0
        for _ in range(times):
            start = time.perf_counter()
            try:
                done = subprocess.run(
                    [*prefix, sys.executable, "-m", "policysim", "init", name],
                    cwd=folder,
                    capture_output=True,
                    timeout=60,
                    check=False,
                    env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
                )
                code = str(done.returncode)
            except subprocess.TimeoutExpired:
                code = "hangs"
            slowest = max(slowest, time.perf_counter() - start)
            codes[code] = codes.get(code, 0) + 1
        said = ", ".join(f"{code}: {count} times" for code, count in codes.items())
        rows.append({"file": name, "exit codes": said, "slowest, s": f"{slowest:.1f}"})
    return markdown(rows)


def find_taskset() -> bool:
    """Whether a process can be bound to a core."""
    return any((Path(folder) / "taskset").exists() for folder in os.get_exec_path())


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--counted", action="store_true")
    parser.add_argument("--hangs", type=int, metavar="N")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = [machine()]
        if chosen.hangs:
            told += [hangs(folder, chosen.hangs)]
        elif chosen.counted:
            for n_files in (1, 20):
                told += [f"{chosen.rows:,} rows of CSV, files: {n_files}"]
                told += [compared(folder / str(n_files), chosen.rows, n_files)]
        else:
            told += [f"{chosen.rows:,} rows of nine columns:", speeds(folder, chosen.rows), messages(folder)]
    print(*told, sep="\n\n")


if __name__ == "__main__":
    main()

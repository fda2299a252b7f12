"""How long a file of very many columns takes to read: `python benchmarks/columns.py`.

Prints a Markdown table. The file has 40 rows of small whole numbers; a study names three of its columns.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from side_by_side import machine, markdown, seconds

from policysim.files.columns_file import open_columns
from policysim.files.data_table import read_table
from policysim.logs.column_summary import read_columns
from policysim.logs.load_log import load_log
from policysim.study.study_reader import load_study

STUDY = """[data]
file = "wide.csv"
treatment = "arm"
propensity = "equal"
outcome = { cured = 1.0 }
[data.features]
marker7 = { levels = [0, 1, 2] }
[privacy]
epsilon = 1.0
"""
N_ROWS = 40


def write(folder: Path, n_columns: int) -> Path:
    """A study and its log; the path of the log."""
    names = [f"marker{number}" for number in range(n_columns - 2)]
    values = np.random.default_rng(1).integers(3, size=(N_ROWS, len(names))).astype(str)
    rows = [",".join(("ab"[row % 2], str(row % 3 % 2), *cells)) for row, cells in enumerate(values)]
    path = folder / "wide.csv"
    path.write_text("\n".join([",".join(("arm", "cured", *names)), *rows]) + "\n")
    (folder / "study.toml").write_text(STUDY)
    return path


def main() -> None:
    """Time what reads such a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), chosen.columns)
        study = load_study(path.with_name("study.toml"))
        works = {
            "its header, and whether names are distinct": lambda: open_columns(path),
            "all of it": lambda: read_table(path),
            "the log of a study that names three": lambda: load_log(study.log),
            "`init`: what each column holds": lambda: read_columns(path),
        }
        rows = [{"what": what, "seconds": f"{seconds(work):.2f}"} for what, work in works.items()]
    print(f"{chosen.columns:,} columns. {machine()}\n")
    print(markdown(rows))


if __name__ == "__main__":
    main()

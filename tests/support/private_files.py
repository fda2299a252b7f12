"""Small files to privatise, and the command that does it."""

import csv

import pyarrow as pa
import pyarrow.parquet as pq

from policysim.cli.main import main

LEVELS = {"age_band": ("young", "old"), "sex": ("0", "1")}
COLUMNS = ("--column", "age_band", "--column", "sex")
DECLARED = ("--levels", "age_band=young,old", "--levels", "sex=0,1")


def people(n):
    """(n, 4) cells: a number with leading zeros, an age band, a sex, and text that CSV must quote."""
    notes = ["", "a, b", 'he said "x"', "two\nlines"]
    return [[f"{i:04d}", "young" if i % 3 else "old", str(i % 5 // 3), notes[i % 4]] for i in range(n)]


def write_people(path, n=60):
    """A file of this many people, CSV or Parquet by its ending; returns its path."""
    names = ["person", "age_band", "sex", "note"]
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([names, *people(n)])
    else:
        pq.write_table(pa.table(list(map(list, zip(*people(n), strict=True))), names=names), path)
    return path


def read_rows(path):
    """The header and the rows of a file, all as text."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as stream:
            header, *rows = csv.reader(stream)
        return header, rows
    table = pq.read_table(path)
    return table.column_names, [[str(value) for value in row.values()] for row in table.to_pylist()]


def run(capsys, *arguments):
    """Exit code, stdout and stderr of `policysim privatize`."""
    try:
        code = main(["privatize", *map(str, arguments)])
    except SystemExit as stop:  # argparse's own way to end
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def counted(data):
    """What stderr says of a first release."""
    return (
        "policysim: a second release of the same columns adds its epsilon to this one's; "
        f"{data}.releases.json lists the releases and is private: keep it with the data, and publish neither\n"
    )


def fails(capsys, data, message, *options, code=3, left=1):
    """Check that the command refuses the data in these lines and leaves only what was there."""
    options = options or (*COLUMNS, *DECLARED, "--epsilon", 1, "--out", data.with_name(f"private{data.suffix}"))
    got, printed, err = run(capsys, data, *options)
    assert (got, printed) == (code, "")
    assert err == "".join(f"policysim: {line}\n" for line in message.splitlines())
    assert len(list(data.parent.iterdir())) == left

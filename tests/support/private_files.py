"""Small files to privatise, and the command that does it."""

import csv
import json
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from policysim.cli.main import main
from policysim.release.ledger import Ledger

NAMES = ["person", "age_band", "sex", "note"]
LEVELS = {"age_band": ("young", "old"), "sex": ("0", "1")}
COLUMNS = ("--column", "age_band", "--column", "sex")
DECLARED = ("--levels", "age_band=young,old", "--levels", "sex=0,1")
# Any value of a JSON document.
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**400) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def people(n):
    """(n, 4) cells: a number with leading zeros, an age band, a sex, and text that CSV must quote."""
    notes = ["", "a, b", 'he said "x"', "two\nlines"]
    return [[f"{i:04d}", "young" if i % 3 else "old", str(i % 5 // 3), notes[i % 4]] for i in range(n)]


def write_people(path, n=60):
    """A file of this many people, CSV or Parquet by its ending; returns its path."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([NAMES, *people(n)])
    else:
        write_part(path, people(n))
    return path


def write_parts(folder, n_parts, n=140, ending=".csv"):
    """So many people in so many files of a folder, whose parents are made; returns the folder."""
    folder.mkdir(parents=True)
    rows = people(n)
    for number in range(n_parts):
        own = rows[n * number // n_parts : n * (number + 1) // n_parts]
        write_part(folder / f"{number:04}{ending}", own)
    return folder


def write_part(path, rows, names=NAMES):
    """One file of these rows; cells of CSV without breaks and quotes."""
    if path.suffix == ".csv":
        clean = [[cell.replace("\n", " ").replace('"', "").replace(",", ";") for cell in row] for row in rows]
        path.write_text("".join(f"{','.join(row)}\n" for row in [names, *clean]))
    else:
        columns = list(map(list, zip(*rows, strict=True))) or [pa.array([], pa.string())] * len(names)
        pq.write_table(pa.table(columns, names=names), path)


def read_rows(path):
    """The header and the rows of a file, all as text."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as stream:
            header, *rows = csv.reader(stream)
        return header, rows
    table = pq.read_table(path)
    return table.column_names, [[str(value) for value in row.values()] for row in table.to_pylist()]


def run(capsys, *arguments):
    """Exit code, stdout and stderr of `policysim privatize`; uncounted unless it says how, which stderr then says."""
    ways = ("--ledger", "--simulate", "--uncounted", "--estimate", "--seed")
    own = [] if any(way in arguments for way in ways) else ["--uncounted"]
    try:
        code = main(["privatize", *map(str, arguments), *own])
    except SystemExit as stop:  # argparse's own way to end
        code = stop.code
    captured = capsys.readouterr()
    lines = captured.err.splitlines(keepends=True)
    if own and code == 0:
        assert ": not counted: no ledger adds" in lines.pop(0)
    return code, captured.out, "".join(lines)


def ask(capsys, *arguments):
    """Exit code, stdout and stderr of `policysim`."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def counted(folder):
    """How many entries there are, what they cost, and the answers that are held."""
    path = folder / "ledger.sqlite"
    ledger = Ledger(path)
    with sqlite3.connect(path) as sql:
        held = [json.loads(answer) for (answer,) in sql.execute("SELECT answer FROM held")]
    return len(ledger.releases()), ledger.spent(), held


def fails(capsys, data, message, *options, code=3, left=1):
    """Check that the command refuses the data in these lines and leaves only what was there."""
    options = options or (*COLUMNS, *DECLARED, "--epsilon", 1, "--out", data.with_name(f"private{data.suffix}"))
    got, printed, err = run(capsys, data, *options)
    assert (got, printed) == (code, "")
    assert err == "".join(f"policysim: {line}\n" for line in message.splitlines())
    assert len(list(data.parent.iterdir())) == left

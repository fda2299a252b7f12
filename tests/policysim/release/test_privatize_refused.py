"""Data that cannot be privatised is refused in one clear line, with the rows, and nothing is written."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from private_files import COLUMNS, DECLARED, fails

from policysim.files import columns_file

NA = "; a level NA takes missing values"


@pytest.mark.parametrize("block", [1 << 20, 64])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_outside_of_the_levels_are_counted_and_named(capsys, tmp_path, monkeypatch, ending, block):
    monkeypatch.setattr(columns_file, "BLOCK", block)
    monkeypatch.setattr(columns_file, "BATCH_ROWS", block)
    data = tmp_path / f"data{ending}"
    sexes = ["0", "1", "2", "", "1", "NaN"] + ["1"] * 30 + ["9"] * 20
    if ending == ".csv":
        data.write_text("age_band,sex\n" + "".join(f"old,{sex}\n" for sex in sexes))
    else:
        cells = [sex or None for sex in sexes]
        pq.write_table(pa.table({"age_band": ["old"] * len(cells), "sex": cells}), data)
    # The header is line 1 of a CSV file; rows of Parquet have no lines. What stands there is private.
    lines = [
        f"{data}{f':{row + 1}' if ending == '.csv' else ''}: row {row}: sex: must be one of 0, 1{NA}"
        for row in (3, 4, 6, *range(37, 57))
    ]
    fails(capsys, data, "\n".join([*lines[:20], "... and 3 more"]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", ": is empty: the first line must name the columns"),
        (b"age_band,sex\n", ": has no rows"),
        (b"age_band,sex,sex\nold,1,1\n", ":1: two columns are named 'sex'"),
        (b"age_band,Sex\nold,1\n", ": unknown column 'sex'; did you mean 'Sex'? known: age_band, Sex"),
        (b"PK\x03\x04age_band,sex\n", ": is a zip archive or a workbook, and no text: save the table as CSV"),
        (b'age_band,"s"ex\nold,1\n', ": not valid CSV: ',' expected after '\"'"),
        (b'age_band,sex,note\nold,1,x\nold,1,"x\nold,1,x\n', ": a quote in the last row is opened and never closed"),
    ],
)
def test_a_csv_file_that_cannot_be_used_is_one_line(capsys, tmp_path, content, reason):
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    fails(capsys, data, f"{data}{reason}")


def test_all_rows_of_another_length_are_listed_with_their_lines(capsys, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text('age_band,sex\nold,1\nold\n\n"o\nld",1\nold,1,1\n')
    must = "must have 2 columns as the header has"
    fails(capsys, data, f"{data}:3: row 2: {must}, got 1\n{data}:7: row 4: {must}, got 3")


def test_a_row_longer_than_what_is_read_at_a_time_is_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(columns_file, "BLOCK", 1 << 10)
    data = tmp_path / "data.csv"
    data.write_text("age_band,sex,note\nold,1," + "x" * 5000 + "\n")
    fails(capsys, data, f"{data}: a row is longer than 0 MiB, or a quote is opened and never closed")


def test_a_parquet_file_that_cannot_be_used_is_one_line(capsys, tmp_path):
    data = tmp_path / "data.parquet"
    options = ("--column", "sex", "--epsilon", 1, "--out", tmp_path / "out.parquet")
    data.write_bytes(b"")
    fails(capsys, data, f"{data}: not valid Parquet: Parquet file size is 0 bytes")
    pq.write_table(pa.table({"age_band": pa.array([], pa.string()), "sex": pa.array([], pa.string())}), data)
    fails(capsys, data, f"{data}: has no rows")
    pq.write_table(pa.table({"age_band": ["old"], "sex": [[1]]}), data)
    fails(capsys, data, f"{data}: sex: is of type list<element: int64>, which cannot hold categories")
    fails(capsys, data, f"{data}: sex: is of type list<element: int64>, which cannot hold categories", *options)
    pq.write_table(pa.table({"age_band": ["old"], "sex": [1]}), data)
    fails(capsys, data, f"{data}: row 1: sex: must be one of m, f{NA}", *options, "--levels", "sex=m,f")
    message = "sex: its levels must differ, got '1' and '01'."
    fails(capsys, data, message, *options, "--levels", "sex=1,01", code=2)


def test_a_refusal_ends_the_process_as_it_should(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("age_band,sex\nold,1\nold,9\n")
    command = [sys.executable, "-m", "policysim", "privatize", str(data), *COLUMNS, *DECLARED, "--epsilon", "1"]
    command.append("--uncounted")
    # A reader's thread that outlives the interpreter aborted every second of such processes, so two are tried.
    runs = [subprocess.Popen([*command, "--out", str(tmp_path / f"{i}.csv")], stderr=subprocess.PIPE) for i in range(2)]
    assert [process.communicate()[1].count(b"\n") for process in runs] == [1] * 2
    assert [process.returncode for process in runs] == [3] * 2

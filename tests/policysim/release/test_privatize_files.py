"""Files of any kind go in and come out, whole or not at all."""

import csv
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from private_files import COLUMNS, DECLARED, LEVELS, read_rows, run, write_people

from policysim.files import columns_file
from policysim.files.columns_file import open_columns
from policysim.files.csv_format import CsvFormat
from policysim.progress import Progress
from policysim.release.privatize import privatize_files, read_private
from policysim.release.privatize_note import Randomization
from policysim.release.privatize_source import levels_in, open_source

CELLS = st.text(alphabet="ab0 ,\"\n\r\t;'NAé\u2028", max_size=6)


def privatized(path, levels, name="private", **options):
    """The private file of a file, in a simulation."""
    out = path.with_name(f"{name}.simulated{path.suffix}")
    privatize_files(
        open_source(path, CsvFormat(separator=",", decimal=".")), out, Randomization(levels, 1.0), seed=1, **options
    )
    return out


@settings(max_examples=60)
@given(
    st.lists(st.tuples(CELLS, st.sampled_from(["x", "y, z", '"']), CELLS), min_size=1, max_size=12),
    st.lists(CELLS, min_size=2, max_size=2, unique=True).filter(lambda names: "secret" not in names),
    st.booleans(),
)
def test_cells_of_csv_that_pass_through_are_the_same_text(rows, names, windows):
    header = [names[0], "secret", names[1]]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        with data.open("w", newline="", encoding="utf-8") as stream:
            # With a bare line feed at the end of its lines, the writer leaves a bare carriage return unquoted.
            quoting = csv.QUOTE_MINIMAL if windows else csv.QUOTE_ALL
            csv.writer(stream, quoting=quoting, lineterminator="\r\n" if windows else "\n").writerows([header, *rows])
        out = privatized(data, {"secret": ("x", "y, z", '"')})
        found_header, found = read_rows(out)
    assert found_header == header
    assert [(row[0], row[2]) for row in found] == [(row[0], row[2]) for row in rows]
    assert {row[1] for row in found} <= {"x", "y, z", '"'}


def test_text_that_looks_like_something_else_stays_text(tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(
        b'\xef\xbb\xbfid,sex,note\r\n007,0,NaN\r\n1e5,1,\r\n 1 ,0,null\r\nTRUE,1,"x\r\ny"\r\n-0.0,0,5" pipe'
    )
    header, rows = read_rows(privatized(data, {"sex": ("0", "1")}))
    assert header == ["id", "sex", "note"]
    assert [row[0] for row in rows] == ["007", "1e5", " 1 ", "TRUE", "-0.0"]
    assert [row[2] for row in rows] == ["NaN", "", "null", "x\r\ny", '5" pipe']


def test_columns_of_parquet_that_pass_through_keep_type_and_values(tmp_path):
    kept = {
        "number": pa.array([1, None, 3], pa.int16()),
        "real": pa.array([0.1, float("nan"), None]),
        "time": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "list": pa.array([[1], [], None], pa.list_(pa.int8())),
        "empty": pa.array(["", None, "x"]),
        "category": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
    data = tmp_path / "data.parquet"
    pq.write_table(pa.table({"sex": pa.array([0, 1, 1], pa.int8()), **kept}), data)
    found = pq.read_table(privatized(data, {"sex": ("0", "1")}))
    assert found.schema.field("sex").type == pa.int8()
    for name, values in kept.items():
        kept_type = pa.string() if name == "category" else values.type
        assert found.schema.field(name).type == kept_type
        assert str(found.column(name).to_pylist()) == str(values.to_pylist())


def test_values_of_rows_that_are_left_out_are_in_no_dictionary_of_the_copy(tmp_path):
    named = pa.array(["Ada", "Bob", "Eve"]).dictionary_encode()
    places = pa.array([0, 1, 2, 3], pa.int32())
    kept = {
        "name": named,
        "list": pa.ListArray.from_arrays(places, named),
        "part": pa.StructArray.from_arrays([named], ["name"]),
        "map": pa.MapArray.from_arrays(places, pa.array(["k"] * 3), named),
    }
    data = tmp_path / "data.parquet"
    table = pa.table({"sex": pa.array([0, 1, 1], pa.int8()), **kept}).slice(0, 2)
    pq.write_table(table, data)
    assert b"Eve" in data.read_bytes()
    out = privatized(data, {"sex": ("0", "1")})
    assert b"Ada" in out.read_bytes() and b"Eve" not in out.read_bytes()
    assert pq.read_table(out).drop(["sex"]).to_pylist() == table.drop(["sex"]).to_pylist()


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (pa.array([0, 1, 1], pa.int64()), ("1", "0")),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ("c", "b", "a")),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]).cast(pa.int32()), pa.array(["lo", "hi"]), ordered=True),
            ("lo", "hi"),
        ),
        (pa.array([18000, 18001, 18000], pa.date32()), ("2019-04-14", "2019-04-15")),
    ],
    ids=lambda values: str(getattr(values, "type", "")),
)
def test_private_columns_of_parquet_keep_their_type(tmp_path, values, levels):
    data = tmp_path / "data.parquet"
    pq.write_table(pa.table({"secret": values}), data)
    out = privatized(data, {"secret": levels})
    assert pq.read_schema(out).field("secret").type == values.type
    assert read_private(out)[0]["rows"] == 3
    found = set(levels_in(open_source(data), ["secret"])["secret"])
    assert found <= set(levels) | {"1.0"}
    privatized(data, {"secret": tuple(found)}, name="again")


def test_a_category_with_room_for_few_values_takes_all_declared_levels(tmp_path):
    data, levels = tmp_path / "data.parquet", tuple(map(str, range(300)))
    few = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["0", "1"]))
    pq.write_table(pa.table({"secret": few}), data)
    found = pq.read_table(privatized(data, {"secret": levels})).column("secret")
    assert found.chunk(0).dictionary.to_pylist() == list(levels)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_many_batches_are_one_file(tmp_path, monkeypatch, ending):
    data = write_people(tmp_path / f"data{ending}", 500)
    whole = read_rows(privatized(data, LEVELS, name="whole"))
    monkeypatch.setattr(columns_file, "BLOCK", 200)
    monkeypatch.setattr(columns_file, "BATCH_ROWS", 7)
    steps, expected = [], []
    file = open_columns(data)
    assert len(list(file.batches(progress=Progress(steps.append, expected.append)))) > 40
    assert sum(steps) == sum(expected) == file.size
    out = privatized(data, LEVELS)
    header, rows = read_rows(out)
    assert header == whole[0]
    assert [[row[0], row[3]] for row in rows] == [[row[0], row[3]] for row in whole[1]]
    assert read_private(out)[1][0].reports.sum() == 500


def test_levels_from_the_rows_are_sorted_so_that_their_order_tells_nothing(tmp_path):
    data = tmp_path / "data.parquet"
    columns = {"number": [10, None, 9, 10], "real": [2.5, float("nan"), None, -1.0], "text": ["b", "", None, "a"]}
    pq.write_table(pa.table(columns), data)
    found = levels_in(open_source(data), list(columns))
    assert found == {"number": ["9", "10"], "real": ["-1", "2.5"], "text": ["a", "b"]}


def test_levels_from_files_whose_columns_have_other_types_are_those_of_all(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    columns = {"a": pa.array([10, 9], pa.int8()), "b": pa.array([2.0, 10.0]), "c": pa.array(["3", "9"])}
    for name, values in columns.items():
        pq.write_table(pa.table({"code": values}), folder / f"{name}.parquet")
    levels = levels_in(open_source(folder), ["code"])
    assert levels == {"code": ["2", "3", "9", "10"]}
    out = tmp_path / "private.simulated"
    privatize_files(open_source(folder), out, Randomization(levels, 1.0), seed=1)
    assert [pq.read_schema(path).field("code").type for path in sorted(out.iterdir())] == [
        values.type for values in columns.values()
    ]
    assert read_private(out)[1][0].reports.sum() == 6


def test_folders_for_the_output_are_made_and_its_rights_follow_the_umask(capsys, tmp_path):
    data, out = write_people(tmp_path / "data.csv"), tmp_path / "deep" / "er" / "out.csv"
    old = os.umask(0o027)
    try:
        assert run(capsys, data, *COLUMNS, *DECLARED, "--epsilon", 1, "--out", out)[0] == 0
    finally:
        os.umask(old)
    assert {path.name: path.stat().st_mode & 0o777 for path in out.parent.iterdir()} == {
        "out.csv": 0o640,
        "out.csv.privacy.json": 0o640,
    }

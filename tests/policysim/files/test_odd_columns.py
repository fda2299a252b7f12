"""Columns of lists, structs or bytes, names with what nobody sees, and very many columns: one line, or the answer."""

import datetime
import decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_trials import ASSIGNED

from envs.toml_reader import UNSEEN
from policysim.cli.main import main
from policysim.files.bad_rows import DataError
from policysim.files.data_table import read_table
from policysim.logs.column_summary import MOST_COLUMNS
from policysim.trials import trial_columns

N = 60
ARMS, AGES, WELL = [["a", "b"][i % 2] for i in range(N)], [i // 2 % 3 for i in range(N)], [i % 5 % 2 for i in range(N)]
NESTED = {
    "list": pa.array([[1, 2]] * N),
    "list of nothing first": pa.array([None, [1, None]] * (N // 2)),
    "empty lists": pa.array([[]] * N),
    "fixed list": pa.array([[1, 2]] * N, pa.list_(pa.int64(), 2)),
    "struct": pa.array([{"x": 1}] * N),
    "map": pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int64())),
    "bytes": pa.array([b"\xff"] * N),
}
TIME = datetime.datetime(2020, 1, 1)
SINGLE = {
    "decimal": pa.array([decimal.Decimal("1.50"), decimal.Decimal(2)] * (N // 2)),
    "time zone": pa.array([TIME, TIME + datetime.timedelta(1)] * (N // 2), pa.timestamp("us", tz="Europe/Zurich")),
    "dictionary": pa.array(["u", "v"] * (N // 2)).dictionary_encode(),
    "no value": pa.array([None] * N, pa.list_(pa.int64())),
    "unsigned": pa.array([2**64 - 1, 0] * (N // 2), pa.uint64()),
}
STUDY = """seed = 1
[data]
file = "{file}"
treatment = "arm"
propensity = "equal"
outcome = {{ well = 1.0 }}
[data.features]
{feature}
[compare]
policies = ["exponential"]
"""


@pytest.fixture
def write(tmp_path):
    """A Parquet file with one more column, and a study of it that has this feature."""

    def write(name, column, feature):
        pq.write_table(pa.table({"arm": ARMS, "age": AGES, "well": WELL, name: column}), tmp_path / "t.parquet")
        study = tmp_path / "study.toml"
        study.write_text(STUDY.format(file="t.parquet", feature=feature), encoding="utf-8")
        return str(study), str(tmp_path / "t.parquet")

    return write


@pytest.mark.parametrize("kind", NESTED)
def test_a_column_without_single_values_is_named_in_one_line(write, capsys, tmp_path, kind):
    study, data = write("odd", NESTED[kind], 'odd = { levels = ["u", "v"] }')
    for arguments in (
        ["compare", study, "--out", str(tmp_path / "out")],
        ["init", data, "--treatment", "odd", "--outcome", "well", "--out", str(tmp_path / "new.toml")],
        ["init", data, "--treatment", "arm", "--outcome", "well", "--out", str(tmp_path / "new.toml")],
        ["select", data, "--column", "odd", "--epsilon", "1", "--candidates", "u,v", "--uncounted"],
    ):
        assert main(arguments) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"policysim: {data}: odd: must hold one number, text, truth value or time in each row")
    assert not (tmp_path / "out").exists()


def test_such_a_column_that_is_not_used_is_no_hindrance(write):
    _, data = write("odd", NESTED["map"], "")
    table = read_table(data)
    assert table["age"].tolist() == AGES
    with pytest.raises(DataError, match="odd: must hold one number"):
        table["odd"]


@pytest.mark.parametrize("kind", SINGLE)
def test_single_values_of_any_kind_are_levels_or_bad_rows(write, capsys, tmp_path, kind):
    study, _ = write("odd", SINGLE[kind], 'odd = { levels = ["x", "y"] }')
    assert main(["compare", study, "--out", str(tmp_path / "out")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "row 1: odd: must be one of x, y" in line and " (so are 60 rows)" in line


def test_a_list_in_a_data_frame_is_told_too():
    table = read_table(pd.DataFrame({"x": [None, (1, 2)]}))
    with pytest.raises(DataError, match=r"log: x: must hold one number, .* got a tuple"):
        table["x"]


@pytest.fixture
def tricky(tmp_path):
    """A CSV file whose names and values would steer a terminal and break a page."""
    age, arms = "a\x1b[31mge\n\u202e", ("x\x1b]0;owned\x07", "y\u202eexe")
    rows = [f'"{arms[i % 2]}",{i // 2 % 3},{i % 5 % 2}\n' for i in range(4 * N)]
    path = tmp_path / "trial.csv"
    path.write_text(f'arm,"{age}",well\n' + "".join(rows), encoding="utf-8", newline="")
    return path


def test_what_is_not_seen_in_data_is_shown_escaped_from_end_to_end(tricky, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    study, out = tmp_path / "trial.toml", tmp_path / "out"
    options = ("--treatment", "arm", "--outcome", "well", "--id", "none", *ASSIGNED)
    assert main(["init", str(tricky), *options]) == 0
    assert main(["compare", str(study), "--out", str(out), "--format", "svg"]) == 0
    printed = capsys.readouterr()
    texts = {path.name: path.read_text(encoding="utf-8") for path in out.rglob("*.*")} | {
        "study": study.read_text(encoding="utf-8"),
        "screen": printed.out + printed.err,
    }
    for name, text in texts.items():
        assert UNSEEN.search(text.replace("\n", "").replace("\r", "")) is None, name
    for name in ("study", "screen", "report.html", "comparison.csv"):
        assert r"x\x1b]0;owned\x07" in texts[name].replace(r"\\", "\\"), name
    assert r"a\x1b[31mge\n\u202e" in texts["report.html"]


def test_two_names_that_look_the_same_escaped_are_two_of_one_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\x1b,a\\x1b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="two columns are named"):
        read_table(path)


def test_init_lists_the_first_of_very_many_columns(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    rows = [
        "arm,cured," + ",".join(f"x{number}" for number in range(MOST_COLUMNS)),
        *["a,1" + ",0" * MOST_COLUMNS] * 10,
    ]
    path.write_text("\n".join([*rows, *["b,0" + ",1" * MOST_COLUMNS] * 10]))
    assert main(["init", str(path)]) == 2
    assert capsys.readouterr().out.endswith("... and 2 more\n")

"""Text as people have it: what is recognised, and what is refused in one line that says what to state."""

import gzip
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import policysim as ps
from policysim.cli.main import main
from policysim.files import columns_file, dialect
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import open_columns
from policysim.files.csv_format import CsvFormat
from policysim.files.data_table import read_table
from policysim.logs.load_log import load_log

STATE = {key: f"state {key} = " for key in ("separator", "decimal", "encoding")}


def rows_of(tmp_path, content, name="t.csv", **stated):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = read_table(path, stated=CsvFormat(**stated))
    return table.columns, [list(row.values()) for row in table.rows.to_pylist()]


@pytest.mark.parametrize(
    ("content", "columns", "rows"),
    [
        ("sep=;\na;b\n1;x\n", ["a", "b"], [["1", "x"]]),
        ('"sep=\t"\r\na\tb\r\n1,5\tx\r\n', ["a", "b"], [["1.5", "x"]]),
        ("# made in 2024\n# by R\na,b\n1,x\n", ["a", "b"], [["1", "x"]]),
        ("a b\n1 x\n  22   y \n", ["a", "b"], [["1", "x"], ["22", "y"]]),
        ('a "b c"\n1 "x y"\n', ["a", "b c"], [["1", "x y"]]),
        ("a;b\n1,5;x\n-,5;y\n2,5e3;z\n", ["a", "b"], [["1.5", "x"], ["-.5", "y"], ["2.5e3", "z"]]),
        ("a|b\n1.5|x,y\n", ["a", "b"], [["1.5", "x,y"]]),
        ("a;b\n0,125;x\n", ["a", "b"], [["0.125", "x"]]),  # no thousands begin with 0
        ("first name,last name\nJo Ann,Lee Q\nBo Max,Fox R\n", ["first name", "last name"], None),
        ("größe;a\n1;ü\n".encode("cp1252"), ["größe", "a"], [["1", "ü"]]),
        ("größe;a\n1;ü\n".encode("utf-16"), ["größe", "a"], [["1", "ü"]]),
        ("größe;a\n1;ü\n".encode("utf-16-be"), ["größe", "a"], [["1", "ü"]]),  # without a mark
        ('"1,2";"a,b"\n"x";"y"\n', ["1,2", "a,b"], [["x", "y"]]),
    ],
)
def test_what_the_beginning_shows_is_recognised(tmp_path, content, columns, rows):
    found = rows_of(tmp_path, content)
    assert found[0] == columns
    assert rows is None or found[1] == rows


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('a,b\n1,x\n"1,5",y\n', ":3: row 2: a: is a number with a comma"),
        ('a,b\n"1,234",x\n', ":2: row 1: a: is a number with a comma"),
        ("a;b\n1,5;2.5\n", ":2: has a number with a comma, and line 2 one with a point"),
        ("a;b\n1,500;x\n2,000;y\n", ":2: has a number with a comma, and all such may have commas between thousands"),
        ("a,b;c,d\n1,2;3,4\n", ":1: , or ; may stand between columns"),
        ("heart failure\nlung cancer\nkidney stone\n", ":1: is it one column of words, or are there more?"),
        ("Trial of 2024\na,b,c\n1,2,3\n", ":1: has 1 column, and all rows below have 3: a title? remove it"),
        (
            "Trial, 2024\nby, for, me\na,b,c,d\n1,2,3,4\n",
            ":1: a title of 2 lines? remove them: they have 2, 3 columns, and",
        ),
        ("Trial, A or B\na;b;c\n1;x;2\n2;y;3\n3;z;4\n", ":1: has 1 column, and all rows below have 3: a title?"),
        (f"Trial\na,b,c\n{12 * '1,x,2'}\n".replace("21", "2\n1") + "Source: me\n", ":1: has 1 column, and most rows"),
        ("a,b,c\n1,2\n3,4\n", ":1: has 3 columns, and all rows below have 2: a name too many?"),
        ("a,b,,\n1,2,,\n3,4,,5\n", ":3: row 2: column 4 has no name, and a value: name it in the header"),
        ("1,A,30,f,1\n2,B,59,m,1\n", ":1: two columns are named '1': its first line has numbers, and is no header"),
        ("a b c\n1 2 3 4\n2 2 3 4\n", ":1: has 3 columns, and all rows below have 4: name the first column, too"),
        ("#a,b\n1,2\n3,4\n", ":1: begins with # and has as many columns as the next line"),
        ("a,b,c\n1,2,3\n1,2\n", ":3: row 2: must have 3 columns as the header has, got 2"),
        ("sep=:\na:b\n", ":1: sep=: is none of"),
        (b"a,b\n1,\x81\n", ":2: is no text in UTF-8 or Windows-1252: state encoding"),
        ("a,b\n1,ü\n2,".encode() + b"\xfc\n", ":3: is not UTF-8, which others are"),
        (b"a,b\n1,\0\n", ": is no text, or in an encoding to state"),
        (b"PK\x03\x04a,b\n", ": is a zip archive or a workbook"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), ": is packed by gzip: its name must end in .gz"),
        (b"PAR1", ": is Parquet"),
        (b"", ": is empty"),
        (b"# only a comment\n", ": is empty"),
        (b'a b\n1 "x\n2 y"\n', ":2: a row is longer than 4 MiB, or a quote is opened and not closed on its line"),
    ],
)
def test_what_can_be_read_in_two_ways_or_not_at_all_is_refused_in_one_line(tmp_path, content, said):
    with pytest.raises(DataError) as error:
        rows_of(tmp_path, content)
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{tmp_path / 't.csv'}{said}"), line


# The sign, what separates columns, and numbers with it: as a decimal sign, and between thousands.
THOUSANDS = [
    (";", ["850", "1#205", "1#317"]),  # between thousands, or 1.205 and 850.000
    (";", ["30#000", "59#000"]),
    ("\t", ["850", "1#210", "1#317"]),  # no program that writes 850 writes 1.210 for 1.21
    (",", ["850", "1#210", "1#317"]),
    (";", ["1#205#000", "1#317"]),
]
DECIMALS = [
    (";", ".,", ["0#125", "1#205", "850"]),  # no thousands begin with 0
    (";", ".,", ["12#5", "1#205", "850"]),
    (";", ".,", ["1#2055", "1#205", "850"]),
    (";", ".,", ["1205#500", "1#205", "850"]),
    (",", ".", ["1#205", "2#340", "3#850"]),  # of a program that writes three decimals
    (",", ".", ["850", "1#205", "1#317"]),  # and of one that leaves out what is 0
    ("\t", ".", ["850", "1#205", "1#317"]),
]


def column_of(separator, cells, sign):
    quoted = [f'"{cell}"' if separator == sign else cell for cell in (cell.replace("#", sign) for cell in cells)]
    return "".join(f"{cell}{separator}x\n" for cell in ["cost", *quoted])


@pytest.mark.parametrize("sign", [".", ","])
@pytest.mark.parametrize(("separator", "cells"), THOUSANDS)
def test_points_and_commas_that_may_stand_between_thousands_are_asked_about(tmp_path, separator, cells, sign):
    content, word = column_of(separator, cells, sign), {".": "point", ",": "comma"}[sign]
    if separator == sign:
        with pytest.raises(DataError, match="cost: is a number with a comma"):
            rows_of(tmp_path, content)
        return
    with pytest.raises(DataError) as error:
        rows_of(tmp_path, content)
    line = 2 + next(place for place, cell in enumerate(cells) if "#" in cell)
    said = f":{line}: has a number with a {word}, and all such may have {word}s between thousands: remove them, or"
    assert str(error.value).startswith(f"{tmp_path / 't.csv'}{said}")
    assert f'state decimal = "{sign}" (in' in str(error.value)
    as_decimals = [cell.replace("#", ".") if cell.count("#") < 2 else cell.replace("#", sign) for cell in cells]
    found = [row[0] for row in rows_of(tmp_path, content, decimal=sign)[1]]
    assert found == as_decimals


@pytest.mark.parametrize(("separator", "signs", "cells"), DECIMALS)
def test_decimals_that_cannot_be_thousands_are_read(tmp_path, separator, signs, cells):
    for sign in signs:
        found = [row[0] for row in rows_of(tmp_path, column_of(separator, cells, sign))[1]]
        assert found == [cell.replace("#", ".") for cell in cells]


def test_columns_without_name_and_values_are_left_out(tmp_path):
    for content in ("a,b,,\n1,x,,\n2,y, ,\n", "a,,b,\n1,,x,\n2, ,y,\n", "a;b;;\n1;x;;\n2;y;;\n"):
        assert rows_of(tmp_path, content) == (["a", "b"], [["1", "x"], ["2", "y"]])
    # The numbers of rows, as R writes them, are a column.
    assert rows_of(tmp_path, ",a\n1,x\n2,y\n") == (["", "a"], [["1", "x"], ["2", "y"]])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_each_file_is_recognised_by_itself_whatever_its_ending(tmp_path, separator):
    content = "id,A,B\n1,0,1\n2,1,0\n".replace(",", separator)
    for name in ("t.tsv", "t.csv", "t.tsv.gz"):
        packed = gzip.compress(content.encode()) if name.endswith(".gz") else content
        assert rows_of(tmp_path, packed, name) == (["id", "A", "B"], [["1", "0", "1"], ["2", "1", "0"]])
    # Of a .tsv with tabs nothing else can be meant.
    assert rows_of(tmp_path, "a,b\tc,d\n1,2\t3,4\n", "t.tsv")[0] == ["a,b", "c,d"]
    other = ";" if separator != ";" else ","
    (tmp_path / "t.csv").write_text(content)
    said = read_table(tmp_path / "t.csv", stated=CsvFormat(separator=other)).unknown_column("id")
    assert "if it is more than one column, state separator = " in said


@pytest.mark.parametrize(
    ("content", "stated", "rows"),
    [
        ('a,b\n"1,5",x\n', {"decimal": ","}, [["1.5", "x"]]),
        ('a,b\n"1,5",x\n', {"decimal": "."}, [["1,5", "x"]]),
        ("a;b\n1,5;2.5\n", {"decimal": "."}, [["1,5", "2.5"]]),
        ("a,b;c,d\n1,2;3,4\n", {"separator": ";", "decimal": ","}, [["1.2", "3.4"]]),
        ("a,b;c,d\n1,2;3,4\n", {"separator": ","}, [["1", "2;3", "4"]]),
        ("a;b\n1,5;2.5\n", {"decimal": ","}, [["1.5", "2.5"]]),  # no thousands end in two digits
        ("heart failure\nlung cancer\n", {"separator": ","}, [["lung cancer"]]),
        ("heart failure\nlung cancer\n", {"separator": " "}, [["lung", "cancer"]]),
        (b"a,b\n1,\x8a\n", {"encoding": "mac-roman"}, [["1", "ä"]]),
        ("1 2\n3 4\n", {"header": False}, [["1", "2"], ["3", "4"]]),
        ("# x y\n1;2,5\n3;4,5\n", {"header": False, "separator": ";"}, [["1", "2.5"], ["3", "4.5"]]),
    ],
)
def test_what_is_stated_decides(tmp_path, content, stated, rows):
    assert rows_of(tmp_path, content, **stated)[1] == rows


UNKNOWN = [("separator", "x"), ("decimal", ";"), ("encoding", "no"), ("encoding", "hex")]


@pytest.mark.parametrize(("key", "value"), UNKNOWN)
def test_nothing_else_can_be_stated(tmp_path, capsys, key, value):
    (tmp_path / "t.csv").write_text("arm,a\n1,2\n")
    assert main(["init", str(tmp_path / "t.csv"), f"--{key}", value]) == 2
    assert capsys.readouterr().err.startswith(f"policysim: --{key} must be ")
    (tmp_path / "s.toml").write_text(f'[data]\nfile = "t.csv"\n{key} = "{value}"\n')
    assert main(["compare", str(tmp_path / "s.toml")]) == 2
    assert f"s.toml:3: data.{key}: must be " in capsys.readouterr().err.replace("data: ", "data.")


def test_points_between_thousands_are_refused_where_commas_are_decimal(tmp_path):
    with pytest.raises(DataError, match=r"t\.csv:3: row 2: a: may have points between thousands: remove them"):
        rows_of(tmp_path, "a;b\n1,5;x\n1.500;y\n", decimal=",")


def test_numbers_with_a_point_after_decimal_commas_are_refused_by_row(tmp_path):
    # Behind what is looked at for the decimal sign.
    rows = "1,25;x\n" * (dialect.SAMPLE // 7 + 10)
    with pytest.raises(DataError, match=r"t\.csv:\d+: row \d+: a: is a number with a point, where commas are") as error:
        rows_of(tmp_path, f"a;b\n{rows}1.500;y\n2,5;z\n")
    line = rows.count("\n") + 2
    assert f"t.csv:{line}: row {line - 1}: " in str(error.value)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.txt.zst"])
@pytest.mark.parametrize("before", ["", "# one\n\n# two\n", "sep=,\n"])
def test_the_line_of_a_row_counts_comments_blank_lines_and_breaks_within_quotes(tmp_path, name, before):
    content = (before + 'a,b\n\n1,"x\ny"\r\n\n2,z\n').encode()
    packed = {"gz": gzip.compress, "zst": lambda data: pa.compress(data, "zstd", asbytes=True)}
    path = tmp_path / name
    path.write_bytes(packed.get(name.split(".")[-1], bytes)(content))
    first = before.count("\n")
    assert read_table(path).places([0, 1]) == [f"{path}:{first + 3}: row 1", f"{path}:{first + 6}: row 2"]
    path.write_bytes(packed.get(name.split(".")[-1], bytes)(content + b"3\n"))
    with pytest.raises(DataError, match=re.escape(f"{path}:{first + 7}: row 3: must have 2 columns as the header")):
        read_table(path)


def test_a_packed_file_that_is_cut_or_is_none_is_refused(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i % 977) for i in range(4000)))
    for name, content, said in (
        ("cut.csv.gz", whole[:-400], "is not whole, or not packed by gzip"),
        ("none.csv.gz", b"a,b\n1,2\n", "is not whole, or not packed by gzip"),
        ("none.csv.zst", b"a,b\n1,2\n", "is not whole, or not packed by zstd"),
        ("t.parquet.gz", whole, "the name must end in .csv, .tsv, .txt or .dat"),
        ("t.gz", whole, "the name must end in .csv, .tsv, .txt or .dat"),
    ):
        with pytest.raises(DataError, match=re.escape(said)):
            rows_of(tmp_path, content, name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_small_file_that_unpacks_to_very_many_bytes_is_refused_before_it_fills_a_memory_or_disk(
    tmp_path, monkeypatch, encoding
):
    monkeypatch.setattr(dialect, "MOST_UNPACKED", 1 << 16)
    monkeypatch.setattr(columns_file, "BLOCK", 1 << 13)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(("a,b\n" + "1,2\n" * 100_000).encode(encoding)))
    seen = 0
    with pytest.raises(DataError, match="unpacks to more than 200 times its size"):
        for batch in open_columns(path).batches():
            seen += batch.nbytes
    assert seen < 1 << 20


@pytest.fixture
def trial():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"arm": rng.choice(["Größe", "wait"], 200), "bmi": rng.normal(25, 4, 200).round(1)})
    return frame.assign(action=frame["arm"], reward=rng.integers(0, 2, 200), propensity=0.5, id=range(200))


FORMS = {
    "plain.csv": ({}, "utf-8"),
    "semicolons.txt": ({"sep": ";", "decimal": ","}, "cp1252"),
    "tabs.tsv.gz": ({"sep": "\t", "decimal": ","}, "utf-16"),
    "spaces.dat": ({"sep": " "}, "utf-8-sig"),
}


@pytest.fixture
def forms(tmp_path, trial, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (options, encoding) in FORMS.items():
        content = trial.to_csv(index=False, lineterminator="\r\n", **options).encode(encoding)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (tmp_path / "policy.csv").write_text("p_Größe,p_wait\n" + 200 * "0.25,0.75\n", encoding="utf-8")
    return list(FORMS)


STUDY = """[data]
file = "{}"
treatment = "arm"
propensity = "equal"
outcome = {{ reward = 1.0 }}
[data.treatments]
"Größe" = "a"
wait = "b"
[data.features]
bmi = {{ cuts = [22, 25] }}
[privacy]
epsilon = 1.0
"""


def outputs(capsys, forms, arguments):
    """What a command prints of each form, without the file's name; the same of all, and no error."""
    said = set()
    for name in forms:
        assert main([word.format(name) for word in arguments]) == 0, capsys.readouterr().err
        said.add(capsys.readouterr().out.replace(name, "FILE"))
    return said


def test_every_command_reads_every_form_alike(forms, capsys, tmp_path):
    select = ["select", "{}", "--column", "arm", "--epsilon", "1", "--simulate", "7", "--id", "none"]
    assert len(outputs(capsys, forms, select)) == 1
    evaluate = ["evaluate", "{}", "--table", "policy.csv", "--estimator", "ips", "--json"]
    assert len(outputs(capsys, forms, evaluate)) == 1
    hidden = ["--column", "arm", "--levels", "arm=Größe,wait", "--epsilon", "1", "--id", "none", "--simulate", "3"]
    outputs(capsys, forms, ["privatize", "{}", *hidden, "--out", "{}.simulated.csv"])
    assert len({(tmp_path / f"{name}.simulated.csv").read_bytes() for name in forms}) == 1
    frames = []
    for name in forms:
        (tmp_path / "study.toml").write_text(STUDY.format(name), encoding="utf-8")
        frames.append(load_log(ps.load_study("study.toml").log).covariates)
        assert open_columns(tmp_path / name).schema.names[0] == "arm"
    assert all(frame.equals(frames[0]) for frame in frames)


def test_what_is_stated_reaches_every_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f'"{i % 7},{i % 3}",{"ab"[i % 2]},{i % 2},0.5\n' for i in range(60))
    (tmp_path / "t.csv").write_text("bmi,action,reward,propensity\n" + rows)
    (tmp_path / "p.csv").write_text("p_a,p_b\n0.5,0.5\n")
    for arguments in (
        ["init", "t.csv", "--treatment", "action", "--outcome", "reward"],
        ["select", "t.csv", "--column", "action", "--epsilon", "1", "--simulate", "7", "--id", "none"],
        ["evaluate", "t.csv", "--table", "p.csv"],
        ["privatize", "t.csv", "--column", "action", "--epsilon", "1", "--simulate", "1", "--out", "o.simulated.csv"],
    ):
        assert main(arguments) == 3
        assert "t.csv:2: row 1: bmi: is a number with a comma" in capsys.readouterr().err
    assert main([*arguments, "--decimal", ","]) == 0
    assert (tmp_path / "o.simulated.csv").read_text().splitlines()[1].startswith("0.0,")
    assert ps.read_log("t.csv", decimal=",")["bmi"].tolist()[:2] == [0.0, 1.1]


def test_a_text_that_is_not_utf_8_never_hangs_at_the_end_of_the_process(tmp_path):
    # Case 06; benchmarks/readers.py --hangs does it many times on one core.
    (tmp_path / "t.csv").write_bytes("arm;größe;geheilt".encode("cp1252"))
    done = subprocess.run(
        [sys.executable, "-m", "policysim", "init", str(tmp_path / "t.csv")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "has no rows below its header" in done.stderr

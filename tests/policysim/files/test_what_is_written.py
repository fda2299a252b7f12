"""What a file holds: no formula that a spreadsheet would run, no metadata of a column, no link followed."""

import base64
import csv
import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_files import read_rows, run

from policysim.cli.main import main
from policysim.errors import OutputError
from policysim.files.columns_writer import open_writer
from policysim.files.whole_files import write_files
from policysim.numbers import to_csv

# What begins as a formula does, and what only looks like it.
FORMULAS = ["=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "-a", "+41 79 555", "-1-2", "=", "--", "-1e5x", "+ve"]
PLAIN = ["-1", "-1.5", "+2e-3", "-1,5", "-.5", "-", "+", "-inf", "a=b", " =1", "'=1", "", "1-2", "−5 %", "e@mail"]
TEXTS = st.text(st.sampled_from("=+-@.,0123456789eE'\"\n x"), max_size=6) | st.sampled_from([*FORMULAS, *PLAIN])


def is_number(text):
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return text == text.strip()


def runs(text):
    """Whether a spreadsheet would take a cell for a formula; a sign alone is none."""
    return text.startswith(("=", "+", "-", "@")) and text not in ("+", "-") and not is_number(text)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), TEXTS.filter(bool))
def test_every_cell_of_every_csv_file_is_inert_and_else_as_it_was(tmp_path_factory, rows, name):
    wanted = [[f"'{text}" if runs(text) else text for text in row] for row in [(name, f"{name}2"), *rows]]
    path = tmp_path_factory.mktemp("written") / "a.csv"
    with open_writer(path, pa.schema([(name, pa.string()), (f"{name}2", pa.string())]), ".csv") as writer:
        writer.write(pa.record_batch(list(map(list, zip(*rows, strict=True))), names=[name, f"{name}2"]))
    table = to_csv(pd.DataFrame(rows, columns=[name, f"{name}2"]))
    for text in (path.read_text(encoding="utf-8"), table.decode()):
        assert list(csv.reader(io.StringIO(text, newline=""))) == wanted


def test_cells_of_both_kinds_are_told_apart():
    assert all(map(runs, FORMULAS))
    assert not any(map(runs, PLAIN))


def test_formulas_of_columns_that_pass_through_are_told_and_levels_are_refused(capsys, tmp_path):
    data, out = tmp_path / "data.csv", tmp_path / "out.csv"
    data.write_text("sex,note\n" + "0,=1+1\n1,-2\n" * 20)
    sex = ("--column", "sex", "--epsilon", 1, "--uncounted", "--out", out)
    code, _, said = run(capsys, data, *sex, "--levels", "sex=0,1")
    assert (code, "warning: out.csv: 20 cells begin as formulas of spreadsheets do" in said) == (0, True)
    assert {row[1] for row in read_rows(out)[1]} == {"'=1+1", "-2"}
    data.write_text("sex,note\n" + "+ve,a\n-ve,b\n" * 20)
    out.unlink()
    (tmp_path / "out.csv.privacy.json").unlink()
    code, _, said = run(capsys, data, *sex, "--levels", "sex=+ve,-ve")
    assert (code, out.exists()) == (3, False)
    must = "begins with =, +, - or @, as formulas of spreadsheets do: name it otherwise, or use .parquet"
    assert said == f"policysim: sex: the column or one of its levels {must}\n"
    # A sign alone is no formula, and Parquet runs none.
    for ending, levels in ((".csv", "+,-"), (".parquet", "+ve,-ve")):
        data = tmp_path / f"signs{ending}"
        cells = pd.DataFrame({"sex": levels.split(",") * 20})
        cells.to_csv(data, index=False) if ending == ".csv" else cells.to_parquet(data)
        made = tmp_path / f"made{ending}"
        assert run(capsys, data, *sex[:-1], made, "--levels", f"sex={levels}")[0] == 0
        assert {row[0] for row in read_rows(made)[1]} <= set(levels.split(","))
        assert run(capsys, made, "--estimate")[0] == 0


def test_metadata_of_columns_and_of_their_parts_do_not_pass_through_parquet(capsys, tmp_path):
    secret = {b"seen": b"HIV:100"}
    item = pa.field("item", pa.int64(), metadata=secret)
    kinds = {
        "sex": pa.string(),
        "plain": pa.int64(),
        "struct": pa.struct([item]),
        "list": pa.list_(pa.struct([item])),
        "large": pa.large_list(item),
        "fixed": pa.list_(item, 2),
        "map": pa.map_(pa.string(), item),
    }
    schema = pa.schema([pa.field(name, kind, metadata=secret) for name, kind in kinds.items()], metadata=secret)
    row = {"sex": "0", "plain": 1, "struct": {"item": 1}, "list": [{"item": 1}], "large": [1], "fixed": [1, 2]}
    rows = [{**row, "map": [("a", 1)]}, {**row, "sex": "1", "map": [("b", 2)]}] * 10
    data, out = tmp_path / "data.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), data)
    levels = ("--column", "sex", "--levels", "sex=0,1", "--epsilon", 1, "--uncounted")
    assert run(capsys, data, *levels, "--out", out)[0] == 0

    def holds(path):
        kept = pq.read_metadata(path).metadata or {}
        return [key for key, value in kept.items() if b"HIV" in (base64.b64decode(value) if b":" in key else value)]

    assert (holds(data), holds(out)) == ([b"ARROW:schema", b"seen"], [])
    assert b"HIV" not in out.read_bytes()
    private = pq.read_table(out)
    assert private.schema.equals(pq.read_table(data).schema)
    assert private.drop_columns("sex").to_pylist() == [{k: v for k, v in row.items() if k != "sex"} for row in rows]


def test_a_report_follows_no_link_out_of_its_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "elsewhere")
    files = {"comparison.csv": b"x\n", "figures/frontier.svg": b"<svg/>", "manifest.json": b"{}"}
    with pytest.raises(OutputError, match=r"out/figures: is a link, which is not followed: remove it, or name another"):
        write_files(tmp_path / "out", files)
    assert (list((tmp_path / "elsewhere").iterdir()), len(list((tmp_path / "out").iterdir()))) == ([], 1)
    # A link in the place of a file makes way, also if it leads to the same bytes.
    (tmp_path / "out" / "figures").unlink()
    (tmp_path / "same.csv").write_bytes(b"x\n")
    (tmp_path / "out" / "comparison.csv").symlink_to(tmp_path / "same.csv")
    write_files(tmp_path / "out", files)
    assert not (tmp_path / "out" / "comparison.csv").is_symlink()


def test_refusals_of_a_log_name_the_row_and_show_the_value_only_if_asked(capsys, tmp_path):
    rows = pd.DataFrame({"arm": [0, 1] * 20, "dx": ["flu", "cold"] * 20, "well": [1, 0] * 20})
    rows.loc[2, "dx"] = "HIV-x"
    rows.to_csv(tmp_path / "trial.csv", index=False)
    study = tmp_path / "trial.toml"
    study.write_text(
        '[data]\nfile = "trial.csv"\ntreatment = "arm"\npropensity = "equal"\noutcome.well = 1.0\n'
        '[data.features]\ndx = { levels = ["flu", "cold"] }\n'
    )
    place = f"policysim: {tmp_path}/trial.csv:4: row 3: dx: must be one of flu, cold"
    for command in (["compare", str(study)], ["choose", str(study), "--keep", "50%"]):
        assert main(command) == 3
        key = "; a value that means unknown is named in [data]: unknown = { dx = [...] }"
        assert capsys.readouterr().err == f"{place}{key}\n"
        assert main([*command, "--show-values"]) == 3
        assert capsys.readouterr().err == f"{place}, got 'HIV-x'{key}\n"
    assert main(["compare", "covid", "--show-values"]) == 2
    assert "--show-values goes with a log, not with one decision in a scenario" in capsys.readouterr().err

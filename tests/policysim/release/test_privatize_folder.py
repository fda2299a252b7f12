"""The files of a folder are one release: one note, one entry in the ledger, all of them or none."""

import json

import pytest
from private_files import COLUMNS, DECLARED, LEVELS, people, read_rows, run, write_part, write_parts

from policysim.release import privatize as module
from policysim.release.ledger import Ledger
from policysim.release.privatize import privatize_files, read_private
from policysim.release.privatize_note import Randomization, note_path
from policysim.release.privatize_source import open_source

PLAN = Randomization(LEVELS, 1.0)
OPTIONS = (*COLUMNS, *DECLARED, "--epsilon", 1)


@pytest.fixture
def data(tmp_path):
    return write_parts(tmp_path / "true" / "parts", 7)


@pytest.fixture
def out(tmp_path):
    (tmp_path / "published").mkdir()
    return tmp_path / "published" / "out"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def everywhere(folder):
    """The bytes of all files below a folder."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_many_files_keep_their_names_their_rows_and_what_is_not_private(capsys, tmp_path, out, ending):
    data, ledger = write_parts(tmp_path / "data", 3, ending=ending), tmp_path / "ledger.sqlite"
    Ledger(ledger)
    code, printed, _ = run(capsys, data, *OPTIONS, "--out", out, "--json", "--ledger", ledger)
    assert code == 0
    assert set(contents(out)) == set(contents(data))
    hidden = 0
    for part in sorted(data.glob(f"*{ending}")):
        (header, true), (own_header, found) = read_rows(part), read_rows(out / part.name)
        assert own_header == header
        assert [(row[0], row[3]) for row in found] == [(row[0], row[3]) for row in true]
        hidden += [row[1:3] for row in found] != [row[1:3] for row in true]
    # Of 46 rows all tell the truth: (e / (e + 3))^46 < 1e-14.
    assert hidden == 3
    document = json.loads(printed)
    assert document["note"]["rows"] == 140
    assert document["file"] == out.as_posix()
    (table,) = document["estimates"]
    rows = [row[1:3] for part in out.iterdir() for row in read_rows(part)[1]]
    assert [row["reports"] for row in table["rows"]] == [rows.count(row["levels"]) for row in table["rows"]]
    code, again, _ = run(capsys, "--estimate", out, "--json")
    assert (code, json.loads(again)) == (0, document)
    assert Ledger(ledger).releases()[["data", "cost"]].to_numpy().tolist() == [["data", "1.0"]]
    assert not list(tmp_path.glob("*.pending"))
    assert {path.name for path in out.parent.iterdir()} == {"out", "out.privacy.json"}


def test_bad_rows_of_all_files_are_one_list(capsys, data, out):
    for number in (5, 2):
        part = data / f"000{number}.csv"
        part.write_text(part.read_text() + "9999,old,7,x\n" * 12)
    code, printed, err = run(capsys, data, *OPTIONS, "--out", out)
    assert (code, printed) == (3, "")
    lines = err.splitlines()
    must = "sex: must be one of 0, 1; a level NA takes missing values"
    assert lines[0] == f"policysim: {data}/0002.csv:22: row 21: {must}"
    assert lines[12] == f"policysim: {data}/0005.csv:22: row 21: {must}"
    assert lines[20:] == ["policysim: ... and 4 more"]
    assert list(out.parent.iterdir()) == []


def test_files_that_do_not_belong_together_are_told(capsys, data, out):
    def refused(said):
        got, printed, err = run(capsys, data, *OPTIONS, "--out", out)
        assert (got, printed, err) == (3, "", f"policysim: {said}\n")
        assert list(out.parent.iterdir()) == []

    write_part(data / "0004.csv", people(3), ["person", "age", "sex", "note"])
    refused(f"{data}/0004.csv: must have the columns of 0000.csv, and only one of them has 'age'")
    write_part(data / "0004.csv", [[*row, "1"] for row in people(3)], ["person", "age_band", "sex", "note", "ward"])
    refused(f"{data}/0004.csv: must have the columns of 0000.csv, and only one of them has 'ward'")


def test_a_file_that_changes_after_it_was_read_is_told(capsys, data, out, monkeypatch):
    def change(path):
        sync(path)
        if path.name == "0003.csv":
            (data / "0000.csv").write_text((data / "0000.csv").read_text() + "9999,old,1,x\n")

    sync = module.sync
    monkeypatch.setattr(module, "sync", change)
    code, _, err = run(capsys, data, *OPTIONS, "--out", out)
    assert (code, err) == (3, f"policysim: {data}/0000.csv: was changed while it was read\n")
    assert list(out.parent.iterdir()) == []


def test_a_seed_gives_the_same_bytes_again(tmp_path, data):
    written = []
    for name, seed in {"one": 5, "two": 5, "three": 6}.items():
        place = tmp_path / f"{name}.simulated"
        privatize_files(open_source(data), place, PLAN, seed=seed)
        written.append((contents(place), note_path(place).read_bytes()))
    assert written[0] == written[1]
    assert written[0][0] != written[2][0]
    # Files with the same rows are drawn from one stream, and not from its beginning each.
    rows = people(60)
    for name in ("0000", "0001"):
        write_part(data / f"{name}.csv", rows)
    privatize_files(open_source(data), tmp_path / "four.simulated", PLAN, seed=5)
    # Equal by chance: (sum of p(r|v)^2)^60 < 0.4^60.
    assert contents(tmp_path / "four.simulated")["0000.csv"] != contents(tmp_path / "four.simulated")["0001.csv"]


def test_a_file_without_rows_may_be_among_others_but_not_alone(capsys, tmp_path, out):
    folder = tmp_path / "data"
    folder.mkdir()
    write_part(folder / "a.csv", [])
    code, _, err = run(capsys, folder, *OPTIONS, "--out", out)
    assert (code, err) == (3, f"policysim: {folder}: has no rows\n")
    write_part(folder / "b.csv", people(30))
    assert run(capsys, folder, *OPTIONS, "--out", out)[0] == 0
    assert (out / "a.csv").read_text() == "person,age_band,sex,note\n"
    assert read_private(out)[0]["rows"] == 30


def test_a_folder_that_holds_something_else_is_not_replaced(capsys, data, out):
    out = out.with_name("out.simulated")

    def refused(said, place=out, code=2):
        before = everywhere(out.parent), contents(data)
        got, printed, err = run(capsys, data, *OPTIONS, "--out", place, "--simulate", 1)
        assert (got, printed, err) == (code, "", f"policysim: {said}\n")
        assert (everywhere(out.parent), contents(data)) == before

    inside = data / "out.simulated"
    refused(f"{inside}: is in the folder of the true values, and would be taken for some of them", inside)
    for place in (f"{out}.csv", ".."):
        refused(f"{place}: must be a new folder, as the data are in a folder", place)
    out.write_text("")
    refused(f"{out}: is a file")
    out.unlink()
    out.symlink_to(data)
    refused(f"{out}: holds the true values, which would be lost")
    out.unlink()
    out.mkdir()
    (out / "mine.csv").write_text("mine")
    refused(f"{out}: holds mine.csv, which privatize did not write there; name a new folder")
    (out / "mine.csv").unlink()
    # An empty folder is as good as none, and a simulation may be replaced; files that are gone do not stay.
    for number in (0, 1):
        assert run(capsys, data, *OPTIONS, "--out", out, "--simulate", number)[0] == 0
        assert len(contents(out)) == 7 - number
        (data / "0006.csv").unlink(missing_ok=True)
    (out / "mine.txt").write_text("mine")
    refused(f"{out}: holds mine.txt, which privatize did not write there; name a new folder")


@pytest.mark.parametrize("name", [".", "../parts/"])
def test_the_current_folder_is_a_folder_as_others_are(capsys, data, out, monkeypatch, name):
    monkeypatch.chdir(data)
    Ledger(out.with_name("ledger.sqlite"))
    assert run(capsys, name, *OPTIONS, "--out", out, "--ledger", out.with_name("ledger.sqlite"))[0] == 0
    assert Ledger(out.with_name("ledger.sqlite")).releases()["data"].tolist() == ["parts"]
    assert len(contents(data)) == len(contents(out)) == 7
    monkeypatch.chdir(out)
    assert run(capsys, "--estimate", ".")[0] == 0


def test_tables_of_a_folder_that_are_left_out_are_named(capsys, data, out):
    whole = (data / "0000.csv").read_bytes()
    for name in ("b.txt", "e.dat", "_notes.txt", "readme.md"):
        (data / name).write_bytes(whole)
    code, _, error = run(capsys, data, *OPTIONS, "--out", out, "--uncounted")
    assert code == 0
    assert f"warning: {data.as_posix()}: left out: b.txt, e.dat: of a folder .csv, .tsv and .parquet are read" in error
    assert {path.name for path in out.iterdir()} == {f"{number:04}.csv" for number in range(7)}

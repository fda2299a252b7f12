"""Releases of the same rows add up: they are counted, privately, and not repeated unasked."""

import hashlib
import json
import math
import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_files import COLUMNS, DECLARED, counted, run, write_people

from policysim.question import OutputError
from policysim.release.privatize import privatize_files
from policysim.release.privatize_ledger import Earlier, ledger_path, open_ledger, total
from policysim.release.privatize_note import Note, make_plan, note_document, note_path, note_text, read_note
from policysim.release.privatize_source import open_source


@pytest.fixture
def data(tmp_path):
    (tmp_path / "people").mkdir()
    return write_people(tmp_path / "people" / "data.csv")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "published" / "private.csv"


def release(capsys, data, out, *options, epsilon=1):
    return run(capsys, data, *COLUMNS, *DECLARED, "--epsilon", epsilon, "--out", out, *options)


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_release_of_the_same_rows_is_refused_until_it_is_asked_for(capsys, data, out, tmp_path):
    code, _, err = release(capsys, data, out)
    assert (code, err) == (0, counted(data))
    before, other = everything(tmp_path), out.with_name("other.csv")
    code, printed, err = release(capsys, data, other, epsilon=0.5)
    assert (code, printed) == (2, "")
    assert err == (
        f"policysim: {data} was released before: age_band, sex at epsilon = 1, as private.csv "
        "(1 in data.csv.releases.json). A further release of the same rows adds its epsilon, 1.5 in all with this one; "
        "--again makes it all the same, and its note says so\n"
    )
    assert everything(tmp_path) == before
    assert release(capsys, data, other, "--again", epsilon=0.5)[0] == 0
    assert json.loads(note_path(other).read_text())["earlier"] == {
        "releases": 1,
        "epsilon": 1.0,
        "epsilon_in_all": 1.5,
    }
    assert "earlier" not in json.loads(note_path(out).read_text())
    code, printed, _ = run(capsys, "--estimate", other)
    assert code == 0
    assert "! These rows were released once before: ε = 1.5 in all with this one." in " ".join(printed.split())


def test_a_release_is_not_replaced_unasked_by_another_one_or_a_simulation(capsys, data, out, tmp_path):
    release(capsys, data, out)
    # Other rows, so that it is no repetition.
    write_people(data, 61)
    before = everything(tmp_path)
    for options in ((), ("--seed", 1)):
        code, printed, err = release(capsys, data, out, *options)
        assert (code, printed) == (2, "")
        assert err == (
            f"policysim: {out}: is a release, whose epsilon is spent; name another file, or replace it with --again\n"
        )
    assert everything(tmp_path) == before
    assert release(capsys, data, out, "--again")[0] == 0
    # A note that cannot be read may be a release's.
    write_people(data, 62)
    note_path(out).write_text("{")
    assert release(capsys, data, out)[0] == 2


def test_simulations_are_not_counted_and_may_be_replaced(capsys, data, out):
    for _ in range(2):
        assert release(capsys, data, out, "--seed", 1)[::2] == (0, "")
        assert list(data.parent.iterdir()) == [data]
    assert release(capsys, data, out)[::2] == (0, counted(data))
    assert "earlier" not in json.loads(note_path(out).read_text())


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_nothing_that_is_published_holds_a_digest_of_the_rows(capsys, tmp_path, ending):
    """A digest of a file with few possible contents confirms a guess of them."""
    (tmp_path / "people").mkdir()
    data, out = write_people(tmp_path / "people" / f"data{ending}"), tmp_path / "published" / f"private{ending}"
    printed = [*release(capsys, data, out), *release(capsys, data, out.with_stem("other"), "--again", "--json")]
    digest = hashlib.sha256(data.read_bytes())
    published = b"".join(everything(out.parent).values()) + "".join(map(str, printed)).encode()
    assert len(everything(out.parent)) == 4
    for shape in (digest.hexdigest(), digest.hexdigest().upper()):
        assert shape.encode() not in published
    assert digest.digest() not in published
    assert set(data.parent.iterdir()) == {data, ledger_path(data)}
    ledger = ledger_path(data).read_text()
    assert ledger.count(digest.hexdigest()) == 2
    assert json.loads(ledger)["private"].startswith("PRIVATE")


def test_the_ledger_is_for_its_owner_only(capsys, data, out):
    old = os.umask(0)
    try:
        release(capsys, data, out)
    finally:
        os.umask(old)
    assert ledger_path(data).stat().st_mode & 0o777 == 0o600


def test_the_note_of_a_repetition_does_not_depend_on_the_private_values(tmp_path):
    notes = []
    for name, value in {"one": "0", "two": "1"}.items():
        data = tmp_path / f"{name}.csv"
        data.write_text("id,sex\n" + f"7,{value}\n" * 30)
        for place in "ab":
            out = tmp_path / place / name / "out.csv"
            privatize_files(open_source([data]), out, make_plan({"sex": ("0", "1")}, 1.0), again=True)
        notes.append(note_path(out).read_bytes())
    assert notes[0] == notes[1]
    assert b'"epsilon_in_all": 2.0' in notes[0]


def test_a_column_that_another_release_leaves_as_it_is_has_no_privacy_left(capsys, data, out):
    assert run(capsys, data, "--column", "sex", "--epsilon", 1, "--levels", "sex=0,1", "--out", out)[0] == 0
    options = ("--column", "age_band", "--epsilon", 1, "--levels", "age_band=young,old")
    other = out.with_name("other.csv")
    code, _, err = run(capsys, data, *options, "--out", other)
    assert code == 2
    said = "leaves no privacy to a column that one of them randomises and another one leaves as it is; --again"
    assert said in err
    code, printed, _ = run(capsys, data, *options, "--out", other, "--again")
    assert code == 0
    assert "and no ε covers a column that one of them randomises" in " ".join(printed.split())
    assert json.loads(note_path(other).read_text())["earlier"]["epsilon_in_all"] == "inf"
    assert read_note(other).epsilon_in_all == math.inf


def test_changed_content_is_no_repetition_but_is_told_about(capsys, data, out):
    release(capsys, data, out)
    write_people(data, 61)
    code, _, err = release(capsys, data, out.with_name("other.csv"))
    assert code == 0
    assert "data.csv.releases.json lists 1 of other content: where data.csv shares rows with it, their epsilon" in err
    assert err.count("\n") == 1


def test_a_symbolic_link_is_the_file_itself(capsys, data, out, tmp_path):
    """Released by either name, it was released by the other."""
    link, other = tmp_path / "elsewhere" / "link.csv", out.with_name("other.csv")
    link.parent.mkdir()
    link.symlink_to(data)
    assert release(capsys, link, out)[0] == 0
    assert set(data.parent.iterdir()) == {data, ledger_path(data)} and list(link.parent.iterdir()) == [link]
    (tmp_path / "second").symlink_to(data.parent)
    for name in (data, link, tmp_path / "second" / data.name):
        code, printed, err = release(capsys, name, other)
        assert (code, printed) == (2, "")
        assert err.startswith(f"policysim: {name} was released before: age_band, sex at epsilon = 1, as private.csv")
    assert not other.exists()


def test_a_copy_elsewhere_is_known_to_a_shared_ledger_only(capsys, data, out, tmp_path):
    release(capsys, data, out)
    copy = tmp_path / "elsewhere" / "copy.csv"
    copy.parent.mkdir()
    shutil.copy(data, copy)
    other = out.with_name("other.csv")
    code, _, err = release(capsys, copy, other, "--ledger", ledger_path(data))
    assert (code, other.exists()) == (2, False)
    assert err.startswith(f"policysim: {copy} was released before: age_band, sex at epsilon = 1, as private.csv")
    # What is written nowhere near it cannot be known.
    assert release(capsys, copy, other)[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2, "releases": []}',
        '{"format": 1}',
        '{"format": 1, "releases": [{}]}',
        '{"format": 1, "releases": [{"sha256": "", "out": "", "columns": [], "unchanged": [], "epsilon": -1}]}',
        '{"format": 1, "releases": [{"sha256": "", "out": "", "columns": "ab", "unchanged": [], "epsilon": 1}]}',
        '{"format": 1, "releases": [{"sha256": 1, "out": "", "columns": [], "unchanged": [], "epsilon": 1}]}',
        "[" * 100_000,
    ],
)
def test_a_ledger_that_cannot_be_read_is_refused_in_one_line(capsys, data, out, text):
    ledger_path(data).write_text(text)
    code, printed, err = release(capsys, data, out)
    assert (code, printed) == (3, "")
    assert err == (
        f"policysim: {ledger_path(data)}: not a ledger of releases, so that earlier ones cannot be counted; "
        "put it back as it was\n"
    )
    assert not out.exists()
    # A simulation does not read it.
    assert release(capsys, data, out, "--seed", 1)[0] == 0


def test_a_release_that_cannot_be_counted_is_not_made(capsys, data, out, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = release(capsys, data, out, "--ledger", tmp_path / "file" / "ledger.json")
    assert code == 3
    assert err == f"policysim: {tmp_path}/file/ledger.json: cannot be read: Not a directory\n"
    code, _, err = release(capsys, data, out, "--ledger", out)
    assert (code, err) == (2, f"policysim: {out}: is to be the private file or its note, not the ledger\n")
    code, _, err = release(capsys, data, out, "--ledger", tmp_path)
    assert (code, err) == (3, f"policysim: {tmp_path}: cannot be read: Is a directory\n")
    assert list(everything(out.parent)) == []
    assert release(capsys, data, out, "--ledger", tmp_path / "new" / "ledger.json")[0] == 0
    assert len(json.loads((tmp_path / "new" / "ledger.json").read_text())["releases"]) == 1


def test_a_ledger_that_cannot_be_written_stops_the_release(data, out, monkeypatch):
    source, plan = open_source([data]), make_plan({"sex": ("0", "1")}, 1.0)

    def refuse(folder):
        raise OutputError(f"cannot write to {folder}: Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr("policysim.release.privatize_ledger.check_writable", refuse)
        with pytest.raises(OutputError, match=r"people: Read-only file system; releases are listed there, --ledger"):
            privatize_files(source, out, plan)
    # Also if that shows at the end only.
    monkeypatch.setattr("policysim.release.privatize_ledger.token_hex", lambda _: "0")
    (data.parent / ".data.csv.releases.json.part-0").mkdir()
    with pytest.raises(
        OutputError, match=r"cannot write .*data.csv.releases.json, which lists the releases: File exist"
    ):
        privatize_files(source, out, plan)
    assert everything(out.parent) == {}


def test_a_run_in_the_meantime_is_counted_too(data, out):
    plan, source = make_plan({"sex": ("0", "1")}, 1.0), open_source([data])
    ledgers = [open_ledger(data), open_ledger(data)]
    for name, ledger in zip("ab", ledgers, strict=True):
        privatize_files(source, out.with_name(f"{name}.csv"), plan, ledger=ledger)
    assert [release.out for release in open_ledger(data).same] == ["a.csv", "b.csv"]


@given(st.lists(st.floats(1e-6, 50), min_size=1, max_size=20))
def test_sums_of_epsilon_are_never_rounded_down(epsilons):
    exact = sum(map(Fraction, epsilons))
    found = total(epsilons)
    assert max(Fraction(found), Fraction(repr(found))) >= exact
    assert found == pytest.approx(math.fsum(epsilons), rel=1e-15)
    assert total([*epsilons, math.inf]) == math.inf


@pytest.mark.parametrize("earlier", [None, Earlier(1, 0.1), Earlier(7, math.inf)])
def test_a_note_of_a_repetition_is_read_as_it_was_written(tmp_path, earlier):
    note = Note(make_plan({"sex": ("0", "1")}, 0.2), ("x",), 5, release=True, earlier=earlier)
    note_path(tmp_path / "f.csv").write_text(note_text(note))
    assert read_note(tmp_path / "f.csv") == note
    assert ("earlier" in note_document(note)) == (earlier is not None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"releases": 0}, "earlier releases must be a whole number > 0, got 0"),
        ({"epsilon": "much"}, "the epsilon of earlier releases must be >= 0, got 'much'"),
        ({"epsilon": -1}, "the epsilon of earlier releases must be >= 0, got -1"),
        ({"epsilon_in_all": 0.2}, "earlier must be "),
    ],
)
def test_a_note_of_a_repetition_that_does_not_hold_together_is_refused(tmp_path, changes, message):
    note = Note(make_plan({"sex": ("0", "1")}, 0.2), ("x",), 5, release=True, earlier=Earlier(1, 0.1))
    document = note_document(note)
    document["earlier"] |= changes
    note_path(tmp_path / "f.csv").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=f"not a mechanism note: {message}"):
        read_note(tmp_path / "f.csv")


def test_the_help_says_what_again_and_the_ledger_are_for(capsys):
    code, printed, _ = run(capsys, "--help")
    assert code == 0
    words = " ".join(printed.split())
    assert "A second release of the same rows adds its ε: DATA.releases.json, which is private, lists" in words
    assert "release the same rows once more, or replace a release; the ε add up" in words
    assert Path("DATA.releases.json").exists() is False

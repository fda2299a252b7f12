"""Releases of the same rows add up: they are counted, privately, and not repeated unasked."""

import functools
import hashlib
import json
import math
import shutil
from itertools import permutations, product

import numpy as np
import pytest
from private_files import COLUMNS, DECLARED, counted, run, write_people

from policies.selection import select as choose
from policysim.cli.main import main
from policysim.files.terminal import json_text
from policysim.release import counts_file
from policysim.release.ledger import Earlier, ledger_path
from policysim.release.privatize import privatize_files
from policysim.release.privatize_note import Note, make_plan, note_document, note_path, read_note
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
    assert (code, printed) == (4, "")
    assert err == (
        "policysim: data.csv was released before: age_band, sex at epsilon = 1, as private.csv "
        f"(1 in {ledger_path(data)}). A further release of the same rows adds its epsilon, 1.5 in all with this one; "
        "--again makes it all the same\n"
    )
    assert everything(tmp_path) == before
    # Nor is it told of other content.
    assert release(capsys, data, other, "--again", epsilon=0.5)[::2] == (0, counted(data))
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
        assert (code, printed) == (4, "")
        assert err == (
            f"policysim: {out}: is a release, whose epsilon is spent; name another file, or replace it with --again\n"
        )
    assert everything(tmp_path) == before
    assert release(capsys, data, out, "--again")[0] == 0
    # A note that cannot be read may be a release's.
    write_people(data, 62)
    note_path(out).write_text("{")
    assert release(capsys, data, out)[0] == 4


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


def test_neither_the_first_note_nor_that_of_a_repetition_depends_on_the_private_values(tmp_path):
    notes = []
    for name, value in {"one": "0", "two": "1"}.items():
        data = tmp_path / f"{name}.csv"
        data.write_text("id,sex\n" + f"7,{value}\n" * 30)
        outs = [tmp_path / place / name / "out.csv" for place in "ab"]
        for out in outs:
            privatize_files(open_source(data), out, make_plan({"sex": ("0", "1")}, 1.0), again=True)
        notes.append([note_path(out).read_bytes() for out in outs])
    assert notes[0] == notes[1]
    assert [b'"epsilon_in_all": 2.0' in note for note in notes[0]] == [False, True]


def test_a_column_that_another_release_leaves_as_it_is_has_no_privacy_left(capsys, data, out):
    assert run(capsys, data, "--column", "sex", "--epsilon", 1, "--levels", "sex=0,1", "--out", out)[0] == 0
    options = ("--column", "age_band", "--epsilon", 1, "--levels", "age_band=young,old")
    other = out.with_name("other.csv")
    code, _, err = run(capsys, data, *options, "--out", other)
    assert code == 4
    said = "leaves no privacy to a column that one of them randomises and another one leaves as it is; --again"
    assert said in err
    code, printed, _ = run(capsys, data, *options, "--out", other, "--again")
    assert code == 0
    assert "and no ε covers a column that one of them randomises" in " ".join(printed.split())
    assert json.loads(note_path(other).read_text())["earlier"]["epsilon_in_all"] == "inf"
    assert read_note(other).earlier.epsilon_in_all == math.inf


def test_changed_content_is_no_repetition_but_is_told_about(capsys, data, out):
    release(capsys, data, out)
    write_people(data, 61)
    code, _, err = release(capsys, data, out.with_name("other.csv"))
    assert code == 0
    assert err.endswith(
        "It lists 1 of other content of data.csv: for rows that both hold, their epsilon add up too, which is not "
        "counted here\n"
    )
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
        assert (code, printed) == (4, "")
        assert err.startswith("policysim: data.csv was released before: age_band, sex at epsilon = 1, as private.csv")
    assert not other.exists()


def test_a_copy_is_known_in_its_folder_and_elsewhere_to_a_shared_ledger_only(capsys, data, out, tmp_path):
    release(capsys, data, out)
    elsewhere = tmp_path / "elsewhere" / "copy.csv"
    elsewhere.parent.mkdir()
    beside, other = data.with_name("renamed.csv"), out.with_name("other.csv")
    for copy, options in ((beside, ()), (elsewhere, ("--ledger", ledger_path(data)))):
        shutil.copy(data, copy)
        code, _, err = release(capsys, copy, other, *options)
        assert (code, other.exists()) == (4, False)
        assert err.startswith(f"policysim: {copy.name} was released before: age_band, sex at epsilon = 1, as private")
    # What is written nowhere near it cannot be known.
    assert release(capsys, elsewhere, other)[0] == 0


# Choices and columns in one ledger.


def select(capsys, data, *options):
    code = main(["select", *map(str, (data, "--column", "sex", "--candidates", "0,1", *options))])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_same_question_is_answered_once_and_another_one_adds_up(capsys, data):
    code, printed, err = select(capsys, data, "--epsilon", "0.5")
    assert (code, err) == (0, counted(data))
    answer = json.loads(ledger_path(data).read_text())["releases"][0]["released"]
    assert f"sex = {answer}" in printed
    # With another epsilon, mechanism or adjacency it is the same question.
    for options in (("--epsilon", 1), ("--epsilon", "0.5", "--mechanism", "exponential")):
        code, printed, err = select(capsys, data, *options)
        assert (code, printed) == (4, "")
        assert err.startswith(f"policysim: data.csv was released before: sex at epsilon = 0.5, as {answer} (1 in ")
        assert err.count("\n") == 1
    code, _, err = select(capsys, data, "--epsilon", 1, "--by", "age_band", "--groups", "young,old")
    assert code == 0
    assert err.endswith("policysim: warning: These rows were released once before: ε = 1.5 in all with this one.\n")
    code, printed, _ = select(capsys, data, "--epsilon", "0.25", "--again", "--json")
    assert code == 0
    assert json.loads(printed)["release"]["earlier"] == {"releases": 2, "epsilon": 1.5, "epsilon_in_all": 1.75}
    entries = json.loads(ledger_path(data).read_text())["releases"]
    assert [entry["epsilon"] for entry in entries] == [0.5, 1, 0.25]
    assert [entry["question"]["by"] for entry in entries] == ["", "age_band", ""]


def test_a_simulated_choice_is_not_counted(capsys, data):
    for _ in range(2):
        code, _, err = select(capsys, data, "--epsilon", 1, "--seed", 1)
        assert (code, err) == (0, "")
    assert list(data.parent.iterdir()) == [data]
    code, _, err = select(capsys, data, "--epsilon", 1, "--seed", 1, "--ledger", "l.json")
    assert code == 2
    assert err == "policysim: --ledger does not go with --seed: a simulation is no release, and is not counted\n"


def test_a_choice_and_private_columns_of_the_same_rows_add_up(capsys, data, out):
    assert select(capsys, data, "--epsilon", "0.5")[0] == 0
    code, printed, _ = release(capsys, data, out, "--json")
    assert code == 0
    assert json.loads(printed)["note"]["earlier"] == {"releases": 1, "epsilon": 0.5, "epsilon_in_all": 1.5}
    assert read_note(out).earlier == Earlier(1, 0.5, 1.5)
    # Whether a row is there, up to 0.5, is another value in it up to 1.
    code, _, err = select(capsys, data, "--epsilon", "0.5", "--adjacency", "add-or-remove-one", "--again")
    assert code == 0
    assert "These rows were released 2 times before: ε = 2.5 in all with this one." in err


def test_what_hides_whether_a_row_is_there_hides_another_value_up_to_twice_that_and_no_less():
    """So it counts twice beside private columns; the exact losses of all small data sets of three candidates."""
    epsilon, worst = 0.5, 0.0

    @functools.cache
    def logs(counts):
        chosen = choose(counts, epsilon=epsilon, mechanism="permute-and-flip", monotone=True)
        return np.log(chosen.probabilities)

    for counts in product(range(5), repeat=3):
        for a, b in permutations(range(3), 2):
            if counts[a]:
                other = tuple(count - (j == a) + (j == b) for j, count in enumerate(counts))
                worst = max(worst, float(np.abs(logs(counts) - logs(other)).max()))
    assert 1.9 * epsilon < worst <= 2 * epsilon + 1e-12


def test_a_choice_from_a_column_that_is_published_has_no_privacy_left(capsys, data, out):
    options = ("--column", "age_band", "--epsilon", 1, "--levels", "age_band=young,old", "--out", out)
    assert run(capsys, data, *options)[0] == 0
    code, printed, _ = select(capsys, data, "--epsilon", 1, "--json")
    assert code == 0
    assert json.loads(printed)["release"]["earlier"]["epsilon_in_all"] == "inf"


def test_choices_that_hide_whether_a_row_is_there_add_up_as_such(capsys, data):
    options = ("--epsilon", "0.5", "--adjacency", "add-or-remove-one", "--again", "--json")
    assert select(capsys, data, *options)[0] == 0
    assert json.loads(select(capsys, data, *options)[1])["release"]["earlier"]["epsilon_in_all"] == 1


def test_a_choice_whose_claim_does_not_hold_counts_with_what_it_loses(capsys, data):
    assert select(capsys, data, "--epsilon", 1, "--sensitivity", "0.25")[0] == 4
    assert json.loads(ledger_path(data).read_text())["releases"][0]["epsilon"] == 4


def test_counts_that_change_while_they_are_read_are_no_release(capsys, data, monkeypatch):
    def change(*arguments, **options):
        counts = read_counts(*arguments, **options)
        data.write_text(data.read_text() + "9999,old,1,x\n")
        return counts

    read_counts = counts_file.read_counts
    monkeypatch.setattr(counts_file, "read_counts", change)
    code, printed, err = select(capsys, data, "--epsilon", 1)
    assert (code, printed, err) == (3, "", f"policysim: {data}: was changed while it was read\n")
    assert list(data.parent.iterdir()) == [data]


# The note of a repetition.


@pytest.mark.parametrize("earlier", [Earlier(1, 0.5, 0.75), Earlier(7, math.inf, math.inf)])
def test_a_note_of_a_repetition_is_read_as_it_was_written(tmp_path, earlier):
    note = Note(make_plan({"sex": ("0", "1")}, 0.25), ("x",), 5, release=True, earlier=earlier)
    note_path(tmp_path / "f.csv").write_text(json_text(note_document(note)))
    assert read_note(tmp_path / "f.csv") == note


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
    note = Note(make_plan({"sex": ("0", "1")}, 0.25), ("x",), 5, release=True, earlier=Earlier(1, 0.5, 0.75))
    document = note_document(note)
    document["earlier"] |= changes
    note_path(tmp_path / "f.csv").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=f"not a mechanism note: {message}"):
        read_note(tmp_path / "f.csv")

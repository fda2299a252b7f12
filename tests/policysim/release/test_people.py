"""Whose rows they are: each row of a person is hidden, or the file is refused; each person is charged."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_files import COLUMNS, DECLARED, ask, counted, write_part, write_parts, write_people

from policysim.files.bad_rows import BadRows, DataError
from policysim.release.ledger import Ledger
from policysim.release.people import People

HIDDEN = [*COLUMNS, *DECLARED, "--epsilon", "1"]
COUNTED = ["--ledger", "ledger.sqlite"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with people in a file and in a folder, and a ledger."""
    write_people(tmp_path / "data.csv", 20)
    write_parts(tmp_path / "parts", 2, 20)
    monkeypatch.chdir(tmp_path)
    Ledger("ledger.sqlite")
    return tmp_path


@pytest.fixture
def visits(here):
    """Forty visits of ten patients, four in a row, of whom the first two are always well."""
    rows = [[f"p{i // 4}", str(i % 4), "01"[i % 4 > 1]] for i in range(40)]
    write_part(here / "visits.csv", rows, ["patient_id", "visit", "ill"])
    return here / "visits.csv"


ILL = ["--column", "ill", "--levels", "ill=0,1", "--epsilon", "40"]


@pytest.mark.parametrize("command", ["privatize", "table", "select"])
def test_an_id_that_repeats_is_refused_until_somebody_says_what_that_means(visits, capsys, command):
    asked = {
        "privatize": ["privatize", "visits.csv", *ILL, "--out", "out/p.csv"],
        "table": ["privatize", "visits.csv", "--as", "table", *ILL, "--out", "out/p.csv"],
        "select": ["select", "visits.csv", "--column", "ill", "--epsilon", "40"],
    }[command]
    for way in ([], ["--id", "patient_id"]):
        code, printed, err = ask(capsys, *asked, *COUNTED, *way)
        assert (code, printed) == (3, "")
        assert err.splitlines()[-1].startswith("policysim: visits.csv: patient_id repeats, so that epsilon would hide")
        assert "--id patient_id --rows-per-person N" in err
        assert ("--id none" in err) == (not way)
    assert counted(visits.parent) == (0, 0, [])
    assert ask(capsys, *asked, *COUNTED, "--id", "none")[0] == 0
    assert counted(visits.parent) == (1, 40, [])


@pytest.mark.usefixtures("visits")
def test_rows_beyond_n_are_left_out_and_every_row_of_a_person_is_hidden(capsys):
    asked = ["privatize", "visits.csv", *ILL, "--id", "patient_id", "--rows-per-person", "2", *COUNTED]
    code, printed, _ = ask(capsys, *asked, "--out", "out/p.csv", "--json")
    document = json.loads(printed)
    assert code == 0
    # The first two of each, at ε = 20, by which fewer than one report in 10^8 is another value.
    assert [row["reports"] for row in document["estimates"][0]["rows"]] == [20, 0]
    note = document["note"]
    assert (note["epsilon"], note["rows_per_person"], note["epsilon_of_person"], note["rows"]) == (20.0, 2, 40.0, 20)
    code, printed, _ = ask(capsys, "privatize", "--estimate", "out/p.csv")
    assert "A person has at most 2 rows, and ε = 40 hides all of them." in " ".join(printed.split())
    code, printed, _ = ask(capsys, *asked, "--as", "table", "--out", "out/t.csv", "--json")
    document = json.loads(printed)
    assert document["note"]["noise"]["rate"] == "10"
    assert "the rows of one person, at most 2, are replaced by others" in document["note"]["guarantee"]
    assert [row["noisy_count"] for row in document["counts"]] == [20, 0]
    # Nobody else is charged, and each of these for both.
    ledger = Ledger("ledger.sqlite")
    assert [ledger.spent(), *(ledger.spent(f"p{i}") for i in range(10))] == [0, *[80] * 10]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
def test_a_choice_hides_all_rows_of_a_person(visits, capsys, adjacency):
    """The loss between all files in which one person's two rows are others: at most epsilon, and more than half."""
    asked = ["select", "visits.csv", "--column", "ill", "--candidates", "0,1", "--adjacency", adjacency]
    asked = [*asked, "--id", "patient_id", "--rows-per-person", "2", "--epsilon", "1", "--simulate", "1", "--json"]
    laws = []
    for rows in ("00", "01", "11", "0", "1", ""):
        if adjacency == "add-or-remove-one" or rows:
            others = [[f"q{i}", "0", "01"[i % 3 == 0]] for i in range(9)]
            write_part(visits, [*(["p", "0", ill] for ill in rows), *others], ["patient_id", "visit", "ill"])
            _, printed, _ = ask(capsys, *asked, "--analysis")
            (group,) = json.loads(printed)["analysis_not_private"]["groups"]
            laws.append([row["probability"] for row in group["candidates"]])
    pairs = [(one, other) for one in laws for other in ([laws[-1]] if "add" in adjacency else laws)]
    worst = max(abs(math.log(p / q)) for one, other in pairs for p, q in zip(one, other, strict=True))
    assert 0.5 < worst <= 1 + 1e-9


def test_one_patient_beyond_the_budget_stops_the_release_of_all(here, capsys):
    for path in here.glob("ledger*"):
        path.unlink()
    ask(capsys, "ledger", "new", "ledger.sqlite", "--budget", "2")
    for day, ids in enumerate([range(20), range(10, 30), range(20, 40)]):
        write_part(here / f"{day}.csv", [[f"p{i}", "01"[i % 2]] for i in ids], ["patient", "sex"])
    asked = ["--column", "sex", "--levels", "sex=0,1", "--epsilon", "1", "--id", "patient", *COUNTED]
    for day in range(3):  # nobody is in all three, whose sum exceeds the budget
        assert ask(capsys, "privatize", f"{day}.csv", "--as", "table", *asked, "--out", f"out/{day}.csv")[0] == 0
    code, printed, err = ask(capsys, "privatize", "0.csv", "--as", "table", *asked, "--out", "out/again.csv")
    assert (code, printed) == (4, "")
    assert "10 of 20 patients in 0.csv would lose more than the budget 2: nothing is released of anybody" in err
    assert not (here / "out" / "again.csv").exists()
    ledger = Ledger("ledger.sqlite")
    assert [int(ledger.spent(f"p{i}")) for i in (0, 9, 10, 19, 20, 29, 30)] == [1, 1, 2, 2, 2, 2, 1]
    assert not list(here.glob("*.pending"))


@pytest.mark.usefixtures("visits")
def test_where_presence_is_hidden_everybody_is_charged_whoever_is_there(capsys):
    once = ["--id", "patient_id", "--rows-per-person", "4", "--adjacency", "add-or-remove-one", *COUNTED]
    assert ask(capsys, "privatize", "visits.csv", "--as", "table", *ILL, *once, "--out", "out/t.csv")[0] == 0
    assert ask(capsys, "select", "visits.csv", "--column", "ill", "--epsilon", "0.5", *once)[0] == 0
    ledger = Ledger("ledger.sqlite")
    assert (ledger.spent("p0"), ledger.spent("nobody")) == (81, 81)


@pytest.mark.usefixtures("visits")
def test_shares_of_people_show_how_many_there_are(capsys):
    presence = ["--id", "none", "--adjacency", "add-or-remove-one", *COUNTED]
    assert ask(capsys, "privatize", "visits.csv", "--as", "table", *ILL, *presence, "--out", "out/t.csv")[0] == 0
    chosen = ["select", "visits.csv", "--column", "ill", "--epsilon", "1", "--id", "none", *COUNTED]
    assert ask(capsys, *chosen)[0] == 0
    assert Ledger("ledger.sqlite").spent() == 81
    assert ask(capsys, *chosen, "--proportions")[0] == 0
    assert Ledger("ledger.sqlite").spent() == math.inf


def test_rows_without_an_id_are_bad_and_a_site_beside_patients_may_repeat(here, capsys):
    write_part(here / "d.csv", [["p1", "a", "0"], ["p2", "a", "1"], ["", "a", "1"]], ["patient", "site_id", "sex"])
    asked = ["privatize", "d.csv", "--column", "sex", "--levels", "sex=0,1", "--epsilon", "1", "--uncounted"]
    code, _, err = ask(capsys, *asked, "--id", "patient", "--out", "a.csv")
    assert (code, err) == (3, "policysim: d.csv:4: row 3: patient: is missing\n")
    code, _, err = ask(capsys, *asked, "--id", "patents", "--out", "a.csv")
    assert (code, "unknown column 'patents'; did you mean 'patient'?" in err) == (3, True)
    assert ask(capsys, *asked, "--out", "a.csv")[0] == 0


def test_people_are_known_across_files_and_batches(here, capsys, monkeypatch):
    monkeypatch.setattr("policysim.files.columns_file.BLOCK", 64)
    for name in "ab":
        write_part(here / "parts" / f"{name}.csv", [[f"p{i % 7}", "y", "0", ""] for i in range(50)])
    for old in ("0000.csv", "0001.csv"):
        (here / "parts" / old).unlink()
    asked = ["privatize", "parts", *HIDDEN, "--as", "table", "--id", "person", "--rows-per-person", "9"]
    asked = [word.replace("young,old", "y,z") for word in asked]
    code, printed, _ = ask(capsys, *asked, "--out", "t.csv", *COUNTED, "--json")
    assert code == 0
    asked[asked.index("--epsilon") + 1] = "4000"
    _, printed, _ = ask(capsys, *asked, "--out", "u.csv", *COUNTED, "--json")
    assert [row["noisy_count"] for row in json.loads(printed)["counts"]] == [63, 0, 0, 0]


# By itself: rows in parts of a file, and columns that nobody named.

IDS = st.lists(st.lists(st.sampled_from(["a", "b", "7", "07", None, ""]), max_size=6), max_size=4)


@given(IDS, st.integers(1, 3), st.booleans())
def test_the_first_n_rows_of_each_count_wherever_the_parts_begin(parts, most, stored_as_codes):
    people, seen, bad = People("id", most), {}, BadRows()
    for part in parts:
        # An id is the same with margins.
        column = pa.array([text and text + " " * (row % 2) for row, text in enumerate(part)], pa.string())
        kept = people.keep(None, bad, {"id": column.dictionary_encode() if stored_as_codes else column})
        expected = []
        for text in part:
            seen[text] = seen.get(text, 0) + 1
            expected.append(seen[text] <= most)
        named = [bool(text) for text in part]
        assert np.array(kept)[named].tolist() == np.array(expected, dtype=bool)[named].tolist()
    rows = [text for part in parts for text in part]
    assert bad.count == sum(not text for text in rows)
    assert len(people.digests) == len({text for text in rows if text})
    people.check("a file")


@given(IDS, st.booleans())
def test_a_column_that_is_named_like_an_id_must_not_repeat_unless_it_names_nobody(parts, named):
    people = People("id") if named else People(suspects={"id": True})
    for part in parts:
        assert people.keep(None, BadRows(), {"id": pa.array(part, pa.string())}) is None
    values = [text for part in parts for text in part if text]
    # A column of one value in all rows is no id, unless somebody says that it is.
    if len(set(values)) < len(values) and (named or len(set(values)) > 1):
        with pytest.raises(DataError, match=r"^a file: id repeats, .* --id id --rows-per-person N"):
            people.check("a file")
    else:
        people.check("a file")


@pytest.mark.parametrize(("patient", "site", "refused"), [("abc", "xxy", False), ("aab", "xyz", True)])
def test_beside_an_id_that_does_not_repeat_only_a_patients_own_must_not(patient, site, refused):
    people = People(suspects={"patient": True, "site_id": False})
    people.keep(None, BadRows(), {"patient": pa.array(list(patient)), "site_id": pa.array(list(site))})
    if refused:
        with pytest.raises(DataError, match="patient repeats"):
            people.check("a file")
    else:
        people.check("a file")

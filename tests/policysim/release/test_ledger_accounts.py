"""The ledger: what is charged to whom, in exact decimals; what is damaged, locked or over budget is refused."""

import json
import resource
import signal
import sqlite3
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policysim.cli.main import main
from policysim.release import ledger as module
from policysim.release.ledger import (
    ADD_OR_REMOVE,
    INFINITE,
    ONE_FEATURE,
    BudgetError,
    Decision,
    Ledger,
    LedgerError,
    Release,
    amount,
    open_ledger,
)

ROOT = Path(__file__).parents[3]


def release(epsilon="1", hides=("diagnosis",), **other):
    return Release("select", "visits.csv", Decimal(epsilon), hides, **other)


def charge(ledger, *releases, **options):
    numbers = []
    for each in releases:
        with ledger.transaction():
            numbers.append(ledger.charge(each, **options))
    return numbers


@pytest.fixture
def place(tmp_path):
    return tmp_path / "ledger.sqlite"


# What a person is charged.


@settings(max_examples=25)
@given(st.lists(st.decimals("0", "1e6", allow_nan=False, places=12), max_size=8))
def test_sums_are_exact(tmp_path_factory, epsilons):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    with ledger.transaction():
        for epsilon in epsilons:
            ledger.charge(release(epsilon))
    assert Fraction(ledger.spent()) == sum(map(Fraction, epsilons))


def test_ten_times_a_tenth_is_the_budget_1_and_not_more(place):
    charge(Ledger(place.with_name("free")), release("1e-500"), release("1"))
    assert Ledger(place.with_name("free")).spent() > 1  # beyond any number of digits sums are rounded up
    ledger = Ledger(place, budget=1)
    charge(ledger, *[release(amount(0.1))] * 10)  # in floating point this is 0.9999999999999999, and 11 times fits
    assert (ledger.spent(), ledger.remaining()) == (Decimal(1), Decimal(0))
    with pytest.raises(BudgetError, match=r"costs ε = 0\.0.*; 1 of the budget 1 is spent"):
        charge(ledger, release("1e-300"))
    assert ledger.head == 10


def test_a_feature_at_a_time_counts_for_each_and_presence_counts_twice():
    one_by_one = release("0.5", ("age", "sex", "hiv"), adjacency=ONE_FEATURE)
    assert (one_by_one.cost, release("0.5", adjacency=ADD_OR_REMOVE).cost) == (Decimal("1.5"), Decimal(1))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (release(hides=("age",)), release(hides=("sex",), publishes=("age",))),
        (release(hides=("sex",), publishes=("age",)), release(hides=("age",))),
        (release(hides=("sex",), shows_rows=True), release(hides=("age",), adjacency=ADD_OR_REMOVE)),
        (release(hides=("sex",), adjacency=ADD_OR_REMOVE), release(hides=("age",), shows_rows=True)),
        (release(hides=("sex",)), release(hides=("age",), publishes=("age",))),
    ],
)
def test_nothing_hides_what_another_release_publishes(tmp_path, first, second):
    with_budget, without = Ledger(tmp_path / "a", budget=1000), Ledger(tmp_path / "b")
    charge(with_budget, first)
    with pytest.raises(BudgetError, match="costs ε = ∞, as one release publishes"):
        charge(with_budget, second)
    charge(without, first, second)
    assert (with_budget.spent(), without.spent(), without.spent("anybody")) == (first.cost, INFINITE, INFINITE)


# Patients.


def treat(ledger, patient, event, epsilon="1", treatment="a1"):
    """One decision: whether the budget allowed it."""
    person, visit = ledger.digest("patient", patient), ledger.digest("event", event)
    with ledger.transaction():
        entry = ledger.charge(release(epsilon, each=True))
        if not ledger.charge_patient(person, Decimal(epsilon)):
            return False
        ledger.decide(person, visit, Decision(treatment, ledger.digest("record", "x"), "treatment", entry))
    return True


def test_each_patient_is_charged_for_his_own_and_for_what_is_charged_to_everybody(place):
    ledger = Ledger(place, budget=3)
    assert treat(ledger, "Ann", "monday")
    charge(ledger, release("0.5"))
    assert [str(ledger.spent(patient)) for patient in ("Ann", "Bob", None)] == ["1.5", "0.5", "0.5"]
    assert ledger.remaining("Ann") == Decimal("1.5")
    assert treat(ledger, "Ann", "tuesday", treatment="a2")
    assert not treat(ledger, "Ann", "wednesday")
    assert ledger.spent("Ann") == Decimal("2.5")
    # A release about everybody must fit into the budget of who has spent most.
    with pytest.raises(BudgetError, match=r"costs ε = 0\.6; 2\.5 of the budget 3 is spent"):
        charge(ledger, release("0.6"))
    ann, monday = ledger.digest("patient", "Ann"), ledger.digest("event", "monday")
    assert ledger.decision(ann, monday) == ("a1", ledger.digest("record", "x"), "treatment", 1)
    assert ledger.account(ann) == (Decimal(2), "a2", 3)
    assert ledger.decision(ann, ledger.digest("event", "wednesday")) is None


def test_ids_stand_nowhere_and_ledger_and_key_are_their_owners_alone(place):
    ledger, other = Ledger(place), Ledger(place.with_name("other"))
    treat(ledger, "Ann Smith", "admission 17")
    stored = place.read_bytes()
    assert b"Ann" not in stored
    assert b"admission" not in stored
    assert ledger.digest("patient", "Ann Smith") in stored
    assert ledger.digest("patient", "Ann") == Ledger(place).digest("patient", "Ann") != other.digest("patient", "Ann")
    assert {path.stat().st_mode & 0o777 for path in place.parent.iterdir()} == {0o600}


# Transactions.


def test_what_fails_on_the_way_is_not_charged(place):
    ledger = Ledger(place)
    with pytest.raises(KeyError), ledger.transaction():
        ledger.charge(release())
        raise KeyError
    assert (ledger.spent(), ledger.head, len(ledger.releases())) == (0, 0, 0)


def test_a_second_handle_in_the_process_does_not_unlock_the_ledger(place):
    """The locks of a process go when it closes any handle of a file: only SQLite may open it."""
    ledger = Ledger(place, budget=1)
    wait = "import sys; from policysim.release import ledger; ledger.MOST_SECONDS = 0.2; ledger.Ledger(sys.argv[1])"
    with ledger.transaction():
        ledger.charge(release())
        with pytest.raises(LedgerError, match="another run"), mock.patch.object(module, "MOST_SECONDS", 0):
            Ledger(place)
        run = subprocess.run([sys.executable, "-c", wait, place], capture_output=True, text=True, cwd=ROOT, check=False)
        assert "another run holds its lock" in run.stderr
    assert (ledger.head, ledger.spent()) == (1, 1)


@pytest.mark.parametrize("wrong", ["-1", "NaN", "1e1000000"])
def test_no_amount_takes_anything_back(place, wrong):
    with pytest.raises(ValueError, match="must be a number >= 0"):
        release(wrong)
    ledger = Ledger(place, budget=1)
    with pytest.raises(ValueError, match="must be a number >= 0"), ledger.transaction():
        ledger.charge_patient(b"0" * 16, Decimal(wrong))
    with pytest.raises(ValueError, match="budget must be"):
        Ledger(place.with_name("other"), budget=wrong)
    with pytest.raises(ValueError, match="budget must be finite"):
        Ledger(place.with_name("other"), budget="inf")


def test_nothing_is_charged_outside_a_transaction_or_within_a_second_one(place):
    ledger, person = Ledger(place, budget=1), b"0" * 16
    for write in (
        lambda: ledger.charge(release()),
        lambda: ledger.charge_patient(person, Decimal(1)),
        lambda: ledger.decide(person, person, Decision("a1", person, "treatment", 1)),
    ):
        with pytest.raises(RuntimeError, match="within a transaction"):
            write()
    with ledger.transaction(), pytest.raises(RuntimeError, match="under way"), ledger.transaction():
        pass
    assert Ledger(place).head == 0


def test_an_id_is_the_same_in_every_spelling_of_a_file(place):
    ledger = Ledger(place)
    treat(ledger, "7", "monday")
    assert {str(ledger.spent(patient)) for patient in ("7", " 7 ", "7.0")} == {"1"}
    assert ledger.spent("007") == 0


# Ledgers that cannot be used.


def refusal(place, kind=LedgerError, **options):
    with pytest.raises(kind) as caught:
        Ledger(place, **options).releases()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_budget_is_set_once(place):
    Ledger(place, budget="2.50")
    assert Ledger(place).budget == Decimal("2.5")
    assert "has the budget 2.5, and not 3;" in refusal(place, budget=3)
    with pytest.raises(ValueError, match="budget must be a number >= 0, got -1"):
        Ledger(place, budget=-1)


def test_damage_is_found(place):
    ledger = Ledger(place)
    charge(ledger, *[release()] * 3)
    whole = place.read_bytes()
    smaller = "UPDATE entry SET content = replace(content, '\"1\"', '\"0\"') WHERE number = "
    for change, told in (
        (f"{smaller} 2", "entry 2 is missing, or was changed"),
        (f"{smaller} 3", "entry 3 is missing, or was changed"),
        ("DELETE FROM entry WHERE number = 1", "entry 1 is missing, or was changed"),
        ("PRAGMA user_version = 3", "has format 3, and this policysim knows 2: update it"),
    ):
        with sqlite3.connect(place) as sql:
            sql.execute(change)
        sql.close()
        assert told in refusal(place)
        place.write_bytes(whole)
    for rest, told in (
        (whole[: len(whole) // 2], "is damaged"),
        (b"age,sex\n" * 100, "is not a ledger"),
        (b"", "is damaged"),
    ):
        place.write_bytes(rest)
        assert told in refusal(place)
    place.unlink()
    assert "is damaged" in refusal(place)
    place.write_bytes(whole)
    assert Ledger(place).head == 3


def test_without_its_key_a_ledger_is_refused_and_so_is_another_key(tmp_path):
    for name in ("a", "b"):
        Ledger(tmp_path / name)
    (tmp_path / "b.key").replace(tmp_path / "a.key")
    assert "is not the key of a" in refusal(tmp_path / "a")
    assert "b.key: No such file or directory: put back the key of b" in refusal(tmp_path / "b")


def test_a_ledger_that_may_not_be_written_is_refused(place):
    Ledger(place)
    place.chmod(0o400)
    assert "read-only" in refusal(place)
    assert "is not a file" in refusal(place.parent)


def test_a_full_disk_is_told_and_nothing_is_charged(place):
    ledger = Ledger(place)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (place.stat().st_size, limits[1]))
        with pytest.raises(LedgerError) as caught:
            charge(ledger, release(), answer="x" * 100_000, request="r")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert "\n" not in str(caught.value)
    assert (Ledger(place).head, Ledger(place).spent()) == (0, 0)


# The command.


def test_a_new_ledger_is_one_document_if_asked_and_one_entry_is_one(place, capsys):
    code, out, _ = command(capsys, "new", place, "--budget", "3", "--json")
    assert (code, json.loads(out)) == (0, {"budget": "3", "entries": []})
    charge(Ledger(place), release(each=True))
    out = command(capsys, "show", place)[1]
    assert "ledger.sqlite: 1 entry; " in out
    assert "costs each of its patients ε" in out


def command(capsys, *arguments):
    code = main(["ledger", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_an_auditor_sees_the_entries_and_nothing_of_patients(place, capsys):
    assert command(capsys, "new", place, "--budget", "3")[0] == 0
    ledger = Ledger(place)
    treat(ledger, "Ann", "monday")
    charge(ledger, release("0.25", publishes=("age",), details={"study": "ab12"}))
    code, out, _ = command(capsys, "show", place)
    assert code == 0
    assert "2 entries; budget 3 a person; charged to everybody: ε = 0.25" in out
    assert "study: ab12" in out
    code, out, _ = command(capsys, "show", place, "--json")
    document = json.loads(out)
    assert [entry["cost"] for entry in document["entries"]] == ["1", "0.25"]
    assert [entry["number"] for entry in document["entries"]] == [1, 2]
    assert "Ann" not in out


OLD = {
    "what": "privatize",
    "data": "data.csv",
    "sha256": ["0" * 64],
    "columns": ["sex"],
    "unchanged": ["person"],
    "epsilon": 2.5,
    "adjacency": "replace-one",
    "released": "private.csv",
    "question": {},
    "date": "2026-11-23T00:00:00+00:00",
}


def test_an_older_ledger_is_taken_over_whatever_the_budget(tmp_path, place, capsys):
    old = tmp_path / "policysim-releases.json"
    old.write_text(json.dumps({"private": "P", "format": 2, "releases": [OLD, OLD | {"what": "select"}]}))
    command(capsys, "new", place, "--budget", "3")
    assert command(capsys, "import", old, "--ledger", place)[:2] == (
        0,
        "ledger.sqlite: 2 entries of policysim-releases.json; spent by everybody: ε = 5\n",
    )
    code, _, err = command(capsys, "import", old, "--ledger", place)
    assert (code, "has its entries already" in err) == (3, True)
    with pytest.raises(BudgetError):
        charge(Ledger(place), release())
    presence = release(hides=("sex",), adjacency=ADD_OR_REMOVE)
    assert "which rows there are" in Ledger(place).conflict(presence)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (json.dumps({"format": 3, "releases": []}), "has format 3, and only 2"),
        (json.dumps({"format": 2, "releases": [OLD | {"epsilon": "many"}]}), "epsilon must be a number >= 0"),
        ("[]", "is not a ledger of policysim 0.1"),
    ],
)
def test_what_is_no_older_ledger_is_refused_and_nothing_is_charged(tmp_path, place, capsys, content, told):
    old = tmp_path / "old.json"
    old.write_text(content)
    code, out, err = command(capsys, "import", old, "--ledger", place)
    assert (code, out) == (3, "")
    assert told in err
    assert not place.exists()


def test_a_mistyped_name_is_not_a_new_ledger(place):
    with pytest.raises(LedgerError, match="there is no such ledger: check its name"):
        open_ledger(place)
    assert not place.exists()
    Ledger(place)
    assert open_ledger(place).head == 0


def test_options_that_do_not_fit_are_refused(place, capsys):
    assert command(capsys, "show", place)[0] == 3
    assert command(capsys, "show", place, "--budget", "3")[0] == 2
    assert command(capsys, "import", place)[0] == 3
    assert command(capsys, "new", place, "--ledger", place)[0] == 2
    assert command(capsys, "new", place, "--budget", "-1")[0] == 2
    assert not place.exists()
    assert command(capsys, "new", place)[0] == 0
    assert command(capsys, "new", place)[0] == 2

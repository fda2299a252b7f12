"""What is counted is delivered, once, whatever ends the run; what comes out was counted, and replaces nothing."""

import hashlib
import json
import multiprocessing
import re
import signal
from collections import Counter

import pytest
from ended_releases import ends
from private_files import COLUMNS, DECLARED, ask, counted, write_parts, write_people

from policysim.cli.main import main
from policysim.release.ledger import Ledger
from policysim.release.privatize import read_private
from policysim.release.privatize_note import note_path

HIDDEN = [*COLUMNS, *DECLARED, "--epsilon", "1"]
COUNTED = ["--ledger", "ledger.sqlite"]
MANY = ",".join(map(str, range(1000)))
ASKED = {
    "values": ["privatize", "data.csv", *HIDDEN, "--out", "out/p.csv", *COUNTED],
    "folder": ["privatize", "parts", *HIDDEN, "--out", "out/p", *COUNTED],
    "table": ["privatize", "data.csv", "--as", "table", *HIDDEN, "--out", "out/p.csv", *COUNTED],
    # All of a thousand candidates are as likely: two draws differ.
    "select": ["select", "data.csv", "--column", "sex", "--candidates", MANY, "--epsilon", "0", *COUNTED],
}
COSTS = {"values": 1, "folder": 1, "table": 1, "select": 0}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with people in a file and in a folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    write_people(folder / "data.csv", 20)
    write_parts(folder / "parts", 2, 20)
    monkeypatch.chdir(folder)
    Ledger("ledger.sqlite")
    return folder


def released(folder):
    """What came out: names and bytes of all that is below "out", but for what is out of sight."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted((folder / "out").rglob("*"))}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file() and "/." not in name}


def drawn(folder, said):
    """The draw that came out: the data by their names, or what was printed."""
    data = {name.removeprefix("out/"): content for name, content in released(folder).items() if "json" not in name}
    printed = [line.rpartition(" ")[2] for line in said.read_text().splitlines() if line.startswith("Release")]
    return data or printed


def kept(folder, held):
    """The draw that was counted and is kept for its request."""
    (place,) = folder.glob("ledger.sqlite.pending/*")
    data = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*.csv")}
    return data or [held[0]["choices"][0]["candidate"]]


@pytest.mark.parametrize("what", ["values", "select"])
def test_a_run_that_is_killed_anywhere_is_counted_once_and_gives_what_was_counted(here, tmp_path, what):
    seen = Counter()
    for step, (_, then) in ends(here, tmp_path, signal.SIGKILL, ASKED[what]).items():
        killed, after = tmp_path / f"killed {step}", tmp_path / str(step)
        entries, spent, held = counted(killed)
        out, again = drawn(killed, tmp_path / f"said {step}"), drawn(after, tmp_path / f"said then {step}")
        stage = "uncounted" if not entries else "kept" if held else "delivered"
        seen[stage] += 1
        assert not list(after.glob("*.pending")) and not list(after.rglob(".*"))
        assert (entries <= 1, spent) == (True, entries * COSTS[what])
        assert entries or (not released(killed) and not out)
        if stage == "delivered" and what != "select":
            # It is there, and stays: another one would be another release.
            assert (then, out) == (4, again)
            assert counted(after) == (1, COSTS[what], [])
            continue
        assert then == 0
        assert counted(after) == (1 if stage != "delivered" else 2, COSTS[what], [])
        if held:
            assert again == kept(killed, held)
            assert out in ({}, [], again)
    assert set(seen) == {"uncounted", "kept", "delivered"}


def test_another_request_gets_another_draw_and_is_charged(here, capsys, monkeypatch):
    """The draw of a request that was stopped is nobody else's; the same one with other words on the screen gets it."""
    select = ASKED["select"]
    with monkeypatch.context() as patch:
        patch.setattr("policysim.cli.select_command._show", stop)
        assert ask(capsys, *select)[0] == 130
    (held,) = counted(here)[2]
    code, printed, err = ask(capsys, *select[:-4], "--epsilon", "0.5", *COUNTED)
    assert code == 0
    code, printed, err = ask(capsys, *select, "--json", "--analysis")
    assert (code, "entry 1 was counted before, and was not delivered" in err) == (0, True)
    assert json.loads(printed)["release"] == held
    assert counted(here)[:2] == (2, 0.5)


def stop(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("moved", [0, 1])
def test_a_folder_that_could_not_come_out_does_so_with_the_next_run(here, capsys, monkeypatch, moved):
    def stop_at(_, out, note):
        if moved:
            note_path(out).write_text(note)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("policysim.release.delivery._appear", stop_at)
        assert ask(capsys, *ASKED["folder"])[0] == 130
    assert len(released(here)) == moved
    _, _, held = counted(here)
    pending = kept(here, held)
    assert ask(capsys, *ASKED["folder"])[0] == 0
    assert {name: content for name, content in released(here).items() if "json" not in name} == {
        f"out/{name}": content for name, content in pending.items()
    }
    assert counted(here) == (1, 1, [])


def test_other_bytes_are_another_request(here, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("policysim.release.delivery._appear", stop)
        code, _, err = ask(capsys, *ASKED["values"])
    assert (code, "entry 1 is counted and kept: the same command delivers it" in err) == (130, True)
    write_people(here / "data.csv", 21)
    assert ask(capsys, *ASKED["values"])[0] == 0
    assert read_private(here / "out" / "p.csv")[0]["rows"] == 21
    assert counted(here)[:2] == (2, 2)
    # What was held for the first bytes is not written over it.
    write_people(here / "data.csv", 20)
    code, _, err = ask(capsys, *ASKED["values"])
    assert (code, "is there already, and a release replaces nothing" in err) == (4, True)
    (here / "out" / "p.csv").unlink()
    (here / "out" / "p.csv.privacy.json").unlink()
    assert ask(capsys, *ASKED["values"])[0] == 0
    assert counted(here) == (2, 2, [])


@pytest.mark.parametrize("way", [COUNTED, ["--uncounted"]])
def test_a_release_replaces_nothing(here, capsys, way):
    asked = [*ASKED["values"][:-2], *way]
    assert ask(capsys, *asked)[0] == 0
    before = released(here)
    write_people(here / "data.csv", 21)
    for name in ("data.csv", "parts"):
        asked[1] = name
        asked[asked.index("--out") + 1] = "out/p.csv" if name == "data.csv" else "out"
        code, printed, err = ask(capsys, *asked)
        assert (code, printed) == (4, "")
        assert len(err.splitlines()) == 1
    assert released(here) == before
    (here / "out" / "mine.csv").write_text("no release, and not replaced either")
    asked[1], asked[asked.index("--out") + 1] = "data.csv", "out/mine.csv"
    assert ask(capsys, *asked)[0] == 4


def test_a_simulation_may_be_replaced_and_is_never_counted(here, capsys):
    for name in ("data.csv", "parts"):
        out = "s.simulated.csv" if name == "data.csv" else "s.simulated"
        for seed in (1, 2, 1):
            assert ask(capsys, "privatize", name, *HIDDEN, "--out", out, "--simulate", seed)[0] == 0
    assert counted(here) == (0, 0, [])


def take_part(barrier, codes, arguments):
    """One of several processes that ask the same at once."""
    barrier.wait(60)
    codes.put(main(arguments))


@pytest.mark.parametrize("what", ["values", "select"])
def test_of_eight_that_ask_the_same_at_once_each_draw_is_charged(here, what):
    """Some may deliver what another one drew, or must give way; who draws is charged, and of a file one comes out."""
    (here / "out").mkdir()
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(8), context.Queue()
    asked = [word if word != "0" else "0.5" for word in ASKED[what]]
    processes = [context.Process(target=take_part, args=(barrier, queue, asked)) for _ in range(8)]
    for process in processes:
        process.start()
    codes = Counter(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    entries, spent, held = counted(here)
    assert (held, {*codes} - {0, 4}) == ([], set())
    if what == "values":
        assert entries == spent == 1 <= codes[0]
        assert len(released(here)) == 2
    else:
        assert spent == entries * 0.5 and codes[0] <= entries * 8 and codes[0] >= 1
    assert not list(here.glob("*.pending"))


# What is charged.


def test_one_ledger_counts_values_tables_and_choices_of_whatever_file(here, capsys):
    for path in here.glob("ledger*"):
        path.unlink()
    assert ask(capsys, "ledger", "new", "ledger.sqlite", "--budget", "2.5")[0] == 0
    assert ask(capsys, *ASKED["table"])[0] == 0
    _, printed, err = ask(capsys, *ASKED["folder"], "--json")
    assert json.loads(printed)["note"]["ledger"] == {"entry": 2, "spent": "2", "budget": "2.5"}
    assert err.endswith("ledger.sqlite: entry 2; ε = 2 is spent; budget 2.5 a person\n")
    code, printed, err = ask(capsys, "select", "data.csv", "--column", "sex", "--epsilon", "0.6", *COUNTED)
    assert (code, printed) == (4, "")
    assert "costs ε = 0.6; 2 of the budget 2.5 is spent" in err
    assert ask(capsys, "select", "data.csv", "--column", "sex", "--epsilon", "0.5", *COUNTED)[0] == 0
    assert counted(here) == (3, 2.5, [])


@pytest.mark.usefixtures("here")
def test_what_a_copy_publishes_is_hidden_by_no_other_release(capsys):
    """Nor is presence: the copy has a row for each person."""
    sex = ("--column", "sex", "--levels", "sex=0,1", "--epsilon", 1)
    assert ask(capsys, "privatize", "data.csv", *sex, "--out", "a.csv", *COUNTED)[0] == 0
    code, printed, _ = ask(capsys, "select", "data.csv", "--column", "age_band", "--epsilon", 1, "--json", *COUNTED)
    assert (code, json.loads(printed)["release"]["ledger"]["spent"]) == (0, "∞")
    assert ask(capsys, "ledger", "new", "some.sqlite", "--budget", "9")[0] == 0
    asked = ["select", "data.csv", "--column", "sex", "--epsilon", 1, "--ledger", "some.sqlite"]
    assert ask(capsys, "privatize", "data.csv", *sex, "--out", "b.csv", "--ledger", "some.sqlite")[0] == 0
    code, _, err = ask(capsys, *asked, "--adjacency", "add-or-remove-one")
    assert (code, "which rows there are, and how many" in err) == (4, True)
    assert ask(capsys, *asked)[0] == 0


@pytest.mark.usefixtures("here")
def test_groups_that_are_public_are_published_by_a_choice(capsys):
    asked = ["select", "data.csv", "--column", "sex", "--by", "age_band", "--epsilon", 1]
    for adjacency, hides, publishes in (
        ("replace-one", ["sex"], ["age_band"]),
        ("add-or-remove-one", ["sex", "age_band"], []),
    ):
        path = f"{adjacency}.sqlite"
        Ledger(path)
        assert ask(capsys, *asked, "--adjacency", adjacency, "--ledger", path)[0] == 0
        (entry,) = Ledger(path).releases().to_dict(orient="records")
        assert (entry["hides"], entry["publishes"]) == (hides, publishes)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("sensitivity", "cost"), [("0.25", "4"), ("0.3", "3.33333333334"), ("4", "1.0")])
def test_a_choice_whose_claim_does_not_hold_costs_what_it_loses_rounded_up(capsys, sensitivity, cost):
    code, _, _ = ask(
        capsys, "select", "data.csv", "--column", "sex", "--epsilon", "1", "--sensitivity", sensitivity, *COUNTED
    )
    assert code == (0 if float(sensitivity) >= 1 else 4)
    assert Ledger("ledger.sqlite").releases()["cost"].tolist() == [cost]
    assert float(cost) >= 1 / float(sensitivity)


def test_nothing_that_is_published_holds_a_digest_of_the_rows_or_an_id(here, capsys):
    """A digest of a file with few possible contents confirms a guess of them."""
    printed = "".join(ask(capsys, *ASKED["values"], "--id", "person", "--json")[1:])
    digest = hashlib.sha256((here / "data.csv").read_bytes())
    ledger = Ledger("ledger.sqlite")
    published = b"".join(content for name, content in released(here).items() if name.endswith(".json"))
    for known in (digest, hashlib.blake2b(b"0001", digest_size=16)):
        assert known.hexdigest() not in printed and known.hexdigest().encode() not in published
    assert ledger.digest("patient", "0001").hex() not in printed
    stored = (here / "ledger.sqlite").read_bytes()
    assert ledger.digest("patient", "0001") in stored
    assert not re.search(rb"(?<![0-9a-f])0001(?![0-9a-f])", stored)  # digests in hexadecimal may hold it by chance
    assert digest.digest() not in stored and digest.hexdigest().encode() not in stored
    assert {path.stat().st_mode & 0o77 for path in here.glob("ledger*")} == {0}


def test_no_way_to_count_is_refused_in_one_line_that_says_what_to_type(here, capsys):
    for asked in ASKED.values():
        code, printed, err = ask(capsys, *asked[:-2])
        assert (code, printed, len(err.splitlines())) == (2, "", 1)
        assert "policysim ledger new ledger.sqlite --budget 3 once, and add --ledger ledger.sqlite" in err
        code, printed, err = ask(capsys, *asked[:-1], "typo.sqlite")
        assert (code, printed, len(err.splitlines())) == (3, "", 1)
        assert "typo.sqlite: there is no such ledger: check its name" in err
    assert {path.name for path in here.iterdir()} == {"data.csv", "parts", "ledger.sqlite", "ledger.sqlite.key"}

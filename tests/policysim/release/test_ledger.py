"""The ledger and its transaction: nothing is out that is not counted, no entry is lost, whatever ends a run."""

import contextlib
import errno
import json
import math
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from ended_releases import ends
from hypothesis import given
from hypothesis import strategies as st
from private_files import COLUMNS, DECLARED, JUNK, counted, run, write_people
from release_rounds import play, wrong

from policysim.cli.main import main
from policysim.files.bad_rows import DataError
from policysim.question import OutputError
from policysim.release import ledger as module
from policysim.release.ledger import (
    REPLACE,
    Release,
    RepeatedReleaseError,
    ledger_path,
    read_ledger,
    release_once,
    total,
)
from policysim.release.privatize import read_private

OPTIONS = (*COLUMNS, *DECLARED, "--epsilon", 1)
ENTRY = {
    "what": "privatize",
    "data": "data.csv",
    "sha256": ["0" * 64],
    "columns": ["sex"],
    "unchanged": ["person"],
    "epsilon": 1.0,
    "adjacency": "replace-one",
    "released": "private.csv",
    "question": {},
    "date": "2026-11-23T00:00:00+00:00",
}


@pytest.fixture
def data(tmp_path):
    (tmp_path / "people").mkdir()
    return write_people(tmp_path / "people" / "data.csv", 20)


@pytest.fixture
def out(tmp_path):
    (tmp_path / "published").mkdir()
    return tmp_path / "published" / "private.csv"


def listed(data):
    return [entry.released for entry in read_ledger(ledger_path(data))]


def names(folder):
    return {path.name for path in folder.iterdir()}


# What a ledger holds.


def test_a_ledger_holds_what_any_release_needs_and_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "ledger.json"
    table = Release(
        "table", "a.csv", ("ab" * 32,), ("sex", "age"), (), 0.5, "add-or-remove-one", "t.csv", {"of": "sex"}
    )
    choice = Release("select", "a.csv", ("cd" * 32, "ef" * 32), ("sex",), (), 0, "replace-one", "1")
    assert release_once(path, table, again=False) is None
    assert release_once(path, choice, again=False) is None
    assert read_ledger(path) == [table, choice]
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == {"ledger.json"}


def test_the_ledger_is_for_its_owner_only_and_a_link_to_it_stays_one(capsys, data, out, tmp_path):
    ledger = tmp_path / "ledger.json"
    ledger_path(data).symlink_to(ledger)
    old = os.umask(0)
    try:
        assert run(capsys, data, *OPTIONS, "--out", out)[0] == 0
    finally:
        os.umask(old)
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert ledger_path(data).is_symlink()
    assert run(capsys, data, *OPTIONS, "--out", out.with_name("b.csv"), "--ledger", ledger)[0] == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("\udcff", "not valid JSON"),
        ('{"format": 1, "releases": []}', "format must be 2, got 1"),
        ('{"format": 2, "releases": {}}', "releases must be a list, got a table"),
        ("[]", "it must be an object, got []"),
    ],
)
def test_what_is_no_ledger_is_refused_in_one_line(capsys, data, out, text, reason):
    ledger_path(data).write_text(text, errors="surrogateescape")
    code, printed, err = run(capsys, data, *OPTIONS, "--out", out)
    assert (code, printed) == (3, "")
    assert err == (
        f"policysim: {ledger_path(data)}: not a ledger of releases: {reason}; earlier releases cannot be counted: "
        "put it back as it was\n"
    )
    assert names(out.parent) == set()
    assert names(data.parent) == {data.name, ledger_path(data).name}
    # A simulation does not read it.
    assert run(capsys, data, *OPTIONS, "--out", out, "--seed", 1)[0] == 0


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("epsilon", -1, "epsilon of release 2 must be a finite number >= 0, got -1"),
        ("epsilon", math.inf, "epsilon of release 2 must be a finite number >= 0, got inf"),
        ("sha256", [], "sha256 of release 2 must be SHA-256 digests, got []"),
        ("sha256", "0" * 64, f"sha256 of release 2 must be SHA-256 digests, got '{'0' * 64}'"),
        ("sha256", ["A" * 64], f"sha256 of release 2 must be SHA-256 digests, got ['{'A' * 64}']"),
        ("columns", "sex", "columns of release 2 must be a list of names, got 'sex'"),
        ("unchanged", [1], "unchanged of release 2 must be a list of names, got [1]"),
        ("adjacency", "none", "adjacency of release 2 must be one of replace-one, add-or-remove-one, got 'none'"),
        ("question", {"by": 1}, "question of release 2 must be an object of texts, got a table"),
        ("what", None, "what of release 2 must be text, got None"),
        ("extra", 1, "release 2 must be an object of what, data, sha256, columns, unchanged, epsilon, adjacency, "),
    ],
)
def test_an_edited_entry_is_refused_with_what_is_wrong(data, key, value, reason):
    ledger_path(data).write_text(json.dumps({"format": 2, "releases": [ENTRY, ENTRY | {key: value}]}))
    with pytest.raises(DataError) as refused:
        read_ledger(ledger_path(data))
    assert str(refused.value).startswith(f"{ledger_path(data)}: not a ledger of releases: {reason}")
    assert len(str(refused.value).splitlines()) == 1


@given(key=st.sampled_from([*ENTRY, None]), value=JUNK)
def test_junk_in_a_ledger_never_raises_anything_else(tmp_path_factory, key, value):
    path = tmp_path_factory.getbasetemp() / "junk.json"
    path.write_text(json.dumps({"format": 2, "releases": [value if key is None else ENTRY | {key: value}]}))
    try:
        read_ledger(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}: not a ledger of releases: ")
        assert len(str(error).splitlines()) == 1


@given(st.lists(st.floats(1e-6, 50), min_size=1, max_size=20))
def test_sums_of_epsilon_are_never_rounded_down(epsilons):
    exact = sum(map(Fraction, epsilons))
    found = total(epsilons)
    assert max(Fraction(found), Fraction(repr(found))) >= exact
    assert found == pytest.approx(math.fsum(epsilons), rel=1e-15)
    assert total([*epsilons, math.inf]) == total([*epsilons, 1e308, 1e308]) == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5])
def test_a_single_epsilon_is_its_own_sum(epsilon):
    """As floats, the first is a little more than its decimal, the second a little less, and the third is exact."""
    assert total([epsilon]) == epsilon


def test_what_another_run_put_in_the_place_meanwhile_stays(tmp_path):
    """Of names that are taken in turn, one of another run stands in the way of the second."""
    for name in ("one", "two"):
        (tmp_path / f"new {name}").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "others.csv").write_text("theirs")
    with pytest.raises(OutputError, match=r"cannot write .*two: Directory not empty"):
        module.appear([(tmp_path / f"new {name}", tmp_path / name) for name in ("one", "two")])
    assert names(tmp_path) == {"new one", "new two", "two"}
    assert (tmp_path / "two" / "others.csv").read_text() == "theirs"


def of(*digits, columns=("sex",), unchanged=("person",)):
    """A release of files with these digests."""
    sha256 = tuple(digit * 64 for digit in digits)
    return Release("privatize", "data", sha256, columns, unchanged, 1.0, REPLACE, "out")


@pytest.mark.parametrize(
    ("first", "second", "repeated"), [("12", "2", True), ("2", "12", True), ("12", "23", True), ("12", "3", False)]
)
def test_a_folder_is_released_again_where_any_of_its_files_was_released(tmp_path, first, second, repeated):
    path = tmp_path / "ledger.json"
    release_once(path, of(*first), again=False)
    with pytest.raises(RepeatedReleaseError) if repeated else contextlib.nullcontext():
        release_once(path, of(*second), again=False)


SHOWS_AGE, HIDES_AGE = of("0", unchanged=("age",)), of("0", columns=("age",), unchanged=("sex",))
BOTH, OTHER = of("0", columns=("age", "sex"), unchanged=()), of("0", columns=("smoker",), unchanged=())


@pytest.mark.parametrize(
    "releases",
    [(SHOWS_AGE, BOTH), (BOTH, SHOWS_AGE, BOTH), (SHOWS_AGE, BOTH, BOTH), (SHOWS_AGE, HIDES_AGE, OTHER, OTHER)],
)
def test_a_column_that_any_release_showed_has_no_privacy_left(tmp_path, releases):
    """Not the last one alone; nor need the new release hide it: two earlier ones gave it away between them."""
    path = tmp_path / "ledger.json"
    *_, earlier = [release_once(path, release, again=True) for release in releases]
    assert earlier.epsilon_in_all == math.inf


def test_a_clock_that_goes_back_loses_no_release(tmp_path):
    path = tmp_path / "ledger.json"
    first, second = (Release(**ENTRY | {"sha256": ("0" * 64,), "date": date}) for date in ("2999", "1970"))
    for release in (first, second, second):
        release_once(path, release, again=True)
    assert [release.date for release in read_ledger(path)] == ["2999", "1970", "1970"]
    with pytest.raises(RepeatedReleaseError, match=r"\(3 in "):
        release_once(path, second, again=False)


# Where it cannot be written.


def test_a_read_only_ledger_or_folder_stops_the_release_in_one_line(capsys, data, out, monkeypatch):
    ledger_path(data).write_text(json.dumps({"format": 2, "releases": []}))
    ledger_path(data).chmod(0o555)
    said = f"policysim: cannot lock {ledger_path(data)}, which lists the releases: {{}}; --ledger names another place\n"
    code, _, err = run(capsys, data, *OPTIONS, "--out", out)
    assert (code, err) == (2, said.format("it is read-only"))
    ledger_path(data).unlink()
    opened = os.open

    def refuse(path, *arguments, **options):
        if Path(path).parent == data.parent:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    code, _, err = run(capsys, data, *OPTIONS, "--out", out)
    assert (code, err) == (2, said.format("Read-only file system"))
    assert names(out.parent) == set()
    assert names(data.parent) == {data.name}


@pytest.mark.parametrize("broken", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_what_cannot_take_its_name_leaves_what_was_there_but_is_counted(capsys, data, out, monkeypatch, broken):
    assert run(capsys, data, *OPTIONS, "--out", out)[0] == 0
    before = {path: path.read_bytes() for path in out.parent.iterdir()}
    replace = Path.replace

    def fail(path, target):
        if target == out:  # the last of four: the old ones have left, and the new note is there
            raise broken
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        code, _, err = run(capsys, data, *OPTIONS, "--out", out, "--again")
    assert code == (130 if broken is KeyboardInterrupt else 2)
    assert len(err.splitlines()) == 1
    assert {path: path.read_bytes() for path in out.parent.iterdir()} == before
    assert listed(data) == ["private.csv"] * 2


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        (
            "data.csv/ledger.json",
            2,
            "cannot lock {folder}/data.csv/ledger.json, which lists the releases: File exists;",
        ),
        ("", 3, "{folder}: cannot be read: Is a directory"),
        ("../published/private.csv", 2, "{folder}/../published/private.csv: is to be the private data or their note"),
        ("../published/private.csv.privacy.json", 2, "{folder}/../published/private.csv.privacy.json: is to be the pr"),
    ],
)
def test_a_ledger_that_cannot_be_there_is_one_line(capsys, data, name, code, reason):
    out = data.parent.with_name("published") / "private.csv"
    ledger = Path(f"{data.parent}/{name}") if name else data.parent
    got, printed, err = run(capsys, data, *OPTIONS, "--out", out, "--ledger", ledger)
    assert (got, printed) == (code, "")
    assert err.startswith(f"policysim: {reason.format(folder=data.parent)}")
    assert err.count("\n") == 1
    assert not out.parent.exists()
    assert names(data.parent) == {data.name}


def test_a_name_that_is_no_text_can_be_listed(capsys, data, out):
    strange = Path(os.fsdecode(os.fsencode(out.parent) + b"/\xff.csv"))
    assert run(capsys, data, *OPTIONS, "--out", strange)[0] == 0
    assert listed(data) == [strange.name]
    assert run(capsys, data, *OPTIONS, "--out", out)[0] == 4


def test_a_new_folder_for_the_ledger_is_made(capsys, data, out, tmp_path):
    ledger = tmp_path / "new" / "er" / "ledger.json"
    assert run(capsys, data, *OPTIONS, "--out", out, "--ledger", ledger)[0] == 0
    assert [entry.released for entry in read_ledger(ledger)] == [out.name]
    assert names(data.parent) == {data.name}
    data.write_text("age_band,sex\nold,7\n")
    assert run(capsys, data, *OPTIONS, "--out", out, "--ledger", tmp_path / "other" / "ledger.json", "--again")[0] == 3
    assert not (tmp_path / "other").exists()


# One at a time.


def test_of_eight_that_release_the_same_rows_at_once_one_does_and_is_counted_once(tmp_path):
    assert wrong(play(tmp_path, 12)) == []


@pytest.fixture
def held(data):
    """Another process that holds the lock of the ledger of the data, until it is ended."""
    code = (
        "import sys; from pathlib import Path; from policysim.release import ledger\n"
        "with ledger._locked(Path(sys.argv[1]), ()): print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(ledger_path(data))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_who_waits_for_a_lock_says_so_and_then_gives_up(capsys, data, out, held, monkeypatch):
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(module, "MOST_SECONDS", 0.1)
    code, printed, err = run(capsys, data, *OPTIONS, "--out", out)
    holds = f"policysim: another run holds the lock of {ledger_path(data)}"
    assert (code, printed, err) == (2, "", f"{holds}; waiting\n{holds}: let it end first\n")
    assert names(out.parent) == set()
    # The system opens the lock of a process that is killed, and the file that it left is nobody's.
    held.kill()
    held.wait()
    assert f".{ledger_path(data).name}.lock" in names(data.parent)
    assert run(capsys, data, *OPTIONS, "--out", out)[::2] == (0, counted(data))
    assert names(data.parent) == {data.name, ledger_path(data).name}


# Whatever ends a run.

TRUTH = ["old", "1"]
ENDED = ("--column", "age_band", "--column", "sex", *DECLARED, "--epsilon", 0.01)


def write_true(path):
    """20 people of the same true values; that all reports are true has probability .26^20."""
    path.write_text("person,age_band,sex,note\n" + f"7,{','.join(TRUTH)},x\n" * 20)


def template_of(folder, kind, *, earlier):
    """A folder with true values below `true`, and what an earlier release left; returns what a run is asked."""
    (folder / "true").mkdir(parents=True)
    names = ["true/a.csv", "true/b.csv"] if kind == "folder" else ["true/a.csv"]
    for name in names:
        write_true(folder / name)
    asked = ["privatize", "true" if kind == "folder" else "true/a.csv", *map(str, ENDED)]
    asked += ["--out", "out" if kind == "folder" else "out.csv", "--again"]
    if earlier:
        with contextlib.chdir(folder):
            assert main(asked) == 0
    return asked


def truths(path):
    """Whether all rows of a file are the true ones."""
    rows = [line.split(",")[1:3] for line in path.read_text().splitlines()[1:]]
    return bool(rows) and all(row == TRUTH for row in rows)


def state(folder):
    """What a run left: entries in the ledger, private files with their note, other names."""
    entries = [entry.released for entry in read_ledger(folder / "true" / module.NAME)]
    private, note = {}, {}
    for out in (folder / "out", folder / "out.csv"):
        if out.exists():
            files = [out] if out.is_file() else sorted(out.iterdir())
            private = {file.name: file.read_bytes() for file in files}
            # The note is there and of these files, or this fails; it counts the releases before.
            earlier = read_private(out)[0].earlier
            note = {"earlier": earlier.releases if earlier else 0}
    known = {"true", "a.csv", "b.csv", module.NAME, "out", "out.csv", "out.privacy.json", "out.csv.privacy.json"}
    others = [path for path in folder.rglob("*") if path.name not in known]
    hidden = [path for path in folder.rglob("*.csv") if path.is_file() and (folder / "true") not in path.parents]
    assert not any(truths(path) for path in hidden)
    return entries, private, note, others


@pytest.mark.parametrize(("kind", "earlier"), [("file", False), ("folder", True)])
def test_a_run_that_is_killed_at_any_step_leaves_nothing_uncounted_and_loses_nothing(tmp_path, kind, earlier):
    asked = template_of(tmp_path / "template", kind, earlier=earlier)
    before = state(tmp_path / "template")
    statuses = ends(tmp_path / "template", tmp_path, signal.SIGKILL, asked)
    assert {first for first, _ in statuses[:-1]} == {-signal.SIGKILL}
    assert statuses[-1] == [0, 0]
    seen = set()
    for step, (_, then) in enumerate(statuses, start=1):
        entries, private, note, others = state(tmp_path / str(step))
        counted = len(entries) - len(before[0])
        # Old files and their note, new ones and theirs, or none on the way from the ones to the others.
        if private and private != before[1]:
            assert (counted, note) == (1, {"earlier": len(before[0])})
        elif private:
            assert (counted in (0, 1), note) == (True, before[2])
        else:
            assert counted == 1 or (counted == 0 and not earlier)
        assert all(".out" in str(path) or path.name.startswith(f".{module.NAME}.") for path in others)
        seen.add((counted, bool(private) and private != before[1]))
        # The next run finds its way, and takes away what was left.
        after = state(tmp_path / f"then {step}")
        assert (then, len(after[0]), after[3]) == (0, len(entries) + 1, [])
        assert after[2] == {"earlier": len(entries)}
    assert seen == {(0, False), (1, False), (1, True)}


def test_a_run_that_is_ended_at_any_step_leaves_all_or_nothing(tmp_path):
    asked = template_of(tmp_path / "template", "file", earlier=True)
    before = state(tmp_path / "template")
    statuses = ends(tmp_path / "template", tmp_path, signal.SIGTERM, asked)
    ended = 0
    for step, (status, _) in enumerate(statuses, start=1):
        entries, private, note, others = state(tmp_path / str(step))
        if len(entries) == len(before[0]):
            assert (private, note) == before[1:3]
        else:
            assert private != before[1]
            assert note == {"earlier": 1}
        assert others == []
        # Before there is anything to remove, the signal ends the process as it ends any other.
        assert status in (0, 130, -signal.SIGTERM)
        ended += status == 130
    assert ended >= 5


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_private_choice_that_is_ended_at_any_step_is_counted_before_it_is_printed(tmp_path, number):
    template = tmp_path / "template"
    template.mkdir()
    write_people(template / "data.csv", 20)
    asked = ["select", "data.csv", "--column", "sex", "--candidates", "0,1", "--epsilon", "1"]
    seen = set()
    for step, (status, status_of_next) in enumerate(ends(template, tmp_path, number, asked), start=1):
        folder, after_next = tmp_path / str(step), tmp_path / f"then {step}"
        entries = read_ledger(folder / module.NAME)
        assert len(entries) == 1 or "Choice" not in (tmp_path / f"said {step}").read_text()
        assert (folder / "data.csv").read_bytes() == (template / "data.csv").read_bytes()
        seen.add((len(entries), status == 0))
        if after_next.exists():
            # What was counted is not released again; whatever was left is removed.
            assert status_of_next == (4 if entries else 0)
            assert sorted(path.name for path in after_next.iterdir()) == ["data.csv", module.NAME]
            assert len(read_ledger(after_next / module.NAME)) == 1
    assert {(0, False), (1, True)} <= seen or number == signal.SIGTERM  # which waits until the choice is counted


def test_a_loss_that_is_not_finite_never_reaches_a_ledger(tmp_path):
    ledger = tmp_path / "ledger.json"
    release = Release("select", "d.csv", ("0" * 64,), ("d",), (), math.inf, REPLACE, "a")
    with pytest.raises(DataError, match="its privacy loss must be finite to be counted, got inf"):
        release_once(ledger, release, again=False)
    assert not ledger.exists()


def test_a_column_is_the_same_whatever_spaces_its_header_has(tmp_path):
    ledger = tmp_path / "ledger.json"
    release_once(ledger, Release("select", "d.csv", ("0" * 64,), ("smoker",), (), 1.0, REPLACE, "a"), again=False)
    other = Release("privatize", "d.csv", ("0" * 64,), (" sex",), (" smoker",), 1.0, REPLACE, "out.csv")
    earlier = release_once(ledger, other, again=False)
    assert earlier is not None and earlier.epsilon_in_all == math.inf

"""A full disk, a quota, a folder that is read-only, links in the way: refused or done, and said in one line."""

import errno
import os
import resource
from contextlib import contextmanager

import pytest
from ended_releases import ends
from private_files import COLUMNS, DECLARED, write_people
from small_studies import write_small_study

from policysim.cli.main import main
from policysim.release.ledger import Ledger

LEDGER = "data/ledger.sqlite"
HIDDEN = (*COLUMNS, *DECLARED, "--epsilon", "1", "--ledger", LEDGER)
ASKED = {
    "compare": ["compare", "small.toml", "--out", "out"],
    "privatize": ["privatize", "data/data.csv", *HIDDEN, "--out", "out/out.csv"],
    "simulate": ["simulate", "small.toml", "--patients", "20", "--log", "out/log.csv"],
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with a study and a file of people."""
    folder = tmp_path / "here"
    (folder / "data").mkdir(parents=True)
    write_small_study(folder)
    write_people(folder / "data" / "data.csv", 20)
    monkeypatch.chdir(folder)
    Ledger(LEDGER)
    return folder


def files(folder):
    """All that is below a folder, but for the ledger and what it keeps."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(LEDGER)}


def test_whatever_step_the_system_refuses_all_is_as_before_or_done_and_one_line_says_so(here, tmp_path):
    before, error = files(here), errno.EDQUOT
    statuses = ends(here, tmp_path, -error, ASKED["privatize"])
    after = files(tmp_path / "whole")
    refused = 0
    for step, (status, _) in statuses.items():
        said, found = (tmp_path / f"said {step}").read_text(), files(tmp_path / str(step))
        # What cannot even be removed stays, and the next run removes it.
        left = {name for name in found if name.startswith(".") or "/." in name}
        whole = {name: content for name, content in found.items() if name not in left}
        assert "Traceback" not in said
        if status == 0:
            assert whole.keys() == after.keys()
            continue
        refused += 1
        assert status == 2
        (line,) = [line for line in said.splitlines() if os.strerror(error) in line]
        assert line.startswith("policysim: cannot ")
        # What could not come out, or not surely, is kept: the same command goes on.
        entries = len(Ledger(tmp_path / str(step) / LEDGER).releases())
        kept = "entry 1 is counted and kept: the same command delivers it" in said
        assert kept == (entries == 1)
        assert {name: content for name, content in whole.items() if not (kept and name.startswith("out/"))} == before
    assert refused > 3


@contextmanager
def short_files(size):
    """No file can become longer than so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("command", "ending"),
    [("privatize", "csv"), ("privatize", "parquet"), ("simulate", "csv"), ("simulate", "parquet"), ("init", "csv")],
)
def test_a_disk_that_is_full_half_way_is_told_in_one_line_and_nothing_stays(here, capsys, command, ending):
    write_people(here / "data" / f"data.{ending}", 2000)
    asked = {
        "privatize": ["privatize", f"data/data.{ending}", *HIDDEN, "--out", f"out/out.{ending}"],
        "simulate": ["simulate", "small.toml", "--patients", "5000", "--log", f"out/log.{ending}"],
        "init": [
            "init",
            f"data/data.{ending}",
            "--treatment",
            "age_band",
            "--outcome",
            "sex",
            "--out",
            "new.toml",
            *(
                "--higher-is-better",
                "--id",
                "none",
                "--assigned",
                "randomised",
                "--features",
                "note",
            ),
        ],
    }[command]
    before = files(here)
    with short_files(400):
        assert main(asked) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("policysim: cannot write ")
    assert "File too large" in said.err
    assert files(here) == before
    assert not (here / "out").exists()


@pytest.mark.parametrize("command", ["compare", "privatize", "simulate"])
def test_a_folder_that_is_read_only_is_told_before_anything_is_computed(here, capsys, monkeypatch, command):
    (here / "out").mkdir()
    opened = os.open

    def refuse(path, flags, *arguments, **options):
        if flags & os.O_RDWR and os.path.realpath(path).startswith(f"{here / 'out'}"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr("policysim.cli.compare_command.report_of", None)
    assert main(ASKED[command]) == 2
    assert capsys.readouterr().err == "policysim: cannot write to out: Read-only file system\n"
    assert list((here / "out").iterdir()) == []


# Links in the way.


@pytest.mark.parametrize("command", ["compare", "privatize", "simulate"])
def test_a_link_that_leads_nowhere_or_in_a_circle_is_told_in_one_line(here, capsys, command):
    (here / "out").symlink_to(here / "out")
    assert main(ASKED[command]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert said.err.startswith("policysim: cannot write")
    (here / "out").unlink()
    (here / "out").symlink_to(here / "gone" / "nowhere")
    assert main(ASKED[command]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (here / "gone").exists()


def test_a_release_never_goes_through_a_link_to_the_true_values_or_to_another_file(here, capsys):
    (here / "out").mkdir()
    (here / "out" / "out.csv").symlink_to(here / "data" / "data.csv")
    true = (here / "data" / "data.csv").read_bytes()
    assert main(ASKED["privatize"]) == 2
    assert capsys.readouterr().err == ("policysim: out/out.csv: holds the true values, which would be lost\n")
    (here / "mine.csv").write_text("mine")
    (here / "out" / "out.csv").unlink()
    for target in ("mine.csv", "nowhere.csv"):
        (here / "out" / "out.csv").symlink_to(here / target)
        assert main(ASKED["privatize"]) == 4
        (here / "out" / "out.csv").unlink()
    assert (here / "mine.csv").read_text() == "mine"
    assert (here / "data" / "data.csv").read_bytes() == true
    assert not (here / "nowhere.csv").exists()

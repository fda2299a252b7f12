"""Files appear whole; a report that a killed run left says that it is unfinished, and the next run completes it."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_studies import write_small_study

from envs.toml_reader import InputFileError
from policysim.cli.main import main
from policysim.errors import OutputError
from policysim.files.whole_files import check_writable, is_unfinished, temporary_folder, write_files
from policysim.report.reproduce import read_manifest
from policysim.study.study_reader import study_of

OLD = {"comparison.csv": b"old", "figures/a.svg": b"old", "study.toml": b"same", "manifest.json": b"old"}
NEW = {"comparison.csv": b"new", "figures/a.svg": b"new", "study.toml": b"same", "manifest.json": b"new"}
# Kills one process after another just before its first file event, its second and so on; an audit hook sees whatever
# opens, makes, renames or removes a file or folder. Each writes the new files into a copy of the old folder.
KILL = """
import itertools, os, shutil, sys
from policysim.files.whole_files import write_files
folder = sys.argv[1]
files = %r
for step in itertools.count(1):
    copy = shutil.copytree(f"{folder}/old", f"{folder}/{step}")
    child = os.fork()
    if not child:
        events = itertools.count(1)
        def kill(event, arguments):
            if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and next(events) == step:
                os.kill(os.getpid(), 9)
        sys.addaudithook(kill)
        write_files(__import__("pathlib").Path(copy), files)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
"""


def files(folder):
    """All files below a folder by relative path, of temporary folders too."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("old", [{}, OLD], ids=["first report", "report again"])
def test_a_report_that_is_killed_at_any_file_event_is_old_or_unfinished_and_the_next_run_completes_it(tmp_path, old):
    (tmp_path / "old").mkdir()
    if old:
        write_files(tmp_path / "old", old)
    subprocess.run([sys.executable, "-c", KILL % NEW, str(tmp_path)], check=True)
    seen = set()
    for folder in (path for path in tmp_path.iterdir() if path.name.isdigit()):
        whole = {name: content for name, content in files(folder).items() if not name.startswith(".")}
        if (folder / "manifest.json").exists():
            assert whole in (old, NEW)
            seen.add("old" if whole == old else "new")
        elif whole:
            assert is_unfinished(folder / "manifest.json")
            with pytest.raises(InputFileError, match=r"manifest\.json: is missing: the report in this folder is unfin"):
                read_manifest(folder / "manifest.json")
            seen.add("unfinished")
        write_files(folder, NEW)
        assert files(folder) == NEW
        assert not list(folder.rglob(".*"))
        assert not is_unfinished(folder / "manifest.json")
    assert seen == ({"old"} if old else set()) | {"unfinished", "new"}


@pytest.fixture
def report(tmp_path, monkeypatch, blank_drawings):  # noqa: ARG001 - what a report says is not looked at
    """A report of a small study, as a killed run leaves it: other numbers stand there, and no manifest."""
    study = write_small_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "small.toml", "--epsilon", "1", "--out", "reports/small"]) == 0
    folder = tmp_path / "reports" / "small"
    study.write_text(study.read_text().replace("seed = 3", "seed = 4"))
    (folder / ".manifest.json.policysim-x").mkdir()
    (folder / ".manifest.json.policysim-x" / "comparison.csv").write_text("half")
    (folder / "manifest.json").unlink()
    return folder


def test_an_unfinished_report_is_refused_in_a_line_and_the_same_command_completes_it(report, capsys):
    missing = (
        "policysim: reports/small/manifest.json: is missing: the report in this folder is unfinished, or there is "
        "none; policysim compare with --out reports/small completes it\n"
    )
    capsys.readouterr()
    assert main(["reproduce", "reports/small/manifest.json"]) == 2
    assert capsys.readouterr().err == missing
    # Its study.toml is that of the killed run, and may be replaced.
    assert main(["compare", "small.toml", "--epsilon", "1", "--out", "reports/small"]) == 0
    assert "seed = 4" in (report / "study.toml").read_text()
    assert not list(report.rglob(".*"))
    assert main(["reproduce", "reports/small/manifest.json"]) == 0


def test_an_unfinished_log_is_not_taken_for_that_of_another_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small_study(tmp_path)
    before = [path.name for path in tmp_path.iterdir()]
    asked = ["simulate", "small.toml", "--patients", "20", "--log", "log.csv"]
    assert main(asked) == 0
    log, beside = Path("log.csv"), Path("log.csv.study.json")
    assert study_of(log).name == "small"
    Path(".log.csv.study.json.policysim-x").mkdir()
    beside.unlink()
    with pytest.raises(InputFileError, match=r"^log.csv: the run that wrote it was ended: simulate it again, or name"):
        study_of(log)
    assert main(asked) == 0
    assert study_of(log).name == "small"
    assert {path.name for path in tmp_path.iterdir()} == {*before, "log.csv", "log.csv.study.json"}


def test_new_files_follow_the_umask_and_only_the_owner_sees_them_before(tmp_path):
    old = os.umask(0o027)
    try:
        with temporary_folder(tmp_path / "a.txt") as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
        write_files(tmp_path, {"a.txt": b"A"})
    finally:
        os.umask(old)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_folder_of_a_run_that_goes_on_is_left_and_that_of_a_killed_one_removed(tmp_path):
    """As it was: whoever began the same file removed what another run was about to move to its place."""
    target = tmp_path / "a.txt"
    with temporary_folder(target) as first, temporary_folder(target) as second:
        (second / "b").write_text("whole")
        with temporary_folder(target):
            pass
        write_files(tmp_path, {"a.txt": b"A"})
        assert first.is_dir() and (second / "b").read_text() == "whole"
        # Moved away, it is the run's own still, and nobody's rest.
        second.replace(tmp_path / "kept")
        with temporary_folder(target):
            assert first.is_dir()
    killed = tmp_path / f"{first.name}-killed"
    killed.mkdir()
    with temporary_folder(target):
        assert not killed.exists()
    assert (files(tmp_path), (tmp_path / "kept").is_dir()) == ({"a.txt": b"A", "kept/b": b"whole"}, True)


def test_a_disk_that_is_full_changes_nothing_and_leaves_no_folder(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_files(tmp_path / "report", OLD)
    monkeypatch.setattr("policysim.files.whole_files.os.fsync", full)
    for folder in (tmp_path / "report", tmp_path / "deep" / "report"):
        with pytest.raises(OutputError, match=f"cannot write to {folder}: No space left on device"):
            write_files(folder, NEW)
    assert files(tmp_path) == {f"report/{name}": content for name, content in OLD.items()}
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_file_in_the_place_of_a_folder_keeps_all_files_as_they_were(tmp_path):
    write_files(tmp_path, {"a.txt": b"old A", "file": b""})
    with pytest.raises(OutputError, match="cannot write to"):
        write_files(tmp_path, {"a.txt": b"new A", "file/b.txt": b"B", "c.txt": b"C"})
    assert files(tmp_path) == {"a.txt": b"old A", "file": b""}
    for folder, reason in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "below", "Not a directory")):
        with pytest.raises(OutputError, match=f"cannot write to {folder}: {reason}"):
            check_writable(folder)


def test_a_file_that_has_its_content_is_not_written_again(tmp_path):
    write_files(tmp_path, {"a.txt": b"A", "b.txt": b"B"})
    (tmp_path / "mine.txt").write_text("mine")
    before = [(tmp_path / name).stat().st_ino for name in ("a.txt", "b.txt")]
    write_files(tmp_path, {"a.txt": b"A", "b.txt": b"C"})
    after = [(tmp_path / name).stat().st_ino for name in ("a.txt", "b.txt")]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False]
    assert (tmp_path / "mine.txt").read_text() == "mine"
    # Nor is anything else, not even for a moment.
    changed = tmp_path.stat().st_mtime_ns
    write_files(tmp_path, {"a.txt": b"A", "b.txt": b"C"})
    assert tmp_path.stat().st_mtime_ns == changed


def test_a_report_goes_through_a_link_to_a_folder_and_takes_the_place_of_a_link_to_a_file(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "real" / "comparison.csv").symlink_to(tmp_path / "mine.csv")
    write_files(tmp_path / "out", NEW)
    assert (tmp_path / "mine.csv").read_text() == "mine"
    assert not (tmp_path / "real" / "comparison.csv").is_symlink()
    assert files(tmp_path / "real") == NEW
    assert (tmp_path / "out").is_symlink()
    shutil.rmtree(tmp_path / "real")
    with pytest.raises(OutputError, match="cannot write to"):
        write_files(tmp_path / "out", NEW)

"""Files appear whole or not at all."""

import errno
import io
import os
import signal
import subprocess
import sys
import threading

import pytest

from policysim.files.whole_folders import INTERRUPTS, alone_in, check_writable, folder_beside, progress_bar, write_files
from policysim.question import OutputError


def test_files_are_written_and_others_stay(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    write_files(tmp_path, {"a.txt": b"A", "deep/b.txt": b"B"})
    assert (tmp_path / "a.txt").read_bytes() == b"A"
    assert (tmp_path / "deep" / "b.txt").read_bytes() == b"B"
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.txt", "b.txt", "deep", "mine.txt"]


def test_new_files_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_files(tmp_path, {"a.txt": b"A"})
    finally:
        os.umask(old)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_folders_that_were_made_for_files_that_could_not_be_written_are_removed(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("policysim.files.whole_folders.os.fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        write_files(tmp_path / "deep" / "report", {"figures/a.svg": b"A", "b.txt": b"B"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_keeps_all_files_and_folders_as_they_were(tmp_path):
    write_files(tmp_path, {"a.txt": b"old A", "file": b""})
    with pytest.raises(OutputError, match="cannot write to"):
        write_files(tmp_path, {"a.txt": b"new A", "figures/a.svg": b"A", "file/b.txt": b"B"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.txt": b"old A", "file": b""}


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot write to .*file: File exists"):
        check_writable(tmp_path / "file")
    with pytest.raises(OutputError, match=r"cannot write to .*: Not a directory"):
        check_writable(tmp_path / "file" / "below")


def test_a_file_that_has_its_content_is_not_written_again(tmp_path):
    write_files(tmp_path, {"a.txt": b"A", "b.txt": b"B"})
    before = [(tmp_path / name).stat() for name in ("a.txt", "b.txt")]
    write_files(tmp_path, {"a.txt": b"A", "b.txt": b"C"})
    after = [(tmp_path / name).stat() for name in ("a.txt", "b.txt")]
    assert [one.st_ino == other.st_ino for one, other in zip(before, after, strict=True)] == [True, False]
    # Nor is anything else, not even for a moment.
    changed = tmp_path.stat().st_mtime_ns
    write_files(tmp_path, {"a.txt": b"A", "b.txt": b"C"})
    assert tmp_path.stat().st_mtime_ns == changed


# What a child says before it waits to be killed, with a part of a file in a folder of its own.
KILLED = """
import sys, time
from pathlib import Path
from policysim.files.whole_folders import alone_in, folder_beside
with alone_in(Path(sys.argv[1])), folder_beside(Path(sys.argv[1]) / "files") as part:
    (part / "0").write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def at_work(tmp_path):
    """A process that writes files in the folder, and does not end by itself."""
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        yield child
        child.kill()


@pytest.mark.usefixtures("at_work")
def test_a_second_run_in_one_folder_says_so_and_leaves_the_first_alone(tmp_path):
    with pytest.raises(OutputError, match=r"another run is writing to .*: let it end first"), alone_in(tmp_path):
        pytest.fail("not alone")
    write_files(tmp_path, {"b.txt": b"B"})
    assert len(list(tmp_path.glob(".files.part-*"))) == 1
    with alone_in(tmp_path / "below"):
        pass


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path, at_work):
    at_work.kill()
    at_work.wait()
    (tmp_path / ".b.txt.part-0").mkdir()  # of another file
    assert len(list(tmp_path.iterdir())) == 2
    with alone_in(tmp_path):
        write_files(tmp_path, {"a.txt": b"A"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.txt.part-0", "a.txt"]


@pytest.mark.usefixtures("at_work")
def test_the_part_of_a_run_that_lives_is_not_removed(tmp_path):
    write_files(tmp_path, {"a.txt": b"A"})
    assert [path.read_text() for path in tmp_path.glob(".files.part-*/0")] == ["half"]


def test_folders_in_which_nothing_is_written_vanish(tmp_path):
    with alone_in(tmp_path / "deep" / "deeper"):
        assert (tmp_path / "deep" / "deeper").is_dir()
    assert list(tmp_path.iterdir()) == []
    with alone_in(tmp_path / "deep" / "deeper"):
        write_files(tmp_path / "deep" / "deeper", {"a.txt": b"A"})
    assert (tmp_path / "deep" / "deeper" / "a.txt").read_bytes() == b"A"


def test_a_folder_beside_is_for_its_owner_and_goes_with_all_that_is_in_it(tmp_path):
    target = tmp_path / "deep" / "a.csv"
    with folder_beside(target) as folder:
        assert folder.parent == target.parent
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "below").mkdir()
        (folder / "below" / "half.csv").write_text("half")
    assert list(tmp_path.iterdir()) == []
    with folder_beside(target) as folder:
        (folder / "a.csv").write_text("whole")
        (folder / "a.csv").replace(target)
    assert [path.name for path in target.parent.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("number", INTERRUPTS)
def test_a_folder_beside_goes_whatever_signal_ends_the_run(tmp_path, number):
    # Whoever runs the tests may ignore it, as a shell does in the background.
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), folder_beside(tmp_path / "a.csv") as folder:
            (folder / "half.csv").write_text("half")
            os.kill(os.getpid(), number)
        assert list(tmp_path.iterdir()) == []
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_signal_that_is_ignored_stays_so(tmp_path):
    """As under nohup, when a terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with folder_beside(tmp_path / "a.csv"):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class Terminal(io.StringIO):
    """What is written to it, and when something was."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        if text.strip():
            self.written.set()
        return super().write(text)


def test_a_step_that_takes_long_shows_the_bar_and_its_clock(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("policysim.files.whole_folders.PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("patient") as progress:
        progress.expect(3)
        # No step ends: the first would wait for ever if only steps were shown.
        assert terminal.written.wait(60)
    assert "0/3" in terminal.getvalue()


def test_without_a_terminal_there_is_no_bar(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr("policysim.files.whole_folders.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr", written)
    with progress_bar() as progress:
        progress.expect(1)
        progress.advance()
    assert written.getvalue() == ""

"""Files appear whole or not at all."""

import os

import pytest

from policysim.files.output import check_writable, write_files
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


@pytest.mark.parametrize("broken", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_failure_before_the_last_file_changes_none(tmp_path, monkeypatch, broken):
    write_files(tmp_path, {"a.txt": b"old A", "b.txt": b"old B"})
    calls = []

    def fail_on_the_second(_):
        calls.append(1)
        if len(calls) == 2:
            raise broken

    monkeypatch.setattr("policysim.files.output.os.fsync", fail_on_the_second)
    with pytest.raises((KeyboardInterrupt, OutputError)):
        write_files(tmp_path, {"a.txt": b"new A", "b.txt": b"new B"})
    assert (tmp_path / "a.txt").read_bytes() == b"old A"
    assert (tmp_path / "b.txt").read_bytes() == b"old B"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot write to .*file: File exists"):
        check_writable(tmp_path / "file")
    with pytest.raises(OutputError, match=r"cannot write to .*: Not a directory"):
        check_writable(tmp_path / "file" / "below")

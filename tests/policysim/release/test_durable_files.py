"""What is drawn stands in a folder that only its owner enters, and that is removed however the run ends."""

import os
import signal
import subprocess
import sys

import pytest

from policysim.release.durable_files import INTERRUPTS, folder_beside

# What a process does before it waits to be killed.
HALF = """
import sys, time
from pathlib import Path
from policysim.release.durable_files import folder_beside
with folder_beside(Path(sys.argv[1])) as folder:
    (folder / "half.csv").write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_the_folder_of_a_run_that_lives_stays_and_that_of_a_killed_run_is_removed_by_the_next(tmp_path):
    target = tmp_path / "a.csv"
    with subprocess.Popen([sys.executable, "-c", HALF, str(target)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        with folder_beside(target):
            assert [path.read_text() for path in tmp_path.glob("*/half.csv")] == ["half"]
        process.kill()
    (tmp_path / ".b.csv.part-0").mkdir()  # of another file
    with folder_beside(target) as folder:
        assert {path.name for path in tmp_path.iterdir()} == {folder.name, ".b.csv.part-0"}


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

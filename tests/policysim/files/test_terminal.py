"""The one door to the terminal: nothing steers it, and a stream that is closed ends nothing."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.toml_reader import UNSEEN
from policysim.cli.main import main
from policysim.files.terminal import complain, json_text, progress_bar, say

WARD = str(Path(__file__).parents[3] / "examples" / "ward" / "study.toml")
ROOT = Path(__file__).parents[3]


@given(st.text())
def test_whatever_is_printed_only_line_ends_are_not_seen(text):
    with pytest.MonkeyPatch.context() as patch:
        out, err = Kept(), Kept()
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        say(text)
        complain(text)
    assert {found[0] for found in UNSEEN.finditer(out.text + err.text)} <= {"\n"}
    assert out.text.count("\n") == text.count("\n")
    assert all(line.startswith("policysim: ") for line in err.text.splitlines())


class Kept:
    """A stream that keeps what is written."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@given(st.dictionaries(st.text(), st.text()))
def test_a_json_document_hides_nothing_and_says_the_same(document):
    text = json_text(document)
    assert {found[0] for found in UNSEEN.finditer(text)} <= {"\n"}
    assert json.loads(text) == document


def test_arguments_and_files_in_messages_steer_nothing(capsys, tmp_path):
    for arguments in (["compare", "no\x1b[2Jstudy"], ["x\u202ey"], ["init", str(tmp_path / "no\x1bfile.csv")]):
        assert main(arguments) in (2, 3)
        printed = capsys.readouterr()
        assert UNSEEN.search((printed.out + printed.err).replace("\n", "")) is None
        assert "\\x1b" in printed.err or "\\u202e" in printed.err


def run(arguments, *, closed):
    """A process whose streams of these numbers have lost their readers; its exit code and what the others got."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {name: writer if name in closed else subprocess.PIPE for name in ("stdout", "stderr")}
    done = subprocess.run([sys.executable, "-m", "policysim", *arguments], **streams, text=True, check=False, cwd=ROOT)
    os.close(writer)
    return done.returncode, done.stdout or "", done.stderr or ""


@pytest.mark.parametrize("arguments", [[], ["--version"], ["compare", "--help"]], ids=" ".join)
def test_nothing_is_said_where_nobody_reads_it(arguments):
    assert run(arguments, closed=("stdout",)) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "code", "closed"),
    [(["simulate", WARD, "--patients", "20"], 0, "stdout"), (["compare", "nowhere"], 2, "stderr")],
    ids=["screen", "error"],
)
def test_a_command_ends_with_its_own_code_whoever_reads(arguments, code, closed):
    """Neither stream, or all but the one where it says something."""
    assert run(arguments, closed=("stdout", "stderr")) == (code, "", "")
    assert run(arguments, closed=(closed,)) == (code, "", "")


@pytest.mark.parametrize("closing", [">&-", "<&- >&- 2>&-"])
def test_streams_that_were_never_open_end_nothing(closing, tmp_path):
    log = tmp_path / "log.csv"
    script = f'"$0" -m policysim simulate "$1" --patients 20 --log "$2" {closing}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, WARD, str(log)], capture_output=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, b"")
    # No file took the number of a stream, and what is printed.
    assert len(log.read_text().splitlines()) == 21


def test_a_full_disk_is_told(capsys, monkeypatch):
    class Full(Kept):
        def flush(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["compare", "--help"]) == 2
    assert capsys.readouterr().err == "policysim: cannot write to standard output: No space left on device\n"


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
    monkeypatch.setattr("policysim.files.terminal.PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("patient") as progress:
        progress.expect(3)
        # No step ends: the first would wait for ever if only steps were shown.
        assert terminal.written.wait(60)
    assert "0/3" in terminal.getvalue()


@pytest.mark.parametrize("shell", [None, SimpleNamespace(kernel=None), SimpleNamespace(kernel=object())])
def test_a_kernel_of_a_notebook_shows_the_bar_and_no_other_shell_does(monkeypatch, shell):
    written = io.StringIO()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("policysim.files.terminal.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr", written)
    with progress_bar() as progress:
        progress.expect(2)
        progress.advance()
    assert ("step" in written.getvalue()) == bool(shell and shell.kernel)


def test_without_a_terminal_there_is_no_bar(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr("policysim.files.terminal.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr", written)
    with progress_bar() as progress:
        progress.expect(1)
        progress.advance()
    assert written.getvalue() == ""

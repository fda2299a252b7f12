"""What is read and written: no pipe, device or link is opened, and what comes out is as closed as what went in."""

import encodings.cp1252
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from killed_decisions import make
from private_files import COLUMNS, DECLARED, write_parts, write_people

from policysim.cli.main import main
from policysim.files.data_table import read_table
from policysim.files.keyed_digests import KEY
from policysim.files.many_files import files_of
from policysim.release.ledger import Ledger

SELECT = ("--column", "sex", "--epsilon", "1")
PRIVATE = (*COLUMNS, *DECLARED, "--epsilon", "1", "--uncounted")
DECIDE = ("--study", "small.toml", "--epsilon", "0.1", "--id", "patient", "--event", "day")
TEXTS = {
    "policy.csv": "p_a,p_b\n1,0\n",
    "scenario-study.toml": 'scenario = "odd.toml"\n',
    "trial.toml": '[data]\nfile = "odd.csv"\ntreatment = "sex"\npropensity = "equal"\noutcome.note = 1.0\n'
    "[data.features]\na.levels = [0, 1]\n",
    "cohort.toml": '[cohort]\nfile = "odd.csv"\nfeatures = ["a"]\ntreatment = "b"\npatients = "c"\n'
    "[utility]\nweights = { d = 1 }\n",
}
# What reads a file that is not what it should be: its name, and the command.
READERS = {
    "select": ("odd.csv", ["select", "odd.csv", *SELECT, "--uncounted"]),
    "select, counted": ("odd.csv", ["select", "odd.csv", *SELECT, "--ledger", "ledger.sqlite"]),
    "privatize": ("odd.parquet", ["privatize", "odd.parquet", *PRIVATE, "--out", "out.parquet"]),
    "privatize, one of many": ("many/odd.csv", ["privatize", "many", *PRIVATE, "--out", "out"]),
    "privatize --estimate": ("odd.csv", ["privatize", "odd.csv", "--estimate"]),
    "its note": ("data.csv.privacy.json", ["privatize", "data.csv", "--estimate"]),
    "decide": ("odd.csv", ["decide", "odd.csv", *DECIDE, "--ledger", "ledger.sqlite", "--out", "out.csv"]),
    "init": ("odd.csv", ["init", "odd.csv"]),
    "a study": ("odd.toml", ["compare", "odd.toml"]),
    "a scenario": ("odd.toml", ["compare", "scenario-study.toml"]),
    "a log": ("odd.csv", ["compare", "trial.toml"]),
    "a cohort": ("odd.csv", ["choose", "cohort.toml", "--keep", "50%"]),
    "evaluate": ("odd.csv", ["evaluate", "odd.csv", "--table", "policy.csv"]),
    "a policy's table": ("odd.csv", ["evaluate", "data.csv", "--table", "odd.csv"]),
    "reproduce": ("odd.json", ["reproduce", "odd.json"]),
    "a ledger": ("odd.sqlite", ["ledger", "show", "odd.sqlite"]),
    "a ledger that counts": ("odd.sqlite", ["select", "data.csv", *SELECT, "--ledger", "odd.sqlite"]),
    "its key": ("ledger.sqlite.key", ["ledger", "show", "ledger.sqlite"]),
    "an older ledger": ("odd.json", ["ledger", "import", "odd.json", "--ledger", "ledger.sqlite"]),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder: a study, its patients, a ledger, people and files that name odd ones."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path, 40)
    write_people(tmp_path / "data.csv")
    write_parts(tmp_path / "many", 2)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    return tmp_path


@pytest.fixture
def waits():
    """So that a command that waits for a pipe fails in place of waiting for ever."""

    def stop(*_):
        raise AssertionError("it waits for the pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refused(capsys, arguments):
    """What is said: one line, and an exit code of wrong input."""
    capsys.readouterr()
    code = main(arguments)
    said = capsys.readouterr()
    assert (code in (2, 3), said.out, len(said.err.splitlines())) == (True, "", 1), said
    return said.err


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize(("name", "arguments"), READERS.values(), ids=READERS)
def test_pipes_devices_and_links_are_refused_before_a_byte_is_read(here, capsys, name, arguments):
    path, true = here / name, here / "true"
    shutil.move(path, true) if path.exists() else shutil.copy(here / "data.csv", true)
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, b"sex\n0\n1\n")
    said = refused(capsys, arguments)
    assert "pipe" in said or "no file" in said or "not a file" in said, said
    assert os.read(pipe, 100) == b"sex\n0\n1\n"
    os.close(pipe)
    for target in (Path("/dev/zero"), true):
        path.unlink()
        path.symlink_to(target)
        said = refused(capsys, arguments)
        assert "link" in said, said
        assert target.resolve().as_posix() in said, said


@pytest.mark.usefixtures("waits")
def test_what_a_study_names_as_its_data_is_said_to_be_what_it_is(here, capsys):
    (here / "odd.csv").unlink(missing_ok=True)
    for make_one, said in (
        (os.mkfifo, "it is a device or a pipe, and no file"),
        (os.unlink, "there is no file odd.csv"),
    ):
        make_one("odd.csv")
        assert said in refused(capsys, ["compare", "trial.toml"])


@pytest.mark.usefixtures("waits")
def test_a_key_of_digests_is_a_file(here, capsys):
    shutil.copy(here / "data.csv", here / "odd.csv")
    for make_one, said in ((lambda path: path.symlink_to(here / "key"), "it is a link"), (os.mkfifo, "a pipe")):
        Path("key").write_text("0" * 64)
        make_one(here / KEY)
        error = refused(capsys, ["compare", "trial.toml"])
        assert error.startswith(f"policysim: {KEY}: it is ") and said in error
        assert error.endswith(": put back the key, or remove this\n")
        (here / KEY).unlink()


def test_folders_above_a_file_may_be_links_and_no_file_of_a_folder_is_left_out(here):
    Path("linked").symlink_to(here / "many")
    assert main(["privatize", "linked", *PRIVATE, "--out", "out"]) == 0
    assert len(read_table(Path("linked/0000.csv"))) == 70
    Path("many/elsewhere.csv").symlink_to(here / "data.csv")
    assert [part.name for part in files_of("many")] == ["0000.csv", "0001.csv", "elsewhere.csv"]


@pytest.mark.usefixtures("here")
def test_what_comes_out_is_as_closed_as_what_went_in():
    def modes(*names):
        return {oct(Path(name).stat().st_mode & 0o777) for name in names}

    before = os.umask(0o022)
    try:
        for path in (Path("data.csv"), Path("today.csv"), *Path("many").iterdir()):
            path.chmod(0o600)
        Path("many").chmod(0o700)
        assert main(["privatize", "data.csv", *PRIVATE, "--out", "out.csv"]) == 0
        assert main(["privatize", "data.csv", "--as", "table", *PRIVATE, "--out", "table.csv"]) == 0
        assert main(["privatize", "many", *PRIVATE, "--out", "out"]) == 0
        assert main(["decide", "today.csv", *DECIDE, "--ledger", "ledger.sqlite", "--out", "drawn.csv"]) == 0
        notes = [f"{name}.privacy.json" for name in ("out.csv", "table.csv", "out")]
        files = ("out.csv", "table.csv", *notes, "out/0000.csv", "out/0001.csv", "drawn.csv", "drawn.private.csv")
        assert (modes(*files), modes("out")) == ({"0o600"}, {"0o700"})
        # Neither wider than the input, which its group may read, nor than what the user lets files be.
        Path("data.csv").chmod(0o664)
        Ledger("other.sqlite")
        assert main(["privatize", "data.csv", *PRIVATE[:-1], "--ledger", "other.sqlite", "--out", "wide.csv"]) == 0
        assert modes("wide.csv", "wide.csv.privacy.json") == {"0o644"}
    finally:
        os.umask(before)


def test_a_text_that_is_not_utf_8_is_recoded_by_no_other_thread(tmp_path, monkeypatch):
    # A thread of the reader that needs the interpreter may wait for it for ever when it ends (case 06).
    threads, decode = set(), encodings.cp1252.IncrementalDecoder.decode

    def seen(self, data, final=False):
        threads.add(threading.get_ident())
        return decode(self, data, final)

    monkeypatch.setattr(encodings.cp1252.IncrementalDecoder, "decode", seen)
    for text in ("größe;alter", "größe;alter\nä;1,5\n"):
        (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
        table = read_table(tmp_path / "a.csv", may_be_empty=True)
        assert table.columns == ["größe", "alter"]
    assert table.rows.to_pylist() == [{"größe": "ä", "alter": "1.5"}]
    assert threads == {threading.get_ident()}

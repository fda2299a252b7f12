"""`reproduce` asks a question: no socket is opened, no process is started and nothing is written."""

import json
import multiprocessing.process
import os
import shutil
import socket
import subprocess
from contextlib import contextmanager

import pytest
from drawings import draw_only
from parts_work import log_rows, write_parts
from printed_blocks import few_draws
from small_studies import write_small_study

from policysim.cli.main import main
from policysim.cli.reproduce_command import ask
from policysim.output.manifest import read_manifest
from policysim.output.reproduction import question_of


def scenario(folder):
    return write_small_study(folder).rename(folder / "study.toml")


def one_file(folder):
    """A log whose rows are read."""
    study = write_parts(folder, log_rows(300), 1)
    study.write_text(study.read_text().replace('"parts"', '"parts/0000.csv"'))
    return study


SHORT = ["--policy", "uniform,exponential", "--epsilon", "1,inf"]
QUESTIONS = {
    "scenario": (scenario, [*SHORT, "--price-list"]),
    "days": (scenario, ["--horizon", "2", "--total-epsilon", "3", "--delta", "1e-6", "--policy", "optimal-daily"]),
    "log": (one_file, SHORT),
    "counted": (one_file, [*SHORT, "--workers", "1"]),
    "many": (lambda folder: write_parts(folder, log_rows(300), 3), [*SHORT, "--workers", "2"]),
}


@contextmanager
def quick():
    """No drawings, few redraws and splits."""
    with few_draws(), pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        yield


@pytest.fixture(scope="module", params=list(QUESTIONS))
def report(request, tmp_path_factory):
    """The folder of a report of each kind of question."""
    write, options = QUESTIONS[request.param]
    folder = tmp_path_factory.mktemp("reports") / "ward"
    folder.mkdir()
    with quick():
        assert main(["compare", str(write(folder)), *options, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def refused(monkeypatch):
    """Sockets and processes are refused."""

    def refuse(*arguments, **_):
        raise AssertionError(f"opened or started: {arguments}")

    for place, name in (
        (socket, "socket"),
        (socket, "create_connection"),
        (socket, "getaddrinfo"),
        (subprocess, "Popen"),
        (os, "fork"),
        (os, "system"),
        (multiprocessing.process.BaseProcess, "start"),
    ):
        monkeypatch.setattr(place, name, refuse)


@pytest.mark.usefixtures("refused")
def test_it_opens_no_socket_starts_no_process_and_writes_nothing(report, capsys):
    before = {path: path.stat().st_mtime_ns for path in report.parent.rglob("*")}
    with quick():
        code = main(["reproduce", str(report / "manifest.json")])
    assert (code, capsys.readouterr().err) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in report.parent.rglob("*")} == before


@pytest.mark.usefixtures("refused")
def test_the_fixture_would_notice():
    with pytest.raises(AssertionError, match="opened or started"):
        socket.create_connection(("127.0.0.1", 1))


@pytest.mark.parametrize("report", ["log", "many"], indirect=True)
def test_data_that_are_not_there_are_told_in_a_line(report, tmp_path, capsys):
    folder = shutil.copytree(report, tmp_path / "ward")
    shutil.rmtree(folder / "parts")
    assert main(["reproduce", str(folder / "manifest.json")]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "study.toml:3: data.file: " in err


def test_nothing_of_where_it_ran_stands_in_the_question(report):
    question = json.loads((report / "manifest.json").read_text(encoding="utf-8"))["question"]
    assert not {"workers", "cluster", "out", "json", "format", "figure_size"} & set(question)
    again = question_of(read_manifest(report / "manifest.json"), ask)
    assert getattr(again, "executor", None) is None


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("key", ["cluster", "workers", "resume", "script", "command", "out", "learn_epsilon"])
def test_a_question_that_says_where_to_run_is_refused_without_a_socket(report, capsys, tmp_path, key):
    folder = shutil.copytree(report, tmp_path / "ward")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["question"][key] = "tcp://203.0.113.1:8786"
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    capsys.readouterr()
    assert main(["reproduce", str(folder / "manifest.json")]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert f"manifest.json: question: unknown key '{key}'; " in err
    assert all(known in err for known in manifest["question"] if known != key)

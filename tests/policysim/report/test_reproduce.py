"""`policysim reproduce`: which numbers are others; and that a stranger's manifest runs and reads nothing foreign."""

import hashlib
import json
import multiprocessing.process
import os
import platform
import shlex
import shutil
import socket
import subprocess

import pandas as pd
import pytest
from parts_work import log_rows, write_parts
from printed_blocks import few_draws
from small_studies import STUDY, write_small_study

from policysim.cli import compare_command
from policysim.cli.kinds import arguments_again
from policysim.cli.main import main
from policysim.cli.options import parse
from policysim.report.folder import FORMAT

FEW = ("--policy", "uniform,exponential", "--epsilon", "1")


def edit(report, change):
    """Change a manifest as a dictionary."""
    path = report / "manifest.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_a_manifest_names_study_command_and_digests_but_no_folder_and_no_machine(made):
    text = (made / "manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert manifest["command"] == ["compare", "study.toml", "--by", "smoker", "--seed", "0"]
    assert manifest["study"]["sha256"] == hashlib.sha256((made / "study.toml").read_bytes()).hexdigest()
    files = {path.relative_to(made).as_posix(): path for path in made.rglob("*") if path.is_file()}
    assert set(manifest["results"]) == set(files) - {"manifest.json", "study.toml", "scenario.toml"}
    for name, digest in manifest["results"].items():
        assert digest == hashlib.sha256(files[name].read_bytes()).hexdigest()
    for word in (str(made), made.parent.as_posix(), platform.node()):
        assert word not in text


@pytest.mark.parametrize(
    ("typed", "again"),
    [
        ("", ""),
        ("--out x --json --brief --eps 0.1,1e-3,inf --format=pdf", "--epsilon 0.1,1e-3,inf --format pdf"),
        ("--by age --by smoker --price-list --at-most death=one-for-all", ...),
        ("--cluster tls://host:1 --figures=frontier", "--workers 1 --figures frontier"),
        ("--workers 8 --policy 'a, b' --full", "--workers 1 --policy 'a, b'"),
        ("--horizon 14 --total-epsilon 1,5 --delta 1e-6 --length-public", ...),
    ],
)
def test_a_manifest_has_the_options_as_typed_but_those_of_the_place(typed, again):
    """Read again, they are what was asked, and are written the same."""
    words = shlex.split(typed)
    for study, kept in (("covid", "covid"), ("mine/study.toml", "study.toml")):
        arguments = arguments_again(parse(["compare", *words, study], [compare_command.add]))
        assert arguments == ("compare", kept, *(words if again is ... else shlex.split(again)))
        assert arguments_again(parse(arguments, [compare_command.add])) == arguments


def test_an_untouched_report_agrees_wherever_it_went_and_nothing_is_written(run, report):
    before = {path: path.stat().st_mtime_ns for path in report.parent.rglob("*")}
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, err) == (0, "")
    assert out.startswith("policysim compare study.toml --by smoker --seed 0\n")
    assert "agree" in out and "ther version" not in out
    assert {path: path.stat().st_mtime_ns for path in report.parent.rglob("*")} == before
    edit(report, lambda manifest: manifest["versions"].update(numpy="1.0"))
    assert "Other versions: numpy 1.0, now " in run("reproduce", report / "manifest.json")[1]


def test_a_changed_number_is_named_by_its_row_and_key(run, report):
    table = pd.read_csv(report / "comparison.csv", dtype=str)
    row = table.index[table["policy"] == "randomized-response"][0]
    table.loc[row, "value"] = "0.123"
    table.to_csv(report / "comparison.csv", index=False)
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    (line,) = (line for line in out.splitlines() if line.startswith("  "))
    assert line.startswith(f"  comparison.csv, row {row + 1} (policy randomized-response, ")
    assert ": value 0.123; now " in line
    document = json.loads(run("reproduce", report / "manifest.json", "--json")[1])
    assert (document["agree"], [one["old"] for one in document["differences"]]) == (False, ["0.123"])


def test_pages_and_figures_are_there_and_as_they_were_written(run, report):
    first, second, *_ = sorted(path.relative_to(report).as_posix() for path in (report / "figures").iterdir())
    (report / first).unlink()
    (report / second).write_bytes(b"")
    (report / "report.html").write_text("<p>all is well", encoding="utf-8")
    edit(report, lambda manifest: manifest["results"].update({"more.csv": "0" * 64, "figures/more.svg": "0" * 64}))
    (report / "more.csv").write_text("hides,loss\nage,1\n", encoding="utf-8")
    code, out, _ = run("reproduce", report / "manifest.json", "--json")
    found = sorted((one["file"], one["new"]) for one in json.loads(out)["differences"])
    assert code == 4
    more = [(name, "missing") for name in ("figures/more.svg", "figures/more.svg", "more.csv")]
    assert found == sorted([(first, "missing"), (second, "changed"), ("report.html", "changed"), *more])


def test_another_study_scenario_or_data_is_refused_before_anything_is_computed(run, report, monkeypatch):
    monkeypatch.setattr(compare_command, "report_of", lambda *_: pytest.fail("computed"))
    manifest, study = report / "manifest.json", report / "study.toml"
    original = study.read_text(encoding="utf-8")
    edit(report, lambda document: document.update(scenario_sha256="0" * 64))
    code, _, err = run("reproduce", manifest)
    assert (code, "manifest.json: the scenario changed since this report was made" in err) == (2, True)
    study.write_text(original + "# changed\n", encoding="utf-8")
    code, _, err = run("reproduce", manifest)
    assert (code, err.count("\n"), "study.toml: is not the study of" in err) == (2, 1, True)
    study.unlink()
    code, _, err = run("reproduce", manifest)
    assert (code, err.count("\n")) == (2, 1)
    assert "its study ward is not built in, and there is no study.toml beside it" in err
    (report / "comparison.csv").unlink()
    code, _, err = run("reproduce", manifest)
    assert (code, err.count("\n"), "comparison.csv: cannot be read" in err) == (2, 1, True)


@pytest.fixture(scope="module")
def of_log(tmp_path_factory):
    """The report of a log in several files."""
    folder = tmp_path_factory.mktemp("reports") / "ward"
    folder.mkdir()
    study = write_parts(folder, log_rows(300), 3)
    with few_draws():
        assert main(["compare", str(study), *FEW, "--workers", "2", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def refused(monkeypatch):
    """Sockets and processes are refused."""

    def refuse(*arguments, **_):
        raise AssertionError(f"opened or started: {arguments}")

    for owner, name in (
        *((socket, "socket"), (socket, "create_connection"), (socket, "getaddrinfo")),
        *((subprocess, "Popen"), (os, "fork"), (os, "system"), (multiprocessing.process.BaseProcess, "start")),
    ):
        monkeypatch.setattr(owner, name, refuse)
    with pytest.raises(AssertionError, match="opened or started"):
        socket.create_connection(("127.0.0.1", 1))


@pytest.mark.usefixtures("refused")
def test_a_log_is_counted_again_by_this_process_and_other_data_are_refused(run, of_log, tmp_path):
    with few_draws():
        assert run("reproduce", of_log / "manifest.json")[0] == 0
    folder = shutil.copytree(of_log, tmp_path / "ward")
    with (folder / "parts" / "0001.csv").open("a", encoding="utf-8") as stream:
        stream.write("\n")
    code, _, err = run("reproduce", folder / "manifest.json")
    assert (code, err.count("\n"), "the data (3 files) changed since this report was made" in err) == (3, 1, True)


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize(
    "command",
    [
        *([], ["compare"], ["privatize", "study.toml"], ["reproduce", "study.toml"], ["init", "study.toml"]),
        *(["compare", "covid"], ["compare", "/etc/study.toml"], ["compare", "../study.toml"], ["--help", "study.toml"]),
        *(["compare", "study.toml", "--cluster", "tcp://203.0.113.1:1"], ["compare", "study.toml", "--clus=tcp://x:1"]),
        *(
            ["compare", "study.toml", "--out", "x"],
            ["compare", "study.toml", "--ou=x"],
            ["compare", "study.toml", "-h"],
        ),
        *(["compare", "study.toml", "--hel"], ["compare", "study.toml", "--workers", "99999"]),
        *(["compare", "study.toml", "other.toml"], ["compare", "study.toml", "--", "x"], ["compare", "study.toml", ""]),
        *(["compare", "study.toml", "--epsilon"], ["compare", "study.toml", "--script", "x"], "compare study.toml"),
        *(["compare", "study.toml", "--seed=1"], ["compare", 1], ["compare", "study.toml", "--by", "a\x1b[2J"]),
        *(["compare", "study.toml"] * 100, ["compare", "study.toml", "--by", "x" * 10_001]),
        *(["compare", "study.toml", "--delta", "0"], ["choose", "study.toml"], ["compare", "study.toml", "--by", "no"]),
    ],
    ids=lambda command: " ".join(map(str, command[-2:]))[:30].encode("unicode_escape").decode(),
)
def test_a_command_that_compare_or_choose_would_not_write_is_refused_in_a_line(run, report, monkeypatch, command):
    monkeypatch.setattr(compare_command, "report_of", lambda *_: pytest.fail("computed"))
    edit(report, lambda manifest: manifest.update(command=command))
    before = sorted(report.rglob("*"))
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert len(err) < 1200
    assert sorted(report.rglob("*")) == before


GOOD = {
    "format": FORMAT,
    "study": {"name": "ward", "sha256": "0" * 64},
    "command": ["compare", "study.toml"],
    "results": {"comparison.csv": "1" * 64},
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        *((b"{", "is not JSON"), (b"[" * 100_000, "is not JSON"), (b"[" + b"1" * 5000 + b"]", "is not JSON")),
        *((b"\xff", "must be UTF-8"), (b" " * 10_000_001, "must not be larger than 10,000,000 bytes")),
        *((b"[]", "format must be"), (b"{}", "format must be"), ({"command": None}, "command must be a list of texts")),
        ({"format": FORMAT - 1}, "was written by another version of policysim: its format is not"),
        *((({"study": {"name": name, "sha256": ""}}), "study must have a name") for name in ("../ward", "..", "", 1)),
        ({"study": {"name": "ward"}}, "study must have a name and a sha256"),
        *(
            ({"results": {name: "1"}}, "results must be a table of relative paths")
            for name in ("../a.csv", "a/../../a.csv", "..\\a.csv", "C:\\a.csv", "/a.csv", "a\u202e.csv", "report.html")
        ),
        ({"results": {"comparison.csv": 1}}, "their digests"),
        ({"results": None}, "results must be"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_file_that_is_no_manifest_is_refused_in_a_line(run, tmp_path, content, words):
    path = tmp_path / "manifest.json"
    path.write_bytes(json.dumps(GOOD | content).encode() if isinstance(content, dict) else content)
    code, out, err = run("reproduce", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"policysim: {path.as_posix()}: ") and words in err
    assert len(err) < 600


def test_a_missing_manifest_a_folder_and_a_link_out_of_it_are_refused(run, tmp_path, made):
    assert "manifest.json: is missing: the report in this folder" in run("reproduce", tmp_path / "manifest.json")[2]
    assert f"did you mean {(made / 'manifest.json').as_posix()}?" in run("reproduce", made)[2]
    (tmp_path / "secret.csv").write_text("x\n1\n", encoding="utf-8")
    for name in ("comparison.csv", "study.toml"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / "comparison.csv").write_text("x\n1\n", encoding="utf-8")
        (folder / "manifest.json").write_text(json.dumps(GOOD), encoding="utf-8")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / "secret.csv")
        code, out, err = run("reproduce", folder / "manifest.json")
        assert (code, out, err.count("\n"), f"{name}: leads out of the folder" in err) == (2, "", 1, True)


@pytest.mark.usefixtures("blank_drawings")
def test_a_report_of_ones_own_study_is_made_again_from_its_folder_alone(run, tmp_path):
    study = write_small_study(tmp_path / "mine", STUDY.replace('"scenario.toml"', '"wards/scenario.toml"'))
    (study.parent / "wards").mkdir()
    (study.parent / "scenario.toml").rename(study.parent / "wards" / "scenario.toml")
    assert run("compare", study, *FEW, "--out", tmp_path / "out")[0] == 0
    shutil.rmtree(tmp_path / "mine")
    moved = (tmp_path / "out").rename(tmp_path / "elsewhere")
    assert run("reproduce", moved / "manifest.json")[::2] == (0, "")
    (moved / "wards" / "scenario.toml").unlink()
    assert run("reproduce", moved / "manifest.json")[0] == 2


@pytest.mark.usefixtures("blank_drawings")
def test_a_choice_is_made_again_with_its_comparison(run, tmp_path):
    study = write_small_study(tmp_path)
    assert run("choose", study, "--keep", "50%", "--policy", "exponential", "--out", tmp_path / "out")[0] == 0
    manifest = tmp_path / "out" / "manifest.json"
    command = json.loads(manifest.read_text(encoding="utf-8"))["command"]
    assert command == ["choose", "study.toml", "--keep", "50%", "--policy", "exponential"]
    assert run("reproduce", manifest)[::2] == (0, "")
    edit(manifest.parent, lambda document: document["command"].__setitem__(3, "60%"))
    assert run("reproduce", manifest)[0] == 4

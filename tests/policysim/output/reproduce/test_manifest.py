"""What a manifest says: enough to run again and to check the files, and nothing about when or where."""

import hashlib
import json
import platform
import shlex
import shutil

import pandas as pd
from small_studies import write_small_study

from policysim.cli.main import main
from policysim.files.many_files import file_digest
from policysim.output.deliver import folder_files
from policysim.question.answer import Answer
from policysim.study.study_reader import load_study


def test_the_command_in_the_manifest_means_what_was_asked(capsys, tmp_path, monkeypatch):
    """Each option of compare that changes a number, as a command line for people, asks the same question again."""
    asked = []
    monkeypatch.setattr("policysim.output.deliver.deliver", lambda question, **rest: asked.append((question, rest)))
    shutil.copy(write_small_study(tmp_path), tmp_path / "study.toml")
    monkeypatch.chdir(tmp_path)
    for options in (
        [],
        ["--price-list", "--format", "pdf,svg", "--figure-size", "column"],
        ["--seed", "0", "--epsilon", "0.1,1e-3,inf", "--policy", "all", "--by", "age", "--by", "smoker"],
        ["--adjacency", "sensitive", "--sensitive", "age", "--sensitive", "smoker,fever"],
        ["--policy", "optimal-safe", "--at-most", "death=one-for-all,symptoms=0.5"],
        ["--horizon", "14", "--total-epsilon", "1,5", "--delta", "1e-6", "--length-public", "--by", "age"],
    ):
        main(["compare", "study.toml", *options, "--out", "somewhere", "--json"])
        first, rest = asked.pop()
        command = shlex.split(rest["command"])
        assert command[:3] == ["policysim", "compare", "study.toml"]
        assert not {"--out", "--json", "somewhere"} & set(command)
        main(command[1:])
        again, others = asked.pop()
        assert (again, others["wanted"], others["command"]) == (first, rest["wanted"], rest["command"])
    assert capsys.readouterr() == ("", "")


def test_results_are_the_digests_of_all_files_but_the_study(made):
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    files = {path.relative_to(made).as_posix(): path for path in made.rglob("*") if path.is_file()}
    expected = set(files) - {"manifest.json", "study.toml", "scenario.toml"}
    assert set(manifest["results"]) == expected
    assert {"comparison.csv", "report.html"} < expected
    for name, digest in manifest["results"].items():
        assert digest == hashlib.sha256(files[name].read_bytes()).hexdigest() == file_digest(files[name])


def test_the_manifest_names_study_question_and_scenario_but_no_folder_and_no_machine(made):
    text = (made / "manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert manifest["command"] == "policysim compare study.toml --by smoker --seed 0"
    assert manifest["given"] == ["by", "seed"]
    assert manifest["question"] == {
        "adjacency": "any-record",
        "sensitive": [],
        "epsilons": [1.0],
        "policies": ["greedy", "best-fixed", "uniform", "exponential", "randomized-response"],
        "by": ["smoker"],
        "seed": 0,
        "price_list": False,
    }
    assert manifest["study"]["sha256"] == hashlib.sha256((made / "study.toml").read_bytes()).hexdigest()
    assert manifest["scenario_sha256"] == hashlib.sha256((made / "scenario.toml").read_bytes()).hexdigest()
    for word in (str(made), made.parent.as_posix(), platform.node()):
        assert word not in text


def test_the_digest_of_a_scenario_follows_its_text(tmp_path):
    path = write_small_study(tmp_path)
    before = load_study(path).identity["scenario_sha256"]
    (tmp_path / "scenario.toml").write_bytes((tmp_path / "scenario.toml").read_bytes().replace(b"\n", b"\r\n"))
    assert load_study(path).identity["scenario_sha256"] == before
    (tmp_path / "scenario.toml").write_text(
        (tmp_path / "scenario.toml").read_text().replace("cost = 0.02", "cost = 0.03")
    )
    assert load_study(path).identity["scenario_sha256"] != before


def test_a_manifest_keeps_what_the_answer_depends_on_and_the_order_of_the_page():
    answer = Answer(
        document={},
        tables={"b": pd.DataFrame({"x": [1]}), "a": pd.DataFrame({"y": [2.5]})},
        depends={"study": {"name": "covid"}},
        files={"study.toml": b""},
    )
    files = folder_files(answer, "policysim compare covid")
    manifest = json.loads(files["manifest.json"])
    assert (manifest["study"], manifest["command"]) == ({"name": "covid"}, "policysim compare covid")
    assert list(manifest["results"]) == ["b.csv", "a.csv"]
    assert files["a.csv"] == b"y\n2.5\n"

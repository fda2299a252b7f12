"""What a manifest says: enough to run again and to check the files, and nothing about when or where."""

import hashlib
import json
import platform

import pandas as pd
import pytest
from small_studies import write_small_study

from policysim.cli import compare_command
from policysim.cli.compare_command import study_command
from policysim.cli.parser import parse
from policysim.files.many_files import file_digest
from policysim.question.answer import Answer
from policysim.report.deliver import folder_files
from policysim.study.study_reader import load_study


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--price-list"],
        ["--seed", "0", "--epsilon", "0.1,1", "--policy", "all", "--by", "age", "--by", "sex"],
        ["--adjacency", "sensitive", "--sensitive", "age", "--sensitive", "smoking"],
        ["--horizon", "14", "--total-epsilon", "1,5", "--delta", "1e-6", "--length-public"],
    ],
)
def test_the_command_in_the_manifest_means_what_was_asked(options):
    asked = ["compare", "covid", *options, "--out", "somewhere", "--json"]
    command = study_command(asked)
    chosen, again = (parse(line, [compare_command.add]) for line in (asked, command))
    assert (again.out, again.json) == (None, False)
    changed = {"out": chosen.out, "json": True, "arguments": asked}
    assert vars(again) | changed == vars(chosen)
    # The text of the values is not written anew: 1e-6 stays 1e-6.
    assert command == ["compare", "covid", *options]


def test_no_option_of_compare_has_a_default_that_would_be_written_down():
    # study_command takes whatever is neither None nor False for something that was asked.
    assert study_command(["compare", "covid"]) == ["compare", "covid"]


def test_a_study_of_ones_own_is_the_one_beside_the_manifest():
    assert study_command(["compare", "/somewhere/else/ward.toml"]) == ["compare", "study.toml"]


def test_results_are_the_digests_of_all_files_but_the_study(made):
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    files = {path.relative_to(made).as_posix(): path for path in made.rglob("*") if path.is_file()}
    expected = set(files) - {"manifest.json", "study.toml", "scenario.toml"}
    assert set(manifest["results"]) == expected
    assert {"comparison.csv", "report.html"} < expected
    for name, digest in manifest["results"].items():
        assert digest == hashlib.sha256(files[name].read_bytes()).hexdigest() == file_digest(files[name])


def test_the_manifest_names_study_command_and_scenario_but_no_folder_and_no_machine(made):
    text = (made / "manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert manifest["command"] == ["compare", "study.toml", "--seed", "0", "--by", "smoker"]
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


def test_a_manifest_keeps_what_the_answer_says_and_the_order_of_the_page():
    answer = Answer(
        screen=[],
        document={},
        sentences=["All is well."],
        tables={"b.csv": pd.DataFrame({"x": [1]}), "a.csv": pd.DataFrame({"y": [2.5]})},
        depends={"study": {"name": "covid"}},
        files={"study.toml": b""},
    )
    files = folder_files(answer, ["compare", "covid"])
    manifest = json.loads(files["manifest.json"])
    assert (manifest["study"], manifest["command"]) == ({"name": "covid"}, ["compare", "covid"])
    assert manifest["answer"] == ["All is well."]
    assert list(manifest["results"]) == ["b.csv", "a.csv"]
    assert files["a.csv"] == b"y\n2.5\n"

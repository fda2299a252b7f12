"""The files that a study names are found and copied with it."""

import json

import pytest

from policysim.report.deliver import STUDY
from policysim.report.manifest import copy_under_its_name, named_files, read_manifest


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('scenario = "covid"\n', []),
        ('scenario = "../a/ward.toml"\n', ["../a/ward.toml"]),
        ('[data]\nfile = "trial.csv"\n', ["trial.csv"]),
        ('[data.file]\npatients = "p.csv"\nactions = "sub/a.parquet"\n', ["p.csv", "sub/a.parquet"]),
        ("not = = toml\n", []),
        ("data = 3\n[scenario]\n", []),
    ],
)
def test_what_a_study_names_is_found_and_copied_so_that_the_same_names_lead_to_it(tmp_path, text, names):
    folder = tmp_path / "there" / "report"
    folder.mkdir(parents=True)
    study = folder / STUDY
    study.write_text(text, encoding="utf-8")
    assert {name: path.as_posix() for name, path in named_files(study).items()} == {
        name: (folder / name).as_posix() for name in names
    }
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    manifest = {"study": {"name": "ward", "sha256": ""}, "command": ["compare", STUDY], "results": {"a.csv": ""}}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    into = tmp_path / "into"
    copy = copy_under_its_name(study, read_manifest(folder / "manifest.json"), into)
    assert (copy.stem, copy.read_text(encoding="utf-8")) == ("ward", text)
    for name in names:
        assert (copy.parent / name).read_text(encoding="utf-8") == name
        assert (copy.parent / name).resolve().is_relative_to(into)

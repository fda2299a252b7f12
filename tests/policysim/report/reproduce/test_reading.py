"""What is no manifest is refused in one line."""

import json

import pytest

from policysim.report.manifest import read_manifest

GOOD = {
    "study": {"name": "ward", "sha256": "0" * 64},
    "command": ["compare", "study.toml"],
    "results": {"comparison.csv": "1" * 64, "figures/a.png": "2" * 64},
}


def test_a_manifest_is_read(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    found = read_manifest(path)
    assert (found.name, found.study_digest, found.command) == ("ward", "0" * 64, ("compare", "study.toml"))
    assert found.tables == ["comparison.csv"]
    assert found.folder == tmp_path
    assert found.data == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff", "must be UTF-8"),
        (b"[]", "is not a manifest of policysim compare: it is not a table"),
        (b"{}", "study must have a name and a sha256"),
        (b'{"mechanism": "k-ary randomised response"}', "is not a manifest of policysim compare"),
        ({"study": {"name": "../ward", "sha256": ""}}, "study must have a name"),
        ({"study": {"name": "ward"}}, "study must have a name and a sha256"),
        ({"command": "compare covid"}, "command must be a list"),
        ({"command": ["compare"]}, "command must be a list"),
        ({"command": ["compare", 7]}, "command must be a list"),
        ({"command": ["simulate", "covid"]}, 'command must be a list like \\["compare", "ward"\\]'),
        ({"results": None}, "results must be a table"),
        ({"results": {"../comparison.csv": "1"}}, "relative paths"),
        ({"results": {"/comparison.csv": "1"}}, "relative paths"),
        ({"results": {"comparison.csv": 1}}, "SHA-256"),
        ({"results": {"report.html": "1"}}, "results must name a CSV file"),
        ({"data": ["trial.csv"]}, "data must be a table"),
    ],
    ids=str,
)
def test_anything_else_is_refused_in_one_line_that_says_why(run, tmp_path, content, words):
    path = tmp_path / "manifest.json"
    path.write_bytes(json.dumps(GOOD | content).encode() if isinstance(content, dict) else content)
    code, out, err = run("reproduce", path)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert path.as_posix() in err
    with pytest.raises(ValueError, match=words):
        read_manifest(path)


def test_a_missing_manifest_and_a_folder_are_refused(run, tmp_path, made):
    code, _, err = run("reproduce", tmp_path / "manifest.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "cannot be read" in err
    code, _, err = run("reproduce", made)
    assert code == 2
    assert f"did you mean {(made / 'manifest.json').as_posix()}?" in err

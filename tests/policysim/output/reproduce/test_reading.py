"""What is no manifest is refused in one line."""

import json

import pytest

from policysim.output.deliver import FORMAT, FigureFiles
from policysim.output.manifest import read_manifest

GOOD = {
    "format": FORMAT,
    "study": {"name": "ward", "sha256": "0" * 64},
    "question": {"seed": 1},
    "given": [],
    "command": "policysim compare study.toml",
    "figures": {"formats": ["svg"], "size": "column"},
    "results": {"comparison.csv": "1" * 64, "figures/a.png": "2" * 64},
}


def test_a_manifest_is_read(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    found = read_manifest(path)
    assert (found.name, found.study_digest, found.question) == ("ward", "0" * 64, {"seed": 1})
    # One of before figures had names: all are drawn.
    assert found.figures == FigureFiles(("svg",), "column", ())
    assert found.tables == ["comparison.csv"]
    assert found.folder == tmp_path
    assert found.data == {}


def test_a_manifest_of_another_format_is_refused_with_what_to_do(run, tmp_path):
    path = tmp_path / "manifest.json"
    old = {"command": ["compare", "ward", "--cluster", "tcp://203.0.113.1:8786"], "study": GOOD["study"]}
    for document in (old | {"results": GOOD["results"]}, GOOD | {"format": FORMAT + 1}):
        path.write_text(json.dumps(document), encoding="utf-8")
        code, out, err = run("reproduce", path)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert "was written by another version of policysim" in err
        assert "make its report again with policysim compare" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff", "must be UTF-8"),
        (b'{"study": 1, "study": 2}', "has 'study' twice"),
        (b'{"epsilon": NaN}', "NaN is no number"),
        (b"[" + b"1" * 5000 + b"]", "is not JSON"),
        (b" " * 10_000_001, "must not be larger than 10,000,000 bytes"),
        (b"[]", "is not a manifest of policysim compare: it is not a table"),
        (b"{}", "study must have a name and a sha256"),
        (b'{"mechanism": "k-ary randomised response"}', "is not a manifest of policysim compare"),
        ({"study": {"name": "../ward", "sha256": ""}}, "study must have a name"),
        ({"command": ["compare", "covid"]}, "command must be text"),
        ({"question": None}, "question must be a table"),
        ({"figures": {"formats": ["svg"], "size": "page", "names": "frontier"}}, "figures must be a list of names"),
        ({"question": ["seed"]}, "question must be a table"),
        ({"given": ["out"]}, "given must be a list of keys of question"),
        ({"given": {"seed": 1}}, "given must be a list"),
        ({"given": [["seed"]]}, "given must be a list"),
        ({"study": {"name": "a\x1b[2J", "sha256": ""}}, "study.name holds U.001B"),
        ({"results": {"a\u202e.csv": "1"}}, "holds U.202E"),
        ({"question": {"x\n\u202e" * 1000: 1}}, r"question\.x\\n\\u202ex.*… holds U.000A, which is not seen"),
        ({"figures": None}, "figures must have formats among svg, png, pdf and a size among page, column, slide"),
        ({"figures": {"formats": ["exe"], "size": "page"}}, "figures must have formats"),
        ({"figures": {"formats": ["svg"], "size": "wall"}}, "figures must have formats"),
        ({"results": None}, "results must be a table"),
        ({"results": {"../comparison.csv": "1"}}, "relative paths"),
        ({"results": {"a/../../comparison.csv": "1"}}, "relative paths"),
        ({"results": {"..\\comparison.csv": "1"}}, "relative paths"),
        ({"results": {"C:\\comparison.csv": "1"}}, "relative paths"),
        ({"results": {"comparison.csv": 1}}, "SHA-256"),
        ({"results": {"report.html": "1"}}, "results must name a CSV file"),
        ({"data": ["trial.csv"]}, "data must be a table"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_anything_else_is_refused_in_one_line_that_says_why(run, tmp_path, content, words):
    path = tmp_path / "manifest.json"
    path.write_bytes(json.dumps(GOOD | content).encode() if isinstance(content, dict) else content)
    code, out, err = run("reproduce", path)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert path.as_posix() in err
    assert len(err) < 600
    with pytest.raises(ValueError, match=words):
        read_manifest(path)


def test_a_missing_manifest_and_a_folder_are_refused(run, tmp_path, made):
    code, _, err = run("reproduce", tmp_path / "manifest.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "manifest.json: is missing: the report in this folder is unfinished, or there is none; " in err
    code, _, err = run("reproduce", made)
    assert code == 2
    assert f"did you mean {(made / 'manifest.json').as_posix()}?" in err


def test_a_table_that_is_a_link_out_of_the_folder_is_not_read(run, tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("x\n1\n", encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(GOOD), encoding="utf-8")
    (folder / "comparison.csv").symlink_to(tmp_path / "secret.csv")
    code, out, err = run("reproduce", folder / "manifest.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "comparison.csv: leads out of the folder" in err

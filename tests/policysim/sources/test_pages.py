"""What `policysim compare` writes and prints for a study of a source."""

import html
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from page_policy import breaks

from policysim.cli.main import main
from policysim.figures.card import Curves
from policysim.figures.described import Described, Lines
from policysim.output.deliver import folder_files
from policysim.question.answer import Headline
from policysim.sources.engine import AGREES, INSIDE, PLAUSIBLE, WRONG, SourceFindings, SourceRow, Subject
from policysim.sources.source_question import answer_about_source

NAMES = ("adult-age-sex", "common-disease", "marital-status", "sock-groups")


@pytest.fixture(scope="module")
def written(studies, findings):
    return {
        name: folder_files(answer_about_source(studies[name], findings[name]), f"policysim compare {name}")
        for name in NAMES
    }


def readable(page):
    """The page's text, with entities and the spaces that do not break undone."""
    return html.unescape(page).replace("\u00a0", " ")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_holds_every_figure_of_the_source_and_ours(written, findings, name):
    page = readable(written[name]["report.html"].decode())
    rows = re.findall(
        r"<tr(?: class=\"\w+\")?>(.*?)</tr>", page.split('id="figures"')[1].split("</table>")[0], re.DOTALL
    )[1:]
    assert len(rows) == len(findings[name].rows)
    for text, row in zip(rows, findings[name].wrong_first, strict=True):
        cells = [re.sub(r"<.*?>", "", cell).strip() for cell in re.findall(r"<td.*?>(.*?)</td>", text, re.DOTALL)]
        assert [*cells[:3], cells[-1]] == [row.figure, row.source, row.shown, row.where]
        assert row.agreement in cells[3]
        assert readable(row.why) in cells[3]
    expected = [row.agreement in {AGREES, INSIDE, PLAUSIBLE} for row in findings[name].wrong_first]
    assert expected == sorted(expected) and not expected[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_begins_with_the_findings_and_has_the_drawing_that_a_row_names(written, findings, name):
    page = readable(written[name]["report.html"].decode())
    for sentence in findings[name].lead:
        assert readable(sentence) in page.split("<h2")[0]
    assert 3 <= len(findings[name].lead) <= 6
    assert WRONG in {row.agreement for row in findings[name].rows}
    for row in findings[name].rows:
        assert not row.drawing or f'<figure id="{row.drawing}">' in written[name]["report.html"].decode()


@pytest.mark.parametrize("holds", [False, True])
def test_the_answer_of_a_script_has_a_page_and_no_study(holds):
    claim = SourceRow.claim("the claim", "page 1", "as it is", "as we have it", holds=holds, why="For a reason.")
    line = Curves({"a line": [(0.1, 0.2), (1.0, 0.5)]}, "ε (log scale)", "a share")
    found = SourceFindings(("A lead.",), (claim,), (), Headline("A finding"), line, ("An assumption.",))
    subject = Subject("asked", "the script", "A question?", "A source.", "asked", 1)
    answer = answer_about_source(subject, found, "examples/asked.py")
    files = folder_files(answer, "python examples/asked.py")
    page = readable(files["report.html"].decode())
    assert f"One claim of the source is set beside ours: {'agrees' if holds else 'erratum'}." in page
    assert f"{'✓ agrees' if holds else '✗ erratum'}. For a reason.</td>" in page
    assert "<li>examples/asked.py (SHA-256" in page
    # A script is where it can be run: no study is kept beside its report.
    assert set(files) == {"comparison.csv", "report.html", "manifest.json"}


def test_the_panels_of_a_grid_are_in_rows_and_their_ticks_do_not_touch():
    table = pd.DataFrame(
        {"line": "a", "epsilon": [1e-4, 1e-2, 3.0], "value": [1e-6, 0.2, 5.0], "kind": ["x", "y", "y"]}
    )
    panel = Lines("a title", "ε", "y", log="xy", limits=(0.01, 10), least=0.01)
    drawn = Described("grid", "A grid.", table, (panel, replace(panel, only={"kind": "y"}), panel), height=5, across=2)
    figure = drawn.figure()
    first, second, third, legend = figure.axes
    assert first.get_position().y0 == second.get_position().y0 > third.get_position().y1
    assert [len(axes.get_lines()[0].get_xdata()) for axes in (first, second)] == [3, 2]
    assert min(first.get_lines()[0].get_ydata()) == 0.01
    assert [text.get_text() for text in legend.get_legend().get_texts()] == ["a"]
    for axes in (first, second, third):
        boxes = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
        assert len(boxes) > 1
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_one_small_file_that_asks_nobody_for_anything(written, name):
    page = written[name]["report.html"].decode()
    assert re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#)([^\"')\s>]+)", page) == []
    assert breaks(page) == []
    assert len(page.encode()) < 300_000
    # Each drawing has a description, and its identifiers are its own.
    assert page.count("<svg") >= page.count('role="img"') == page.count("<figcaption>") > 0
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("name", NAMES)
def test_every_drawing_is_written_with_its_numbers(written, findings, name):
    files = written[name]
    assert findings[name].drawings
    for drawing in findings[name].drawings:
        assert files[f"figures/{drawing.name}.png"].startswith(b"\x89PNG")
        assert b"<svg" in files[f"figures/{drawing.name}.svg"]
        lines = files[f"figures/{drawing.name}.csv"].decode().splitlines()
        assert len(lines) == len(drawing.table) + 1
    assert {path.split("/")[0] for path in files} == {
        "comparison.csv", "figures", "manifest.json", "report.html", "study.toml",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_lines_differ_in_more_than_colour(findings, name):
    for drawing in findings[name].drawings:
        for axes in drawing.figure().axes:
            looks = [
                (line.get_marker(), str(line.get_linestyle()))
                for line in axes.get_lines()
                if line.get_label()[0] != "_"
            ]
            assert len(set(looks)) == len(looks), drawing.name
            assert axes.get_xlabel()
            assert axes.get_title(loc="left")


def run(capsys, *arguments):
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize("name", NAMES)
def test_compare_prints_the_answer_and_writes_the_same_tables_and_words_each_time(
    capsys, tmp_path, written, findings, name
):
    code, out, err = run(capsys, "compare", name, "--out", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    *lines, last = out.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 26
    # What is as expected is counted; each of the others has its figures.
    said = " ".join(line.strip() for line in lines)
    assert readable(findings[name].summary) in readable(said)
    unexpected = [row for row in findings[name].rows if row.agreement not in {AGREES, INSIDE, PLAUSIBLE}]
    assert unexpected and said.count(" ours ") >= len(unexpected)
    assert all(f"{row.marked}: {row.figure}: {row.source}; ours {row.shown}" in said for row in unexpected)
    assert last == f"Report: {tmp_path / 'out' / 'report.html'}"
    for sentence in findings[name].lead:
        assert sentence in " ".join(lines)
    files = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*.*")}
    assert set(files) == set(written[name])
    tables = [path for path in files if path.endswith((".csv", ".toml"))]
    assert len(tables) > 2
    for path in tables:
        assert files[path].read_bytes() == written[name][path], path
    assert without_drawings(files["report.html"].read_bytes()) == without_drawings(written[name]["report.html"])


def without_drawings(page):
    # Their rules are in the page's style, whose digest its policy names.
    return re.sub(rb"<svg.*?</svg>|<style>.*?</style>|<meta http-equiv[^>]*>", b"", page, flags=re.DOTALL)


def test_a_file_that_was_written_can_be_run_again_to_the_same_bytes(capsys, tmp_path, written):
    folder = tmp_path / "sock-groups"
    folder.mkdir()
    (folder / "study.toml").write_bytes(written["sock-groups"]["study.toml"])
    assert run(capsys, "compare", str(folder / "study.toml"), "--out", str(tmp_path / "out"))[0] == 0
    made = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*.*")}
    # The study is not beside a manifest that it was handed to; the manifest holds the command and the digests.
    assert set(written["sock-groups"]) - {"study.toml"} == set(made) - {"study.toml"}
    for name in set(made) - {"manifest.json", "study.toml"}:
        assert made[name].read_bytes() == written["sock-groups"][name], name


@pytest.mark.usefixtures("blank_drawings")
def test_json_is_one_document_with_the_figures(capsys, tmp_path):
    code, out, err = run(capsys, "compare", "marital-status", "--json", "--seed", "5", "--out", str(tmp_path))
    assert (code, err) == (0, "")
    document = json.loads(out)
    table = pd.read_csv(tmp_path / "comparison.csv", dtype=str)
    assert [row["figure"] for row in document["figures"]] == list(table["figure"])
    assert document["figures"][0]["source"] == "176"
    assert document["manifest"]["question"]["seed"] == 5
    assert document["lead"]
    assert document["report"] == (tmp_path / "report.html").as_posix()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "sock-groups", "--policy", "optimal"), "--policy does not go with sock-groups"),
        (("compare", "sock-groups", "--price-list"), "--price-list does not go with sock-groups"),
        (("sensitivity", "sock-groups"), "sock-groups is a study of a source document: only compare runs it"),
        (("compare", "sock-group"), "did you mean 'sock-groups'?"),
    ],
)
def test_what_does_not_go_with_a_source_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_report_is_of_this_study(written, name):
    folder = Path(__file__).parents[3] / "reports" / name
    assert (folder / "study.toml").read_bytes() == written[name]["study.toml"]
    # Every figure of the source is there; ours may differ in the last digits from machine to machine.
    there = pd.read_csv(folder / "comparison.csv", dtype=str, keep_default_na=False)
    lines = written[name]["comparison.csv"].decode().splitlines()
    assert len(there) == len(lines) - 1
    assert [text in line for text, line in zip(there["source"], lines[1:], strict=True)] == [True] * len(there)
    assert {path for path in written[name] if not (folder / path).exists()} == set()

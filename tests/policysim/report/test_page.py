"""The page of a report made by hand: it holds its words safely, fetches nothing, and shows the answer at each ε."""

import html
import json
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from page_policy import breaks

from policysim.errors import OutputError
from policysim.report.contents import Drawing
from policysim.report.findings import Findings
from policysim.report.folder import folder_files
from policysim.report.page import answer_part, moving
from policysim.report.report import Report
from policysim.report.screen import Grid, Line, Option, Screen
from policysim.words import WIDEST

EPSILONS = (0.0, 0.5, 1.0, 4.0)
HARD = """is 1 < 2 & "safe"? </script><b onclick='x'>"""
TABLE = pd.DataFrame({"option": ["A", "B"], "value": [1.0, 2.0]})


def figure(_):
    """Two panels over epsilon."""
    drawn = Figure(figsize=(10, 4))
    for axes in drawn.subplots(1, 2):
        axes.plot([0.5, 1, 4], [1, 2, 3])
        axes.set_xscale("log")
    return drawn


def screen_at(epsilon):
    """Words that come and go with ε."""
    lines = [Line("Worth it?", f"at {epsilon}", (("from 3", HARD),)), Line("How sure", "199 of 200")]
    return Screen(
        title=f"Which treatment {HARD}",
        advice=f"Choose B at ε = {epsilon}.",
        about=("A model.",),
        options=(Option("A", "one", "hides everything"), Option("B", "drawn", f"up to ε = {epsilon}")),
        lines=tuple(lines if epsilon else lines[1:]),
        tables=(Grid(("ε", "A", "B"), tuple((f"{row}", "1", f"{epsilon}") for row in range(int(epsilon) + 1))),),
        notes=("A note.",) * (epsilon > 1),
        behind=(Grid(("row", "A"), (("one", "2"),), title="Behind", note="Of one.", name="options"),),
        warnings=("Beware.",),
    )


def report_of(screens=None):
    screens = {epsilon: screen_at(epsilon) for epsilon in EPSILONS} if screens is None else screens
    drawings = [
        Drawing(name, figure, f"Title of {name}", "A caption.", f"Seen in {name}.", "options.csv", EPSILONS)
        for name in ("frontier", "loss-by-group")
    ]
    nothing = pd.DataFrame()
    findings = Findings(options=TABLE, differences=nothing, harmed=nothing, leaks=nothing)
    return Report(
        findings=findings,
        screen=screens[1.0],
        screens=screens,
        drawings=drawings,
        identity={"study": {"name": "ward", "sha256": "0"}},
        arguments=("compare", "ward"),
        related={"ward-3-days": "over days"},
    )


@pytest.fixture(scope="module")
def files():
    return folder_files(report_of())


@pytest.fixture(scope="module")
def page(files):
    return files["report.html"].decode()


def readable(markup):
    """The text of a piece of the page, with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def test_the_page_has_all_words_and_fetches_nothing(files, page):
    assert breaks(page) == []
    text, screen = readable(page), screen_at(1.0)
    said = [screen.title, screen.advice, *screen.about, *(line.text for line in screen.lines), "Behind", "over days"]
    assert [words for words in said if " ".join(words.split()) not in text] == []
    manifest = json.loads(files["manifest.json"])
    assert manifest["answer"] == [f"{line.label}: {line.text}" for line in screen.lines]
    assert re.search("https?:", re.sub(r"http://www\.w3\.org/\S+", "", page)) is None
    beside = re.findall(r'(?:src|href)="(?!#)([^"]+)"', page)
    assert set(beside) - {"../ward-3-days/report.html"} <= set(files)
    assert {"options.csv", "manifest.json"} <= set(beside)
    identifiers = re.findall(r'\sid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert len(page) < 120_000


def test_what_the_policy_of_the_page_does_not_name_would_be_found(page):
    assert breaks(page.replace("<main>", '<main><p style="x">', 1)) == ["p style"]
    assert breaks(page.replace("<main>", '<main onclick="x">', 1)) == ["main onclick"]
    assert len(breaks(page.replace("</style>", " </style>", 1))) == 1
    assert len(breaks(page.replace('"use strict";', '"use strict"; ', 1))) == 1
    assert breaks(re.sub("<meta http-equiv.*", "", page, count=1)) != []


def test_the_slider_shows_the_answer_that_is_rendered_at_each_epsilon(page):
    report = report_of()
    found = json.loads(re.search(r'id="moving">(.*?)</script>', page, re.DOTALL)[1])
    assert found == moving(report)
    assert (found["labels"], found["position"]) == (["0", "0.5", "1", "4"], 2)
    assert found["answers"] == [answer_part(screen_at(epsilon)) for epsilon in EPSILONS]
    # Without a script the answer at the stated ε stands there.
    assert found["answers"][2].strip() in page


WORDS = st.text(alphabet=" aε<&\"'/", max_size=12).map("w{}".format)
ROWS = st.lists(st.tuples(WORDS, WORDS), max_size=3).map(tuple)
SCREENS = st.builds(
    Screen,
    title=WORDS,
    advice=WORDS,
    options=st.lists(st.builds(Option, WORDS, WORDS, WORDS), max_size=2).map(tuple),
    lines=st.lists(st.builds(Line, WORDS, WORDS, ROWS), max_size=2).map(tuple),
    tables=st.lists(st.builds(Grid, st.just(("ε", "B")), ROWS), max_size=2).map(tuple),
    notes=st.lists(WORDS, max_size=2).map(tuple),
)


@settings(max_examples=40)
@given(SCREENS)
def test_whatever_the_words_are_the_page_has_them_as_words(screen):
    part = answer_part(screen)
    lines = [(line.label, line.text) for line in screen.lines]
    cells = [text for grid in screen.tables for row in grid.rows for text in row]
    said = [screen.advice, *(text for line in lines for text in line), *cells, *screen.notes]
    text = readable(part)
    assert [words for words in said if " ".join(words.split()) not in text] == []
    assert part.count("<dd>") == len(lines)


def test_figures_have_words_a_table_and_a_marker_in_each_panel(files, page):
    for name in ("frontier", "loss-by-group"):
        assert files[f"figures/{name}.svg"].startswith(b"<?xml")
        (markup,) = re.findall(rf'<figure id="{name}">.*?</figure>', page, re.DOTALL)
        assert f'aria-label="Seen in {name}."' in markup and "<figcaption>A caption." in markup
        assert markup.count("data-marker") == 2 * (1 + (name == "frontier"))
    boxes = re.findall(r'<div class="scroll[^>]*>', page)
    assert all('role="region"' in box and 'tabindex="0"' in box and re.search('aria-label="[^"]', box) for box in boxes)


def test_the_first_figure_has_a_narrow_version_and_the_others_scroll_where_their_words_would_be_too_small(page):
    for place, markup in enumerate(re.findall(r"<figure id=.*?</figure>", page, re.DOTALL)):
        widths = [float(width) for width in re.findall(r'viewBox="0 0 ([\d.]+) ', markup)]
        assert len(widths) == (1 if place else 2)
        classes = re.findall(r'<svg [^>]*class="(\w+)"', markup)
        least = re.search(rf"\.{classes[0]}{{max-width:\d+px;--least:(\d+)px}}", page)
        assert 9 * int(least[1]) / widths[0] >= 11


def test_a_notebook_shows_the_same_words_and_runs_nothing():
    shown = report_of()._repr_html_()
    assert answer_part(screen_at(1.0)) in shown
    assert "<script" not in shown and "://" not in shown


def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        report_of().save(tmp_path / "file")
    monkeypatch.setattr(Report, "document", None)
    monkeypatch.setattr(Drawing, "at", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report_of().save(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@settings(max_examples=40)
@given(SCREENS)
def test_a_screen_is_at_most_100_columns_wide_and_brief_is_a_part_of_full(screen):
    brief, whole, full = (screen.text(brief=brief, full=full) for brief, full in ((1, 0), (0, 0), (0, 1)))
    assert max(map(len, full.splitlines()), default=0) <= WIDEST
    assert whole.startswith(brief.rstrip("\n")) and full.startswith(whole.rstrip("\n"))

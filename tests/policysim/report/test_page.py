"""The page: that it holds what it holds safely, and what its controls show."""

import html
import json
import re

import pytest
from drawings import draw_only
from page_policy import breaks
from report_pages import make_report
from small_studies import STUDY

from policies import AnyRecord, DecisionProblem
from policysim.decision.report import report as report_of
from policysim.errors import OutputError
from policysim.numbers import plain, to_places
from policysim.report import folder

FIGURES = ["frontier", "benefit-vs-lead", "benefit-parts", "loss-by-group", "acceptability", "price-list"]
PAGES = ["full", "bare"]
OWN = DecisionProblem([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]], [0.5, 0.5], AnyRecord())


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """No groups, no prices, no private policy; blank drawings."""
    text = re.sub(r"policies = .*", 'policies = ["best-fixed", "greedy"]', re.sub(r"by = .*", "", STUDY))
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        return make_report(tmp_path_factory.mktemp("bare"), text)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_described_and_its_numbers_are_linked(full, name):
    assert full.files[f"figures/{name}.svg"].startswith(b"<?xml")
    (figure,) = re.findall(rf'<figure id="{name}">.*?</figure>', full.page, re.DOTALL)
    assert re.search(r'role="img" aria-label="[^"]{40,}"', figure)
    (table,) = re.findall(r'href="([^"]+\.csv)"', figure)
    assert table in full.files


def test_no_figure_repeats_the_heading_above_it(full):
    figures = re.findall(r"<h3>(.*?)</h3>\n(<figure.*?</figure>)", full.page, re.DOTALL)
    assert [html.unescape(title) for title, _ in figures] == [drawing.title for drawing in full.report.drawings]
    for title, figure in figures:
        drawn = re.findall(r"<text[^>]*>(.*?)</text>", figure)
        assert [words for words in drawn if words.startswith(title.partition(",")[0])] == []


def test_the_slider_has_the_answer_at_each_epsilon(full):
    moving = full.moving
    assert moving["labels"] == [plain(epsilon) for epsilon in full.study.epsilons]
    for epsilon, answer in zip(full.study.epsilons, moving["answers"], strict=True):
        words = html.unescape(answer)
        screen = full.report.screens[epsilon]
        assert all(line.text in words for line in screen.lines)
        assert all(f">{cell}<" in words for grid in screen.tables for row in grid.rows for cell in row)
    # What stands on the page is what the slider shows at the stated ε.
    assert moving["answers"][moving["position"]] in full.page
    assert moving["labels"][moving["position"]] == "1"


def test_the_slider_of_the_weight_counts_versions(full):
    weight, details = full.moving["weight"], full.report.findings.details
    exchange = details.exchange
    counts = [float(re.search(r"counts for ([\d.,]+)", label)[1].replace(",", "")) for label in weight["labels"]]
    assert counts == sorted(set(counts))
    assert counts[0] == 0
    assert counts[-1] > max(details.zones["low"])
    for place, (count, text) in enumerate(zip(counts, weight["texts"], strict=True)):
        stated = place == weight["position"]
        share = exchange.better_share(details.lead_weight if stated else count * (details.unit_weight or 1))
        found = re.search(r"in (\d+) of (\d+) versions", text)
        assert int(found[1]) == share * int(found[2])
        assert text.startswith("B is better" if share >= 0.9 else "A is better" if share <= 0.1 else "The model cannot")
    assert str(details.zones["verdict"].iloc[0]) == "better"


def test_the_printed_numbers_of_all_options_are_there_at_each_epsilon(full):
    compare = full.moving["compare"]
    letters = [letter for letter, _ in compare["options"]]
    for epsilon, table in zip(full.study.epsilons, compare["tables"], strict=True):
        printed = {row[0]: row for row in full.report.screens[epsilon].tables[0].rows}
        for title, places, _, kind, values in table["rows"]:
            cells = [to_places(value, places) for value in values]
            assert tuple(cells or [""] * len(letters)) == printed[title][2 : 2 + len(letters)]
            assert bool(cells) == (kind != "rest")


def test_the_page_has_only_the_controls_that_its_numbers_allow():
    page = report_of(OWN, epsilons=[1.0]).page_data
    assert set(page) == {"compare"}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_asks_nobody_for_anything_and_its_names_are_its_own(name, request):
    made = request.getfixturevalue(name)
    # Its tables are beside it, and its manifest.
    beside = re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#)([^\"')\s>]+)", made.page)
    assert set(beside) <= set(made.files)
    assert {"manifest.json", "comparison.csv"} <= set(beside)
    assert re.search("https?:", re.sub(r"http://www\.w3\.org/\S+", "", made.page)) is None
    identifiers = re.findall(r'\sid="([^"]+)"', made.page)
    assert len(identifiers) == len(set(identifiers))
    assert breaks(made.page) == []
    assert len(made.files["report.html"]) < 300_000


def test_what_the_policy_does_not_name_would_be_found(full):
    assert breaks(full.page.replace("<main>", '<main><p style="x">', 1)) == ["p style"]
    assert breaks(full.page.replace("<main>", '<main onclick="x">', 1)) == ["main onclick"]
    assert len(breaks(full.page.replace("</style>", " </style>", 1))) == 1
    assert len(breaks(full.page.replace('"use strict";', '"use strict"; ', 1))) == 1
    assert breaks(re.sub("<meta http-equiv.*", "", full.page, count=1)) != []


def test_what_may_be_wider_than_the_page_scrolls_by_keyboard_and_tables_have_captions(full):
    boxes = re.findall(r'<div class="scroll[^>]*>', full.page)
    assert len(boxes) > 6
    assert all(re.search(r'role="region" aria-label="[^"]+" tabindex="0"', box) for box in boxes)
    assert full.page.count('<table class="options"') == len(
        re.findall(r'<table class="options".*\n<caption', full.page)
    )


def test_the_manifest_says_the_lines_of_the_page(full):
    said = json.loads(full.files["manifest.json"])["answer"]
    assert said == [f"{line.label}: {line.text}" for line in full.report.screen.lines]


@pytest.mark.usefixtures("blank_drawings")
def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    report = report_of(OWN, epsilons=[1.0])
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        report.save(tmp_path / "file")
    monkeypatch.setattr(folder, "page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.save(tmp_path / "new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_notebook_shows_the_lines_and_the_tables():
    report = report_of(OWN, epsilons=[0.5, 1.0])
    shown = report._repr_html_()
    assert shown.count("<dt>") == len(report.screen.lines)
    assert shown.count('class="options"') == len(report.screen.tables)
    assert "<script" not in shown
    assert "://" not in shown

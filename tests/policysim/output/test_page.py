"""The page: that it holds what it holds safely, and how it may be read; its numbers: test_answer_page.py."""

import json
import re

import pytest
from drawings import draw_only
from page_policy import breaks
from report_pages import make_report, readable
from small_studies import STUDY

FIGURES = ["frontier", "benefit-vs-lead", "benefit-parts", "loss-by-group", "price-list"]
PAGES = ["full", "bounded", "plain"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """No groups, no prices, no private policy; blank drawings."""
    text = re.sub(r"policies = .*", 'policies = ["best-fixed", "greedy"]', re.sub(r"by = .*", "", STUDY))
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        return make_report(tmp_path_factory.mktemp("plain"), text)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_described_and_its_numbers_are_linked(full, name):
    assert full.files[f"figures/{name}.svg"].startswith(b"<?xml")
    (figure,) = re.findall(rf'<figure id="{name}">.*?</figure>', full.page, re.DOTALL)
    assert re.search(r'role="img" aria-label="[^"]{40,}"', figure)
    assert "<figcaption>" in figure
    (table,) = re.findall(r'href="([^"]+\.csv)"', figure)
    assert table in full.files


def test_figures_over_epsilon_have_a_marker_in_each_panel(full):
    figure = re.search(r'<figure id="frontier">.*?</figure>', full.page, re.DOTALL)[0]
    panels = len(re.findall(r'id="[\w-]+-axes_\d+"', figure))
    assert panels >= 2
    assert figure.count("data-marker") == panels


def test_prices_and_groups_are_there_only_where_they_are_known(full, bounded, plain):
    assert {"prices.csv", "who.csv"} <= set(full.files)
    assert "prices.csv" not in bounded.files
    assert 'id="prices"' in full.page
    assert 'id="prices"' not in bounded.page
    assert "who.csv" not in plain.files
    assert 'id="loss-by-group"' not in plain.page


def test_a_bounded_limit_has_a_row_for_each_bound(bounded):
    rows = bounded.answer.options["policies"].pivot(index="row", columns="option", values="value")
    bounds = rows.loc[["optimal-unbeatable", "optimal-achievable"], "lost"]
    assert bounds.iloc[0] < bounds.iloc[1]
    # What is proven is the same for both.
    assert rows["least"].dropna().to_dict() == dict.fromkeys(bounds.index, pytest.approx(bounds.iloc[0]))
    for name in bounds.index:
        assert f'data-cell="policies/{name}/lost/1/value"' in bounded.page


def test_at_the_24_epsilons_of_covid_the_page_stays_below_300_kilobytes(full):
    assert len(full.study.epsilons) == 24
    assert len(full.files["report.html"]) < 300_000


@pytest.mark.parametrize("name", PAGES)
def test_the_page_asks_nobody_for_anything_and_its_names_are_its_own(name, request):
    report = request.getfixturevalue(name)
    # Its tables are beside it, and its manifest.
    beside = re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#)([^\"')\s>]+)", report.page)
    assert set(beside) <= set(report.files)
    assert "manifest.json" in beside
    assert re.search("https?:", re.sub(r"http://www\.w3\.org/\S+", "", report.page)) is None
    identifiers = re.findall(r'\sid="([^"]+)"', report.page)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_nothing_that_its_policy_does_not_name(name, request):
    assert breaks(request.getfixturevalue(name).page) == []


def test_what_the_policy_does_not_name_would_be_found(full):
    assert breaks(full.page.replace("<main>", '<main><p style="x">', 1)) == ["p style"]
    assert breaks(full.page.replace("<main>", '<main onclick="x">', 1)) == ["main onclick"]
    assert len(breaks(full.page.replace("</style>", " </style>", 1))) == 1
    assert len(breaks(full.page.replace('"use strict";', '"use strict"; ', 1))) == 1
    assert breaks(re.sub("<meta http-equiv.*", "", full.page, count=1)) != []


def test_what_may_be_wider_than_the_page_scrolls_by_keyboard_and_has_a_name(full):
    boxes = re.findall(r'<div class="scroll[^>]*>', full.page)
    assert len(boxes) > 6
    assert all(re.search(r'role="region"', box) and re.search(r'aria-label="[^"]+"', box) for box in boxes)
    assert all('tabindex="0"' in box for box in boxes)


def test_the_manifest_says_the_six_lines_of_the_page(full):
    manifest = json.loads(full.files["manifest.json"])
    assert len(manifest["answer"]) == 6
    text = readable(full.page)
    for said in manifest["answer"]:
        assert said.partition(": ")[2] in text

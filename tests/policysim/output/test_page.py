"""The page: what it holds, in which order, and that it holds it safely."""

import io
import json
import math
import re
from itertools import pairwise

import pandas as pd
import pytest
from drawings import draw_only
from page_policy import breaks
from report_pages import make_report, readable
from small_studies import STUDY

from policysim.figures.benefit import SHADED
from policysim.question.formats import percent_1_up
from policysim.question.words import level_name
from policysim.study.basis import OUTSIDE

LAYERS = ["The evidence", "The appendix"]
ORDER = [
    "The policies at ε = 1",
    "Example patients",
    "Who bears the loss",
    "What the benefit is made of",
    "Benefit against deaths",
    "What an observer learns",
    "The price list, by feature",
    "If the model is wrong",
    "The limit",
    "Loss, error and variation",
    "The sensitivity, and what drives it",
    "Method",
    "Reproduce",
]
FIGURES = ["frontier", "benefit-vs-deaths", "benefit-parts", "loss-by-group", "price-list"]


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """No groups, no prices, no private policy; blank drawings."""
    text = re.sub(r"policies = .*", 'policies = ["best-fixed", "greedy"]', re.sub(r"by = .*", "", STUDY))
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        return make_report(tmp_path_factory.mktemp("plain"), text)


def subjects_of(page):
    """What each section is about: the line above its finding, or the heading itself."""
    return [readable(found) for found in re.findall(r"<hgroup[^>]*><(?:p|h3)[^>]*>(.*?)</", page)]


def test_sections_come_in_the_order_of_the_questions(full):
    assert [readable(title) for title in re.findall(r"<h2.*?>(.*?)</h2>", full.page)] == LAYERS
    assert subjects_of(full.page) == ORDER
    levels = [int(level) for level in re.findall(r"<h(\d)", full.page)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_what_the_guarantee_does_not_cover_stands_once_beside_it(full):
    beside = readable(full.page.partition('id="observer"')[2].partition("<hgroup")[0])
    for said in OUTSIDE:
        assert said in beside
        assert readable(full.page).count(said) == 1


def test_the_finding_is_the_title_and_the_question_stands_above_it(full):
    title = full.page.partition("<main>")[2].partition("</header>")[0]
    finding = json.loads(full.files["manifest.json"])["headline"]["finding"]
    assert readable(re.search(r"<h1>(.*?)</h1>", title)[1]) == finding
    assert readable(title).startswith(full.study.title)


def test_the_contents_lead_to_every_section(full):
    contents = full.page.partition('<nav class="contents"')[2].partition("</nav>")[0]
    entries = re.findall(r'href="#([^"]+)">(.*?)</a>', contents)
    assert [readable(text) for _, text in entries] == [LAYERS[0], *ORDER[:8], LAYERS[1], *ORDER[8:]]
    identifiers = re.findall(r'\sid="([^"]+)"', full.page)
    assert [name for name, _ in entries if identifiers.count(name) != 1] == []


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_described_and_has_its_numbers_beside_it(full, name):
    assert full.files[f"figures/{name}.svg"].startswith(b"<?xml")
    assert full.files[f"figures/{name}.png"].startswith(b"\x89PNG")
    (figure,) = re.findall(rf'<figure id="{name}">.*?</figure>', full.page, re.DOTALL)
    assert re.search(r'role="img" aria-label="[^"]{40,}"', figure)
    assert "<figcaption>" in figure


def test_figures_over_epsilon_have_a_marker_in_each_panel(full):
    for figure in re.findall(r"<figure .*?</figure>", full.page, re.DOTALL):
        panels = len(re.findall(r'id="[\w-]+-axes_\d+"', figure))
        assert figure.count("data-marker") == panels


def cells_of(table):
    """The text of each cell, row by row."""
    rows = table.partition("</tbody>")[0].split("<tr")[1:]
    return [[readable(cell) for cell in re.split(r"<t[hd][^>]*>", row)[1:]] for row in rows]


def test_the_groups_and_their_losses_are_those_of_the_comparison(full):
    (_, _, policy, _), *lines = cells_of(full.page.partition("Who bears the loss, as a table")[2])
    rows = full.table[(full.table["epsilon"] == 1) & (full.table["group"] != "all")]
    for name, column in ((policy, 2), ("best-fixed", 3)):
        mine = rows[rows["policy"] == name]
        names = [level_name(*pair) for pair in zip(mine["group"], mine["level"], strict=True)]
        losses = dict(zip(names, mine["loss"], strict=True))
        assert sorted(line[0] for line in lines) == sorted(losses)
        for line in lines:
            assert float(line[column]) == pytest.approx(losses[line[0]], rel=0.05, abs=1e-9)
    # Whoever loses most under the policy that is shown comes first.
    shown = [float(line[2]) for line in lines]
    assert shown == sorted(shown, reverse=True)


def test_prices_are_there_if_asked_for_and_how_to_ask_if_not(full, bounded):
    prices = pd.read_csv(io.BytesIO(full.files["prices.csv"]))
    table = full.page.partition("What the best mechanism costs")[2].partition("</table>")[0]
    assert table.count("<tr>") == 1 + len(prices)
    assert "policysim compare study.toml --price-list adds it here" in readable(bounded.page)
    assert "prices.csv" not in bounded.files


def limit_of(page):
    return readable(page.partition('<hgroup id="limit">')[2].partition("<hgroup")[0])


def test_a_bounded_limit_is_an_interval(bounded):
    rows = bounded.table[bounded.table["epsilon"] == 1].set_index("policy")
    low = f"{math.floor(100 * rows['benefit_kept']['optimal-achievable'])} %"
    high = f"{math.ceil(100 * rows['most_kept']['optimal-unbeatable'])} %"
    assert (
        f"some policy keeps {low} of the benefit. Proven, at ε = 1: no mechanism that gives what it publishes, known"
        in limit_of(bounded.page)
    )
    tenths = readable(percent_1_up(rows["most_kept"]["optimal-unbeatable"]))
    assert f"so that none keeps more than {tenths} of the benefit" in limit_of(bounded.page)
    assert f"some policy keeps {low}, and no mechanism that gives what it publishes keeps more than {high}" in readable(
        bounded.page
    )


def test_the_limit_is_said_as_far_as_it_is_proven(full):
    row = full.table[(full.table["epsilon"] == 1) & (full.table["policy"] == "optimal")].iloc[0]
    said = limit_of(full.page)
    assert f"none keeps more than {readable(percent_1_up(row['most_kept']))} of the benefit" in said
    least = float(re.search(r"loses less than ([\d.]+) in utility per patient", said)[1])
    assert row["least_loss"] * 0.9 < least <= row["least_loss"]
    assert "the limit: no mechanism that gives what it publishes is worth more, proven" in full.page
    assert SHADED in full.page


def test_a_page_without_groups_and_private_policies_leaves_their_parts_out(plain):
    titles = subjects_of(plain.page)
    assert "Who bears the loss" not in titles
    assert "No private mechanism was compared" in plain.page


def test_at_the_24_epsilons_of_covid_the_page_stays_below_300_kilobytes(full):
    assert len(full.study.epsilons) == 24
    assert len(full.files["report.html"]) < 300_000


@pytest.mark.parametrize("name", ["full", "bounded", "plain"])
def test_the_page_asks_nobody_for_anything_and_its_names_are_its_own(name, request):
    page = request.getfixturevalue(name).page
    # The manifest is beside the page.
    assert re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#)([^\"')\s>]+)", page) == ["manifest.json"]
    assert re.search("https?:", page) is None
    identifiers = re.findall(r'\sid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("name", ["full", "bounded", "plain"])
def test_the_page_has_nothing_that_its_policy_does_not_name(name, request):
    assert breaks(request.getfixturevalue(name).page) == []


def test_what_the_policy_does_not_name_would_be_found(full):
    assert breaks(full.page.replace("<main>", '<main><p style="x">', 1)) == ["p style"]
    assert breaks(full.page.replace("<main>", '<main onclick="x">', 1)) == ["main onclick"]
    assert len(breaks(full.page.replace("</style>", " </style>", 1))) == 1
    assert len(breaks(full.page.replace('"use strict";', '"use strict"; ', 1))) == 1
    assert breaks(re.sub("<meta http-equiv.*", "", full.page, count=1)) != []


def test_titles_are_escaped(full):
    assert "Is 1 &lt; 2 &amp; &#34;safe&#34;?" in full.page
    assert "<title>Is 1 < 2" not in full.page


def test_what_may_be_wider_than_the_page_scrolls_by_keyboard_and_has_a_name(full):
    boxes = re.findall(r'<div class="scroll[^>]*>', full.page)
    assert len(boxes) > 8
    assert all(re.search(r'role="region" tabindex="0" aria-label="[^"]+"', box) for box in boxes)
    assert full.page.count("<table") + full.page.count('role="img"') + full.page.count("<pre>") == len(boxes)


def test_the_manifest_says_the_answer(full):
    manifest = json.loads(full.files["manifest.json"])
    assert len(manifest["answer"]) == 3
    assert all(sentence in readable(full.page) for sentence in map(readable, manifest["answer"]))

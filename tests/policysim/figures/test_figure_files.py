"""SVG, PNG and PDF: the same bytes each time, real text, nothing from elsewhere."""

import re
from xml.etree import ElementTree

import pytest
from figure_cases import CASES, every_figure
from matplotlib.figure import Figure
from svg_boxes import text_boxes

from policysim import figures
from policysim.figures.writing import inline


# Every second figure; two processes draw the others in tests/policysim/report/test_determinism.py.
@pytest.mark.parametrize(("draw", "name"), CASES[::2])
def test_the_same_table_gives_the_same_bytes(request, drawn, draw, name):
    one, other = drawn(draw, name, "page"), draw(request.getfixturevalue(name).copy())
    assert figures.to_svg(one) == figures.to_svg(other)
    # One for all: which letters and lines there are is in the SVG.
    if draw is figures.price_bars:
        assert figures.to_pdf(one) == figures.to_pdf(other)
        assert figures.to_png(one) == figures.to_png(other)


def test_svg_has_real_text_a_title_and_a_description(comparison):
    figure = figures.frontier(comparison)
    svg = figures.to_svg(figure, title="Loss & <ε>", description="A line > per policy.")
    root = ElementTree.fromstring(svg)
    assert [element.tag.rpartition("}")[2] for element in root][:2] == ["title", "desc"]
    assert [element.text for element in root][:2] == ["Loss & <ε>", "A line > per policy."]
    assert root.attrib["role"] == "img"
    assert {"benefit kept", "optimal (the limit)"} <= {words for words, _ in text_boxes(svg)}
    plain = ElementTree.fromstring(figures.to_svg(figure))
    assert "role" not in plain.attrib and plain.find("{http://www.w3.org/2000/svg}title") is None


def test_no_file_holds_a_date_or_an_address(comparison):
    figure = figures.frontier(comparison)
    svg = figures.to_svg(figure)
    assert set(re.findall(r"https?://[^\"]+", svg)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd",
    }
    assert b"CreationDate" not in figures.to_pdf(figure)
    assert "date" not in svg.lower()
    # Nor do files depend on a page.
    assert "var(" not in svg


def test_names_with_signs_of_formulas_are_words(choices):
    table = choices.replace({"healthy": "pays $5 or $6_a", "syrup": "a_b^c&<d>"})
    words = {words for words, _ in text_boxes(figures.to_svg(figures.action_probabilities(table)))}
    assert {"pays $5 or $6_a", "a_b^c&<d>"} <= words


def test_letters_that_the_font_lacks_are_drawn_without_warnings_and_stay_text_in_svg(choices, at_one):
    """Warnings are errors in tests."""
    figure = figures.action_probabilities(choices.replace({"syrup": "日本語", "healthy": "健康 ok"}))
    svg = figures.to_svg(figure)
    assert ">日本語</text>" in svg and ">健康 ok</text>" in svg
    assert figures.to_png(figure) and figures.to_pdf(figure)
    groups = figures.loss_by_group(at_one.replace({"old": "日本語"}))
    assert ">age 日本語 (" in figures.to_svg(groups)


@every_figure
def test_on_a_page_every_colour_follows_the_theme_and_the_markup_is_small(drawn, draw, name):
    svg = figures.to_svg(drawn(draw, name, "page"))
    page = inline(svg, "f0")
    assert re.findall(r"(?<!,)#[0-9a-f]{6}\b", page) == []
    assert len(page.encode()) < 40_000
    ElementTree.fromstring(page)


def test_names_made_in_python_break_no_file():
    figure = Figure()
    figure.subplots().set_title("a\x1b[31mb\u202e\x00")
    svg = figures.to_svg(figure, title="c\x9bd")
    assert r"a\x1b[31mb\u202e\x00" in svg
    ElementTree.fromstring(svg)
    assert r"a\x1b[31mb" in inline(svg, "f0")

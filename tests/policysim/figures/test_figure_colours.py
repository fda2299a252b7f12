"""Colours of figures on a page: one list with a light and a dark value each, readable in both; groups of policies."""

import re
from xml.etree import ElementTree

import pytest

from policysim import figures
from policysim.figures.looks import COLOURS, LEVELS, NAMED_COLOURS, POLICY_LOOKS
from policysim.figures.writing import inline
from policysim.report.page import TEMPLATES

BLOCK = (TEMPLATES / "figures.css").read_text()
TEXT, MARK = 4.5, 3.0
# What is drawn behind, beside or between, and tells nothing by itself.
BACKGROUND = {"paper", "line", "shade", "stripe"}


def listed(block):
    return {name: "#" + "".join(2 * c for c in code) if len(code) == 3 else f"#{code}"
            for name, code in re.findall(r"--c-(\w+): #([0-9a-f]{6}|[0-9a-f]{3});", block)}  # fmt: skip


light = listed(BLOCK[: BLOCK.index("@media")])
dark = listed(BLOCK[BLOCK.index("@media") : BLOCK.index("svg {")])


def luminance(colour):
    codes = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [code / 12.92 if code <= 0.04045 else ((code + 0.055) / 1.055) ** 2.4 for code in codes]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """As WCAG 2.2 defines it."""
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def mixed(colour, paper, share):
    """A colour that is so opaque, on paper."""
    parts = [[int(each[place : place + 2], 16) for place in (1, 3, 5)] for each in (colour, paper)]
    return "#" + "".join(f"{round(share * one + (1 - share) * two):02x}" for one, two in zip(*parts, strict=True))


def test_each_colour_of_figures_is_listed_once_with_a_light_and_a_dark_value():
    assert set(light) == set(dark) == {*NAMED_COLOURS.values(), "marker"}
    assert {name: light[name] for name in NAMED_COLOURS.values()} == {
        name: code.lower() for code, name in NAMED_COLOURS.items()
    }
    used = {*COLOURS, *(look.colour for look in LEVELS)}
    used |= {look.colour for look in POLICY_LOOKS.values()}
    assert used <= set(NAMED_COLOURS)


@pytest.mark.parametrize("theme", [light, dark], ids=["light", "dark"])
def test_words_and_marks_stand_out_in_both_themes(theme):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for behind in ("paper", "stripe"):
        assert contrast(theme["black"], theme[behind]) >= TEXT
    # "no mechanism can" stands on what is shaded, and names of fields on a map on tints of blue.
    assert contrast(theme["black"], mixed(theme["shade"], theme["paper"], 0.45)) >= TEXT
    assert contrast(theme["black"], mixed(theme["blue"], theme["paper"], 0.42)) >= TEXT
    for name in set(theme) - BACKGROUND:
        assert contrast(theme[name], theme["paper"]) >= MARK, name


@pytest.fixture(scope="module")
def drawn(curve):
    return [figures.frontier(curve), figures.loss_by_group(curve[curve["epsilon"] == 1])]


def test_what_belongs_to_a_policy_stands_in_a_group_with_its_name(drawn, curve):
    root = ElementTree.fromstring(inline(figures.to_svg(drawn[0]), "f0"))
    groups = root.findall(".//g[@data-policy]")
    names = {group.get("data-policy") for group in groups}
    assert names == set(curve["policy"])
    for name in names:
        parts = [part.tag for group in groups if group.get("data-policy") == name for part in group.iter()]
        assert "path" in parts or "use" in parts
    told = {part.text for group in groups for part in group.iter("text")}
    assert not told & {"benefit kept", "0%"}
    identifiers = re.findall(r'\bid="([^"]*)"', figures.to_svg(drawn[0]))
    assert len(identifiers) == len(set(identifiers))


def test_styles_that_figures_of_a_page_share_are_said_once(drawn):
    styles = {}
    pages = [inline(figures.to_svg(figure), f"f{place}", styles=styles) for place, figure in enumerate(drawn)]
    assert len(set(styles.values())) == len(styles)
    named = [set(re.findall(r'class="([^"]+)"', page)) for page in pages]
    assert named[0] & named[1]
    assert named[0] | named[1] == set(styles.values())
    assert not any("style" in page for page in pages)

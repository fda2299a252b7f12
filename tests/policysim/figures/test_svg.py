"""Figures as parts of a page: smaller, with distinct names, and markers where epsilon is."""

import math
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from policysim import figures
from policysim.figures.writing import epsilon_markers, inline
from policysim.study.sweep import EPSILONS

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 72 36">'


@pytest.fixture(scope="module")
def drawn(curve):
    figure = figures.frontier(curve)
    return figure, figures.to_svg(figure)


def lines(svg):
    """The open paths of at least three corners."""
    paths = re.findall(r'<path d="(M[^"zC]*)"', svg)
    found = [np.array(re.findall(r"-?[\d.]+", path), dtype=float).reshape(-1, 2) for path in paths]
    return [line for line in found if len(line) > 2]


def test_every_line_is_where_it_was_to_a_tenth_of_a_point(drawn):
    before, after = lines(drawn[1]), lines(inline(drawn[1], "f0"))
    assert len(before) > 10
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, atol=0.051)


def test_it_is_less_than_half_the_size_and_keeps_its_words(drawn):
    small = inline(drawn[1], "f0")
    assert len(small) < len(drawn[1]) / 2
    texts = [re.findall(r"<text[^>]*>([^<]*)</text>", svg) for svg in (drawn[1], small)]
    assert texts[0] == texts[1] != []


def test_only_the_first_run_of_lines_loses_its_letters():
    path = '<path d="M 0 0 \nL 1.001 1 \nL 2 2 \nC 1 1 2 2 3 3 \nL 4 4 \nz\n"/></svg>'
    assert 'd="M0 0 1 1 2 2C1 1 2 2 3 3L4 4z"' in inline(HEAD + path, "f0")


def test_names_of_figures_never_meet(drawn):
    one, other = {}, {}
    page = inline(drawn[1], "f1", styles=one) + inline(drawn[1], "f11", styles=other)
    for names in (re.findall(r'\bid="([^"]+)"', page), [*one.values(), *other.values()]):
        assert len(names) == len(set(names)) > 0
    referred = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page))
    assert referred <= set(re.findall(r'\bid="([^"]+)"', page))
    assert set(re.findall(r'class="([^"]+)"', page)) == {*one.values(), *other.values()}


def test_markers_stand_at_the_ticks_of_their_epsilon(drawn):
    figure, svg = drawn
    markers = epsilon_markers(figure, EPSILONS)
    assert len(markers) == 2
    place = EPSILONS.index(1.0)
    markup = inline(svg, "f0", markers=markers, position=place)
    lines = re.findall(r'<line data-marker="" data-x="([^"]*)" x1="([\d.]+)" x2="([\d.]+)"', markup)
    tick = r'<g id="f0-xtick_\d+">(?:(?!</g>).)*?<use [^>]*?x="([\d.]+)"[^>]*/><text[^>]*>([\d.]+)<'
    ones = [float(x) for x, label in re.findall(tick, markup) if label == "1"]
    assert len(lines) == len(ones) == 2
    for (places, start, end), one in zip(lines, ones, strict=True):
        assert start == end == places.split()[place]
        # Both are rounded to a tenth of a point.
        assert float(start) == pytest.approx(one, abs=0.101)
        assert len(places.split()) == len(EPSILONS)
        assert (np.diff([float(x) for x in places.split()]) > 0).all()


def test_an_epsilon_without_a_place_on_the_axis_has_no_marker():
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0.5, 2], [0, 1])
    axes.set_xscale("log")
    svg = figures.to_svg(figure)
    (marker,) = epsilon_markers(figure, [0.0, 1.0, math.inf])
    assert [math.isnan(place) for place in marker.places] == [True, False, True]
    markup = inline(svg, "f0", markers=[marker], position=0)
    assert re.search(r'data-x="- [\d.]+ -" x1="-9" x2="-9"', markup)

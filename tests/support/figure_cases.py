"""Every figure, with the fixtures of tests/policysim/figures/conftest.py that it is drawn from."""

from itertools import combinations

import pytest
from svg_boxes import overlap, text_boxes, text_sizes

from policysim import figures

LEAST = 6.0

# Each figure with the tables that it is drawn from here.
CASES = [
    (figures.frontier, "comparison"),
    (figures.frontier, "logged"),
    (figures.action_probabilities, "choices"),
    (figures.loss_by_group, "at_one"),
    (figures.forest, "logged_at_one"),
    (figures.benefit_parts, "parts"),
    (figures.price_bars, "prices"),
    (figures.patient_losses, "losses"),
    (figures.value_over_days, "course"),
    (figures.ways_over_days, "ways"),
    (figures.published_over_days, "given_daily"),
    (figures.publishing, "published"),
    (figures.trade_off, "errors"),
]
every_figure = pytest.mark.parametrize(("draw", "name"), CASES, ids=[f"{draw.__name__}-{name}" for draw, name in CASES])


def wrong(figure, svg=None):
    """What is too small, cut off, or on something else; its SVG is made unless it is given."""
    svg = svg or figures.to_svg(figure)
    boxes, (right, bottom) = text_boxes(svg), (72 * side for side in figure.get_size_inches())
    small = [words for words, size in text_sizes(svg) if size < LEAST]
    cut = [words for words, (x0, x1, y0, y1) in boxes if x0 < 0 or x1 > right or y0 < 0 or y1 > bottom]
    return small, cut, [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if overlap(a, b)]


every_size = pytest.mark.parametrize("size", figures.SIZES)

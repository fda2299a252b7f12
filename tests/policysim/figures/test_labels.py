"""Names beside lines, words in lines, numbers of axes: where they go."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from scipy.optimize import minimize

from policysim import figures
from policysim.figures.layout import LIKE, spread_out
from policysim.figures.lettering import set_log_ticks, thin_ticks, width_of, wrapped

FONT = FontProperties(size=9)
boxes = st.lists(st.tuples(st.floats(-50, 150), st.floats(1, 20)), min_size=1, max_size=12)


@given(boxes)
def test_boxes_never_overlap_stay_in_order_and_within_bounds_if_there_is_room(drawn):
    wanted, heights = (np.array(column) for column in zip(*sorted(drawn), strict=True))
    centres = spread_out(wanted, heights, 0.0, 100.0)
    assert (np.diff(centres) >= (heights[1:] + heights[:-1]) / 2 - 1e-9).all()
    assert centres[0] - heights[0] / 2 >= -1e-9
    if heights.sum() <= 100:
        assert centres[-1] + heights[-1] / 2 <= 100 + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_no_other_places_are_nearer_to_what_is_wanted(seed):
    """Against a general optimiser of the same quadratic programme."""
    rng = np.random.default_rng(seed)
    heights = rng.uniform(4, 12, 6)
    wanted = np.sort(rng.uniform(20, 60, 6))
    constraints = [
        {"type": "ineq", "fun": lambda x: np.diff(x) - (heights[1:] + heights[:-1]) / 2},
        {"type": "ineq", "fun": lambda x: np.array([x[0] - heights[0] / 2, 100 - x[-1] - heights[-1] / 2])},
    ]
    found = minimize(lambda x: ((x - wanted) ** 2).sum(), np.linspace(5, 95, 6), constraints=constraints)
    assert found.success
    assert spread_out(wanted, heights, 0.0, 100.0) == pytest.approx(found.x, abs=1e-3)


@given(st.lists(st.text("ab-", min_size=1, max_size=12), min_size=1, max_size=8), st.floats(20, 200))
def test_wrapping_loses_no_letter_and_no_line_is_too_wide(words, width):
    text = " ".join(words)
    lines = wrapped(text, width, FONT).split("\n")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(lines)
    for line in lines:
        assert width_of(line, FONT) <= width


def test_words_are_broken_at_hyphens_only_where_a_word_alone_is_too_wide():
    assert wrapped("one for all (best-fixed)", width_of("one for all (best", FONT), FONT) == "one for all\n(best-fixed)"
    assert wrapped("randomized-response", width_of("randomized-x", FONT), FONT) == "randomized-\nresponse"


def test_a_word_that_is_too_wide_even_between_hyphens_is_broken_anywhere():
    width = width_of("mmmmm", FONT)
    assert wrapped("m" * 12 + " x-y", width, FONT) == "mmmmm\nmmmmm\nmm x-y"
    assert wrapped("日" * 5, width_of("日日", FONT), FONT) == "日日\n日日\n日"


def test_a_single_sign_stays_with_the_next_word():
    name = "zidovudine + didanosine"
    assert wrapped(name, width_of("+ didanosine", FONT), FONT) == "zidovudine\n+ didanosine"
    # Too narrow for the sign with the next word: it stays with the one before.
    assert wrapped(name, width_of("zidovudine +", FONT), FONT) == "zidovudine +\ndidanosine"
    assert wrapped(name, 1e6, FONT) == name


def test_names_of_two_treatments_are_broken_before_the_plus_at_every_size(choices):
    long = choices.replace({"syrup": "zidovudine + didanosine", "none": "zidovudine + zalcitabine"})
    for size in figures.SIZES:
        figure = figures.action_probabilities(long, size=size)
        lines = {line for axes in figure.axes for text in axes.texts for line in text.get_text().split("\n")}
        assert "+" not in lines
        assert lines <= {"zidovudine", "+ didanosine", "+ zalcitabine", *long["action"]}


def numbers(width, low, high):
    """The numbers that are left on a log axis of a width (inches)."""
    figure = Figure(figsize=(width, 1))
    axes = figure.add_axes((0, 0.5, 1, 0.5))
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    set_log_ticks(axes.xaxis, low, high)
    thin_ticks(axes)
    return [text.get_text() for text in axes.get_xticklabels() if text.get_text()]


def test_numbers_of_a_log_axis_give_way_to_powers_of_ten():
    assert numbers(6.0, 0.1, 20) == ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]
    assert numbers(1.0, 0.1, 20) == ["0.1", "1", "10"]
    # A few may be missing.
    assert 7 <= len(numbers(2.0, 0.05, 20)) < 9 and {"0.1", "1", "10"} <= set(numbers(2.0, 0.05, 20))
    # One power of ten would be no axis.
    assert numbers(0.3, 0.2, 5) == ["1", "5"]


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (2000, 20000, ["2,000", "5,000", "10,000", "20,000"]),
        (1e-5, 3e-4, ["0.00001", "0.00002", "0.00005", "0.0001", "0.0002"]),
        (3e6, 2e7, ["5e+06", "1e+07", "2e+07"]),
        (3, 4, ["3", "4"]),
    ],
)
def test_a_log_axis_has_numbers_in_any_range(low, high, shown):
    assert numbers(8.0, low, high) == shown


def test_names_are_in_the_order_of_the_ends_of_their_lines(course):
    figure = figures.value_over_days(course)
    for axes in figure.axes:
        names = sorted((text.xy[1], text.get_text().replace("\n", " ")) for text in axes.texts if text.xy[0] == 1)
        lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
        ends = {line.get_label(): line.get_ydata()[-1] for line in lines}
        # Lines that are alike share a name.
        shared = [name.replace("- ", "-").split(f" {LIKE}") for _, name in names]
        ordered = [ends[first] for first, *_ in shared]
        # Ends that differ by rounding alone are the same.
        assert all(low <= high + 1e-8 * abs(high) for low, high in pairwise(ordered))
        assert sorted(name for each in shared for name in each) == sorted(ends)

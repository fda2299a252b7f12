"""Words in lines and numbers of axes: where they go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from policysim.figures.lettering import set_log_ticks, thin_ticks, width_of, wrapped

FONT = FontProperties(size=9)


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

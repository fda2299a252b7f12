"""Numbers in words show two digits and no more."""

import math
from fractions import Fraction

import numpy as np
import pytest

from policysim.question.formats import (
    percent,
    percent_1,
    percent_up,
    plain,
    population,
    rounded,
    rounded_down,
    rounded_up,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3905.2, "3,900"),
        (99.6, "100"),
        (0.0996, "0.10"),
        (0.155694, "0.16"),
        (1.0, "1.0"),
        (9.96, "10"),
        (-12.4, "−12"),
        (math.inf, "∞"),
        (math.nan, "–"),
        (0.000123, "0.00012"),
        (1e6, "1,000,000"),
    ],
)
def test_two_digits(value, text):
    assert rounded(value) == text


def test_a_sign_is_shown_on_request_but_not_on_zero():
    assert rounded(97.6, sign=True) == "+98"
    assert rounded(-0.5, sign=True) == "−0.50"
    assert rounded(0.0, sign=True) == "0"


def test_percentages_are_whole():
    assert percent(0.8) == "80\u00a0%"
    assert percent(-0.646) == "−65\u00a0%"
    assert percent(-0.001) == "0\u00a0%"
    assert percent(math.nan) == "–"


def test_deaths_are_counted_among_the_power_of_ten_that_shows_two_digits():
    assert population([0.0053, 0.003]) == 100_000
    assert population([0.00011, 0.0]) == 100_000
    assert population([0.000099]) == 1_000_000
    assert population([0.0, 0.0]) == 100_000
    assert population([-0.0000012]) == 10_000_000


@pytest.mark.parametrize(
    ("epsilon", "text"), [(0.05, "0.05"), (1.0, "1"), (5000.0, "5,000"), (math.inf, "∞"), (math.nan, "–")]
)
def test_an_epsilon_is_written_in_one_way(epsilon, text):
    assert plain(epsilon) == text


def test_nothing_has_no_sign():
    assert percent_1(-0.0001) == "0.0\u00a0%"
    assert percent_1(-0.001) == "−0.1\u00a0%"


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (1.9785, "1.9", "2.0"),
        (2.6648, "2.6", "2.7"),
        (2.0, "2.0", "2.0"),
        (0.0996, "0.099", "0.10"),
        (9.96, "9.9", "10"),
        (99.99, "99", "100"),
        (4583.0, "4,500", "4,600"),
        (-0.355, "−0.36", "−0.35"),
        (0.00001234, "1.2e−05", "1.3e−05"),
        (0.0000999, "9.9e−05", "0.00010"),
        (math.inf, "∞", "∞"),
        (0.0, "0", "0"),
        (math.nan, "–", "–"),
    ],
)
def test_a_bound_is_rounded_to_the_side_that_claims_less(value, down, up):
    assert (rounded_down(value), rounded_up(value)) == (down, up)


def test_no_digits_of_a_bound_ever_claim_more():
    rng = np.random.default_rng(0)
    for value in (rng.choice([-1, 1], 500) * 10 ** rng.uniform(-9, 9, 500)).tolist():
        for digits in (1, 2, 3, 6):
            low, high = (
                Fraction(shown(value, digits).replace(",", "").replace("−", "-"))
                for shown in (rounded_down, rounded_up)
            )
            assert low <= Fraction(value) <= high
            assert high - low <= abs(Fraction(value)) / 10 ** (digits - 1) * (1 + Fraction(1, 10**9))


def test_a_share_that_nothing_exceeds_is_rounded_up():
    assert [percent_up(share) for share in (0.301, 0.3, 1.0, -0.017, 0.0, 1e-15, math.nan)] == [
        "31\u00a0%", "30\u00a0%", "100\u00a0%", "−1\u00a0%", "0\u00a0%", "0\u00a0%", "–",
    ]  # fmt: skip

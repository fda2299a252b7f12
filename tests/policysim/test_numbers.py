"""Each text of a number, worked out by hand: where it is rounded, beside 0, at infinity and for NaN.

The examples in the docstrings of numbers.py are tests, too.
"""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from policysim import numbers as formats

INF, NAN, PERCENT = math.inf, math.nan, "\u00a0%"

TEXTS = [
    # The nearest number of two digits, where it carries into another digit, too.
    ("rounded", (0.155694,), "0.16"),
    ("rounded", (0.0996,), "0.10"),
    ("rounded", (-12.4,), "−12"),
    ("rounded", (3905.2,), "3,900"),
    ("rounded", (9.9e-5,), "9.9e−05"),
    ("rounded", (9e-13,), "0"),
    ("rounded", (-INF,), "−∞"),
    ("rounded", (-1.26e50,), "−1.3e+50"),
    ("percent", (-0.646,), "−65" + PERCENT),
    ("percent", (-0.001,), "0" + PERCENT),
    # Up or down, also below 0, but not for what a float adds to 45 %.
    ("percent_up", (0.101,), "11" + PERCENT),
    ("percent_up", (0.45,), "45" + PERCENT),
    ("percent_up", (-0.109,), "−10" + PERCENT),
    ("percent_up", (1e-12,), "1" + PERCENT),
    ("percent_up", (1e-13,), "0" + PERCENT),
    ("percent_up", (NAN,), "–"),
    ("percent_up", (1.21e50,), "1.3e+52" + PERCENT),
    ("percent_up", (INF,), "∞" + PERCENT),
    ("percent_down", (0.109,), "10" + PERCENT),
    ("percent_down", (-0.101,), "−11" + PERCENT),
    ("enough", (1.2341, 4), 1.235),
    ("not_above", (1.2349, 4), 1.234),
    ("right", (0.5,), "50.0"),
    ("kept", (0.996,), "99.6" + PERCENT),
    ("kept", (1 - 1e-13,), "100" + PERCENT),
    ("decimal", (9.87e-5,), "9.87e-5"),
    ("decimal", (1.5e50,), "1.5e+50"),
    ("least", (INF,), "none"),
    # The nearest number with so many decimals: nothing has no sign.
    ("counted", (-0.000001, 1000, 0), "0"),
    ("percent_1", (0.12345,), "12.3" + PERCENT),
    ("plain", (5000,), "5,000"),
    ("to_places", (0.0005001, 3), "0.001"),
    ("to_places", (1e-12, 3), "≈ 0"),
    ("change", (0.0686, 3), "+0.069"),
    ("about", (1006.0,), "1,010"),
    ("span", (-0.0001, 0.5, 0), "0 to 50"),
    ("tick", (1234.56789,), "1,234.57"),
    ("six_digits", (2 / 3,), "0.666667"),
    ("six_digits", (NAN,), ""),
    # As many digits as an interval supports: two of its half width.
    ("interval", (0.1, 0.3), "0.10 to 0.30"),
    ("interval", (-1e-13, 1e-13), "0"),
    ("supported_digits", (0.2, 0.17, 0.23), "0.200"),
    ("with_interval", (0.0, 0.0, 0.0), "exactly 0"),
    ("with_interval", (0.0, 0.0, 0.3), "0 (95\u00a0% interval 0.00 to 0.30)"),
    ("several", (1200, "row"), "1,200 rows"),
]


@pytest.mark.parametrize(("name", "given", "expected"), TEXTS)
def test_the_text_of_a_number(name, given, expected):
    assert getattr(formats, name)(*given) == expected


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("rounded", (97.6,), "+98"),
        ("rounded", (0.0,), "0"),
        ("interval", (0.0, 3.0), "0.0 to +3.0"),
        ("with_interval", (0.2, 0.1, 0.3), "+0.20 (95\u00a0% interval +0.10 to +0.30)"),
    ],
)
def test_the_text_of_a_number_with_its_sign(name, given, expected):
    assert getattr(formats, name)(*given, sign=True) == expected


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (2.0, "2.0", "2.0"),
        (0.0996, "0.099", "0.10"),
        (4583.0, "4,500", "4,600"),
        (-0.355, "−0.36", "−0.35"),
        (0.0000999, "9.9e−05", "0.00010"),
        (1.55e50, "1.5e+50", "1.6e+50"),
        (INF, "∞", "∞"),
        (NAN, "–", "–"),
    ],
)
def test_a_bound_is_rounded_to_the_side_that_claims_less(value, down, up):
    assert (formats.rounded_down(value), formats.rounded_up(value)) == (down, up)


def test_no_digits_of_a_bound_ever_claim_more():
    rng = np.random.default_rng(0)
    for value in (rng.choice([-1, 1], 500) * 10 ** rng.uniform(-9, 9, 500)).tolist():
        for digits in (1, 2, 3, 6):
            low, high = (
                Fraction(shown(value, digits).replace(",", "").replace("−", "-"))
                for shown in (formats.rounded_down, formats.rounded_up)
            )
            assert low <= Fraction(value) <= high
            assert high - low <= abs(Fraction(value)) / 10 ** (digits - 1) * (1 + Fraction(1, 10**9))


def test_decimals_show_how_far_apart_rates_are():
    # 300 and 300.02 of 100,000 differ in hundredths; in what is nearer, no decimal shows a difference.
    assert formats.apart([0.003, 0.0030002], 100_000) == 2
    assert formats.apart([0.003, 0.00300001], 100_000) == 0
    # A hundredth of an event is still shown.
    assert formats.apart([0.0, 0.01], 1) == 2
    # 300 and 301 are 1 apart in place of 0.72, which is 0.28 and less than half of it.
    assert formats.apart([0.003, 0.0030072], 100_000) == 0


def test_events_are_counted_among_the_power_of_ten_that_shows_two_digits():
    assert formats.population([0.00011, 0.0]) == 100_000
    assert formats.population([-0.000099]) == 1_000_000
    # Of no rates that are numbers, and of the smallest that are more than rounding.
    assert formats.population([INF, 0.0]) == 100_000
    assert formats.population([1e-9]) == 10_000_000


def test_bounds_in_files_claim_less_and_all_else_is_nearest():
    table = pd.DataFrame(
        {
            "loss": [1.23456789012, math.nan, 1.23456789012e-20],
            "least_loss": [1.23456789012, 0.0, 1.23456789012e-20],
            "most_kept": [1.23456784012, 0.5, 1.23456789012e-20],
        }
    )
    found = formats.written(table)
    assert found["loss"].tolist()[::2] == [1.2345679, 1.2345679e-20]
    assert math.isnan(found["loss"][1])
    assert found["least_loss"].tolist() == [1.2345678, 0.0, 0.0]
    assert found["most_kept"].tolist() == [1.2345679, 0.5, 1e-13]
    assert formats.to_csv(table.head(1)) == b"loss,least_loss,most_kept\n1.2345679,1.2345678,1.2345679\n"

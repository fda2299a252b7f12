"""Each text of a number, worked out by hand: at the ends of its range, beside 0, for NaN, and where it is rounded."""

import math

import pandas as pd
import pytest
from markupsafe import Markup

from policysim.question import formats

INF, NAN, PERCENT = math.inf, math.nan, "\u00a0%"

TEXTS = [
    ("rounded", (-INF,), "−∞"),
    ("rounded", (9.9e-5,), "9.9e−05"),
    ("rounded", (1e-4,), "0.00010"),
    ("rounded", (1e-12,), "1.0e−12"),
    ("rounded", (9e-13,), "0"),
    ("rounded", (1234.5, 3), "1,230"),
    ("in_digits", (1 / 3,), "0.33333333"),
    ("percent_up", (0.101,), "11" + PERCENT),
    ("percent_up", (0.45,), "45" + PERCENT),
    ("percent_up", (-0.109,), "−10" + PERCENT),
    ("percent_up", (NAN,), "–"),
    ("percent_up", (1e-13,), "0" + PERCENT),
    ("percent_down", (0.109,), "10" + PERCENT),
    ("percent_down", (-0.101,), "−11" + PERCENT),
    ("percent_down", (NAN,), "–"),
    ("percent_down", (-1e-13,), "0" + PERCENT),
    ("enough", (1.2341, 4), 1.235),
    ("not_above", (1.2349, 4), 1.234),
    ("percent_up", (1e-12,), "1" + PERCENT),
    ("percent_down", (1e-12,), "0" + PERCENT),
    ("percent_down", (-1e-12,), "−1" + PERCENT),
    ("percent_up", (-1e-3,), "0" + PERCENT),
    ("rounded_up", (1e-12,), "1.0e−12"),
    ("rounded_up", (1e-12, 3), "1.00e−12"),
    ("supported_digits", (1e-12, -0.1, 0.3), "0.00"),
    ("interval", (-1e-12, 1e-12), "−0.000 to 0.000"),
    ("six_digits", (1e-12,), "1e-12"),
    ("decimal", (1e-4,), "0.00010"),
    ("decimal", (9.87e-5,), "9.87e-5"),
    ("decimal", (0.0,), "0"),
    ("digits_of", (0.1234,), 4),
    ("digits_of", (5.0,), 2),
    ("rounded_down", (0.0996,), "0.099"),
    ("rounded_up", (0.0991,), "0.10"),
    ("rounded_up", (9.91,), "10"),
    ("rounded_down", (INF,), "∞"),
    ("rounded_up", (NAN,), "–"),
    ("rounded_down", (1e-13,), "0"),
    ("rounded_down", (1.29e-5,), "1.2e−05"),
    ("rounded_up", (0.00012341, 4), "0.0001235"),
    ("counted", (0.00123, 100_000, 0), "123"),
    ("counted", (-0.000001, 1000, 0), "0"),
    ("percent_1", (NAN,), "–"),
    ("percent_1", (0.12345,), "12.3" + PERCENT),
    ("percent_1", (-0.0001,), "0.0" + PERCENT),
    ("plain", (INF,), "∞"),
    ("plain", (-INF,), "−∞"),
    ("plain", (NAN,), "–"),
    ("plain", (5000,), "5,000"),
    ("plain", (-0.5,), "−0.5"),
    ("decimals", (0.0123,), 3),
    ("decimals", (12.0,), 0),
    ("decimals", (120.0,), 0),
    ("decimals", (INF,), 3),
    ("decimals", (1e-12,), 3),
    ("decimals", (0.5,), 2),
    ("interval", (0.1, 0.3), "0.10 to 0.30"),
    ("interval", (-1.0, 3.0), "−1.0 to 3.0"),
    ("interval", (NAN, 0.3), "–"),
    ("interval", (0.1, NAN), "–"),
    ("interval", (-1e-13, 1e-13), "0"),
    ("supported_digits", (0.2, 0.1, 0.3), "0.20"),
    ("supported_digits", (0.2, 0.17, 0.23), "0.200"),
    ("supported_digits", (NAN, 0.1, 0.3), "–"),
    ("supported_digits", (1e-13, -0.1, 0.3), "0"),
    ("with_interval", (0.0, 0.0, 0.0), "exactly 0"),
    ("with_interval", (0.2, 0.1, 0.3), "0.20 (95\u00a0% interval 0.10 to 0.30)"),
    ("with_interval", (1e-12, 0.0, 1e-12), "0.000 (95\u00a0% interval 0.000 to 0.000)"),
    ("with_interval", (0.0, 0.0, 0.3), "0 (95\u00a0% interval 0.00 to 0.30)"),
    ("several", (1, "row"), "1 row"),
    ("several", (0, "row"), "0 rows"),
    ("several", (1200, "row"), "1,200 rows"),
    ("days", (2,), "2 days"),
    ("right", (0.5,), "50.0"),
    ("right", (0.73201,), "73.3"),
    ("right", (NAN,), "–"),
    ("tick", (1e-5,), "0.00001"),
    ("tick", (9e-6,), "9e-06"),
    ("tick", (1e6,), "1,000,000"),
    ("tick", (2e6,), "2e+06"),
    ("tick", (0.0,), "0"),
    ("tick", (1234.5,), "1,234.5"),
    ("tick", (1234.56789,), "1,234.57"),
    ("six_digits", (NAN,), ""),
    ("six_digits", (1e-13,), "0"),
    ("six_digits", (2 / 3,), "0.666667"),
    ("unmarked", (Markup("<b>a &amp; b</b>\u00a0c"),), "a & b\u00a0c"),
    ("to_places", (1e-13, 3), "0"),
    ("to_places", (1e-12, 3), "≈ 0"),
    ("to_places", (INF, 3), "∞"),
    ("to_places", (0.0005001, 3), "0.001"),
    ("to_places", (-1234.56, 1), "−1,234.6"),
    ("change", (0.0686, 3), "+0.069"),
    ("change", (-0.0686, 3), "−0.069"),
    ("change", (0.0002, 3), "≈ 0"),
    ("change", (0.0, 3), "0"),
    ("possible", (INF, 3), "impossible"),
    ("possible", (0.0686, 3), "+0.069"),
    ("about", (10.4,), "10"),
    ("about", (10.0,), "10"),
    ("about", (9.96,), "10"),
    ("about", (1004.0,), "1,000"),
    ("about", (1006.0,), "1,010"),
    ("about", (0.01,), "0.010"),
    ("about", (1e-12,), "≈ 0"),
    ("about", (0.0,), "0"),
    ("about", (INF,), "∞"),
    ("span", (0.041, NAN, 0), "–"),
    ("span", (NAN, 0.041, 0), "–"),
    ("span", (-0.0001, 0.5, 0), "0 to 50"),
    ("kept", (1 - 1e-13,), "100" + PERCENT),
    ("kept", (0.996,), "99.6" + PERCENT),
    ("kept", (0.994,), "99" + PERCENT),
    ("kept", (NAN,), "–"),
    ("least", (INF,), "none"),
    ("least", (3.0,), "3.0"),
    ("above", (1.239, 2), "> 1.2"),
    ("table_text", ("span 0", NAN, 0.041, 0.232), "4 to 23"),
    ("table_text", ("counted 100000 1", 0.0000123, NAN, NAN), "1.2"),
    ("table_text", ("change 1000 0", 0.0123, NAN, NAN), "+12"),
    ("table_text", ("places 2", 0.125001, NAN, NAN), "0.13"),
    ("table_text", ("percent", 0.5, NAN, NAN), "50" + PERCENT),
]


@pytest.mark.parametrize(("name", "given", "expected"), TEXTS)
def test_the_text_of_a_number(name, given, expected):
    if name == "rounded" and len(given) == 2:
        assert formats.rounded(given[0], digits=given[1]) == expected
    else:
        assert getattr(formats, name)(*given) == expected


SIGNED = [
    ("rounded", (9.9e-5,), "+9.9e−05"),
    ("rounded", (0.5,), "+0.50"),
    ("interval", (-1.0, 3.0), "−1.0 to +3.0"),
    ("interval", (0.0, 3.0), "0.0 to +3.0"),
    ("interval", (1e-12, 3.0), "+0.0 to +3.0"),
    ("supported_digits", (0.2, 0.1, 0.3), "+0.20"),
    ("with_interval", (0.2, 0.1, 0.3), "+0.20 (95\u00a0% interval +0.10 to +0.30)"),
]


@pytest.mark.parametrize(("name", "given", "expected"), SIGNED)
def test_the_text_of_a_number_with_its_sign(name, given, expected):
    assert getattr(formats, name)(*given, sign=True) == expected


def test_decimals_show_how_far_apart_rates_are():
    # 300 and 300.2 of 100,000 are told apart by a tenth; 300 and 300.02 only by hundredths; what is nearer by none.
    assert formats.apart([0.003, 0.003002], 100_000) == 1
    assert formats.apart([0.003, 0.0030002], 100_000) == 2
    assert formats.apart([0.003, 0.00300001], 100_000) == 0
    assert formats.apart([0.003], 100_000) == 0
    # A hundredth of an event is still shown.
    assert formats.apart([0.0, 0.01], 1) == 2
    # 300 and 301 are 1 apart in place of 0.72, which is 0.28 and less than half of it.
    assert formats.apart([0.003, 0.0030072], 100_000) == 0


def test_a_population_is_of_rates_that_are_numbers():
    assert formats.population([math.inf, 0.5]) == 100_000
    assert formats.population([1e-9]) == 10_000_000
    assert formats.population([1e-4]) == 100_000


def test_an_unknown_format_of_a_table_is_refused():
    with pytest.raises(ValueError, match="unknown format 'no 1' of a table"):
        formats.table_text("no 1", 1.0, NAN, NAN)


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

"""Every number that the prose takes from the run is in one of the CSV files."""

import io
import math
import re
from html import unescape

import pandas as pd
import pytest

from policysim.question.words import KEEP

# What a rate is counted among on the page: per cent, of 1,000 patients, or of the population that shows two digits.
COUNTED = (1, 100, 1000, 100_000, 1_000_000, 10_000_000)


def six(value):
    return f"{float(value):.6g}"


def known(files):
    """All numbers of the CSV files to six digits, and those that follow from them."""
    numbers = set()
    for name, content in files.items():
        if name.endswith(".csv"):
            table = pd.read_csv(io.BytesIO(content))
            numbers |= {six(value) for column in table.select_dtypes("number") for value in table[column].dropna()}
    # The share that the table asks for is public; the prose says how many more or fewer, without a sign;
    # expected deaths are those per 1,000.
    absolute = {six(abs(float(number))) for number in numbers}
    per_thousand = {six(1000 * float(number)) for number in numbers}
    return numbers | absolute | per_thousand | {six(KEEP)}


def marked(page):
    """(value, text) of every number that the page marks as one of the run."""
    found = re.findall(r'<data value="([^"]*)">(.*?)</data>', page)
    found += re.findall(r'data-value="([^"]*)"[^>]*>([^<]*)<', page)
    return [(value, unescape(text)) for value, text in found]


@pytest.mark.parametrize("name", ["full", "bounded"])
def test_every_marked_number_is_in_the_csv_files(name, request):
    report = request.getfixturevalue(name)
    numbers = known(report.files)
    values = [value for value, _ in marked(report.page) if value]
    assert len(values) > 60
    # Less than 1e-9 is what rounding leaves of 0.
    assert [value for value in values if six(value) not in numbers and abs(float(value)) > 1e-9] == []


def test_a_number_that_is_not_of_the_run_would_be_found(full):
    assert six(0.123456) not in known(full.files)


def test_the_text_of_a_marked_number_states_it(full):
    for value, text in marked(full.page):
        if not value:
            assert text == "–"
            continue
        if "times" in text:
            assert f"at most {math.ceil(1000 * float(value)) / 10:g} of 100 times" in text
            continue
        digits = re.sub(r"[\s%+,]|\u00a0", "", text).replace("−", "-")
        if digits in ("∞", "≈0"):
            # Less than a hundredth of an event among the most patients that are counted.
            assert float(value) == float("inf") or 0 < abs(float(value)) * COUNTED[2] < 0.01
            continue
        half = 0.5 * 10.0 ** -len(digits.partition("e")[0].partition(".")[2])
        true = [times * float(value) for times in COUNTED]
        assert any(abs(float(digits) - exact) <= max(0.05 * abs(exact), half * 1.001) for exact in true), (value, text)

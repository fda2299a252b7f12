"""Declared domains: from a column's values to levels and bins."""

import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from policysim.files.bad_rows import level_key, level_of
from policysim.logs.binning import Binning

COLUMNS = {
    "int": pd.Series([0, 1, 1]),
    "float": pd.Series([0.0, 1.0, 1.0]),
    "bool": pd.Series([False, True, True]),
    "text": pd.Series(["0", "1", " 1.0 "]),
    "words": pd.Series(["FALSE", "True", "true"]),
    "mixed": pd.Series([0, "1", True], dtype=object),
    "nullable": pd.Series([0, 1, 1], dtype="Int8"),
    "nullable bool": pd.Series([False, True, True], dtype="boolean"),
    "categorical": pd.Series([0, 1, 1], dtype="category"),
    "categorical text": pd.Series(["0", "1", "1"], dtype="category"),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("levels", [(0, 1), ("0", "1"), (0.0, 1.0)])
def test_the_same_levels_match_whatever_kind_of_column_holds_them(column, levels):
    assert Binning("x", levels).codes(column).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["", "NA", None, "2", "x"]),
        pd.Series([None, np.nan, pd.NA, 2, "x"], dtype=object),
        pd.Series([np.nan, np.nan, np.nan, 2.0, 0.5]),
        pd.Series(pd.to_datetime(["2020-01-01"] * 5)),
    ],
)
def test_what_is_no_level_has_no_code(column):
    assert Binning("x", (0, 1)).codes(column).tolist() == [-1] * 5
    assert (Binning("x", cuts=(0.25,)).codes(column)[:3] == -1).all()


@pytest.mark.parametrize(
    "column", [pd.Series(["a", "", "NA", "nan"]), pd.Series(["a", None, pd.NA, np.nan], dtype=object)]
)
def test_a_level_na_stands_for_missing_values(column):
    assert Binning("x", ("NA", "a")).codes(column).tolist() == [1, 0, 0, 0]


def test_order_is_as_declared_and_not_of_the_rows():
    assert Binning("x", ("b", "a", "c")).codes(pd.Series(["a", "b"])).tolist() == [1, 0]
    assert Binning("x", ("b", "a", "c")).feature.levels == ("b", "a", "c")


def test_bins_are_half_open_and_named_by_their_ends():
    binning = Binning("age", cuts=(28, 34.5, 41))
    assert binning.feature.levels == ("< 28", "28 to < 34.5", "34.5 to < 41", "≥ 41")
    column = pd.Series(["27.999", "28", "34.4", "34.5", "40", "41", "1e9", "-3"])
    assert binning.codes(column).tolist() == [0, 1, 1, 2, 2, 3, 3, 0]
    assert binning.codes(pd.Series(["inf", "-inf", "nan", "", "young"])).tolist() == [-1] * 5
    assert binning.codes(pd.Series([np.inf, -np.inf, np.nan])).tolist() == [-1] * 3


@given(
    st.lists(st.floats(-100, 100, allow_nan=False), min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.floats(-200, 200, allow_nan=False), min_size=1),
)
def test_a_bin_is_the_number_of_cuts_at_or_below_the_value(cuts, values):
    expected = [sum(cut <= value for cut in cuts) for value in values]
    binning = Binning("x", cuts=tuple(cuts))
    assert binning.codes(pd.Series(values)).tolist() == expected
    assert binning.codes(pd.Series([repr(value) for value in values])).tolist() == expected
    assert len(set(binning.feature.levels)) == len(cuts) + 1


@pytest.mark.parametrize(
    ("levels", "cuts", "said"),
    [
        ((), (), "levels or cuts"),
        ((0, 1), (3,), "not both"),
        ((0,), (), "at least two"),
        ((1, "1.0"), (), "is the same level as 1"),
        ((True, "TRUE"), (), "is the same level as True"),
        (("a", " "), (), 'write "NA"'),
        ((), (3, 3), "must be greater than the cut before, 3"),
        ((), (3, 1), "must be greater"),
        ((), (math.inf,), "must be finite"),
    ],
)
def test_wrong_domains_are_refused(levels, cuts, said):
    with pytest.raises(ValueError, match=said):
        Binning("x", levels, cuts)


@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()))
def test_a_value_is_the_same_as_its_level(value):
    assert level_key(level_of(level_key(value))) == level_key(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_and_its_text_are_the_same(value):
    assert level_key(repr(value)) == level_key(value) == value


@pytest.mark.parametrize("text", ["1_000", "0x10", "١", "inf", "Infinity", "1e999", "--1", "1,5"])
def test_what_only_python_takes_for_a_number_is_text(text):
    assert level_key(text) == text

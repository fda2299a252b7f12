"""What a level is: one rule for all cells, whatever kind of column holds them."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from policies.levels import MISSING, Levels, coded, codes_of_keys, level_codes, level_key, level_of

COLUMNS = {
    "int": pd.Series([0, 1, 1]),
    "float": pd.Series([0.0, 1.0, 1.0]),
    "bool": pd.Series([False, True, True]),
    "text": pd.Series(["0", "1", " 1.0 "]),
    "words": pd.Series(["FALSE", "True", "true"]),
    "quotes": pd.Series(['"0"', ' "1"', '"1.0"']),
    "mixed": pd.Series([0, "1", True], dtype=object),
    "nullable": pd.Series([0, 1, 1], dtype="Int8"),
    "nullable bool": pd.Series([False, True, True], dtype="boolean"),
    "categorical": pd.Series([0, 1, 1], dtype="category"),
    "categorical text": pd.Series(["0", "1", "1"], dtype="category"),
}
CELLS = st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none())


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("levels", [(0, 1), ("0", "1"), (0.0, 1.0)])
def test_the_same_levels_match_whatever_kind_of_column_holds_them(column, levels):
    assert level_codes(Levels("x", levels), column).tolist() == [0, 1, 1]


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
    assert level_codes(Levels("x", (0, 1)), column).tolist() == [-1] * 5
    assert (level_codes(Levels("x", ("< 0.25", "≥ 0.25"), cuts=(0.25,)), column)[:3] == -1).all()


@pytest.mark.parametrize(
    "column", [pd.Series(["a", "", "NA", "nan"]), pd.Series(["a", None, pd.NA, np.nan], dtype=object)]
)
def test_a_level_na_stands_for_missing_values(column):
    assert level_codes(Levels("x", ("NA", "a")), column).tolist() == [1, 0, 0, 0]


def test_order_is_as_declared_and_not_of_the_rows():
    assert level_codes(Levels("x", ("b", "a", "c")), pd.Series(["a", "b"])).tolist() == [1, 0]


@given(
    st.lists(st.floats(-100, 100, allow_nan=False), min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.floats(-200, 200, allow_nan=False), min_size=1),
)
def test_a_bin_is_the_number_of_cuts_at_or_below_the_value_or_its_own_name(cuts, values):
    names = [f"bin {place}" for place in range(len(cuts) + 1)]
    binned, expected = Levels("x", names, tuple(cuts)), [sum(cut <= value for cut in cuts) for value in values]
    assert level_codes(binned, pd.Series(values)).tolist() == expected
    assert level_codes(binned, pd.Series([repr(value) for value in values])).tolist() == expected
    assert level_codes(binned, pd.Series(names)).tolist() == list(range(len(names)))


def test_no_bin_is_without_end():
    binned = Levels("x", ("< 1", "≥ 1", "NA"), cuts=(1.0,))
    assert level_codes(binned, pd.Series(["inf", "-inf", "1e999", "nan", "young"])).tolist() == [-1, -1, -1, 2, -1]
    assert level_codes(binned, pd.Series([np.inf, -np.inf, np.nan])).tolist() == [-1, -1, 2]


@pytest.mark.parametrize("levels", [(1, "1.0"), (True, "TRUE"), ("a", " a"), ("7", "007"), ("NA", "")])
def test_two_levels_that_are_the_same_are_refused(levels):
    with pytest.raises(ValueError, match=r"^x: two of the levels .* are the same"):
        codes_of_keys(Levels("x", levels), [])


def test_a_column_of_lists_is_refused():
    with pytest.raises(ValueError, match="x: must hold one number, text, truth value or time in each row"):
        level_codes(Levels("x", (0, 1)), pd.Series([[1], [2]], name="x"))


@given(CELLS)
def test_a_value_is_the_same_as_its_level(value):
    assert level_key(level_of(level_key(value))) == level_key(value)


@given(st.lists(CELLS, max_size=20))
def test_each_row_has_the_key_of_its_value(values):
    column = pd.Series(values, dtype=object)
    positions, keys = coded(column)
    assert [keys[position] for position in positions] == [level_key(value) for value in values]
    assert len(set(keys)) == len(keys)
    assert (MISSING in keys) == any(level_key(value) == MISSING for value in values)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_and_its_text_are_the_same(value):
    assert level_key(repr(value)) == level_key(value) == value


@pytest.mark.parametrize("text", ["1_000", "0x10", "١", "inf", "Infinity", "1e999", "--1", "1,5"])
def test_what_only_python_takes_for_a_number_is_text(text):
    assert level_key(text) == text

"""Bins of a number: from a column's values to the bins of a declared feature."""

import numpy as np
import pandas as pd

from policies.levels import level_codes
from policysim.logs.binning import binned


def test_bins_are_half_open_and_named_by_their_ends():
    age = binned("age", (28, 34.5, 41))
    assert age.levels == ("< 28", "28 to < 34.5", "34.5 to < 41", "≥ 41")
    column = pd.Series(["27.999", "28", "34.4", "34.5", "40", "41", "1e9", "-3"])
    assert level_codes(age, column).tolist() == [0, 1, 1, 2, 2, 3, 3, 0]
    assert level_codes(age, pd.Series(["inf", "-inf", "nan", "", "young"])).tolist() == [-1] * 5
    assert level_codes(age, pd.Series([np.inf, -np.inf, np.nan])).tolist() == [-1] * 3

"""Declared domains: from a column's values to levels and bins."""

import math

import numpy as np
import pandas as pd
import pytest

from policies.levels import level_codes
from policysim.logs.binning import Binning


def test_bins_are_half_open_and_named_by_their_ends():
    binning = Binning("age", cuts=(28, 34.5, 41))
    assert binning.feature.levels == ("< 28", "28 to < 34.5", "34.5 to < 41", "≥ 41")
    column = pd.Series(["27.999", "28", "34.4", "34.5", "40", "41", "1e9", "-3"])
    assert level_codes(binning.feature, column).tolist() == [0, 1, 1, 2, 2, 3, 3, 0]
    assert level_codes(binning.feature, pd.Series(["inf", "-inf", "nan", "", "young"])).tolist() == [-1] * 5
    assert level_codes(binning.feature, pd.Series([np.inf, -np.inf, np.nan])).tolist() == [-1] * 3


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

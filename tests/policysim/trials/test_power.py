"""What a log can show at all: against simulation and by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from policysim.trials.estimators import Moments, over_splits
from policysim.trials.evidence import power_of, shown_gain


def test_where_splits_agree_the_shown_gain_is_the_usual_formula():
    found = shown_gain([Moments(10**6, 0.02, 0.05)] * 20)
    # The 80 % point of 1,000 drawn normal numbers has an error of 0.045 of their deviation.
    assert found / 0.05 == pytest.approx(norm.ppf(0.975) + norm.ppf(0.8), abs=4 * 0.045)
    assert math.isnan(shown_gain([Moments(50, 0.0, 0.0)] * 20))


def test_a_planted_gain_of_that_size_is_called_better_in_8_of_10_logs():
    """Logs by another model of what splits do: each split's estimate is common chance and its own, by hand."""
    rng, error, between = np.random.default_rng(4), 0.05, 0.045

    def splits(gain):
        common = gain + error * rng.normal()
        return [Moments(10**4, common + between * rng.normal(), error) for _ in range(20)]

    gain = np.mean([shown_gain(splits(0.0)) for _ in range(20)])
    better = np.mean([over_splits(splits(gain)).low > 0 for _ in range(2000)])
    # Four errors of a share of 2,000, and as much again for the drawn gain.
    assert better == pytest.approx(0.8, abs=0.05)


def test_patients_for_a_gain_are_counted_by_the_square_of_it():
    options = pd.DataFrame({"epsilon": [1.0, 1.0], "option": ["C", "B"], "shown_gain": [0.05, math.nan]})
    found = power_of(options, 400, 1.0)
    assert set(found["option"]) == {"C"}
    assert found["gain"].tolist() == [0.05, 0.01, 0.02]
    assert found["patients"].tolist() == pytest.approx([400, 400 * 25, 400 * 6.25])
    assert len(power_of(options, 400, None)) == 1  # the range is a guess
    assert power_of(options, 400, 10.0)["gain"].tolist()[1:] == [0.1, 0.2]

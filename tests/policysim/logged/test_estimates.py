"""Means, shares and repeated splits, against formulas written out."""

import math

import numpy as np
import pytest
from scipy import stats

from policysim.logged.estimates import NOTHING, Estimate, mean, minus, over_repeats, share


def test_a_mean_has_the_t_interval_of_scipy():
    numbers = np.array([0.1, 0.9, 0.4, -0.3, 0.2])
    found = mean(numbers)
    low, high = stats.ttest_1samp(numbers, 0.0).confidence_interval(0.95)
    assert found.value == pytest.approx(0.26)
    assert found.interval == pytest.approx((low, high))


def test_few_patients_have_no_interval_and_none_no_mean():
    assert math.isnan(mean(np.array([])).value)
    assert mean(np.array([0.5])).value == 0.5
    assert all(math.isnan(end) for end in mean(np.array([0.5])).interval)


def test_equal_numbers_have_no_spread_left_from_rounding():
    assert mean(np.full(7, 0.1)).standard_error == 0


def test_what_is_equal_but_for_rounding_differs_by_nothing():
    one = np.array([0.1 + 0.2, 1.0, -5.0])
    assert minus(one, np.array([0.3, 1.0, 2.0])).tolist() == [0.0, 0.0, -7.0]


def test_a_share_is_a_ratio_of_means_and_its_error_is_that_of_the_jackknife():
    rng = np.random.default_rng(1)
    whole = rng.normal(2, 1, 400)
    part = 0.4 * whole + rng.normal(0, 1, 400)
    found = share(part, whole)
    assert found.value == pytest.approx(part.mean() / whole.mean())
    left_out = np.array([np.delete(part, i).mean() / np.delete(whole, i).mean() for i in range(400)])
    jackknife = math.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    # Both are first-order expansions: they differ by O(1/n), here 1/400.
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)


def test_a_share_of_nothing_is_nothing():
    assert math.isnan(share(np.ones(3), np.zeros(3)).value)
    assert math.isnan(share(np.array([]), np.array([])).value)


def test_repeats_are_summed_up_by_means_and_the_error_knows_how_much_depends_on_the_split():
    repeats = [Estimate(1.0, 0.1, 50), Estimate(2.0, 0.2, 50), Estimate(6.0, 0.3, 50)]
    found = over_repeats(repeats)
    # Variances with the distance to the mean 3: 0.01 + 4, 0.04 + 1, 0.09 + 9; their mean is 14.14 / 3.
    assert (found.value, found.standard_error, found.n) == (3.0, pytest.approx(math.sqrt(14.14 / 3)), 50)
    assert math.isnan(over_repeats([*repeats, NOTHING]).value)

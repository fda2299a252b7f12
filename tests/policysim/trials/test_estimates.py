"""Means, shares and repeated splits, against formulas written out."""

import math

import numpy as np
import pytest
from scipy import stats

from policysim.trials.estimators import NOTHING, Moments, minus, moments, over_splits
from policysim.trials.splits import ratio_of_means


def interval(found):
    """The 95 % interval of a mean."""
    reach = found.reach * found.standard_error
    return found.mean - reach, found.mean + reach


def test_a_mean_has_the_t_interval_of_scipy():
    numbers = np.array([0.1, 0.9, 0.4, -0.3, 0.2])
    found = moments(numbers)
    low, high = stats.ttest_1samp(numbers, 0.0).confidence_interval(0.95)
    assert found.mean == pytest.approx(0.26)
    assert interval(found) == pytest.approx((low, high))


def test_equal_numbers_have_no_spread_left_from_rounding():
    assert moments(np.full(7, 0.1)).standard_error == 0


def test_what_is_equal_but_for_rounding_differs_by_nothing():
    one = np.array([0.1 + 0.2, 1.0, -5.0])
    assert minus(one, np.array([0.3, 1.0, 2.0])).tolist() == [0.0, 0.0, -7.0]


def test_a_share_is_a_ratio_of_means_and_its_error_is_that_of_the_jackknife():
    rng = np.random.default_rng(1)
    whole = rng.normal(2, 1, 400)
    part = 0.4 * whole + rng.normal(0, 1, 400)
    found = ratio_of_means(part, whole)
    assert found.mean == pytest.approx(part.mean() / whole.mean())
    left_out = np.array([np.delete(part, i).mean() / np.delete(whole, i).mean() for i in range(400)])
    jackknife = math.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    # Both are first-order expansions: they differ by O(1/n), here 1/400.
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)


def test_the_median_of_many_normal_splits_has_the_error_that_is_added_for_it():
    rng = np.random.default_rng(3)
    medians = np.median(rng.normal(size=(20_000, 41)), axis=1)
    splits = [Moments(10**6, value, 1e-9) for value in stats.norm.ppf((np.arange(41) + 0.5) / 41)]
    assert over_splits(splits).standard_error == pytest.approx(medians.std(), rel=0.04)


def test_splits_are_summed_up_by_medians_and_the_error_knows_how_much_depends_on_the_split():
    splits = [Moments(50, 1.0, 0.1), Moments(50, 2.0, 0.2), Moments(50, 6.0, 0.3)]
    found = over_splits(splits)
    # The median of the variances is 0.04; the squared distances to the median 2 are 1, 0 and 16.
    variance = 0.04 + math.pi / 2 * (17 / 3) / 3
    assert (found.value, found.standard_error) == (2.0, pytest.approx(math.sqrt(variance)))
    # Moments widens t by its own term in 1 / n.
    assert found.high - 2 == pytest.approx(stats.t.ppf(0.975, 49) * math.sqrt(variance), rel=2e-3)
    assert found.high - 2 == pytest.approx(2 - found.low)
    assert math.isnan(over_splits([*splits, NOTHING]).value)


def test_what_is_nothing_in_all_splits_is_nothing_and_in_most_it_may_be_something():
    nothing, odd = Moments(50, 0.0, 0.0), Moments(50, 0.3, 0.1)
    assert over_splits(20 * [nothing])[:3] == (0.0, 0.0, 0.0)
    found = over_splits([*18 * [nothing], odd, odd])
    assert found.value == 0 and found.standard_error == pytest.approx(math.sqrt(0.1 * (0.3**2 + 0.1**2)))
    assert found.low < 0 < found.high

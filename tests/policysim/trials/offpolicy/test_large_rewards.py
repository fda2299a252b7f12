"""Rewards of any size that a log may have: the same estimate in any unit; larger ones are refused in one line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envs.toml_reader import FINITE
from policysim.files.bad_rows import DataError
from policysim.logs.read_log import read_log
from policysim.trials.estimators import effective_size, moments
from policysim.trials.evaluate_log import evaluate_log

N = 40


def log(size):
    rng = np.random.default_rng(4)
    rewards = size * np.where(rng.random(N) < 0.5, 1.0, -0.25)
    return pd.DataFrame({"action": ["a", "b"] * (N // 2), "reward": rewards, "propensity": 0.5, "x": np.arange(N) % 3})


@given(st.integers(-900, 900), st.lists(st.floats(-9, 9), min_size=3, max_size=9))
@example(559, [1.0, 1.0, 1.0])
def test_moments_in_another_unit_are_the_same_numbers(power, numbers):
    # A number far smaller than the others vanishes in a unit where these are hardly numbers any more.
    values = np.round(np.array(numbers), 3)
    unit = 2.0**power
    own, other = moments(values), moments(values * unit)
    assert (other.n, other.mean / unit, other.standard_error / unit) == (own.n, own.mean, own.standard_error)
    assert (other.skewness, other.kurtosis) == (own.skewness, own.kurtosis)


def test_moments_are_those_of_the_definitions():
    values = np.array([1.0, 2.0, 4.0, 9.0, 9.5])
    found, centred = moments(values * 2.0**1000), values - values.mean()
    variance = (centred**2).mean()
    assert found.standard_error / 2.0**1000 == pytest.approx(np.sqrt(variance / 4), rel=1e-14)
    assert found.skewness == pytest.approx((centred**3).mean() / variance**1.5, rel=1e-13)
    assert found.kurtosis == pytest.approx((centred**4).mean() / variance**2 - 3, rel=1e-13)


def test_the_effective_sample_size_needs_no_squares_of_large_weights():
    weights = np.array([1.0, 2.0, 4.0]) * 2.0**900
    assert effective_size(weights) == 49 / 21


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_an_estimate_of_the_largest_rewards_is_that_of_small_ones(estimator):
    size = 2.0**165
    assert 4 * size > FINITE / 10
    table = np.tile([0.3, 0.7], (N, 1))
    small, large = (evaluate_log(log(each), table, estimator=estimator) for each in (1.0, size))
    assert large.value / size == pytest.approx(small.value, rel=1e-9)
    assert large.standard_error / size == pytest.approx(small.standard_error, rel=1e-9)


@pytest.mark.parametrize("size", [1.1e50, 1e200, 1e308, -1e200])
def test_larger_rewards_are_refused_with_the_value_and_what_is_allowed(size, tmp_path, run):
    with pytest.raises(DataError, match=r"^log: row \d+: reward: must be a finite number within ±1e\+50, got "):
        evaluate_log(log(4 * size), np.full((N, 2), 0.5))
    with pytest.raises(DataError, match=r"row \d+: reward: must be a finite number within ±1e\+50, got "):
        read_log(log(4 * size))
    path, policy = tmp_path / "log.csv", tmp_path / "policy.csv"
    log(4 * size).to_csv(path, index=False)
    pd.DataFrame({"x": [0, 1, 2], "p_a": 0.5, "p_b": 0.5}).to_csv(policy, index=False)
    code, _, line = run("evaluate", path, "--table", policy)
    assert (code, line.count("\n")) == (3, 1)
    assert "row 1: reward: must be a finite number within ±1e+50, got" in line and f"(so are {N} rows)" in line

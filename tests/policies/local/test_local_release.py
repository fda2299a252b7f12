"""Reports: exact probabilities by whole numbers, and samplers that have them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chdtrc

from policies.local import KAry, TwoCoin, Unary, count_reports, privatize
from policies.local.channel import TOTAL, exp_floor

RELEASED = [
    TwoCoin(),
    TwoCoin(0.1, 0.3),
    TwoCoin(0.999, 0.001),
    TwoCoin(1e-9, 0.5),
    KAry(2, math.log(3)),
    KAry(3, 0.1),
    KAry(5000, 1.0),
    KAry(4, 1e-9),
    KAry(4, 43.0),
    KAry(4, 700.0),
    Unary(10, 0.1),
    Unary(10, 1.0),
    Unary(10, 20.0),
    Unary(10, 1.0, optimized=False),
    Unary(10, 20.0, optimized=False),
]


def exp_series(x):
    """The series of e^x in steps of 2^-300, every term rounded down: below e^x, by less than 2^-290 for x <= 50."""
    total = term = 1 << 300
    for i in range(1, 400):
        term = term * x.numerator // (x.denominator * i)
        total += term
    return Fraction(total, 1 << 300)


def promise(channel):
    """e^epsilon from below, of the epsilon that is printed; no pair of thresholds has a ratio above e^44."""
    return exp_series(min(Fraction(repr(channel.epsilon)), Fraction(channel.epsilon), Fraction(50)))


def worst_ratio(channel, first, second):
    """The largest p(report | value) / p(report | other value) for thresholds `channel.weights`, exactly."""
    if isinstance(channel, KAry):
        return max(Fraction(first, second), Fraction(second, first))
    if isinstance(channel, TwoCoin):  # P(1 | 0), P(1 | 1)
        return max(Fraction(second, first), Fraction(TOTAL - first, TOTAL - second))
    return Fraction(first, second) * Fraction(TOTAL - second, TOTAL - first)  # own bit set, other bit not set


@pytest.mark.parametrize("channel", RELEASED, ids=repr)
def test_released_reports_keep_to_epsilon_exactly(channel):
    ratio = worst_ratio(channel, *channel.weights)
    assert ratio <= promise(channel)
    # Nor is more privacy taken than rounding needs: the thresholds are within 1 of where they should be.
    if 1e-6 < channel.epsilon < 25:
        assert math.log(ratio) == pytest.approx(channel.epsilon, rel=1e-6)


@given(st.floats(1e-6, 0.999), st.floats(1e-6, 1 - 1e-6))
def test_any_two_coins_keep_to_epsilon_exactly(first, second):
    """Their epsilon is a rounded logarithm, often a little too small for the coins themselves."""
    channel = TwoCoin(first, second)
    low, high = channel.weights
    assert worst_ratio(channel, low, high) <= promise(channel)
    assert [low / TOTAL, high / TOTAL] == pytest.approx(channel.matrix[:, 1], rel=1e-9)


@given(st.integers(2, 10_000), st.floats(1e-6, 60))
def test_any_epsilon_is_kept_to_exactly(n_values, epsilon):
    for channel in (KAry(n_values, epsilon), Unary(n_values, epsilon), Unary(n_values, epsilon, optimized=False)):
        assert worst_ratio(channel, *channel.weights) <= promise(channel)


def test_a_threshold_that_is_one_less_breaks_the_promise():
    channel = KAry(3, 0.1)
    truth, lie = channel.weights
    assert worst_ratio(channel, truth + 2, lie - 1) > promise(channel)
    channel = Unary(10, 1.0)
    own, other = channel.weights
    assert worst_ratio(channel, own, other - 1) > promise(channel)


def test_k_ary_thresholds_share_out_every_word():
    for channel in (KAry(3, 0.1), KAry(5000, 1.0), KAry(4, 700.0)):
        truth, lie = channel.weights
        assert truth + (channel.n_values - 1) * lie == TOTAL


def test_exp_floor_is_just_below():
    for epsilon in (1e-9, 0.1, 1.0, 3.7, 44.0):
        series = exp_series(min(Fraction(repr(epsilon)), Fraction(epsilon)))
        assert series * (1 - Fraction(1, 10**50)) < exp_floor(epsilon) < series
        half = exp_floor(epsilon, halves=1)
        assert series * (1 - Fraction(1, 10**50)) < half**2 < series


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


def test_words_at_the_ends_of_each_part_give_its_report():
    channel = KAry(4, 1.0)
    _, lie = channel.weights
    ends = words(0, lie - 1, lie, 2 * lie - 1, 2 * lie, 3 * lie - 1, 3 * lie, TOTAL - 1)
    for value, others in enumerate(([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2])):
        expected = [*np.repeat(others, 2), value, value]
        assert channel.report(np.full(8, value), ends).tolist() == expected

    coins = TwoCoin(0.3, 0.6)
    low, high = coins.weights
    values = np.array([0, 0, 1, 1])
    assert coins.report(values, words(low - 1, low, high - 1, high)).tolist() == [1, 0, 1, 0]

    bits = Unary(2, 1.0)
    own, other = bits.weights
    reports = bits.report(np.array([0, 0, 1]), words(own - 1, other, own, other - 1, other, own - 1))
    assert reports.tolist() == [[1, 0], [0, 1], [0, 1]]


SAMPLED = [TwoCoin(0.3, 0.6), KAry(4, 1.0), Unary(3, 1.0), Unary(3, 1.0, optimized=False)]


def p_value(reports, values, channel, matrix):
    """Pearson's chi-square over every value and report."""
    if isinstance(channel, Unary):
        reports = reports @ (1 << np.arange(channel.n_values)[::-1])
    statistic, degrees = 0.0, 0
    for value, row in enumerate(matrix):
        seen = np.bincount(reports[values == value], minlength=len(row))
        expected = seen.sum() * row
        statistic += ((seen - expected) ** 2 / expected).sum()
        degrees += len(row) - 1
    return chdtrc(degrees, statistic)


@pytest.mark.parametrize("channel", SAMPLED, ids=repr)
@pytest.mark.parametrize("source", ["generator", "operating system"])
def test_reports_have_the_channels_probabilities(channel, source):
    """The operating system's randomness differs in every run: at 1e-9 one run in 10^9 fails by chance."""
    rng = np.random.default_rng(7) if source == "generator" else None
    values = np.repeat(np.arange(channel.n_values), 200_000)
    reports = privatize(values, channel, rng=rng)
    assert p_value(reports, values, channel, channel.matrix) > 1e-9


@pytest.mark.parametrize("channel", SAMPLED, ids=repr)
def test_the_chi_square_would_notice_an_epsilon_that_is_a_tenth_too_large(channel):
    values = np.repeat(np.arange(channel.n_values), 200_000)
    parameters = dict(channel.parameters)
    name = "first" if isinstance(channel, TwoCoin) else "epsilon"
    parameters[name] *= 1.1
    wrong = type(channel)(**parameters)
    reports = privatize(values, wrong, rng=np.random.default_rng(8))
    assert p_value(reports, values, channel, channel.matrix) < 1e-9


def test_a_release_differs_from_run_to_run_and_a_simulation_does_not():
    values = np.zeros(1000, dtype=np.int8)  # equal by chance with probability below 2^-500
    assert (privatize(values, TwoCoin()) != privatize(values, TwoCoin())).any()
    first, second = (privatize(values, TwoCoin(), rng=np.random.default_rng(3)) for _ in range(2))
    assert (first == second).all()


def test_reports_do_not_depend_on_how_values_are_cut_into_chunks(monkeypatch):
    values = np.random.default_rng(0).integers(5, size=1000)
    for channel in (KAry(5, 1.0), Unary(5, 1.0)):
        whole = privatize(values, channel, rng=np.random.default_rng(1))
        rng = np.random.default_rng(1)
        parts = [privatize(chunk, channel, rng=rng) for chunk in np.array_split(values, 7)]
        assert (np.concatenate(parts) == whole).all()
        monkeypatch.setattr("policies.local.channel.WORDS", 64)
        assert (privatize(values, channel, rng=np.random.default_rng(1)) == whole).all()
        counts = sum(count_reports(part, channel) for part in parts)
        assert counts.tolist() == count_reports(whole, channel).tolist()


def test_counts_are_of_codes_or_of_bits():
    assert count_reports([0, 2, 2], KAry(3, 1.0)).tolist() == [1, 0, 2]
    assert count_reports([[0, 1, 1], [0, 0, 1]], Unary(3, 1.0)).tolist() == [0, 1, 2]


def test_no_values_give_no_reports():
    assert privatize([], KAry(3, 1.0)).shape == (0,)
    assert privatize([], Unary(3, 1.0)).shape == (0, 3)
    assert count_reports(privatize([], Unary(3, 1.0)), Unary(3, 1.0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 3, 1, -1], r"from 0 to 2, got values\[1\]=3 \(2 outside, in rows 1, 3\)"),
        ([2, -1], r"from 0 to 2, got values\[1\]=-1 \(1 outside, in rows 1\)"),
        ([9] * 8, r"got values\[0\]=9 \(8 outside, in rows 0, 1, 2, 3, 4, \.\.\.\)"),
        ([0.0, 1.0], "whole numbers, got shape .* of float64"),
        (["0"], "whole numbers"),
        ([[0, 1]], r"got shape \(1, 2\)"),
    ],
)
def test_values_that_are_no_codes_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        privatize(values, KAry(3, 1.0))


def test_a_channel_without_privacy_is_for_simulation_only():
    for channel, epsilon in ((TwoCoin(1.0, 0.5), "inf"), (TwoCoin(0.5, 0.0), "inf"), (TwoCoin(0.0, 0.5), "0.0")):
        with pytest.raises(ValueError, match=f"epsilon must be > 0 and finite, got epsilon={epsilon}"):
            privatize([0, 1], channel)
    truth = privatize([0, 1] * 50, TwoCoin(1.0, 0.5), rng=np.random.default_rng(0))
    assert truth.tolist() == [0, 1] * 50


def test_a_seed_is_no_generator():
    with pytest.raises(TypeError, match="rng must be None"):
        privatize([0, 1], TwoCoin(), rng=5)


@pytest.mark.parametrize("channel", [KAry(10**6, 1e-8), Unary(3, 1e-300), TwoCoin(1e-25, 0.4)], ids=repr)
def test_an_epsilon_that_whole_numbers_cannot_keep_to_is_refused(channel):
    with pytest.raises(ValueError, match="too small to be kept to exactly"):
        privatize([0, 1], channel)


@pytest.mark.parametrize(
    ("reports", "message"),
    [([0, 1, 1], "must be .n, 3. bits"), ([[0, 1]], "must be .n, 3. bits"), ([[0, 1, 2]], "numbers from 0 to 2")],
)
def test_reports_that_are_no_bits_are_named(reports, message):
    with pytest.raises(ValueError, match=message):
        count_reports(reports, Unary(3, 1.0))

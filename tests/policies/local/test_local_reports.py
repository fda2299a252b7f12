"""Reports of simulations: samplers that have the probabilities of their channels."""

import numpy as np
import pytest
from scipy.special import chdtrc

from policies.local import KAry, TwoCoin, Unary, count_reports, privatize


def test_numbers_at_the_ends_of_each_part_give_its_report():
    channel = KAry(4, 1.0)
    lie = channel.lie[0]
    ends = np.array([0, 0.99, 1.01, 1.99, 2.01, 2.99, 3.01, 0.999 / lie]) * lie
    for value, others in enumerate(([1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2])):
        expected = [*np.repeat(others, 2), value, value]
        assert channel.report(np.full(8, value), ends).tolist() == expected

    values = np.array([0, 0, 1, 1])
    assert TwoCoin(0.5, 0.5).report(values, np.array([0.2, 0.25, 0.7, 0.75])).tolist() == [1, 0, 1, 0]

    bits = Unary(2, 1.0)
    other = bits.lie[0]
    reports = bits.report(np.array([0, 0, 1]), np.array([0.499, other, 0.5, other - 1e-9, other, 0.499]))
    assert reports.tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize("channel", [KAry(4, 800.0), KAry(10_000, 60.0), Unary(4, 800.0), TwoCoin(1.0, 0.5)], ids=repr)
def test_lies_that_are_rarer_than_random_numbers_can_show_do_not_come(channel):
    values = np.arange(100) % channel.n_values
    reports = privatize(values, channel, rng=np.random.default_rng(0))
    told = values if channel.words == 1 else np.eye(4, dtype=np.uint8)[values]
    if channel.words == 1:
        np.testing.assert_array_equal(reports, told)
    else:
        assert (reports <= told).all()  # the own bit is a coin


RNG = np.random.default_rng(0)
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
def test_reports_have_the_channels_probabilities(channel):
    rng = np.random.default_rng(7)
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
    assert privatize([], KAry(3, 1.0), rng=RNG).shape == (0,)
    assert privatize([], Unary(3, 1.0), rng=RNG).shape == (0, 3)
    assert count_reports(privatize([], Unary(3, 1.0), rng=RNG), Unary(3, 1.0)).tolist() == [0, 0, 0]


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
        privatize(values, KAry(3, 1.0), rng=RNG)


def test_a_seed_is_no_generator():
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator, for simulation, got rng=5"):
        privatize([0, 1], TwoCoin(), rng=5)


@pytest.mark.parametrize(
    ("reports", "message"),
    [([0, 1, 1], "must be .n, 3. bits"), ([[0, 1]], "must be .n, 3. bits"), ([[0, 1, 2]], "numbers from 0 to 2")],
)
def test_reports_that_are_no_bits_are_named(reports, message):
    with pytest.raises(ValueError, match=message):
        count_reports(reports, Unary(3, 1.0))

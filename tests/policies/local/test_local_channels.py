"""What local mechanisms reveal, from their channel matrices."""

import itertools
import json
import math

import numpy as np
import pytest

from policies import AnyRecord, privacy_loss
from policies.local import KAry, TwoCoin, Unary, channel_from

CHANNELS = [
    TwoCoin(),
    TwoCoin(0.2, 0.9),
    TwoCoin(0.9, 0.01),
    KAry(2, 1.0),
    KAry(4, 0.1),
    KAry(50, 5.0),
    KAry(7, 1.4),
    KAry.joint((2, 5, 3), 2.0),
    Unary(2, 1.0),
    Unary(6, 0.5),
    Unary(6, 3.0, optimized=False),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_epsilon_is_the_largest_log_ratio_in_the_matrix(channel):
    assert channel.matrix.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert privacy_loss(channel.matrix, AnyRecord()).epsilon == pytest.approx(channel.epsilon, rel=1e-12)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_lie_and_gap_are_what_the_matrix_says(channel):
    k = channel.n_values
    # Unary reports are the numbers whose binary digits are the bits; the others are the values themselves.
    bits = list(itertools.product((0, 1), repeat=k)) if isinstance(channel, Unary) else np.eye(k)
    support = channel.matrix @ np.array(bits)  # (value, counted value)
    expected = np.where(np.eye(k), channel.lie + channel.gap, channel.lie)
    assert support == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_a_channel_can_be_made_again_from_what_a_file_says(channel):
    assert channel_from(channel.name, json.loads(json.dumps(channel.parameters))) == channel


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (0.3, 0.5), (0.25, 0.75), (0.0, 1.0), (0.5, 0.0)])
def test_truth_or_opposite_is_two_coins_with_a_fair_second_one(first, second):
    """Enumerate both coins: heads truth; tails, heads truth; tails, tails the opposite."""
    matrix = np.zeros((2, 2))
    for value in (0, 1):
        for (heads_1, p_1), (heads_2, p_2) in itertools.product(
            ((True, first), (False, 1 - first)), ((True, second), (False, 1 - second))
        ):
            report = value if heads_1 or heads_2 else 1 - value
            matrix[value, report] += p_1 * p_2
    assert TwoCoin.truth_or_opposite(first, second).matrix == pytest.approx(matrix, abs=1e-15)


@pytest.mark.parametrize(("n_values", "share"), [(2, 0.5), (4, 0.1), (100, 0.99)])
def test_a_truth_share_beside_uniform_costs_its_closed_form(n_values, share):
    mixture = share * np.eye(n_values) + (1 - share) / n_values
    assert KAry(n_values, math.log(1 + n_values * share / (1 - share))).matrix == pytest.approx(mixture, rel=1e-12)


@pytest.mark.parametrize("optimized", [True, False])
def test_the_unary_matrix_is_a_product_over_bits(optimized):
    epsilon, k = 1.3, 4
    odds = math.exp(epsilon if optimized else epsilon / 2)
    p, q = (0.5 if optimized else odds / (odds + 1)), 1 / (odds + 1)
    for value in range(k):
        for report, bits in enumerate(itertools.product((0, 1), repeat=k)):
            rates = [p if bit == value else q for bit in range(k)]
            expected = math.prod(rate if bit else 1 - rate for rate, bit in zip(rates, bits, strict=True))
            assert Unary(k, epsilon, optimized).matrix[value, report] == pytest.approx(expected, rel=1e-12)


def test_a_channel_that_is_all_truth_or_none_says_so():
    assert TwoCoin(1.0, 0.5).epsilon == math.inf
    assert TwoCoin(0.5, 0.0).epsilon == math.inf
    assert TwoCoin(0.5, 1.0).epsilon == math.inf
    assert TwoCoin(0.0, 0.3).epsilon == 0
    assert TwoCoin(0.0, 1.0).epsilon == 0


def test_extreme_epsilons_stay_finite():
    for epsilon in (1e-9, 800.0):
        for channel in (KAry(5, epsilon), Unary(5, epsilon), Unary(5, epsilon, optimized=False)):
            assert np.isfinite(channel.matrix).all()
            assert (channel.gap > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KAry(1, 1.0), "n_values must be a whole number >= 2, got n_values=1"),
        (lambda: Unary(1, 1.0), "n_values must be a whole number >= 2, got n_values=1"),
        (lambda: KAry(4, 0.0), "epsilon must be > 0 and finite, got epsilon=0.0"),
        (lambda: KAry(4, math.inf), "epsilon must be > 0 and finite, got epsilon=inf"),
        (lambda: Unary(4, 1.0, optimized=1), "optimized must be True or False, got optimized=1"),
        (lambda: TwoCoin(1.5), r"first must be in \[0, 1\], got first=1.5"),
        (lambda: TwoCoin(0.5, math.nan), r"second must be in \[0, 1\], got second=nan"),
        (lambda: TwoCoin.truth_or_opposite(0.1, 0.1), "reports must be true at least half the time"),
        (lambda: KAry.joint((2, 1), 1.0), r"sizes\[1\] must be a whole number >= 2, got sizes\[1\]=1"),
        (lambda: KAry.joint((), 1.0), "at least one column"),
        (lambda: Unary(17, 1.0).matrix, "n_values must be <= 16, got n_values=17"),
        (lambda: channel_from("laplace", {}), "one of two-coin, k-ary, unary, got 'laplace'"),
        (lambda: channel_from("k-ary", {"epsilon": 1.0}), "needs the parameters epsilon, n_values, got epsilon"),
        (lambda: channel_from("two-coin", {"first": 2, "second": 0.5}), "first must be in"),
    ],
)
def test_parameters_outside_their_range_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()

"""Noise for counts: its probabilities exactly, by following every branch of the draws; its moments and guess rate."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from policies.discrete_laplace import coin_of_exp, discrete_laplace, guess_rate_of_counts, standard_deviation


def pmf(rate, n):
    """The stated distribution."""
    r = math.exp(-rate)
    return (1 - r) / (1 + r) * r ** abs(n)


class NeedsMoreError(Exception):
    """A draw beyond the ones that were laid down."""


def branches(draw, least):
    """The probability of each result, over all branches of probability >= least, and what is left: exact in fractions.

    `draw` asks `below` for a whole number below n, or for a coin of an exponent, a Fraction.
    """
    found, open_branches, rest = Counter(), [((), Fraction(1))], Fraction(0)
    while open_branches:
        path, chance = open_branches.pop()
        waiting, asked = list(path), []

        def below(n, waiting=waiting, asked=asked):
            if waiting:
                return waiting.pop(0)
            asked.append(n)
            raise NeedsMoreError

        try:
            found[draw(below)] += chance
        except NeedsMoreError:
            (n,) = asked
            coin = [(True, math.exp(-n)), (False, -math.expm1(-n))] if isinstance(n, Fraction) else None
            for value, part in coin or [(value, Fraction(1, n)) for value in range(n)]:
                if chance * part < least:
                    rest += chance * part
                else:
                    open_branches.append(((*path, value), chance * part))
    return found, rest


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1)])
def test_a_coin_has_exactly_the_probability_of_its_exponent(exponent):
    found, rest = branches(lambda below: coin_of_exp(exponent, below), Fraction(1, 10**5))
    assert rest < Fraction(1, 200)
    assert found[True] <= math.exp(-exponent) <= found[True] + rest
    assert found[True] + found[False] + rest == 1


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3, 2)])
def test_noise_from_such_coins_has_its_probabilities(rate, monkeypatch):
    monkeypatch.setattr("policies.discrete_laplace.coin_of_exp", lambda exponent, below: below(exponent))
    found, rest = branches(lambda below: discrete_laplace(rate, below), 1e-6)
    assert rest < 0.07
    for n in range(-6, 7):
        assert found[n] == pytest.approx(pmf(rate, n), abs=float(rest) + 1e-12)
    assert abs(found[0] - pmf(1.2 * rate, 0)) > rest  # a wrong rate would be seen


@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0, 3.0, 40.0])
def test_the_standard_deviation_is_that_of_the_distribution(rate):
    places = np.arange(-4000, 4001)
    chances = (1 - math.exp(-rate)) / (1 + math.exp(-rate)) * np.exp(-rate * abs(places))
    assert standard_deviation(rate) == pytest.approx(math.sqrt(float(chances @ places**2)), rel=1e-9)


def test_extreme_rates():
    assert standard_deviation(0.0) == math.inf
    assert standard_deviation(math.inf) == 0.0
    assert discrete_laplace(Fraction(10**6)) == 0
    assert abs(discrete_laplace(Fraction(1, 10**30))) > 10**20
    with pytest.raises(ValueError, match="rate must be > 0"):
        discrete_laplace(Fraction(0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_guess_rate_of_counts_is_that_of_two_neighbouring_logs(epsilon):
    # Two counts, one of which is one less and the other one more: all pairs of noisy counts, up to where noise ends.
    places = np.arange(-400, 401)
    r = math.exp(-epsilon / 2)
    first, second = ((1 - r) / (1 + r) * r ** abs(places - shift) for shift in (0, 1))
    one, other = np.outer(first, second), np.outer(second, first)
    assert (1 + abs(one - other).sum() / 2) / 2 == pytest.approx(guess_rate_of_counts(epsilon), abs=1e-8)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(one / other)[300:500, 300:500]
    assert losses.max() == pytest.approx(epsilon, rel=1e-9)

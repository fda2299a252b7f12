"""Whole-number noise for counts: the discrete Laplace distribution, drawn exactly.

P(noise = n) = (1 - r) / (1 + r) * r^|n| with r = e^-rate, also called two-sided geometric. A count that one person
moves by at most one is told apart from its neighbour by a factor of e^rate at most; several counts that one person
moves by `steps` in all, by e^(rate steps). So counts under "replace-one" (one falls, one rises) take rate epsilon / 2,
under "add-or-remove-one" rate epsilon.

No floating-point number lies between the random whole numbers and the noise: every coin is a comparison of whole
numbers, so the distribution is the stated one and not a rounded one. How long a draw takes depends on the noise that it
finds: a person who can time single draws must be kept from the machine.

References
----------
Ghosh, Roughgarden & Sundararajan (2012), Universally utility-maximizing privacy mechanisms, SIAM Journal on Computing
41(6): the distribution. Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS 33,
algorithms 1 and 2: how to draw it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction

# Draws a whole number from 0 to n - 1, all equally likely, from n >= 1.
Below = Callable[[int], int]


def standard_deviation(rate: float) -> float:
    """Of the noise: sqrt(2 r) / (1 - r) with r = e^-rate; inf at rate 0.

    Examples
    --------
    >>> round(standard_deviation(0.5), 2), round(standard_deviation(1.0), 2)
    (2.8, 1.36)
    """
    return math.inf if rate == 0 else math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)


def guess_rate_of_counts(epsilon: float) -> float:
    """How often the best guess between two neighbouring logs is right, from their noisy counts under "replace-one".

    Such logs differ by one in two counts, each with noise of rate e = epsilon / 2. Of a count, the only difference
    between them apart is on which of two sides it lies: the right one has probability p = 1 / (1 + r), so each is a
    coin of randomised response. Two such coins have the total variation p^2 - (1 - p)^2 = 2 p - 1, and (1 + TV) / 2 is
    p.

    Examples
    --------
    >>> round(guess_rate_of_counts(1.0), 4)
    0.6225
    """
    return 1 / (1 + math.exp(-epsilon / 2))


def discrete_laplace(rate: Fraction, below: Below = secrets.randbelow) -> int:
    """One draw of noise.

    Parameters
    ----------
    rate : Fraction
        > 0: the logarithm of the ratio of the probabilities of n and n + 1, for n >= 0.
    below : callable, optional
        The source of randomness; by default the operating system's, for a release.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For a rate that is not > 0.

    Notes
    -----
    With rate = s / t: a draw of U + t V, U uniform below t and kept with probability e^(-U / t), V the number of heads
    of e^-1 before the first tail, has P(x) proportional to e^(-x / t); floor(x / s) has P(y) proportional to
    e^(-y s / t), and a sign makes it two-sided, where minus 0 is drawn again (Canonne et al. 2020, algorithm 2).
    """
    if not rate > 0:
        raise ValueError(f"rate must be > 0, got rate={rate!r}.")
    s, t = rate.numerator, rate.denominator
    while True:
        start = below(t)
        if not coin_of_exp(Fraction(start, t), below):
            continue
        rounds = 0
        while coin_of_exp(Fraction(1), below):
            rounds += 1
        size, negative = (start + t * rounds) // s, below(2)
        if size or not negative:
            return -size if negative else size


def coin_of_exp(exponent: Fraction, below: Below) -> bool:
    """True with probability e^-exponent, for an exponent in [0, 1] (Canonne et al. 2020, algorithm 1).

    Of coins that show heads with probability x / k, for k = 1, 2, ..., the first tail comes at an odd k with
    probability 1 - x + x^2 / 2! - ... = e^-x.
    """
    k = 1
    while below(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1

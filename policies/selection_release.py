"""A private choice in whole numbers: nothing is rounded after the privacy is proved.

**Grid.** Scores are rounded down to multiples of sensitivity / K. Between neighbours a rounded score still moves by at
most K steps, and up or down as the score did; where the scores were rounded before, up to one step each, by one more.
So differences of scores move by at most G = 2 K + 2 steps, or K + 2 for monotone scores. With the rate
L = epsilon / G per step, a mechanism that loses L G loses epsilon.

**Weights.** f(d), for a gap of d >= 0 steps to the best score, is a whole number > 0 with f(d+1) <= f(d) <= e^L f(d+1)
(see `Weights`). No more is needed of f. Take neighbours whose scores differ by u_j, in [lo, hi] with hi - lo = G, and
whose best scores differ by m, in [lo, hi] too: gaps differ by m - u_j. Then, for any candidate a,

- f of a falls by a factor of at most e^(L max(0, m - u_a)),
- f of any candidate rises by a factor of at most c = e^(L (hi - m)), as u_j <= hi,

and the two multiply to at most e^(L G). The exponential mechanism has P(a) = f(a) / sum f, where the sum rises by at
most c. Permute-and-flip has P(a) = q_a int_0^1 prod_{j != a} (1 - q_j t) dt with q = f / f(0) (McKenna & Sheldon 2020),
where the integral falls by at most c: with q'_j <= c q_j it is at least int_0^(1/c) prod (1 - c q_j t) dt, which is
1/c times int_0^1 prod (1 - q_j t) dt.

**Noise.** For report-noisy-max let S(n) = f(n) / f(0), and add N to each score: n or -1 - n, at even odds, where
P(n >= i) = S(i). P(N >= i) is S(i) / 2 for i >= 0 and 1 - S(-i) / 2 below; it falls by a factor of at most e^L per
step, because S does and (2 - y) / (2 - x) <= x / y for 0 < y <= x <= 1. Hold the noise of the others: a wins from some
threshold of N on, which moves by at most G steps between neighbours, so P(a) changes by at most e^(L G).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

# Steps of the grid per unit of sensitivity: G costs 1e-12 of epsilon more than without rounding.
K = 2**40

# Digits of the largest weight beyond those of the least: what the least weight costs in utility, 1e-16 a candidate.
EXTRA_DIGITS = 16

# Draws a whole number in [0, n) from n.
Below = Callable[[int], int]


@dataclass(frozen=True)
class Weights:
    """f(d) = F + floor(10^B e^(-L d)), with F = 2 + ceil(2 / L).

    F makes up for the floor: f(d) - f(d+1) is at most X (e^L - 1) + 2 with X = 10^B e^(-L (d+1)), and f(d+1) is at
    least F + X - 3/2, so f(d) <= e^L f(d+1) if 2 <= (e^L - 1) (F - 3/2), and e^L - 1 >= L. This leaves room for an
    error of 1/2 in X, of which the decimals below need less than 1e-9.

    Parameters
    ----------
    rate : Fraction
        L, > 0.
    """

    rate: Fraction

    @cached_property
    def least(self) -> int:
        """F."""
        return 2 + ceil(2 / self.rate)

    @cached_property
    def digits(self) -> int:
        """B."""
        return len(str(self.least)) + EXTRA_DIGITS

    @cached_property
    def reach(self) -> int:
        """A gap from which on the weight is F: 10^B e^(-L d) < 1, as ln 10 < 3."""
        return ceil(3 * self.digits / self.rate)

    def __call__(self, gap: int) -> int:
        """f(gap), gap >= 0."""
        if gap >= self.reach:
            return self.least
        # Decimal rounds each step correctly, and so in order: a larger gap never has a larger weight.
        exponent = self.rate * gap
        power = self._context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator))
        return self.least + int(self._context.scaleb(self._context.exp(power), self.digits))

    def largest_gap(self, ticket: int) -> int:
        """The largest gap whose weight is above a ticket in [F, f(0))."""
        context = self._context
        share = context.divide(Decimal(10**self.digits), Decimal(ticket - self.least + 1))
        power = context.multiply(context.ln(share), Decimal(self.rate.denominator))
        gap = int(context.divide(power, Decimal(self.rate.numerator)))
        # That is it, up to rounding; the weights decide.
        while self(gap) <= ticket:
            gap -= 1
        while self(gap + 1) > ticket:
            gap += 1
        return gap

    @cached_property
    def _context(self) -> Context:
        return Context(prec=self.digits + 15)


def grid_gaps(scores: Sequence[float], sensitivity: float) -> list[int]:
    """How many steps of the grid each score lies below the best one, >= 0.

    A float is taken as exactly what it is; the sensitivity as the decimal by which it is written.
    """
    step = Fraction(repr(sensitivity)) / K
    places = [floor(Fraction(score) / step) for score in scores]
    best = max(places)
    return [best - place for place in places]


def release_weights(epsilon: float, monotone: bool) -> Weights:
    """The weights that spend epsilon, > 0 and finite, as the decimal by which it is written."""
    return Weights(Fraction(repr(epsilon)) / ((1 if monotone else 2) * K + 2))


def by_weights(gaps: Sequence[int], weights: Weights, below: Below = secrets.randbelow) -> int:
    """The exponential mechanism: a position, by its weight."""
    mine = [weights(gap) for gap in gaps]
    ticket = below(sum(mine))
    for position, weight in enumerate(mine):
        ticket -= weight
        if ticket < 0:
            return position
    raise AssertionError("a ticket is below the sum of the weights")


def by_flips(gaps: Sequence[int], weights: Weights, below: Below = secrets.randbelow) -> int:
    """Permute-and-flip: the first position, in random order, whose coin shows heads. The best one's always does."""
    waiting, heads = list(range(len(gaps))), weights(0)
    while True:
        position = waiting.pop(below(len(waiting)))
        if below(heads) < weights(gaps[position]):
            return position


def by_noise(gaps: Sequence[int], weights: Weights, below: Below = secrets.randbelow) -> int:
    """Report-noisy-max: the position of the largest sum of score and noise, the first of equal ones."""
    # A pair compares by its first entry: noise may be infinite, and then the score no longer counts.
    noise = [_noise(weights, below) for _ in gaps]
    sums = [(sign, 0) if sign else (0, steps - gap) for (sign, steps), gap in zip(noise, gaps, strict=True)]
    return sums.index(max(sums))


def _noise(weights: Weights, below: Below) -> tuple[int, int]:
    """Steps of noise as (0, N); (1, 0) and (-1, 0) stand for infinite noise, which has probability F / f(0)."""
    ticket, negative = below(weights(0)), below(2)
    if ticket < weights.least:
        return (-1, 0) if negative else (1, 0)
    steps = weights.largest_gap(ticket)
    return 0, -1 - steps if negative else steps

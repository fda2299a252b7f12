"""A private selection in whole numbers: nothing is rounded after the privacy is proved, and no step depends on a score.

**Grid.** Scores are rounded down to multiples of sensitivity / K, their *places*. What is rounded is the score itself
where it is given exactly: a whole number, a Fraction or a Decimal of any size. A float may be off by rounding, and is
taken where its last digit is worth at most a quarter of a step: up to 2^20 sensitivities for a float of 64 bits. Any
other float is refused by `places_on_grid`, because nothing bounds by how many steps two such scores differ. So between
neighbours a place moves by at most K + 1 steps, or, where no score moves against another, from 1 down to K + 1 up; and
differences of places move by at most 2 K + 2 steps, or K + 2 for such monotone scores. G is one step more, for the
rounding of `by_weights`; with the rate L = epsilon / G per step, a mechanism that loses L G loses epsilon.

**Gaps.** d, the steps that a place lies below the best one, is cut off at 2^n - 1 steps. Take neighbours whose places
differ by u_j, in [lo, hi] with hi - lo = G - 1, and whose best places differ by m, in [lo, hi] too: gaps differ by
m - u_j before they are cut off, and by a part of that afterwards. So they still differ by no more than from m - hi,
which is <= 0, to m - lo, which is >= 0: below, u_j stands for m minus that difference.

**Weights.** f(d) is a whole number > 0 with f(d+1) <= f(d) <= e^L f(d+1) (see `WholeWeights`). No more is needed of f.
For any candidate a,

- f of a falls by a factor of at most e^(L max(0, m - u_a)),
- f of any candidate rises by a factor of at most c = e^(L (hi - m)), as u_j <= hi,

and the two multiply to at most e^(L (G - 1)). The exponential mechanism has P(a) = f(a) / sum f, where the sum rises by
at most c. Permute-and-flip has P(a) = q_a int_0^1 prod_{j != a} (1 - q_j t) dt with q = f / f(0) (McKenna & Sheldon
2020), where the integral falls by at most c: with q'_j <= c q_j it is at least int_0^(1/c) prod (1 - c q_j t) dt, which
is 1/c times int_0^1 prod (1 - q_j t) dt.

**Noise.** For report-noisy-max let S(n) = f(n) / f(0), and add N to each score: n or -1 - n, at even odds, where
P(n >= i) = S(i). P(N >= i) is S(i) / 2 for i >= 0 and 1 - S(-i) / 2 below; it falls by a factor of at most e^L per
step, because S does and (2 - y) / (2 - x) <= x / y for 0 < y <= x <= 1. Hold the noise of the others: a wins from some
threshold of N on, which moves by at most G - 1 steps between neighbours, so P(a) changes by at most e^(L (G - 1)).

**Constant work.** How long a choice takes, and how many random bits it draws, can be seen from outside, and must not
tell of the scores. From the places on, the steps of a draw, the bits that it takes and the length of every number in it
depend on nothing but the number of candidates, epsilon and whether scores are monotone, which are public: no loop ends
early, gaps and weights carry a leading bit that keeps their length the same, and the only draws that may be repeated
(the order of permute-and-flip) have public bounds. This is as far as Python goes. What is not constant: reading scores
into places, which `places_on_grid` does before the draw and whose time depends on how long the numbers are written;
and what lies below a step, such as the processor's caches, where a comparison of two numbers of one length may end some
nanoseconds sooner. A person who can time that must be kept from the machine.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from numbers import Rational
from typing import Any

import numpy as np

# Steps of the grid per unit of sensitivity: G costs 2e-9 of epsilon more than without rounding.
K = 2**30

# Bits of the largest weight beyond those of the least: what the least weight costs in utility, 6e-17 a candidate.
EXTRA_BITS = 54

# 2^n >= e^(n x) for this x: an upper bound on ln 2, by 2e-8.
LN_2 = Fraction(6931472, 10**7)

# Of this many steps are places raised: more than any two scores can differ by, as floats end at 1e308 and 5e-324.
HEIGHT = 1 << 2200

# Draws a whole number in [0, 2^n) from n.
Bits = Callable[[int], int]


class WholeWeights:
    """f(d) = F + floor(A e^(-L d)), with F = 2 + ceil(2 / L), and A = 2^M - F so that f(0) = 2^M.

    e^(-L d) is a product over the n bits of d, from the highest to the lowest, of 1 or e^(-L 2^i), in whole numbers
    over 2^Q and always rounded down. A factor is below what it should be by less than 2 / 2^Q and a product by 1 / 2^Q
    more, so X = A e^(-L d) comes out in (X - r, X] with r = 3 n A / 2^Q; Q makes r < min(1, L) / 2^7. From there:

    - f(d+1) <= f(d): X falls by (1 - e^-L) X >= 0.6 min(1, L) X per step, more than r while X is at least 1/2, which
      it is for all d < `reach`; from `reach` on X < 1, and f = F.
    - f(d) <= e^L f(d+1): with X that of d + 1, f(d) <= F + e^L X and f(d+1) >= F + X - r - 1. So it holds if
      (e^L - 1) F >= e^L (1 + r), which is F >= (1 + r) (1 + 1 / (e^L - 1)), and e^L - 1 >= L.

    A number of bits that depended on d would tell of it. So d carries a leading bit 2^n, the product and its factors 12
    times 2^Q, and the weight `bias` = 16 times 2^M: then every number in between has one length, whatever d is.

    Parameters
    ----------
    rate : Fraction
        L, > 0.

    Attributes
    ----------
    least, bits : int
        F and M.
    bias : int
        What `raised` adds to a weight.
    reach : int
        A gap from which on the weight is F: A e^(-L d) < 1.
    gap_bits : int
        n: gaps are cut off at 2^n - 1, which is `reach` or more.
    guard : int
        Bits of ceil(1 / L).
    """

    def __init__(self, rate: Fraction) -> None:
        self.least = 2 + ceil(2 / rate)
        self.bits = self.least.bit_length() + EXTRA_BITS
        self.bias = 16 << self.bits
        self.reach = ceil(self.bits * LN_2 / rate)
        self.gap_bits = self.reach.bit_length()
        self.guard = ceil(1 / rate).bit_length()
        # Q; b, 2 b^2 and 11 b; and 1 as a product, 2^Q + b.
        self._precision = self.bits + self.gap_bits.bit_length() + self.guard + 9
        b = 12 << self._precision
        self._constants, self._one = (b, 2 * b * b, 11 * b), 13 << self._precision
        # Squaring doubles an error and rounds: 2 units of the last place become less than 3 2^n, of n + 8 bits more.
        finer = self._precision + self.gap_bits + 8
        power, powers = 0, []
        if rate <= finer:  # else e^-L < 2^-finer
            # e^-L times 2^finer, rounded down, or one less.
            context = Context(prec=finer // 3 + 20, rounding=ROUND_FLOOR)
            exponent = context.divide(Decimal(-rate.numerator), Decimal(rate.denominator))
            power = max(0, int(context.multiply(context.exp(exponent), Decimal(1 << finer))) - 1)
        for _ in range(self.gap_bits):
            powers.append(power >> (finer - self._precision))
            power = (power * power) >> finer
        # 1 and e^(-L 2^i), as factors, from i = n - 1 down to 0.
        self._factors = [(self._one, power + b) for power in reversed(powers)]

    def __call__(self, gap: int) -> int:
        """f(gap), gap >= 0."""
        longest = (1 << self.gap_bits) - 1
        return self.raised(min(gap, longest) + longest + 1) - self.bias

    def raised(self, gap: int) -> int:
        """f(d) + bias, for gap = d + 2^n."""
        product = self._one
        for place, factor in zip(range(self.gap_bits - 1, -1, -1), self._factors, strict=True):
            product = self._times(product, factor[(gap >> place) & 1])
        return self._weight(product)

    def longest_within(self, ticket: int) -> int:
        """d + 2^n for the largest d < 2^n with f(d) > ticket, in [0, 2^M); d is 2^n - 1 if and only if ticket < F.

        The bits of d are found from the highest on: each is 1 if the weight stays above the ticket.
        """
        found, product, limit = 1, self._one, ticket + self.bias
        for _, factor in self._factors:
            longer = self._times(product, factor)
            above = self._weight(longer) > limit
            product = (product, longer)[above]
            found = 2 * found + above
        return found

    def _times(self, first: int, second: int) -> int:
        """x y / 2^Q, rounded down, plus b, of x + b and y + b, where b is 12 times 2^Q."""
        # (x + b) (y + b) + 2 b^2 - b ((x + b) + (y + b)) = x y + b^2, and b^2 / 2^Q = 12 b.
        b, two_squares, most = self._constants
        return (((first * second + two_squares) - (first + second) * b) >> self._precision) - most

    def _weight(self, product: int) -> int:
        """F + floor(A x / 2^Q) + bias of x + b."""
        amplitude = (1 << self.bits) - self.least
        return ((product * amplitude) >> self._precision) + (self.least + self.bias - 12 * amplitude)


def places_on_grid(scores: Sequence[Any], sensitivity: float) -> list[int]:
    """The places of scores on the grid, raised by `HEIGHT`; ValueError for a float that is too coarse for it.

    An exact number is taken as what it is, also a float that is accepted. The sensitivity is the decimal by which it is
    written, or the float if that is larger; what it may be less than the one that is meant, a share of 2^-52 of it or
    2^-22 steps, is within the step that the proof allows for rounding.
    """
    unit = max(Fraction(repr(sensitivity)), Fraction(sensitivity))
    places = []
    for position, score in enumerate(scores):
        if isinstance(score, Decimal):
            top, bottom = score.as_integer_ratio()
        elif isinstance(score, Rational):
            top, bottom = int(score.numerator), int(score.denominator)
        else:
            top, bottom = float(score).as_integer_ratio()
            last_digit = max(float(np.finfo(type(score)).eps) if isinstance(score, np.floating) else 0.0, 2.0**-52)
            digit, digits = last_digit.as_integer_ratio()
            if abs(top) * digit * 4 * K * unit.denominator > unit.numerator * bottom * digits:
                raise ValueError(
                    f"scores[{position}]={score!r} cannot be released: a float of this size is rounded more coarsely "
                    f"than the proof of privacy for sensitivity={float(unit)!r} allows (at most "
                    f"{float(unit / (4 * K) / Fraction(last_digit)):.6g}); give whole numbers as int, other exact "
                    "numbers as Fraction or Decimal, or declare a larger sensitivity."
                )
        places.append(HEIGHT + top * K * unit.denominator // (bottom * unit.numerator))
    return places


def gaps_below_best(places: Sequence[int], weights: WholeWeights) -> list[int]:
    """d + 2^n for each of the places, where d is its gap, cut off at 2^n - 1."""
    best, span = max(places) + HEIGHT, 1 << weights.gap_bits
    return [min(best - place, HEIGHT + span - 1) - (HEIGHT - span) for place in places]


@lru_cache(maxsize=64)
def release_weights(epsilon: float, monotone: bool) -> WholeWeights:
    """The weights that spend epsilon, > 0 and finite: the decimal by which it is written, or the float if less.

    Kept for the next choice: they depend on what is public alone, and take a third of its time.
    """
    spent = min(Fraction(repr(epsilon)), Fraction(epsilon))
    return WholeWeights(spent / ((1 if monotone else 2) * K + 3))


def by_weights(gaps: Sequence[int], weights: WholeWeights, bits: Bits = secrets.randbits) -> int:
    """The exponential mechanism: a position, by its weight.

    A ticket in [0, S), S the sum of the weights, is floor(u S / 2^R) for R random bits u. A position has as many u as
    there are whole numbers in an interval of length 2^R f / S, which is that number but for less than 1: its
    probability is off by a share of at most r = S / (f 2^R) <= k 2^M / 2^R. R makes that less than min(1, L) / 2^4, so
    two probabilities change their ratio by less than e^L: the step that G has more.
    """
    k = len(gaps)
    length = weights.bits + k.bit_length() + weights.guard + 4
    # The same trick as in `WholeWeights`: all sums begin at a power of 2 that is far above them.
    base = weights.bias << (k.bit_length() + 5)
    total, sums = base, []
    for gap in gaps:
        total += weights.raised(gap)
        sums.append(total)
    ticket = bits(length)
    # With total = S + above: ((u + 12 2^R) total + 16 base 2^R - 12 total 2^R - u above) / 2^R is u S / 2^R + 16 base.
    above = base + k * weights.bias
    drawn = (ticket + (12 << length)) * total + (base << (length + 4)) - ((12 * total) << length) - ticket * above
    drawn >>= length
    position = 0
    for j, reached in enumerate(sums):
        position += reached + 15 * base <= drawn + (j + 1) * weights.bias
    return position


def by_flips(gaps: Sequence[int], weights: WholeWeights, bits: Bits = secrets.randbits) -> int:
    """Permute-and-flip: the first position, in random order, whose coin shows heads. The best one's always does.

    All coins are flipped, also those behind the first heads.
    """
    waiting, order = list(range(len(gaps))), []
    while waiting:
        order.append(waiting.pop(_below(len(waiting), bits)))
    heads = [bits(weights.bits) + weights.bias < weights.raised(gap) for gap in gaps]
    chosen, found = 0, False
    for position in order:
        chosen = (position, chosen)[found]
        found |= heads[position]
    return chosen


def by_noise(gaps: Sequence[int], weights: WholeWeights, bits: Bits = secrets.randbits) -> int:
    """Report-noisy-max: the position of the largest sum of score and noise, the first of equal ones."""
    span = 1 << weights.gap_bits
    sums = []
    for gap in gaps:
        steps, negative = weights.longest_within(bits(weights.bits)), bits(1)
        # Steps and gap both carry their leading bit: the sum is N - d + 12 span, between 10 and 14 span.
        noise = (steps + 12 * span, 14 * span - 1 - steps)[negative]
        # Noise without end has probability F / f(0), and then the score no longer counts.
        endless = steps == 2 * span - 1
        sums.append((noise - gap, (15 * span, 9 * span)[negative])[endless])
    return max(range(len(sums)), key=sums.__getitem__)


def _below(n: int, bits: Bits) -> int:
    """A whole number in [0, n), n public: as few bits as can hold it, drawn until the number is below n."""
    while True:
        drawn = bits((n - 1).bit_length())
        if drawn < n:
            return drawn

"""Probabilities as whole numbers: no floating-point step lies between the random bits and a report.

A report is chosen by comparing a random word, uniform on 0..TOTAL - 1, with whole thresholds, so its probabilities are
multiples of 1 / TOTAL, exactly. They are rounded towards more privacy: their loss is never above the declared epsilon.

References
----------
Mironov (2012), On significance of the least significant bits for differential privacy: what rounding can give away.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

# Thresholds up to TOTAL itself fit into an unsigned 64-bit word.
BITS = 63
TOTAL = 1 << BITS

# Digits of e^epsilon; what the last one may be wrong by is taken off.
DIGITS = 60

# e^45 > TOTAL: with words of 63 bits no ratio of two probabilities is larger.
LARGEST = Decimal(45)


def exp_floor(epsilon: float, *, halves: int = 0) -> Fraction:
    """A fraction just below e^(epsilon / 2^halves), or below e^45 if that is less.

    `epsilon` is read as the shortest decimal that stands for it, if that is less than the float: who declares 0.1 gets
    at most 0.1, though the nearest float is a little larger.

    Examples
    --------
    >>> float(exp_floor(1.0))
    2.718281828459045
    """
    with localcontext() as context:
        context.prec = DIGITS
        declared = min(Decimal(epsilon), Decimal(repr(epsilon)), LARGEST) / 2**halves
        # One step down for the rounding of the exponential, one for that of an exponent with more digits.
        return Fraction(declared.exp().next_minus().next_minus())


def ceil(value: Fraction) -> int:
    """The smallest whole number that is not below `value`."""
    return -(-value.numerator // value.denominator)


def require_order(high: int, low: int, epsilon: float) -> None:
    """ValueError if whole numbers leave no difference between a value and the others (epsilon near k^2 / TOTAL)."""
    if high <= low:
        raise ValueError(f"epsilon={epsilon!r} is too small to be kept to exactly with random words of {BITS} bits.")

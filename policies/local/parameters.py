"""What parameters of local mechanisms may be, and probabilities as whole numbers.

No floating-point step lies between the random bits and a report. A report is chosen by comparing a random word, uniform
on 0..TOTAL - 1, with whole thresholds, so its probabilities are multiples of 1 / TOTAL, exactly. They are rounded
towards more privacy: their loss is never above the declared epsilon.

References
----------
Mironov (2012), On significance of the least significant bits for differential privacy: what rounding can give away.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import IntArray

# So many bad rows are named in a message.
ROWS_SHOWN = 5


def local_epsilon(value: Any) -> float:
    """`value` as a float > 0 and finite: a report at 0 says nothing, one at infinity everything."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"epsilon must be > 0 and finite, got epsilon={value!r}.")
    return float(value)


def probability(value: Any, name: str) -> float:
    """`value` as a float in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {name}={value!r}.")
    return float(value)


def inner_probability(value: Any, name: str) -> float:
    """`value` as a float in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be > 0 and < 1, got {name}={value!r}.")
    return float(value)


def at_least(value: Any, name: str, least: int) -> int:
    """`value` as an int >= least."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {name}={value!r}.")
    return int(value)


def whole_counts(counts: ArrayLike, n_values: int) -> IntArray:
    """A copy of (k,) whole numbers >= 0."""
    array = np.asarray(counts)
    if array.shape != (n_values,):
        raise ValueError(f"counts must have shape ({n_values},), got {array.shape}.")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"counts must be whole numbers >= 0, got an array of {array.dtype}.")
    bad = np.flatnonzero(~((array >= 0) & (array < 2**53) & (array == np.floor(array))))
    if bad.size:
        raise ValueError(f"counts must be whole numbers >= 0, got counts[{bad[0]}]={array[bad[0]].item()!r}.")
    return array.astype(np.intp)


def codes(values: ArrayLike, n_values: int) -> IntArray:
    """(n,) whole numbers 0..k-1; the message names the first rows that hold something else."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise ValueError(f"values must be (n,) whole numbers, got shape {array.shape} of {array.dtype}.")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= n_values):
        bad = np.flatnonzero((array < 0) | (array >= n_values))
        rows = ", ".join(map(str, bad[:ROWS_SHOWN])) + (", ..." if bad.size > ROWS_SHOWN else "")
        raise ValueError(
            f"values must be from 0 to {n_values - 1}, got values[{bad[0]}]={int(array[bad[0]])} "
            f"({bad.size} outside, in rows {rows})."
        )
    return array.astype(np.intp, copy=False)


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

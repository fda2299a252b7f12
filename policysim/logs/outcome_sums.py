"""Sums of outcomes and of their squares that are exact, and patients that have the same sums.

Each number is, up to its sign, a whole number of at most 68 bits times 2^(16 j - 1075), j the first bits of its
exponent. Of numbers with the same sign and j, sums are sums of whole numbers, and so are those of squares. They are
held as limbs of 26 bits, each summed by itself, and no order changes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray

# Bits of a number: of its fraction, and of these and the last of its exponent, by which a whole number is shifted.
FRACTION, WHOLE = 52, 56
LIMB = 26
MASK = (1 << LIMB) - 1
# Limbs of the sum of whole numbers, and of that of their squares. None overflows for fewer than 2^36 patients.
OF_NUMBERS, OF_SQUARES = 3, 6
N_SUMS = OF_NUMBERS + OF_SQUARES
# Of a number that is missing.
NAN = int(np.array(np.nan).view(np.int64))


def without_last(bits: NDArray[np.int64], dropped: int) -> NDArray[np.int64]:
    """The bits of numbers with so many of the last, at most 56, set to 0; a number that is missing stays so."""
    return np.where(bits == NAN, NAN, bits & (-1 << dropped))


def sums_of(bits: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Limbs of the sums over the patients of each row, (N_SUMS, m): of whole numbers, then of squares, largest first.

    Parameters
    ----------
    bits : array, (m,)
        Those of numbers.
    counts : array, (m,)
        How many patients have each.
    """
    exponent = (bits >> FRACTION) & 0x7FF
    # The first bit of a number is not written, but of the smallest, which have the exponent of the next ones.
    number = (bits & ((1 << FRACTION) - 1)) | (np.minimum(exponent, 1) << FRACTION)
    shift = np.maximum(exponent, 1) & ((1 << WHOLE - FRACTION) - 1)
    low = (number & MASK) << shift
    high = (low >> LIMB) + ((number >> LIMB) << shift)
    number0, number1, number2 = low & MASK, high & MASK, high >> LIMB
    squares = [
        number0 * number0,
        2 * number0 * number1,
        number1 * number1 + 2 * number0 * number2,
        2 * number1 * number2,
        number2 * number2,
    ]
    limbs, carried = [], np.zeros_like(bits)
    for square in squares:
        carried = carried + square
        limbs.append(carried & MASK)
        carried = carried >> LIMB
    return np.stack([number2, number1, number0, carried, *limbs[::-1]]) * counts


def stand_ins(
    bits: NDArray[np.int64], counts: NDArray[np.int64], sums: NDArray[np.int64]
) -> tuple[IntArray, FloatArray, NDArray[np.int64]]:
    """Patients in place of those that were summed: as many, and with the same sums of each outcome and of its square.

    The n patients of a row, whose outcomes have the mean m and the standard deviation s, become a with the outcome
    m + s sqrt(b / a) and b = n - a with m - s sqrt(a / b). a is n / 2, or as much less as it takes for no outcome to
    change its sign. Where no outcome of a row differs, the row stays as it is.

    Parameters
    ----------
    bits : array, (m, n_outcomes)
        `without_last` ones.
    counts : array, (m,)
        Patients of each row.
    sums : array, (n_outcomes * N_SUMS, m)
        `sums_of` their outcomes.

    Returns
    -------
    rows : array, (r,)
        The row that each belongs to; rising.
    values : array, (r, n_outcomes)
        Their outcomes.
    counts : array, (r,)
        How many patients have these.

    Notes
    -----
    What is linear in an outcome and its square has the same mean over these as over the patients themselves: the mean
    of an arm, its standard error, the sums of a regression. Parts of them that are drawn at random, such as folds, have
    sums with the same means, variances and covariances, too: without replacement these depend on the mean and the
    variance of all alone. So held-out patients tell a model no more of those that it was fitted to than the real ones
    do. Third and fourth powers are not the same: they widen an interval of skewed outcomes by a share of the order
    1 / n.
    """
    means, spreads = np.empty(bits.shape), np.empty(bits.shape)
    for place in range(bits.shape[1]):
        own = sums[place * N_SUMS : (place + 1) * N_SUMS]
        means[:, place], spreads[:, place] = _moments(bits[:, place], counts, own)
    apart = (spreads > 0).any(axis=1)
    ratios = np.divide(means, spreads, out=np.full(means.shape, np.inf), where=spreads > 0) ** 2
    most = counts / (1 + 1 / np.maximum(ratios.min(axis=1), 1 / np.maximum(counts - 1, 1)))
    first = np.where(apart, np.clip(most.astype(np.int64), 1, np.maximum(counts // 2, 1)), counts)
    rows = np.repeat(np.arange(len(counts)), 1 + apart)
    second = np.append(False, rows[1:] == rows[:-1])
    own = np.where(second, counts[rows] - first[rows], first[rows])
    # Away from 0 for the first ones.
    away = np.where(second, -1.0, 1.0) * np.sqrt((counts[rows] - own) / own)
    values: FloatArray = means[rows] + np.copysign(spreads, means)[rows] * away[:, None]
    return rows, values, own


def _moments(
    bits: NDArray[np.int64], counts: NDArray[np.int64], sums: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """The mean and the standard deviation of each row, rounded in their last bits only; NaN and 0 where it is missing.

    Without a difference the mean is the number itself: whatever is alike before it is summed stays so.
    """
    absent = bits == NAN
    n: Any = counts.astype(object)
    numbers, squares = _joined(sums[:OF_NUMBERS]), _joined(sums[OF_NUMBERS:])
    power = np.where(absent, 0, ((bits >> WHOLE) & 0x7F) * (1 << WHOLE - FRACTION) - 1075)
    # Python's division of whole numbers of any size is rounded once.
    mean = np.ldexp((numbers / n).astype(np.float64), power)
    spread = np.ldexp(np.sqrt(((n * squares - numbers * numbers) / (n * n)).astype(np.float64)), power)
    return np.where(absent, np.nan, np.where(bits < 0, -mean, mean)), np.where(absent, 0.0, spread)


def _joined(limbs: NDArray[np.int64]) -> Any:
    """The whole numbers of which these are limbs, the largest first, of any size each: (n_limbs, m) -> (m,)."""
    total: Any = limbs[0].astype(object)
    for limb in limbs[1:]:
        total = (total << LIMB) + limb.astype(object)
    return total

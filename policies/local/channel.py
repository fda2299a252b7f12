"""Channel: how one value becomes a report that is safe to hand over, and what that reveals.

Handing over reports: from the operating system's randomness for release, from a generator for simulation.

No floating-point step lies between the random bits and a report. A report is chosen by comparing a random word, uniform
on 0..TOTAL - 1, with whole thresholds, so its probabilities are multiples of 1 / TOTAL, exactly. They are rounded
towards more privacy: their loss is never above the declared epsilon.

References
----------
Mironov (2012), On significance of the least significant bits for differential privacy: what rounding can give away.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from dataclasses import Field, fields
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.arrays import FloatArray, Frozen, IntArray, Words, positive

# So many bad rows are named in a message.
ROWS_SHOWN = 5


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


def require_order(high: int, low: int, epsilon: float) -> None:
    """ValueError if whole numbers leave no difference between a value and the others (epsilon near k^2 / TOTAL)."""
    if high <= low:
        raise ValueError(f"epsilon={epsilon!r} is too small to be kept to exactly with random words of {BITS} bits.")


# (n,) report codes, or (n, k) bits.
Reports: TypeAlias = NDArray[np.integer[Any]]


class Channel(Frozen, ABC):
    """A local mechanism: each person's value 0..k-1 is randomised before anybody else sees it.

    Every channel here is a *pure* protocol (Wang et al. 2017): a report counts for some of the values, and counts for
    v with one probability if v is the person's value and with another, the same for all other values, if it is not.
    That is all that estimation from counts needs.

    Attributes
    ----------
    n_values : int
        k, the number of values, >= 2.
    epsilon : float
        The exact privacy loss: max over values v, v' and reports r of log p(r|v) / p(r|v').
    matrix : array, (n_values, n_reports)
        p(report | value), read-only; rows sum to 1.
    lie : array, (n_values,)
        P(a report counts for v | the value is another one): q* in the reference.
    gap : array, (n_values,)
        P(a report counts for v | the value is v) - lie: p* - q*, without cancellation.
    parameters : dict
        What the channel can be made of again, in JSON's types.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, definition 1.
    """

    name: ClassVar[str]
    n_values: int
    epsilon: float

    @property
    @abstractmethod
    def matrix(self) -> FloatArray:
        """p(report | value)."""

    @property
    @abstractmethod
    def lie(self) -> FloatArray:
        """P(a report counts for v | the value is another one)."""

    @property
    @abstractmethod
    def gap(self) -> FloatArray:
        """P(a report counts for v | the value is v) - lie."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What the channel can be made of again: every channel is a dataclass."""
        given: tuple[Field[Any], ...] = fields(self)  # type: ignore[arg-type]
        return {each.name: getattr(self, each.name) for each in given if each.init}

    @property
    def words(self) -> int:
        """How many random words one report takes."""
        return 1

    @abstractmethod
    def report(self, values: IntArray, words: Words) -> Reports:
        """The reports of (m,) values for (m * self.words,) words that are uniform on 0..TOTAL - 1."""

    def count(self, reports: Reports) -> IntArray:
        """How many reports count for each value, (k,)."""
        return np.bincount(reports, minlength=self.n_values)

    @abstractmethod
    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """What `count` gives when the same people report again and again, (runs, k); `counts` (k,) are the true ones.

        A run is drawn as a whole: its cost does not depend on the number of people. Simulation only.
        """


# Random words taken at a time: what is worked on stays in the caches.
WORDS = 1 << 16


def privatize(values: ArrayLike, channel: Channel, *, rng: np.random.Generator | None = None) -> Reports:
    """One report for each value; call it on one chunk after another where there are many.

    Without a generator the randomness is the operating system's, and the reports may be handed over: their exact
    probabilities are `channel.weights` over 2^63, with a privacy loss of at most `channel.epsilon`. With a generator
    it is a simulation through the same thresholds: whoever knows the seed can undo it.

    Parameters
    ----------
    values : array, (n,) of int
        0..k-1.
    channel : Channel
        The mechanism.
    rng : numpy.random.Generator, optional
        For simulation.

    Returns
    -------
    array
        (n,) codes for two-coin and k-ary response, (n, k) bits of uint8 for unary encoding.

    Raises
    ------
    ValueError
        For values outside 0..k-1, naming the rows; for a release through a channel whose epsilon is 0 or infinite.
    TypeError
        For an `rng` that is not a generator.

    Examples
    --------
    >>> from policies.local.response import KAry
    >>> privatize([0, 1, 2, 3], KAry(4, 30.0))
    array([0, 1, 2, 3])
    """
    if rng is None:
        positive(channel.epsilon, "epsilon")
    elif not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be None (release) or a numpy.random.Generator (simulation), got rng={rng!r}.")
    valid = codes(values, channel.n_values)
    step = max(1, WORDS // channel.words)
    # The empty first part gives the reports their type and shape when there are no values.
    parts = [channel.report(valid[:0], _words(0, rng))]
    for start in range(0, len(valid), step):
        chunk = valid[start : start + step]
        parts.append(channel.report(chunk, _words(len(chunk) * channel.words, rng)))
    return np.concatenate(parts)


def count_reports(reports: Reports, channel: Channel) -> IntArray:
    """How many reports count for each value, (k,); add these up over chunks.

    Parameters
    ----------
    reports : array
        (n,) codes, or (n, k) bits for unary encoding, as `privatize` gives them.
    channel : Channel
        The mechanism.

    Raises
    ------
    ValueError
        For reports that the channel cannot have made.
    """
    array = np.asarray(reports)
    if channel.words == 1:
        return channel.count(codes(array, channel.n_values))
    if array.ndim != 2 or array.shape[1] != channel.n_values or array.dtype.kind not in "iub":
        raise ValueError(f"reports must be (n, {channel.n_values}) bits, got shape {array.shape} of {array.dtype}.")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= 1:
        raise ValueError(f"reports must be bits, got numbers from {array.min()} to {array.max()}.")
    return channel.count(array)


def _words(size: int, rng: np.random.Generator | None) -> Words:
    """Words that are uniform on 0..2^63 - 1."""
    if rng is not None:
        return rng.integers(1 << BITS, size=size, dtype=np.uint64)
    return np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64) >> np.uint64(64 - BITS)

"""Channel: how one value becomes a report that is safe to hand over, what that reveals, and reports of a simulation.

Reports for a release are drawn in whole numbers: `policysim.release.exact`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.arrays import FloatArray, Frozen, IntArray

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
        """How many random numbers one report takes."""
        return 1

    @abstractmethod
    def report(self, values: IntArray, uniforms: FloatArray) -> Reports:
        """The reports of (m,) values for (m * self.words,) random numbers that are uniform on [0, 1)."""

    def count(self, reports: Reports) -> IntArray:
        """How many reports count for each value, (k,)."""
        return np.bincount(reports, minlength=self.n_values)

    @abstractmethod
    def simulate_counts(self, counts: IntArray, *, runs: int, rng: np.random.Generator) -> IntArray:
        """What `count` gives when the same people report again and again, (runs, k); `counts` (k,) are the true ones.

        A run is drawn as a whole: its cost does not depend on the number of people. Simulation only.
        """


# Random numbers taken at a time: what is worked on stays in the caches.
WORDS = 1 << 16


def privatize(values: ArrayLike, channel: Channel, *, rng: np.random.Generator) -> Reports:
    """One report for each value, for simulation; call it on one chunk after another where there are many.

    A person who knows the seed can undo it. `policysim privatize` makes a release of a file, and
    `policysim.release.exact.response_draw` one of values.

    Parameters
    ----------
    values : array, (n,) of int
        0..k-1.
    channel : Channel
        The mechanism.
    rng : numpy.random.Generator

    Returns
    -------
    array
        (n,) codes for two-coin and k-ary response, (n, k) bits of uint8 for unary encoding.

    Raises
    ------
    ValueError
        For values outside 0..k-1, naming the rows.
    TypeError
        For an `rng` that is not a generator.

    Examples
    --------
    >>> from policies.local.response import KAry
    >>> privatize([0, 1, 2, 3], KAry(4, 30.0), rng=np.random.default_rng(0))
    array([0, 1, 2, 3])
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, for simulation, got rng={rng!r}.")
    valid = codes(values, channel.n_values)
    step = max(1, WORDS // channel.words)
    # The empty first part gives the reports their type and shape when there are no values.
    parts = [channel.report(valid[:0], rng.random(0))]
    for start in range(0, len(valid), step):
        chunk = valid[start : start + step]
        parts.append(channel.report(chunk, rng.random(len(chunk) * channel.words)))
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

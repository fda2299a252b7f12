"""Sampler: many choices from one table of probabilities, through whole thresholds. For simulation, not for a release.

**Weights.** Let N = 2^63, and p a row of probabilities as 64-bit floats. N p_a is exact, as N is a power of two. The
weight n_a is N p_a rounded to the nearest whole number, and 1 where p_a > 0 would round to 0. What is then missing from
a sum of N, or too much, goes to the largest weight. So

- n_a = 0 exactly where p_a = 0, and the weights sum to N;
- n_a = N p_a for p_a >= 2^-11, where N p_a is whole already, and |n_a - N p_a| <= 1/2 below, or < 1 where it is raised
  to 1; but for the largest, which is off by at most (k - 1) + N |1 - sum p|.

**Thresholds.** T_j = n_0 + ... + n_j for j < k - 1, whole numbers in [0, N]. A word w, uniform on 0..N-1, gives the
action a = #{j : T_j <= w}, which happens for exactly n_a words. No step is rounded, so the probabilities drawn from are
n_a / N, and an action of probability 0 is never drawn.

**What rounding costs.** Let r be the largest |log(n_a / (N p_a))| over all rows and actions of probability > 0. A table
whose privacy loss is epsilon is drawn from with a loss of at most epsilon + 2 r. `Sampler.rounding` is an upper bound
of r, computed from the weights of this table. With p_min the smallest probability > 0, and each row summing to 1 up to
s, r is at most x / (1 - x) with x = max(2^-64 / p_min, k (s + (k - 1) 2^-63) / (1 - s)) if p_min >= 2^-63: 6e-14 for
p_min = 1e-6 and rows that sum to 1 up to rounding. A smaller p_min is drawn with 2^-63 instead, and r is
log(2^-63 / p_min), which is finite; a user who prefers a delta may count such actions as 2^-63 each.

This is about words that are uniform and independent. Here they are pseudo-random: word i of a 64-bit key is made from
key and i alone (`draw_rows`), so that the choice of patient i is the same however patients are divided
among calls, threads and machines. A person who knows some choices may find the key, and with it all others.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policies.arrays import FloatArray, IntArray, Words, blocks, equal_rows, probability_table
from policies.html_table import html_table

# SplitMix64 (Steele, Lea & Flood 2014, Fast splittable pseudorandom number generators): word i of key is the mixed
# value of key + (i + 1) STEP. Mixing is one to one, so each of the 2^64 words comes once in a period. Two keys that are
# drawn at random have one of n words in common with a probability of at most n / 2^63.
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
FIRST_SHIFT, SECOND_SHIFT, THIRD_SHIFT = np.uint64(30), np.uint64(27), np.uint64(31)

# Four fields of 16 bits, 15 of them for the leading bits of a threshold. EACH copies a field into all four, and adds
# all four up into the highest; GUARD is the highest bit of each, from which the field may borrow when two are compared.
EACH, GUARD = np.uint64(0x0001000100010001), np.uint64(0x8000800080008000)
FIELD_BITS, FIELDS = 16, 4
BIT_SHIFT, SUM_SHIFT, LEAD_SHIFT = np.uint64(15), np.uint64(48), np.uint64(49)
ZERO, ONE = np.uint64(0), np.uint64(1)

# Rows that are looked up before anything is done with them: one after another, many look-ups are under way at once,
# and what follows needs no branch and is done for several choices at a time. Small enough for the nearest cache.
BATCH = 1024

# Types of the places of distinct rows, the smaller the nearer they are kept; what is compiled depends on it.
PLACES = (np.uint16, np.uint32)

# From so many choices on, importing numba and loading or compiling the loop takes less time than it saves.
WORTH_COMPILING = 30_000_000

Kernel = Callable[..., int]


def draw_rows(  # noqa: PLR0917 - compiled functions take no names
    leads: Any, thresholds: Any, places: Any, rows: Any, key: np.uint64, first: np.uint64, actions: Any
) -> int:
    """Write the action of each row, and return how many were written: all, or those before a row that is not there.

    Not for the interpreter, where whole numbers of 64 bits do not wrap around in silence.

    Parameters
    ----------
    leads : array of uint64, (d,)
        The 15 leading bits of up to four thresholds; empty where there are more.
    thresholds : array of uint64, (d, k - 1)
        Of the distinct rows.
    places : array of uint16 or uint32, (m,)
        Which of these each row is; empty if all are distinct.
    rows : array of intp, (n,)
    key, first : uint64
        The word of rows[i] is that of first + i.
    actions : array of int, (n,)
        What is written.
    """
    with_leads, with_places = len(leads) > 0, len(places) > 0
    m = np.uint64(len(places) if with_places else len(thresholds))
    words, found = np.empty(BATCH, np.uint64), np.empty(BATCH, np.uint64)
    for start in range(0, len(rows), BATCH):
        size = min(BATCH, len(rows) - start)
        for i in range(size):
            row = np.uint64(rows[start + i])  # below 0 becomes 2^63 or more
            if row >= m:
                return start + i
            place = np.uint64(places[row]) if with_places else row
            found[i] = leads[place] if with_leads else ZERO
        again = ZERO if with_leads else ONE
        for i in range(size):
            word = key + (first + np.uint64(start + i) + ONE) * STEP
            word = (word ^ (word >> FIRST_SHIFT)) * FIRST_FACTOR
            word = (word ^ (word >> SECOND_SHIFT)) * SECOND_FACTOR
            word ^= word >> THIRD_SHIFT
            words[i] = word
            lead = (word >> LEAD_SHIFT) * EACH
            passed = ((lead | GUARD) - found[i]) & GUARD
            tied = passed & ((found[i] | GUARD) - lead)
            again |= tied
            found[i] = tied
            actions[start + i] = ((passed >> BIT_SHIFT) * EACH) >> SUM_SHIFT
        if again != ZERO:
            for i in range(size):
                if found[i] != ZERO or not with_leads:
                    row, action = np.uint64(rows[start + i]), ZERO
                    place = np.uint64(places[row]) if with_places else row
                    for j in range(thresholds.shape[1]):
                        action += np.uint64(thresholds[place, j] <= words[i] >> ONE)
                    actions[start + i] = action
    return len(rows)


@lru_cache(maxsize=1)
def compiled_draws() -> Kernel:
    """`draw_rows`, compiled; ImportError without a numba that works.

    What is compiled is kept on the disk, beside this file or in the user's cache; where neither can be written, it is
    compiled again by each process.
    """
    njit = import_module("numba").njit
    leads, rows, actions = np.zeros(1, np.uint64), np.zeros(0, np.intp), np.zeros(0, np.uint8)
    try:
        kernel: Kernel = njit(nogil=True, cache=True)(draw_rows)
        for kind in PLACES:
            kernel(leads, leads[:, None], np.zeros(1, kind), rows, ZERO, ZERO, actions)
    except (OSError, RuntimeError):
        kernel = njit(nogil=True)(draw_rows)
    return kernel


def is_compiled() -> bool:
    """Whether the compiled loop is at hand already."""
    return compiled_draws.cache_info().currsize > 0


# Thresholds are whole numbers up to 2^BITS.
BITS = 63
N = np.uint64(1 << BITS)
# Fewer choices than this are not worth a thread of their own.
LEAST_SHARE = 1 << 18


class Sampler:
    """Draw actions from the rows of one table: hundreds of millions a second, the same draws on any machine.

    For simulation, and not for a release: its randomness is pseudo-random, and known to a person who has the seed.

    Parameters
    ----------
    probabilities : array, (m, k)
        p(a|x): rows of probabilities that sum to 1.

    Attributes
    ----------
    n_rows, n_actions : int
        m and k.
    thresholds : array of uint64, (d, k - 1)
        T_j of each distinct row: the probability of the actions up to j, times 2^63.
    rounding : float
        An upper bound of |log(drawn / given)| over all probabilities > 0, so that a table of privacy loss epsilon is
        drawn from with at most epsilon + 2 rounding. Probabilities of 0 stay 0.

    Raises
    ------
    ValueError
        For a table whose rows are no probabilities.

    Notes
    -----
    Equal rows are kept once, and a row that is asked for is looked up among these. For up to five actions, the 15
    leading bits of a row's thresholds stand together in one word: a choice reads no more than that, unless its random
    word begins with the same 15 bits as a threshold. The proof is in `policies.sampler`.

    Examples
    --------
    >>> sampler = Sampler([[0.25, 0.75], [1.0, 0.0]])
    >>> sampler.draw([0, 0, 0, 0, 1, 1], np.random.default_rng(1))
    array([1, 1, 1, 1, 0, 0], dtype=uint8)
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        """Check the table and turn it into thresholds."""
        table = probability_table(probabilities, "probabilities")
        self.n_rows, self.n_actions = table.shape
        distinct = equal_rows([column.view(np.uint64) for column in table.T])
        self._places = np.empty(0, dtype=PLACES[0])  # none: each row is its own
        if distinct is not None:
            table = table[distinct[0]]
            self._places = distinct[1].astype(next(kind for kind in PLACES if len(table) <= np.iinfo(kind).max))
        self.thresholds: Words = np.empty((len(table), self.n_actions - 1), dtype=np.uint64)
        self.rounding = 0.0
        for rows in blocks(len(table)):
            weights, rounding = whole_weights(np.ascontiguousarray(table[rows]))
            np.cumsum(weights[:, :-1], axis=1, out=self.thresholds[rows])
            self.rounding = max(self.rounding, rounding)
        self._leads = _leading_bits(self.thresholds)

    def draw(
        self,
        rows: ArrayLike,
        rng: np.random.Generator,
        *,
        first: int = 0,
        threads: int | None = None,
        compiled: bool | None = None,
    ) -> NDArray[Any]:
        """One action for each row index, (n,), in the smallest type of whole numbers that holds it (uint8 up to 256).

        Parameters
        ----------
        rows : array of int, (n,)
            0..m-1, such as the record of each patient.
        rng : numpy.random.Generator
            One number is drawn from it: the key of all choices of this call.
        first : int, optional
            The number of the first patient, >= 0. Parts of one population, each with a generator of the same seed and
            its own `first`, get what all of it would get in one call.
        threads : int, optional
            How many, >= 1; as many as there are processors by default. It changes no draw.
        compiled : bool, optional
            Whether to use the compiled loop, which needs numba (the extra `fast`), or NumPy. It changes no draw. By
            default it is used where it is compiled already, or where there are so many choices that it is worth that.

        Raises
        ------
        ValueError
            For a row that is not in the table, or `first` or `threads` out of range.
        TypeError
            For rows, `first` or `threads` that are no whole numbers.
        ImportError
            For compiled=True without a numba that works.
        """
        asked = np.asarray(rows)
        if asked.ndim != 1 or not (np.issubdtype(asked.dtype, np.integer) or asked.size == 0):
            raise TypeError(f"rows must be (n,) whole numbers, got {asked.dtype} of shape {asked.shape}.")
        first = _at_least(0, "first", first)
        threads = _processors() if threads is None else _at_least(1, "threads", threads)
        key = rng.integers(1 << 64, dtype=np.uint64)
        actions = np.empty(len(asked), dtype=np.min_scalar_type(self.n_actions - 1))
        choose = self._chooser(len(asked), compiled)
        shares = max(1, min(threads, len(asked) // LEAST_SHARE))
        edges = [len(asked) * share // shares for share in range(shares + 1)]

        def draw_share(share: int) -> None:
            here = slice(edges[share], edges[share + 1])
            for part in blocks(here.stop - here.start):
                start = here.start + part.start
                # One kind of array, whatever was given: the loop is compiled anew, for seconds, for each.
                some = np.require(asked[here][part], np.intp, ["C", "W"])
                done = choose(some, key, np.uint64((first + start) % (1 << 64)), actions[here][part])
                if done < len(some):
                    bad = start + done
                    raise ValueError(f"rows must be in 0..{self.n_rows - 1}, got rows[{bad}]={int(asked[bad])}.")

        if shares == 1:
            draw_share(0)
        else:
            with ThreadPoolExecutor(shares) as pool:
                list(pool.map(draw_share, range(shares)))
        return actions

    def _chooser(self, choices: int, compiled: bool | None) -> Kernel:
        """What writes the actions of some rows: the compiled loop or NumPy."""
        worth = is_compiled() or choices >= WORTH_COMPILING if compiled is None else compiled
        try:
            return partial(compiled_draws(), self._leads, self.thresholds, self._places) if worth else self._by_numpy
        except ImportError:  # no numba, or one that does not know this NumPy
            if compiled:
                raise
            return self._by_numpy

    def _by_numpy(self, rows: IntArray, key: np.uint64, first: np.uint64, actions: NDArray[Any]) -> int:
        """What the compiled loop does."""
        outside = (rows < 0) | (rows >= self.n_rows)
        if outside.any():
            return int(outside.argmax())
        places, words = self._places[rows] if len(self._places) else rows, _words(len(rows), key, first)
        if not len(self._leads):
            actions[:] = _passed(self.thresholds[places], words)
            return len(rows)
        lead, found = (words >> LEAD_SHIFT) * EACH, self._leads[places]
        passed = ((lead | GUARD) - found) & GUARD
        tied = np.flatnonzero(passed & ((found | GUARD) - lead))
        actions[:] = ((passed >> BIT_SHIFT) * EACH) >> SUM_SHIFT
        actions[tied] = _passed(self.thresholds[places[tied]], words[tied])
        return len(rows)

    def _repr_html_(self) -> str:
        """What a notebook shows: its size and what rounding costs."""
        return html_table(
            "sampler",
            [("rows", self.n_rows), ("actions", self.n_actions), ("privacy loss added by rounding", 2 * self.rounding)],
        )


def whole_weights(table: FloatArray) -> tuple[Words, float]:
    """The weights n of rows of probabilities, (m, k), that sum to 2^63, and the largest |log(n / x)|, x = 2^63 p.

    That is log(1 + |n - x| / min(n, x)), here rounded up.
    """
    exact = table * float(N)
    nearest = np.rint(exact)
    weights = nearest.astype(np.uint64)
    possible = table > 0
    weights[possible & (weights == 0)] = 1
    largest = (np.arange(len(table)), table.argmax(axis=1))
    # Whole numbers of 64 bits wrap around: a difference below zero adds what is too much.
    weights[largest] += N - weights.sum(axis=1)
    # Each is exact: a difference of whole numbers, and one of a number and the nearest whole one.
    moved = (weights - nearest.astype(np.uint64)).view(np.int64) - (exact - nearest)
    share = np.abs(moved[possible]) / np.minimum(weights[possible], exact[possible])
    return weights, float(np.log1p(share.max())) * (1 + 2.0**-48)


def _passed(thresholds: Words, words: Words) -> Words:
    """How many thresholds of its row, (n, k - 1), each word of 64 bits has reached with its first 63, (n,)."""
    reached: Words = (thresholds <= (words >> ONE)[:, None]).sum(axis=1, dtype=np.uint64)
    return reached


def _leading_bits(thresholds: Words) -> Words:
    """The 15 leading bits of the thresholds, (m, k - 1), of a row in one word, (m,); empty for more than four.

    15 ones also stand for 2^63, which has a bit more, and for a threshold that is not there: a word that begins with
    15 ones is compared with the thresholds themselves.
    """
    m, count = thresholds.shape
    if count > FIELDS:
        return np.empty(0, dtype=np.uint64)
    ones = np.uint64((1 << (FIELD_BITS - 1)) - 1)
    leads = np.zeros(m, dtype=np.uint64)
    for field in range(FIELDS):
        bits = np.minimum(thresholds[:, field] >> SUM_SHIFT, ones) if field < count else ones
        leads |= bits << np.uint64(FIELD_BITS * field)
    return leads


def _words(size: int, key: np.uint64, first: np.uint64) -> Words:
    """Words first, first + 1, ... of a key, (size,)."""
    words = np.arange(1, size + 1, dtype=np.uint64)
    words += first
    words *= STEP
    words += key
    words ^= words >> FIRST_SHIFT
    words *= FIRST_FACTOR
    words ^= words >> SECOND_SHIFT
    words *= SECOND_FACTOR
    words ^= words >> THIRD_SHIFT
    return words


def _at_least(least: int, name: str, value: int) -> int:
    """A whole number as Python's own, which may be of any size; an error if it is none, or less."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {name}={value!r}.") from None
    if number < least:
        raise ValueError(f"{name} must be >= {least}, got {name}={value!r}.")
    return number


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def draw_actions(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one action for each row of p(a|x), (m, k) -> (m,), with one uniform number a row. For simulation only."""
    cumulative = np.cumsum(probabilities, axis=1)
    draws = rng.random(len(probabilities)) * cumulative[:, -1]
    actions: IntArray = (draws[:, None] >= cumulative).sum(axis=1)
    return actions

"""The compiled loop of `policies.sampler`, and when it is worth its compilation."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

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
def compiled_kernel() -> Kernel:
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
    return compiled_kernel.cache_info().currsize > 0

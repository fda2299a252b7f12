"""Random numbers by counting: each is computed from a key and its own number, and none depends on another.

Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) mixes a counter of
128 bits with a key of 64 into four words of 32 bits; for a given key no two counters give the same four words.
`envs.kernel` computes the same, compiled.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envs.cohort import FloatArray
from envs.records import IntArray

ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
WORD = 1 << 32
# Of a place's counters at a time: block 0 admits, the others treat.
ADMISSION, DAY = 0, 1
# What is computed for so many places stays in a processor's cache.
PLACES_AT_ONCE = 8_192
Key: TypeAlias = tuple[int, int]


def words(key: Key, places: IntArray, times: IntArray, first: int, n_blocks: int) -> NDArray[np.uint32]:
    """Random words, (4 n_blocks, m), of places at times, (m,) each, from a first block on.

    The counter is (place, low word of the time, block, high word of the time).
    """
    shape = 2, n_blocks, len(places)
    even, odd = np.empty(shape, dtype=np.uint32), np.empty(shape, dtype=np.uint32)
    even[0], even[1] = places, np.arange(first, first + n_blocks)[:, np.newaxis]
    odd[0], odd[1] = times % WORD, times // WORD
    multipliers, steps = (np.array(pair, dtype=np.uint64)[:, np.newaxis, np.newaxis] for pair in (MULTIPLIERS, WEYL))
    keys = np.array(key, dtype=np.uint64)[:, np.newaxis, np.newaxis]
    for turn in range(ROUNDS):
        product = np.multiply(even, multipliers, dtype=np.uint64)
        odd ^= (keys + np.uint64(turn) * steps).astype(np.uint32)
        odd ^= np.right_shift(product, np.uint64(32)).astype(np.uint32)[::-1]
        even, odd = odd, product.astype(np.uint32)[::-1]
    found: NDArray[np.uint32] = np.stack([even[0], odd[0], even[1], odd[1]], axis=1)
    return found.reshape(4 * n_blocks, len(places))


def arrivals(key: Key, places: IntArray, times: ArrayLike) -> FloatArray:
    """Numbers uniform in [0, 1), (m,), multiples of 2^-53: one for each patient who is admitted."""
    high, low, *_ = words(key, places, np.broadcast_to(times, places.shape), ADMISSION, 1)
    uniform: FloatArray = ((high >> np.uint32(5)) * 67_108_864.0 + (low >> np.uint32(6))) / 9_007_199_254_740_992.0
    return uniform


def days(key: Key, places: IntArray, times: ArrayLike, n_draws: int) -> FloatArray:
    """Numbers uniform in (0, 1), (n_draws, m), the `middles` of words: those of a day of treatment."""
    uniforms, then = np.empty((n_draws, len(places))), np.broadcast_to(times, places.shape)
    for start in range(0, len(places), PLACES_AT_ONCE):
        some = slice(start, start + PLACES_AT_ONCE)
        uniforms[:, some] = middles(day_words(key, places[some], then[some], n_draws))
    return uniforms


def day_words(key: Key, places: IntArray, times: IntArray, n_draws: int) -> NDArray[np.uint32]:
    """The words, (n_draws, m), of a day of treatment."""
    return words(key, places, times, DAY, -(-n_draws // 4))[:n_draws]


def middles(drawn: NDArray[np.uint32]) -> FloatArray:
    """The middles of 2^32 equal intervals of (0, 1), one for each word.

    A probability that they are compared with is met to 2^-33, and 0 and 1 are met exactly.
    """
    uniforms = drawn.astype(np.float64)
    uniforms += 0.5
    uniforms /= WORD
    return uniforms


class Counter:
    """The key and the time of an environment: what all its random numbers come from.

    The key comes from the environment's generator whenever that is a new one: after a reset with a seed. The time is
    the number of resets and steps since then.
    """

    def __init__(self) -> None:
        self._source: np.random.Generator | None = None
        self.key: Key = (0, 0)
        self.time = -1

    def tick(self, source: np.random.Generator) -> None:
        """Another reset or step of an environment with this generator."""
        if source is not self._source:
            first, second = source.integers(WORD, size=2).tolist()
            self._source, self.key, self.time = source, (first, second), -1
        self.time += 1

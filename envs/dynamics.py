"""Patients admitted, treated for a day and a night, and shown, by NumPy: what `envs.kernel` does one after the other.

The functions of both modules have the same arguments and do the same, bit by bit, in the same order of operations on
the same numbers. They fill arrays in place, for the places from `start` to `stop`; `begin` is where the random numbers
of a day begin.

One word serves a flag by day and by night. Its middle u, between 0 and 1, is below a, the probability that the flag is
absent in the evening, if it is; and below a (1 - onset) if it is absent next morning, too. Given that u < a, the flag
appears with the probability `onset`, and given that u >= a, it is still there, as it should be. Likewise the patient
survives, or is spared an event, if u < exp(-hazard). A probability is met to 2^-33, and 0 and 1 are met exactly.
"""

# Compiled functions take their arguments by position only.
# ruff: noqa: PLR0917

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray, PatientSampler
from envs.records import IntArray
from envs.ward import WORD, BoolArray, CodeArray, DayTables, Int32Array

# e^-64 is less than any random number that is not 0.
LEAST_EXPONENT, STEPS = -64.0, 256
POWERS = np.exp(-np.arange(-LEAST_EXPONENT * STEPS + 1) / STEPS)
# Of SplitMix64.
GOLDEN, MULTIPLIERS = 0x9E3779B97F4A7C15, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
# The largest of these numbers.
MOST = (1 << 64) - 1


class Places(NamedTuple):
    """The patients of an environment, (n,): the two parts of their records, days treated so far, whose stay is over."""

    fixed: Int32Array
    flags: Int32Array
    days: IntArray
    over: BoolArray


def random_numbers(begin: int, places: IntArray, n: int, of_each: int) -> NDArray[np.uint64]:
    """The first n random numbers of 64 bits, (n, m), of those that each of some places has.

    SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) mixes the multiples
    of an odd number: each of its outputs can be computed alone, and no two are the same.
    """
    first = places.astype(np.uint64) * np.uint64(of_each * GOLDEN & MOST)
    steps = np.array([(begin + number * GOLDEN) & MOST for number in range(n)], dtype=np.uint64)
    at = first + steps[:, np.newaxis]
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        at ^= at >> np.uint64(shift)
        at *= np.uint64(multiplier)
    at ^= at >> np.uint64(31)
    return at


def admit(start: int, stop: int, begin: int, who: IntArray, sampler: PatientSampler, t: DayTables, p: Places) -> None:
    """Admit patients drawn from a sampler to some of the places `who`."""
    some, n_flags = who[start:stop], len(t.least)
    uniforms = (random_numbers(begin, some, 1, t.n_numbers)[0] >> np.uint64(11)) * 2.0**-53
    records = sampler.records(uniforms)
    p.fixed[some], p.flags[some] = records >> n_flags, records & ((1 << n_flags) - 1)
    p.days[some], p.over[some] = 0, False


def show(start: int, stop: int, t: DayTables, p: Places, seen: CodeArray) -> None:
    """Fill in observations, (n, n_columns)."""
    here = slice(start, stop)
    np.take(t.codes_of_fixed, p.fixed[here], axis=0, out=seen[here], mode="clip")
    seen[here] += t.codes_of_flags.take(p.flags[here], axis=0)
    if t.horizon > 1:
        seen[here, -1] = p.days[here]


def treat(
    start: int,
    stop: int,
    begin: int,
    actions: IntArray,
    readmit: bool,
    sampler: PatientSampler,
    t: DayTables,
    p: Places,
    seen: CodeArray,
    rewards: FloatArray,
    outcomes: BoolArray,
) -> None:
    """A day of treatment for patients whose stay goes on; for the others nothing, or another admission.

    Fills in observations, rewards, (n,), and outcomes, (n_outcomes, n).
    """
    over = p.over[start:stop]
    who, others = start + (~over).nonzero()[0], start + over.nonzero()[0]
    rewards[others], outcomes[:, start:stop] = 0.0, False
    if who.size:
        rewards[who], outcomes[:, who] = day(who, middles(begin, who, t), actions[who], t, p)
    if readmit and others.size:
        admit(0, len(others), begin, others, sampler, t, p)
    show(start, stop, t, p, seen)


def middles(begin: int, places: IntArray, t: DayTables) -> FloatArray:
    """Of each outcome and place, (n_outcomes, m), the middle of a word: a half of one of its `random_numbers`."""
    pairs = random_numbers(begin, places, t.n_numbers, t.n_numbers).astype("<u8", copy=False)
    halves = pairs.view("<u4").reshape(t.n_numbers, len(places), 2).transpose(0, 2, 1)
    uniform: FloatArray = np.add(halves, 0.5, out=np.empty(halves.shape)).reshape(-1, len(places))
    return uniform[: len(t.least) + len(t.weights)]


def day(who: IntArray, drawn: FloatArray, actions: IntArray, t: DayTables, p: Places) -> tuple[FloatArray, BoolArray]:
    """A day and night of the patients in some places, (m,), by what is drawn (`middles`): rewards and outcomes."""
    n_flags = len(t.least)
    fixed, flags = p.fixed[who], p.flags[who]
    at = t.of_fixed.take(fixed, axis=0)
    at += t.of_state.take((actions << n_flags) + flags, axis=0)
    at = at.T.astype(np.intp)
    outcomes = np.empty(drawn.shape, dtype=np.bool_)
    bits = 1 << np.arange(n_flags, dtype=np.int32)

    def entries(table: int) -> FloatArray:
        found: FloatArray = t.values.take(at[t.group[table]] + t.start[table])
        return found

    absent = t.absence.take(places_of_flags(n_flags).take(flags, axis=1) + 2 * n_flags * at[t.group[0]])
    present = np.greater_equal(drawn[:n_flags], absent, out=outcomes[:n_flags])
    evening = np.add.reduce(present * bits[:, np.newaxis], axis=0, dtype=np.int32)
    harm = t.harm.take(evening)
    for hazard, weight in enumerate(t.weights):
        level, came = 1 + n_flags + 2 * hazard, outcomes[n_flags + hazard]
        exponents = entries(level + 1) * t.danger[hazard].take(evening) + entries(level)
        uniform = drawn[n_flags + hazard] / WORD
        # e^x is at least 1 + x, which settles most.
        unclear = np.greater_equal(uniform, 1.0 + exponents - 1e-9, out=came).nonzero()
        came[unclear] = uniform[unclear] >= exp_of(exponents[unclear])
        harm += weight * came
    days = p.days[who] + 1
    over = outcomes[-1] | (days == t.horizon)
    if n_flags:  # where no flag can clear, nobody recovers
        over |= evening == 0
    # What may appear in the night, in some patient with such a number.
    late = drawn[:n_flags] >= t.least[:, np.newaxis] * absent
    flag, one = np.divmod((late & ~(present | over)).ravel().nonzero()[0], len(who))
    group = t.group[1 + flag]
    place = t.of_fixed[fixed[one], group] + t.of_state[evening[one], group] + t.start[1 + flag]
    appeared = (drawn[flag, one] >= t.values.take(place) * absent[flag, one]).nonzero()
    morning = evening.copy()
    np.bitwise_or.at(morning, one[appeared], bits[flag[appeared]])
    p.flags[who], p.days[who], p.over[who] = morning, days, over
    # From 0, so that nothing happening is worth 0 and not -0.
    return 0.0 - (entries(len(t.start) - 1) + harm), outcomes


@lru_cache(maxsize=32)
def places_of_flags(n_flags: int) -> IntArray:
    """Where each flag stands in a row of `Tables.absence`, (n_flags, 2^n_flags), by the flags of the morning."""
    each = np.arange(n_flags)[:, np.newaxis]
    return ((np.arange(1 << n_flags) >> each) & 1) * n_flags + each


def exp_of(exponents: FloatArray) -> FloatArray:
    """e to exponents <= 0, to 4e-16 relative; below -64, e^-64.

    A table, and five terms of the series for what is left. Functions of libraries differ in the last bit from one
    another; multiplied and added in a fixed order, a number is the same on any machine and in compiled code.
    """
    bounded = np.maximum(exponents, LEAST_EXPONENT)
    step = (bounded * -STEPS).astype(np.intp)
    rest = bounded + step * (1 / STEPS)
    series = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6 + rest * (1 / 24 + rest * (1 / 120)))))
    return np.asarray(series * POWERS.take(step))

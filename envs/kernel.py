"""The compiled pass over the patients: each one's draws, day and night, admission, and what is told of it.

It does what `Ward.treat`, `Payoff`, `Arrivals.admit` and `envs.philox` do, in the same order of operations on the same
numbers, so that the trajectories are the same, bit by bit. Nothing but `envs.compiled` imports this module, as numba
takes a second to import, and these functions take seconds to compile, which is kept for the next time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
HALF = np.uint64(32)
# Patients whose random words stay in the nearest cache.
BLOCK = 512


@njit(nogil=True, cache=True)
def philox(places, n, time, key, first, out):
    """Fill `out`, (4 n_blocks, BLOCK or more), for the first n places: `envs.philox.words`."""
    low, high = np.uint32(time & 0xFFFFFFFF), np.uint32(time >> 32)
    for block in range(out.shape[0] // 4):
        number = np.uint32(first + block)
        for i in range(n):
            c0, c1, c2, c3 = np.uint32(places[i]), low, number, high
            k0, k1 = np.uint32(key[0]), np.uint32(key[1])
            for _ in range(10):
                p0, p1 = M0 * np.uint64(c0), M1 * np.uint64(c2)
                c0, c2 = np.uint32(p1 >> HALF) ^ c1 ^ k0, np.uint32(p0 >> HALF) ^ c3 ^ k1
                c1, c3 = np.uint32(p1), np.uint32(p0)
                k0, k1 = np.uint32(k0 + W0), np.uint32(k1 + W1)
            out[4 * block, i], out[4 * block + 1, i], out[4 * block + 2, i], out[4 * block + 3, i] = c0, c1, c2, c3


@njit(nogil=True, cache=True)
def record_of(uniform, t):
    """`PatientSampler.records`."""
    interval = np.int64(uniform * (len(t.guide) - 1))
    least, most = np.int64(t.guide[interval]), np.int64(t.guide[interval + 1])
    draw = uniform * t.cumulative[-1]
    while least < most:
        middle = (least + most) // 2
        if t.cumulative[middle] <= draw:
            least = middle + 1
        else:
            most = middle
    return min(least, t.last)


@njit(nogil=True, cache=True)
def settle(place, uniform, t, p):
    """Admit a patient to a place."""
    record = record_of(uniform, t)
    high = record // len(t.low)
    low = record - high * len(t.low)
    fixed, flags = t.high[high, 0] + t.low[low, 0], t.high[high, 1] + t.low[low, 1]
    p.fixed[place], p.flags[place], p.days[place], p.over[place] = fixed, flags, 0, False
    row = p.seen[place]
    row[:] = t.codes[fixed]
    for flag in range(len(t.flag_axes)):
        row[t.flag_axes[flag]] = (flags >> flag) & 1


@njit(nogil=True, cache=True)
def admit(start, stop, time, key, t, p):
    """Admit patients to the places whose stay has ended."""
    places, words = np.empty(BLOCK, dtype=np.int64), np.empty((4, BLOCK), dtype=np.uint32)
    place = start
    while place < stop:
        n = 0
        while place < stop and n < BLOCK:
            if p.over[place]:
                places[n] = place
                n += 1
            place += 1
        philox(places, n, time, key, 0, words)
        for i in range(n):
            settle(places[i], ((words[0, i] >> 5) * 67108864.0 + (words[1, i] >> 6)) / 9007199254740992.0, t, p)


@njit(nogil=True, cache=True)
def spared(exponent, powers):
    """`envs.hazard.exp_of`."""
    exponent = max(exponent, -64.0)
    step = np.int64(exponent * -256.0)
    rest = exponent + step * 0.00390625
    return powers[step] * (1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6 + rest * (1 / 24 + rest * (1 / 120))))))


@njit(nogil=True, cache=True)
def part_sum(sums, flags):
    """`FlagSum.of`."""
    total = 0.0
    for part in range(len(sums)):
        total += sums[part, (flags >> (12 * part)) & 4095]
    return total


@njit(nogil=True, cache=True)
def treat(start, stop, time, key, actions, next_step, t, p, rewards, treated, outcomes):
    """A day of treatment; where the stay has ended before, an admission if the autoreset mode is the next step."""
    n_flags, n_hazards = len(t.flag_axes), len(t.hazard_group)
    places, late = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    words = np.empty((4 * ((n_flags + n_hazards + 3) // 4), BLOCK), dtype=np.uint32)
    absent = np.empty(n_flags)
    for first in range(start, stop, BLOCK):
        n = 0
        for place in range(first, min(first + BLOCK, stop)):
            treated[place] = not p.over[place]
            if p.over[place]:
                rewards[place] = 0.0
                for row in range(n_flags + n_hazards):
                    outcomes[row, place] = False
            else:
                places[n] = place
                n += 1
        philox(places, n, time, key, 1, words)
        for i in range(n):
            place = places[i]
            fixed, flags, action = p.fixed[place], p.flags[place], actions[place]
            evening = 0
            for flag in range(n_flags):
                group = t.absence_group[flag]
                if group < 0:
                    at = 2 * action + ((flags >> flag) & 1)
                else:
                    at = t.of_fixed[fixed, group] + t.of_flags[flags, group] + action * t.of_action[group]
                absent[flag] = t.values[t.absence_start[flag] + at]
                there = (words[flag, i] + 0.5) / 4294967296.0 >= absent[flag]
                outcomes[flag, place] = there
                evening |= np.int64(there) << flag
            happened = evening
            for hazard in range(n_hazards):
                group, begin = t.hazard_group[hazard], t.hazard_start[hazard]
                at = t.of_fixed[fixed, group] + t.of_flags[flags, group] + action * t.of_action[group]
                exponent = t.values[begin[1] + at] * part_sum(t.danger[hazard], evening) + t.values[begin[0] + at]
                came = (words[n_flags + hazard, i] + 0.5) / 4294967296.0 >= spared(exponent, t.powers)
                outcomes[n_flags + hazard, place] = came
                happened |= np.int64(came) << (n_flags + hazard)
            group = t.cost_group
            at = t.of_fixed[fixed, group] + t.of_flags[flags, group] + action * t.of_action[group]
            rewards[place] = 0.0 - (t.values[t.cost_start + at] + part_sum(t.harm, happened))
            p.days[place] += 1
            over = bool(outcomes[-1, place]) or p.days[place] == t.horizon or (n_flags > 0 and evening == 0)
            p.over[place] = over
            morning = evening
            if not over:
                for flag in range(n_flags):
                    group = t.night_group[flag]
                    if group >= 0:
                        at = t.of_fixed[fixed, group] + t.of_flags[evening, group]
                        limit = t.values[t.night_start[flag] + at] * absent[flag]
                        morning |= np.int64((words[flag, i] + 0.5) / 4294967296.0 >= limit) << flag
            p.flags[place] = morning
            row = p.seen[place]
            for flag in range(n_flags):
                row[t.flag_axes[flag]] = (morning >> flag) & 1
            row[t.day_column] = p.days[place] if t.horizon > 1 else row[t.day_column]

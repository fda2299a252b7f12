"""The compiled pass over the patients: each one's draws, day and night, admission, and what is told of it.

It does what `Ward`, `Payoff`, `Arrivals.admit` and `envs.philox` do, in the same order of operations on the same
numbers, so that the trajectories are the same, bit by bit. Nothing but `envs.compiled` imports this module, as numba
takes a second to import, and these functions take seconds to compile, which is kept for the next time.

`t` is `envs.compiled.Tables` and `p` is `envs.compiled.Places`; arrays are filled in place.
"""

# What has been compiled is kept until this file changes, with its copy of POWERS: a change of those touches this file.
# Compiled functions have the types of what they are called with, and calls between them cost nothing only by position.
# mypy: ignore-errors
# ruff: noqa: PLR0912, PLR0915, PLR0917

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import numpy as np

from envs.treatment_response import POWERS

njit = import_module("numba").njit

M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
HALF, SCALE = np.uint64(32), 1 / 4294967296
# Patients whose random words stay in the nearest cache.
BLOCK = 512


def compiled(function):
    """A function compiled when it is called; kept on the disk, if there is a folder for that, and room in it."""
    try:
        found = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
    save = found._cache.save_overload

    def save_if_possible(*given):
        with suppress(OSError):
            save(*given)

    found._cache.save_overload = save_if_possible
    return found


@compiled
def philox(places, n, time, key, first, out):
    """Fill `out`, (4 n_blocks, BLOCK or more), for the first n places: `envs.philox.words`."""
    low, high = np.uint32(time & 0xFFFFFFFF), np.uint32(time >> 32)
    first_key, second_key = np.uint32(key[0]), np.uint32(key[1])
    for block in range(out.shape[0] // 4):
        number = np.uint32(first + block)
        for i in range(n):
            c0, c1, c2, c3 = np.uint32(places[i]), low, number, high
            k0, k1 = first_key, second_key
            for _ in range(10):
                p0, p1 = M0 * np.uint64(c0), M1 * np.uint64(c2)
                c0, c2 = np.uint32(p1 >> HALF) ^ c1 ^ k0, np.uint32(p0 >> HALF) ^ c3 ^ k1
                c1, c3 = np.uint32(p1), np.uint32(p0)
                k0, k1 = np.uint32(k0 + W0), np.uint32(k1 + W1)
            out[4 * block, i], out[4 * block + 1, i], out[4 * block + 2, i], out[4 * block + 3, i] = c0, c1, c2, c3


@compiled
def settle(places, n, time, key, words, t, p):
    """Admit patients to the first n places, with room for their random words: `Arrivals.admit`.

    Step by step for all, so that many places of large tables are on their way from memory at once.
    """
    philox(places, n, time, key, 0, words[:4])
    least, most = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    draws = np.empty(BLOCK)
    n_intervals, total, n_low = len(t.guide) - 1, t.cumulative[-1], np.uint32(len(t.low))
    for i in range(n):
        uniform = ((words[0, i] >> 5) * 67108864.0 + (words[1, i] >> 6)) / 9007199254740992.0
        interval = np.int64(uniform * n_intervals)
        least[i], most[i], draws[i] = t.guide[interval], t.guide[interval + 1], uniform * total
    for i in range(n):
        low, high, draw = least[i], most[i], draws[i]
        while low < high:
            middle = (low + high) // 2
            if t.cumulative[middle] <= draw:
                low = middle + 1
            else:
                high = middle
        least[i] = min(low, t.last)
    for i in range(n):
        place, record = places[i], np.uint32(least[i])
        first = record // n_low
        second = record - first * n_low
        fixed, flags = t.high[first, 0] + t.low[second, 0], t.high[first, 1] + t.low[second, 1]
        p.fixed[place], p.flags[place], p.days[place], p.over[place] = fixed, flags, 0, False


@compiled
def admit(start, stop, time, key, chosen, t, p):
    """Admit patients to the places that are chosen."""
    places, words = np.empty(BLOCK, dtype=np.int32), np.empty((4, BLOCK), dtype=np.uint32)
    place = start
    while place < stop:
        n = 0
        while place < stop and n < BLOCK:
            if chosen[place]:
                places[n] = place
                n += 1
            place += 1
        settle(places, n, time, key, words, t, p)


@compiled
def show(start, stop, t, p, seen):
    """Fill in observations: `Ward.observe`."""
    last = np.uint64(seen.shape[1] - 1)
    for row in range(start, stop):
        # Without a sign: nothing is counted from the end.
        place = np.uint64(row)
        fixed, flags = np.uint32(p.fixed[place]), np.uint32(p.flags[place])
        for column in range(seen.shape[1]):
            at = np.uint64(column)
            seen[place, at] = t.codes_of_fixed[fixed, at] | t.codes_of_flags[flags, at]
        if t.horizon > 1:
            seen[place, last] = p.days[place]


@compiled
def allow(start, stop, t, p, mask):
    """Fill in which treatments patients may get: `Ward.action_mask`."""
    for row in range(start, stop):
        place = np.uint64(row)
        at = t.of_fixed[t.of_mask, np.uint32(p.fixed[place])] + t.of_flags[t.of_mask, np.uint32(p.flags[place])]
        for action in range(mask.shape[1]):
            mask[place, action] = t.allowed[at, action]


@compiled
def refuses(actions, t, p):
    """Whether any patient whose stay goes on must not get his treatment: `Ward.check_allowed`."""
    for row in range(len(actions)):
        place = np.uint64(row)
        at = t.of_fixed[t.of_mask, np.uint32(p.fixed[place])] + t.of_flags[t.of_mask, np.uint32(p.flags[place])]
        if not (p.over[place] or t.allowed[at, np.uint64(actions[place])]):
            return True
    return False


@compiled
def add_sums(sums, row, flags, n, totals):
    """`FlagSum.of`."""
    totals[:n] = 0.0
    for part in range(sums.shape[1]):
        shift = 12 * part
        for i in range(n):
            totals[i] += sums[row, part, np.uint32((flags[i] >> shift) & 4095)]


@compiled
def treat(start, stop, time, key, actions, next_step, t, p, seen, rewards, treated, outcomes):
    """A day of treatment; where the stay has ended before, an admission if the autoreset mode is the next step.

    One block of patients after the other, for each step by step, so that a step is the same operation for them all.
    """
    n_flags, n_hazards, n_groups = t.n_flags, len(t.danger), len(t.of_action)
    n_words = 4 * ((n_flags + n_hazards + 3) // 4)
    words, absent = np.empty((n_words, BLOCK), dtype=np.uint32), np.empty((n_flags, BLOCK))
    places, others = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    fixed = np.empty(BLOCK, np.uint32)
    flags, evening, happened = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    action, at, came = np.empty(BLOCK, np.int32), np.empty((n_groups, BLOCK), np.uint32), np.zeros(BLOCK, np.int32)
    index = np.empty(BLOCK, np.uint32)
    total, over = np.empty(BLOCK), np.empty(BLOCK, dtype=np.bool_)
    late, restless = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        n = n_others = 0
        for place in range(first, last):
            idle = p.over[place]
            treated[place] = not idle
            places[n], others[n_others] = place, place
            n += not idle
            n_others += idle
        philox(places, n, time, key, 1, words)
        for i in range(n):
            place = np.uint32(places[i])
            action[i], fixed[i], flags[i] = actions[place], p.fixed[place], p.flags[place]
            evening[i], late[i] = 0, 0
        for group in range(t.n_by_day):
            stride = t.of_action[group]
            for i in range(n):
                parts = t.of_fixed[group, fixed[i]] + t.of_flags[group, np.uint32(flags[i])]
                at[group, i] = parts + stride * action[i]
        # The day.
        for flag in range(n_flags):
            group, begin, least = t.group[flag], np.uint32(t.start[flag]), t.least[flag]
            if group < 0:
                for i in range(n):
                    index[i] = 2 * action[i] + ((flags[i] >> flag) & 1)
            else:
                index[:n] = at[group, :n]
            for i in range(n):
                absent[flag, i] = t.values[begin + index[i]]
            for i in range(n):
                uniform = (words[flag, i] + 0.5) * SCALE
                evening[i] |= np.int32(uniform >= absent[flag, i]) << flag
                late[i] |= np.int32(uniform >= least * absent[flag, i]) << flag
        for i in range(n):
            happened[i] = evening[i]
        for hazard in range(n_hazards):
            row = 2 * n_flags + 2 * hazard
            group, level, slope = t.group[row], np.uint32(t.start[row]), np.uint32(t.start[row + 1])
            add_sums(t.danger, hazard, evening, n, total)
            for i in range(n):
                # `envs.treatment_response.exp_of`
                rest = max(t.values[slope + at[group, i]] * total[i] + t.values[level + at[group, i]], -64.0)
                step = np.int32(rest * -256.0)
                rest += step * 0.00390625
                series = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6 + rest * (1 / 24 + rest * (1 / 120)))))
                came[i] = (words[n_flags + hazard, i] + 0.5) * SCALE >= series * POWERS[np.uint32(step)]
                happened[i] |= came[i] << (n_flags + hazard)
        add_sums(t.harm, 0, happened, n, total)
        group, begin = t.group[-1], np.uint32(t.start[-1])
        for i in range(n):
            place = np.uint32(places[i])
            rewards[place] = 0.0 - (t.values[begin + at[group, i]] + total[i])
            day = p.days[place] + 1
            over[i] = came[i] or day == t.horizon or (n_flags > 0 and evening[i] == 0)
            p.days[place], p.over[place] = day, over[i]
            flags[i] = evening[i]
        # The night. What may appear in nobody with such a number is not computed: that is most.
        n_restless = 0
        for i in range(n):
            restless[n_restless] = i
            n_restless += late[i] != evening[i] and not over[i]
        for j in range(n_restless):
            i = restless[j]
            for flag in range(n_flags):
                group = t.group[n_flags + flag]
                if group >= 0 and (late[i] >> flag) & 1:
                    at_night = t.of_fixed[group, fixed[i]] + t.of_flags[group, np.uint32(evening[i])]
                    limit = t.values[np.uint32(t.start[n_flags + flag] + at_night)] * absent[flag, i]
                    flags[i] |= np.int32((words[flag, i] + 0.5) * SCALE >= limit) << flag
        for i in range(n):
            p.flags[np.uint32(places[i])] = flags[i]
        # What is told.
        for i in range(n_others):
            rewards[np.uint32(others[i])] = 0.0
        evening[: last - first] = 0
        for i in range(n):
            evening[np.uint32(places[i] - first)] = happened[i]
        for row in range(n_flags + n_hazards):
            told = outcomes[row, first:last]
            for i in range(last - first):
                told[i] = (evening[i] >> row) & 1
        if next_step:
            settle(others, n_others, time, key, words, t, p)
        show(first, last, t, p, seen)

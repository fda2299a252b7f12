"""Patients admitted, treated for a day and a night, and shown, one after the other: as `envs.dynamics`, bit by bit.

As these functions are written here they are faster than NumPy for one patient. For many, `compiled_kernel` compiles
them, which takes seconds, and is kept for the next time.
"""

# What has been compiled is kept until this file changes, with its copy of POWERS: a change of those touches this file.
# Compiled functions have the types of what they are called with.
# mypy: ignore-errors
# ruff: noqa: PLR0917

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import numpy as np

from envs import dynamics
from envs.dynamics import POWERS

# Indexes without a sign: nothing is counted from the end.
ZERO, ONE = np.uint32(0), np.uint32(1)
GOLDEN, FIRST, SECOND = (np.uint64(number) for number in (dynamics.GOLDEN, *dynamics.MULTIPLIERS))
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
# What is compiled into others, and what is called.
WITHIN = "_number", "_admit", "_show", "_day", "_exp_of"
CALLED = "admit", "show", "treat"


# Random numbers wrap around, of which NumPy would warn.
@np.errstate(over="ignore")
def admit(start, stop, begin, who, sampler, t, p):
    """`envs.dynamics.admit`."""
    for i in range(start, stop):
        _admit(who[i], begin, sampler, t, p)


def show(start, stop, t, p, seen):
    """`envs.dynamics.show`."""
    for place in range(start, stop):
        _show(np.uint32(place), t, p, seen)


@np.errstate(over="ignore")
def treat(start, stop, begin, actions, readmit, sampler, t, p, seen, rewards, outcomes):
    """`envs.dynamics.treat`."""
    at, happened = np.empty(t.of_fixed.shape[1], np.uint32), np.zeros(stop - start, np.uint32)
    drawn = np.empty(2 * t.n_numbers)
    # Who is in treatment from the left, the others from the right: without a branch, which a processor would guess
    # wrongly half of the time.
    who, n, last = np.empty(stop - start, np.uint32), 0, stop - start - 1
    for place in range(start, stop):
        over = p.over[place]
        who[n], who[last] = place, place
        n, last = n + (not over), last - over
    for place in who[:n]:
        rewards[place], happened[np.uint32(place - start)] = _day(place, begin, actions[place], t, p, at, drawn)
    for place in who[n:]:
        rewards[place] = 0.0
        if readmit:
            _admit(place, begin, sampler, t, p)
    # Row by row: its columns are far apart in memory.
    for row in range(len(outcomes)):
        here, bit = outcomes[row, start:stop], np.uint32(1 << row)
        for i in range(len(here)):
            here[i] = happened[i] & bit != 0
    for place in range(start, stop):
        _show(np.uint32(place), t, p, seen)


def _number(begin, place, number, t):
    """One of `envs.dynamics.random_numbers`."""
    z = begin + GOLDEN * (np.uint64(place) * np.uint64(t.n_numbers) + np.uint64(number))
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


def _admit(place, begin, sampler, t, p):
    uniform = (_number(begin, place, 0, t) >> np.uint64(11)) * 2.0**-53
    interval, draw = np.int64(uniform * (len(sampler.guide) - 1)), uniform * sampler.cumulative[-1]
    low, high = sampler.guide[interval], sampler.guide[interval + 1]
    while low < high:
        middle = (low + high) // 2
        if sampler.cumulative[middle] <= draw:
            low = middle + 1
        else:
            high = middle
    record, n_flags = min(low, sampler.last), len(t.least)
    p.fixed[place], p.flags[place] = record >> n_flags, record & ((1 << n_flags) - 1)
    p.days[place], p.over[place] = 0, False


def _show(place, t, p, seen):
    fixed, flags, last = np.uint32(p.fixed[place]), np.uint32(p.flags[place]), np.uint32(seen.shape[1] - 1)
    np.add(t.codes_of_fixed[fixed], t.codes_of_flags[flags], seen[place])
    if t.horizon > 1:
        seen[place, last] = p.days[place]


def _day(place, begin, action, t, p, at, drawn):
    n_flags, n_hazards = np.uint32(len(t.least)), np.uint32(len(t.weights))
    fixed, flags = np.uint32(p.fixed[place]), np.uint32(p.flags[place])
    state = np.uint32((np.uint32(action) << n_flags) + flags)
    for each in range(len(at)):
        group = np.uint64(each)
        at[group] = t.of_fixed[fixed, group] + t.of_state[state, group]
    for each in range(t.n_numbers):
        number = _number(begin, place, each, t)
        drawn[2 * each] = (number & LOW) + 0.5
        drawn[2 * each + 1] = (number >> HALF) + 0.5
    evening, late, plan = np.uint32(0), np.uint32(0), at[t.group[ZERO]]
    for each in range(n_flags):
        flag, bit = np.uint64(each), ONE << np.uint32(each)
        absent, present = t.absence[plan, ZERO, flag], t.absence[plan, ONE, flag]
        limit, word = present if flags & bit else absent, drawn[flag]
        evening |= bit if word >= limit else ZERO
        late |= bit if word >= t.least[flag] * limit else ZERO
    harm, came, happened = t.harm[evening], False, evening
    for each in range(n_hazards):
        hazard = np.uint32(each)
        level = ONE + n_flags + hazard + hazard
        slope = level + ONE
        steep = t.values[t.start[slope] + at[t.group[slope]]]
        exponent = steep * t.danger[hazard, evening] + t.values[t.start[level] + at[t.group[level]]]
        uniform = drawn[n_flags + hazard] / 4294967296.0
        # e^x is at least 1 + x, which settles most.
        came = uniform >= 1.0 + exponent - 1e-9 and uniform >= _exp_of(exponent)
        harm += t.weights[hazard] * came
        happened |= np.uint32(came) << (n_flags + hazard)
    cost = ONE + n_flags + n_hazards + n_hazards
    reward = 0.0 - (t.values[t.start[cost] + at[t.group[cost]]] + harm)
    p.days[place] += 1
    over = came or p.days[place] == t.horizon or (n_flags > 0 and evening == 0)
    morning = evening
    # In the night. What may appear in nobody with such a number is not looked up, and that is most.
    if late != evening and not over:
        for each in range(n_flags):
            flag = np.uint32(each)
            if (late >> flag) & ONE:
                night = flag + ONE
                group = t.group[night]
                stays_away = t.values[t.start[night] + t.of_fixed[fixed, group] + t.of_state[evening, group]]
                limit = stays_away * t.absence[plan, (flags >> flag) & ONE, flag]
                morning |= np.uint32(drawn[flag] >= limit) << flag
    p.flags[place], p.over[place] = morning, over
    return reward, happened


def _exp_of(exponent):
    rest = max(exponent, -64.0)
    step = np.int64(rest * -256.0)
    rest += step * 0.00390625
    series = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6 + rest * (1 / 24 + rest * (1 / 120)))))
    return series * POWERS[np.uint32(step)]


def compiled_kernel():
    """Another copy of this module, whose functions are compiled when they are first called; why that takes a while."""
    njit = import_module("numba").njit  # which takes a second to import
    spec = find_spec(__name__)
    kernel = module_from_spec(spec)
    spec.loader.exec_module(kernel)
    for name in WITHIN:
        setattr(kernel, name, njit(inline="always")(getattr(kernel, name)))
    kernel.dispatchers = {name: _enter(kernel, name, njit) for name in CALLED}
    folder = kernel.dispatchers["treat"].stats.cache_path
    wait = "compiling the patients' days, which takes some seconds,"
    if folder is None:
        return kernel, f"{wait} in this process, as nothing can be kept on the disk."
    return kernel, "" if list(Path(folder).glob("kernel.treat*.nbi")) else f"{wait} once on this machine."


def _enter(kernel, name, njit):
    """A function of the kernel that is compiled in the first call, and then called without a look at its arguments.

    These have the same types each time. The code is kept on the disk, if there is a folder for that, and room in it.
    """
    function = getattr(kernel, name)
    function = getattr(function, "__wrapped__", function)
    try:
        dispatcher = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        dispatcher = njit(nogil=True)(function)
    else:
        save = dispatcher._cache.save_overload

        def save_if_possible(*given):
            with suppress(OSError):
                save(*given)

        dispatcher._cache.save_overload = save_if_possible

    def first(*given):
        # Numba would take a number of Python's for one with a sign.
        typed = zip(function.__code__.co_varnames, given, strict=False)
        dispatcher(*(np.uint64(each) if argument == "begin" else each for argument, each in typed))
        setattr(kernel, name, dispatcher.overloads[dispatcher.signatures[0]].entry_point)

    setattr(kernel, name, first)
    return dispatcher

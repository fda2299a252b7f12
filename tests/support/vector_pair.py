"""The environment of many patients beside Gymnasium's vector of single ones, which get the same random numbers."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.treatment import TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv

MODES = [mode.value for mode in AutoresetMode]
N = 40


class Recorder:
    """A generator that keeps what it gives."""

    def __init__(self, seed):
        self.rng, self.given = np.random.default_rng(seed), []

    def random(self, size=None):
        self.given.append(self.rng.random(size))
        return self.given[-1].copy()


class Script:
    """A generator that gives what it was told to, one number after the other."""

    def __init__(self):
        self.numbers = []

    def random(self, size=None):
        taken, self.numbers = self.numbers[: size or 1], self.numbers[size or 1 :]
        assert len(taken) == (size or 1), "more numbers were taken than the other environment took"
        return np.array(taken) if size else float(taken[0])


class Pair:
    """The vector environment, and Gymnasium's over single ones that get the same numbers."""

    def __init__(self, mode, **arguments):
        self.mode, self.over = mode, np.zeros(N, dtype=bool)
        self.native = TreatmentVectorEnv(N, autoreset_mode=mode, **arguments)
        self.sync = SyncVectorEnv([lambda: TreatmentEnv(**arguments)] * N, autoreset_mode=mode)
        self.native.np_random, self.scripts = Recorder(1), [Script() for _ in range(N)]
        for env, script in zip(self.sync.envs, self.scripts, strict=True):
            env.np_random = script

    def taken(self):
        """The numbers that the vector environment has just taken, call by call."""
        given, self.native.np_random.given = self.native.np_random.given, []
        return given

    def hand_on(self, who, numbers):
        """Give numbers to some of the single environments, (len(who), n)."""
        for place, some in zip(np.flatnonzero(who), numbers, strict=True):
            self.scripts[place].numbers.extend(np.atleast_1d(some))

    def reset(self, mask=None, record=None):
        options = {name: value for name, value in (("reset_mask", mask), ("record", record)) if value is not None}
        found = self.native.reset(options=options)
        who = np.ones(N, dtype=bool) if mask is None else mask
        if record is None:
            self.hand_on(who, self.taken()[0])
        self.over = self.over & ~who
        return found, self.sync.reset(options=dict(options))

    def step(self, actions):
        found = self.native.step(actions)
        day, *admissions = self.taken()
        idle = self.over if self.mode == "NextStep" else np.zeros(N, dtype=bool)
        self.hand_on(~idle, day.T[~idle])
        self.over = found[2]
        if admissions:
            self.hand_on(self.over if self.mode == "SameStep" else idle, admissions[0])
        wanted = self.sync.step(actions)
        assert not any(script.numbers for script in self.scripts), "fewer numbers were taken"
        return found, wanted


def assert_same(found, wanted):
    """Equal in values, types and keys, all the way down."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            assert_same(found[key], wanted[key])
    elif isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, np.ndarray) and wanted.dtype == object:
        assert found.dtype == object
        assert_same(tuple(found), tuple(wanted))
    elif wanted is None:
        assert found is None
    else:
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        assert np.array_equal(found, wanted)

"""The environment of many patients beside Gymnasium's vector of single ones, each with the numbers of one place."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.dynamics import GOLDEN
from envs.treatment import TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv

MODES = [mode.value for mode in AutoresetMode]
N = 40


class Pair:
    """The vector environment, and Gymnasium's over single ones that get the same numbers."""

    def __init__(self, mode, compiled=None, **arguments):
        self.mode, self.over = mode, np.zeros(N, dtype=bool)
        self.native = TreatmentVectorEnv(N, autoreset_mode=mode, compiled=compiled, **arguments)
        self.sync = SyncVectorEnv([lambda: TreatmentEnv(compiled=False, **arguments)] * N, autoreset_mode=mode)
        self.native._patients._source, self.native._patients._begin = self.native.np_random, 7 << 60
        for env in self.sync.envs:
            env._patients._source, env._patients._stride = env.np_random, self.native._patients._stride

    def begin(self):
        """Let each of the single environments take the numbers that its place takes next."""
        patients = self.native._patients
        for place, env in enumerate(self.sync.envs):
            env._patients._begin = patients._begin + GOLDEN * patients.ward.tables.n_numbers * place

    def reset(self, mask=None, **options):
        """What both return; of those in a mask, if it is given."""
        self.begin()
        given = {name: value for name, value in {"reset_mask": mask, **options}.items() if value is not None}
        self.over = self.over & (False if mask is None else ~mask)
        return self.native.reset(options=given), self.sync.reset(options=dict(given))

    def step(self, actions):
        """What both return."""
        self.begin()
        found, wanted = self.native.step(actions), self.sync.step(actions)
        self.over = found[2]
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

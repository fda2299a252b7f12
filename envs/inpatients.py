"""The patients of an environment, and the random numbers that they take: what both environments are shells around.

They are treated by NumPy (`envs.dynamics`), one alone by Python (`envs.kernel`), or by that compiled, in threads;
nothing that happens depends on which, nor on the number of processors.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs import dynamics, kernel
from envs.cohort import FloatArray, PatientSampler
from envs.dynamics import MOST, Places
from envs.records import IntArray
from envs.ward import BoolArray, CodeArray, RecordParts, Ward

# A thread costs more than it saves for fewer, and what is computed for so many stays in a processor's cache.
PLACES_AT_ONCE = 16_384
# A call by NumPy takes as long as so many more patients; after so many patients and calls, compiled code is worth
# fetching: a second, and some more the first time on a machine.
CALL, WORTH = 256, 1 << 21


class Patients:
    """Patients in places, admitted and treated.

    Parameters
    ----------
    ward : Ward
        What happens to them.
    n : int
        How many.
    compiled : bool or None
        Whether to use compiled code; by default as soon as that saves time, and at once in a process that has it.

    Attributes
    ----------
    places : Places
        Who they are. At first nobody is in treatment.

    Raises
    ------
    ValueError
        If `compiled` is something else, or True without numba.
    """

    def __init__(self, ward: Ward, n: int, compiled: bool | None) -> None:
        if compiled not in (None, True, False):
            raise ValueError(f"compiled must be True, False or None, got compiled={compiled!r}.")
        if not find_spec("numba"):
            if compiled:
                raise ValueError("compiled=True: this needs numba: pip install 'policysim[fast]'.")
            compiled = False
        self.ward, self._compiled, self._work = ward, compiled, 0
        parts = np.zeros((2, n), dtype=np.int32)
        self.places = Places(parts[0], parts[1], np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.bool_))
        self._n_columns = ward.tables.codes_of_fixed.shape[1]
        self._source: np.random.Generator | None = None
        # Where the random numbers of the next reset or step begin, and how many lie between them.
        self._begin, self._stride = 0, dynamics.GOLDEN * ward.tables.n_numbers * n & MOST

    def admit(
        self, who: IntArray, rng: np.random.Generator, sampler: PatientSampler, parts: RecordParts | None
    ) -> None:
        """Admit patients to some places: with a given record, or drawn from a sampler."""
        if parts is None:
            self._share(self._code().admit, len(who), rng, (who, sampler, self.ward.tables, self.places))
        else:
            self.places.fixed[who], self.places.flags[who] = parts
            self.places.days[who], self.places.over[who] = 0, False

    def room(self) -> tuple[FloatArray, BoolArray]:
        """Arrays for the rewards, (n,), and outcomes, (n_outcomes, n), of a day."""
        n = len(self.places.over)
        return np.empty(n), np.empty((len(self.ward.scenario.outcomes), n), dtype=np.bool_)

    def treat(
        self,
        actions: IntArray,
        rng: np.random.Generator,
        rewards: FloatArray,
        outcomes: BoolArray,
        *,
        readmit: bool,
        sampler: PatientSampler | None = None,
    ) -> CodeArray:
        """A day: observations, as a new array; fills in rewards and outcomes (`room`).

        A patient whose stay has ended gets nothing that day, or another patient takes the place.
        """
        n, ward = len(actions), self.ward
        seen = np.empty((n, self._n_columns), dtype=np.int16)
        given = actions, readmit, sampler or ward.sampler, ward.tables, self.places, seen, rewards, outcomes
        self._share(self._code().treat, n, rng, given)
        return seen

    def observe(self) -> CodeArray:
        """What is seen of everybody, (n, n_columns), as a new array."""
        seen = np.empty((len(self.places.over), self._n_columns), dtype=np.int16)
        self._code().show(0, len(seen), self.ward.tables, self.places, seen)
        return seen

    def allowed(self) -> NDArray[np.int8]:
        """Which treatments everybody may get, (n, n_actions), as a new array."""
        return self.ward.allowed(self.places.fixed, self.places.flags)

    def _share(self, work: Callable[..., None], n: int, rng: np.random.Generator, given: tuple[Any, ...]) -> None:
        """Do some work that takes random numbers on n places, so many at once, in threads."""
        if rng is not self._source:
            self._source, self._begin = rng, int(rng.integers(MOST, dtype=np.uint64, endpoint=True))
        self._begin = (self._begin + self._stride) & MOST
        begin = self._begin
        if n <= PLACES_AT_ONCE:
            work(0, n, begin, *given)
        else:
            starts = range(0, n, PLACES_AT_ONCE)
            list(_pool().map(lambda start: work(start, min(n, start + PLACES_AT_ONCE), begin, *given), starts))

    def _code(self) -> Any:
        """The module that treats the patients."""
        if self._compiled is None:
            self._work += len(self.places.over) + CALL
            if not _kernel.cache_info().currsize and self._work < WORTH:
                return self._plain()
            with suppress(ImportError):  # a numba that does not know this NumPy
                _kernel()
            self._compiled = _kernel.cache_info().currsize > 0
        return _kernel() if self._compiled else self._plain()

    def _plain(self) -> Any:
        """The faster one of those that are not compiled."""
        return dynamics if len(self.places.over) > 1 else kernel


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """The compiled code of this process; prints why it takes time."""
    code, delay = kernel.compiled_kernel()  # type: ignore[no-untyped-call]
    if delay:
        sys.stderr.write(f"policysim: {delay}\n")
    return code


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """The threads of this process: one that was forked from it has its own."""
    with _pools_lock:
        if os.getpid() not in _pools:
            known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
            _pools[os.getpid()] = ThreadPoolExecutor(known, "treatment")
        return _pools[os.getpid()]

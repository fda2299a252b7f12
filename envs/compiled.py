"""What the compiled pass reads and changes: a ward's numbers and the patients' state, as arrays; and its threads.

A record is split in two: `flags`, a bit for each transient flag in the order of the outcomes, and `fixed`, the number
of the record among those without a flag, which never changes in a stay. The place in a table of the course is a sum of
what these two and the action add to it.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray
from envs.dynamics import FLAGS_AT_ONCE, BoolArray, CodeArray, FlagSum, GridTables, absence_of, exponents_of, nights_of
from envs.philox import Key
from envs.records import IntArray
from envs.stay import Ward
from envs.utility import Payoff

# A thread costs more than it saves for fewer.
PLACES_PER_THREAD = 8_192
# The outcomes of a patient's day are bits of a number.
MOST_OUTCOMES = 30
# Wards and utilities in use at a time.
TABLES_KEPT = 8
Int32Array = NDArray[np.int32]


class Tables(NamedTuple):
    """A ward's numbers.

    Attributes
    ----------
    values : array
        All tables of the course, one after the other.
    start, group : array of int
        Where a table starts in `values`, and which group it belongs to: tables of a group have the same places. First
        of each flag its absence, then of each flag its nights; then level and slope of each event and of death; last
        the cost of treatment. Group -1: of absence, the place is 2 * action + present; a night without such a table.
    of_fixed, of_flags, of_action : array of int32, (n_groups, n_fixed), (n_groups, 2^n_flags), (n_groups,)
        What adds to a place in the tables of a group.
    danger, harm : array, (n_hazards, n_parts, 4096), (1, n_parts, 4096)
        Sums of kappa over the flags left, and of weights over the outcomes, for each twelve of them.
    codes_of_fixed, codes_of_flags : array of int16, (n_fixed, n_columns), (2^n_flags, n_columns)
        Observations on day 0 of the records without a flag; of the first record with these flags. Together: either's.
    guide, cumulative, last
        Of `PatientSampler`.
    high, low : array of int32, (n, 2)
        Fixed and flags of a record's two parts, record // len(low) and the rest: those of the record are their sums.
    n_flags, n_by_day, horizon : int
        The number of transient flags, of groups with tables of the day (those of the night come after them), of days.
    least : array, (n_flags,)
        The least P(still absent in the morning) of any patient, for each flag; 1 without nights.
    allowed, of_mask : array of int8, (n_places, n_actions), int
        Which treatments a patient may get, by the place in tables of this group.
    """

    values: FloatArray
    start: IntArray
    group: IntArray
    of_fixed: Int32Array
    of_flags: Int32Array
    of_action: IntArray
    danger: FloatArray
    harm: FloatArray
    codes_of_fixed: CodeArray
    codes_of_flags: CodeArray
    guide: Int32Array
    cumulative: FloatArray
    last: int
    high: Int32Array
    low: Int32Array
    n_flags: int
    n_by_day: int
    least: FloatArray
    horizon: int
    allowed: NDArray[np.int8]
    of_mask: int


class Places(NamedTuple):
    """The patients of an environment, (n,): the two parts of their records, days treated so far, whose stay is over."""

    fixed: Int32Array
    flags: Int32Array
    days: IntArray
    over: BoolArray


class _Groups:
    """Tables one after the other, and the groups that have the same places."""

    def __init__(self) -> None:
        self.values: list[FloatArray] = []
        self.keys: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
        self._size = 0

    def add(self, grid: FloatArray) -> tuple[int, int]:
        """Start and group of a table (n_actions or 1, ...)."""
        return self.append(grid.ravel()), self.of(grid)

    def of(self, grid: NDArray[Any]) -> int:
        """The group of tables of this shape."""
        tables = GridTables([grid])
        key = tuple(tables.axes.tolist()), tuple(tables.strides.ravel().tolist()), tables.stride
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)

    def append(self, values: FloatArray) -> int:
        """Start of a table whose places are no group's."""
        self.values.append(values)
        self._size += values.size
        return self._size - values.size


def tables_of(ward: Ward, payoff: Payoff) -> Tables:
    """A ward's numbers, and what its outcomes are worth; environments that have the same ones share them."""
    return _tables_of(ward, payoff.weights.tobytes(), payoff.costs.tobytes(), payoff.costs.shape)


@lru_cache(maxsize=TABLES_KEPT)
def _tables_of(ward: Ward, weights: bytes, costs: bytes, shape_of_costs: tuple[int, ...]) -> Tables:
    course, space = ward.course, ward.scenario.space
    shape, flag_axes = np.array(space.shape), ward.flag_axes
    n_actions, n_flags, groups = len(ward.scenario.actions), len(flag_axes), _Groups()
    tables = []
    for grid in absence_of(course):
        if grid[0].size == 2:
            both = np.broadcast_to(grid.reshape(len(grid), 2), (n_actions, 2)).ravel()
            tables.append((groups.append(both), -1))
        else:
            tables.append(groups.add(grid))
    exponents, nights = exponents_of(course), nights_of(course)
    others = [groups.add(grid) for grids, _ in exponents for grid in grids]
    others.append(groups.add(np.frombuffer(costs).reshape(shape_of_costs)))
    n_by_day = len(groups.keys)
    tables += [groups.add(nights[flag]) if flag in nights else (0, -1) for flag in range(n_flags)] + others
    of_mask = groups.of(ward.allowed[0][np.newaxis])
    # What a feature's level adds to the number of the record among those without a flag, and to its flags.
    steady = np.where(np.isin(np.arange(len(shape)), flag_axes), 1, shape)
    of_level = np.array([math.prod(steady[axis + 1 :].tolist()) for axis in range(len(shape))])
    of_level[flag_axes] = 0
    of_flag = np.zeros(len(shape), dtype=int)
    of_flag[flag_axes] = 1 << np.arange(n_flags)
    codes = np.indices(tuple(steady.tolist()), dtype=np.int16).reshape(len(shape), -1).T
    bits = _bits(np.arange(1 << n_flags), n_flags)
    strides = np.zeros((len(shape), len(groups.keys)), dtype=int)
    for group, (axes, steps, _) in enumerate(groups.keys):
        strides[list(axes), group] = steps
    cut = ward.arrivals.cut
    high, low = (
        np.stack([part.T @ weight[axes] for weight in (of_level, of_flag)], axis=1).astype(np.int32)
        for part, axes in zip(ward.arrivals.halves, (slice(cut), slice(cut, None)), strict=True)
    )
    sampler = ward.arrivals.sampler
    return Tables(
        np.concatenate(groups.values),
        np.array([start for start, _ in tables]),
        np.array([group for _, group in tables]),
        (codes @ strides).T.astype(np.int32, order="C"),
        (bits @ strides[flag_axes]).T.astype(np.int32, order="C"),
        np.array([key[2] for key in groups.keys]),
        np.stack([_sums(kappa) for _, kappa in exponents]),
        _sums(np.frombuffer(weights))[np.newaxis],
        ward.observe(codes, 0),
        ward.observe((bits @ np.eye(len(shape), dtype=int)[flag_axes]).astype(np.int16), 0),
        sampler.guide,
        sampler.cumulative,
        sampler.last,
        high,
        low,
        n_flags,
        n_by_day,
        np.array([nights[flag].min() if flag in nights else 1.0 for flag in range(n_flags)]),
        ward.horizon,
        np.stack([mask.ravel() for mask in ward.allowed], axis=1),
        of_mask,
    )


def parts_of(ward: Ward, codes: CodeArray) -> tuple[IntArray, IntArray]:
    """Fixed and flags, (m,) each, of the records with these level codes, (m, n_features)."""
    shape, columns, rows = np.array(ward.scenario.space.shape), ward.flag_axes, codes.astype(np.intp)
    flags: IntArray = rows[:, columns] @ (1 << np.arange(len(columns)))
    rows[:, columns], shape[columns] = 0, 1
    return np.ravel_multi_index(tuple(rows.T), tuple(shape)), flags


def _bits(numbers: IntArray, n_bits: int) -> IntArray:
    """(m,) -> (m, n_bits), the lowest first."""
    bits: IntArray = (numbers[:, np.newaxis] >> np.arange(n_bits)) & 1
    return bits


def _sums(weights: FloatArray) -> FloatArray:
    """The sums of a `FlagSum`, (n_parts, 4096), by the bits of each twelve flags."""
    starts, every = range(0, len(weights), FLAGS_AT_ONCE), np.arange(1 << FLAGS_AT_ONCE)
    sums, of = np.zeros((len(starts), len(every))), FlagSum(weights).of
    for part, start in zip(sums, starts, strict=True):
        width = min(FLAGS_AT_ONCE, len(weights) - start)
        present = np.zeros((len(every), len(weights)), dtype=np.bool_)
        present[:, start : start + width] = _bits(every, width)
        part[:] = of(present)
    return sums


def why_not(ward: Ward) -> str:
    """Why compiled code cannot treat a ward's patients, in words; nothing if it can."""
    if ward.n_draws > MOST_OUTCOMES:
        return f"the scenario has {ward.n_draws} outcomes, and compiled code can treat at most {MOST_OUTCOMES}"
    return "" if find_spec("numba") else "this needs numba: pip install 'policysim[fast]'"


def is_compiled() -> bool:
    """Whether this process has compiled the kernel."""
    return _kernel.cache_info().currsize > 0


@lru_cache(maxsize=1)
def _kernel() -> Any:
    from envs import kernel  # noqa: PLC0415 - see there

    return kernel


class Pass:
    """The compiled pass over the places of an environment.

    Parameters
    ----------
    ward, payoff
        What happens to the patients, and what it is worth.
    codes, days, over : array
        The patients in the places: level codes (n, n_features), days treated so far, whose stay has ended.
    threads : int
        The most threads that share a pass; by default, one for each processor. What happens does not depend on it.

    Attributes
    ----------
    places : Places
        The patients.

    Raises
    ------
    ImportError
        Without a numba that works.
    """

    def __init__(
        self,
        ward: Ward,
        payoff: Payoff,
        *,
        codes: CodeArray,
        days: IntArray,
        over: BoolArray,
        threads: int | None = None,
    ) -> None:
        _kernel()  # fails before anything has happened
        self._ward, self._tables, n = ward, tables_of(ward, payoff), len(codes)
        fixed, flags = parts_of(ward, codes)
        self.places = Places(fixed.astype(np.int32), flags.astype(np.int32), days.astype(np.int64), over.copy())
        self._n_outcomes = ward.n_draws
        parts = threads or max(1, min(processors(), n // PLACES_PER_THREAD))
        edges = [n * part // parts for part in range(parts + 1)]
        self._parts = list(pairwise(edges))

    def codes(self) -> CodeArray:
        """Level codes of the patients, (n, n_features)."""
        return self.observe()[:, : len(self._ward.scenario.space.shape)]

    def observe(self) -> CodeArray:
        """Observations of the patients, (n, n_columns)."""
        seen = self._empty()
        _kernel().show(0, len(seen), self._tables, self.places, seen)
        return seen

    def action_mask(self) -> NDArray[np.int8]:
        """Which treatments the patients may get, (n, n_actions): `Ward.action_mask`."""
        mask = np.empty((len(self.places.over), self._tables.allowed.shape[1]), dtype=np.int8)
        self._share(_kernel().allow, self._tables, self.places, mask)
        return mask

    def refuses(self, actions: IntArray) -> bool:
        """Whether any patient whose stay goes on must not get his treatment."""
        return bool(_kernel().refuses(actions, self._tables, self.places))

    def _empty(self) -> CodeArray:
        return np.empty((len(self.places.over), self._tables.codes_of_fixed.shape[1]), dtype=np.int16)

    def admit(self, time: int, key: Key, who: IntArray) -> None:
        """Admit patients drawn from the cohort to some places."""
        chosen = np.zeros(len(self.places.over), dtype=np.bool_)
        chosen[who] = True
        self._share(_kernel().admit, time, key, chosen, self._tables, self.places)

    def admit_given(self, who: IntArray, codes: CodeArray) -> None:
        """Admit patients with these level codes, (m or 1, n_features), to some places."""
        self.places.days[who], self.places.over[who] = 0, False
        self.places.fixed[who], self.places.flags[who] = parts_of(self._ward, codes)

    def treat(
        self, time: int, key: Key, actions: IntArray, *, next_step: bool
    ) -> tuple[CodeArray, FloatArray, BoolArray, BoolArray]:
        """A day of treatment: observations, rewards, who was treated, all (n, ...), and outcomes, (n_outcomes, n).

        Where the stay has ended before, `next_step` says whether another patient is admitted or nothing happens.
        """
        n = len(actions)
        rewards, treated, outcomes = np.empty(n), np.empty(n, np.bool_), np.empty((self._n_outcomes, n), np.uint8)
        seen = self._empty()
        given = self._tables, self.places, seen, rewards, treated, outcomes
        self._share(_kernel().treat, time, key, actions, next_step, *given)
        return seen, rewards, treated, outcomes.view(np.bool_)

    def _share(self, work: Callable[..., None], *given: Any) -> None:
        """Do some work on all places, in threads."""
        others = [_pool().submit(work, *part, *given) for part in self._parts[1:]]
        work(*self._parts[0], *given)
        for other in others:
            other.result()


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """The threads of this process: one that was forked from it has its own."""
    with _pools_lock:
        if os.getpid() not in _pools:
            _pools[os.getpid()] = ThreadPoolExecutor(processors(), "treatment")
        return _pools[os.getpid()]

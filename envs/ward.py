"""A scenario's patients in numbers: the tables that `envs.dynamics` and `envs.kernel` read.

A record is two numbers: `flags`, a bit for each transient flag in the order of the outcomes, and `fixed`, the number of
the record among those without a flag, which never changes in a stay. The place of a record and an action in a table is
the sum of what these three add to it; tables that depend on the same features form a group, with the same places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from numpy.typing import NDArray

from envs.cohort import FloatArray, PatientSampler, Where, levels_where, prior
from envs.records import IntArray, Level
from envs.scenario import DEATH, Scenario, with_utility
from envs.scenario_reader import load_scenario
from envs.toml_reader import unknown
from envs.treatment_response import Course, ResponseModel, contraindication_of, forbidden, is_whole, treatment_costs

BoolArray = NDArray[np.bool_]
CodeArray = NDArray[np.int16]
Int32Array = NDArray[np.int32]
# The two parts of records, (m,) each.
RecordParts: TypeAlias = tuple[Int32Array, Int32Array]
# Random words are whole numbers below this.
WORD = 1 << 32
# The number of days treated is part of an observation of 16-bit integers.
LONGEST = 32_766
# Scenarios in use at a time; one of a million records takes 12 MB.
SCENARIOS_KEPT = 4
Numbers: TypeAlias = tuple[tuple[str, float], ...]
Levels: TypeAlias = tuple[Level, ...]


@dataclass(frozen=True)
class Source:
    """Where a scenario comes from; equal sources have equal scenarios, so that their tables are made once.

    Attributes
    ----------
    name : str
        A built-in scenario or the path of a file; of a scenario that was handed over, all that it holds, as text.
    version : tuple or None
        Of a file: where it is, and when it was changed.
    scenario : Scenario or None
        The scenario that was handed over.
    """

    name: str
    version: tuple[str, int] | None = None
    scenario: Scenario | None = field(default=None, compare=False)

    @classmethod
    def of(cls, scenario: str | Path | Scenario) -> Source:
        """From a built-in name, a path or a scenario; ValueError for anything else."""
        if isinstance(scenario, Scenario):
            # Nothing here reads intervals and redraws, which are long.
            return cls(repr(replace(scenario, intervals={}, redraws=None)), scenario=scenario)
        if not isinstance(scenario, str | Path):
            raise ValueError(f"scenario must be a built-in name, a path or a Scenario, got scenario={scenario!r}.")
        path, name = Path(scenario), str(scenario)
        is_file = name.endswith(".toml") and path.exists()
        return cls(name, (str(path.absolute()), path.stat().st_mtime_ns) if is_file else None)

    def load(self) -> Scenario:
        """The scenario."""
        return load_scenario(self.name) if self.scenario is None else self.scenario


class DayTables(NamedTuple):
    """The numbers of a day and night.

    Attributes
    ----------
    absence : array, (n_places, 2, n_flags)
        2^32 P(flag absent in the evening), if it is absent and if it is present in the morning. Its group is the first.
    values : array
        All other tables, one after the other.
    start, group : array of int
        Where a table starts in `values`, and its group: of each flag P(absent next morning | absent in the evening),
        from 1 on; then of each event and of death level and slope of log P(it does not come); then the cost of
        treatment. The last group is that of the masks (`Ward.allowed`).
    of_fixed, of_state : array of int32, (n_fixed, n_groups), (n_actions 2^n_flags, n_groups)
        What a record's fixed part adds to the place in the tables of a group, and what 2^n_flags action + flags does.
    least : array, (n_flags,)
        The least P(absent next morning | absent in the evening) of any patient.
    danger : array, (n_hazards, 2^n_flags)
        What the flags of an evening multiply a hazard's slope by.
    harm, weights : array, (2^n_flags,), (n_hazards,)
        What the flags of an evening cost, and events and death.
    codes_of_fixed, codes_of_flags : array of int16, (n_fixed, n_columns), (2^n_flags, n_columns)
        Observations on day 0 of the records without a flag, and of the first record with these flags: either's is the
        sum of both.
    horizon : int
        The number of days.
    n_numbers : int
        Random numbers of 64 bits that a place has a day: half of one serves an outcome, one an admission.
    """

    absence: FloatArray
    values: FloatArray
    start: IntArray
    group: IntArray
    of_fixed: Int32Array
    of_state: Int32Array
    least: FloatArray
    danger: FloatArray
    harm: FloatArray
    weights: FloatArray
    codes_of_fixed: CodeArray
    codes_of_flags: CodeArray
    horizon: int
    n_numbers: int


def day_tables(course: Course, mask: BoolArray) -> DayTables:
    """The numbers of a course's day, and what its outcomes are worth; a mask of records gives the last group."""
    scenario, actions = course.scenario, range(len(course.scenario.actions))
    shape, flag_axes = np.array(scenario.space.shape), flag_axes_of(scenario)
    n_flags, weights = len(flag_axes), np.array([scenario.weights.get(name, 0.0) for name in scenario.outcomes])
    hazards = [[course.response.hazard(name, a) for a in actions] for name in (*scenario.events, DEATH)]
    absence = _absence(course.response.presence, flag_axes, len(shape))
    nights = [1 - onset[np.newaxis] for onset in course.onset]
    exponents = [_by_action([-getattr(each, part) for each in row]) for row in hazards for part in ("level", "slope")]
    grids = [*nights, *exponents, _by_action(treatment_costs(scenario))]
    steps = [_steps(each) for each in (absence.shape[:-2], *(grid.shape for grid in grids), (1, *mask.shape))]
    kinds = sorted(set(steps))
    strides = np.array(kinds).T
    # Level codes of the records without a flag, and of those with these flags and else the first levels.
    steady = shape.copy()
    steady[flag_axes] = 1
    fixed_codes = np.indices(tuple(steady.tolist()), dtype=np.int16).reshape(len(shape), -1).T
    bits = (np.arange(1 << n_flags)[:, np.newaxis] >> np.arange(n_flags)) & 1
    flag_codes = np.zeros((len(bits), len(shape)), dtype=np.int16)
    flag_codes[:, flag_axes] = bits
    day = [(0, 0), (0, int(course.horizon > 1))]
    return DayTables(
        absence=np.ascontiguousarray(absence.reshape(math.prod(absence.shape[:-2]), 2, n_flags)),
        values=np.concatenate([grid.ravel() for grid in grids]),
        start=np.cumsum([0, 0, *(grid.size for grid in grids[:-1])], dtype=np.uint32),
        group=np.array([kinds.index(each) for each in steps], dtype=np.uint32),
        of_fixed=np.ascontiguousarray(fixed_codes @ strides[1:], dtype=np.int32),
        of_state=np.vstack([flag_codes @ strides[1:] + action * strides[0] for action in actions]).astype(np.int32),
        least=np.array([night.min() for night in nights]),
        danger=np.stack([bits @ row[0].kappa for row in hazards]),
        harm=bits @ weights[:n_flags],
        weights=weights[n_flags:].copy(),
        codes_of_fixed=np.ascontiguousarray(np.pad(fixed_codes, day)),
        codes_of_flags=np.pad(flag_codes, day),
        horizon=course.horizon,
        n_numbers=max(1, math.ceil(len(scenario.outcomes) / 2)),
    )


def flag_axes_of(scenario: Scenario) -> IntArray:
    """The columns of the transient flags in a record, in the order of the outcomes."""
    return np.array([scenario.space.axis(flag) for flag in scenario.transient], dtype=np.intp)


class Ward:
    """What environments of one scenario, horizon and utility share; it knows no patient. Use `ward_of`.

    Parameters
    ----------
    response : ResponseModel
        What one decision for the whole course does.
    sampler : PatientSampler
        Who comes (`sampler_of`).
    horizon : int
        The number of days.
    source : Source
        Where the scenario comes from.
    utility : mapping
        The weights and costs that were given in place of the scenario's.

    Attributes
    ----------
    scenario, sampler, horizon
        As given.
    tables : Tables
        The numbers of a day.
    forbids : bool
        Whether any treatment is contraindicated for anybody.
    """

    def __init__(
        self,
        response: ResponseModel,
        sampler: PatientSampler,
        horizon: int,
        source: Source,
        utility: Mapping[str, Mapping[str, float]],
    ) -> None:
        self.scenario, self.sampler, self.horizon = response.scenario, sampler, horizon
        self._source, self._utility = source, utility
        refused = np.broadcast_arrays(*(forbidden(self.scenario, action) for action in self.scenario.actions))
        self._allowed = np.stack([(~mask).astype(np.int8).ravel() for mask in refused], axis=1)
        self.forbids = not self._allowed.all()
        self.tables = day_tables(Course(response, horizon), refused[0])

    def __deepcopy__(self, memo: dict[int, Any]) -> Ward:
        """A copy of an environment shares its ward."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """What a process unpickles is its own ward for the same scenario."""
        return ward_of, (self._source.scenario or self._source.name, self.horizon, self._utility)

    def action_space(self) -> Discrete[Any]:
        """The treatments of one patient."""
        return Discrete(len(self.scenario.actions))

    def observation_space(self) -> MultiDiscrete[Any]:
        """The record's features, and the number of days treated so far if there are several days."""
        lengths = [*self.scenario.space.shape, *([self.horizon + 1] if self.horizon > 1 else [])]
        return MultiDiscrete(np.array(lengths), dtype=np.int16)

    def allowed(self, fixed: Int32Array, flags: Int32Array) -> NDArray[np.int8]:
        """1 for each treatment that a patient may get, 0 for the others, (m, n_actions), as a new array."""
        group = self.tables.group[-1]
        places = self.tables.of_fixed[fixed, group] + self.tables.of_state[flags, group]
        return np.asarray(self._allowed.take(places, axis=0), dtype=np.int8)

    def refusal(self, name: str, action: int, codes: CodeArray, allowed: NDArray[np.int8]) -> ValueError:
        """Why a patient with these level codes must not get a treatment, by what the caller calls the action."""
        names = self.scenario.actions
        who = contraindication_of(self.scenario, names[action], codes.tolist())
        others = ", ".join(f"{place} ({names[place]})" for place in np.flatnonzero(allowed))
        return ValueError(
            f"{name} must be allowed: {names[action]} is contraindicated for this patient ({who}); "
            f"allowed: {others}, got {name}={action}."
        )

    def arrivals(self, options: Mapping[str, Any] | None) -> tuple[PatientSampler, RecordParts | None]:
        """Who comes, by the options of a reset: a sampler, and the record of everybody if it is given.

        Raises
        ------
        ValueError
            For an option other than "record" and "where", both of them, features or levels that do not exist, and
            conditions that nobody meets.
        """
        if not options:
            return self.sampler, None
        given, space = {name: value for name, value in options.items() if value is not None}, self.scenario.space
        for name, value in given.items():
            if name not in ("record", "where"):
                raise ValueError(f"{unknown('option', str(name), ['record', 'where'])}.")
            if not isinstance(value, Mapping):
                raise ValueError(f"options[{name!r}] must map features to levels, got {value!r}.")
        if len(given) == 2:
            raise ValueError("options must have 'record' or 'where', got both.")
        if "record" in given:
            return self.sampler, record_parts(self.scenario, space.codes([space.record(given["record"])]))
        if "where" not in given:
            return self.sampler, None
        levels = levels_where(space, given["where"])
        return _sampler_where(self._source, tuple(sorted(levels.items()))), None


def record_parts(scenario: Scenario, codes: IntArray) -> RecordParts:
    """Fixed and flags, (m,) each, of the records with these level codes, (m, n_features)."""
    shape, axes, rest = np.array(scenario.space.shape), flag_axes_of(scenario), codes.copy()
    flags = codes[:, axes] @ (1 << np.arange(len(axes)))
    rest[:, axes], shape[axes] = 0, 1
    return np.ravel_multi_index(tuple(rest.T), tuple(shape)).astype(np.int32), flags.astype(np.int32)


def ward_of(scenario: str | Path | Scenario, horizon: int, utility: Mapping[str, Any] | None = None) -> Ward:
    """The ward for a scenario (a built-in name, a path or itself), days and a utility (`with_utility`), once a process.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number of days in [1, 32766], for what makes no utility, and for what is
        neither the name, nor the path of a scenario, nor one.
    InputFileError
        For a scenario that does not exist or has mistakes.
    """
    if not is_whole(horizon) or not 1 <= horizon <= LONGEST:
        raise ValueError(f"horizon must be a whole number of days in [1, {LONGEST}], got horizon={horizon!r}.")
    source = Source.of(scenario)
    worth = with_utility(_patients(source)[0].scenario, utility)
    costs = tuple((name, treatment.cost) for name, treatment in worth.treatments.items())
    return _ward(source, int(horizon), tuple(worth.weights.items()), costs)


@lru_cache(maxsize=4 * SCENARIOS_KEPT)
def _ward(source: Source, horizon: int, weights: Numbers, costs: Numbers) -> Ward:
    response, sampler = _patients(source)
    utility = {"weights": dict(weights), "costs": dict(costs)}
    paid = response.with_scenario(with_utility(response.scenario, utility))
    return Ward(paid, sampler, horizon, source, utility)


@lru_cache(maxsize=SCENARIOS_KEPT)
def _patients(source: Source) -> tuple[ResponseModel, PatientSampler]:
    """What treatments do, and who comes: what takes long, and does not depend on the horizon."""
    model = source.load()
    return ResponseModel(model), sampler_of(model, {})


@lru_cache(maxsize=SCENARIOS_KEPT)
def _sampler_where(source: Source, where: tuple[tuple[str, Levels], ...]) -> PatientSampler:
    return sampler_of(_patients(source)[0].scenario, dict(where))


def sampler_of(scenario: Scenario, where: Where) -> PatientSampler:
    """Draws patients who meet a condition (`prior`), as numbers 2^n_flags fixed + flags."""
    shape, axes = scenario.space.shape, flag_axes_of(scenario).tolist()
    order = [axis for axis in range(len(shape)) if axis not in axes] + axes[::-1]
    return PatientSampler.of(prior(scenario, where).reshape(shape).transpose(order).ravel())


def _by_action(grids: list[FloatArray]) -> FloatArray:
    """One grid for each action, (n_actions, ...); a single one, (1, ...), if they are the same."""
    if all(np.array_equal(grid, grids[0]) for grid in grids):
        return grids[0][np.newaxis]
    return np.stack(np.broadcast_arrays(*grids))


def _absence(presence: list[list[FloatArray]], flag_axes: IntArray, n_features: int) -> FloatArray:
    """2^32 P(absent in the evening), (n_actions or 1, ..., 2, n_flags), by the flag's own level in the morning."""
    grids = []
    for flag, axis in enumerate(flag_axes):
        own = np.moveaxis(_by_action([WORD * (1 - row[flag]) for row in presence]), axis + 1, -1)
        both = np.broadcast_to(own, (*own.shape[:-1], 2))
        grids.append(np.expand_dims(both, axis + 1))
    if not grids:
        return np.empty((1,) * (n_features + 1) + (2, 0))
    return np.stack(np.broadcast_arrays(*grids), axis=-1)


def _steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """What one more along each axis adds to the place in a raveled grid: 0 along those that do not matter."""
    return tuple(math.prod(shape[axis + 1 :]) * (length > 1) for axis, length in enumerate(shape))

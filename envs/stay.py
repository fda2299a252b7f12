"""A patient's stay, from admission to its end: what the environments of one patient and of many share.

Who comes: level codes of patients drawn from the cohort, or of one that is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from numpy.typing import ArrayLike, NDArray

from envs.cohort import FloatArray, PatientSampler, prior
from envs.dynamics import BoolArray, CodeArray, Dynamics
from envs.records import IntArray, Lookup
from envs.scenario import Scenario
from envs.scenario_reader import load_scenario
from envs.toml_reader import unknown
from envs.treatment_response import Course, ResponseModel, contraindication_of, forbidden, is_whole

RENDER_MODES = ("ansi", "rgb_array")
# The number of days treated is part of an observation of 16-bit integers.
LONGEST = 32_766
# Scenarios in use at a time; one of a million records takes 12 MB.
SCENARIOS_KEPT = 4
# Of a scenario file: where it is, and when it was changed.
Version: TypeAlias = tuple[str, int] | None


@dataclass(frozen=True)
class Day:
    """What a day of treatment did to some patients.

    Attributes
    ----------
    outcomes : array, (m, n_outcomes)
        Which transient flags are present in the evening, which events have come, and death last.
    over : array, (m,)
        Whose stay has ended: by death, by full recovery or with the last day.
    codes : array, (m, n_features)
        Level codes of the next morning's record, or of the evening's where the stay has ended; column-major.
    """

    outcomes: BoolArray
    over: BoolArray
    codes: CodeArray


class Ward:
    """Admits and treats the patients of a scenario; holds nothing of any patient, so that environments share it.

    Use `ward_of`, which builds each ward once.

    Parameters
    ----------
    arrivals : Arrivals
        Who comes.
    course : Course
        What a day does.
    source : tuple
        The arguments of `ward_of` that give this ward.

    Attributes
    ----------
    course, scenario, horizon
        What the ward is for.
    n_draws : int
        Uniform numbers that a patient takes a day.
    flag_axes : array of int
        See `Dynamics`.
    allowed : list of array of int8
        Who may get each treatment, 1 or 0: of one shape, broadcasting over the grid of records.
    forbids : bool
        Whether any treatment is contraindicated for anybody.
    """

    def __init__(self, arrivals: Arrivals, course: Course, source: tuple[str, int]) -> None:
        self.course, self.scenario, self.horizon = course, course.scenario, course.horizon
        self.arrivals = arrivals
        self._dynamics = Dynamics(course)
        self._source = source
        self.n_draws, self.flag_axes = self._dynamics.n_draws, self._dynamics.flag_axes
        refused = np.broadcast_arrays(*(forbidden(self.scenario, action) for action in self.scenario.actions))
        self.allowed = [(~mask).astype(np.int8) for mask in refused]
        self.forbids = any(mask.any() for mask in refused)

    def __deepcopy__(self, memo: dict[int, Any]) -> Ward:
        """A copy of an environment shares its ward."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """What a process unpickles is its own ward for the same scenario."""
        return ward_of, self._source

    def action_space(self) -> Discrete[Any]:
        """The treatments of one patient."""
        return Discrete(len(self.scenario.actions))

    def observation_space(self) -> MultiDiscrete[Any]:
        """The record's features, and the number of days treated so far if there are several days."""
        lengths = [*self.scenario.space.shape, *([self.horizon + 1] if self.horizon > 1 else [])]
        return MultiDiscrete(np.array(lengths), dtype=np.int16)

    def observe(self, codes: CodeArray, days: ArrayLike) -> CodeArray:
        """Observations, (m, n_features) or one column more: new arrays, row-major."""
        if self.horizon == 1:
            return codes.copy(order="C")
        seen = np.empty((len(codes), codes.shape[1] + 1), dtype=np.int16)
        seen[:, :-1], seen[:, -1] = codes, days
        return seen

    def action_mask(self, codes: CodeArray) -> NDArray[np.int8]:
        """1 for each treatment that a patient may get, 0 for the others: (m, n_features) -> (m, n_actions)."""
        records = Lookup(codes)
        return np.stack([records.of(grid) for grid in self.allowed], axis=1)

    def check_allowed(self, codes: CodeArray, actions: IntArray, name: str, idle: BoolArray | None = None) -> None:
        """ValueError, with the name of the argument, for the first patient whose treatment is contraindicated.

        Parameters
        ----------
        codes, actions : array
            See `treat`.
        name : str
            What the caller calls the action, of which {} is the patient's place.
        idle : array of bool, (m,), optional
            Who is not treated.
        """
        if not self.forbids:
            return
        mask = self.action_mask(codes)
        wrong = mask[np.arange(len(codes)), actions] == 0
        if idle is not None:
            wrong &= ~idle
        if not wrong.any():
            return
        patient = int(wrong.argmax())
        names, action = self.scenario.actions, int(actions[patient])
        who = contraindication_of(self.scenario, names[action], codes[patient])
        allowed = ", ".join(f"{place} ({names[place]})" for place in np.flatnonzero(mask[patient]))
        raise ValueError(
            f"{name.format(patient)} must be allowed: {names[action]} is contraindicated for this patient ({who}); "
            f"allowed: {allowed}, got {name.format(patient)}={action}."
        )

    def treat(
        self,
        codes: CodeArray,
        actions: IntArray,
        uniforms: FloatArray,
        last: bool | BoolArray,
        idle: BoolArray | None = None,
    ) -> Day:
        """One day of treatment, with an end to the stays that end.

        Parameters
        ----------
        codes, actions, uniforms : array
            See `Dynamics.transition`.
        last : bool or array of bool, (m,)
            For whom it is the last day.
        idle : array of bool, (m,), optional
            For whom nothing happens, because the stay has ended before: no outcomes, the same codes, over.
        """
        moved = self._dynamics.transition(codes, actions, uniforms)
        outcomes = moved.outcomes.T
        if idle is not None:
            outcomes &= ~idle
        flags, died = outcomes[: len(self._dynamics.flag_axes)], outcomes[-1]
        # Where no flag can clear, nobody recovers.
        recovered = ~flags.any(axis=0) if len(flags) else False
        over = recovered | died | last
        if idle is not None:
            over = over | idle
        # Nothing is gone in the morning that was there in the evening: take away what has appeared in between.
        record, axes = moved.codes.T, self._dynamics.flag_axes
        present = record[axes].astype(np.bool_) & (flags | ~over)
        if idle is not None:
            present |= codes.T[axes].astype(np.bool_) & idle
        record[axes] = present
        return Day(moved.outcomes, over, moved.codes)


def ward_of(scenario: str, horizon: int) -> Ward:
    """The ward for a scenario (a built-in name or a path) and a number of days, built once in a process.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number of days in [1, 32766].
    InputFileError
        For a scenario that does not exist or has mistakes.
    """
    if not is_whole(horizon) or not 1 <= horizon <= LONGEST:
        raise ValueError(f"horizon must be a whole number of days in [1, {LONGEST}], got horizon={horizon!r}.")
    path, version = Path(scenario), None
    if scenario.endswith(".toml") and path.exists():
        version = str(path.absolute()), path.stat().st_mtime_ns
    return _ward(scenario, int(horizon), version)


@lru_cache(maxsize=4 * SCENARIOS_KEPT)
def _ward(scenario: str, horizon: int, version: Version) -> Ward:
    arrivals, response = _patients(scenario, version)
    return Ward(arrivals, Course(response, horizon), (scenario, horizon))


@lru_cache(maxsize=SCENARIOS_KEPT)
def _patients(scenario: str, version: Version) -> tuple[Arrivals, ResponseModel]:  # noqa: ARG001 - part of the key
    """Who comes and what treatments do to them: what takes long, and does not depend on the horizon."""
    read = load_scenario(scenario)
    return Arrivals(read), ResponseModel(read)


def check_render_mode(render_mode: str | None) -> str | None:
    """The render mode; ValueError if there is no such one."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        known = ", ".join(repr(mode) for mode in RENDER_MODES)
        raise ValueError(f"render_mode must be None or one of {known}, got {render_mode!r}.")
    return render_mode


class Arrivals:
    """Who comes: patients drawn from the cohort, or one that is given.

    Parameters
    ----------
    scenario : Scenario
        The cohort.

    Attributes
    ----------
    sampler : PatientSampler
        Draws records.
    cut, halves : int, list of array of int16, (n_features, n_records)
        Records are looked up in two halves, of the features before the cut and of the others: level codes of all
        records over these.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._space, shape = scenario.space, scenario.space.shape
        self.sampler = PatientSampler(prior(scenario))
        self.cut = min(range(len(shape)), key=lambda at: math.prod(shape[:at]) + math.prod(shape[at:]))
        self.halves: list[CodeArray] = [
            np.indices(half, dtype=np.int16).reshape(len(half), math.prod(half))
            for half in (shape[: self.cut], shape[self.cut :])
        ]

    def admit(self, uniforms: FloatArray) -> CodeArray:
        """Level codes of the records of new patients, (m, n_features), for one uniform number each; column-major."""
        return self._codes(self.sampler.records(uniforms))

    def _codes(self, records: IntArray) -> CodeArray:
        """Level codes, (m,) -> (m, n_features), column-major."""
        small = records.astype(np.int32)
        high = small // self.halves[1].shape[1]
        low = small - high * self.halves[1].shape[1]
        halves = [half.take(index, axis=1) for half, index in zip(self.halves, (high, low), strict=True)]
        return np.concatenate(halves).T

    def given(self, options: Mapping[str, Any] | None) -> CodeArray | None:
        """The patient that the options of a reset give, (1, n_features), if they give one.

        Raises
        ------
        ValueError
            For an option other than "record", and for features or levels that do not exist.
        """
        for name in options or {}:
            if name != "record":
                raise ValueError(f"{unknown('option', str(name), ['record'])}.")
        record = (options or {}).get("record")
        if record is None:
            return None
        if not isinstance(record, Mapping):
            raise ValueError(f"options['record'] must map features to levels, got {record!r}.")
        return self._codes(np.array([self._space.record(record)]))

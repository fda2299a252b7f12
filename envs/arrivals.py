"""Who comes: level codes of patients drawn from the cohort, or of one that is given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from envs.cohort import FloatArray, PatientSampler, prior
from envs.dynamics import CodeArray
from envs.records import IntArray, RecordSpace
from envs.scenario import Scenario
from envs.toml_reader import unknown


class Arrivals:
    """Who comes: patients drawn from the cohort, or one that is given.

    Parameters
    ----------
    scenario : Scenario
        The cohort.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._space = scenario.space
        self._sampler = PatientSampler(prior(scenario))
        self._decoder = _Decoder(scenario.space)

    def admit(self, uniforms: FloatArray) -> CodeArray:
        """Level codes of the records of new patients, (m, n_features), for one uniform number each; column-major."""
        return self._decoder.codes(self._sampler.records(uniforms))

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
        return self._decoder.codes(np.array([self._space.record(record)]))


class _Decoder:
    """Level codes of records: the features are cut in two halves, and each half is looked up."""

    def __init__(self, space: RecordSpace) -> None:
        cut = min(range(len(space.shape)), key=lambda at: math.prod(space.shape[:at]) + math.prod(space.shape[at:]))
        self._divisor = math.prod(space.shape[cut:])
        self._halves = [_all_codes(space.shape[:cut]), _all_codes(space.shape[cut:])]

    def codes(self, records: IntArray) -> CodeArray:
        """Level codes, (m,) -> (m, n_features), column-major."""
        small = records.astype(np.int32)
        high = small // self._divisor
        low = small - high * self._divisor
        halves = [half.take(index, axis=1) for half, index in zip(self._halves, (high, low), strict=True)]
        return np.concatenate(halves).T


def _all_codes(shape: tuple[int, ...]) -> CodeArray:
    """Level codes of all records over some features, (n_features, n_records)."""
    return np.indices(shape, dtype=np.int16).reshape(len(shape), math.prod(shape))

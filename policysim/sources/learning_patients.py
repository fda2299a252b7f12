"""Patients to learn from: their public and private columns, what became of them untreated, and how likely that was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from envs.cohort import PatientSampler, prior
from envs.records import RecordSpace
from envs.response import ResponseModel
from envs.scenario import DEATH, Scenario
from policies.arrays import FloatArray, IntArray
from policies.local import KAry


@dataclass(frozen=True)
class Split:
    """The features of a record in a public and a private part, each numbered in C order.

    Attributes
    ----------
    space : RecordSpace
        All features.
    columns : tuple of str
        The private ones.
    """

    space: RecordSpace
    columns: tuple[str, ...]

    @property
    def private_axes(self) -> tuple[int, ...]:
        """Where the private features are."""
        return tuple(self.space.axis(name) for name in self.columns)

    @property
    def public_axes(self) -> tuple[int, ...]:
        """Where the others are."""
        return tuple(axis for axis in range(len(self.space.shape)) if axis not in self.private_axes)

    def sizes(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The levels of some features."""
        return tuple(self.space.shape[axis] for axis in axes)

    @property
    def n_values(self) -> int:
        """k: the combinations of private levels."""
        return math.prod(self.sizes(self.private_axes))

    def channel(self, epsilon: float) -> KAry:
        """One joint report of all private columns."""
        return KAry.joint(self.sizes(self.private_axes), epsilon)

    def parts(self, records: IntArray) -> tuple[IntArray, IntArray]:
        """Public and private part of each record, (m,) and (m,)."""
        codes = self.space.codes(records)
        return (
            np.ravel_multi_index(tuple(codes[:, self.public_axes].T), self.sizes(self.public_axes)),
            np.ravel_multi_index(tuple(codes[:, self.private_axes].T), self.sizes(self.private_axes)),
        )

    def by_parts(self, column: FloatArray) -> FloatArray:
        """A column over all records as (public parts, private values)."""
        grid = np.moveaxis(column.reshape(self.space.shape), self.private_axes, range(-len(self.private_axes), 0))
        return grid.reshape(-1, self.n_values)

    def public_design(self, parts: IntArray) -> FloatArray:
        """Public parts as numbers, (m, d): an indicator of each level but the first of each feature."""
        return indicators(parts, self.sizes(self.public_axes))

    @cached_property
    def private_design(self) -> FloatArray:
        """The same of every private value, (k, e)."""
        return indicators(np.arange(self.n_values), self.sizes(self.private_axes))


def indicators(codes: IntArray, sizes: Sequence[int]) -> FloatArray:
    """Joint codes as 0 and 1: an indicator of each level but the first of each feature.

    Examples
    --------
    >>> indicators(np.array([0, 3, 5]), (2, 3)).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """
    places = np.unravel_index(codes, tuple(sizes))
    return np.column_stack(
        [place == level for place, size in zip(places, sizes, strict=True) for level in range(1, size)]
    ).astype(np.float64)


@dataclass(frozen=True)
class Patients:
    """Sampled patients: record indices and whether the outcome came, both (m,)."""

    records: IntArray
    outcomes: IntArray


class Ward:
    """Where untreated patients come from.

    Parameters
    ----------
    scenario : Scenario
        Who comes, and what becomes of them.
    outcome : sequence of str
        What is to be foreseen: any of these transient flags, or death.

    Attributes
    ----------
    prior : array, (n_records,)
        The probability of every record.
    """

    def __init__(self, scenario: Scenario, outcome: Sequence[str]) -> None:
        self.scenario = scenario
        self.outcome = tuple(outcome)
        self.prior = prior(scenario)
        self._response = ResponseModel(scenario)
        self._sampler = PatientSampler(self.prior)

    def draw(self, count: int, rng: np.random.Generator) -> Patients:
        """Fresh patients, untreated."""
        records = self._sampler.records(rng.random(count))
        became = self._response.sample(records, np.zeros(count, dtype=np.intp), rng)
        places = [self.scenario.outcomes.index(name) for name in self.outcome]
        came: IntArray = np.asarray(became[:, places].any(axis=1), dtype=np.intp)
        return Patients(records, came)

    @cached_property
    def chance(self) -> FloatArray:
        """P(outcome | record), exactly, (n_records,): 1 - P(none of its flags is left, and no death where it counts).

        The flags are independent and hazards add, so each flag that may be there multiplies the chance of survival.
        """
        response, death = self._response, self.scenario.death
        severity, acute, space = response.severity, response.acute, self.scenario.space
        counts = DEATH in self.outcome
        none = np.exp(-severity * np.where(acute, death.baseline, 1.0)) if counts else np.ones((1,) * len(space.shape))
        for place, flag in enumerate(self.scenario.transient):
            left = space.along(flag, response.presence[0, place])
            if flag in self.outcome:
                none = none * (1 - left)
            elif counts and death.hazard.get(flag, 0) > 0:
                none = none * (1 + left * np.where(acute, np.expm1(-severity * death.hazard.get(flag, 0.0)), 0.0))
        return np.broadcast_to(1 - none, space.shape).ravel()

    def prepare(self) -> None:
        """Compute what threads will share."""
        _ = self.chance

    def chance_given_record(self, split: Split) -> FloatArray:
        """The same as (public parts, private values): what no classifier can improve on if it knows the record."""
        return split.by_parts(self.chance)

    def chance_given_report(self, split: Split, channel: KAry) -> FloatArray:
        """P(outcome | public part, report), exactly, (public parts, k); 0 where nobody comes: the limit for reports."""
        weight = split.by_parts(self.prior)
        whole = weight @ channel.matrix
        with_outcome = (weight * split.by_parts(self.chance)) @ channel.matrix
        return np.divide(with_outcome, whole, out=np.zeros_like(whole), where=whole > 0)

"""The records of a course of treatment: those of a scenario, and one more for patients who are no longer treated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from envs.records import RecordSpace
from policies.arrays import FloatArray, IntArray
from policies.problem import Records

ABSORBED = "no longer treated: recovered or dead"


@dataclass(frozen=True)
class CourseRecords:
    """The records of a scenario, then one for a patient who is no longer treated, of each public class.

    Parameters
    ----------
    space : RecordSpace
        The records.
    public : tuple of str
        Features that are public and never change.
    """

    space: RecordSpace
    public: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The features of a record."""
        return self.space.names

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each public feature has."""
        return tuple(self.space.shape[self.space.axis(name)] for name in self.public)

    def describe(self, record: int) -> str:
        """One record in words."""
        if record < self.space.size:
            return self.space.describe(record)
        if not self.public:
            return ABSORBED
        levels = np.unravel_index(record - self.space.size, self.shape)
        known = [f"{name} {self.space.groups(name)[1][level]}" for name, level in zip(self.public, levels, strict=True)]
        return ", ".join([ABSORBED, *known])

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        """The level of each record.

        Of who is no longer treated, which nobody is on the first day, the first level, but for what is public.
        """
        codes, labels = self.space.groups(feature)
        absorbed = np.zeros(math.prod(self.shape), dtype=codes.dtype)
        if feature in self.public:
            absorbed[:] = np.indices(self.shape)[self.public.index(feature)].ravel()
        return np.concatenate([codes, absorbed]), labels

    def classes(self) -> IntArray:
        """The public class of each record, numbered in the order of the levels of the public features."""
        levels = [self.groups(name)[0] for name in self.public]
        found: IntArray = np.ravel_multi_index(levels, self.shape)
        return found


@dataclass(frozen=True, eq=False)
class FirstRecords:
    """The records that patients have on the first day, where several share a state of the process.

    Attributes
    ----------
    initial : array, (n_records,)
        Their distribution.
    records : Records
        Their words and groups.
    state : array of int, (n_records,)
        The state of each.
    """

    initial: FloatArray
    records: Records
    state: IntArray

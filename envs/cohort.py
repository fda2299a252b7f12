"""The cohort: the exact probability of every record, and patients drawn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from envs.records import IntArray, Level, RecordSpace
from envs.scenario import DEATH, Scenario

FloatArray = NDArray[np.float64]
# A level or a list of levels for each feature that is named.
Where: TypeAlias = Mapping[str, Level | Sequence[Level]]
# 2^18 intervals of four bytes stay in a processor's cache, and settle 98 % of the covid cohort's patients.
MOST_GUIDE_BITS = 18


def matches(space: RecordSpace, when: Mapping[str, tuple[Level, ...]]) -> NDArray[np.bool_]:
    """Which records meet a condition, as an array that broadcasts over the grid of records."""
    mask = np.ones((1,) * len(space.shape), dtype=bool)
    for name, levels in when.items():
        among = [level in levels for level in space.feature(name).levels]
        mask = mask & (space.along(name, among) > 0)
    return mask


def admission_probability(scenario: Scenario, target: str) -> FloatArray:
    """P(flag present) at admission (or of death untreated), given the features that its rules read.

    Returns an array that broadcasts over the grid of records: of length 1 along every feature that does not matter.
    ValueError if the rules leave [0, 1].
    """
    space = scenario.space
    table = np.zeros((1,) * len(space.shape))
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        for rule in scenario.rules:
            if target in rule.targets:
                new = changed(table, *rule.changes[target]) if target in rule.changes else table
                if rule.per and target in rule.flags:
                    feature, unit = rule.per
                    new = new * space.along(feature, scenario.means[feature]) / unit
                table = np.where(matches(space, rule.when), new, table)
    if not (table.min() >= 0 and table.max() <= 1):  # so that NaN is refused too
        value = float(table.min() if table.min() < 0 else table.max())
        raise ValueError(f"the rules make the probability of {target} {value:g}: it must stay in [0, 1]")
    return table


def cancelled_risks(scenario: Scenario) -> tuple[str, ...]:
    """The features whose relative risks of death cancel, because the rules for death differ by them.

    In each group that these rules tell apart, the hazard is scaled so that the untreated die as the rules say
    (`ResponseModel.severity`): a factor that is the same for all of a group is divided out again.
    """
    differs = admission_probability(scenario, DEATH).shape
    return tuple(
        name
        for name, factors in scenario.death.relative_risk.items()
        if differs[scenario.space.axis(name)] > 1 and len(set(factors)) > 1
    )


def changed(table: FloatArray, operation: str, number: float) -> FloatArray:
    """What one step of a rule makes of a table."""
    return {"set": table * 0 + number, "add": table + number, "multiply": table * number}[operation]


def level_shares(scenario: Scenario, feature: str) -> FloatArray:
    """P(level) of a feature that is no flag, given the features that its rules read; broadcasts over the grid."""
    space = scenario.space
    table = space.along(feature, scenario.shares[feature])
    for rule in scenario.rules:
        if feature in rule.shares:
            table = np.where(matches(space, rule.when), space.along(feature, rule.shares[feature]), table)
    return table


def levels_where(space: RecordSpace, where: Where) -> dict[str, tuple[Level, ...]]:
    """The levels that each feature may have; ValueError for features and levels that do not exist."""
    if not isinstance(where, Mapping):
        raise ValueError(f"where must map features to levels, got where={where!r}.")
    listed = {name: tuple(some) if isinstance(some, list | tuple) else (some,) for name, some in where.items()}
    for name, levels in listed.items():
        for level in levels:
            space.feature(name).code(level)
    return listed


def prior(scenario: Scenario, where: Where | None = None) -> FloatArray:
    """The probability of every record, (n_records,), in the cohort, or among those of it who meet a condition.

    A product of small conditional factors. ValueError for features and levels that do not exist, and for a condition
    that nobody meets.
    """
    space = scenario.space
    grid = np.ones((1,) * len(space.shape))
    for feature in space.features:
        if feature.name in scenario.shares:
            factor = level_shares(scenario, feature.name)
        else:
            present = admission_probability(scenario, feature.name)
            factor = np.where(space.along(feature.name, [0, 1]) > 0, present, 1 - present)
        grid = grid * factor
    if where:
        grid = grid * matches(space, levels_where(space, where))
        if not grid.any():
            raise ValueError(f"where must be met by somebody, got where={dict(where)!r}.")
        grid /= grid.sum()
    return grid.ravel()


class PatientSampler(NamedTuple):
    """Draws records from a prior by inverting its cumulative sum, with one uniform number per patient.

    A guide table (Chen & Asau 1974) says between which two records the answer lies for each of many equal intervals of
    the uniform number; most intervals leave one or two records, and only for the others is the whole sum searched.
    The records are those that a search of the cumulative sum finds.

    Attributes
    ----------
    cumulative : array, (n_records,)
        The sums of the prior; records of probability 0 never come.
    guide : array of int32
        The first record for each of equally many intervals, and for the end of the last one.
    last : int
        The last record that comes.
    """

    cumulative: FloatArray
    guide: NDArray[np.int32]
    last: int

    @classmethod
    def of(cls, prior: FloatArray) -> PatientSampler:
        """From the probability of every record, (n_records,), up to a factor."""
        cumulative = np.cumsum(prior)
        # A power of two, so that multiplying by it is exact.
        n_intervals = 2 ** min(len(prior).bit_length(), MOST_GUIDE_BITS)
        edges = np.arange(n_intervals + 1) / n_intervals * cumulative[-1]
        guide = np.searchsorted(cumulative, edges, side="right").astype(np.int32)
        return cls(cumulative, guide, int(np.flatnonzero(prior)[-1]))

    def records(self, uniforms: FloatArray) -> IntArray:
        """The records of the patients, (m,), for numbers that are uniform in [0, 1), (m,)."""
        interval = (uniforms * (len(self.guide) - 1)).astype(np.intp)
        records: IntArray = self.guide.take(interval).astype(np.intp)
        width = self.guide.take(interval + 1) - records
        draws = uniforms * self.cumulative[-1]
        records += (width > 0) & (self.cumulative.take(records, mode="clip") <= draws)
        unclear = (width > 1).nonzero()
        records[unclear] = np.searchsorted(self.cumulative, draws[unclear], side="right")
        # A draw of almost 1 may round up to the whole sum.
        return np.minimum(records, self.last, out=records)


def sample_patients(prior: FloatArray, n_patients: int, rng: np.random.Generator) -> IntArray:
    """Draw record indices, (n_patients,), with one uniform number per patient; records of probability 0 never come."""
    return PatientSampler.of(prior).records(rng.random(n_patients))

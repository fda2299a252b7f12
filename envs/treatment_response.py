"""The response model: what a treatment does to a patient, exactly and by simulation, in one decision or in a day.

For record x and action a: each transient flag s is present afterwards with probability q_s(x, a), independently; then
death comes with probability 1 - exp(-m(x) R(x) (b(x) + sum_s kappa_s(x) y_s)), y the flags left. As hazards add and
the flags are independent, P(death) is in closed form: 1 - exp(-m R b) prod_s [1 - q_s (1 - exp(-m R kappa_s))].

A day of a longer treatment is this one decision, with the hazard of death spread evenly over the days: flags clear or
appear under the treatment, then death comes or not. In the night after it, a flag that is absent appears with
`Scenario.onset` times its probability at admission, given the record of that evening. The patient's stay ends with
death, with full recovery (no flag is left in the evening) or with the last day; nothing here knows which day it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_root

from envs.cohort import FloatArray, admission_probability, matches, prior
from envs.records import IntArray
from envs.scenario import DEATH, Scenario, Treatment


class ResponseModel:
    """Outcome probabilities of a scenario for each record and treatment.

    Parameters
    ----------
    scenario : Scenario
        Its numbers.

    Attributes
    ----------
    presence : array, (n_actions, n_transient, 2)
        P(flag present afterwards | absent before, present before).
    acute : array
        The records for which outcomes are dangerous, broadcasting over the grid of records.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.presence = _presence(scenario)
        self._space = scenario.space
        self.acute = matches(self._space, scenario.death.acute)

    @cached_property
    def severity(self) -> FloatArray:
        """m R: the hazard that multiplies everything else, broadcasting over the grid of records.

        In each group that the rules for death tell apart, m solves: mean P(death | no treatment) = what the rules say.
        """
        target = admission_probability(self.scenario, DEATH)
        axes = tuple(axis for axis, length in enumerate(target.shape) if length == 1)
        weight = prior(self.scenario).reshape(self._space.shape)
        mass = weight.sum(axis=axes, keepdims=True)
        risk = self._relative_risk()

        def excess(scale: FloatArray, group: IntArray) -> FloatArray:
            """Mean death in some groups at their scales, less the target."""
            full = np.zeros(target.size)
            full[group] = scale
            dead = 1 - self._survival(full.reshape(target.shape) * risk, self.acute, self._left(0))
            mean = (weight * dead).sum(axis=axes, keepdims=True) / np.where(mass > 0, mass, 1)
            difference: FloatArray = (mean - target).ravel()[group]
            return difference

        group = np.flatnonzero((target.ravel() > 0) & (mass.ravel() > 0))
        solved = np.zeros(target.size)
        if group.size:
            found = find_root(excess, self._bracket(target.ravel()[group], risk), args=(group,))
            if not found.success.all():
                raise ValueError("no severity gives the probability of death that the rules state: is the baseline 0?")
            solved[group] = found.x
        severity: FloatArray = solved.reshape(target.shape) * risk
        return severity

    def with_treatments(self, treatments: Mapping[str, Treatment]) -> ResponseModel:
        """The same patients under other treatments; what happens to the untreated, and so the severity, stays."""
        other = ResponseModel(replace(self.scenario, treatments=treatments))
        other.severity = self.severity
        return other

    def spread(self, days: int) -> ResponseModel:
        """The same patients on one of several days: each day has an equal part of the hazard of death."""
        other = ResponseModel(self.scenario)
        other.severity = self.severity / days
        return other

    @cached_property
    def death(self) -> FloatArray:
        """P(death | x, a), (n_records, n_actions), column-major."""
        table = np.empty((self._space.size, len(self.scenario.actions)), order="F")
        for action in range(table.shape[1]):
            survival = self._survival(self.severity, self.acute, self._left(action))
            table[:, action] = 1 - np.broadcast_to(survival, self._space.shape).ravel()
        return table

    @cached_property
    def admissible(self) -> NDArray[np.bool_] | None:
        """Which treatments each record may get, (n_records, n_actions); None where everybody may get all."""
        treatments = self.scenario.treatments.values()
        if not any(treatment.contraindicated for treatment in treatments):
            return None
        table = np.ones((self._space.size, len(treatments)), dtype=np.bool_, order="F")
        for action, treatment in enumerate(treatments):
            for condition in treatment.contraindicated:
                table[:, action] &= ~np.broadcast_to(matches(self._space, condition), self._space.shape).ravel()
        return table

    def probability(self, outcome: str) -> FloatArray:
        """P(outcome | x, a), (n_records, n_actions); ValueError for an unknown outcome."""
        if outcome == DEATH:
            return self.death
        if outcome not in self.scenario.transient:
            raise ValueError(f"unknown outcome {outcome!r}; known: {', '.join(self.scenario.outcomes)}.")
        codes, _ = self._space.groups(outcome)
        table = np.empty((self._space.size, len(self.scenario.actions)), order="F")
        for column, chance in zip(table.T, self.presence[:, self.scenario.transient.index(outcome)], strict=True):
            np.take(chance, codes, out=column)
        return table

    def expected_count(self, outcomes: Sequence[str]) -> FloatArray:
        """Expected number of the transient flags `outcomes` that are present afterwards, (n_records, n_actions)."""
        count = np.zeros((len(self.scenario.actions), *(1,) * len(self._space.shape)))
        for name in outcomes:
            position = self.scenario.transient.index(name)
            count = count + np.stack([self._space.along(name, row) for row in self.presence[:, position]])
        return np.broadcast_to(count, (len(count), *self._space.shape)).reshape(len(count), -1).T

    def outcome_probabilities(self, records: ArrayLike) -> FloatArray:
        """P(outcome | x, a) of some records only: (m,) -> (m, n_actions, n_outcomes), death last."""
        index = np.asarray(records, dtype=np.intp)
        before, severity, acute = self._of(index)
        chance = self.presence[:, np.arange(before.shape[1]), before].transpose(1, 0, 2)
        alive = self._survival(severity[:, None], acute[:, None], list(np.moveaxis(chance, 2, 0)))
        dead = np.broadcast_to(1 - alive, chance.shape[:2])
        return np.concatenate([chance, dead[:, :, None]], axis=2)

    def _of(self, index: IntArray) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
        """The transient flags before treatment, m R, and whether acute, of some records."""
        axes = [self._space.axis(name) for name in self.scenario.transient]
        codes = self._space.codes(index)
        place = tuple(codes.T)
        # Looked up in views: the grid of all records is not made.
        severity = np.broadcast_to(self.severity, self._space.shape)[place]
        acute = np.broadcast_to(self.acute, self._space.shape)[place]
        return codes[:, axes], severity, acute

    def sample(self, records: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw outcomes of treating records with actions: (m,), (m,) -> (m, n_outcomes), death last."""
        index, action = np.asarray(records, dtype=np.intp), np.asarray(actions, dtype=np.intp)
        before, severity, acute = self._of(index)
        chance = self.presence[action[:, None], np.arange(before.shape[1]), before]
        present = rng.random(chance.shape) < chance
        baseline, kappa = self._hazards()
        hazard = severity * np.where(acute, baseline + present @ kappa, 1.0)
        dies = rng.random(len(index)) < -np.expm1(-hazard)
        return np.column_stack([present, dies])

    def _hazards(self) -> tuple[float, FloatArray]:
        death = self.scenario.death
        return death.baseline, np.array([death.hazard.get(name, 0.0) for name in self.scenario.transient])

    def _left(self, action: int) -> list[FloatArray]:
        """P(flag present afterwards | x, action) for each transient flag, broadcasting over the grid."""
        rows = zip(self.scenario.transient, self.presence[action], strict=True)
        return [self._space.along(name, row) for name, row in rows]

    def _survival(self, severity: FloatArray, acute: NDArray[np.bool_], left: Sequence[FloatArray]) -> FloatArray:
        """P(survival) for given m R and P(flag present afterwards); all broadcast together."""
        baseline, kappa = self._hazards()
        survival = np.exp(-severity * np.where(acute, baseline, 1.0))
        for hazard, present in zip(kappa, left, strict=True):
            if hazard > 0:
                # Only the acute records are in danger from what is left.
                danger = np.where(acute, -np.expm1(-severity * hazard), 0.0)
                survival = survival * (1 - present * danger)
        return survival

    def _relative_risk(self) -> FloatArray:
        risk = np.ones((1,) * len(self._space.shape))
        for name, factors in self.scenario.death.relative_risk.items():
            risk = risk * self._space.along(name, factors)
        return risk

    def _bracket(self, target: FloatArray, risk: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scales that give too little and too much death whatever the records: the least and the largest hazard."""
        baseline, kappa = self._hazards()
        hazard = -np.log1p(-target)
        low = hazard / (risk.max() * max(1.0, baseline + kappa.sum()))
        high = hazard / (risk.min() * max(min(1.0, baseline), 1e-12))
        return low / 2, high * 2  # where all records are alike, both are the root itself, but for rounding


def _presence(scenario: Scenario) -> FloatArray:
    """P(present afterwards | before): what is present stays unless it clears, what is absent may appear."""
    table = np.empty((len(scenario.actions), len(scenario.transient), 2))
    for action, treatment in enumerate(scenario.treatments.values()):
        for position, name in enumerate(scenario.transient):
            stays = (1 - scenario.natural_clearing[name]) * (1 - treatment.clears.get(name, 0.0))
            table[action, position] = treatment.side_effects.get(name, 0.0), stays
    return table


class Course:
    """The numbers of one day and night, over the grid of records.

    Parameters
    ----------
    response : ResponseModel
        What one decision for the whole course does.
    horizon : int
        The number of days, >= 1.

    Attributes
    ----------
    response : ResponseModel
        What one day of treatment does: the hazard of death is that of the whole course over `horizon`.
    onset : list of array
        P(flag appears in a night | absent in the evening), for each transient flag, broadcasting over the grid.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number >= 1.
    """

    def __init__(self, response: ResponseModel, horizon: int) -> None:
        self.horizon = _whole_days(horizon)
        self.scenario = response.scenario
        self.response = response.spread(self.horizon)
        self.onset = [
            self.scenario.onset.get(flag, 0.0) * admission_probability(self.scenario, flag)
            for flag in self.scenario.transient
        ]

    @cached_property
    def hazards(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The day's hazard of death is level + slope * (kappa . flags left): both over the grid, and kappa, (n,)."""
        death, space = self.scenario.death, self.scenario.space
        acute = self.response.acute
        severity = self.response.severity
        level: FloatArray = severity * np.where(acute, death.baseline, 1.0)
        slope: FloatArray = severity * np.where(acute, 1.0, 0.0)
        assert level.ndim == len(space.shape)
        return level, slope, np.array([death.hazard.get(flag, 0.0) for flag in self.scenario.transient])

    @cached_property
    def night_order(self) -> list[int]:
        """The transient flags, each after all those that its onset depends on (rules never go in a circle)."""
        flags = self.scenario.transient
        axes = {flag: self.scenario.space.axis(flag) for flag in flags}
        parents = {
            position: [other for other, name in enumerate(flags) if table.shape[axes[name]] > 1]
            for position, table in enumerate(self.onset)
        }
        return list(TopologicalSorter(parents).static_order())


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole_days(horizon: Any) -> int:
    if not is_whole(horizon) or horizon < 1:
        raise ValueError(f"horizon must be a whole number of days >= 1, got horizon={horizon!r}.")
    return int(horizon)

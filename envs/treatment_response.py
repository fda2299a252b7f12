"""The response model: what a treatment does to a patient, exactly and by simulation, in one decision or in a day.

For record x and action a: each transient flag s is present afterwards with probability q_s(x, a), independently; then
death comes with probability 1 - exp(-m(x) R(x) (b(x) + sum_s kappa_s(x) y_s)), y the flags left. Each event comes
likewise, with its own risks, independently given y. As hazards add and the flags are independent, these probabilities
are in closed form: 1 - exp(-m R b) prod_s [1 - q_s (1 - exp(-m R kappa_s))]. A treatment may multiply m R.

A day of a longer treatment is this one decision, with the hazards of death and events spread evenly over the days:
flags clear or appear under the treatment, then death and events come or not. In the night after it, a flag that is
absent appears with `Scenario.onset` times its probability at admission, given the record of that evening. The
patient's stay ends with death, with full recovery (none of the flags that can clear is left in the evening; without
such flags nobody recovers) or with the last day; nothing here knows which day it is.

What each treatment does to each record are the numbers that a scenario states, its rules applied, its parts combined.
They broadcast over the grid of records, with length 1 along every feature that does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_root

from envs.cohort import FloatArray, admission_probability, changed, matches, prior
from envs.records import IntArray, Level, Lookup, RecordSpace
from envs.scenario import COST, DEATH, HAZARD_RATIO, Scenario


@dataclass(frozen=True)
class Hazard:
    """The hazard of death or of an event under a treatment: level + slope * (kappa . flags left).

    Attributes
    ----------
    level, slope : array
        Broadcasting over the grid of records, as they are before the treatment.
    kappa : array, (n_transient,)
        What each flag that is left adds.
    """

    level: FloatArray
    slope: FloatArray
    kappa: FloatArray

    def spared(self, left: Sequence[FloatArray]) -> FloatArray:
        """P(it does not happen), given P(flag left) of independent flags, all broadcasting together.

        E exp(-level - slope * sum of kappa y) is a product over the flags y.
        """
        chance = np.exp(-self.level)
        for kappa, present in zip(self.kappa, left, strict=True):
            if kappa > 0:
                chance = chance * (1 - present * -np.expm1(-self.slope * kappa))
        return chance


def own_number(scenario: Scenario, action: str, target: str, stated: float | None = None) -> FloatArray:
    """A number of a treatment under its own rules, without those of its parts.

    Parameters
    ----------
    scenario : Scenario
        States it.
    action : str
        The treatment.
    target : str
        "clears.FLAG", "side_effects.FLAG", "hazard_ratio.EVENT" or "cost".
    stated : float, optional
        What the rules start from; by default what the treatment states, or no effect.
    """
    treatment, space = scenario.treatments[action], scenario.space
    if stated is None:
        part, _, name = target.partition(".")
        nothing = 1.0 if part == HAZARD_RATIO else 0.0
        stated = treatment.cost if target == COST else getattr(treatment, part).get(name, nothing)
    table = np.full((1,) * len(space.shape), stated)
    for rule in treatment.rules:
        if target in rule.changes:
            table = np.where(matches(space, rule.when), changed(table, *rule.changes[target]), table)
    return table


def effect(scenario: Scenario, action: str, target: str) -> FloatArray:
    """P(clears) or P(side effect), of a treatment with its parts: something happens unless each fails to do it."""
    own = own_number(scenario, action, target)
    parts = scenario.treatments[action].combines
    if not parts:
        return own
    fails = 1.0 - own
    for part in parts:
        fails = fails * (1 - effect(scenario, part, target))
    return np.asarray(1 - fails)


def hazard_ratio(scenario: Scenario, action: str, event: str) -> FloatArray:
    """What a treatment with its parts multiplies the hazard of an event, or of death, by."""
    ratio = own_number(scenario, action, f"{HAZARD_RATIO}.{event}")
    for part in scenario.treatments[action].combines:
        ratio = ratio * hazard_ratio(scenario, part, event)
    return ratio


def treatment_costs(scenario: Scenario, costs: Mapping[str, float] | None = None) -> list[FloatArray]:
    """The cost of each action under its rules, from the scenario's costs, or from others: 0 where none is named."""
    start = {name: treatment.cost for name, treatment in scenario.treatments.items()} if costs is None else costs
    return [own_number(scenario, action, COST, start.get(action, 0.0)) for action in scenario.actions]


def contraindications(scenario: Scenario, action: str) -> Iterator[Mapping[str, tuple[Level, ...]]]:
    """The conditions under which a treatment must not be given: its own, then those of its parts."""
    treatment = scenario.treatments[action]
    yield from treatment.contraindicated
    for part in treatment.combines:
        yield from contraindications(scenario, part)


def forbidden(scenario: Scenario, action: str) -> NDArray[np.bool_]:
    """Who must not get a treatment."""
    mask = np.zeros((1,) * len(scenario.space.shape), dtype=np.bool_)
    for condition in contraindications(scenario, action):
        mask = mask | matches(scenario.space, condition)
    return mask


def contraindication_of(scenario: Scenario, action: str, codes: Sequence[int]) -> str:
    """What makes a treatment contraindicated for a patient with these level codes, in words."""
    space = scenario.space
    has = {feature.name: feature.levels[code] for feature, code in zip(space.features, codes, strict=True)}
    met = (
        condition
        for condition in contraindications(scenario, action)
        if all(has[name] in levels for name, levels in condition.items())
    )
    return ", ".join(space.feature(name).in_words(str(has[name])) for name in next(met, {}))


def first_record(space: RecordSpace, found: NDArray[np.bool_]) -> tuple[tuple[int, ...], str]:
    """The first place of a grid where something was found, and the records there in words: only what matters."""
    place = tuple(int(code) for code in np.unravel_index(int(found.argmax()), found.shape))
    named = [
        feature.in_words(str(feature.levels[code]))
        for feature, code, length in zip(space.features, place, found.shape, strict=True)
        if length > 1
    ]
    return place, ", ".join(named) or "everybody"


class ResponseModel:
    """Outcome probabilities of a scenario for each record and treatment.

    Parameters
    ----------
    scenario : Scenario
        Its numbers.

    Attributes
    ----------
    presence : list of lists of array
        P(flag present afterwards | x, a), for each action and transient flag. They broadcast over the grid of records,
        as all arrays here do that are no tables of records: with length 1 along every feature that does not matter.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.presence: list[list[FloatArray]] = []
        for action in scenario.actions:
            row = []
            for flag in scenario.transient:
                # What is present stays unless it clears, what is absent may appear.
                stays = (1 - scenario.natural_clearing[flag]) * (1 - effect(scenario, action, f"clears.{flag}"))
                there = scenario.space.along(flag, [0, 1]) > 0
                row.append(np.where(there, stays, effect(scenario, action, f"side_effects.{flag}")))
            self.presence.append(row)
        self._space, self._actions = scenario.space, range(len(scenario.actions))
        self._days = 1

    @cached_property
    def severity(self) -> FloatArray:
        """m R: the hazard that multiplies everything else, broadcasting over the grid of records.

        In each group that the rules for death tell apart, m solves: mean P(death | no treatment) = what the rules say.
        No treatment is the first action, whatever it does.
        """
        target = admission_probability(self.scenario, DEATH)
        axes = tuple(axis for axis, length in enumerate(target.shape) if length == 1)
        weight = prior(self.scenario).reshape(self._space.shape)
        mass = weight.sum(axis=axes, keepdims=True)
        risk = self._relative_risks[DEATH] * hazard_ratio(self.scenario, self.scenario.actions[0], DEATH)

        def excess(scale: FloatArray, group: IntArray) -> FloatArray:
            """Mean death in some groups at their scales, less the target."""
            full = np.zeros(target.size)
            full[group] = scale
            dead = 1 - self._scaled(DEATH, full.reshape(target.shape) * risk).spared(self.presence[0])
            mean = (weight * dead).sum(axis=axes, keepdims=True) / np.where(mass > 0, mass, 1)
            difference: FloatArray = (mean - target).ravel()[group]
            return difference

        group = np.flatnonzero((target.ravel() > 0) & (mass.ravel() > 0))
        solved = np.zeros(target.size)
        if group.size:
            # Scales that give too little and too much death whatever the records: the least and the largest hazard.
            baseline, kappa = self.scenario.death.baseline, self._scaled(DEATH, risk).kappa
            wanted = -np.log1p(-target.ravel()[group])
            low = wanted / (risk.max() * max(1.0, baseline + kappa.sum()))
            high = wanted / (risk.min() * max(min(1.0, baseline), 1e-12))
            # Where all records are alike, both are the root itself, but for rounding.
            found = find_root(excess, (low / 2, high * 2), args=(group,))
            if not found.success.all():
                raise ValueError("no severity gives the probability of death that the rules state: is the baseline 0?")
            solved[group] = found.x
        severity: FloatArray = solved.reshape(target.shape) * self._relative_risks[DEATH]
        return severity

    def with_scenario(self, scenario: Scenario) -> ResponseModel:
        """The same patients under other treatments or events; how severely ill they are stays (`severity`)."""
        other = ResponseModel(scenario)
        other.severity, other._days = self.severity, self._days
        return other

    def spread(self, days: int) -> ResponseModel:
        """The same patients on one of several days: each day has an equal part of the hazards of death and events."""
        other = ResponseModel(self.scenario)
        other.severity, other._days = self.severity / days, self._days * days
        return other

    def hazard(self, outcome: str, action: int) -> Hazard:
        """The hazard of an event, or of death, under a treatment."""
        ratio = hazard_ratio(self.scenario, self.scenario.actions[action], outcome)
        if outcome == DEATH:
            return self._scaled(DEATH, self.severity * ratio)
        return self._scaled(outcome, self._relative_risks[outcome] / self._days * ratio)

    def chance(self, outcome: str, action: int) -> FloatArray:
        """P(outcome | x, a) for one action, broadcasting over the grid; ValueError for an unknown outcome."""
        if outcome not in self.scenario.outcomes:
            raise ValueError(f"unknown outcome {outcome!r}; known: {', '.join(self.scenario.outcomes)}.")
        if outcome in self.scenario.transient:
            return self.presence[action][self.scenario.transient.index(outcome)]
        return 1 - self.hazard(outcome, action).spared(self.presence[action])

    @cached_property
    def death(self) -> FloatArray:
        """P(death | x, a), (n_records, n_actions), column-major."""
        return self._table([self.chance(DEATH, action) for action in self._actions])

    def probability(self, *outcomes: str) -> FloatArray:
        """P(outcome | x, a), (n_records, n_actions); of several, how many are expected. ValueError for an unknown one.

        Where none is named, none is expected.
        """
        if outcomes == (DEATH,):
            return self.death
        nothing = np.zeros((1,) * len(self._space.shape))
        return self._table([sum((self.chance(name, a) for name in outcomes), start=nothing) for a in self._actions])

    @cached_property
    def admissible(self) -> NDArray[np.bool_] | None:
        """Which treatments each record may get, (n_records, n_actions), column-major; None where all may get all."""
        refused = [forbidden(self.scenario, action) for action in self.scenario.actions]
        return ~self._table(refused) if any(mask.any() for mask in refused) else None

    def outcome_probabilities(self, records: ArrayLike | Lookup) -> FloatArray:
        """P(outcome | x, a) of some records only: (m,) -> (m, n_actions, n_outcomes), death last."""
        at = records if isinstance(records, Lookup) else Lookup(self._space.codes(records))
        table = np.empty((len(at.codes), len(self._actions), len(self.scenario.outcomes)))
        for action in self._actions:
            left = [at.of(grid) for grid in self.presence[action]]
            hazards = [self.hazard(outcome, action) for outcome in (*self.scenario.events, DEATH)]
            # Looked up before they are multiplied: the grid of all records is not made.
            there = [Hazard(at.of(each.level), at.of(each.slope), each.kappa) for each in hazards]
            table[:, action] = np.column_stack([*left, *(1 - each.spared(left) for each in there)])
        return table

    def sample(self, records: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw outcomes of treating records with actions: (m,), (m,) -> (m, n_outcomes), death last."""
        index, action = np.asarray(records, dtype=np.intp), np.asarray(actions, dtype=np.intp)
        outcomes = np.empty((len(index), len(self.scenario.outcomes)), dtype=np.bool_)
        n_flags = len(self.scenario.transient)
        draws = [rng.random((len(index), n_flags)), rng.random((len(index), outcomes.shape[1] - n_flags))]
        for each in np.unique(action):
            rows = np.flatnonzero(action == each)
            at = Lookup(self._space.codes(index[rows]))
            chances = np.column_stack([np.empty((len(rows), 0)), *(at.of(grid) for grid in self.presence[each])])
            present = draws[0][rows] < chances
            outcomes[rows, :n_flags] = present
            for place, outcome in enumerate((*self.scenario.events, DEATH)):
                hazard = self.hazard(outcome, int(each))
                total = at.of(hazard.level) + at.of(hazard.slope) * (present @ hazard.kappa)
                outcomes[rows, n_flags + place] = draws[1][rows, place] < -np.expm1(-total)
        return outcomes

    def _table(self, grids: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Grids as the columns of a table over records, (n_records, n_grids), column-major."""
        table = np.empty((self._space.size, len(grids)), dtype=grids[0].dtype, order="F")
        for column, grid in zip(table.T, grids, strict=True):
            column.reshape(self._space.shape)[...] = grid
        return table

    def _scaled(self, outcome: str, scale: FloatArray) -> Hazard:
        """The hazard of death or of an event: scale * (baseline + kappa . flags left) for the acute.

        Of those who are not acute, it is scale * the same baseline in an event, and the scale alone in death.
        """
        model = self.scenario.hazards[outcome]
        acute = matches(self._space, model.acute)
        level = scale * np.where(acute, model.baseline, 1.0 if outcome == DEATH else model.baseline)
        kappa = np.array([model.hazard.get(name, 0.0) for name in self.scenario.transient])
        return Hazard(level, scale * np.where(acute, 1.0, 0.0), kappa)

    @cached_property
    def _relative_risks(self) -> dict[str, FloatArray]:
        """R of each event and of death."""
        risks: dict[str, FloatArray] = {}
        for outcome, model in self.scenario.hazards.items():
            risks[outcome] = np.ones((1,) * len(self._space.shape))
            for name, factors in model.relative_risk.items():
                risks[outcome] = risks[outcome] * self._space.along(name, factors)
        return risks


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
        What one day of treatment does: the hazards of death and events are those of the whole course over `horizon`.
    onset : list of array
        P(flag appears in a night | absent in the evening), for each transient flag, broadcasting over the grid.

    Raises
    ------
    ValueError
        For a horizon that is not a whole number >= 1.
    """

    def __init__(self, response: ResponseModel, horizon: int) -> None:
        if not is_whole(horizon) or horizon < 1:
            raise ValueError(f"horizon must be a whole number of days >= 1, got horizon={horizon!r}.")
        self.horizon = int(horizon)
        self.scenario = response.scenario
        self.response = response.spread(self.horizon)
        self.onset = [
            self.scenario.onset.get(flag, 0.0) * admission_probability(self.scenario, flag)
            for flag in self.scenario.transient
        ]

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

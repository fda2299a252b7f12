"""The numbers of a scenario drawn anew: from the interval that each states, or around it by a default spread.

A number moves along a scale on which its uncertainty is symmetric: a probability by its log-odds, a ratio, a cost or a
weight by its logarithm, what a rule adds as it is. A 95 % interval need not have the number in its middle: below the
number a normal variable is stretched so that its 2.5 % quantile is the lower end, above it so that its 97.5 % quantile
is the upper end (a two-piece normal distribution; the median stays the number).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from envs.scenario import COST, DEATH, EFFECTS, HAZARD_RATIO, Scenario, Treatment
from envs.treatment_response import own_number
from envs.utility import Utility
from policysim.study.basis import numbers_by_part
from policysim.study.declared import ScenarioStudy

# Of numbers of treatments without an interval: the standard deviation of the logarithm by which odds, ratios and costs
# are multiplied.
SPREAD = 0.3
# Between the number and an end of its interval are so many standard deviations.
Z_OF_END = float(norm.ppf(0.975))
# So often a number is drawn again that rules would take out of [0, 1].
ATTEMPTS = 1000


@dataclass(frozen=True)
class Scale:
    """A scale on which numbers move, and the way back."""

    of: Callable[[float], float]
    back: Callable[[float], float]


ODDS = Scale(lambda p: float(logit(p)), lambda at: float(expit(at)))
LOGARITHM = Scale(lambda x: math.log(x) if x > 0 else -math.inf, lambda at: math.exp(min(at, 700.0)))
PLAIN = Scale(float, float)
Interval = tuple[float, float]


def moved(value: float, z: float, scale: Scale, interval: Interval | None) -> float:
    """The number that a standard normal z makes of `value`.

    Without an interval it moves by SPREAD z on its scale; what has no place there (a probability of 0 or 1, a ratio or
    a cost of 0) stays. An end of the interval that has no place there counts as far as the other end.

    Examples
    --------
    >>> [round(moved(0.5, z, ODDS, (0.4, 0.7)), 3) for z in (-Z_OF_END, 0.0, Z_OF_END)]
    [0.4, 0.5, 0.7]
    """
    at = scale.of(value)
    if not math.isfinite(at):
        return value
    if interval is None:
        return scale.back(at + SPREAD * z)
    below, above = at - scale.of(interval[0]), scale.of(interval[1]) - at
    far = [below if math.isfinite(below) else above, above if math.isfinite(above) else below]
    width = far[z > 0] / Z_OF_END
    return scale.back(at + width * z) if math.isfinite(width) else value


class Redraws:
    """Draws of all that is uncertain in a study's scenario: numbers of treatments, and others that state an interval.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility. Costs and weights that the study states itself have no interval; its costs move by the
        default spread, and its weights stay.
    """

    def __init__(self, study: ScenarioStudy) -> None:
        self.scenario, self.utility = study.scenario, study.utility
        self._intervals = study.scenario.intervals
        elsewhere = [key.split(".") for key in self._intervals if not key.startswith("treatments.")]
        self._others = [path for path in elsewhere if path[0] != "weights"]
        stated = {
            name: weight for name, weight in self.scenario.weights.items() if f"weights.{name}" in self._intervals
        }
        self._weights = [name for name, weight in stated.items() if self.utility.weights.get(name) == weight]

    @property
    def rescales(self) -> bool:
        """Whether a draw may change how many of the untreated die, or of what (`ResponseModel.severity`)."""
        return any(path[0] in (DEATH, "natural_clearing") for path in self._others)

    @property
    def n_default(self) -> int:
        """How many numbers of treatments are drawn by the default spread."""
        return sum(key not in self._intervals for key, value in treatment_numbers(self.scenario) if value)

    @property
    def n_stated(self) -> int:
        """How many numbers are drawn from intervals that the scenario states."""
        treated = sum(key in self._intervals for key, _ in treatment_numbers(self.scenario))
        return treated + len(self._others) + len(self._weights)

    @property
    def n_left(self) -> int:
        """How many of the scenario's medical numbers stay as stated: those of its patients and their disease."""
        medical = sum(count for count, _ in numbers_by_part(self.scenario).values())
        return max(0, medical - self.n_default - self.n_stated + len(self._weights))

    def draw(self, rng: np.random.Generator) -> tuple[Scenario, Utility]:
        """One draw; what is no treatment's comes last, so that an interval there leaves the others as they were."""
        treatments = {name: self._treatment(name, rng) for name in self.scenario.treatments}
        costs = {name: self._cost(name, cost, rng.normal()) for name, cost in self.utility.costs.items()}
        scenario = replace(self.scenario, treatments=treatments)
        for path in self._others:
            scenario = _with_number(scenario, path, rng.normal(), self._intervals[".".join(path)])
        weights = dict(self.utility.weights)
        for name in self._weights:
            weights[name] = moved(weights[name], rng.normal(), LOGARITHM, self._intervals[f"weights.{name}"])
        return scenario, Utility(weights, costs)

    def _treatment(self, name: str, rng: np.random.Generator) -> Treatment:
        treatment = self.scenario.treatments[name]
        stated = [(f"{part}.{key}", part, key) for part in (*EFFECTS, HAZARD_RATIO) for key in getattr(treatment, part)]
        ruled = dict.fromkeys(target for rule in treatment.rules for target in rule.changes)
        parts: dict[str, Any] = {part: dict(getattr(treatment, part)) for part in (*EFFECTS, HAZARD_RATIO)}
        changes: list[dict[str, tuple[str, float]]] = [dict(rule.changes) for rule in treatment.rules]
        for target, part, key in stated:
            number, steps = self._target(name, target, parts[part][key], rng)
            parts[part][key] = number
            _put(changes, target, steps)
        for target in ruled:
            if target not in {known for known, *_ in stated}:
                _put(changes, target, self._target(name, target, None, rng)[1])
        rules = [replace(rule, changes=drawn) for rule, drawn in zip(treatment.rules, changes, strict=True)]
        return replace(treatment, **parts, rules=tuple(rules))

    def _target(
        self, name: str, target: str, stated: float | None, rng: np.random.Generator
    ) -> tuple[float, list[tuple[str, float] | None]]:
        """A number and what each rule does to it, drawn together until no record gets an impossible one.

        After 1,000 draws they stay as stated, which is possible.
        """
        treatment, key = self.scenario.treatments[name], f"treatments.{name}"
        before = [rule.changes.get(target) for rule in treatment.rules]
        for _ in range(ATTEMPTS):
            number = 0.0
            if stated is not None:
                number = moved(stated, rng.normal(), _scale(target), self._intervals.get(f"{key}.{target}"))
            steps: list[tuple[str, float] | None] = []
            for place, change in enumerate(before):
                if change is None:
                    steps.append(None)
                    continue
                operation, value = change
                interval = self._intervals.get(f"{key}.rules.{place}.{operation}.{target}")
                steps.append((operation, _step(operation, target, value, rng.normal(), interval)))
            if not any(steps) or self._possible(name, target, None if stated is None else number, steps):
                return number, steps
        return stated or 0.0, before

    def _possible(
        self, name: str, target: str, stated: float | None, steps: Sequence[tuple[str, float] | None]
    ) -> bool:
        """Whether rules that do this keep a probability in [0, 1], or a ratio above 0."""
        treatment = self.scenario.treatments[name]
        rules = tuple(
            replace(rule, changes={} if step is None else {target: step})
            for rule, step in zip(treatment.rules, steps, strict=True)
        )
        changed = replace(self.scenario, treatments={name: replace(treatment, rules=rules)})
        made = own_number(changed, name, target, stated)
        if target.startswith(HAZARD_RATIO):
            return bool(made.min() > 0)
        return target == COST or bool(made.min() >= 0 and made.max() <= 1)

    def _cost(self, name: str, cost: float, z: float) -> float:
        of_scenario = cost == self.scenario.treatments[name].cost
        return _amount(cost, z, self._intervals.get(f"treatments.{name}.{COST}") if of_scenario else None)


def treatment_numbers(scenario: Scenario) -> Iterator[tuple[str, float]]:
    """Every number that a treatment states, by its dotted key."""
    for name, treatment in scenario.treatments.items():
        yield f"treatments.{name}.{COST}", treatment.cost
        for part in (*EFFECTS, HAZARD_RATIO):
            for target, value in getattr(treatment, part).items():
                yield f"treatments.{name}.{part}.{target}", value
        for place, rule in enumerate(treatment.rules):
            for target, (operation, value) in rule.changes.items():
                yield f"treatments.{name}.rules.{place}.{operation}.{target}", value


def _scale(target: str) -> Scale:
    return ODDS if target.partition(".")[0] in EFFECTS else LOGARITHM


def _step(operation: str, target: str, value: float, z: float, interval: Interval | None) -> float:
    """What a rule states, drawn anew."""
    if operation == "multiply":
        return moved(value, z, LOGARITHM, interval)
    if operation == "add" or target == COST:
        return _amount(value, z, interval)
    return moved(value, z, _scale(target), interval)


def _amount(value: float, z: float, interval: Interval | None) -> float:
    """A cost, or what is added: it keeps its sign, unless its interval holds numbers of both signs."""
    if interval is not None and interval[0] < 0 < interval[1]:
        return moved(value, z, PLAIN, interval)
    if value >= 0:
        return moved(value, z, LOGARITHM, interval)
    turned = None if interval is None else (-interval[1], -interval[0])
    return -moved(-value, -z, LOGARITHM, turned)


def _put(changes: list[dict[str, tuple[str, float]]], target: str, steps: Sequence[tuple[str, float] | None]) -> None:
    for rule, step in zip(changes, steps, strict=True):
        if step is not None:
            rule[target] = step


def _with_number(scenario: Scenario, path: list[str], z: float, interval: Interval) -> Scenario:
    """The scenario with another number at a path such as death.hazard.fever or events.stroke.relative_risk.age.1."""
    if path[0] == "natural_clearing":
        value = moved(scenario.natural_clearing[path[1]], z, ODDS, interval)
        return replace(scenario, natural_clearing={**scenario.natural_clearing, path[1]: value})
    if path[0] == DEATH:
        return replace(scenario, death=_with_hazard(scenario.death, path[1:], z, interval))
    event = _with_hazard(scenario.events[path[1]], path[2:], z, interval)
    return replace(scenario, events={**scenario.events, path[1]: event})


def _with_hazard(model: Any, path: list[str], z: float, interval: Interval) -> Any:
    if len(path) == 1:
        return replace(model, **{path[0]: moved(getattr(model, path[0]), z, LOGARITHM, interval)})
    numbers = dict(getattr(model, path[0]))
    if len(path) == 2:
        numbers[path[1]] = moved(numbers[path[1]], z, LOGARITHM, interval)
    else:
        factors = list(numbers[path[1]])
        factors[int(path[2])] = moved(factors[int(path[2])], z, LOGARITHM, interval)
        numbers[path[1]] = tuple(factors)
    return replace(model, **{path[0]: numbers})

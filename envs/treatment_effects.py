"""What each treatment does to each record: the numbers that a scenario states, its rules applied, its parts combined.

Everything here broadcasts over the grid of records, with length 1 along every feature that does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from envs.cohort import FloatArray, changed, matches
from envs.records import Level, RecordSpace
from envs.scenario import COST, HAZARD_RATIO, Scenario


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


def treatment_costs(scenario: Scenario, costs: Mapping[str, float]) -> list[FloatArray]:
    """The cost of each action under its rules, given what they start from; 0 for actions that are not named."""
    return [own_number(scenario, action, COST, costs.get(action, 0.0)) for action in scenario.actions]


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

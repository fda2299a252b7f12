"""Reading the treatments of a scenario file, and checking what their rules make together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from envs.cohort import matches
from envs.features_file import read_condition
from envs.hazards_file import LEAST, MOST
from envs.records import Feature, Level
from envs.scenario import (
    COST,
    DEATH,
    EFFECTS,
    HAZARD_RATIO,
    ILLUSTRATIVE,
    OPERATIONS,
    Scenario,
    Treatment,
    TreatmentRule,
)
from envs.toml_reader import FINITE, Intervals, Table
from envs.treatment_effects import first_record, forbidden, own_number

# What a number of a treatment must be within, and what rules may state about it, by operation.
NUMBERS = {**dict.fromkeys(EFFECTS, (0.0, 1.0)), HAZARD_RATIO: (LEAST, MOST), COST: (-FINITE, FINITE)}
STEPS = {
    "set": NUMBERS,
    "add": {**dict.fromkeys(EFFECTS, (-1.0, 1.0)), HAZARD_RATIO: (-MOST, MOST), COST: (-FINITE, FINITE)},
    "multiply": {**dict.fromkeys(EFFECTS, (0.0, FINITE)), HAZARD_RATIO: (LEAST, MOST), COST: (0.0, FINITE)},
}


def read_treatments(
    table: Table, features: Sequence[Feature], flags: Sequence[str], events: Sequence[str], intervals: Intervals
) -> dict[str, Treatment]:
    """The treatments by name, in the order of the file.

    Parameters
    ----------
    table : Table
        The section.
    features : sequence of Feature
        What conditions may read.
    flags : sequence of str
        What can clear or appear.
    events : sequence of str
        What has a hazard, beside death.
    intervals : dict
        Takes the intervals of the numbers.
    """
    treatments: dict[str, Treatment] = {}
    hazards = [*events, DEATH]
    for name, entry in table.subtables():
        others = [other for other in table.values if other != name]
        parts = []
        if "combines" in entry:
            parts = entry.list_of("combines", others.__contains__, f"another treatment: {', '.join(others)}")
        entry.known.add("combines")
        treatments[name] = Treatment(
            title=entry.text("title", name),
            cost=entry.number(COST, 0.0, intervals=intervals),
            **{effect: entry.numbers(effect, flags, "flag", low=0, high=1, intervals=intervals) for effect in EFFECTS},
            combines=tuple(parts),
            hazard_ratio=entry.numbers(HAZARD_RATIO, hazards, "event", low=LEAST, high=MOST, intervals=intervals),
            contraindicated=tuple(_read_contraindications(entry, features)),
            rules=tuple(_read_rule(rule, features, flags, hazards, intervals) for rule in entry.tables("rules")),
        )
        entry.close()
    if len(treatments) < 2:
        table.fail(f"at least two are needed, got {len(treatments)}")
    try:
        TopologicalSorter({name: treatment.combines for name, treatment in treatments.items()}).prepare()
    except CycleError as error:
        # Each is followed by one that it is a part of: the other way round reads as "combines".
        circle = list(reversed(error.args[1]))
        table.fail(f"combine each other in a circle: {' -> '.join(circle)}", circle[0], "combines")
    return treatments


def _read_contraindications(entry: Table, features: Sequence[Feature]) -> Sequence[Mapping[str, tuple[Level, ...]]]:
    """The conditions under which a treatment must not be given."""
    conditions = []
    for each in entry.tables("contraindicated"):
        if not each.values:
            each.fail("must name a feature: a treatment that nobody may get is none")
        elif len(condition := read_condition(each, features)) == len(each.values):
            conditions.append(condition)
    return conditions


def _read_rule(
    table: Table, features: Sequence[Feature], flags: Sequence[str], hazards: Sequence[str], intervals: Intervals
) -> TreatmentRule:
    noted = len(table.mistakes.found)
    when = read_condition(table.table("when"), features)
    kinds = {**dict.fromkeys(EFFECTS, (flags, "flag")), HAZARD_RATIO: (hazards, "event")}
    changes: dict[str, tuple[str, float]] = {}
    for operation in OPERATIONS:
        entry, limits = table.table(operation), STEPS[operation]
        found: dict[tuple[str, ...], float] = {}
        for part, (names, kind) in kinds.items():
            low, high = limits[part]
            numbers = entry.numbers(part, names, kind, low=low, high=high, intervals=intervals)
            found |= {(part, name): value for name, value in numbers.items()}
        low, high = limits[COST]
        if COST in entry:
            found[(COST,)] = entry.number(COST, low=low, high=high, intervals=intervals)
        entry.known.add(COST)
        entry.close()
        for key, value in found.items():
            target = ".".join(key)
            if target in changes:
                table.fail(f"{target} is changed twice by one rule", operation, *key)
            changes[target] = operation, value
    source = table.text("source", ILLUSTRATIVE)
    table.close()
    if not changes and len(table.mistakes.found) == noted:
        table.fail("does nothing: it needs set, add or multiply")
    return TreatmentRule(when, changes, source)


def check_treatments(table: Table, scenario: Scenario) -> None:
    """What rules make must be probabilities, ratios and costs, and everybody must be allowed something."""
    for name, treatment in scenario.treatments.items():
        for target in dict.fromkeys(target for rule in treatment.rules for target in rule.changes):
            _check_number(table, scenario, name, target)
    never = np.asarray(True)
    for action in scenario.actions:
        never = never & forbidden(scenario, action)
    if never.any():
        last = max(at for at, each in enumerate(scenario.treatments.values()) if each.contraindicated)
        who = first_record(scenario.space, never)[1]
        message = f"with the contraindications of all treatments, nothing is left for these patients: {who}"
        table.fail(message, "treatments", scenario.actions[last], "contraindicated")


def _check_number(table: Table, scenario: Scenario, action: str, target: str) -> None:
    """Note the rules that make a number of a treatment impossible, with a record that shows it."""
    low, high = NUMBERS[target.partition(".")[0]]
    with np.errstate(over="ignore", invalid="ignore"):
        made = own_number(scenario, action, target)
    outside = ~((made >= low) & (made <= high))  # so that NaN is refused too
    if not outside.any():
        return
    place, who = first_record(scenario.space, outside)
    masks = [matches(scenario.space, rule.when) for rule in scenario.treatments[action].rules]
    guilty = [
        position
        for position, (rule, mask) in enumerate(zip(scenario.treatments[action].rules, masks, strict=True))
        if target in rule.changes and np.broadcast_to(mask, np.broadcast_shapes(mask.shape, made.shape))[place]
    ]
    names = " and ".join(f"rules[{position}]" for position in guilty)
    table.fail(
        f"{names} make{'s' * (len(guilty) == 1)} {target} {made[place]:g} for these patients: {who}; "
        f"it must stay in [{low:g}, {high:g}]",
        "treatments",
        action,
        "rules",
        guilty[-1],
    )

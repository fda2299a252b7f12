"""Reading and checking scenario files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np

from envs.cohort import admission_probability, prior
from envs.features_file import read_condition, read_features, read_shares
from envs.hazards_file import CONFIRMED, read_death, read_events
from envs.records import Feature, RecordSpace
from envs.scenario import DEATH, ILLUSTRATIVE, OPERATIONS, Rule, Scenario
from envs.toml_lines import KeyPath
from envs.toml_reader import FINITE, InputFileError, Intervals, Table, dotted, open_toml, unknown
from envs.treatment_response import ResponseModel
from envs.treatments_file import check_treatments, read_treatments

FOLDER = Path(__file__).parent / "scenarios"
# Every table has a row per record: 2^26 of them are 2 GB for four actions.
MOST_RECORDS = 2**26
# An event that more of the untreated patients have is asked about.
HALF = 0.5


def scenario_names() -> list[str]:
    """The built-in scenarios."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_scenario(name: str | Path) -> Scenario:
    """Read a scenario: a built-in name, or the path of a file that ends in .toml.

    Raises
    ------
    InputFileError
        With one `file:line: key: message` line for each mistake in the file.
    """
    if str(name).endswith(".toml"):
        path = Path(name)
    elif str(name) in scenario_names():
        path = FOLDER / f"{name}.toml"
    else:
        known = unknown("scenario", str(name), scenario_names())
        raise InputFileError(f"{known}, or a path that ends in .toml", located=False)
    with open_toml(path) as table:
        scenario = _read(table, path.stem)
        wrong = {key[0] for key, _ in table.mistakes.found if key}
        if not wrong & {"features", "rules"}:
            _check_probabilities(table, scenario)
        if not wrong & {"features", "treatments"}:
            check_treatments(table, scenario)
        if not table.mistakes.found:
            _ask_about_most(table, scenario)
    return scenario


def _read(table: Table, name: str) -> Scenario:
    title, source = table.text("title", name), table.text("source", "")
    features, shares, means = read_features(table.table("features"))
    size = math.prod(len(feature.levels) for feature in features)
    if size > MOST_RECORDS:
        table.fail(f"make {size:,} records: at most {MOST_RECORDS:,} can be enumerated", "features")
    flags = [feature.name for feature in features if feature.flag]
    rules = tuple(_read_rule(rule, features, flags, means) for rule in table.tables("rules"))
    _check_order(table, rules)
    intervals: Intervals = {}
    natural = table.numbers("natural_clearing", flags, "flag", low=0, high=1, intervals=intervals)
    onset = table.numbers("onset", list(natural), "flag", low=0, high=1)
    events = read_events(table.table("events"), features, list(natural), intervals)
    treatments = read_treatments(table.table("treatments"), features, list(natural), list(events), intervals)
    death = read_death(table.table("death"), features, list(natural), intervals)
    outcomes = [*natural, *events, DEATH]
    weights = table.numbers("weights", outcomes, "outcome", low=0, intervals=intervals)
    for section in ("natural_clearing", "weights"):
        # Where nothing can clear, events are what is observed.
        if section not in table and not (events and section == "natural_clearing"):
            table.fail(f"{section} is missing: it must be a table of numbers")
    table.close()
    return Scenario(
        name=name,
        title=title,
        space=RecordSpace(tuple(features) or (Feature("?", flag=True),)),
        shares=shares,
        means=means,
        rules=rules,
        natural_clearing=natural,
        onset=onset,
        treatments=treatments,
        death=death,
        weights=weights,
        source=source,
        events=events,
        intervals=intervals,
    )


def _read_rule(table: Table, features: list[Feature], flags: list[str], means: Mapping[str, object]) -> Rule:
    when = read_condition(table.table("when"), features)
    changes: dict[str, tuple[str, float]] = {}
    targets = [*flags, DEATH]
    for operation in OPERATIONS:
        high = 1.0 if operation == "set" else FINITE
        low = -1.0 if operation == "add" else 0.0
        for target, value in table.numbers(operation, targets, "flag", low=low, high=high).items():
            if target in changes:
                table.fail(f"{target} is changed twice by one rule", operation, target)
            changes[target] = (operation, value)
    per, scaled = None, []
    if "per" in table:
        entry = table.table("per")
        feature = entry.text("feature")
        if feature and feature not in means:
            entry.fail(unknown("feature with means", feature, list(means)), "feature")
        unit = entry.number("unit", low=0)
        if unit == 0 and entry.values.get("unit") == 0:
            entry.fail("must be > 0", "unit")
        entry.close()
        per = (feature, unit)
        scaled = table.list_of("flags", targets.__contains__, f"one of {', '.join(targets)}")
    source = table.text("source", ILLUSTRATIVE)
    shares = _read_rule_shares(table.table("shares"), features)
    table.close()
    if not (changes or per or "shares" in table):
        table.fail("does nothing: it needs set, add, multiply, shares or per")
    return Rule(when, changes, per, tuple(scaled), source, shares)


def _read_rule_shares(table: Table, features: list[Feature]) -> dict[str, tuple[float, ...]]:
    """New shares of features that are no flags."""
    levels = {feature.name: feature.levels for feature in features if not feature.flag}
    found: dict[str, tuple[float, ...]] = {}
    for name in table.values:
        if name in levels:
            found[name] = read_shares(table, name, levels[name])
        else:
            table.fail(unknown("feature with levels", name, list(levels)), name)
    return found


def _check_order(table: Table, rules: tuple[Rule, ...]) -> None:
    """Every feature needs those that its rules read made before it: no circle."""
    needs: dict[str, set[str]] = {}
    for rule in rules:
        for target in rule.targets:
            needs.setdefault(target, set()).update(rule.reads)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        table.fail(f"depend on each other in a circle: {' -> '.join(error.args[1])}", "rules")


def _check_probabilities(table: Table, scenario: Scenario) -> None:
    """What the rules make together must be probabilities, and death without treatment not certain."""
    for target in [*scenario.flags, DEATH]:
        last = max((i for i, rule in enumerate(scenario.rules) if target in rule.targets), default=0)
        try:
            probability = admission_probability(scenario, target)
        except ValueError as error:
            table.fail(str(error), "rules", last)
            continue
        if target == DEATH and probability.max() == 1:
            table.fail("the rules make death without treatment certain: it must be < 1", "rules", last)


def _ask_about_most(table: Table, scenario: Scenario) -> None:
    """What happens to most of the untreated must be confirmed: it may be a percentage in place of a probability."""
    response = ResponseModel(scenario)
    chances = {name: response.chance(name, 0) for name in scenario.events}
    chances[DEATH] = admission_probability(scenario, DEATH)
    for name, chance in chances.items():
        stated = (table.values.get("events", {}) if name in scenario.events else table.values).get(name, {})
        # Most scenarios are seen to be right without the probabilities of all their records.
        if stated.get(CONFIRMED) or chance.max() <= HALF:
            continue
        share = float(prior(scenario) @ np.broadcast_to(chance, scenario.space.shape).ravel())
        if share <= HALF:
            continue
        section: KeyPath = (DEATH,) if name == DEATH else ("events", name)
        place = (*section, "baseline") if "baseline" in stated else section
        if name == DEATH:
            place = "rules", max(i for i, rule in enumerate(scenario.rules) if DEATH in rule.targets)
        table.fail(
            f"gives {name} to {100 * share:.3g} of 100 untreated patients; 4 % is 0.04, not 4. If so many are meant, "
            f"say so: [{dotted(section)}] {CONFIRMED} = true",
            *place,
        )

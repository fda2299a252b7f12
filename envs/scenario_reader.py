"""Scenario files read and checked: every mistake by its line. `scenario_keys.toml` declares what they may hold."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammainc

from envs.cohort import admission_probability, matches, prior
from envs.records import BINARY, Feature, Level, RecordSpace
from envs.scenario import (
    COST,
    DEATH,
    EFFECTS,
    HAZARD_RATIO,
    OPERATIONS,
    SYMPTOMS,
    DeathModel,
    EventModel,
    Rule,
    Scenario,
    StatedRedraws,
    Treatment,
    TreatmentRule,
    numbers_of,
    with_numbers,
)
from envs.toml_lines import KeyPath
from envs.toml_reader import (
    FINITE,
    InputFileError,
    TomlTable,
    declared,
    dotted,
    is_number,
    number_wanted,
    open_toml,
    shown,
    text_of,
    unknown,
)
from envs.treatment_response import ResponseModel, first_record, forbidden, own_number

FOLDER = Path(__file__).parent / "scenarios"
KEYS = declared(Path(__file__).with_name("scenario_keys.toml"))
# Relative hazards beyond these are mistakes, and would overflow.
LEAST, MOST = 1e-6, 1e6
# What a number of a treatment must be within, whatever its rules make of it.
NUMBERS = {**dict.fromkeys(EFFECTS, (0.0, 1.0)), HAZARD_RATIO: (LEAST, MOST), COST: (-FINITE, FINITE)}
# Every table has a row per record: 2^26 of them are 2 GB for four actions.
MOST_RECORDS = 2**26
# An event that more of the untreated patients have is asked about, unless the file says that so many are meant.
HALF, CONFIRMED = 0.5, "more_than_half"
SHARE_TOLERANCE = 1e-9
# The first column of redraws; and so many at least: in fewer, nine of ten mean little.
DRAW, LEAST_REDRAWS = "draw", 20
# Stands for levels that could not be read, so that nothing else is said about them.
UNREAD: tuple[Level, ...] = ("?", "??")


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
    with open_toml(path, KEYS) as table:
        scenario = _read(table, path.stem)
        _check_rules(table, scenario)
        if "redraws" in table and not table.mistakes.found:
            scenario = replace(scenario, redraws=_read_redraws(table, scenario, path.parent / table["redraws"]))
        if not table.mistakes.found:
            _ask_about_most(table, scenario)
    return scenario


def _read(table: TomlTable, name: str) -> Scenario:
    features, shares, means = _read_features(table["features"])
    size = math.prod(len(feature.levels) for feature in features)
    if size > MOST_RECORDS:
        table.fail(f"make {size:,} records: at most {MOST_RECORDS:,} can be enumerated", "features")
    flags = [feature.name for feature in features if feature.flag]
    table.names.update(features=features, flag=flags, target=[*flags, DEATH], intervals={})
    rules = tuple(_read_rule(rule, means) for rule in table["rules"])
    needs: dict[str, set[str]] = {}
    for rule in rules:
        for target in rule.targets:
            needs.setdefault(target, set()).update(rule.when, rule.per[:1] if rule.per else ())
    try:
        # Every feature needs those that its rules read made before it.
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        table.fail(f"depend on each other in a circle: {' -> '.join(error.args[1])}", "rules")
    natural = table["natural_clearing"]
    table.names["transient"] = list(natural)
    events = _read_events(table["events"])
    table.names.update(hazard=[*events, DEATH], outcome=[*natural, *events, DEATH])
    for section in ("natural_clearing", "weights"):
        # Where nothing can clear, events are what is observed.
        if section not in table and not (events and section == "natural_clearing"):
            table.fail(f"{section} is missing: it must be a table of numbers")
    table.close()
    return Scenario(
        name=name,
        title=table.get("title", name),
        space=RecordSpace(tuple(features) or (Feature("?", flag=True),)),
        shares=shares,
        means=means,
        rules=rules,
        natural_clearing=natural,
        onset=table["onset"],
        treatments=_read_treatments(table["treatments"]),
        death=DeathModel(**_read_hazard(table["death"])),
        weights=table["weights"],
        source=table["source"],
        events=events,
        intervals=table.names["intervals"],
    )


def _read_features(
    table: TomlTable,
) -> tuple[list[Feature], dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
    """The features, the shares of those that are no flags, and the means of those that have them."""
    features: list[Feature] = []
    shares: dict[str, tuple[float, ...]] = {}
    means: dict[str, tuple[float, ...]] = {}
    for name in table.values:
        entry = table.table(name)
        if name == DEATH:
            table.fail("death is an outcome, never a feature", name)
            continue
        if not isinstance(table.values[name], dict):
            features.append(Feature(name, UNREAD))
            continue
        if set(entry.values) <= {"words"}:
            features.append(Feature(name, flag=True, words=_read_words(entry, list(BINARY))))
            entry.close()
            continue
        noted = len(entry.mistakes.found)
        levels = entry["levels"]
        if len(entry.mistakes.found) == noted and (len(levels) < 2 or len(set(levels)) < len(levels)):
            entry.fail("must be at least two distinct levels", "levels")
        if len(entry.mistakes.found) > noted:
            levels = list(UNREAD)
        features.append(Feature(name, tuple(levels), words=_read_words(entry, levels)))
        if "gamma" in entry:
            shares[name], means[name] = _read_gamma(entry["gamma"], levels)
        else:
            shares[name] = _read_shares(entry, "shares", levels)
        entry.close()
    if not features:
        table.fail("features are missing: at least one is needed")
    return features, shares, means


def _read_words(entry: TomlTable, levels: list[Level]) -> tuple[str, ...]:
    """What patients with each level are called, where the scenario says it."""
    if "words" not in entry:
        return ()
    noted = len(entry.mistakes.found)
    words = entry["words"]
    if len(entry.mistakes.found) == noted and tuple(levels) != UNREAD and len(set(words)) != len(levels):
        entry.fail(f"must be a different text for each level ({len(levels)}), got {words}", "words")
    return tuple(words) if len(entry.mistakes.found) == noted and len(words) == len(levels) else ()


def _read_shares(entry: TomlTable, key: str, levels: Sequence[Level]) -> tuple[float, ...]:
    """A probability for each level; equal ones where they are wrong."""
    n_levels = len(levels)
    noted = len(entry.mistakes.found)
    shares = entry.list_of(key, lambda v: is_number(v, 0, 1), "a probability in [0, 1]")
    if len(entry.mistakes.found) > noted or tuple(levels) == UNREAD:
        pass
    elif len(shares) != n_levels:
        entry.fail(f"must be one probability per level ({n_levels}), got {len(shares)}", key)
    elif abs(sum(shares) - 1) > SHARE_TOLERANCE:
        entry.fail(f"must sum to 1, got {sum(shares):g}", key)
    else:
        return tuple(float(share) for share in shares)
    return tuple([1 / n_levels] * n_levels)


def _read_gamma(entry: TomlTable, levels: list[Level]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Exact shares and means of the bands of a gamma distribution.

    The mean of a band is scale * shape * (F_{shape+1}(b) - F_{shape+1}(a)) / (F_shape(b) - F_shape(a)), with F_s the
    distribution function of Gamma(s, scale): x times the density of Gamma(s) is s * scale times that of Gamma(s + 1).
    """
    n_levels = len(levels)
    noted = len(entry.mistakes.found)
    shape, scale, cuts = entry["shape"], entry["scale"], entry["cuts"]
    wrong = len(entry.mistakes.found) > noted
    entry.close()
    if wrong or tuple(levels) == UNREAD:
        pass
    elif len(cuts) != n_levels - 1 or any(low >= high for low, high in pairwise(cuts)):
        entry.fail(f"must be {n_levels - 1} rising numbers, one fewer than levels, got {shown(cuts)}", "cuts")
    elif not (shape > 0 and scale > 0):
        entry.fail("shape and scale must be > 0")
    else:
        edges = np.array([0.0, *cuts, np.inf]) / scale
        shares = np.diff(gammainc(shape, edges))
        with np.errstate(all="ignore"):
            means = scale * shape * np.diff(gammainc(shape + 1, edges)) / shares
        if shares.min() > 0 and np.isfinite(means).all():
            return tuple(shares.tolist()), tuple(means.tolist())
        entry.fail("must leave somebody in every band", "cuts")
    return tuple([1 / n_levels] * n_levels), tuple([1.0] * n_levels)


def _read_condition(table: TomlTable) -> dict[str, tuple[Level, ...]]:
    """A condition on records: a level, or a list of levels, for each feature that it names."""
    by_name = {feature.name: feature for feature in table.names["features"]}
    condition: dict[str, tuple[Level, ...]] = {}
    for name, value in table.values.items():
        if name not in by_name:
            table.fail(unknown("feature", name, list(by_name)), name)
            continue
        wanted = value if isinstance(value, list) else [value]
        levels = by_name[name].levels
        bad = [level for level in wanted if type(level) not in (str, int) or level not in levels]
        if levels == UNREAD:
            continue
        if bad or not wanted:
            table.fail(f"must be among {list(levels)!r}, got {shown(value)}", name)
        else:
            condition[name] = tuple(wanted)
    return condition


def _read_rule(table: TomlTable, means: Mapping[str, object]) -> Rule:
    when = _read_condition(table["when"])
    changed: dict[str, tuple[str, float]] = {}
    for operation in OPERATIONS:
        for target, value in table[operation].items():
            if target in changed:
                table.fail(f"{target} is changed twice by one rule", operation, target)
            changed[target] = (operation, value)
    per, scaled = None, []
    if "per" in table:
        entry, targets = table["per"], table.names["target"]
        feature, unit = entry["feature"], entry["unit"]
        if feature and feature not in means:
            entry.fail(unknown("feature with means", feature, list(means)), "feature")
        if unit == 0 and entry.values.get("unit") == 0:
            entry.fail("must be > 0", "unit")
        entry.close()
        per = (feature, unit)
        scaled = table.list_of("flags", targets.__contains__, f"one of {', '.join(targets)}")
    shares = {}
    levels = {feature.name: feature.levels for feature in table.names["features"] if not feature.flag}
    entry = table["shares"]
    for name in entry.values:
        if name in levels:
            shares[name] = _read_shares(entry, name, levels[name])
        else:
            entry.fail(unknown("feature with levels", name, list(levels)), name)
    table.close()
    if not (changed or per or "shares" in table):
        table.fail("does nothing: it needs set, add, multiply, shares or per")
    return Rule(when, changed, per, tuple(scaled), table["source"], shares)


def _read_hazard(table: TomlTable) -> dict[str, Any]:
    """What death and every other event have."""
    made = {
        "acute": _read_condition(table["acute"]),
        "baseline": table["baseline"],
        "hazard": table["hazard"],
        "relative_risk": _read_risks(table["relative_risk"]),
        "source": table["source"],
    }
    _ = table[CONFIRMED]
    table.close()
    return made


def _read_events(table: TomlTable) -> dict[str, EventModel]:
    """The events by name, in the order of the file."""
    events: dict[str, EventModel] = {}
    for name in table.values:
        entry = table.table(name)
        if name == DEATH:
            table.fail("death has a section of its own: [death]", name)
        elif name == SYMPTOMS:
            table.fail(f"{name} is what all of them are counted as: an event needs another name", name)
        elif name in [feature.name for feature in table.names["features"]]:
            table.fail(f"{name} is a feature: an event needs another name", name)
        noted = len(entry.mistakes.found)
        title = entry.get("title", name.replace("_", " "))
        event = EventModel(title, **_read_hazard(entry))
        if (
            isinstance(table.values[name], dict)
            and len(entry.mistakes.found) == noted
            and not (event.baseline or any(event.hazard.values()))
        ):
            table.fail("never happens: it needs a baseline or a hazard > 0", name)
        events[name] = event
    return events


def _read_risks(table: TomlTable) -> dict[str, tuple[float, ...]]:
    """A factor for each level of the features that are named."""
    by_name = {feature.name: feature for feature in table.names["features"]}
    relative_risk: dict[str, tuple[float, ...]] = {}
    for name in table.values:
        if name not in by_name:
            table.fail(unknown("feature", name, list(by_name)), name)
            continue
        noted = len(table.mistakes.found)
        entries = table.list_of(
            name, lambda v: isinstance(v, dict) or is_number(v, LEAST, MOST), number_wanted(LEAST, MOST)
        )
        if len(table.mistakes.found) > noted or by_name[name].levels == UNREAD:
            continue
        if len(entries) != len(by_name[name].levels):
            table.fail(f"must be one factor per level ({len(by_name[name].levels)}), got {len(entries)}", name)
            continue
        relative_risk[name] = tuple(
            TomlTable(entry, (*table.key, name, position), table.mistakes).estimate(
                table.names["intervals"], low=LEAST, high=MOST
            )
            if isinstance(entry, dict)
            else float(entry)
            for position, entry in enumerate(entries)
        )
    return relative_risk


def _read_treatments(table: TomlTable) -> dict[str, Treatment]:
    """The treatments by name, in the order of the file."""
    treatments: dict[str, Treatment] = {}
    for name in table.values:
        entry = table.table(name)
        others = [other for other in table.values if other != name]
        parts = []
        if "combines" in entry:
            parts = entry.list_of("combines", others.__contains__, f"another treatment: {', '.join(others)}")
        title, cost, effects = entry.get("title", name), entry[COST], {effect: entry[effect] for effect in EFFECTS}
        ratio, conditions = entry[HAZARD_RATIO], []
        for each in entry["contraindicated"]:
            if not each.values:
                each.fail("must name a feature: a treatment that nobody may get is none")
            elif len(condition := _read_condition(each)) == len(each.values):
                conditions.append(condition)
        treatments[name] = Treatment(
            title=title,
            cost=cost,
            **effects,
            combines=tuple(parts),
            hazard_ratio=ratio,
            contraindicated=tuple(conditions),
            rules=tuple(_read_treatment_rule(rule) for rule in entry["rules"]),
            source=entry["source"],
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


def _read_treatment_rule(table: TomlTable) -> TreatmentRule:
    noted = len(table.mistakes.found)
    when = _read_condition(table["when"])
    changed: dict[str, tuple[str, float]] = {}
    for operation in OPERATIONS:
        entry = table[operation]
        numbers: dict[tuple[str, ...], float] = {
            (part, name): value for part in (*EFFECTS, HAZARD_RATIO) for name, value in entry[part].items()
        }
        if COST in entry:
            numbers[(COST,)] = entry[COST]
        entry.close()
        for key, value in numbers.items():
            target = ".".join(key)
            if target in changed:
                table.fail(f"{target} is changed twice by one rule", operation, *key)
            changed[target] = operation, value
    table.close()
    if not changed and len(table.mistakes.found) == noted:
        table.fail("does nothing: it needs set, add or multiply")
    return TreatmentRule(when, changed, table["source"])


def _read_redraws(table: TomlTable, scenario: Scenario, path: Path) -> StatedRedraws | None:
    """The redraws of a scenario: a column for each number, by its key, and a row for each draw."""
    numbers = numbers_of(scenario)
    try:
        text = text_of(path)
    except (OSError, ValueError) as error:
        table.fail(f"{path.as_posix()}: cannot be read: {getattr(error, 'strerror', None) or error}", "redraws")
        return None
    header, *rows = list(csv.reader(text.splitlines())) or [[]]
    known = [key for key in numbers if not (key.startswith("treatments.") and "rules" in key.split("."))]
    faults = [unknown("number", key, known) for key in header[1:] if key not in known]
    faults += [f"has a column {key} twice" for key in {key for key in header if header.count(key) > 1}]
    if header[:1] != [DRAW] or len(header) < 2:
        faults.append(f"must have a column {DRAW}, and a column for each number that is redrawn")
    if len(rows) < LEAST_REDRAWS:
        faults.append(f"must have at least {LEAST_REDRAWS} rows, one for each draw; got {len(rows)}")
    columns: dict[str, list[float]] = {key: [] for key in header[1:]}
    bounds = {key: _bounds(key) for key in columns}
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            faults.append(f"line {line} has {len(row)} values, and not {len(header)}")
        for key, value in zip(header[1:], row[1:], strict=False):
            columns[key].append(_number_in(value))
            if not is_number(columns[key][-1], *bounds[key]):
                faults.append(f"line {line}: {key} must be {number_wanted(*bounds[key])}, got {value!r}")
    if not faults:
        # Every rule raises death with its number: what both ends allow is possible between.
        ends = [{key: end(column) for key, column in columns.items() if key.startswith("rules.")} for end in (min, max)]
        faults = [fault for each in ends if (fault := _fault_of_rules(with_numbers(scenario, each), DEATH))]
    for fault in faults[:1]:
        table.fail(f"{path.as_posix()}: {fault}", "redraws")
    return StatedRedraws(table["redraws"], text, {key: tuple(column) for key, column in columns.items()})


def _number_in(text: str) -> float:
    """A number of a file; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _bounds(key: str) -> tuple[float, float]:
    """Within which a number must be, by what it is."""
    ratio, share = (LEAST, MOST), (0.0, 1.0)
    own = {**NUMBERS, "natural_clearing": share, "rules": share, "relative_risk": ratio, f"{DEATH}.baseline": ratio}
    return next((bounds for part, bounds in own.items() if f".{part}." in f".{key}."), (0.0, MOST))


def _check_rules(table: TomlTable, scenario: Scenario) -> None:
    """What rules make together must be possible, death without treatment not certain, and something left for each."""
    wrong = {key[0] for key, _ in table.mistakes.found if key}
    # What was not read right is not judged.
    flags = [name for name in scenario.space.names if name not in scenario.shares]
    targets = [] if wrong & {"features", "rules"} else [*flags, DEATH]
    for target in targets:
        last = max((i for i, rule in enumerate(scenario.rules) if target in rule.targets), default=0)
        if fault := _fault_of_rules(scenario, target):
            table.fail(fault, "rules", last)
    if wrong & {"features", "treatments"}:
        return
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


def _fault_of_rules(scenario: Scenario, target: str) -> str:
    """Why what rules make of a flag, or of death, is impossible; empty if it is not."""
    try:
        probability = admission_probability(scenario, target)
    except ValueError as error:
        return str(error)
    certain = target == DEATH and probability.max() == 1
    return "the rules make death without treatment certain: it must be < 1" if certain else ""


def _check_number(table: TomlTable, scenario: Scenario, action: str, target: str) -> None:
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


def _ask_about_most(table: TomlTable, scenario: Scenario) -> None:
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

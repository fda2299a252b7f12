"""Scenario files read and checked: every mistake by its line. The keys are listed at the classes of `envs.scenario`."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
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
    ILLUSTRATIVE,
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
    ANY_NUMBER,
    FINITE,
    NOT_NEGATIVE,
    PROBABILITY,
    Bounds,
    InputFileError,
    TomlTable,
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
# Relative hazards beyond these are mistakes, and would overflow.
RATIO = LEAST, MOST = 1e-6, 1e6
HAZARD = 0.0, MOST
# What a rule may do to the probability of a flag, or of death.
PROBABILITY_STEPS = {"set": PROBABILITY, "add": (-1.0, FINITE), "multiply": NOT_NEGATIVE}
# What a number of a treatment must be within, whatever its rules make of it.
NUMBERS = {**dict.fromkeys(EFFECTS, PROBABILITY), HAZARD_RATIO: RATIO, COST: ANY_NUMBER}
# What one of its rules may do to it.
NUMBER_STEPS = {
    "set": NUMBERS,
    "add": {**dict.fromkeys(EFFECTS, (-1.0, 1.0)), HAZARD_RATIO: (-MOST, MOST), COST: ANY_NUMBER},
    "multiply": {**dict.fromkeys(EFFECTS, NOT_NEGATIVE), HAZARD_RATIO: RATIO, COST: NOT_NEGATIVE},
}
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
        path = (FOLDER / f"{name}.toml").resolve()  # an installer may have put a link there
    else:
        known = unknown("scenario", str(name), scenario_names())
        raise InputFileError(f"{known}, or a path that ends in .toml", located=False)
    with open_toml(path) as table:
        scenario = _read(table, path.stem)
        redraws = table.text("redraws", "")
        table.close()
        _check_rules(table, scenario)
        if "redraws" in table and not table.wrong():
            scenario = replace(scenario, redraws=_read_redraws(table, scenario, path.parent / redraws))
        if not table.wrong():
            _ask_about_most(table, scenario)
    return scenario


def _read(table: TomlTable, name: str) -> Scenario:
    features, shares, means = _read_features(table.table("features"))
    size = math.prod(len(feature.levels) for feature in features.values())
    if size > MOST_RECORDS:
        table.fail(f"make {size:,} records: at most {MOST_RECORDS:,} can be enumerated", "features")
    rules = tuple(_read_rule(rule, features, means) for rule in table.tables("rules"))
    needs: dict[str, set[str]] = {}
    for rule in rules:
        for target in rule.targets:
            needs.setdefault(target, set()).update(rule.when, rule.per[:1] if rule.per else ())
    try:
        # Every feature needs those that its rules read made before it.
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        table.fail(f"depend on each other in a circle: {' -> '.join(error.args[1])}", "rules")
    clearing = table.numbers("natural_clearing", _flags(features), "flag", within=PROBABILITY, interval=True)
    events = _read_events(table.table("events"), features, clearing)
    for section in ("natural_clearing", "weights"):
        # Where nothing can clear, events are what is observed.
        if section not in table and not (events and section == "natural_clearing"):
            table.fail(f"{section} is missing: it must be a table of numbers")
    weights = table.numbers("weights", [*clearing, *events, DEATH], "outcome", within=NOT_NEGATIVE, interval=True)
    if "weights" in table and not (table.wrong("weights") or table.wrong("events")):
        # What happens at a rate and costs nothing must say so: without a weight it is nearly always forgotten.
        happening = [*events, *([DEATH] if any(DEATH in rule.targets for rule in rules) else [])]
        for outcome in [outcome for outcome in happening if outcome not in weights]:
            table.fail(f"{outcome} is missing: it must be a number >= 0; 0 if it is to cost nothing", "weights")
    return Scenario(
        name=name,
        title=table.column("title", name),
        space=RecordSpace(tuple(features.values()) or (Feature("?", flag=True),)),
        shares=shares,
        means=means,
        rules=rules,
        natural_clearing=clearing,
        onset=table.numbers("onset", clearing, "flag", within=PROBABILITY),
        treatments=_read_treatments(table.table("treatments"), features, clearing, [*events, DEATH]),
        death=DeathModel(**_read_hazard(table.table(DEATH), features, clearing, baseline=1.0, within=RATIO)),
        weights=weights,
        source=table.text("source", ""),
        events=events,
        intervals=table.file.intervals,
    )


def _refuse_blank_names(table: TomlTable) -> None:
    """Note the names that the file chooses and nobody can see."""
    for name in table:
        if not name.strip():
            table.fail(f"must have a name that can be seen, got {name!r}", name)


def _refuse_same_titles(table: TomlTable, titles: Mapping[str, str]) -> None:
    """Note the titles that readers could not tell from another one, or not see; they are of the names in a table."""
    first: dict[str, str] = {}
    for name, title in titles.items():
        other = first.setdefault(title.strip().casefold(), name)
        if not title.strip():
            table.fail("must not be empty", name, "title")
        elif other != name:
            table.fail(f"must be another title than that of {other}, got {title!r}", name, "title")


def _flags(features: Mapping[str, Feature]) -> list[str]:
    return [feature.name for feature in features.values() if feature.flag]


def _read_features(
    table: TomlTable,
) -> tuple[dict[str, Feature], dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
    """The features by name, the shares of those that are no flags, and the means of those that have them."""
    features: dict[str, Feature] = {}
    shares: dict[str, tuple[float, ...]] = {}
    means: dict[str, tuple[float, ...]] = {}
    _refuse_blank_names(table)
    for name in table:
        entry = table.table(name)
        if name == DEATH:
            table.fail("death is an outcome, never a feature", name)
        elif not isinstance(table.values[name], dict):
            features[name] = Feature(name, UNREAD)
        elif set(entry.values) <= {"words"}:
            features[name] = Feature(name, flag=True, words=_read_words(entry, BINARY))
        else:
            levels = _read_levels(entry)
            features[name] = Feature(name, levels, words=_read_words(entry, levels))
            if "gamma" in entry:
                shares[name], means[name] = _read_gamma(entry.table("gamma"), levels)
            else:
                shares[name] = _read_shares(entry, "shares", levels)
    if not features:
        table.fail("features are missing: at least one is needed")
    return features, shares, means


def _read_levels(entry: TomlTable) -> tuple[Level, ...]:
    levels = entry.list_of("levels", lambda value: type(value) in (str, int), "text or whole numbers")
    if not entry.wrong() and (len(levels) < 2 or len(set(levels)) < len(levels)):
        entry.fail("must be at least two distinct levels", "levels")
    for position, level in enumerate(levels):
        if not str(level).strip():
            entry.fail(f"must be text that can be seen, got {level!r}", "levels", position)
    return UNREAD if entry.wrong() else tuple(levels)


def _read_words(entry: TomlTable, levels: Sequence[Level]) -> tuple[str, ...]:
    """What patients with each level are called, where the scenario says it."""
    if "words" not in entry:
        return ()
    words = entry.words("words")
    if not entry.wrong("words") and levels != UNREAD and len(set(words)) != len(levels):
        entry.fail(f"must be a different text for each level ({len(levels)}), got {words}", "words")
    return () if entry.wrong("words") or len(words) != len(levels) else tuple(words)


def _read_shares(entry: TomlTable, key: str, levels: Sequence[Level]) -> tuple[float, ...]:
    """A probability for each level; equal ones where they are wrong."""
    n_levels = len(levels)
    stated = entry.values.get(key)
    in_percent = isinstance(stated, list) and any(is_number(share) and 1 < share <= 100 for share in stated)
    wanted = f"a probability in [0, 1]{' (60 % is 0.6)' if in_percent else ''}"
    shares = entry.list_of(key, lambda value: is_number(value, 0, 1), wanted)
    if not shares or entry.wrong(key) or levels == UNREAD:
        pass
    elif len(shares) != n_levels:
        entry.fail(f"must be one probability per level ({n_levels}), got {len(shares)}", key)
    elif abs(sum(shares) - 1) > SHARE_TOLERANCE:
        entry.fail(f"must sum to 1, got {sum(shares):.10g}", key)
    else:
        return tuple(float(share) for share in shares)
    return tuple([1 / n_levels] * n_levels)


def _read_gamma(entry: TomlTable, levels: Sequence[Level]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Exact shares and means of the bands of a gamma distribution.

    The mean of a band is scale * shape * (F_{shape+1}(b) - F_{shape+1}(a)) / (F_shape(b) - F_shape(a)), with F_s the
    distribution function of Gamma(s, scale): x times the density of Gamma(s) is s * scale times that of Gamma(s + 1).
    """
    n_levels = len(levels)
    shape, scale = entry.number("shape", within=NOT_NEGATIVE), entry.number("scale", within=NOT_NEGATIVE)
    cuts = entry.number_list("cuts", within=NOT_NEGATIVE)
    if entry.wrong() or levels == UNREAD:
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


def _read_condition(table: TomlTable, features: Mapping[str, Feature]) -> dict[str, tuple[Level, ...]]:
    """A condition on records: a level, or a list of levels, for each feature that it names."""
    condition: dict[str, tuple[Level, ...]] = {}
    for name in table:
        if name not in features:
            table.fail(unknown("feature", name, list(features)), name)
        elif features[name].levels != UNREAD:
            value, levels = table.values[name], features[name].levels
            wanted = value if isinstance(value, list) else [value]
            if wanted and all(type(level) in (str, int) and level in levels for level in wanted):
                condition[name] = tuple(wanted)
            else:
                table.fail(f"must be among {list(levels)!r}, got {shown(value)}", name)
    return condition


def _read_rule(table: TomlTable, features: Mapping[str, Feature], means: Mapping[str, object]) -> Rule:
    targets = [*_flags(features), DEATH]
    changes: dict[str, tuple[str, float]] = {}
    for operation, bounds in PROBABILITY_STEPS.items():
        for target, value in table.numbers(operation, targets, "flag", within=bounds).items():
            if target in changes:
                table.fail(f"{target} is changed twice by one rule", operation, target)
            changes[target] = operation, value
    per, flags = None, []
    if "per" in table:
        per = _read_per(table.table("per"), means)
        flags = table.list_of("flags", targets.__contains__, f"one of {', '.join(targets)}")
    levels = {name: feature.levels for name, feature in features.items() if not feature.flag}
    shares = {}
    entry = table.table("shares")
    for name in entry:
        if name in levels:
            shares[name] = _read_shares(entry, name, levels[name])
        else:
            entry.fail(unknown("feature with levels", name, list(levels)), name)
    if not (changes or per or "shares" in table):
        table.fail("does nothing: it needs set, add, multiply, shares or per")
    when = _read_condition(table.table("when"), features)
    return Rule(when, changes, per, tuple(flags), table.text("source", ILLUSTRATIVE), shares)


def _read_per(entry: TomlTable, means: Mapping[str, object]) -> tuple[str, float]:
    """A feature that has means, and the unit in which these multiply a probability."""
    feature, unit = entry.text("feature"), entry.number("unit", within=NOT_NEGATIVE)
    if feature and feature not in means:
        entry.fail(unknown("feature with means", feature, list(means)), "feature")
    if unit == 0 and not entry.wrong("unit") and "unit" in entry:
        entry.fail("must be > 0", "unit")
    return feature, unit


def _read_hazard(
    table: TomlTable, features: Mapping[str, Feature], flags: Collection[str], *, baseline: float, within: Bounds
) -> dict[str, Any]:
    """What death and every other event have; `baseline` is the default."""
    table.flag(CONFIRMED, default=False)
    return {
        "acute": _read_condition(table.table("acute"), features),
        "baseline": table.number("baseline", baseline, within=within, interval=True),
        "hazard": table.numbers("hazard", flags, "flag", within=HAZARD, interval=True),
        "relative_risk": _read_risks(table.table("relative_risk"), features),
        "source": table.text("source", ""),
    }


def _read_events(table: TomlTable, features: Mapping[str, Feature], flags: Collection[str]) -> dict[str, EventModel]:
    """The events by name, in the order of the file."""
    events: dict[str, EventModel] = {}
    for name in table:
        entry = table.table(name)
        if name == DEATH:
            table.fail("death has a section of its own: [death]", name)
        elif name == SYMPTOMS:
            table.fail(f"{name} is the count of all symptoms: an event needs another name", name)
        elif name in features:
            table.fail(f"{name} is a feature: an event needs another name", name)
        title = entry.text("title", name.replace("_", " "))
        events[name] = event = EventModel(title, **_read_hazard(entry, features, flags, baseline=0.0, within=HAZARD))
        if not entry.wrong() and not (event.baseline or any(event.hazard.values())):
            table.fail("never happens: it needs a baseline or a hazard > 0", name)
    _refuse_blank_names(table)
    _refuse_same_titles(table, {name: event.title for name, event in events.items()})
    return events


def _read_risks(table: TomlTable, features: Mapping[str, Feature]) -> dict[str, tuple[float, ...]]:
    """A factor for each level of the features that are named."""
    relative_risk: dict[str, tuple[float, ...]] = {}
    for name in table:
        if name not in features:
            table.fail(unknown("feature", name, list(features)), name)
            continue
        factors, levels = tuple(table.estimates(name, RATIO)), features[name].levels
        if len(factors) == len(levels) or table.wrong(name) or levels == UNREAD:
            relative_risk[name] = factors
        else:
            table.fail(f"must be one factor per level ({len(levels)}), got {len(factors)}", name)
    return relative_risk


def _read_treatments(
    table: TomlTable, features: Mapping[str, Feature], flags: Collection[str], events: Collection[str]
) -> dict[str, Treatment]:
    """The treatments by name, in the order of the file."""
    treatments: dict[str, Treatment] = {}
    for name in table:
        entry = table.table(name)
        others = [other for other in table.values if other != name]
        treatments[name] = Treatment(
            title=entry.text("title", name),
            cost=entry.number(COST, 0.0, interval=True),
            **_read_effects(entry, NUMBERS, flags, events),
            combines=tuple(
                entry.list_of("combines", others.__contains__, f"another treatment: {', '.join(others)}", [])
            ),
            contraindicated=_read_contraindications(entry.tables("contraindicated"), features),
            rules=tuple(_read_treatment_rule(rule, features, flags, events) for rule in entry.tables("rules")),
            source=entry.text("source", ""),
        )
    _refuse_blank_names(table)
    _refuse_same_titles(table, {name: treatment.title for name, treatment in treatments.items()})
    if len(treatments) < 2:
        table.fail(f"at least two are needed, got {len(treatments)}")
    try:
        TopologicalSorter({name: treatment.combines for name, treatment in treatments.items()}).prepare()
    except CycleError as error:
        # Each is followed by one that it is a part of: the other way round reads as "combines".
        circle = list(reversed(error.args[1]))
        table.fail(f"combine each other in a circle: {' -> '.join(circle)}", circle[0], "combines")
    return treatments


def _read_effects(
    table: TomlTable, bounds: Mapping[str, Bounds], flags: Collection[str], events: Collection[str]
) -> dict[str, dict[str, float]]:
    """What a treatment does to flags and events, or a step of its rules to that."""
    effects = {name: table.numbers(name, flags, "flag", within=bounds[name], interval=True) for name in EFFECTS}
    ratios = table.numbers(HAZARD_RATIO, events, "event", within=bounds[HAZARD_RATIO], interval=True)
    return {**effects, HAZARD_RATIO: ratios}


def _read_contraindications(
    tables: Sequence[TomlTable], features: Mapping[str, Feature]
) -> tuple[dict[str, tuple[Level, ...]], ...]:
    """The conditions of patients who must not get a treatment; none that was not read whole."""
    conditions = []
    for table in tables:
        condition = _read_condition(table, features)
        if not table.values:
            table.fail("must name a feature: otherwise no patient may get the treatment")
        elif len(condition) == len(table.values):
            conditions.append(condition)
    return tuple(conditions)


def _read_treatment_rule(
    table: TomlTable, features: Mapping[str, Feature], flags: Collection[str], events: Collection[str]
) -> TreatmentRule:
    when = _read_condition(table.table("when"), features)
    changes: dict[str, tuple[str, float]] = {}
    for operation, bounds in NUMBER_STEPS.items():
        entry = table.table(operation)
        effects = _read_effects(entry, bounds, flags, events)
        numbers = {f"{effect}.{name}": value for effect, values in effects.items() for name, value in values.items()}
        if COST in entry:
            numbers[COST] = entry.number(COST, within=bounds[COST], interval=True)
        for target, value in numbers.items():
            if target in changes:
                table.fail(f"{target} is changed twice by one rule", operation, *target.split(".", 1))
            changes[target] = operation, value
    source = table.text("source", ILLUSTRATIVE)
    table.close()
    if not changes and not table.wrong():
        table.fail("does nothing: it needs set, add or multiply")
    return TreatmentRule(when, changes, source)


def _read_redraws(table: TomlTable, scenario: Scenario, path: Path) -> StatedRedraws | None:
    """The redraws of a scenario, from a file beside it."""
    try:
        text = text_of(path)
    except (OSError, ValueError) as error:
        table.fail(f"{path.as_posix()}: cannot be read: {getattr(error, 'strerror', None) or error}", "redraws")
        return None
    try:
        return StatedRedraws(table.values["redraws"], text, _redrawn_numbers(scenario, text))
    except ValueError as error:
        table.fail(f"{path.as_posix()}: {error}", "redraws")
        return None


def _redrawn_numbers(scenario: Scenario, text: str) -> dict[str, tuple[float, ...]]:
    """The numbers of a file: a column for each number, by its key, and a row for each draw."""
    header, *rows = list(csv.reader(text.splitlines())) or [[]]
    known = [key for key in numbers_of(scenario) if not (key.startswith("treatments.") and "rules" in key.split("."))]
    for key in header[1:]:
        if key not in known:
            raise ValueError(unknown("number", key, known))
        if header.count(key) > 1:
            raise ValueError(f"has a column {key} twice")
    if header[:1] != [DRAW] or len(header) < 2:
        raise ValueError(f"must have a column {DRAW}, and a column for each number that varies")
    if len(rows) < LEAST_REDRAWS:
        raise ValueError(f"must have at least {LEAST_REDRAWS} rows, one for each draw; got {len(rows)}")
    columns: dict[str, list[float]] = {key: [] for key in header[1:]}
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} values, and not {len(header)}")
        for (key, column), value in zip(columns.items(), row[1:], strict=True):
            column.append(_number_in(value))
            if not is_number(column[-1], *_bounds(key)):
                raise ValueError(f"line {line}: {key} must be {number_wanted(*_bounds(key))}, got {value!r}")
    # Every rule raises death with its number: what both ends allow is possible between.
    for end in (min, max):
        numbers = {key: end(column) for key, column in columns.items() if key.startswith("rules.")}
        if fault := _fault_of_rules(with_numbers(scenario, numbers), DEATH):
            raise ValueError(fault)
    return {key: tuple(column) for key, column in columns.items()}


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
    # What was not read right is not judged.
    flags = [name for name in scenario.space.names if name not in scenario.shares]
    targets = [] if table.wrong("features") or table.wrong("rules") else [*flags, DEATH]
    for target in targets:
        last = max((i for i, rule in enumerate(scenario.rules) if target in rule.targets), default=0)
        if fault := _fault_of_rules(scenario, target):
            table.fail(fault, "rules", last)
    if table.wrong("features") or table.wrong("treatments"):
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

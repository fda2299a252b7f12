"""Reading and checking scenario files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.special import gammainc

from envs.cohort import admission_probability
from envs.records import Feature, Level, RecordSpace
from envs.scenario import DEATH, ILLUSTRATIVE, DeathModel, Rule, Scenario, Treatment, complements
from envs.toml_reader import FINITE, InputFileError, Table, is_number, open_toml, shown, unknown

FOLDER = Path(__file__).parent / "scenarios"
OPERATIONS = ("set", "add", "multiply")
SHARE_TOLERANCE = 1e-9
# Every table has a row per record: 2^26 of them are 2 GB for four actions.
MOST_RECORDS = 2**26
# Relative hazards beyond these are mistakes, and would overflow.
LEAST, MOST = 1e-6, 1e6
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
    with open_toml(path) as table:
        scenario = _read(table, path.stem)
        if not any(key[:1] in (("features",), ("rules",)) for key, _ in table.mistakes.found):
            _check_probabilities(table, scenario)
    return scenario


def _read(table: Table, name: str) -> Scenario:
    title, source = table.text("title", name), table.text("source", "")
    features, shares, means = _read_features(table.table("features"))
    size = math.prod(len(feature.levels) for feature in features)
    if size > MOST_RECORDS:
        table.fail(f"make {size:,} records: at most {MOST_RECORDS:,} can be enumerated", "features")
    flags = [feature.name for feature in features if feature.flag]
    rules = tuple(_read_rule(rule, features, flags, means) for rule in table.tables("rules"))
    _check_order(table, rules)
    natural = table.numbers("natural_clearing", flags, "flag", low=0, high=1)
    onset = table.numbers("onset", list(natural), "flag", low=0, high=1)
    outcomes = [*natural, DEATH]
    treatments = _read_treatments(table.table("treatments"), list(natural))
    death = _read_death(table.table("death"), features, list(natural))
    weights = table.numbers("weights", outcomes, "outcome", low=0)
    for section in ("natural_clearing", "weights"):
        if section not in table:
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
    )


def _read_features(
    table: Table,
) -> tuple[list[Feature], dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
    features: list[Feature] = []
    shares: dict[str, tuple[float, ...]] = {}
    means: dict[str, tuple[float, ...]] = {}
    for name, entry in table.subtables():
        if name == DEATH:
            table.fail("death is an outcome, never a feature", name)
            continue
        if not isinstance(table.values[name], dict):
            features.append(Feature(name, UNREAD))
            continue
        if not entry.values:
            features.append(Feature(name, flag=True))
            continue
        noted = len(entry.mistakes.found)
        levels = entry.list_of("levels", lambda v: type(v) in (str, int), "text or whole numbers")
        if len(entry.mistakes.found) == noted and (len(levels) < 2 or len(set(levels)) < len(levels)):
            entry.fail("must be at least two distinct levels", "levels")
        if len(entry.mistakes.found) > noted:
            levels = list(UNREAD)
        features.append(Feature(name, tuple(levels), words=_read_words(entry, levels)))
        if "gamma" in entry:
            shares[name], means[name] = _read_gamma(entry.table("gamma"), levels)
        else:
            shares[name] = _read_shares(entry, levels)
        entry.close()
    if not features:
        table.fail("features are missing: at least one is needed")
    return features, shares, means


def _read_words(entry: Table, levels: list[Level]) -> tuple[str, ...]:
    """What patients with each level are called, where the scenario says it."""
    if "words" not in entry:
        entry.known.add("words")
        return ()
    noted = len(entry.mistakes.found)
    words = entry.list_of("words", lambda v: isinstance(v, str) and bool(v.strip()), "text in quotes")
    if len(entry.mistakes.found) == noted and tuple(levels) != UNREAD and len(set(words)) != len(levels):
        entry.fail(f"must be a different text for each level ({len(levels)}), got {words}", "words")
    return tuple(words) if len(entry.mistakes.found) == noted and len(words) == len(levels) else ()


def _read_shares(entry: Table, levels: list[Level]) -> tuple[float, ...]:
    n_levels = len(levels)
    noted = len(entry.mistakes.found)
    shares = entry.list_of("shares", lambda v: is_number(v, 0, 1), "a probability in [0, 1]")
    if len(entry.mistakes.found) > noted or tuple(levels) == UNREAD:
        pass
    elif len(shares) != n_levels:
        entry.fail(f"must be one probability per level ({n_levels}), got {len(shares)}", "shares")
    elif abs(sum(shares) - 1) > SHARE_TOLERANCE:
        entry.fail(f"must sum to 1, got {sum(shares):g}", "shares")
    else:
        return tuple(float(share) for share in shares)
    return tuple([1 / n_levels] * n_levels)


def _read_gamma(entry: Table, levels: list[Level]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Exact shares and means of the bands of a gamma distribution.

    The mean of a band is scale * shape * (F_{shape+1}(b) - F_{shape+1}(a)) / (F_shape(b) - F_shape(a)), with F_s the
    distribution function of Gamma(s, scale): x times the density of Gamma(s) is s * scale times that of Gamma(s + 1).
    """
    n_levels = len(levels)
    noted = len(entry.mistakes.found)
    shape = entry.number("shape", low=0)
    scale = entry.number("scale", low=0)
    cuts = entry.list_of("cuts", lambda v: is_number(v, 0, FINITE), "a number >= 0")
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


def _read_rule(table: Table, features: list[Feature], flags: list[str], means: Mapping[str, object]) -> Rule:
    when = _read_levels(table.table("when"), features)
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
    table.close()
    if not changes and not per:
        table.fail("does nothing: it needs set, add, multiply or per")
    return Rule(when, changes, per, tuple(scaled), source)


def _read_levels(table: Table, features: Iterable[Feature]) -> dict[str, tuple[Level, ...]]:
    """A condition on records: a level, or a list of levels, for each feature that it names."""
    by_name = {feature.name: feature for feature in features}
    condition: dict[str, tuple[Level, ...]] = {}
    for name, value in table.values.items():
        table.known.add(name)
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


def _check_order(table: Table, rules: tuple[Rule, ...]) -> None:
    """Every flag needs its features made before it: no circle."""
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


def _read_treatments(table: Table, outcomes: list[str]) -> dict[str, Treatment]:
    treatments: dict[str, Treatment] = {}
    for name, entry in table.subtables():
        title = entry.text("title", name)
        cost = entry.number("cost", 0.0)
        clears = entry.numbers("clears", outcomes, "flag", low=0, high=1)
        side_effects = entry.numbers("side_effects", outcomes, "flag", low=0, high=1)
        parts: list[str] = []
        if "combines" in entry:
            known = list(treatments)
            parts = entry.list_of("combines", known.__contains__, f"a treatment above: {', '.join(known)}")
            clears = complements(clears, *(treatments[part].clears for part in parts))
            side_effects = complements(side_effects, *(treatments[part].side_effects for part in parts))
        entry.close()
        treatments[name] = Treatment(title, cost, clears, side_effects, tuple(parts))
    if len(treatments) < 2:
        table.fail(f"at least two are needed, got {len(treatments)}")
    return treatments


def _read_death(table: Table, features: list[Feature], outcomes: list[str]) -> DeathModel:
    acute = _read_levels(table.table("acute"), features)
    baseline = table.number("baseline", 1.0, low=LEAST, high=MOST)
    hazard = table.numbers("hazard", outcomes, "outcome", low=0, high=MOST)
    risks = table.table("relative_risk")
    by_name = {feature.name: feature for feature in features}
    relative_risk: dict[str, tuple[float, ...]] = {}
    for name in risks.values:
        if name not in by_name:
            risks.fail(unknown("feature", name, list(by_name)), name)
            continue
        noted = len(risks.mistakes.found)
        factors = risks.list_of(name, lambda v: is_number(v, LEAST, MOST), f"a number in [{LEAST:g}, {MOST:g}]")
        if len(risks.mistakes.found) > noted or by_name[name].levels == UNREAD:
            continue
        if len(factors) != len(by_name[name].levels):
            risks.fail(f"must be one factor per level ({len(by_name[name].levels)}), got {len(factors)}", name)
        else:
            relative_risk[name] = tuple(float(factor) for factor in factors)
    table.close()
    return DeathModel(acute, baseline, hazard, relative_risk)

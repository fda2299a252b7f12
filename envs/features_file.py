"""Reading the features of a scenario file, and conditions on them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from scipy.special import gammainc

from envs.records import Feature, Level
from envs.scenario import DEATH
from envs.toml_reader import FINITE, Table, is_number, shown, unknown

SHARE_TOLERANCE = 1e-9
# Stands for levels that could not be read, so that nothing else is said about them.
UNREAD: tuple[Level, ...] = ("?", "??")


def read_features(
    table: Table,
) -> tuple[list[Feature], dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
    """The features, the shares of those that do not depend on others, and the means of those that have them."""
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


def read_condition(table: Table, features: Iterable[Feature]) -> dict[str, tuple[Level, ...]]:
    """Read a condition on records: a level, or a list of levels, for each feature that it names."""
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

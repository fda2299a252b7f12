"""Binning: what values a feature of a log may have, by its levels or by the cuts between bins of a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from envs.records import Feature
from envs.toml_reader import TomlTable, is_finite
from policies.levels import NO_VALUE, level_key, level_of

MISSING_BY_LEVEL = f'missing = true goes with cuts; among levels, "{NO_VALUE}" stands for missing values'


@dataclass(frozen=True)
class Binning:
    """What values a feature may have, declared and not read off the rows.

    Keys
    ----
    levels
        all values that are possible
    cuts
        rising numbers: the bins are below the first, between two, and from the last on
    missing : false
        with `cuts`: whether missing values are a level of their own, "NA". Among `levels`, `"NA"` stands for them

    Attributes
    ----------
    name : str
        The column.
    levels : tuple of str, int or float
        All values it may have, in order; 1, 1.0, true and "1" are the same. A level "NA" stands for missing values,
        which have no level otherwise.
    cuts : tuple of float
        In place of levels: rising numbers. Cuts (28, 34) make three half-open bins, "< 28", "28 to < 34" and "≥ 34".
    missing : bool
        With cuts: whether missing values have a level of their own, "NA", the last.

    Examples
    --------
    >>> Binning("age", cuts=(28, 34), missing=True).feature.levels
    ('< 28', '28 to < 34', '≥ 34', 'NA')
    """

    name: str
    levels: tuple[str | float, ...] = ()
    cuts: tuple[float, ...] = ()
    missing: bool = False

    def __post_init__(self) -> None:
        """Check the levels or the cuts."""
        if bool(self.levels) == bool(self.cuts):
            raise ValueError(f"feature {self.name!r} needs levels or cuts, and not both.")
        if self.missing and self.levels:
            raise ValueError(f"feature {self.name!r}: {MISSING_BY_LEVEL}.")
        for position, reason in levels_wrong(self.levels) if self.levels else cuts_wrong(self.cuts):
            raise ValueError(f"feature {self.name!r}: {(self.levels or self.cuts)[position]!r} {reason}.")
        if len(self.levels) == 1:
            raise ValueError(f"feature {self.name!r} needs at least two levels, got {list(self.levels)!r}.")

    @cached_property
    def feature(self) -> Feature:
        """The feature of a record: what cells are its levels, `policies.levels` says. Bins are named by their ends."""
        if self.levels:
            levels = [level if isinstance(level, str) else level_of(level_key(level)) for level in self.levels]
            return Feature(self.name, tuple(levels))
        ends = [str(level_of(float(cut))) for cut in self.cuts]
        bins = [f"< {ends[0]}", *(f"{low} to < {high}" for low, high in pairwise(ends)), f"≥ {ends[-1]}"]
        return Feature(self.name, (*bins, *([NO_VALUE] if self.missing else [])), cuts=self.cuts)


def levels_wrong(levels: Sequence[str | float]) -> list[tuple[int, str]]:
    """The positions of levels that cannot be used, each with the reason."""
    found: list[tuple[int, str]] = []
    seen: dict[object, object] = {}
    for position, level in enumerate(levels):
        key = level_key(level)
        if isinstance(level, str) and not level.strip():
            found.append((position, 'is empty: write "NA" for missing values'))
        elif key in seen:
            found.append((position, f"is the same level as {seen[key]!r}"))
        seen.setdefault(key, level)
    return found


def cuts_wrong(cuts: Sequence[float]) -> list[tuple[int, str]]:
    """The positions of cuts that cannot be used, each with the reason."""
    found = [(position, "must be finite") for position, cut in enumerate(cuts) if not math.isfinite(cut)]
    found += [
        (position, f"must be greater than the cut before, {before!r}")
        for position, (before, cut) in enumerate(pairwise(cuts), start=1)
        if not cut > before
    ]
    return found


# Stands for a feature whose declaration cannot be used, so that its name is known.
PLACEHOLDER = (0, 1)


def read_binning(name: str, table: TomlTable) -> Binning:
    """One feature of a study's table [data.features]; a placeholder if something is wrong with it."""
    if ("levels" in table) == ("cuts" in table):
        table.fail("must be { levels = [...] } or { cuts = [...] }")
    levels = table.list_of("levels", _is_level, "a number or text in quotes", [])
    cuts = table.list_of("cuts", is_finite, "a finite number", [])
    missing = table.flag("missing", default=False)
    if missing and "levels" in table:
        table.fail(MISSING_BY_LEVEL, "missing")
    if not table.wrong():
        for key, values, wrong in (("levels", levels, levels_wrong(levels)), ("cuts", cuts, cuts_wrong(cuts))):
            for position, reason in wrong:
                table.fail(f"{values[position]!r} {reason}", key, position)
        if len(levels) == 1:
            table.fail("needs at least two levels", "levels")
    table.close()
    return Binning(name, PLACEHOLDER) if table.wrong() else Binning(name, tuple(levels), tuple(cuts), missing)


def _is_level(value: object) -> bool:
    return isinstance(value, str) or is_finite(value)

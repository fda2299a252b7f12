"""The features of a log as a study declares them: by their levels, or by the cuts between bins of a number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from envs.records import Feature
from envs.toml_reader import TomlTable, is_finite
from policies.levels import NO_VALUE, level_key, level_of

LEVEL_WANTED = "a number or text in quotes"


def binned(name: str, cuts: Sequence[float], *, missing: bool = False) -> Feature:
    """A feature whose levels are bins of a number, named by their ends.

    Parameters
    ----------
    name : str
        The column.
    cuts : sequence of float
        Rising numbers. Cuts (28, 34) make three half-open bins, "< 28", "28 to < 34" and "≥ 34".
    missing : bool
        with `cuts`: `true` makes missing values a level "NA". In `levels`, `"NA"` stands for them

    Examples
    --------
    >>> binned("age", (28, 34), missing=True).levels
    ('< 28', '28 to < 34', '≥ 34', 'NA')
    """
    ends = [str(level_of(float(cut))) for cut in cuts]
    bins = [f"< {ends[0]}", *(f"{low} to < {high}" for low, high in pairwise(ends)), f"≥ {ends[-1]}"]
    return Feature(name, (*bins, *([NO_VALUE] if missing else [])), cuts=tuple(cuts))


def read_feature(name: str, table: TomlTable) -> Feature:
    """One feature of a study's table [data.features]: what cells are its levels, `policies.levels` says.

    If something is wrong with it, its name is known all the same.

    Keys
    ----
    levels
        all possible values
    cuts
        rising numbers: the bins are below the first, between two, and from the last on
    missing : false
        with `cuts`: `true` makes missing values a level "NA". In `levels`, `"NA"` stands for them
    """
    if ("levels" in table) == ("cuts" in table):
        table.fail("must be { levels = [...] } or { cuts = [...] }")
    levels = table.list_of("levels", is_level, LEVEL_WANTED, [])
    cuts = table.list_of("cuts", is_finite, "a finite number", [])
    missing = table.flag("missing", default=False)
    if missing and "levels" in table:
        table.fail(f'missing = true goes with cuts; among levels, "{NO_VALUE}" stands for missing values', "missing")
    if not table.wrong():
        _check_levels(table, levels)
        for position, (before, cut) in enumerate(pairwise(cuts), start=1):
            if not cut > before:
                table.fail(f"{cut!r} must be greater than the cut before, {before!r}", "cuts", position)
    table.close()
    if table.wrong():
        return Feature(name)
    if cuts:
        return binned(name, cuts, missing=missing)
    return Feature(name, tuple(level if isinstance(level, str) else level_of(level_key(level)) for level in levels))


def _check_levels(table: TomlTable, levels: Sequence[str | float]) -> None:
    """Note levels that are blank, or the same; 1, 1.0 and "1" are."""
    first: dict[object, object] = {}
    for position, level in enumerate(levels):
        key = level_key(level)
        if isinstance(level, str) and not level.strip():
            table.fail(f'{level!r} is empty: write "NA" for missing values', "levels", position)
        elif key in first:
            table.fail(f"{level!r} is the same level as {first[key]!r}", "levels", position)
        first.setdefault(key, level)
    if len(levels) == 1:
        table.fail("needs at least two levels", "levels")


def is_level(value: object) -> bool:
    """Whether a value of TOML can be what a cell holds."""
    return isinstance(value, str) or is_finite(value)

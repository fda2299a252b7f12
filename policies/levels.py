"""What a level is: the one rule by which a cell of a table is a level of a feature, for all commands and functions.

A cell is a level if both have the same key (`level_key`):

- numbers and truth values have their value, also as text: 1, 1.0, True, "1", "1.0" and "TRUE" are one; "007" is 7;
- other text is itself, without margins and without quotes around it; capitals count;
- what is missing (None, NaN, an empty cell, a word such as "NA", or a value of which the feature says that it means
  unknown) is the level "NA" of a feature that has one, and no level of others.

Where a feature has cuts, a finite number is the bin that it falls into, and the name of a bin is that bin.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from policies.arrays import IntArray

T = TypeVar("T")
LevelKey: TypeAlias = float | str
# What a file may write where it has no value; compared in lower case.
MISSING_WORDS = ("", "na", "n/a", "nan", "null", "<na>", "#n/a", ".")
MISSING: LevelKey = ""
# The level of missing values.
NO_VALUE = "NA"
# A feature's levels that a message lists.
LEVELS_SHOWN = 12

# float() would also read inf, nan, 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = {"true": 1.0, "false": 0.0, **dict.fromkeys(MISSING_WORDS, MISSING)}
# From here on not all whole numbers are floats.
_LARGEST_WHOLE = 2**53


class FeatureLevels(Protocol):
    """What is known of a feature's values."""

    @property
    def name(self) -> str:
        """The column of a table."""

    @property
    def levels(self) -> Sequence[str | int]:
        """All that are possible, in order."""

    @property
    def cuts(self) -> Sequence[float]:
        """Rising numbers that part the bins, where the levels are bins: each begins at a cut. Else empty."""

    @property
    def unknown(self) -> Sequence[str]:
        """Values that mean unknown: they count as missing."""


class Levels(NamedTuple):
    """The levels of a column: a feature of which nothing else is known."""

    name: str
    levels: Sequence[str | int]
    cuts: Sequence[float] = ()
    unknown: Sequence[str] = ()


def level_key(value: object) -> LevelKey:
    """What a value is compared by: a number or a text; `MISSING` where there is no value.

    Examples
    --------
    >>> level_key(1) == level_key("1.0") == level_key(True) == level_key("TRUE")
    True
    >>> level_key("north "), level_key("NA")
    ('north', '')
    """
    if value is None:
        return MISSING
    if isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return float(value)
    text = str(value).strip()
    while len(text) > 1 and text[0] == text[-1] == '"':  # behind a space, CSV takes them for a part of the text
        text = text[1:-1].replace('""', '"').strip()
    word = text.lower()  # of a float NaN, too
    if word in _WORDS:
        return _WORDS[word]
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


def level_of(key: LevelKey) -> str | int:
    """A key as a level: whole numbers are int, other numbers text.

    Examples
    --------
    >>> level_of(1.0), level_of(0.5), level_of("north")
    (1, '0.5', 'north')
    """
    if isinstance(key, str):
        return key
    return int(key) if key.is_integer() and abs(key) < _LARGEST_WHOLE else repr(key)


def repeated(values: Iterable[T], key: Callable[[T], object] = level_key) -> Iterator[tuple[int, T, T]]:
    """Each value with the key of an earlier one: its position, the value itself, and the first that has the key.

    Examples
    --------
    >>> list(repeated(["1", "a", "1.0", "a "]))
    [(2, '1.0', '1'), (3, 'a ', 'a')]
    """
    first: dict[object, T] = {}
    for position, value in enumerate(values):
        if key(value) in first:
            yield position, value, first[key(value)]
        first.setdefault(key(value), value)


def sorted_keys(keys: Collection[LevelKey]) -> list[LevelKey]:
    """Numbers in order, then texts in order."""
    return sorted(keys, key=lambda key: (isinstance(key, str), key))


def coded(column: Any) -> tuple[IntArray, list[LevelKey]]:
    """The distinct keys of a pandas Series in the order of their rows, and the position of each row's among them.

    `MISSING` is one of them if a value is missing. ValueError for a column of lists, or of anything else that has
    several values in a row.
    """
    import pandas as pd  # noqa: PLC0415 - half a second that most uses of this package do not need

    try:
        positions, values = pd.factorize(column)
    except TypeError:
        raise ValueError(f"{column.name}: must hold one number, text, truth value or time in each row.") from None
    keys: dict[LevelKey, int] = {}
    key_positions = [keys.setdefault(level_key(value), len(keys)) for value in values]
    if (positions < 0).any():
        # factorize gives -1 to what is missing: the last entry.
        key_positions.append(keys.setdefault(MISSING, len(keys)))
    return np.array(key_positions, dtype=np.intp)[positions], list(keys)


def absent_keys(feature: FeatureLevels) -> frozenset[LevelKey]:
    """The keys of cells in which a feature has no value: missing ones, and those of values that mean unknown."""
    return frozenset([MISSING, *map(level_key, feature.unknown)])


def codes_of_keys(feature: FeatureLevels, keys: Sequence[LevelKey]) -> IntArray:
    """The position of each key among the levels, (n_keys,); -1 for a key that is none of them.

    ValueError for levels of which two are the same.

    Examples
    --------
    >>> age = Levels("age", ("< 28", "28 to < 34", "≥ 34", "NA"), cuts=(28, 34))
    >>> codes_of_keys(age, [27.9, 28.0, 70.0, "≥ 34", "old", MISSING]).tolist()
    [0, 1, 2, 2, -1, 3]
    >>> codes_of_keys(age._replace(unknown=("999", "?")), [70.0, 999.0, "?"]).tolist()
    [2, 3, 3]
    """
    codes = {level_key(level): code for code, level in enumerate(feature.levels)}
    if len(codes) < len(feature.levels):
        levels = ", ".join(map(str, feature.levels))
        raise ValueError(f"{feature.name}: two of the levels {levels} are the same: 1, 1.0, true and '1' are one level")
    absent = absent_keys(feature)

    def code(key: LevelKey) -> int:
        if key in absent:
            return codes.get(MISSING, -1)
        return bisect_right(feature.cuts, key) if feature.cuts and isinstance(key, float) else codes.get(key, -1)

    return np.array(list(map(code, keys)), dtype=np.intp)


def level_codes(feature: FeatureLevels, column: Any) -> IntArray:
    """The position of each value of a pandas Series among the levels, (n_rows,); -1 for a value that is none of them.

    ValueError for levels of which two are the same.
    """
    positions, keys = coded(column)
    return codes_of_keys(feature, keys)[positions]


def level_wanted(feature: FeatureLevels) -> str:
    """What a value must be, in words.

    Examples
    --------
    >>> level_wanted(Levels("sex", (0, 1))), level_wanted(Levels("age", ("< 28", "≥ 28"), cuts=(28,)))
    ('must be one of 0, 1', 'must be a finite number')
    """
    if feature.cuts:
        return f"must be a finite number{' or missing' if NO_VALUE in feature.levels else ''}"
    rest = len(feature.levels) - LEVELS_SHOWN
    names = ", ".join(map(str, feature.levels[:LEVELS_SHOWN]))
    return f"must be one of {names}" + (f" and {rest} more" if rest > 0 else "")


def missing_hint(feature: FeatureLevels) -> str:
    """What to write where values of a feature are missing; "" where they have a level.

    Examples
    --------
    >>> missing_hint(Levels("sex", (0, 1))), missing_hint(Levels("sex", (0, 1, "NA")))
    ('; a level NA takes missing values', '')
    """
    if NO_VALUE in feature.levels:
        return ""
    declared = " (missing = true beside the cuts of a study)" if feature.cuts else ""
    return f"; a level {NO_VALUE}{declared} takes missing values"

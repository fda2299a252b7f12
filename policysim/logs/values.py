"""When two cells hold the same value, whatever kind of file they came from."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from envs.records import Level

Key: TypeAlias = float | str

# What a file may write where it has no value; compared in lower case.
MISSING_WORDS = ("", "na", "n/a", "nan", "null", "<na>", "#n/a", ".")
MISSING: Key = ""

# float() would also read inf, nan, 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = {"true": 1.0, "false": 0.0, **dict.fromkeys(MISSING_WORDS, MISSING)}
# From here on not all whole numbers are floats.
_LARGEST_WHOLE = 2**53


def level_key(value: object) -> Key:
    """What a value is compared by: a number for numbers and truth values, also as text; else the text without margins.

    Examples
    --------
    >>> level_key(1) == level_key("1.0") == level_key(True) == level_key("TRUE")
    True
    >>> level_key("north "), level_key("NA")
    ('north', '')
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    word = text.lower()  # of a float NaN, too
    if word in _WORDS:
        return _WORDS[word]
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


def level_of(key: Key) -> Level:
    """A key as a level: whole numbers are int, other numbers text.

    Examples
    --------
    >>> level_of(1.0), level_of(0.5), level_of("north")
    (1, '0.5', 'north')
    """
    if isinstance(key, str):
        return key
    return int(key) if key.is_integer() and abs(key) < _LARGEST_WHOLE else repr(key)


def sorted_keys(keys: set[Key]) -> list[Key]:
    """Numbers in order, then texts in order."""
    return sorted(keys, key=lambda key: (isinstance(key, str), key))

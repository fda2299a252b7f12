"""The options that change the numbers of a question, as a manifest keeps them: names, and values of one type each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from envs.toml_reader import is_number, shown, unknown
from policysim.question import MOST_DAYS

INFINITY = "inf"  # as JSON files have it
# A manifest may be a stranger's: longer lists, and larger numbers, would only take time.
MOST_ENTRIES, MOST_BITS = 1_000, 128


@dataclass(frozen=True)
class Option:
    """One option: what its value must be, in words, and whether a value is that."""

    wanted: str
    fits: Callable[[Any], bool]


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _epsilons(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(item == INFINITY or is_number(item, 0) for item in value)


def _bounds(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(most, str) or is_number(most, 0) for most in value.values())


_TEXTS = Option("a list of texts", _texts)
_EPSILONS = Option(f'a list of numbers >= 0 or "{INFINITY}"', _epsilons)
_FLAG = Option("true or false", lambda value: isinstance(value, bool))
KEYS = {
    "adjacency": Option("text", lambda value: isinstance(value, str)),
    "sensitive": _TEXTS,
    "epsilons": _EPSILONS,
    "policies": Option("a list of at least one text", lambda value: _texts(value) and value != []),
    "by": _TEXTS,
    "seed": Option("a whole number >= 0", lambda value: type(value) is int and value >= 0),
    "at_most": Option("a table of outcomes and the most of each, a number >= 0 or text", _bounds),
    "price_list": _FLAG,
    "horizon": Option(
        f"a whole number from 1 to {MOST_DAYS}", lambda value: type(value) is int and 1 <= value <= MOST_DAYS
    ),
    "total_epsilons": _EPSILONS,
    "delta": Option("a number in [0, 1)", lambda value: is_number(value, 0, math.nextafter(1, 0))),
    "length_public": _FLAG,
    "counted": _FLAG,
}


def read_options(values: dict[str, Any], takes: Sequence[str]) -> dict[str, Any]:
    """The options of a question that takes these; infinity is a number again.

    Raises
    ------
    ValueError
        Names the first key that the question does not take, or whose value is of another type.

    Examples
    --------
    >>> read_options({"epsilons": [1, "inf"]}, ["epsilons"])
    {'epsilons': [1, inf]}
    >>> read_options({"workers": 4}, ["by", "seed"])
    Traceback (most recent call last):
    ValueError: unknown key 'workers'; known: by, seed
    """
    for name, value in values.items():
        if name not in takes:
            raise ValueError(unknown("key", name[:80], takes))
        if not KEYS[name].fits(value):
            raise ValueError(f"{name} must be {KEYS[name].wanted}, got {shown(value)}")
        if isinstance(value, list) and len(value) > MOST_ENTRIES:
            raise ValueError(f"{name} must have at most {MOST_ENTRIES:,} entries, got {len(value):,}")
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise ValueError(f"{name} must be below 2^{MOST_BITS}, got a number of {value.bit_length():,} bits")
    return {
        name: [math.inf if item == INFINITY else item for item in value] if KEYS[name] is _EPSILONS else value
        for name, value in values.items()
    }

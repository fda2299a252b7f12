"""The numbers that a screen prints, looked for among those of its findings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from policysim import numbers
from policysim.report.findings import Findings
from policysim.report.screen import Screen

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[−-]?\d+)?")
# A name with digits; digits alone are none: "1" is in "1,000".
NAME = re.compile(r"\d.*[^\W\d]|[^\W\d].*\d")
# Constants of rules, not of a run: a toss of a coin and certainty in per cent, a verdict's share (9 of 10 versions), an
# interval's (95), the benefit that is to be kept (80), and what is counted among (100).
CONSTANTS = {"50", "100", "9", "10", "95", "80"}


def texts_of(screen: Screen) -> Iterator[str]:
    """All its texts, whole: not as they are broken into lines."""
    yield from _texts([getattr(screen, field.name) for field in fields(screen) if field.name != "warnings"])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def unknown_numbers(screen: Screen, findings: Findings, *beside: Any) -> list[tuple[str, str]]:
    """Each printed number that is none of the findings, formatted, with its text; names are read over.

    `beside` holds what names the parts of the problem, whose texts may have digits.
    """
    values, names = set(), {screen.title}
    for value in (findings, *beside):
        _collect(value, values, names)
    count = findings.details.patients if hasattr(findings.details, "patients") else 1
    formatted = {text for value in values for text in _formatted(value, count)} | CONSTANTS
    named = re.compile(
        "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if NAME.search(name)) or r"(?!)"
    )
    found = []
    for text in texts_of(screen):
        found += [(each, text) for each in NUMBER.findall(named.sub("", text)) if each.rstrip(",") not in formatted]
    return found


def _collect(value: Any, values: set[float], names: set[str]) -> None:
    """The numbers and the texts within a value."""
    if isinstance(value, str):
        names |= {value, value.replace("_", " "), value[:1].upper() + value[1:]}
    elif isinstance(value, bool | np.bool_) or value is None:
        return
    elif isinstance(value, int | float | np.number):
        values.add(float(value))
    elif isinstance(value, pd.DataFrame):
        for name in value:
            _collect(str(name), values, names)
            for each in value[name].unique():
                _collect(each, values, names)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _collect(key, values, names)
            _collect(each, values, names)
    elif isinstance(value, list | tuple):
        for each in value:
            _collect(each, values, names)
    elif is_dataclass(value):
        for field in fields(value):
            _collect(getattr(value, field.name), values, names)


def _formatted(value: float, count: int) -> Iterator[str]:
    """A number in the ways in which numbers are printed: as it is, of 100, and among so many patients."""
    if not math.isfinite(value):
        return
    size = abs(value)
    made = [numbers.plain(size), numbers.decimal(size), numbers.rounded_weight(size)]
    made += [numbers.rounded_up(size, digits) for digits in (2, 3)] + [numbers.rounded_up(100 * size)]
    for number in {size, 100 * size, count * size}:
        made += [numbers.rounded(number), numbers.about(number)]
        made += [each(number, places) for places in range(3) for each in (numbers.to_places, numbers.lost)]
    made += [f"{numbers.steady(100 * size):.{places}f}" for places in range(5)]
    yield from (text.replace("−", "-") if "e" in text else text for text in made)
    yield from made

"""What two manifests say about the same study, and where they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policysim.reproduce.tables import LAST_DIGIT, NEGLIGIBLE

# What is compared elsewhere: the libraries and the scenario's file as inputs, the files one by one; the command is run.
APART = ("versions", "scenario_sha256", "results", "command")
MISSING = "nothing"


@dataclass(frozen=True)
class Statement:
    """One thing that a manifest says and the run does not: `key` has dots between levels."""

    key: str
    old: str
    new: str


def statements(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Statement]:
    """Where two manifests differ, in all but `APART`; numbers agree as those of tables do.

    Examples
    --------
    >>> statements({"study": {"name": "ward"}, "epsilon": 2.0}, {"study": {"name": "ward"}, "epsilon": 1.0})
    [Statement(key='epsilon', old='2.0', new='1.0')]
    """
    kept = [{name: value for name, value in document.items() if name not in APART} for document in (old, new)]
    return list(_unequal("", *kept))


def _unequal(key: str, old: Any, new: Any) -> Iterator[Statement]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from _unequal(f"{key}.{name}" if key else name, old.get(name, MISSING), new.get(name, MISSING))
    elif not _equal(old, new):
        yield Statement(key, str(old), str(new))


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_equal, old, new))
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=LAST_DIGIT, abs_tol=NEGLIGIBLE)
    return bool(type(old) is type(new) and old == new)

"""Names, texts, numbers and lists as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from envs.records import Level
from policies.levels import level_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(text: str) -> str:
    r"""A key, or text in a comment: bare if that can be, else quoted.

    Examples
    --------
    >>> print(toml_text("age"), toml_text("CD4 count"), toml_text('a"b\n'))
    age "CD4 count" "a\"b\n"
    """
    return text if _BARE.fullmatch(text) else toml_string(text)


def toml_string(text: str) -> str:
    """A basic string; all that cannot be printed is escaped."""
    # JSON escapes what TOML does, but for some signs that break lines elsewhere.
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in json.dumps(text, ensure_ascii=False))


def toml_number(value: float) -> str:
    """A number; whole ones without a point.

    Examples
    --------
    >>> toml_number(28.0), toml_number(0.5), toml_number(1e-7)
    ('28', '0.5', '1e-07')
    """
    return str(level_of(float(value)))


def toml_list(values: Iterable[Level | float]) -> str:
    """A list of numbers and texts."""
    return "[" + ", ".join(toml_string(v) if isinstance(v, str) else toml_number(v) for v in values) + "]"

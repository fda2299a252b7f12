"""Names, texts, numbers and lists as TOML."""

from __future__ import annotations

import json
import re

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


def toml_value(value: object) -> str:
    """A text, a number, a truth value, a list, or an inline table.

    Examples
    --------
    >>> print(toml_value({"levels": ["a", 2.0], "CD4 count": True}))
    { levels = ["a", 2], "CD4 count" = true }
    """
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_text(str(key))} = {toml_value(item)}' for key, item in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return toml_string(value) if isinstance(value, str) else toml_number(value)  # type: ignore[arg-type]


def toml_safe(text: str) -> str:
    """Text for a comment: what cannot be printed is escaped."""
    return text if text.isprintable() else toml_string(text)

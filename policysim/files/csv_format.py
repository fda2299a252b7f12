"""What a user states of a table in text, where its beginning leaves that open (`dialect`): keys and options.

Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SEPARATORS = COMMA, SEMICOLON, TAB, BAR, SPACE = (",", ";", "\t", "|", " ")
DECIMALS = (".", ",")


@dataclass(frozen=True)
class CsvFormat:
    """What a user states of a table in text; what is "" is recognised.

    Attributes
    ----------
    header : bool
        Whether the first line names the columns; else their names are their places, "0" first.
    separator : str
        One of `SEPARATORS`; a space stands for any number of spaces and tabs.
    decimal : str
        "." or ",".
    encoding : str
        A name that Python knows, such as "latin-1".

    Raises
    ------
    ValueError
        For anything else.
    """

    header: bool = True
    separator: str = ""
    decimal: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        """Check what is stated."""
        for key, check in CHECKS.items():
            if value := getattr(self, key):
                check(value)

    @property
    def keys(self) -> dict[str, str]:
        """What is stated, by its key."""
        return {key: value for key in CHECKS if (value := getattr(self, key))}

    @property
    def options(self) -> list[str]:
        """The same on a command line."""
        words = {TAB: "tab", SPACE: "space"}
        stated = [word for key, value in self.keys.items() for word in (f"--{key}", words.get(value, value))]
        return [*([] if self.header else ["--no-header"]), *stated]


def check_separator(value: str) -> str:
    """ValueError for what cannot stand between columns."""
    if value not in SEPARATORS:
        raise ValueError(f'must be one of "," ";" "|", a tab or a space, got {value!r}')
    return value


def check_decimal(value: str) -> str:
    """ValueError for what is no decimal sign."""
    if value not in DECIMALS:
        raise ValueError(f'must be "." or ",", got {value!r}')
    return value


def check_encoding(value: str) -> str:
    """ValueError for an encoding of text that is not known."""
    try:
        "".encode(value)
        return value
    except (LookupError, UnicodeError, ValueError):
        raise ValueError(f'must be an encoding of text such as "latin-1" or "utf-16", got {value!r}') from None


CHECKS: dict[str, Callable[[str], str]] = {
    "separator": check_separator,
    "decimal": check_decimal,
    "encoding": check_encoding,
}
RECOGNISED = CsvFormat()


def to_state(key: str, *values: str) -> str:
    r"""How to state what cannot be recognised, for messages.

    Examples
    --------
    >>> to_state("separator", ",", "\t")
    'state separator = "," or "\\t" (in [data] or [cohort] of the study, or as --separator)'
    """
    known = {TAB: r'"\t"'}
    said = " or ".join(known.get(value, f'"{value}"') for value in values)
    return f"state {key} = {said} (in [data] or [cohort] of the study, or as --{key})"

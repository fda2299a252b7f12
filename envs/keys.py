"""The keys of a file, declared once: what each holds, its default, and a line about it.

Declarations are lines of TOML beside the readers (`scenario_keys.toml`, for one). Readers take values by them
(`Table[name]`), unknown keys are refused by them, and the tables of docs/study-file.md are made of them (`rows`). A
list of our own, and no library of data models: a mistake must name its line in the file, and what a key allows often
depends on what the file says elsewhere (`Table.names`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from envs.toml_reader import FINITE, Table, is_number, number_wanted, unknown

# What entries of a list must be, in words, and when they are it.
ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "names": ("text in quotes", lambda value: isinstance(value, str)),
    "words": ("text in quotes", lambda value: isinstance(value, str) and bool(value.strip())),
    "levels": ("text or whole numbers", lambda value: type(value) in (str, int)),
    "values": ("a number or text in quotes", lambda value: isinstance(value, str) or is_number(value, -FINITE, FINITE)),
    "finite": ("a finite number", lambda value: is_number(value, -FINITE, FINITE)),
    "rewards": (f"a finite number within ±{FINITE:g}", lambda value: is_number(value, -FINITE, FINITE)),
}


@dataclass(frozen=True)
class Key:
    """One key of a table.

    Attributes
    ----------
    name : str
        As the file has it; in capitals where the file chooses it, with "[]" for an array of tables.
    holds : str
        What it holds: one of `READERS`, or "" for what its reader takes in a way of its own.
    help : str
        What it is, in a line of Markdown.
    default : object
        What it is where the file does not have it; None if the file must.
    said : str or None
        The default in words, where the value does not say it.
    low, high : float
        What a number must be within.
    interval : bool
        Whether a number may be an estimate, `{ value = 0.5, interval = [0.4, 0.6] }`: its interval goes to
        `Table.names["intervals"]`.
    of : str
        What the entries of a list must be: one of `ENTRIES`, or a number within the bounds.
    among, kind : str
        Of names: what they are chosen among, `Table.names[among]`, which is None where that could not be read; and what
        one of them is called.
    beside, unless : str
        Another key: only beside it, or only where it is not, is this one a key.
    keys : tuple of Key
        What is declared below it.
    """

    name: str
    holds: str = ""
    help: str = ""
    default: Any = None
    said: str | None = None
    low: float = -FINITE
    high: float = FINITE
    interval: bool = False
    of: str = ""
    among: str = ""
    kind: str = ""
    beside: str = ""
    unless: str = ""
    keys: tuple[Key, ...] = ()

    @property
    def chosen(self) -> bool:
        """Whether the file chooses the name."""
        return self.name.isupper()

    def belongs(self, table: Table) -> bool:
        """Whether it is a key of a table, beside what the file has there."""
        return (not self.beside or self.beside in table) and self.unless not in table

    def read(self, table: Table) -> Any:
        """The value that a table has for it, checked; what is wrong is noted in the table."""
        return READERS[self.holds](self, table)

    @property
    def limits(self) -> dict[str, Any]:
        """The bounds of a number, as `Table.number` takes them."""
        return {"low": self.low, "high": self.high}

    @property
    def default_in_words(self) -> str:
        """As the page has it."""
        if self.said is not None or self.default is None:
            return self.said if self.said is not None else "" if self.chosen else "required"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return f'"{self.default}"' if isinstance(self.default, str) else str(self.default)


def _column(key: Key, table: Table) -> str:
    if table.values.get(key.name) == "":
        table.fail("must not be empty", key.name)
    return table.text(key.name, key.default)


def _choice(key: Key, table: Table) -> str:
    word = table.text(key.name, key.default)
    if word not in table.names[key.among]:
        table.fail(unknown(key.name, word, table.names[key.among]), key.name)
    return word


def _number(key: Key, table: Table) -> float:
    intervals = table.names["intervals"] if key.interval else None
    return table.number(key.name, key.default, intervals=intervals, **key.limits)


def _numbers(key: Key, table: Table) -> dict[str, float]:
    intervals = table.names["intervals"] if key.interval else None
    return table.numbers(key.name, table.names[key.among], key.kind, intervals=intervals, **key.limits)


def _list(key: Key, table: Table) -> list[Any]:
    number = number_wanted(key.low, key.high), lambda value: is_number(value, key.low, key.high)
    wanted, valid = ENTRIES[key.of] if key.of else number
    return table.list_of(key.name, valid, wanted, key.default)


def _names(key: Key, table: Table) -> tuple[str, ...]:
    wanted, valid = ENTRIES["names"]
    names, among = table.list_of(key.name, valid, wanted, []), table.names[key.among]
    for position, name in enumerate(names):
        if among is not None and name not in among:
            table.fail(unknown(key.kind, name, among), key.name, position)
    return tuple(dict.fromkeys(names))


Reader: TypeAlias = Callable[[Key, Table], Any]
READERS: Mapping[str, Reader] = {
    "text": lambda key, table: table.text(key.name, key.default),
    "column": _column,
    "choice": _choice,
    "whole": lambda key, table: table.integer(key.name, key.default),
    "flag": lambda key, table: table.flag(key.name, default=key.default),
    "number": _number,
    "numbers": _numbers,
    "list": _list,
    "names": _names,
    "section": lambda key, table: table.table(key.name),
    "sections": lambda key, table: list(table.tables(key.name)),
}


def declared(path: Path) -> tuple[Key, ...]:
    """The keys that a file of declarations has, each with those below it."""
    lines = tomllib.loads(path.read_text(encoding="utf-8"))

    def below(above: str) -> tuple[Key, ...]:
        names = {name: name.removeprefix(above) for name in lines if name.startswith(above)}
        return tuple(
            Key(rest.removesuffix("[]"), **lines[name], keys=below(f"{name}."))
            for name, rest in names.items()
            if "." not in rest
        )

    return below("")


def with_keys(keys: tuple[Key, ...], name: str, below: tuple[Key, ...]) -> tuple[Key, ...]:
    """The same keys, with others declared below the one of that name."""
    return tuple(replace(key, keys=below) if key.name == name else key for key in keys)


def rows(keys: tuple[Key, ...], above: str = "") -> Iterator[str]:
    """The rows of a Markdown table of keys: the key, its default, what it is; none of a key without help."""
    for key in keys:
        name = f"{above}{key.name}{'[]' if key.holds == 'sections' else ''}"
        if key.help:
            yield f"| `{name}` | {key.default_in_words} | {key.help} |".replace("|  |", "| |")
        yield from rows(key.keys, f"{name}.")

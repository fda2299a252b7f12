"""Reading TOML that people write: every mistake is collected, with its line, before any is reported.

tomllib gives values without positions, so the lines are looked up with a second parser, and only if something is wrong.

The keys of a file are declared once: what each holds, its default, and a line about it. Declarations are lines of TOML
beside the readers (`scenario_keys.toml`, for one). Readers take values by them (`Table[name]`), unknown keys are
refused by them, and the tables of docs/study-file.md are made of them (`rows`). A list of our own, and no library of
data models: a mistake must name its line in the file, and what a key allows often depends on what the file says
elsewhere (`Table.names`).
"""

from __future__ import annotations

import errno
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from envs.toml_lines import KeyPath, line_numbers

T = TypeVar("T")
# By the dotted key of a number, what it lies between with 95 %.
Intervals: TypeAlias = dict[str, tuple[float, float]]
# What counts as finite in files and logs: the squares of larger numbers, and of their squares, soon are not.
FINITE = 1e50
# Controls, line ends, signs that turn the direction of text, and signs that nobody sees: with them a name passes for
# another. Joiners are needed within words of some scripts and in emoji, so they may follow what is not Latin.
UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    r"|(?<![\u0300-\u200a\u2010-\U0010ffff])[\u200c\u200d]"
)
# Names that a message lists.
MOST_KNOWN = 50
# Keys of prose, which may have lines.
PROSE = ("source",)


class InputFileError(ValueError):
    """A file that cannot be used; str() is one `file:line: key: message` line per mistake.

    `located` says whether the lines name their file (a name that no file has is only a message).
    """

    def __init__(self, message: str, *, located: bool = True) -> None:
        super().__init__(message)
        self.located = located


@dataclass
class Mistakes:
    """The mistakes found in one file so far."""

    path: Path
    text: str
    found: list[tuple[KeyPath, str]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def add(self, key: KeyPath, message: str) -> None:
        """Note a mistake at a key."""
        self.found.append((key, message))

    def merge(self, error: InputFileError, key: str) -> None:
        """Note the mistakes of another file that this one names at `key`."""
        if error.located:
            self.elsewhere.extend(str(error).splitlines())
        else:
            self.add((key,), str(error))

    def raise_if_any(self) -> None:
        """Raise InputFileError with all of them, in the order of their lines."""
        if not self.found and not self.elsewhere:
            return
        lines = line_numbers(self.text)
        placed = set()
        for key, message in self.found:
            known = key  # or the nearest above it that the file has
            while known and known not in lines:
                known = known[:-1]
            placed.add((lines.get(known, 1), dotted(key), message))
        name = self.path.as_posix()
        here = [
            one_line(f"{name}:{line}: {f'{where}: ' if where else ''}{message}")
            for line, where, message in sorted(placed)
        ]
        raise InputFileError("\n".join([*here, *self.elsewhere]))


@dataclass
class TomlTable:
    """One table of a TOML file; each reader takes a key, checks it and gives back a usable value.

    A value that is wrong is noted in `mistakes` and replaced by the default, so that reading goes on. `keys` are those
    that are declared for the table; `names` holds what declared keys choose among, and is shared by all
    tables of a file.
    """

    values: dict[str, Any]
    key: KeyPath
    mistakes: Mistakes
    known: set[str] = field(default_factory=set)
    keys: Sequence[TomlKey] = ()
    names: dict[str, Any] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        """Whether the file has the key."""
        return name in self.values

    def __getitem__(self, name: str) -> Any:
        """The value of a declared key."""
        key = self.declared(name)
        return READERS[key.holds](key, self)

    def get(self, name: str, default: Any) -> Any:
        """The value of a declared key whose default depends on something else."""
        return self[name] if name in self.values else default

    def declared(self, name: str) -> TomlKey:
        """What is declared of a key; the one in capitals is of those that the file chooses."""
        return next(key for key in self.keys if key.name == name or key.name.isupper())

    def fail(self, message: str, *key: str | int) -> None:
        """Note a mistake below this table."""
        self.mistakes.add((*self.key, *key), message)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required if there is no default."""
        return self._read(name, default, "", lambda value: isinstance(value, str), "text in quotes")

    def number(
        self,
        name: str,
        default: float | None = None,
        *,
        low: float = -FINITE,
        high: float = FINITE,
        intervals: Intervals | None = None,
    ) -> float:
        """A number within [low, high], not NaN, by default finite; required if there is no default.

        With `intervals` it may be an `estimate`, whose interval is noted there.
        """
        stated = self.values.get(name)
        if intervals is not None and isinstance(stated, dict) and {"value", "interval"} & stated.keys():
            return self.table(name).estimate(intervals, low=low, high=high)
        too_large = high >= FINITE and is_number(stated) and abs(float(stated)) > FINITE  # type: ignore[arg-type]
        wanted = number_wanted(low, high) + (f" within ±{FINITE:g}" if too_large else "")
        return float(self._read(name, default, low, lambda value: is_number(value, low, high), wanted))

    def estimate(self, intervals: Intervals, *, low: float, high: float) -> float:
        """What this table says of one number: `{ value = 0.5, interval = [0.4, 0.6] }`, both within [low, high]."""
        noted = len(self.mistakes.found)
        value = self.number("value", low=low, high=high)
        ends = self.list_of("interval", lambda v: is_number(v, low, high), number_wanted(low, high), [])
        self.close()
        if "interval" not in self:
            self.fail("interval is missing: it must be two numbers around the value")
        if len(self.mistakes.found) > noted:
            return value
        if len(ends) != 2 or not ends[0] <= value <= ends[1]:
            self.fail(f"must be two numbers around the value {value:g}, got {shown(ends)}", "interval")
        else:
            intervals[".".join(map(str, self.key))] = float(ends[0]), float(ends[1])
        return value

    def integer(self, name: str, default: int | None = None, *, low: int = 0, high: float = math.inf) -> int:
        """A whole number within [low, high], by default without an end; required if there is no default."""
        valid = lambda value: type(value) is int and low <= value <= high  # noqa: E731 - a rule in one line
        wanted = f"a whole number >= {low}" if high == math.inf else f"a whole number from {low} to {high:,}"
        return self._read(name, default, low, valid, wanted)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        return self._read(name, default, default, lambda value: isinstance(value, bool), "true or false")

    def numbers(
        self,
        name: str,
        allowed: Iterable[str],
        kind: str,
        *,
        low: float = -FINITE,
        high: float = FINITE,
        intervals: Intervals | None = None,
    ) -> dict[str, float]:
        """A table of numbers within [low, high] whose keys are among `allowed`; empty if absent."""
        table = self.table(name)
        names = list(allowed)
        result: dict[str, float] = {}
        for key in table.values:
            if key not in names:
                table.fail(unknown(kind, key, names), key)
            else:
                result[key] = table.number(key, low=low, high=high, intervals=intervals)
        return result

    def list_of(
        self, name: str, valid: Callable[[Any], bool], wanted: str, default: Sequence[T] | None = None
    ) -> list[Any]:
        """A list whose entries all pass `valid`, not empty; required if there is no default."""
        fallback = None if default is None else list(default)
        entries = self._read(name, fallback, [], lambda value: isinstance(value, list), f"a list of {wanted}")
        if not entries and name in self.values and isinstance(self.values[name], list):
            self.fail("must not be empty", name)
        for position, entry in enumerate(entries):
            if not valid(entry):
                self.fail(f"must be {wanted}, got {shown(entry)}", name, position)
        return [entry for entry in entries if valid(entry)]

    def table(self, name: str) -> TomlTable:
        """A table; empty if absent."""
        value: dict[str, Any] = self._read(name, {}, {}, lambda value: isinstance(value, dict), "a table")
        return self._below(value, name)

    def tables(self, name: str) -> Iterator[TomlTable]:
        """The tables of an array of tables; none if absent."""
        for position, value in enumerate(self.list_of(name, lambda v: isinstance(v, dict), "tables", [])):
            yield self._below(value, name, position)

    def _below(self, value: dict[str, Any], name: str, *position: int) -> TomlTable:
        """A table below this one, with the keys that are declared for it."""
        keys = self.declared(name).keys if self.keys else ()
        return TomlTable(value, (*self.key, name, *position), self.mistakes, keys=keys, names=self.names)

    def close(self) -> None:
        """Refuse the keys that are not declared, or, where none are, that nobody has asked for."""
        here = [key for key in self.keys if (not key.beside or key.beside in self) and key.unless not in self]
        known = {key.name for key in here} or self.known
        refused = [key for key, _ in self.mistakes.found]
        for name in self.values:
            if name not in known and (*self.key, name) not in refused:
                self.fail(unknown("key", name, sorted(known)), name)

    def _read(self, name: str, default: T | None, fallback: T, valid: Callable[[Any], bool], wanted: str) -> T:
        self.known.add(name)
        if name not in self.values:
            if default is None:
                self.fail(f"{name} is missing: it must be {wanted}")
                return fallback
            return default
        value = self.values[name]
        if valid(value):
            return value  # type: ignore[no-any-return]  # `valid` has just checked the type
        self.fail(f"must be {wanted}, got {shown(value)}", name)
        return fallback if default is None else default


def require_end(path: Path) -> None:
    """OSError for what is neither file nor folder: a device, or a pipe, may never end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, and no file", path.as_posix())


def text_of(path: Path) -> str:
    """The text of a file in UTF-8, without a mark at its beginning; OSError and ValueError for anything else."""
    require_end(path)
    return path.read_text(encoding="utf-8-sig")


@contextmanager
def open_toml(path: Path, keys: Sequence[TomlKey] = ()) -> Iterator[TomlTable]:
    """Read a TOML file, of declared keys if any; on leaving the block, all its mistakes are one InputFileError."""
    try:
        text = text_of(path)
        values = tomllib.loads(text)
    except OSError as error:
        raise InputFileError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path.as_posix()}: must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).partition(" (at ")
        last = str(len(text.splitlines()) or 1)
        line = place.removeprefix("line ").split(",")[0] if place.startswith("line ") else last
        raise InputFileError(one_line(f"{path.as_posix()}:{line}: not valid TOML: {reason}")) from None
    except (ValueError, RecursionError) as error:  # too many digits, too deep, or no possible path
        raise InputFileError(one_line(f"{path.as_posix()}: cannot be read: {error}")) from None
    mistakes = Mistakes(path, text)
    for key, sign in unseen(values):
        instead = f"where data hold it, write {one_line(sign)} in single quotes"
        mistakes.add(key, f"holds U+{ord(sign):04X}, which is not seen; {instead}")
    mistakes.raise_if_any()
    yield TomlTable(values, (), mistakes, keys=keys)
    mistakes.raise_if_any()


def unseen(value: object, key: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """The first character of each name and text of TOML or JSON that is not seen, and where it is."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from unseen(name, (*key, name))
            yield from unseen(item, (*key, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from unseen(item, (*key, position))
    elif isinstance(value, str):
        found = UNSEEN.search(value.replace("\n", "") if key and key[-1] in PROSE else value)
        if found:
            yield key, found[0]


def is_number(value: object, low: float = -math.inf, high: float = math.inf) -> bool:
    """Whether a value is a number within [low, high]; NaN and booleans are not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return low <= float(value) <= high
    except OverflowError:
        return False


def number_wanted(low: float, high: float) -> str:
    """What a number must be, in words."""
    if low <= -FINITE and high >= FINITE:
        return "a number"
    if high >= FINITE:
        return f"a number >= {low:g}"
    if low <= -FINITE:
        return f"a number <= {high:g}"
    return f"a number in [{low:g}, {high:g}]"


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """The message for a name that does not exist, with the nearest one that does."""
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    rest = f" and {len(known) - MOST_KNOWN:,} more" if len(known) > MOST_KNOWN else ""
    return f"unknown {kind} {name!r}; {hint}known: {', '.join(known[:MOST_KNOWN])}{rest}"


def dotted(key: KeyPath) -> str:
    """A key path as people write it: rules[2].set.fever."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """A value as messages show it: on one line, not too long."""
    if isinstance(value, dict):
        return "a table"
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return "a number of too many digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def one_line(text: str, but: str = "") -> str:
    r"""Text in which what is not seen is escaped, but for these characters.

    Examples
    --------
    >>> print(one_line("a\x1b[2J\u202eb\n"))
    a\x1b[2J\u202eb\n
    """
    return UNSEEN.sub(lambda found: found[0] if found[0] in but else found[0].encode("unicode_escape").decode(), text)


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
class TomlKey:
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
    keys: tuple[TomlKey, ...] = ()

    @property
    def default_in_words(self) -> str:
        """As the page has it."""
        if self.said is not None or self.default is None:
            return self.said if self.said is not None else "" if self.name.isupper() else "required"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return f'"{self.default}"' if isinstance(self.default, str) else str(self.default)


def _column(key: TomlKey, table: TomlTable) -> str:
    if table.values.get(key.name) == "":
        table.fail("must not be empty", key.name)
    return table.text(key.name, key.default)


def _choice(key: TomlKey, table: TomlTable) -> str:
    word = table.text(key.name, key.default)
    if word not in table.names[key.among]:
        table.fail(unknown(key.name, word, table.names[key.among]), key.name)
    return word


def _number(key: TomlKey, table: TomlTable) -> float:
    intervals = table.names["intervals"] if key.interval else None
    return table.number(key.name, key.default, low=key.low, high=key.high, intervals=intervals)


def _numbers(key: TomlKey, table: TomlTable) -> dict[str, float]:
    intervals = table.names["intervals"] if key.interval else None
    among = table.names[key.among]
    return table.numbers(key.name, among, key.kind, low=key.low, high=key.high, intervals=intervals)


def _list(key: TomlKey, table: TomlTable) -> list[Any]:
    number = number_wanted(key.low, key.high), lambda value: is_number(value, key.low, key.high)
    wanted, valid = ENTRIES[key.of] if key.of else number
    return table.list_of(key.name, valid, wanted, key.default)


def _names(key: TomlKey, table: TomlTable) -> tuple[str, ...]:
    wanted, valid = ENTRIES["names"]
    names, among = table.list_of(key.name, valid, wanted, []), table.names[key.among]
    for position, name in enumerate(names):
        if among is not None and name not in among:
            table.fail(unknown(key.kind, name, among), key.name, position)
    return tuple(dict.fromkeys(names))


Reader: TypeAlias = Callable[[TomlKey, TomlTable], Any]
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


def declared(path: Path) -> tuple[TomlKey, ...]:
    """The keys that a file of declarations has, each with those below it."""
    lines = tomllib.loads(path.read_text(encoding="utf-8"))
    below: defaultdict[str, list[TomlKey]] = defaultdict(list)
    # The deepest first: a key is made with those below it. Of one depth they stay in the order of the file.
    for name in sorted(lines, key=lambda name: -name.count(".")):
        above, _, own = name.rpartition(".")
        below[above].append(TomlKey(own.removesuffix("[]"), **lines[name], keys=tuple(below[name])))
    return tuple(below[""])


def rows(keys: tuple[TomlKey, ...], above: str = "") -> Iterator[str]:
    """The rows of a Markdown table of keys: the key, its default, what it is; none of a key without help."""
    for key in keys:
        name = f"{above}{key.name}{'[]' if key.holds == 'sections' else ''}"
        if key.help:
            yield f"| `{name}` | {key.default_in_words} | {key.help} |".replace("|  |", "| |")
        yield from rows(key.keys, f"{name}.")

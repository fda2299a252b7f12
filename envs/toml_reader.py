"""Reading TOML that people write: every mistake is collected, with its line, before any is reported.

tomllib gives values without positions, so the lines are looked up with a second parser, and only if something is wrong.

A reader takes each key with a method of `TomlTable` that says what the key holds, its bounds and its default:
`table.number("cost", 0.0)`. What no reader asks for is no key, and `TomlTable.close` refuses it. The docstring of the
dataclass that the keys fill lists them under "Keys"; docs/study-file.md is made of these lists. No library of data
models: a mistake must name its line in the file, and what a key allows often depends on what the file says elsewhere.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from envs.toml_lines import KeyPath, line_numbers

T = TypeVar("T")
# What counts as finite in files and logs: the squares of larger numbers, and of their squares, soon are not.
FINITE = 1e50
# What an epsilon must be: so are quotients and products of two numbers, too.
LEAST = 1 / FINITE
SIZES = f"0, inf or a number from {LEAST:g} to {FINITE:g}"
# What a number must be within.
Bounds: TypeAlias = tuple[float, float]
ANY_NUMBER, NOT_NEGATIVE, PROBABILITY = (-FINITE, FINITE), (0.0, FINITE), (0.0, 1.0)
# Controls, line ends, signs that turn the direction of text, and signs that nobody sees: with them a name passes for
# another. Joiners are needed within words of some scripts and in emoji, so they may follow what is not Latin.
UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    r"|(?<![\u0300-\u200a\u2010-\U0010ffff])[\u200c\u200d]"
)
# Names that a message lists.
MOST_KNOWN = 50
# What is not seen and may stand in the text of a key: prose has lines, and a tab may separate columns.
MAY_HOLD = {"source": "\n", "separator": "\t"}


class InputFileError(ValueError):
    """A file that cannot be used; str() is one `file:line: key: message` line per mistake.

    `located` says whether the lines name their file (a name that no file has is only a message).
    """

    def __init__(self, message: str, *, located: bool = True) -> None:
        super().__init__(message)
        self.located = located


@dataclass
class TomlFile:
    """A file that is being read, and what was noted of it so far.

    Attributes
    ----------
    path : Path
        Where it is.
    text : str
        What it holds.
    mistakes : list of (key, message)
        What is wrong in it.
    wrong_keys : set of key
        Where, and every table above.
    mistakes_elsewhere : list of str
        What is wrong in files that it names, a line each.
    intervals : mapping of dotted key to (low, high)
        Of the numbers that have one: what they lie between with 95 %.
    """

    path: Path
    text: str
    mistakes: list[tuple[KeyPath, str]] = field(default_factory=list)
    wrong_keys: set[KeyPath] = field(default_factory=set)
    mistakes_elsewhere: list[str] = field(default_factory=list)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, key: KeyPath, message: str) -> None:
        """Note a mistake at a key."""
        self.mistakes.append((key, message))
        self.wrong_keys.update(key[:length] for length in range(len(key) + 1))

    def merge(self, error: InputFileError, key: str) -> None:
        """Note the mistakes of another file that this one names at `key`."""
        if error.located:
            self.mistakes_elsewhere.extend(str(error).splitlines())
        else:
            self.add((key,), str(error))

    def raise_if_any(self) -> None:
        """Raise InputFileError with all mistakes, in the order of their lines."""
        if not self.mistakes and not self.mistakes_elsewhere:
            return
        lines = line_numbers(self.text)
        numbered = set()
        for key, message in self.mistakes:
            nearest = key  # or the nearest above it that the file has
            while nearest and nearest not in lines:
                nearest = nearest[:-1]
            numbered.add((lines.get(nearest, 1), dotted(key), message))
        name = self.path.as_posix()
        mistakes = [
            one_line(f"{name}:{line}: {f'{key}: ' if key else ''}{message}") for line, key, message in sorted(numbered)
        ]
        raise InputFileError("\n".join([*mistakes, *self.mistakes_elsewhere]))


@dataclass
class TomlTable:
    """One table of a TOML file; each method takes a key, checks it and gives back a usable value.

    A value that is wrong is noted in the file's mistakes and replaced by the default, so that reading goes on. The keys
    of the table are those that were asked for: by a method, by `in`, or all of them by iteration.
    """

    values: dict[Any, Any]
    key: KeyPath
    file: TomlFile
    asked: set[Any] = field(default_factory=set)
    tables_below: dict[KeyPath, TomlTable] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        """Whether the file has the key, which is then one of the table's keys."""
        self.asked.add(name)
        return name in self.values

    def __iter__(self) -> Iterator[Any]:
        """The names in the table, which the file chooses."""
        self.asked.update(self.values)
        return iter(self.values)

    def fail(self, message: str, *key: str | int) -> None:
        """Note a mistake in this table, or at a key below it."""
        self.file.add((*self.key, *key), message)

    def refuse(self, name: str, message: str) -> None:
        """Note a mistake at a key that must not be there, if it is."""
        if name in self.values:
            self.fail(message, name)

    def wrong(self, *key: str | int) -> bool:
        """Whether a mistake was noted in this table, or at a key of it, or below."""
        return (*self.key, *key) in self.file.wrong_keys

    def close(self, *unread: str) -> None:
        """Refuse the keys that no reader asked for, here and below; those that are `unread` yet may be dotted."""
        for name in self.values:
            if not (name in self.asked or dotted((*self.key, name)) in unread or self.wrong(name)):
                self.fail(unknown("key", name, sorted(self.asked)), name)
        for table in self.tables_below.values():
            table.close(*unread)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required if there is no default."""
        return self._read(name, default, "", lambda value: isinstance(value, str), "text in quotes")

    def column(self, name: str, default: str | None = None) -> str:
        """A string that is not empty, such as the name of a column; required if there is no default."""
        if self.values.get(name) == "":
            self.fail("must not be empty", name)
        return self.text(name, default)

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """One of some words."""
        word = self.text(name, default)
        if word not in allowed:
            self.fail(unknown(name, word, allowed), name)
        return word

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        return self._read(name, default, default, lambda value: isinstance(value, bool), "true or false")

    def integer(self, name: str, default: int, *, low: int = 0) -> int:
        """A whole number >= low."""
        return self._read(
            name, default, low, lambda value: type(value) is int and value >= low, f"a whole number >= {low}"
        )

    def number(
        self, name: str | int, default: float | None = None, *, within: Bounds = ANY_NUMBER, interval: bool = False
    ) -> float:
        """A number within the bounds, not NaN; required if there is no default.

        With `interval` it may be a table such as `{ value = 0.5, interval = [0.4, 0.6] }`.
        """
        stated = self.values.get(name)
        if interval and isinstance(stated, dict) and {"value", "interval"} & stated.keys():
            return self.table(name).estimate(within)
        too_large = within[1] >= FINITE and is_number(stated) and not is_finite(stated)
        wanted = number_wanted(*within) + (f" within ±{FINITE:g}" if too_large else "")
        return float(self._read(name, default, within[0], lambda value: is_number(value, *within), wanted))

    def estimate(self, within: Bounds) -> float:
        """The `value` that this table states, whose `interval` is noted in the file; all within the bounds."""
        value, ends = self.number("value", within=within), self.number_list("interval", [], within=within)
        self.close()
        if "interval" not in self:
            self.fail("interval is missing: it must be two numbers around the value")
        if self.wrong():
            return value
        if len(ends) != 2 or not ends[0] <= value <= ends[1]:
            self.fail(f"must be two numbers around the value {value:g}, got {shown(ends)}", "interval")
        else:
            self.file.intervals[".".join(map(str, self.key))] = float(ends[0]), float(ends[1])
        return value

    def numbers(
        self, name: str, allowed: Collection[str], kind: str, *, within: Bounds = ANY_NUMBER, interval: bool = False
    ) -> dict[str, float]:
        """A table of numbers within the bounds, by names among `allowed`, each a `kind`; empty if absent."""
        table = self.table(name)
        numbers: dict[str, float] = {}
        for key in table:
            if key not in allowed:
                table.fail(unknown(kind, key, list(allowed)), key)
            else:
                numbers[key] = table.number(key, within=within, interval=interval)
        return numbers

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

    def words(self, name: str, default: Sequence[str] | None = None, wanted: str = "text in quotes") -> list[str]:
        """A list of strings that are not blank; required if there is no default."""
        return self.list_of(name, lambda value: isinstance(value, str) and bool(value.strip()), wanted, default)

    def number_list(self, name: str, default: Sequence[float] | None = None, *, within: Bounds) -> list[float]:
        """A list of numbers within the bounds; required if there is no default."""
        return self.list_of(name, lambda value: is_number(value, *within), number_wanted(*within), default)

    def estimates(self, name: str, within: Bounds) -> list[float]:
        """A list of numbers within the bounds, each of which may have an interval as in `number`; required."""
        self.list_of(name, lambda value: isinstance(value, dict) or is_number(value, *within), number_wanted(*within))
        if self.wrong(name):
            return []
        numbers = self._below(dict(enumerate(self.values[name])), name)
        return [numbers.number(position, within=within, interval=True) for position in numbers]

    def names(self, name: str, allowed: Sequence[str] | None, kind: str) -> tuple[str, ...]:
        """Different names among `allowed`, each a `kind`; any names where `allowed` could not be read."""
        names = self.words(name, [])
        for position, entry in enumerate(names):
            if allowed is not None and entry not in allowed:
                self.fail(unknown(kind, entry, allowed), name, position)
        return tuple(dict.fromkeys(names))

    def table(self, name: str | int) -> TomlTable:
        """A table; empty if absent."""
        value: dict[str, Any] = self._read(name, {}, {}, lambda value: isinstance(value, dict), "a table")
        return self._below(value, name)

    def tables(self, name: str) -> list[TomlTable]:
        """The tables of an array of tables; none if absent."""
        values = self.list_of(name, lambda value: isinstance(value, dict), "tables", [])
        return [self._below(value, name, position) for position, value in enumerate(values)]

    def _below(self, value: dict[Any, Any], *key: str | int) -> TomlTable:
        """The table at a key below this one, the same whenever it is asked for."""
        return self.tables_below.setdefault(key, TomlTable(value, (*self.key, *key), self.file))

    def _read(self, name: str | int, default: T | None, fallback: T, valid: Callable[[Any], bool], wanted: str) -> T:
        self.asked.add(name)
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


def require_file(path: Path) -> None:
    """OSError, before a byte is read, for all but a file: a pipe may never end, and a link may lead anywhere.

    Folders above it may be links.
    """
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        target = os.path.realpath(path)
        raise OSError(errno.ELOOP, f"it is a link: name the file that it leads to, {target}", path.as_posix())
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path.as_posix())
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe, and no file", path.as_posix())


def text_of(path: Path) -> str:
    """The text of a file in UTF-8, without a mark at its beginning; OSError and ValueError for anything else."""
    require_file(path)
    return path.read_text(encoding="utf-8-sig")


def as_float(text: str) -> float:
    """A number as people type it; ValueError for what is none, OverflowError if only infinity, or 0, is near."""
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise OverflowError(f"{text} is too large for a number; inf is infinity")
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise OverflowError(f"{text} is too small for a number; type 0 for zero")
    return value


@contextmanager
def open_toml(path: Path) -> Iterator[TomlTable]:
    """Read a TOML file; on leaving the block, all its mistakes are one InputFileError."""
    try:
        text = text_of(path)
        values = tomllib.loads(text, parse_float=as_float)
    except OSError as error:
        # Another file that names this one says where.
        raise InputFileError(f"{path.as_posix()}: cannot be read: {error.strerror}", located=False) from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path.as_posix()}: must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).partition(" (at ")
        last = str(len(text.splitlines()) or 1)
        line = place.removeprefix("line ").split(",")[0] if place.startswith("line ") else last
        raise InputFileError(one_line(f"{path.as_posix()}:{line}: not valid TOML: {reason}")) from None
    except (ValueError, OverflowError, RecursionError) as error:  # no float is near, too deep, or no possible path
        raise InputFileError(one_line(f"{path.as_posix()}: cannot be read: {error}")) from None
    file = TomlFile(path, text)
    root = TomlTable(values, (), file)
    for key, sign in unseen(values):
        instead = f"where data hold it, write {one_line(sign)} in single quotes"
        root.fail(f"holds U+{ord(sign):04X}, which is not seen; {instead}", *key)
    file.raise_if_any()
    yield root
    file.raise_if_any()


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
        allowed = MAY_HOLD.get(str(key[-1]), "") if key else ""
        found = UNSEEN.search(value.replace(allowed, ""))
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


def is_finite(value: object) -> bool:
    """Whether a TOML value is a number that counts as finite."""
    return is_number(value, -FINITE, FINITE)


def is_epsilon(value: object) -> bool:
    """Whether a value is one of `SIZES`."""
    return is_number(value, LEAST, FINITE) or (is_number(value) and value in {0, math.inf})


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

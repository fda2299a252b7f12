"""A manifest.json read and checked: it may be a stranger's, and all that is taken from it is a question and digests.

The options of a question change its numbers: a manifest keeps them by name, each with a value of one type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NoReturn, TypeAlias, get_args

from envs.toml_reader import FINITE, InputFileError, dotted, is_number, one_line, shown, unknown, unseen
from policysim.output.deliver import FORMAT, FORMATS, FigureFiles
from policysim.output.differences import read_text
from policysim.question.answer import MANIFEST, SizeName
from policysim.words import MOST_DAYS

# A thousand times what is usual: a larger file is no manifest, and is not read.
MOST_BYTES = 10_000_000
# Characters of a key that a message shows.
LONGEST_PLACE = 80


@dataclass(frozen=True)
class Manifest:
    """What a run wrote down about itself.

    Attributes
    ----------
    path : Path
        The file.
    document : mapping
        All of it.
    name, study_digest : str
        The study, and the SHA-256 of its file.
    question : mapping
        The options that were asked for (`KEYS`), not yet checked.
    figures : FigureFiles
        Which files the figures have.
    command : str
        The command line, for people: nothing is taken from it.
    given : list of str
        The options of the question that were given; the others were the study's own.
    results : mapping of relative path to str
        The SHA-256 of each file that the run made, in the order of the page.
    data : mapping of path to str
        The SHA-256 of each data file that the study names.
    """

    path: Path
    document: Mapping[str, Any]
    name: str
    study_digest: str
    question: dict[str, Any]
    figures: FigureFiles
    command: str
    given: list[str]
    results: Mapping[str, str]
    data: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """Where the report is."""
        return self.path.parent

    def place(self, name: str) -> Path:
        """Where a result is; InputFileError for a link that leads out of the folder."""
        path = self.folder / name
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise InputFileError(f"{path.as_posix()}: leads out of the folder of {self.path.as_posix()}")
        return path

    @property
    def tables(self) -> list[str]:
        """The CSV files among the results."""
        return [name for name in self.results if name.endswith(".csv")]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; InputFileError, in one line, for anything that is not one."""
    if path.name == MANIFEST and path.parent.is_dir() and not path.exists():
        raise InputFileError(
            f"{path.as_posix()}: is missing: the report in this folder is unfinished, or there is none; policysim "
            f"compare with --out {path.parent.as_posix()} completes it"
        )
    document = _read_json(path)
    for key, sign in unseen(document):
        place = one_line(dotted(key))
        place = place if len(place) <= LONGEST_PLACE else f"{place[:LONGEST_PLACE]}…"
        raise _no_manifest(path, f"{place} holds U+{ord(sign):04X}, which is not seen")
    study, question, command, given = (document.get(key) for key in ("study", "question", "command", "given"))
    if not isinstance(study, dict) or not _is_name(study.get("name")) or not isinstance(study.get("sha256"), str):
        raise _no_manifest(path, "study must have a name and a sha256")
    if document.get("format") != FORMAT:
        raise InputFileError(
            f"{path.as_posix()}: was written by another version of policysim: its format is not {FORMAT}; make its "
            "report again with policysim compare"
        )
    if not isinstance(question, dict):
        raise _no_manifest(path, "question must be a table of options")
    if not isinstance(command, str):
        raise _no_manifest(path, "command must be text")
    if not isinstance(given, list) or any(name not in list(question) for name in given):
        raise _no_manifest(path, "given must be a list of keys of question")
    found = Manifest(
        path,
        document,
        study["name"],
        study["sha256"],
        question,
        _figures(document.get("figures"), path),
        command,
        given,
        _digests(document, "results", path),
        _digests(document, "data", path),
    )
    if not found.tables:
        raise _no_manifest(path, "results must name a CSV file")
    return found


def _read_json(path: Path) -> dict[str, Any]:
    if (path / MANIFEST).is_file():
        hint = (path / MANIFEST).as_posix()
        raise InputFileError(f"{path.as_posix()} is a folder: did you mean {hint}?", located=False)
    text = read_text(path, MOST_BYTES)
    try:
        document = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_no_number)
        str(document)  # what is nested too deeply is found out here, and not where it is printed
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path.as_posix()}: is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _no_manifest(path, "it is not a table of names and values")
    return document


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, value in pairs:
        if name in table:
            raise ValueError(f"it has {name[:80]!r} twice in one table")
        table[name] = value
    return table


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _no_manifest(path: Path, why: str) -> InputFileError:
    return InputFileError(f"{path.as_posix()}: is not a manifest of policysim compare: {why}")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and value != ".." and PurePosixPath(value).name == value != ""


def _figures(value: object, path: Path) -> FigureFiles:
    """Which files the figures have, as `FigureFiles` has it."""
    stated = value if isinstance(value, dict) else {}
    # Before there were names, all figures were drawn.
    size: Any = stated.get("size")
    kinds, names = stated.get("formats"), stated.get("names", [])
    if not isinstance(names, list) or not all(_is_name(name) for name in names):
        raise _no_manifest(path, "the names of figures must be a list of names")
    if not isinstance(kinds, list) or any(kind not in FORMATS for kind in kinds) or size not in get_args(SizeName):
        wanted = f"formats among {', '.join(FORMATS)} and a size among {', '.join(get_args(SizeName))}"
        raise _no_manifest(path, f"figures must have {wanted}")
    return FigureFiles(tuple(kind for kind in FORMATS if kind in kinds), size, tuple(names))


def _digests(document: dict[str, Any], key: str, path: Path) -> dict[str, str]:
    """Digests by paths that stay below their folder; none if the key is absent."""
    values = document.get(key, {})
    if not isinstance(values, dict) or not all(
        isinstance(value, str) and _stays_below(name) for name, value in values.items()
    ):
        raise _no_manifest(path, f"{key} must be a table of relative paths and their SHA-256")
    return values


def _stays_below(name: str) -> bool:
    place = PureWindowsPath(name)  # which knows both kinds of separators
    return not place.anchor and ".." not in place.parts and name.isprintable()


INFINITY = "inf"  # as JSON files have it
# A manifest may be a stranger's: longer lists, and larger numbers, would only take time.
MOST_ENTRIES, MOST_BITS = 1_000, 128


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _epsilons(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(item == INFINITY or is_number(item, 0) for item in value)


def _demands(value: Any) -> bool:
    """What `policysim.decision.choose.Wish` takes: numbers, and bounds on outcomes."""
    return isinstance(value, dict) and all(
        _bounds(most) if name == "at_most" else name in DEMANDS and is_number(most, *DEMANDS[name])
        for name, most in value.items()
    )


def _bounds(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(most, str) or is_number(most, 0) for most in value.values())


# Of each option, what its value must be, in words, and whether a value is that.
Option: TypeAlias = tuple[str, Callable[[Any], bool]]
_TEXTS: Option = ("a list of texts", _texts)
_EPSILONS: Option = (f'a list of numbers >= 0 or "{INFINITY}"', _epsilons)
# The numbers of demands, from where to where.
DEMANDS = {
    "keep": (-FINITE, 1.0),
    "max_loss": (0.0, FINITE),
    "max_extra_lead": (-FINITE, FINITE),
    "max_guess": (0.5, 1.0),
    "max_guess_rate": (0.5, 1.0),
}
_FLAG: Option = ("true or false", lambda value: isinstance(value, bool))
KEYS: dict[str, Option] = {
    "adjacency": ("text", lambda value: isinstance(value, str)),
    "sensitive": _TEXTS,
    "epsilons": _EPSILONS,
    "policies": ("a list of at least one text", lambda value: _texts(value) and value != []),
    "by": _TEXTS,
    "seed": ("a whole number >= 0", lambda value: type(value) is int and value >= 0),
    "at_most": ("a table of outcomes and the most of each, a number >= 0 or text", _bounds),
    "price_list": _FLAG,
    "horizon": (f"a whole number from 1 to {MOST_DAYS}", lambda value: type(value) is int and 1 <= value <= MOST_DAYS),
    "total_epsilons": _EPSILONS,
    "delta": ("a number in [0, 1)", lambda value: is_number(value, 0, math.nextafter(1, 0))),
    "length_public": _FLAG,
    "counted": _FLAG,
    "demands": (f"a table of numbers among {', '.join(DEMANDS)}, and of bounds, at_most", _demands),
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
        wanted, fits = KEYS[name]
        if not fits(value):
            raise ValueError(f"{name} must be {wanted}, got {shown(value)}")
        if isinstance(value, list) and len(value) > MOST_ENTRIES:
            raise ValueError(f"{name} must have at most {MOST_ENTRIES:,} entries, got {len(value):,}")
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise ValueError(f"{name} must be below 2^{MOST_BITS}, got a number of {value.bit_length():,} bits")
    return {
        name: [math.inf if item == INFINITY else item for item in value] if KEYS[name] is _EPSILONS else value
        for name, value in values.items()
    }

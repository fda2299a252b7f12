"""The note beside a private file: what was done to it, all of it public, so that others can estimate from the file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from envs.toml_reader import is_number, shown
from policies.local import Channel, KAry
from policysim.files.bad_rows import DataError
from policysim.files.output import json_text
from policysim.release.ledger import Earlier, is_list, require, total

SUFFIX = ".privacy.json"
FORMAT = 1
RELEASE = "release: drawn from the operating system's randomness"
SIMULATION = "simulation, not a release: drawn from a generator that can be run again"
DECLARED, DATA = "declared", "data"
GUARANTEE = (
    "Any two values of these columns of one row are told apart by the row in this file at most as well as a privacy "
    "loss of epsilon allows. Public by assumption: the columns, their levels, the number of rows and their order. The "
    "rows keep their order: do not sort by a column that is to be hidden. A person with several rows spends epsilon on "
    "each. A second release of the same columns of the same rows adds its epsilon to this one's, and so does each "
    "further one; this note knows only of earlier ones that it names. Other columns are unchanged."
)

# More combinations of levels than this cannot be estimated to any use, and the table of them would not fit the memory.
MOST_COMBINATIONS = 10_000


@dataclass(frozen=True)
class Part:
    """Columns that go through one channel together; a value is their levels' positions in C order."""

    columns: tuple[str, ...]
    channel: Channel


@dataclass(frozen=True)
class Randomization:
    """What is done to which columns.

    Attributes
    ----------
    levels : mapping of str to tuple of str
        What each private column may hold, as text, in the order of the columns.
    epsilon : float
        The privacy loss of a row.
    parts : tuple of Part
        Each column is in exactly one; their losses add up to epsilon.
    from_data : tuple of str
        Columns whose levels were taken from the private rows, which no epsilon covers.
    """

    levels: Mapping[str, tuple[str, ...]]
    epsilon: float
    parts: tuple[Part, ...]
    from_data: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """What is known of a private file: the plan, other columns, number of rows, how it was drawn, earlier releases."""

    plan: Randomization
    unchanged: tuple[str, ...]
    n_rows: int
    release: bool
    earlier: Earlier | None = None


def make_plan(
    levels: Mapping[str, Sequence[str]], epsilon: float, *, separately: bool = False, from_data: Sequence[str] = ()
) -> Randomization:
    """k-ary response over all combinations of the columns' levels, or for each column with an even share of epsilon.

    Parameters
    ----------
    levels : mapping of str to sequence of str
        At least two distinct, non-empty levels of each column.
    epsilon : float
        Of a whole row; > 0 and finite, and not so small that random words of 63 bits cannot keep to it.
    separately : bool
        Each column by itself with epsilon / (number of columns), rounded down so that they never sum above epsilon.
    from_data : sequence of str
        Columns whose levels were taken from the rows.

    Raises
    ------
    ValueError
        For an epsilon that is none of these; as DataError, for levels that are not, or too many to estimate.

    Examples
    --------
    >>> plan = make_plan({"age_band": ("young", "old"), "sex": ("0", "1")}, 1.0)
    >>> [(part.columns, part.channel.n_values) for part in plan.parts]
    [(('age_band', 'sex'), 4)]
    >>> [round(part.channel.epsilon, 9) for part in make_plan(plan.levels, 1.0, separately=True).parts]
    [0.5, 0.5]
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be > 0 and finite, got epsilon={epsilon!r}.")
    checked = {column: _checked_levels(column, names) for column, names in levels.items()}
    groups = [(column,) for column in checked] if separately else [tuple(checked)]
    parts = []
    for columns in groups:
        size = math.prod(len(checked[column]) for column in columns)
        if size > MOST_COMBINATIONS:
            raise DataError(
                f"{', '.join(columns)}: {size:,} combinations of levels are too many to estimate, at most "
                f"{MOST_COMBINATIONS:,}; use fewer levels, or privatise the columns separately."
            )
        channel = KAry(size, _even_share(epsilon, len(groups)))
        _ = channel.weights  # ValueError for an epsilon so small that no report can keep to it.
        parts.append(Part(columns, channel))
    return Randomization(checked, epsilon, tuple(parts), tuple(from_data))


def _even_share(epsilon: float, parts: int) -> float:
    """The largest float of which `parts` times are at most epsilon, as a float and as the decimal that is written."""
    share = epsilon / parts
    while parts > 1 and parts * max(Fraction(share), Fraction(repr(share))) > min(
        Fraction(epsilon), Fraction(repr(epsilon))
    ):
        share = math.nextafter(share, 0)
    return share


def _checked_levels(column: str, levels: Sequence[str]) -> tuple[str, ...]:
    shown = ", ".join(levels)
    if len(levels) < 2:
        raise DataError(f"{column}: needs at least two levels, got {shown or 'none'}.")
    if len(set(levels)) < len(levels):
        repeated = next(level for level in levels if list(levels).count(level) > 1)
        raise DataError(f"{column}: its levels must differ, got {repeated!r} more than once.")
    if "" in levels:
        raise DataError(f"{column}: a level must not be empty text, which means a missing value.")
    return tuple(levels)


def note_path(private: Path) -> Path:
    """Where the note of a private file, or folder, is: beside it."""
    named = private.resolve() if private.name in ("", "..") else private  # the current folder, and those above it
    return named.with_name(named.name + SUFFIX)


def note_document(note: Note) -> dict[str, Any]:
    """The note as it is written; it holds nothing of the rows but their number, and neither seed nor digest."""
    plan = note.plan
    document: dict[str, Any] = {
        "format": FORMAT,
        "drawn": RELEASE if note.release else SIMULATION,
        "epsilon": plan.epsilon,
        "rows": note.n_rows,
        "columns": [
            {"name": column, "levels": list(levels), "levels_from": DATA if column in plan.from_data else DECLARED}
            for column, levels in plan.levels.items()
        ],
        "channels": [
            {
                "columns": list(part.columns),
                "mechanism": part.channel.name,
                "parameters": part.channel.parameters,
                "epsilon": part.channel.epsilon,
            }
            for part in plan.parts
        ],
        "unchanged": list(note.unchanged),
        "guarantee": GUARANTEE,
    }
    if note.earlier is not None:
        document["earlier"] = vars(note.earlier)
    return document


def note_text(note: Note) -> str:
    """The note's file."""
    return json_text(note_document(note))


def read_note(private: Path) -> Note:
    """The note beside a private file; DataError if it is missing or cannot be what this program wrote."""
    path = note_path(private)
    name = path.as_posix()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return _note(document)
    except FileNotFoundError:
        raise DataError(f"{private.as_posix()}: its mechanism note {path.name} is missing beside it") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise DataError(f"{name}: not a mechanism note: {error} is missing") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: not a mechanism note: {error}") from None


def _note(document: Any) -> Note:
    """The note that is written as this document; ValueError or KeyError if there is none."""
    require(isinstance(document, dict), "must be an object")
    require(document["format"] == FORMAT, f"format must be {FORMAT}, got {shown(document['format'])}")
    epsilon, rows = document["epsilon"], document["rows"]
    require(is_number(epsilon), f"epsilon must be a number, got {shown(epsilon)}")
    require(type(rows) is int and rows > 0, f"rows must be a whole number > 0, got {shown(rows)}")
    columns, channels, unchanged = document["columns"], document["channels"], document["unchanged"]
    require(is_list(columns, dict) and is_list(channels, dict), "columns and channels must be lists of objects")
    require(is_list(unchanged, str), "unchanged must be a list of names")
    for column in columns:
        require(
            isinstance(column["name"], str) and is_list(column["levels"], str),
            "each column must have a name and a list of levels, all text",
        )
    plan = make_plan(
        {column["name"]: column["levels"] for column in columns},
        float(epsilon),
        separately=len(channels) > 1,
        from_data=[column["name"] for column in columns if column["levels_from"] == DATA],
    )
    earlier = _earlier(document["earlier"], float(epsilon)) if "earlier" in document else None
    note = Note(plan, tuple(unchanged), rows, release=document["drawn"] == RELEASE, earlier=earlier)
    # Whatever else is in the document must follow from that.
    for key, value in json.loads(note_text(note)).items():
        require(
            key == "guarantee" or document[key] == value, f"{key} must be {shown(value)}, got {shown(document[key])}"
        )
    return note


def _earlier(entry: Any, epsilon: float) -> Earlier:
    """What the note says of earlier releases; infinity is text."""
    require(isinstance(entry, dict), f"earlier must be an object, got {shown(entry)}")
    releases, before = entry["releases"], entry["epsilon"]
    require(
        type(releases) is int and releases > 0, f"earlier releases must be a whole number > 0, got {shown(releases)}"
    )
    require(
        before == "inf" or is_number(before, 0), f"the epsilon of earlier releases must be >= 0, got {shown(before)}"
    )
    return Earlier(releases, float(before), total([float(before), epsilon]))

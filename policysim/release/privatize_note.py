"""The note beside a private file: what was done to it, all of it public, so that others can estimate from the file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

from envs.toml_reader import one_line, text_of
from policies.levels import LevelKey, Levels, level_key
from policies.local import Channel, KAry
from policysim.files.bad_rows import DataError
from policysim.files.terminal import json_text
from policysim.release.delivery import note_path
from policysim.release.exact import response_weights
from policysim.release.ledger import amount

FORMAT = 1
RELEASE = "release: drawn from the operating system's randomness"
SIMULATION = "simulation, not a release: drawn from a generator that can be run again"
UNDONE = "SIMULATION, not a release: a person who has the seed can undo it."
DECLARED, DATA = "declared", "data"
GUARANTEE = (
    "A row of this file changes the odds between any two values of these columns by a factor of at most e^epsilon. "
    "Public by assumption: the columns, their levels, the number of rows and their order. The rows keep their order: "
    "do not sort by a hidden column. A person with several rows spends epsilon on each. Every other release about the "
    "same people adds its epsilon to this one's: their ledger counts them. Other columns are unchanged."
)

# More combinations of levels than this cannot be estimated to any use, and the table of them would not fit the memory.
MOST_COMBINATIONS = 10_000


@dataclass(frozen=True)
class Part:
    """Columns that go through one channel together, and what each may hold, as text.

    A value is their levels' positions in C order.
    """

    levels: Mapping[str, tuple[str, ...]]
    channel: Channel


@dataclass(frozen=True)
class Randomization:
    """k-ary response over all combinations of the columns' levels, or for each column with an even share of epsilon.

    Parameters
    ----------
    levels : mapping of str to tuple of str
        What each private column may hold: at least two distinct, non-empty levels of each column.
    epsilon_of_person : float
        Of all rows of a person; > 0 and finite, and not so small that random words of 62 bits cannot keep to it.
    rows_each : int
        How many rows a person has at most: each row gets an even share of epsilon.
    separately : bool
        Each column by itself with an even share of the row's, rounded down so that they never sum above it.
    from_data : tuple of str
        Columns whose levels were taken from the private rows, which no epsilon covers.
    cuts : mapping of str to sequence of float
        Of columns of numbers whose levels are bins, where these begin.
    unknown : mapping of str to sequence of str
        Of columns with values that mean unknown, these: they count as missing.

    Raises
    ------
    ValueError
        For an epsilon that is none of these; as DataError, for levels that are not, or too many to estimate.

    Examples
    --------
    >>> plan = Randomization({"age_band": ("young", "old"), "sex": ("0", "1")}, 1.0)
    >>> [(tuple(part.levels), part.channel.n_values) for part in plan.parts]
    [(('age_band', 'sex'), 4)]
    >>> [round(part.channel.epsilon, 9) for part in Randomization(plan.levels, 1.0, separately=True).parts]
    [0.5, 0.5]
    """

    levels: Mapping[str, tuple[str, ...]]
    epsilon_of_person: float
    rows_each: int = 1
    separately: bool = False
    from_data: tuple[str, ...] = ()
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check epsilon and levels."""
        epsilon = self.epsilon_of_person
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ValueError(f"epsilon must be > 0 and finite, got epsilon={epsilon!r}.")
        object.__setattr__(self, "levels", checked_levels(self.levels))
        for part in self.parts:
            # ValueError for an epsilon that no report can keep to.
            response_weights(part.channel.n_values, amount(part.channel.epsilon))

    @cached_property
    def epsilon(self) -> float:
        """The privacy loss of a row."""
        return _even_share(self.epsilon_of_person, self.rows_each)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Each column is in exactly one; their losses add up to epsilon."""
        columns = [{column: names} for column, names in self.levels.items()]
        groups = columns if self.separately else [dict(self.levels)]
        share = _even_share(self.epsilon, len(groups))
        return tuple(Part(group, KAry(_size(group), share)) for group in groups)

    @property
    def features(self) -> list[Levels]:
        """The columns with their levels."""
        return declared_features(self.levels, self.cuts, self.unknown)


def _size(levels: Mapping[str, Sequence[str]]) -> int:
    """The number of combinations of levels; DataError for more than can be estimated."""
    size = math.prod(map(len, levels.values()))
    if size > MOST_COMBINATIONS:
        raise DataError(
            f"{', '.join(levels)}: {size:,} combinations of levels are too many to estimate, at most "
            f"{MOST_COMBINATIONS:,}; use fewer levels, or privatise the columns separately."
        )
    return size


def checked_levels(levels: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The levels of each column; DataError unless they are two or more, distinct and not empty."""
    for column, names in levels.items():
        if len(names) < 2:
            raise DataError(f"{column}: needs at least two levels, got {', '.join(names) or 'none'}.")
        seen: dict[LevelKey, str] = {}
        for level in names:
            key = level_key(level)
            if key in seen:
                raise DataError(f"{column}: its levels must differ, got {seen[key]!r} and {level!r}.")
            seen[key] = level
        if "" in names:
            raise DataError(f"{column}: a level must not be empty text, which means a missing value.")
    return {column: tuple(names) for column, names in levels.items()}


def declared_features(
    levels: Mapping[str, Sequence[str]], cuts: Mapping[str, Sequence[float]], unknown: Mapping[str, Sequence[str]]
) -> list[Levels]:
    """Columns with their levels, the cuts between bins, and the values that mean unknown."""
    return [Levels(column, names, cuts.get(column, ()), unknown.get(column, ())) for column, names in levels.items()]


def _even_share(epsilon: float, parts: int) -> float:
    """The largest float of which `parts` times are at most epsilon, as a float and as the decimal that is written."""
    share, most = epsilon / parts, min(Fraction(epsilon), Fraction(repr(epsilon)))
    while parts > 1 and parts * max(Fraction(share), Fraction(repr(share))) > most:
        share = math.nextafter(share, 0)
    return share


def note_document(plan: Randomization, unchanged: Sequence[str], n_rows: int, *, release: bool) -> dict[str, Any]:
    """The note as it is written; it holds nothing of the rows but their number, and neither seed nor digest.

    Parameters
    ----------
    plan : Randomization
    unchanged : sequence of str
        The columns that are as they were.
    n_rows : int
    release : bool
        Whether it was drawn from the operating system's randomness.
    """
    document: dict[str, Any] = {
        "format": FORMAT,
        "drawn": RELEASE if release else SIMULATION,
        "epsilon": plan.epsilon,
        "rows": n_rows,
        "columns": [
            {"name": column, "levels": list(levels), "levels_from": DATA if column in plan.from_data else DECLARED}
            for column, levels in plan.levels.items()
        ],
        "channels": [
            {
                "columns": list(part.levels),
                "mechanism": part.channel.name,
                "parameters": part.channel.parameters,
                "epsilon": part.channel.epsilon,
            }
            for part in plan.parts
        ],
        "unchanged": list(unchanged),
        "guarantee": GUARANTEE,
    }
    if plan.rows_each > 1:
        document |= {"rows_per_person": plan.rows_each, "epsilon_of_person": plan.epsilon_of_person}
    return document


def read_note(private: Path) -> tuple[Randomization, dict[str, Any]]:
    """What was done to a private file, and the note beside it.

    DataError if it is missing, or cannot be what this program wrote of a copy.
    """
    path = note_path(private)
    try:
        document = json.loads(text_of(path))
        plan, written = _written(document)
    except FileNotFoundError:
        raise DataError(f"{private.as_posix()}: its mechanism note {path.name} is missing beside it") from None
    except OSError as error:
        raise DataError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except (AttributeError, LookupError, TypeError):
        raise DataError(f"{path.as_posix()}: not a mechanism note: its keys are not those of one") from None
    except (ArithmeticError, ValueError, RecursionError) as error:
        raise DataError(f"{path.as_posix()}: not a mechanism note: {one_line(str(error))}") from None
    # All that is in the document must follow from what was read of it.
    changed = [key for key in written if key != "guarantee" and document.get(key) != written[key]]
    if changed:
        raise DataError(f"{path.as_posix()}: not a mechanism note: {changed[0]} does not follow from the rest")
    return plan, {key: document[key] for key in (*written, "ledger") if key in document}


def _written(document: Any) -> tuple[Randomization, dict[str, Any]]:
    """The plan of a document and the note that is written of it; for what is no note another one, or any error."""
    if "what" in document:
        raise ValueError(f"it is the note of a {document['what']}, whose counts are estimates already")
    if document["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {document['format']!r}")
    columns, epsilon = document["columns"], float(document["epsilon"])
    plan = Randomization(
        {str(column["name"]): tuple(map(str, column["levels"])) for column in columns},
        document.get("epsilon_of_person", epsilon),
        rows_each=index(document.get("rows_per_person", 1)),
        separately=len(document["channels"]) > 1,
        from_data=tuple(column["name"] for column in columns if column["levels_from"] == DATA),
    )
    unchanged, release = list(map(str, document["unchanged"])), document["drawn"] == RELEASE
    return plan, json.loads(json_text(note_document(plan, unchanged, index(document["rows"]), release=release)))

"""Counts of what a file holds, each with whole-number noise: the table, its note, and what is printed of it.

The cells, every combination of declared levels, do not depend on the data. Where one row is replaced by another
(`REPLACE`), one cell loses a row and one gains it; where a row is there or not (`ADD_OR_REMOVE`), one cell changes by
one. Noise of rate epsilon / 2, or epsilon, on each cell (`policies.discrete_laplace`) therefore bounds the privacy loss
of the whole table by epsilon, and some outputs attain it. What is done to the noisy counts afterwards costs nothing.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from policies.arrays import IntArray
from policies.discrete_laplace import Below, discrete_laplace, standard_deviation
from policies.levels import Levels
from policysim.errors import optional
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.columns_writer import open_writer
from policysim.files.whole_files import keep_closed, sync
from policysim.numbers import enough
from policysim.progress import SILENT, Progress
from policysim.release.delivery import Draw, note_path, release_files
from policysim.release.ledger import REPLACE, Ledger, Release, amount
from policysim.release.people import People
from policysim.release.privatize_note import (
    DECLARED,
    FORMAT,
    RELEASE,
    SIMULATION,
    UNDONE,
    checked_levels,
    declared_features,
)
from policysim.release.privatize_source import Codes, Source
from policysim.words import cells, wrapped

with optional():
    import pyarrow as pa

COUNT = "noisy_count"
# Cells of one table at most: more of them than rows would hold little but noise.
MOST_CELLS = 100_000
WIDTHS, ROWS_SHOWN = (72, 16), 40
GUARANTEE = (
    "Any table of counts is at most e^epsilon times as likely from one file as from another in which {neighbours}. "
    "Public by assumption: the columns and their levels. Every other release about the same people adds its epsilon to "
    "this one's: their ledger counts them."
)


@dataclass(frozen=True)
class TablePlan:
    """What is counted, and with how much noise.

    Parameters
    ----------
    columns, by : mapping of str to sequence of str
        The levels of the columns that are counted, and of those that make groups; two or more of each.
    epsilon : float
        Of the whole table; > 0 and finite.
    adjacency : str
        `REPLACE` or `ADD_OR_REMOVE`.
    no_negative : bool
        Publish 0 in place of a negative count: the sum of many such counts is then too large.
    cuts : mapping of str to sequence of float
        Of columns of numbers whose levels are bins, where these begin.
    unknown : mapping of str to sequence of str
        Of columns with values that mean unknown, these: they count as missing.
    rows_each : int
        How many rows a person has at most.

    Attributes
    ----------
    rate : Fraction
        Of the noise: what the decimal or the float of epsilon stands for, whichever is less, over the most by which a
        person changes all cells together.

    Raises
    ------
    ValueError
        For a column that is named twice, or as the counts are; as DataError, for levels.
    """

    columns: Mapping[str, Sequence[str]]
    epsilon: float
    by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    adjacency: str = REPLACE
    no_negative: bool = False
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rows_each: int = 1

    def __post_init__(self) -> None:
        """Check the columns and their levels."""
        both = [name for name in self.by if name in self.columns]
        if both:
            raise ValueError(f"{both[0]} cannot both be counted and make the groups.")
        if COUNT in self.levels:
            raise ValueError(f"a column must be another than {COUNT}, which the counts have.")
        size = math.prod(map(len, checked_levels(self.levels).values()))
        if size > MOST_CELLS:
            raise DataError(
                f"{', '.join(self.levels)}: {size:,} combinations of levels are too many to count, at most "
                f"{MOST_CELLS:,}; use fewer levels or groups."
            )

    @property
    def levels(self) -> dict[str, Sequence[str]]:
        """Of the groups and then of what is counted: the order of the columns of the table."""
        return {**self.by, **self.columns}

    @property
    def features(self) -> list[Levels]:
        """The same columns."""
        return declared_features(self.levels, self.cuts, self.unknown)

    @property
    def rate(self) -> Fraction:
        """Of the noise on each count."""
        most = self.rows_each * (2 if self.adjacency == REPLACE else 1)
        return min(Fraction(self.epsilon), Fraction(repr(self.epsilon))) / most


def neighbours(adjacency: str, rows_each: int) -> str:
    """Between which files the loss is at most epsilon, in words."""
    one = "one row is" if rows_each == 1 else f"the rows of one person, at most {rows_each}, are"
    if adjacency == REPLACE:
        other, unit = ("another", "rows") if rows_each == 1 else ("others", "people")
        return f"{one} replaced by {other}; the number of {unit} is public"
    return f"{one} there or not; the number of rows is hidden, too"


def release_table(
    source: Source,
    out: Path,
    plan: TablePlan,
    *,
    seed: int | None = None,
    ledger: Ledger | None = None,
    people: People | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Write the noisy counts of a file, or of a folder, as CSV, and a note beside it; true counts are written nowhere.

    Parameters
    ----------
    out : Path
        Ends in .csv, and is none of the files; of a simulation, and of nothing else, in .simulated.csv.
    seed, ledger, people : as for `policysim.release.privatize.privatize_files`

    Returns
    -------
    dict
        What is public: `file`, `note_file`, `note`, `warnings` and `counts`, a list of levels and the noisy count.

    Raises
    ------
    DataError
        If a file cannot be read, or changes on the way; for rows outside of the levels, or none if that is public.
    OutputError
        If nothing can be written, or something is there; as BudgetError, for a release beyond the budget.
    """
    people = people or People()
    answer = release_files(
        source,
        out,
        ".csv",
        seed=seed,
        ledger=ledger,
        asked=("table", plan, people.id, source.dialects),
        draw=partial(_draw, source, plan=plan, people=people, seed=seed, progress=progress),
    )
    return {
        "file": out.as_posix(),
        "note_file": note_path(out).as_posix(),
        "note": answer["note"],
        "warnings": [] if seed is None else [UNDONE],
        "counts": [dict(zip([*plan.levels, COUNT], row, strict=True)) for row in answer["counts"]],
    }


def noisy_counts(counts: Sequence[int] | IntArray, plan: TablePlan, below: Below = secrets.randbelow) -> list[int]:
    """True counts, (cells,), with independent noise; cut at 0 only if the plan says so."""
    noised = [int(count) + discrete_laplace(plan.rate, below) for count in counts]
    return [max(0, count) for count in noised] if plan.no_negative else noised


def _draw(source: Source, out: Path, *, plan: TablePlan, people: People, seed: int | None, progress: Progress) -> Draw:
    """Count, add noise, and write the table; what is drawn are the levels of each cell, and its count."""
    sizes = tuple(map(len, plan.levels.values()))
    counts, bad, n_rows = np.zeros(math.prod(sizes), dtype=np.intp), BadRows(), 0
    for file, steps in source.in_turn(progress):
        codes = Codes(file, plan.features, bad, people)
        for batch in file.batches([*dict.fromkeys([*plan.levels, *people.columns])], steps):
            read = codes.read(batch)
            if read is not None:
                places = np.ravel_multi_index([read[1][name] for name in plan.levels], sizes)
                counts += np.bincount(places, minlength=len(counts))
        n_rows += codes.n_rows
    source.check_read(bad, people)
    if not n_rows and plan.adjacency == REPLACE:
        raise DataError(f"{source.path.as_posix()}: has no rows")
    noised = noisy_counts(counts, plan, secrets.randbelow if seed is None else random.Random(seed).randrange)
    table = [[*levels, count] for levels, count in zip(product(*plan.levels.values()), noised, strict=True)]
    schema = pa.schema([(name, pa.string()) for name in (*plan.levels, COUNT)])
    with open_writer(out, schema, ".csv") as writer:
        writer.write(pa.record_batch([list(map(str, column)) for column in zip(*table, strict=True)], schema=schema))
    keep_closed(out, [file.path for file in source.files])
    sync(out)
    release = Release(
        "privatize --as table",
        source.path.resolve().name,
        amount(plan.epsilon),
        tuple(plan.levels),
        adjacency=plan.adjacency,
        # Who is absent is protected, too, where presence is hidden: then everybody is charged.
        each=bool(people.id) and plan.adjacency == REPLACE,
        details={"released": out.name},
    )
    return Draw({"note": _note(plan, release=seed is None), "counts": table}, release, people.digests)


def _note(plan: TablePlan, *, release: bool) -> dict[str, Any]:
    """The note beside the table: nothing of the rows, neither their number nor seed nor digest."""
    return {
        "format": FORMAT,
        "what": "noisy table",
        "drawn": RELEASE if release else SIMULATION,
        "epsilon": plan.epsilon,
        "adjacency": plan.adjacency,
        "rows_per_person": plan.rows_each,
        "columns": [{"name": name, "levels": list(levels)} for name, levels in plan.columns.items()],
        "by": [{"name": name, "levels": list(levels)} for name, levels in plan.by.items()],
        "levels_from": DECLARED,
        "noise": {
            "mechanism": "discrete-laplace",
            "rate": str(plan.rate),
            "standard_deviation": standard_deviation(float(plan.rate)),
        },
        "negative_counts": "published as 0" if plan.no_negative else "published as they are",
        "guarantee": GUARANTEE.format(neighbours=neighbours(plan.adjacency, plan.rows_each)),
    }


def table_screen(document: Mapping[str, Any]) -> str:
    """The same as a screen; epsilon is never rounded down."""
    note, counts = document["note"], document["counts"]
    counted, groups = ([each["name"] for each in note[key]] for key in ("columns", "by"))
    what = " and ".join(counted) + (f" by {' and '.join(groups)}" if groups else "")
    deviation, epsilon = enough(note["noise"]["standard_deviation"], 3), enough(note["epsilon"], 6)
    lines = wrapped(
        f"{document['file']}: counts of {what}, each with discrete Laplace noise of standard deviation {deviation:g}. "
        f"ε = {epsilon:g} in all, between files in which {neighbours(note['adjacency'], note['rows_per_person'])}.",
        *(f"! {warning}" for warning in document["warnings"]),
    )
    lines += ["", cells([", ".join([*groups, *counted]), "noisy count"], WIDTHS)]
    for row in counts[:ROWS_SHOWN]:
        *levels, count = row.values()
        lines.append(cells([", ".join(levels), f"{count:,}".replace("-", "−")], WIDTHS))
    if len(counts) > ROWS_SHOWN:
        lines.append(f"... and {len(counts) - ROWS_SHOWN:,} more, in the file")
    negative = "is published as 0" if note["negative_counts"] == "published as 0" else "means few or none"
    lines += wrapped(f"A count below zero {negative}. A sum of counts has the noise of all of them.")
    return "\n".join([*lines, f"Note: {document['note_file']}", ""])

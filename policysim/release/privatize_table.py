"""The tables of a private file: reports counted, true counts estimated from them, and what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from policies.arrays import IntArray
from policies.local import Estimate, estimate, privatize
from policysim.files.bad_rows import BadRows, DataError
from policysim.question.answer import Page
from policysim.question.formats import enough
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import cells
from policysim.release.privatize_note import UNDONE, Note, Part, note_document, note_path, read_note
from policysim.release.privatize_source import Codes, open_source

COLUMNS = (44, 12, 12, 26)
ROWS_SHOWN = 40
NOT_PRIVATE = "NOT PRIVATE: these come from the true rows and no ε covers them; guard them like the data itself."


class Table:
    """How many rows hold each value of one part of a plan.

    Attributes
    ----------
    part : Part
    labels : list of tuple of str
        The level of each column, for each value, (k,).
    reports : array, (k,)
        Rows of the private file per value.
    truth : array, (k,)
        Rows with true values: private. 0 where only the private file was read.
    """

    def __init__(self, part: Part) -> None:
        """Begin at 0."""
        self.part = part
        self.labels = list(product(*part.levels.values()))
        self.reports: IntArray = np.zeros(len(self.labels), dtype=np.intp)
        self.truth = self.reports.copy()
        self._sizes = tuple(map(len, part.levels.values()))

    def draw(self, codes: dict[str, IntArray], rng: np.random.Generator | None) -> dict[str, IntArray]:
        """Private codes in place of the true ones, counted."""
        values = self._joined(codes)
        self.truth += np.bincount(values, minlength=len(self.labels))
        reports = np.unravel_index(privatize(values, self.part.channel, rng=rng), self._sizes)
        private = dict(zip(self.part.levels, reports, strict=True))
        self.count(private)
        return private

    def count(self, codes: dict[str, IntArray]) -> None:
        """Add reports."""
        self.reports += np.bincount(self._joined(codes), minlength=len(self.labels))

    def _joined(self, codes: dict[str, IntArray]) -> IntArray:
        joined: IntArray = np.ravel_multi_index([codes[column] for column in self.part.levels], self._sizes)
        return joined

    @cached_property
    def estimate(self) -> Estimate:
        """Unbiased shares of the true values with 95 % intervals, when all reports are counted."""
        return estimate(self.reports, self.part.channel)


def read_private(path: Path, progress: Progress = SILENT) -> tuple[Note, list[Table]]:
    """Estimate the true counts from a private file, or a folder of them, and the note beside it.

    Raises
    ------
    DataError
        If the note is missing or does not fit: a column that is not in the file, other levels, another number of rows.
    """
    note = read_note(path)
    levels, tables, bad, n_rows = note.plan.levels, list(map(Table, note.plan.parts)), BadRows(), 0
    for file, steps in open_source(path).in_turn(progress):
        for column in levels:
            if column not in file.schema.names:
                raise DataError(f"{file.path.as_posix()}: does not fit its note, which names a column {column!r}")
        codes = Codes(file, levels, bad)
        for batch in file.batches(list(levels), steps):
            reported = codes.read(batch)
            if reported is not None:
                for table in tables:
                    table.count(reported)
        n_rows += codes.n_rows
    bad.raise_if_any()
    if n_rows != note.n_rows:
        raise DataError(
            f"{path.as_posix()}: does not fit its note: it has {n_rows:,} rows, the note says {note.n_rows:,}"
        )
    return note, tables


def private_document(path: Path, note: Note, tables: Sequence[Table], *, true: bool = False) -> dict[str, Any]:
    """What is published, what to beware of, and the estimates in rows of the file.

    With `true`, also the true counts: what is not private stands below the key "not_private".
    """
    warnings, estimates = [], []
    if not note.release:
        warnings.append(UNDONE)
    if note.earlier is not None:
        warnings.append(note.earlier.warning)
    if note.plan.from_data:
        warnings.append(
            f"The levels of {', '.join(note.plan.from_data)} were taken from the private rows: that reveals which "
            "values occur, and ε does not cover it. Declare them: --levels COLUMN=A,B."
        )
    if note.unchanged:
        warnings.append(
            f"NOT privatised, unchanged: {', '.join(note.unchanged)}. They may also reveal the privatised ones."
        )
    for table in tables:
        found, n = table.estimate, table.estimate.n
        numbers = (found.shares * n, found.standard_errors * n, found.interval * n)
        rows = zip(table.labels, table.reports.tolist(), *(array.tolist() for array in numbers), strict=True)
        names = ("levels", "reports", "estimate", "standard_error", "interval")
        estimates.append(
            {"columns": list(table.part.levels), "rows": [dict(zip(names, row, strict=True)) for row in rows]}
        )
    document: dict[str, Any] = {
        "file": path.as_posix(),
        "note_file": note_path(path).as_posix(),
        "note": note_document(note),
        "warnings": warnings,
        "estimates": estimates,
    }
    if true:
        true_counts = [{"columns": list(table.part.levels), "true": table.truth.tolist()} for table in tables]
        document["not_private"] = {"warning": NOT_PRIVATE, "tables": true_counts}
    return document


def private_screen(document: dict[str, Any]) -> Page:
    """The same as a screen."""
    note, private = document["note"], document.get("not_private")
    channels = "; ".join(
        f"{' and '.join(channel['columns'])} by {channel['mechanism']} response over "
        f"{channel['parameters']['n_values']:,} values (ε = {enough(channel['epsilon'], 6):g})"
        for channel in note["channels"]
    )
    estimates, true = [], []
    for table in document["estimates"]:
        shown = [
            [_count(row["reports"]), _count(row["estimate"]), " to ".join(map(_count, row["interval"]))]
            for row in table["rows"]
        ]
        heading = ["Estimated from the private file", "reports", "estimate", "95 % interval"]
        estimates.append(_lines(heading, table, shown))
    for table, counted in zip(document["estimates"], private["tables"] if private else (), strict=False):
        shown = [
            [_count(count), _count(row["estimate"]), _count(row["estimate"] - count)]
            for row, count in zip(table["rows"], counted["true"], strict=True)
        ]
        true.append(_lines(["", "true", "estimate", "error"], table, shown))
    texts = {
        "file": document["file"],
        "n_rows": f"{note['rows']:,}",
        "epsilon": f"{enough(note['epsilon'], 6):g}",
        "channels": channels,
        "warnings": document["warnings"],
        "estimates": estimates,
        "not_private": [private["warning"]] if private else [],
        "true_counts": true,
        "note": document["note_file"],
    }
    return Page("privatize-screen.txt", texts)


def _lines(heading: list[str], table: dict[str, Any], shown: list[list[str]]) -> list[str]:
    lines = [cells(heading, COLUMNS)]
    for row, numbers in zip(table["rows"][:ROWS_SHOWN], shown, strict=False):
        label = ", ".join(f"{column} {level}" for column, level in zip(table["columns"], row["levels"], strict=True))
        lines.append(cells([label if len(label) < COLUMNS[0] else f"{label[: COLUMNS[0] - 2]}…", *numbers], COLUMNS))
    if len(shown) > ROWS_SHOWN:
        lines.append(f"... and {len(shown) - ROWS_SHOWN:,} more; --json lists all")
    return lines


def _count(value: float) -> str:
    # Adding 0 makes -0 of a rounded -0.3 plain 0.
    return f"{round(value) + 0:,}".replace("-", "−")

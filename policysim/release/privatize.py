"""Privatise columns of a file, or of a folder of files, row by row, and estimate true counts from what comes out.

All appears with its note, or nothing does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from policies.arrays import IntArray
from policies.local import Estimate, estimate, privatize
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.columns_file import check_ending, open_writer
from policysim.files.many_files import ENDINGS
from policysim.files.terminal import json_text
from policysim.files.whole_files import check_writable
from policysim.question import OutputError
from policysim.question.answer import Page
from policysim.question.formats import enough
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import cells
from policysim.release.durable_files import folder_beside, sync
from policysim.release.ledger import Earlier, Release, RepeatedReleaseError, appear, check_release, release_once
from policysim.release.privatize_note import (
    UNDONE,
    Note,
    Part,
    Randomization,
    is_release,
    note_document,
    note_path,
    read_note,
)
from policysim.release.privatize_source import Codes, Source, open_source

COLUMNS = (44, 12, 12, 26)
ROWS_SHOWN = 40
NOT_PRIVATE = "NOT PRIVATE: these come from the true rows and no ε covers them; guard them like the data itself."

Drawn = TypeVar("Drawn")


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


def privatize_files(
    source: Source,
    out: Path,
    plan: Randomization,
    *,
    seed: int | None = None,
    ledger: Path | None = None,
    again: bool = False,
    progress: Progress = SILENT,
) -> tuple[Note, list[Table]]:
    """Write a copy of a file, or of a folder, whose private columns hold reports, and a note beside it.

    All files are one release: one note, one entry in the ledger, one epsilon for a row. Until the end, what is drawn
    stands in a folder beside OUT that only its owner may enter; true values of private columns are written nowhere.

    Parameters
    ----------
    out : Path
        Of one file: ends as it does, and is not it. Of a folder: a folder, in which each file keeps its name.
    seed : int, optional
        For a simulation, which is not counted. By default the operating system's randomness, for a release.
    ledger : Path, optional
        Where a release is counted; by default in the folder of the files.
    again : bool
        Make a release of rows that were released before, or in the place of one.

    Returns
    -------
    Note, list of Table
        A table for each part of the plan, of all files together; also with the true counts, which are private.

    Raises
    ------
    DataError
        If a file cannot be read, or changes on the way; if there are no rows, or rows outside of the levels.
    OutputError
        If nothing can be written; as RepeatedReleaseError, for a repetition without `again`.
    """
    ledger = (ledger or source.ledger()) if seed is None else None
    release = None
    if ledger:
        release = source.release(out, [*plan.levels], plan.epsilon, unchanged=source.unchanged(plan.levels))

    def noted(drawn: tuple[Note, list[Table]], earlier: Earlier | None) -> dict[str, Any]:
        return note_document(replace(drawn[0], earlier=earlier))

    (note, tables), earlier = release_files(
        out,
        check=partial(check_out, source, out, ledger, again=again),
        draw=partial(_draw, source, plan=plan, seed=seed, progress=progress),
        note=noted,
        release=release,
        ledger=ledger,
        again=again,
    )
    return replace(note, earlier=earlier), tables


def release_files(
    out: Path,
    *,
    check: Callable[[], None],
    draw: Callable[[Path], Drawn],
    note: Callable[[Drawn, Earlier | None], dict[str, Any]],
    release: Release | None,
    ledger: Path | None,
    again: bool,
) -> tuple[Drawn, Earlier | None]:
    """Write a file, or a folder, and the note beside it, once they are listed in the ledger: all appears, or nothing.

    Parameters
    ----------
    check : callable
        Refuses an output, as OutputError.
    draw : callable
        Writes to a path, which only the owner may read until the end, and returns what was drawn.
    note : callable
        From that, and from earlier releases of the same rows, to the note.
    release, ledger : Release and Path, or None
        None for a simulation, which is not counted.
    again : bool
        Make a release of rows that were released before, or in the place of one.

    Raises
    ------
    OutputError
        If nothing can be written; as RepeatedReleaseError, for a repetition without `again`.
    """
    check()
    if release and ledger:
        check_release(ledger, release, again=again)
    try:
        with folder_beside(out) as stage:
            drawn = draw(stage / out.name)

            def moves(earlier: Earlier | None) -> list[tuple[Path, Path]]:
                check()  # once more: another run may have ended since
                place = note_path(out)
                part = stage / place.name
                part.write_text(json_text(note(drawn, earlier)), encoding="utf-8")
                sync(part)
                # An old release leaves first: no data stand beside another's note.
                old = [(path, stage / f"old {path.name}") for path in (out, place) if path.exists()]
                return [*old, (part, place), (stage / out.name, out)]

            if release and ledger:
                return drawn, release_once(ledger, release, again=again, prepare=moves)
            appear(moves(None))
            return drawn, None
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {out.as_posix()}: {error.strerror or error}") from None


def check_out(source: Source, out: Path, ledger: Path | None, *, again: bool) -> None:
    """Refuse an output that cannot be written, or would replace the true values, the ledger or a release: OutputError.

    Without a ledger it is a simulation's.
    """
    name, note = out.as_posix(), note_path(out)
    if source.several and (out.is_symlink() or (out.exists() and not out.is_dir())):
        raise OutputError(f"{name}: is a {'link' if out.is_symlink() else 'file'}, and must be a new folder")
    if out.exists() and out.samefile(source.path):
        what = "folder" if source.several else "file"
        raise OutputError(f"{name}: is the {what} with the true values, which would be lost")
    if source.several:
        # A folder that is not new is empty, or holds what an earlier run wrote, and nothing else.
        for path in sorted(out.iterdir()) if out.is_dir() else ():
            if not note.exists() or path.is_dir() or path.suffix.lower() not in ENDINGS:
                raise OutputError(f"{name}: holds {path.name}, which privatize did not write there; name a new folder")
    elif check_ending(out) != check_ending(source.path):
        raise OutputError(f"{name}: must end in {check_ending(source.path)} as {source.path.name} does")
    elif out.is_dir():
        raise OutputError(f"{name}: is a folder")
    check_place(source, out, ledger, again=again)


def check_place(source: Source, out: Path, ledger: Path | None, *, again: bool) -> None:
    """What holds of every output, whether it is a copy of the data or counts: the errors of `check_out`."""
    name, note = out.as_posix(), note_path(out)
    if note.is_dir():
        raise OutputError(f"{note.as_posix()}: is a folder")
    place = Path(os.path.realpath(ledger or source.path))
    if ledger and {Path(os.path.realpath(each)) for each in (out, note)} & {place, *place.parents}:
        raise OutputError(f"{ledger.as_posix()}: is to be the private data or their note, not the ledger")
    check_writable(out.parent)
    if not again and out.exists() and note.exists() and is_release(note):
        raise RepeatedReleaseError(
            f"{name}: is a release, whose epsilon is spent; name another {'folder' if out.is_dir() else 'file'}, "
            "or replace it with --again"
        )


def _draw(
    source: Source, out: Path, plan: Randomization, seed: int | None, progress: Progress
) -> tuple[Note, list[Table]]:
    """Draw all files into one, or into a folder, and wait until they are on the disk."""
    tables, bad, n_rows = list(map(Table, plan.parts)), BadRows(), 0
    rng = None if seed is None else np.random.default_rng(seed)
    if source.several:
        out.mkdir()
    for file, steps in source.in_turn(progress):
        codes = Codes(file, plan.features, bad)
        target = out / file.path.name if source.several else out
        with open_writer(target, codes.schema, check_ending(file.path)) as writer:
            for batch in file.batches(progress=steps):
                true_codes = codes.read(batch)
                if true_codes is None:
                    continue  # Nothing will be released; what is wrong is counted to the end.
                private: dict[str, IntArray] = {}
                for table in tables:
                    private |= table.draw(true_codes, rng)
                writer.write(codes.replace(batch, private))
        sync(target)
        n_rows += codes.n_rows
    bad.raise_if_any()
    if not n_rows:
        raise DataError(f"{source.path.as_posix()}: has no rows")
    source.check_unchanged()
    if source.several:
        sync(out)
    return Note(plan, source.unchanged(plan.levels), n_rows, seed is None), tables


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
        codes = Codes(file, note.plan.features, bad)
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

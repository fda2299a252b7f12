"""Privatise columns of a file, or of a folder of files, row by row; estimate the true counts from what came out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from pathlib import Path

import numpy as np

from policies.arrays import IntArray
from policies.local import Estimate, estimate, privatize
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.columns_file import check_ending, open_writer
from policysim.files.output import folder_beside
from policysim.question import OutputError
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress
from policysim.release.ledger import Earlier, appear, check_release, release_once, sync
from policysim.release.privatize_codes import Codes
from policysim.release.privatize_note import Note, Part, Randomization, note_path, note_text, read_note
from policysim.release.privatize_source import Source, check_out, open_source

with optional():
    import pyarrow as pa


@dataclass(eq=False)
class Table:
    """How many rows hold each value of one part of a plan.

    Attributes
    ----------
    part : Part
    levels : tuple of tuple of str
        What each of its columns may hold.
    reports : array, (k,)
        Rows of the private file per value.
    truth : array, (k,)
        Rows with true values: private. 0 where only the private file was read.
    """

    part: Part
    levels: tuple[tuple[str, ...], ...]
    reports: IntArray = field(init=False)
    truth: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Begin at 0."""
        self.reports = np.zeros(self.part.channel.n_values, dtype=np.intp)
        self.truth = self.reports.copy()

    def draw(self, codes: dict[str, IntArray], rng: np.random.Generator | None) -> dict[str, IntArray]:
        """Private codes in place of the true ones, counted."""
        values = self._joined(codes)
        reports = privatize(values, self.part.channel, rng=rng)
        self.truth += np.bincount(values, minlength=len(self.truth))
        self.reports += np.bincount(reports, minlength=len(self.reports))
        return dict(zip(self.part.columns, np.unravel_index(reports, self._sizes), strict=True))

    def count(self, codes: dict[str, IntArray]) -> None:
        """Add reports that were drawn before."""
        self.reports += np.bincount(self._joined(codes), minlength=len(self.reports))

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """The level of each column, for each value, (k,)."""
        return list(product(*self.levels))

    @cached_property
    def estimate(self) -> Estimate:
        """Unbiased shares of the true values with 95 % intervals, when all reports are counted."""
        return estimate(self.reports, self.part.channel)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.levels))

    def _joined(self, codes: dict[str, IntArray]) -> IntArray:
        joined: IntArray = np.ravel_multi_index([codes[column] for column in self.part.columns], self._sizes)
        return joined


def _tables(plan: Randomization) -> tuple[Table, ...]:
    return tuple(Table(part, tuple(plan.levels[column] for column in part.columns)) for part in plan.parts)


def privatize_files(
    source: Source,
    out: Path,
    plan: Randomization,
    *,
    seed: int | None = None,
    ledger: Path | None = None,
    again: bool = False,
    progress: Progress = SILENT,
) -> tuple[Note, tuple[Table, ...]]:
    """Write a copy of a file, or of a folder, whose private columns hold reports, and a note beside it.

    All files are one release: one note, one entry in the ledger, one epsilon for a row. Until the end, what is drawn
    stands in a folder beside OUT that only its owner may enter; true values of private columns are written nowhere.

    Parameters
    ----------
    source : Source
        From `open_source`; each file is read once, a batch at a time.
    out : Path
        Of one file: ends as it does, and is not it. Of a folder: a folder, in which each file keeps its name. It and
        its note appear together, or nothing does.
    plan : Randomization
        From `make_plan`.
    seed : int, optional
        For simulation only, and the note says so. By default the operating system's randomness, for a release.
    ledger : Path, optional
        Where a release is counted; by default in the folder of the files. A simulation is not counted.
    again : bool
        Make a release of rows that were released before, or in the place of one.
    progress : Progress, optional
        Told how much is to be read, and how much was.

    Returns
    -------
    note : Note
    tables : tuple of Table
        One for each part of the plan, of all files together; also with the true counts, which are private.

    Raises
    ------
    DataError
        If a file cannot be read, or changes on the way; if there are no rows, or rows outside of the levels.
    RepeatedReleaseError
        For a repetition without `again`.
    OutputError
        If nothing can be written.
    """
    columns, release = tuple(plan.levels), None
    if seed is None:
        ledger = ledger or source.ledger()
        release = source.release(out, columns, plan.epsilon)
    check_out(source, out, ledger, again=again)
    if release and ledger:
        check_release(ledger, release, again=again)
    try:
        with folder_beside(out) as stage:
            tables, n_rows = _draw(source, stage / out.name, plan, seed, progress)
            source.require_unchanged()
            note = partial(Note, plan, source.unchanged(columns), n_rows, release is not None)

            def moves(earlier: Earlier | None) -> list[tuple[Path, Path]]:
                check_out(source, out, ledger, again=again)  # once more: another run may have ended since
                return _moves(stage, out, note(earlier))

            earlier = None
            if release and ledger:
                earlier = release_once(ledger, release, again=again, prepare=moves)
            else:
                appear(moves(None))
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {out.as_posix()}: {error.strerror or error}") from None
    return note(earlier), tables


def _draw(
    source: Source, out: Path, plan: Randomization, seed: int | None, progress: Progress
) -> tuple[tuple[Table, ...], int]:
    """Draw all files into one, or into a folder, and wait until they are on the disk: their tables and rows."""
    tables, bad, n_rows = _tables(plan), BadRows(), 0
    rng = None if seed is None else np.random.default_rng(seed)
    if source.several:
        out.mkdir()
    for file, steps in source.in_turn(progress):
        codes = Codes(file, plan.levels, bad)
        # Without what the file says about itself, which may tell of the true rows.
        schema = pa.schema([codes.field(column) if column.name in plan.levels else column for column in file.schema])
        target = out / file.path.name if source.several else out
        with open_writer(target, schema, check_ending(file.path)) as writer:
            for batch in file.batches(progress=steps):
                true_codes = codes.read(batch)
                if true_codes is None:
                    continue  # Nothing will be released; what is wrong is counted to the end.
                private: dict[str, IntArray] = {}
                for table in tables:
                    private |= table.draw(true_codes, rng)
                cells = [
                    codes.values(name, private[name], schema.field(name).type)
                    if name in private
                    else batch.column(name)
                    for name in schema.names
                ]
                writer.write(pa.RecordBatch.from_arrays(cells, schema=schema))
        sync(target)
        n_rows += codes.n_rows
    bad.raise_if_any()
    if not n_rows:
        raise DataError(f"{source.path.as_posix()}: has no rows")
    if source.several:
        sync(out)
    return tables, n_rows


def _moves(stage: Path, out: Path, note: Note) -> list[tuple[Path, Path]]:
    """Write the note; what is to take which name. An old release leaves first: no data stand beside another's note."""
    place = note_path(out)
    part = stage / place.name
    part.write_text(note_text(note), encoding="utf-8")
    sync(part)
    old = [(path, stage / f"old {path.name}") for path in (out, place) if path.exists()]
    return [*old, (part, place), (stage / out.name, out)]


def read_private(path: Path, progress: Progress = SILENT) -> tuple[Note, tuple[Table, ...]]:
    """Estimate the true counts from a private file, or a folder of them, and the note beside it.

    Raises
    ------
    DataError
        If the note is missing or does not fit: a column that is not in the file, other levels, another number of rows.
    """
    note = read_note(path)
    tables, bad, n_rows = _tables(note.plan), BadRows(), 0
    for file, steps in open_source(path).in_turn(progress):
        for column in note.plan.levels:
            if column not in file.schema.names:
                raise DataError(f"{file.path.as_posix()}: does not fit its note, which names a column {column!r}")
        codes = Codes(file, note.plan.levels, bad)
        for batch in file.batches(list(note.plan.levels), steps):
            reported = codes.read(batch)
            if reported is not None:
                for table in tables:
                    table.count(reported)
        n_rows += codes.n_rows
    if not n_rows:
        raise DataError(f"{path.as_posix()}: has no rows")
    bad.raise_if_any()
    if n_rows != note.n_rows:
        raise DataError(
            f"{path.as_posix()}: does not fit its note: it has {n_rows:,} rows, the note says {note.n_rows:,}"
        )
    return note, tables

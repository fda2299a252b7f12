"""Privatise columns of a file, or of a folder of files, row by row; estimate the true counts from what came out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
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


@dataclass(frozen=True, eq=False)
class EstimatedTable:
    """The estimated counts of the values of one part.

    Attributes
    ----------
    part : Part
    labels : tuple of tuple of str, (k,)
        The level of each column, for each value.
    reports : array, (k,)
        Rows of the private file per value.
    estimate : Estimate
        Unbiased shares of the true values with 95 % intervals.
    truth : array, (k,), or None
        The true counts: private, only if they were asked for.
    """

    part: Part
    labels: tuple[tuple[str, ...], ...]
    reports: IntArray
    estimate: Estimate
    truth: IntArray | None = None


@dataclass
class Tally:
    """Counts of the reports of one part of the plan, and of its true values."""

    part: Part
    sizes: tuple[int, ...]
    reports: IntArray = field(init=False)
    truth: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Begin at 0."""
        self.reports = np.zeros(self.part.channel.n_values, dtype=np.intp)
        self.truth = self.reports.copy()

    def draw(self, codes: dict[str, IntArray], rng: np.random.Generator | None) -> dict[str, IntArray]:
        """Private codes in place of the true ones."""
        values = self._joined(codes)
        reports = privatize(values, self.part.channel, rng=rng)
        self.truth += np.bincount(values, minlength=len(self.truth))
        self.reports += np.bincount(reports, minlength=len(self.reports))
        return dict(zip(self.part.columns, np.unravel_index(reports, self.sizes), strict=True))

    def count(self, codes: dict[str, IntArray]) -> None:
        """Add reports that were drawn before."""
        self.reports += np.bincount(self._joined(codes), minlength=len(self.reports))

    def table(self, plan: Randomization, *, keep_true: bool = False) -> EstimatedTable:
        """The estimate from all reports so far."""
        labels = tuple(product(*(plan.levels[column] for column in self.part.columns)))
        found = estimate(self.reports, self.part.channel)
        return EstimatedTable(self.part, labels, self.reports, found, self.truth if keep_true else None)

    def _joined(self, codes: dict[str, IntArray]) -> IntArray:
        joined: IntArray = np.ravel_multi_index([codes[column] for column in self.part.columns], self.sizes)
        return joined


def privatize_files(
    source: Source,
    out: Path,
    plan: Randomization,
    *,
    seed: int | None = None,
    keep_true: bool = False,
    ledger: Path | None = None,
    again: bool = False,
    progress: Progress = SILENT,
) -> tuple[Note, tuple[EstimatedTable, ...]]:
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
    keep_true : bool
        Also return the true counts, which are private; they are never in what is released.
    ledger : Path, optional
        Where a release is counted; by default in the folder of the files. A simulation is not counted.
    again : bool
        Make a release of rows that were released before, or in the place of one.
    progress : Progress, optional
        Told how much is to be read, and how much was.

    Returns
    -------
    note : Note
    tables : tuple of EstimatedTable
        One for each part of the plan, of all files together.

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
        check_release(ledger, release, again=again)
    check_out(source, out, ledger, again=again)
    try:
        with folder_beside(out) as stage:
            tallies, n_rows = _draw(source, stage / out.name, plan, seed, progress)
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
    return note(earlier), tuple(tally.table(plan, keep_true=keep_true) for tally in tallies)


def _draw(
    source: Source, out: Path, plan: Randomization, seed: int | None, progress: Progress
) -> tuple[list[Tally], int]:
    """Draw all files into one, or into a folder, and wait until they are on the disk: their counts and rows."""
    tallies, bad, n_rows = [Tally(part, plan.sizes(part)) for part in plan.parts], BadRows(), 0
    rng = None if seed is None else np.random.default_rng(seed)
    if source.several:
        out.mkdir()
        progress.expect(len(source.files))
    for file in source.files:
        codes = Codes(file, plan.levels, bad)
        # Without what the file says about itself, which may tell of the true rows.
        schema = pa.schema([codes.field(column) if column.name in plan.levels else column for column in file.schema])
        target = out / file.path.name if source.several else out
        with open_writer(target, schema, check_ending(file.path)) as writer:
            for batch in file.batches(progress=SILENT if source.several else progress):
                true_codes = codes.read(batch)
                if true_codes is None:
                    continue  # Nothing will be released; what is wrong is counted to the end.
                private: dict[str, IntArray] = {}
                for tally in tallies:
                    private |= tally.draw(true_codes, rng)
                cells = [
                    codes.values(name, private[name], schema.field(name).type)
                    if name in private
                    else batch.column(name)
                    for name in schema.names
                ]
                writer.write(pa.RecordBatch.from_arrays(cells, schema=schema))
        sync(target)
        n_rows += codes.n_rows
        if source.several:
            progress.advance()
    bad.raise_if_any()
    if not n_rows:
        raise DataError(f"{source.path.as_posix()}: has no rows")
    if source.several:
        sync(out)
    return tallies, n_rows


def _moves(stage: Path, out: Path, note: Note) -> list[tuple[Path, Path]]:
    """Write the note; what is to take which name. An old release leaves first: no data stand beside another's note."""
    place = note_path(out)
    part = stage / place.name
    part.write_text(note_text(note), encoding="utf-8")
    sync(part)
    old = [(path, stage / f"old {path.name}") for path in (out, place) if path.exists()]
    return [*old, (part, place), (stage / out.name, out)]


def read_private(path: Path, progress: Progress = SILENT) -> tuple[Note, tuple[EstimatedTable, ...]]:
    """Estimate the true counts from a private file, or a folder of them, and the note beside it.

    Raises
    ------
    DataError
        If the note is missing or does not fit: a column that is not in the file, other levels, another number of rows.
    """
    note = read_note(path)
    tallies, bad, n_rows = [Tally(part, note.plan.sizes(part)) for part in note.plan.parts], BadRows(), 0
    for file in open_source(path).files:
        for column in note.plan.levels:
            if column not in file.schema.names:
                raise DataError(f"{file.path.as_posix()}: does not fit its note, which names a column {column!r}")
        codes = Codes(file, note.plan.levels, bad)
        for batch in file.batches(list(note.plan.levels), progress):
            reported = codes.read(batch)
            if reported is not None:
                for tally in tallies:
                    tally.count(reported)
        n_rows += codes.n_rows
    if not n_rows:
        raise DataError(f"{path.as_posix()}: has no rows")
    bad.raise_if_any()
    if n_rows != note.n_rows:
        raise DataError(
            f"{path.as_posix()}: does not fit its note: it has {n_rows:,} rows, the note says {note.n_rows:,}"
        )
    return note, tuple(tally.table(note.plan) for tally in tallies)

"""Privatise columns of a file row by row, and estimate the table of true counts from the private file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from policies.arrays import IntArray
from policies.local import Estimate, estimate, privatize
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import ColumnsFile, check_ending, open_columns, open_writer
from policysim.files.output import check_writable, part_beside
from policysim.question import OutputError
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress
from policysim.release.privatize_codes import Codes
from policysim.release.privatize_ledger import Ledger, RepeatedReleaseError, open_ledger
from policysim.release.privatize_note import Note, Part, Randomization, note_path, note_text, read_note

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
class _Tally:
    """Counts of the reports of one part, and of its true values."""

    part: Part
    sizes: tuple[int, ...]
    reports: IntArray = field(init=False)
    truth: IntArray = field(init=False)

    def __post_init__(self) -> None:
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


def privatize_file(
    file: ColumnsFile,
    out: Path,
    plan: Randomization,
    *,
    rng: np.random.Generator | None = None,
    keep_true: bool = False,
    ledger: Ledger | None = None,
    again: bool = False,
    progress: Progress = SILENT,
) -> tuple[Note, tuple[EstimatedTable, ...]]:
    """Write a copy of a file whose private columns hold reports, and its note beside it.

    Parameters
    ----------
    file : ColumnsFile
        From `open_columns`; read once, a batch at a time.
    out : Path
        Ends as the file does, and is not the file. It and its note appear together, or nothing does.
    plan : Randomization
        From `make_plan`.
    rng : numpy.random.Generator, optional
        For simulation only, and the note says so. By default the operating system's randomness, for a release.
    keep_true : bool
        Also return the true counts, which are private; they are never written.
    ledger : Ledger, optional
        Counts a release, and is written before the private file appears; from `open_ledger`, by default beside the
        file. A simulation is not counted.
    again : bool
        Make a release of a file that was released before, or in the place of one.
    progress : Progress, optional
        Told how much is to be read, and how much was.

    Returns
    -------
    note : Note
    tables : tuple of EstimatedTable
        One for each part of the plan.

    Raises
    ------
    DataError
        If the file cannot be read, or has no rows, or rows outside of the levels.
    OutputError
        If nothing can be written, or for a repetition without `again`.
    """
    check_out(file.path, out, again=again)
    columns, unchanged = tuple(plan.levels), unchanged_columns(file, tuple(plan.levels))
    if rng is None:
        ledger = ledger or open_ledger(file.path)
        check_ledger(ledger, file, out, columns, plan.epsilon, again=again)
    codes = Codes(file, plan.levels)
    tallies = _tallies(plan)
    with _appearing_together(out, note_path(out)) as (data_part, note_part, before):
        # Without what the file says about itself, which may tell of the true rows.
        schema = pa.schema([codes.field(column) if column.name in plan.levels else column for column in file.schema])
        with open_writer(data_part, schema, check_ending(out)) as writer:
            for batch in file.batches(progress=progress):
                true_codes = codes.read(batch)
                if true_codes is None:
                    continue  # Nothing will be written; what is wrong is counted to the end.
                private: dict[str, IntArray] = {}
                for tally in tallies:
                    private |= tally.draw(true_codes, rng)
                writer.write(_with_columns(batch, schema, codes, private))
        codes.finish()
        counted = ledger if rng is None else None
        earlier = counted.earlier(columns, unchanged) if counted else None
        note = Note(plan, unchanged, codes.n_rows, release=rng is None, earlier=earlier)
        note_part.write_text(note_text(note), encoding="utf-8")
        if counted:
            before.append((counted.with_release(columns, unchanged, plan.epsilon, out), counted.path))
    return note, tuple(tally.table(plan, keep_true=keep_true) for tally in tallies)


def read_private(path: Path, progress: Progress = SILENT) -> tuple[Note, tuple[EstimatedTable, ...]]:
    """Estimate the true counts from a private file and the note beside it.

    Raises
    ------
    DataError
        If the note is missing or does not fit: a column that is not in the file, other levels, another number of rows.
    """
    note, file = read_note(path), open_columns(path)
    plan = note.plan
    for column in plan.levels:
        if column not in file.schema.names:
            raise DataError(f"{path.as_posix()}: does not fit its note, which names a column {column!r}")
    codes, tallies = Codes(file, plan.levels), _tallies(plan)
    for batch in file.batches(list(plan.levels), progress):
        reported = codes.read(batch)
        if reported is not None:
            for tally in tallies:
                tally.count(reported)
    codes.finish()
    if codes.n_rows != note.n_rows:
        raise DataError(
            f"{path.as_posix()}: does not fit its note: it has {codes.n_rows:,} rows, the note says {note.n_rows:,}"
        )
    return note, tuple(tally.table(plan) for tally in tallies)


def _tallies(plan: Randomization) -> list[_Tally]:
    return [_Tally(part, plan.sizes(part)) for part in plan.parts]


def _with_columns(
    batch: pa.RecordBatch, schema: pa.Schema, codes: Codes, private: dict[str, IntArray]
) -> pa.RecordBatch:
    columns = [
        codes.values(name, private[name], schema.field(name).type) if name in private else batch.column(name)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def unchanged_columns(file: ColumnsFile, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a file that pass through as they are."""
    return tuple(name for name in file.schema.names if name not in columns)


def check_ledger(
    ledger: Ledger, file: ColumnsFile, out: Path, columns: tuple[str, ...], epsilon: float, *, again: bool
) -> None:
    """Refuse a release that was made before, or a ledger that would be written over: OutputError."""
    if ledger.path.absolute() in (out.absolute(), note_path(out).absolute()):
        raise OutputError(f"{ledger.path.as_posix()}: is to be the private file or its note, not the ledger")
    ledger.require_writable()
    if not again:
        ledger.refuse_repetition(file.path, columns, unchanged_columns(file, columns), epsilon)


def check_out(source: Path, out: Path, *, again: bool = False) -> None:
    """Refuse an output file that cannot be written, or would replace the source or a release: OutputError."""
    if check_ending(out) != check_ending(source):
        raise OutputError(f"{out.as_posix()}: must end in {check_ending(source)} as {source.name} does")
    for path in (out, note_path(out)):
        if path.is_dir():
            raise OutputError(f"{path.as_posix()}: is a folder")
    if out.exists() and out.samefile(source):
        raise OutputError(f"{out.as_posix()}: is the file with the true values, which would be lost")
    check_writable(out.parent)
    if not again and out.exists() and _may_be_a_release(out):
        raise RepeatedReleaseError(
            f"{out.as_posix()}: is a release, whose epsilon is spent; name another file, or replace it with --again"
        )


def _may_be_a_release(private: Path) -> bool:
    """Whether a file has a note that does not say that it is a simulation."""
    try:
        return note_path(private).exists() and read_note(private).release
    except DataError:
        return True


@contextmanager
def _appearing_together(data: Path, note: Path) -> Iterator[tuple[Path, Path, list[tuple[Path, Path]]]]:
    """Fresh names beside two files, whose content takes their place when all is written, and vanishes otherwise.

    Files of the list take their names before these do, and keep them.
    """
    before: list[tuple[Path, Path]] = []
    moved: list[Path] = []
    try:
        with ExitStack() as stack:
            parts = [stack.enter_context(part_beside(target)) for target in (data, note)]
            yield parts[0], parts[1], before
            for part in parts:
                with part.open("rb") as stream:
                    os.fsync(stream.fileno())
            for part, target in before:
                part.replace(target)
            # The old note goes first: at no time does a file stand beside a note that is not its own.
            note.unlink(missing_ok=True)
            for part, target in zip(parts, (data, note), strict=True):
                moved.append(target)
                part.replace(target)
            moved.clear()
    except OSError as error:
        raise OutputError(f"cannot write {data.as_posix()}: {error.strerror or error}") from None
    finally:
        for path in (*moved, *(part for part, _ in before)):
            path.unlink(missing_ok=True)

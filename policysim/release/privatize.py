"""Privatise columns of a file, or of many, row by row; estimate the table of true counts from what came out."""

from __future__ import annotations

import functools
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from policysim.files.bad_rows import DataError, raise_bad_parts
from policysim.files.workers import Arrays, Workers
from policysim.question import OutputError
from policysim.question.protocol import SILENT, Progress
from policysim.release.privatize_codes import Codes
from policysim.release.privatize_ledger import Ledger, open_ledger
from policysim.release.privatize_note import Note, Randomization, note_path, note_text, read_note
from policysim.release.privatize_part import Drawing, EstimatedTable, Tally, privatize_part, tallies_of
from policysim.release.privatize_source import Source, open_source
from policysim.release.privatize_stage import KNOWN, Stage, appear, check_out, staged


def privatize_files(
    source: Source,
    out: Path,
    plan: Randomization,
    *,
    seed: int | None = None,
    keep_true: bool = False,
    ledger: Ledger | None = None,
    again: bool = False,
    workers: Workers | None = None,
    progress: Progress = SILENT,
) -> tuple[Note, tuple[EstimatedTable, ...]]:
    """Write a copy of a file, or of many, whose private columns hold reports, and a note beside it.

    All files are one release: one note, one entry in the ledger, one ε for a row. Whoever works on them and however
    often a file is worked on, one draw of each file is released. A file whose worker died is drawn again, and what the
    dead one left is removed before anything appears. A run that is taken up (`workers.resume`) releases what was drawn
    before, and draws only what is missing. Until the end all is in `OUT.unreleased`, which only its owner may enter;
    the ledger is written once, when all files are drawn, before they appear.

    Parameters
    ----------
    source : Source
        From `open_source`; each file is read once, a batch at a time.
    out : Path
        Of one file: ends as it does, and is not it. Of many: a folder, in which each keeps its name. It and its note
        appear together, or nothing does.
    plan : Randomization
        From `make_plan`.
    seed : int, optional
        For simulation only, and the note says so. By default the operating system's randomness, for a release. Each of
        many files has a stream of its own, from the seed and its name.
    keep_true : bool
        Also return the true counts, which are private; they are never in what is released.
    ledger : Ledger, optional
        Counts a release, and is written before the private files appear; from `open_ledger`, by default beside the
        source. A simulation is not counted.
    again : bool
        Make a release of rows that were released before, or in the place of one.
    workers : Workers, optional
        Who works on the files; by default this process, and nothing is kept of a run that ends early. What is to be
        kept stands in `OUT.unreleased`, whatever `workers.kept` says.
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
    OutputError
        If nothing can be written, or for a repetition without `again`.
    UsageError
        For a cluster that cannot be used.
    """
    check_out(source, out, again=again)
    columns, unchanged = tuple(plan.levels), source.unchanged(tuple(plan.levels))
    if seed is None:
        ledger = ledger or open_ledger(source.path, parts=source.parts)
        check_ledger(ledger, source, out, columns, plan.epsilon, again=again)
    workers = workers or Workers()
    with staged(out, resume=workers.resume) as stage:
        if workers.kept:
            workers, stage.keep = replace(workers, kept=stage.path / KNOWN), True
        alone = not source.several and not workers.cluster
        drawing = Drawing(plan, stage.path, seed, source.several, keep_true, progress if alone else SILENT)
        tallies, n_rows, drawn = _drawn(source, drawing, stage, workers, SILENT if alone else progress)
        # What was known of the files is used up: now all of them are released, or all are drawn anew.
        stage.keep = False
        source.require_unchanged()
        counted = ledger if seed is None else None
        earlier = counted.earlier(columns, unchanged) if counted else None
        note = Note(plan, unchanged, n_rows, release=seed is None, earlier=earlier)
        appear(
            stage,
            stage.whole(drawn) if source.several else stage.path.joinpath(*drawn[0]),
            out,
            note_text(note),
            (lambda: (counted.with_release(columns, unchanged, plan.epsilon, out), counted.path)) if counted else None,
        )
    return note, tuple(tally.table(plan, keep_true=keep_true) for tally in tallies)


def _drawn(
    source: Source, drawing: Drawing, stage: Stage, workers: Workers, progress: Progress
) -> tuple[list[Tally], int, list[tuple[str, str]]]:
    """The counts of all files, their rows, and what was drawn of each: (file, draw)."""
    tallies, n_rows, drawn = tallies_of(drawing.plan), 0, []
    bad: dict[str, Arrays] = {}
    work = functools.partial(privatize_part, drawing)
    try:
        with closing(workers.map(work, source.parts, drawing.key, progress)) as answers:
            for found in answers:
                part = str(found["part"][0])
                if found["n_bad"][0]:
                    bad[part] = found
                    continue
                stage.accept(part, str(found["drawn"][0]))
                drawn.append((part, str(found["drawn"][0])))
                n_rows += int(found["n_rows"][0])
                for place, tally in enumerate(tallies):
                    tally.reports += found[f"reports {place}"]
                    if drawing.keep_true:
                        tally.truth += found[f"truth {place}"]
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write to {stage.path.as_posix()}: {error.strerror or error}") from None
    if bad or not n_rows:
        stage.keep = False
    raise_bad_parts([bad[part] for part in sorted(bad)])
    if not n_rows:
        raise DataError(f"{source.path.as_posix()}: has no rows")
    return tallies, n_rows, drawn


def read_private(path: Path, progress: Progress = SILENT) -> tuple[Note, tuple[EstimatedTable, ...]]:
    """Estimate the true counts from a private file, or a folder of them, and the note beside it.

    Raises
    ------
    DataError
        If the note is missing or does not fit: a column that is not in the file, other levels, another number of rows.
    """
    note = read_note(path)
    plan, n_rows, bad = note.plan, 0, []
    tallies = tallies_of(plan)
    for file in open_source([path]).files:
        for column in plan.levels:
            if column not in file.schema.names:
                raise DataError(f"{file.path.as_posix()}: does not fit its note, which names a column {column!r}")
        codes = Codes(file, plan.levels)
        for batch in file.batches(list(plan.levels), progress):
            reported = codes.read(batch)
            if reported is not None:
                for tally in tallies:
                    tally.count(reported)
        n_rows += codes.n_rows
        bad.append(codes.told())
    if not n_rows:
        raise DataError(f"{path.as_posix()}: has no rows")
    raise_bad_parts(bad)
    if n_rows != note.n_rows:
        raise DataError(
            f"{path.as_posix()}: does not fit its note: it has {n_rows:,} rows, the note says {note.n_rows:,}"
        )
    return note, tuple(tally.table(plan) for tally in tallies)


def check_ledger(
    ledger: Ledger, source: Source, out: Path, columns: tuple[str, ...], epsilon: float, *, again: bool
) -> None:
    """Refuse a release that was made before, or a ledger that would be written over: OutputError."""
    if {out.absolute(), note_path(out).absolute()} & {ledger.path.absolute(), ledger.path.absolute().parent}:
        raise OutputError(f"{ledger.path.as_posix()}: is to be the private file or its note, not the ledger")
    ledger.require_writable()
    if not again:
        ledger.refuse_repetition(source.path, columns, source.unchanged(columns), epsilon)

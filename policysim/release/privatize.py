"""Privatise columns of a file, or of a folder of files, row by row: all appears with its note, or nothing does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from policies.arrays import IntArray
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.columns_file import check_ending, open_writer
from policysim.files.many_files import ENDINGS
from policysim.files.whole_folders import check_writable, folder_beside, json_text, sync
from policysim.question import OutputError
from policysim.question.protocol import SILENT, Progress
from policysim.release.ledger import (
    Earlier,
    Release,
    RepeatedReleaseError,
    appear,
    check_release,
    release_once,
)
from policysim.release.privatize_note import Note, Randomization, is_release, note_document, note_path
from policysim.release.privatize_source import Codes, Source
from policysim.release.privatize_table import Table

Drawn = TypeVar("Drawn")


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

    def check() -> None:
        check_out(source, out, ledger, again=again)

    def noted(drawn: tuple[Note, list[Table]], earlier: Earlier | None) -> dict[str, Any]:
        return note_document(replace(drawn[0], earlier=earlier))

    (note, tables), earlier = release_files(
        out,
        check=check,
        draw=partial(_draw, source, plan=plan, seed=seed, progress=progress),
        note=noted,
        release=source.release(out, [*plan.levels], plan.epsilon, unchanged=source.unchanged(plan.levels))
        if ledger
        else None,
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
                return _moves(stage, out, note(drawn, earlier))

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
        codes = Codes(file, plan.levels, bad)
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


def _moves(stage: Path, out: Path, note: dict[str, Any]) -> list[tuple[Path, Path]]:
    """Write the note; what is to take which name. An old release leaves first: no data stand beside another's note."""
    place = note_path(out)
    part = stage / place.name
    part.write_text(json_text(note), encoding="utf-8")
    sync(part)
    old = [(path, stage / f"old {path.name}") for path in (out, place) if path.exists()]
    return [*old, (part, place), (stage / out.name, out)]

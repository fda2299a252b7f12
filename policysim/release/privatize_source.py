"""What is privatised, a file or the files of a folder, and where it may come out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from policysim.files.bad_rows import DataError
from policysim.files.columns_file import ColumnsFile, check_ending, open_columns
from policysim.files.many_files import ENDINGS, parts_of, stamp
from policysim.files.output import check_writable
from policysim.question import OutputError
from policysim.question.protocol import SILENT, Progress
from policysim.release.ledger import REPLACE, Release, RepeatedReleaseError, digests, ledger_path
from policysim.release.privatize_note import note_path, read_note


@dataclass(frozen=True)
class Source:
    """Files whose headers have been read.

    Attributes
    ----------
    path : Path
        The file, or the folder.
    files : tuple of ColumnsFile
        Sorted by their names; all with the same columns.
    stamps : tuple
        By what each file is known again; from before it was read, and before its digest.
    """

    path: Path
    files: tuple[ColumnsFile, ...]
    stamps: tuple[tuple[str, int, int], ...]

    @property
    def several(self) -> bool:
        """Whether it is a folder, even of one file: what comes out is then a folder."""
        return self.path.is_dir()

    @property
    def unit(self) -> str:
        """What a step of progress is."""
        return "file" if self.several else self.files[0].unit

    def in_turn(self, progress: Progress) -> Iterator[tuple[ColumnsFile, Progress]]:
        """Each file, and who is told of the rows that are read of it; of a folder, a step is a file."""
        if self.several:
            progress.expect(len(self.files))
        for file in self.files:
            yield file, SILENT if self.several else progress
            if self.several:
                progress.advance()

    def unchanged(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that pass through as they are if these ones are randomised."""
        return tuple(name for name in self.files[0].schema.names if name not in columns)

    def require_unchanged(self) -> None:
        """DataError if a file is not what it was."""
        for file, mark in zip(self.files, self.stamps, strict=True):
            if stamp(file.path) != mark:
                raise DataError(f"{file.path.as_posix()}: was changed while it was read")

    @cached_property
    def _digests(self) -> tuple[str, ...]:
        return digests([file.path for file in self.files])

    def release(self, out: Path, columns: Sequence[str], epsilon: float) -> Release:
        """The entry in the ledger if these columns are randomised; DataError if a file cannot be read."""
        name = Path(os.path.realpath(self.path)).name
        return Release(
            "privatize", name, self._digests, tuple(columns), self.unchanged(columns), epsilon, REPLACE, out.name
        )

    def ledger(self) -> Path:
        """Where releases are listed unless it is said otherwise; DataError if links lead to several such places."""
        first, *others = sorted({ledger_path(file.path) for file in self.files})
        if others:
            raise DataError(
                f"{self.path.as_posix()}: links in it lead to files in several folders, whose releases are listed in "
                f"{first.as_posix()} and {others[0].as_posix()}; name one ledger for all with --ledger"
            )
        return first


def open_source(path: Path) -> Source:
    """Read the headers of a file, or of the files of a folder.

    Raises
    ------
    DataError
        If there are none, one cannot be read, or its columns are not those of the first.
    """
    parts = parts_of(path) if path.is_dir() else (path,)
    stamps, files = [], []
    for part in parts:
        check_ending(part)  # told first, whether or not there is such a file
        stamps.append(stamp(part))
        files.append(open_columns(part))
    first = files[0]
    for file in files[1:]:
        for name in dict.fromkeys([*first.schema.names, *file.schema.names]):
            if name not in file.schema.names:
                raise DataError(f"{file.path.as_posix()}: has no column {name!r}, which {first.path.name} has")
            if name not in first.schema.names:
                raise DataError(f"{file.path.as_posix()}: has a column {name!r}, which {first.path.name} has not")
    return Source(path, tuple(files), tuple(stamps))


def check_out(source: Source, out: Path, ledger: Path | None, *, again: bool) -> None:
    """Refuse an output that cannot be written, or would replace the true values, the ledger or a release: OutputError.

    Without a ledger it is a simulation's.
    """
    if source.several:
        _check_folder(source.path, out)
    else:
        _check_file(source.path, out)
    note = note_path(out)
    if note.is_dir():
        raise OutputError(f"{note.as_posix()}: is a folder")
    place = Path(os.path.realpath(ledger or source.path))
    if ledger and {Path(os.path.realpath(each)) for each in (out, note)} & {place, *place.parents}:
        raise OutputError(f"{ledger.as_posix()}: is to be the private data or their note, not the ledger")
    check_writable(out.parent)
    if not again and out.exists() and _may_be_a_release(out):
        raise RepeatedReleaseError(
            f"{out.as_posix()}: is a release, whose epsilon is spent; name another "
            f"{'folder' if out.is_dir() else 'file'}, or replace it with --again"
        )


def _check_file(source: Path, out: Path) -> None:
    if check_ending(out) != check_ending(source):
        raise OutputError(f"{out.as_posix()}: must end in {check_ending(source)} as {source.name} does")
    if out.is_dir():
        raise OutputError(f"{out.as_posix()}: is a folder")
    if out.exists() and out.samefile(source):
        raise OutputError(f"{out.as_posix()}: is the file with the true values, which would be lost")


def _check_folder(source: Path, out: Path) -> None:
    """A folder is new or empty, or holds what an earlier run wrote, and nothing else."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise OutputError(f"{out.as_posix()}: is a {'link' if out.is_symlink() else 'file'}, and must be a new folder")
    if not out.is_dir():
        return
    if out.samefile(source):
        raise OutputError(f"{out.as_posix()}: is the folder with the true values, which would be lost")
    own = note_path(out).exists()
    for path in sorted(out.iterdir()):
        if not own or path.is_dir() or path.suffix.lower() not in ENDINGS:
            raise OutputError(
                f"{out.as_posix()}: holds {path.name}, which privatize did not write there; name a new folder"
            )


def _may_be_a_release(private: Path) -> bool:
    """Whether private files have a note that does not say that it is a simulation."""
    try:
        return note_path(private).exists() and read_note(private).release
    except DataError:
        return True

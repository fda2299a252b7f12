"""Where private files appear: together with their note, or not at all; and where they are until then.

What is drawn of a file stands in a folder `OUT.unreleased` beside OUT, which only its owner may enter, and moves to OUT
at the end. Of each file one draw is ever released. What a killed worker, a second attempt or an interrupted run left of
the same file is never released, and removed: two draws of the same rows would add their epsilon.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from policysim.files.bad_rows import DataError
from policysim.files.columns_file import check_ending
from policysim.files.many_files import ENDINGS
from policysim.files.output import alone_in, check_writable, part_beside
from policysim.question import OutputError
from policysim.release.privatize_ledger import RepeatedReleaseError
from policysim.release.privatize_note import note_path, read_note
from policysim.release.privatize_source import Source

SUFFIX = ".unreleased"
# Below that folder: what is known of files that were drawn, the folder that will be OUT, and an old one in its place.
KNOWN, WHOLE, OLD = "known", "whole", "old"
OWNER_ONLY = 0o700


@dataclass
class Stage:
    """What is drawn and not released yet.

    Attributes
    ----------
    path : Path
        Its folder; below it each file has a folder of its name.
    keep : bool
        Whether it stays when the run ends early, so that another one can take it up.
    """

    path: Path
    keep: bool = False

    def accept(self, part: str, drawn: str) -> None:
        """Make one draw of a file the only one; OutputError if it is not there any more."""
        for other in (self.path / part).glob("*"):
            if other.name != drawn:
                other.unlink()
        if not (self.path / part / drawn).is_file():
            raise OutputError(
                f"{(self.path / part).as_posix()}: what was drawn of {part} before is gone: run again without --resume"
            )

    def whole(self, drawn: Sequence[tuple[str, str]]) -> Path:
        """A folder of what was drawn of all files, each under its own name."""
        folder = self.path / WHOLE
        folder.mkdir()
        for part, name in drawn:
            (self.path / part / name).replace(folder / part)
        return folder

    def clear(self) -> None:
        """Remove what is there, but nothing that somebody else put there."""
        for path in self.path.glob("*"):
            if path.name in (KNOWN, WHOLE, OLD) or path.suffix.lower() in ENDINGS:
                shutil.rmtree(path, ignore_errors=True)


def stage_path(out: Path) -> Path:
    """The folder of what is not released yet."""
    return out.with_name(out.name + SUFFIX)


@contextmanager
def staged(out: Path, *, resume: bool) -> Iterator[Stage]:
    """The folder of what is not released yet, for one run at a time; removed at the end unless it is to be kept.

    Raises
    ------
    OutputError
        If it cannot be made, or another run draws into it.
    """
    stage = Stage(stage_path(out).absolute())
    if stage.path.is_symlink():
        raise OutputError(f"{stage_path(out).as_posix()}: is a symbolic link, and private data would be written there")
    with alone_in(stage.path):
        stage.path.chmod(OWNER_ONLY)
        if not resume:
            stage.clear()
        try:
            yield stage
        finally:
            stage.keep = stage.keep and any(stage.path.glob(f"{KNOWN}/*"))  # else no file was finished
            if not stage.keep:
                stage.clear()
    if not stage.keep:
        with suppress(OSError):
            stage.path.rmdir()


def check_out(source: Source, out: Path, *, again: bool = False) -> None:
    """Refuse an output that cannot be written, or would replace the source or a release: OutputError."""
    if source.several:
        _check_folder(source, out)
    else:
        _check_file(source.path, out)
    if note_path(out).is_dir():
        raise OutputError(f"{note_path(out).as_posix()}: is a folder")
    check_writable(out.parent)
    if not again and out.exists() and _may_be_a_release(out):
        raise RepeatedReleaseError(
            f"{out.as_posix()}: is a release, whose epsilon is spent; name another {_kind(out)}, or replace it with "
            "--again"
        )


def _kind(out: Path) -> str:
    return "folder" if out.is_dir() else "file"


def _check_file(source: Path, out: Path) -> None:
    if check_ending(out) != check_ending(source):
        raise OutputError(f"{out.as_posix()}: must end in {check_ending(source)} as {source.name} does")
    if out.is_dir():
        raise OutputError(f"{out.as_posix()}: is a folder")
    if out.exists() and out.samefile(source):
        raise OutputError(f"{out.as_posix()}: is the file with the true values, which would be lost")


def _check_folder(source: Source, out: Path) -> None:
    """A folder is new or empty, or holds what an earlier run wrote, and nothing else."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise OutputError(f"{out.as_posix()}: is a {'link' if out.is_symlink() else 'file'}, and must be a new folder")
    if not out.is_dir():
        return
    if out.samefile(source.path):
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


def appear(stage: Stage, drawn: Path, out: Path, note: str, count: Callable[[], tuple[Path, Path]] | None) -> None:
    """Give what was drawn its name, and write its note beside it: both appear, or neither.

    Parameters
    ----------
    stage : Stage
    drawn, out : Path
        A file or a folder, and its name.
    note : str
        The note's text.
    count : callable or None
        Writes a ledger with this release, and returns the file and the name that it takes before the data appear.

    Raises
    ------
    OutputError
        If anything cannot be written.
    """
    place = note_path(out)
    counted: tuple[Path, Path] | None = None
    moved: list[Path] = []
    try:
        with part_beside(place) as part:
            part.write_text(note, encoding="utf-8")
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            if count:
                counted = count()
                counted[0].replace(counted[1])
            # The old note goes first: at no time do data stand beside a note that is not their own.
            place.unlink(missing_ok=True)
            if out.is_dir():
                out.replace(stage.path / OLD)
            for path, target in ((drawn, out), (part, place)):
                moved.append(target)
                path.replace(target)
            moved.clear()
    except OSError as error:
        raise OutputError(f"cannot write {out.as_posix()}: {error.strerror or error}") from None
    finally:
        for path in moved:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if counted:
            counted[0].unlink(missing_ok=True)

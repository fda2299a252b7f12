"""Files written whole: first in a temporary folder beside them, from which they take their names when all are written.

Several files may be one report. Its last file, such as a manifest, says that the report is whole: it is removed before
any other file changes, and appears after all others. So a run that is killed leaves the old files, or an unfinished
report without its last file. The next run that writes the same files completes them, and removes the temporary folder.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from envs.toml_reader import require_file
from policysim.errors import OutputError

try:
    import fcntl
except ImportError:  # a system without locks on folders
    fcntl = None  # type: ignore[assignment]


def check_writable(folder: Path) -> None:
    """Make the folder and try to write into it, before anything is computed; OutputError if that fails.

    Folders that were not there are removed again: `write_files` makes them when there is something to write.
    """
    missing = _missing_folders(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    finally:
        remove_empty(missing)


def write_files(folder: Path, contents: Mapping[str, bytes], made_from: Sequence[Path] = ()) -> None:
    """Write files below a folder, whose last file says that all are there.

    Parameters
    ----------
    folder : Path
        Made if needed.
    contents : mapping of relative path to bytes
        At least one. Other files in the folder stay as they are, and so do files that have this content.
    made_from : sequence of Path, optional
        Of private rows: others may do no more with what is written than with these (`keep_closed`).

    Raises
    ------
    OutputError
        If anything cannot be written, or a folder below this one is a link, which may lead out of it. The old files
        are then unchanged, unless a file could not take its name: the last file is then missing.
    """
    *_, last = contents
    for path in (folder / parent for name in contents for parent in Path(name).parents):
        if path != folder and path.is_symlink():
            raise OutputError(f"{path.as_posix()}: is a link, which is not followed: remove it, or name another folder")
    changed = {name: content for name, content in contents.items() if not has_content(folder / name, content)}
    if not changed:
        _remove_abandoned(_temporary_folders(folder / last))
        return
    changed[last] = contents[last]
    try:
        with temporary_folder(folder / last) as temporary:
            for name, content in changed.items():
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                (temporary / name).write_bytes(content)
                keep_closed(temporary / name, made_from)
            take_names(temporary, list(changed))
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """A folder beside a file for what is not yet whole; only its owner may enter, and it is removed in the end.

    Such folders that killed runs left beside the same file are removed, those of runs that go on are not. Folders above
    it that are missing are made, and removed again if they stay empty.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    missing, others = _missing_folders(target.parent), _temporary_folders(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked_folder(target) as folder:
            _remove_abandoned(others)
            yield folder
    finally:
        remove_empty(missing)


def take_names(temporary: Path, names: Sequence[str]) -> None:
    """Move files from a temporary folder into the folder that it is in, the last name last.

    Raises
    ------
    OSError
        If a file cannot be moved; those before it stay moved, and the last is missing.
    """
    folder = temporary.parent
    for name in names:
        sync(temporary / name)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    try:
        if len(names) > 1:
            (folder / names[-1]).unlink(missing_ok=True)
        for name in names:
            (temporary / name).replace(folder / name)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{folder.as_posix()} may be unfinished: run the same command again") from None


def keep_closed(path: Path, made_from: Iterable[Path]) -> None:
    """Let others do no more with a file, or a folder, than with those that it is made from, until its owner widens it.

    Raises
    ------
    OSError
        If one of them is gone.
    """
    mode = path.stat().st_mode
    for source in made_from:
        mode &= source.stat().st_mode | stat.S_IRWXU
    path.chmod(stat.S_IMODE(mode))


def sync(path: Path) -> None:
    """Wait until a file's bytes, or the names in a folder, are on the disk: OSError if they cannot be."""
    folder = path.is_dir()
    if folder and os.name == "nt":
        return  # a system that opens no folders
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems, mounted from elsewhere, keep folders safe by themselves and refuse to be asked.
        if error.errno != errno.EINVAL or not folder:
            raise
    finally:
        os.close(handle)


def is_unfinished(last: Path) -> bool:
    """Whether a run was killed before the last file of its report appeared."""
    return not last.exists() and bool(_temporary_folders(last))


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, the innermost first, until one is not empty."""
    with suppress(OSError):  # the first that is not empty, or was never made, ends it
        for folder in folders:
            folder.rmdir()


def has_content(path: Path, content: bytes) -> bool:
    """Whether a file, and no link to one, holds these bytes."""
    try:
        require_file(path)
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:  # a file that cannot be read is written anew
        return False


def _missing_folders(folder: Path) -> list[Path]:
    """The folder and those above it that are not there, the innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _prefix(target: Path) -> str:
    """How the names of all temporary folders beside a file begin."""
    return f".{target.name}.policysim-"


def _temporary_folders(target: Path) -> list[Path]:
    return list(target.parent.glob(f"{glob.escape(_prefix(target))}*"))


@contextmanager
def _locked_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that is locked while its run lives: the system drops the lock of a run that is killed."""
    while True:
        with tempfile.TemporaryDirectory(prefix=_prefix(target), dir=target.parent) as name, _lock(Path(name)):
            # Between its making and its lock, another run may have taken it for abandoned.
            if Path(name).exists():
                yield Path(name)
                return


@contextmanager
def _lock(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a folder; whether that was done: not if it is gone, or another run holds it and `wait` is false."""
    if fcntl is None:
        yield False
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    locked = False
    try:
        with suppress(OSError):  # held by another run, or the file system knows no locks
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        yield locked
    finally:
        os.close(handle)


def _remove_abandoned(folders: Iterable[Path]) -> None:
    """Remove the temporary folders that no run holds; where that cannot be known, they stay."""
    for folder in folders:
        with _lock(folder, wait=False) as abandoned:
            if abandoned:
                shutil.rmtree(folder, ignore_errors=True)

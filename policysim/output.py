"""Writing a folder of results so that an interrupted run leaves the old ones whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


class OutputError(OSError):
    """An output folder that cannot be written; str() is one line for the user."""


def check_writable(folder: Path) -> None:
    """Make the folder and try to write into it, before anything is computed; OutputError if that fails.

    Folders that were not there are removed again: `write_files` makes them when there is something to write.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for place in made:
            place.rmdir()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files below a folder: all are first written whole beside the old ones, then take their names.

    Parameters
    ----------
    folder : Path
        Made if needed.
    contents : mapping of relative path to bytes
        Other files in the folder stay as they are.

    Raises
    ------
    OutputError
        If anything cannot be written; the old files are then unchanged.
    """
    finished: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            finished.append((_write_beside(target, content), target))
        while finished:
            part, target = finished[-1]
            part.replace(target)
            finished.pop()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    finally:
        for part, _ in finished:
            part.unlink(missing_ok=True)


def _write_beside(target: Path, content: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.part-", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o666 & ~_umask())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

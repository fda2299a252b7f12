"""The files of a table in many files: those of a folder, or of a pattern; by what a file is known again."""

from __future__ import annotations

from pathlib import Path

from envs.toml_reader import require_file
from policysim.files.bad_rows import DataError
from policysim.files.keyed_digests import Digests

ENDINGS = (".csv", ".parquet")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
WILD = "*?["


def is_many(name: str | Path) -> bool:
    """Whether a name stands for more than one file: a folder, or a pattern such as logs/*.parquet."""
    path = Path(name)
    try:
        return path.is_dir() or (not path.is_file() and any(sign in path.name for sign in WILD))
    except OSError:  # a name that is too long, or a folder that may not be entered
        return False


def is_file(path: Path) -> bool:
    """Whether a file is there that can be read (`require_file`), under a name that there can be."""
    try:
        require_file(path)
    except OSError:
        return False
    return True


def files_of(name: str | Path) -> tuple[Path, ...]:
    """The files that a name stands for, sorted: those of a folder, those that fit a pattern, or the file itself.

    Of a folder, files that do not end in .csv or .parquet are left out, and so are those whose names begin with a dot
    or an underscore, which other tools leave beside data. But rows that are compressed are not left out in silence.

    Raises
    ------
    DataError
        If there are none, or one such as part.csv.gz.
    """
    path = Path(name)
    if not is_many(path):
        return (path,)
    found = path.iterdir() if path.is_dir() else path.parent.glob(path.name)
    visible = sorted(part for part in found if part.name[0] not in "._" and not part.is_dir())
    for part in visible:
        if part.suffix.lower() in COMPRESSED and Path(part.stem).suffix.lower() in ENDINGS:
            raise DataError(f"{part.as_posix()}: is compressed: unpack it, or move it elsewhere")
    parts = [part for part in visible if part.suffix.lower() in ENDINGS]
    if not parts:
        where = "in this folder" if path.is_dir() else "of this pattern"
        raise DataError(f"{path.as_posix()}: there is no file {where} that ends in {' or '.join(ENDINGS)}")
    return tuple(parts)


def stamp(part: Path) -> tuple[str, int, int]:
    """By what a part is known again: its name, size in bytes, time of change in ns; DataError if it is not there."""
    try:
        require_file(part)
        found = part.stat()
    except OSError as error:
        raise DataError(f"{part.as_posix()}: cannot be read: {error.strerror}") from None
    return part.absolute().as_posix(), found.st_size, found.st_mtime_ns


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size; OSError if it cannot be read."""
    return Digests().of_file(path)

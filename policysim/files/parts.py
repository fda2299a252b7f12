"""The files of a table in many files: those of a folder, or of a pattern. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from policysim.files.bad_rows import DataError

ENDINGS = (".csv", ".parquet")
WILD = "*?["


def is_many(name: str | Path) -> bool:
    """Whether a name stands for more than one file: a folder, or a pattern such as logs/*.parquet."""
    path = Path(name)
    return path.is_dir() or (not path.is_file() and any(sign in path.name for sign in WILD))


def parts_of(name: str | Path) -> tuple[Path, ...]:
    """The files that a name stands for, sorted: those of a folder, those that fit a pattern, or the file itself.

    Of a folder, files that do not end in .csv or .parquet are left out, and so are those whose names begin with a dot
    or an underscore, which other tools leave beside data.

    Raises
    ------
    DataError
        If there are none.
    """
    path = Path(name)
    if not is_many(path):
        return (path,)
    found = path.iterdir() if path.is_dir() else path.parent.glob(path.name)
    parts = sorted(
        part for part in found if part.suffix.lower() in ENDINGS and part.name[0] not in "._" and part.is_file()
    )
    if not parts:
        where = "in this folder" if path.is_dir() else "of this pattern"
        raise DataError(f"{path.as_posix()}: there is no file {where} that ends in {' or '.join(ENDINGS)}")
    return tuple(parts)

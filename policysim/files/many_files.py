"""The files of a table in many files: those of a folder, or of a pattern; by what a file is known again."""

from __future__ import annotations

from pathlib import Path

from envs.toml_reader import require_file
from policysim.files.bad_rows import DataError
from policysim.files.keyed_digests import Digests

CSV, PARQUET = (".csv", ".parquet")
# Text with columns, of which a folder's are those that are nothing but tables; packed, another ending stands behind.
TEXT, OF_FOLDERS = (CSV, ".tsv", ".txt", ".dat"), (CSV, ".tsv", PARQUET)
PACKED = {".gz": "gzip", ".zst": "zstd"}
OTHER_PACKED = (".bz2", ".xz", ".zip", ".7z")
READABLE = ".csv, .tsv, .txt or .dat (.gz and .zst may follow), or .parquet"
WILD = "*?["


def text_ending(path: Path) -> str:
    """The ending of a name in lower case, without that of what packed it.

    Examples
    --------
    >>> text_ending(Path("trial.tsv.GZ")), text_ending(Path("trial.parquet"))
    ('.tsv', '.parquet')
    """
    ending = path.suffix.lower()
    return Path(path.stem).suffix.lower() if ending in PACKED else ending


def kind_of(path: Path) -> str:
    """.csv for text with columns, .parquet, or "" for another name.

    Examples
    --------
    >>> [kind_of(Path(name)) for name in ("a.csv", "a.txt.zst", "a.parquet", "a.parquet.gz", "a.toml")]
    ['.csv', '.csv', '.parquet', '', '']
    """
    ending = text_ending(path)
    if ending in TEXT:
        return CSV
    return PARQUET if path.suffix.lower() == PARQUET else ""


def csv_name(path: Path) -> str:
    """The name of a copy: of text .csv, neither packed nor another.

    Examples
    --------
    >>> csv_name(Path("a.csv.gz")), csv_name(Path("b.tsv")), csv_name(Path("c.parquet"))
    ('a.csv', 'b.csv', 'c.parquet')
    """
    if kind_of(path) != CSV or path.suffix.lower() == CSV:
        return path.name
    return Path(path.stem if path.suffix.lower() in PACKED else path.name).stem + CSV


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

    Of a folder these are .csv, .tsv (also with .gz or .zst) and .parquet; a pattern also names .txt and .dat. Left out
    are names that begin with a dot or an underscore, which other tools leave beside data. But tables that are packed
    otherwise are not left out in silence.

    Raises
    ------
    DataError
        If there are none, or one such as part.csv.zip.
    """
    path = Path(name)
    if not is_many(path):
        return (path,)
    found = path.iterdir() if path.is_dir() else path.parent.glob(path.name)
    visible = sorted(part for part in found if part.name[0] not in "._" and not part.is_dir())
    for part in visible:
        inner = kind_of(Path(part.stem)) if part.suffix.lower() in (*OTHER_PACKED, *PACKED) else ""
        if inner and not kind_of(part):
            raise DataError(f"{part.as_posix()}: is packed in a way that is not read: unpack it, or move it elsewhere")
    endings = OF_FOLDERS if path.is_dir() else (*TEXT, PARQUET)
    parts = [part for part in visible if kind_of(part) and text_ending(part) in endings]
    if not parts:
        where = "in this folder" if path.is_dir() else "of this pattern"
        raise DataError(f"{path.as_posix()}: there is no file {where} that ends in {', '.join(endings)}")
    return tuple(parts)


def left_out(folder: Path) -> list[str]:
    """The names of the tables of a folder that `files_of` leaves out, such as those in .txt."""
    parts = files_of(folder)
    tables = [part for part in sorted(folder.iterdir()) if part.name[0] not in "._" and kind_of(part)]
    return [part.name for part in tables if part not in parts and not part.is_dir()]


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

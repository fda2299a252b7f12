"""What is privatised: a file, or the many files of one table, which lie in one folder and have the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policysim.files.bad_rows import DataError
from policysim.files.columns_file import ColumnsFile, check_ending, open_columns
from policysim.files.many_files import is_many, parts_of
from policysim.files.workers import stamp


@dataclass(frozen=True)
class Source:
    """Files whose headers have been read.

    Attributes
    ----------
    path : Path
        The file, or the folder of the files: what messages name, and where the ledger is.
    files : tuple of ColumnsFile
        Sorted by their names.
    several : bool
        Whether a folder, a pattern or a list was named, even if there is one file: what comes out is then a folder.
    stamps : tuple
        By what each file is known again; from before it was read, and before the ledger's digest of it.
    """

    path: Path
    files: tuple[ColumnsFile, ...]
    several: bool
    stamps: tuple[tuple[str, int, int], ...]

    @property
    def parts(self) -> tuple[Path, ...]:
        """The names of the files."""
        return tuple(file.path for file in self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, as the first file has them."""
        return tuple(self.files[0].schema.names)

    def require_unchanged(self) -> None:
        """DataError if a file is not what it was."""
        for part, mark in zip(self.parts, self.stamps, strict=True):
            if stamp(part) != mark:
                raise DataError(f"{part.as_posix()}: was changed while it was read")

    @property
    def unit(self) -> str:
        """What a step of progress is."""
        return "file" if self.several else self.files[0].unit

    def unchanged(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that pass through as they are if these ones are randomised."""
        return tuple(name for name in self.columns if name not in columns)


def open_source(names: Sequence[Path]) -> Source:
    """Find the files that one or more names stand for (a file, a folder, a pattern), and read their headers.

    Raises
    ------
    DataError
        If there are none, or one cannot be read; if they lie in different folders, so that files of the same name would
        be written; for one whose columns are not those of the first.
    """
    if len(names) == 1 and not is_many(names[0]):
        mark, file = _opened(names[0])
        return Source(names[0], (file,), several=False, stamps=(mark,))
    # By the whole path: the same file may be named twice, and a link to another file has its own name.
    found = {part.absolute(): part for name in names for part in parts_of(name)}
    paths = sorted(found)
    parts = [found[path] for path in paths]
    for path, part in found.items():
        if path.parent != paths[0].parent:
            raise DataError(
                f"{part.as_posix()}: is not in the folder of {parts[0].as_posix()}: files that are released together "
                "keep their names in one new folder, so they must come from one"
            )
    stamps, files = zip(*map(_opened, parts), strict=True)
    for file in files[1:]:
        _same_columns(file, files[0])
    folder = names[0] if len(names) == 1 and names[0].is_dir() else parts[0].parent
    if folder.name in ("", ".."):  # of the current folder and those above it, beside which files are named after it
        folder = folder.resolve()
    return Source(folder, files, several=True, stamps=stamps)


def _opened(part: Path) -> tuple[tuple[str, int, int], ColumnsFile]:
    check_ending(part)  # told first, whether or not there is such a file
    return stamp(part), open_columns(part)


def _same_columns(file: ColumnsFile, first: ColumnsFile) -> None:
    own, others = file.schema.names, first.schema.names
    for name in others:
        if name not in own:
            raise DataError(f"{file.path.as_posix()}: has no column {name!r}, which {first.path.name} has")
    for name in own:
        if name not in others:
            raise DataError(f"{file.path.as_posix()}: has a column {name!r}, which {first.path.name} has not")

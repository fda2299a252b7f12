"""The ledger of a private file: how often it was released, and what that adds up to.

Randomised response may be repeated on the same rows, and each release adds its epsilon: after some tens of releases at
epsilon = 1, the reports of a row agree on its true value. So a release is refused if its rows were released before.

What is compared is the SHA-256 digest of the file's bytes. It must not be published: whoever can guess the rows can
check the guess against it. It therefore stands in a file beside the true rows (`DATA.releases.json`, readable by its
owner only), and never in the note beside the private file.

Many files that are released together are one release with a digest of each; a release with any of these files is one of
the same rows. Their ledger is beside their folder, and a file's own ledger, and its folder's, are looked at too.

A ledger knows of the releases of these very bytes that were made with it, under whatever symbolic link. It cannot know
of releases of a copy or of a hard link of another name or in another folder (unless both use one ledger, --ledger), of
the same rows in another order, format or division into files, by another program, or before the ledger was deleted. Of
other bytes under the same ledger it knows only that they may share rows.
Simulations are not counted: they are no releases.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any

from envs.toml_reader import is_number
from policysim.files.bad_rows import DataError
from policysim.files.many_files import file_digest
from policysim.files.output import check_writable, json_text
from policysim.question import OutputError

SUFFIX = ".releases.json"
FORMAT = 1
PRIVATE = (
    "PRIVATE, as the data: a digest confirms a guess of the rows. Keep this file beside them, so that each release of "
    "the same rows is counted; publish it with nothing."
)


class RepeatedReleaseError(OutputError):
    """A release that was not asked for with --again; str() is one line for the user."""


@dataclass(frozen=True)
class Release:
    """One release of a file, or of many.

    Attributes
    ----------
    sha256 : tuple of str
        Digest of the bytes of each file.
    columns, unchanged : tuple of str
        The columns that were randomised, and those that were published as they are.
    epsilon : float
        The privacy loss of a row.
    out : str
        The name of the private file or folder.
    """

    sha256: tuple[str, ...]
    columns: tuple[str, ...]
    unchanged: tuple[str, ...]
    epsilon: float
    out: str


@dataclass(frozen=True)
class Earlier:
    """What earlier releases of the same file gave away already.

    Attributes
    ----------
    releases : int
        How many there were.
    epsilon : float
        Their losses added up, rounded up: inf if a column stood unchanged in one of them and is randomised in
        another, or in this one. Nobody is protected by what is randomised once the truth is out.
    """

    releases: int
    epsilon: float

    def with_this(self, epsilon: float) -> float:
        """The loss of a row by all releases with this one, rounded up."""
        return total([self.epsilon, epsilon])


@dataclass(frozen=True, eq=False)
class Ledger:
    """The releases that were made of a file, or of many.

    Attributes
    ----------
    path : Path
        Where it is kept.
    sha256 : tuple of str
        Digest of each file as it is now.
    releases : tuple of Release
        All in the ledger, also of other files.
    elsewhere : tuple of Release
        Those in the ledgers of the folder, or of single files of it.
    """

    path: Path
    sha256: tuple[str, ...]
    releases: tuple[Release, ...]
    elsewhere: tuple[Release, ...] = ()

    @cached_property
    def same(self) -> list[Release]:
        """The releases with any of the same bytes."""
        own = set(self.sha256)
        return [release for release in (*self.elsewhere, *self.releases) if not own.isdisjoint(release.sha256)]

    def earlier(self, columns: Sequence[str], unchanged: Sequence[str]) -> Earlier | None:
        """What releases of the same bytes add to one of these columns; None if there were none."""
        same = self.same
        if not same:
            return None
        shown = {name for release in same for name in release.unchanged} | set(unchanged)
        hidden = {name for release in same for name in release.columns} | set(columns)
        return Earlier(len(same), math.inf if shown & hidden else total([release.epsilon for release in same]))

    def refuse_repetition(self, data: Path, columns: Sequence[str], unchanged: Sequence[str], epsilon: float) -> None:
        """RepeatedReleaseError if these bytes were released before."""
        earlier = self.earlier(columns, unchanged)
        if earlier is None:
            return
        last, in_all = self.same[-1], earlier.with_this(epsilon)
        cost = f"adds its epsilon, {in_all:g} in all with this one"
        if in_all == math.inf:
            cost = "leaves no privacy to a column that one of them randomises and another one leaves as it is"
        raise RepeatedReleaseError(
            f"{data.as_posix()} was released before: {', '.join(last.columns)} at epsilon = {last.epsilon:g}, as "
            f"{last.out} ({earlier.releases} in {self._named}). A further release of the same rows {cost}; "
            "--again makes it all the same, and its note says so"
        )

    @property
    def _named(self) -> str:
        beside = " and the ledgers of its folder or files" if set(self.same).intersection(self.elsewhere) else ""
        return f"{self.path.name}{beside}"

    def require_writable(self) -> None:
        """OutputError if nothing can be written where the ledger is: a release that is not counted is not made."""
        try:
            check_writable(self.path.parent)
        except OutputError as error:
            raise OutputError(f"{error}; releases are listed there, --ledger names another place") from None

    def with_release(self, columns: Sequence[str], unchanged: Sequence[str], epsilon: float, out: Path) -> Path:
        """The ledger with one release more, in a file beside it that only its owner may read and that takes its name.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        release = Release(self.sha256, tuple(columns), tuple(unchanged), epsilon, out.name)
        # Read again: another run may have made a release in the meantime.
        listed = [asdict(each) for each in (*_read(self.path), release)]
        return _write_private(self.path, json_text({"private": PRIVATE, "format": FORMAT, "releases": listed}))


def total(epsilons: Sequence[float]) -> float:
    """Their sum, never rounded down."""
    if math.inf in epsilons:
        return math.inf
    exact = sum((max(Fraction(epsilon), Fraction(repr(epsilon))) for epsilon in epsilons), Fraction(0))
    found = float(exact)
    return found if Fraction(found) >= exact or Fraction(repr(found)) >= exact else math.nextafter(found, math.inf)


def ledger_path(data: Path) -> Path:
    """Where the ledger of a file is kept unless it is said otherwise: beside it.

    Beside the file itself, not beside a symbolic link to it: all its names have one ledger.
    """
    itself = Path(os.path.realpath(data))  # Path.resolve fails where links go round in a circle
    return itself.with_name(itself.name + SUFFIX)


def open_ledger(data: Path, path: Path | None = None, parts: Sequence[Path] | None = None) -> Ledger:
    """The ledger for a file with true values, and the file's digest; DataError if either cannot be read.

    A ledger that is not there is empty. One that cannot be understood is refused: what was released before would not be
    counted.

    Parameters
    ----------
    data : Path
        The file, or the folder of many.
    path : Path, optional
        Where the ledger is; by default beside the data, and then those of the folder and of single files count too.
    parts : sequence of Path, optional
        The files of the folder.
    """
    place, files = path or ledger_path(data), parts or (data,)
    releases, elsewhere = _read(place), []
    if path is None:
        others = {ledger_path(other) for file in files for other in (file, Path(os.path.realpath(file)).parent)}
        elsewhere = [release for other in sorted(others - {place}) for release in _read(other)]
    return Ledger(place, tuple(map(_digest, files)), tuple(releases), tuple(elsewhere))


def _digest(file: Path) -> str:
    try:
        return file_digest(file)
    except OSError as error:
        raise DataError(f"{file.as_posix()}: cannot be read: {error.strerror}") from None


def _write_private(path: Path, text: str) -> Path:
    part = path.with_name(f".{path.name}.part-{token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(
            f"cannot write {path.as_posix()}, which lists the releases: {error.strerror}; --ledger names another place"
        ) from None
    return part


def _read(path: Path) -> list[Release]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _not_a_ledger(path) from None
    return _releases(path, document)


def _releases(path: Path, document: Any) -> list[Release]:
    if (
        not isinstance(document, dict)
        or document.get("format") != FORMAT
        or not is_list(document.get("releases"), dict)
    ):
        raise _not_a_ledger(path)
    found = []
    for entry in document["releases"]:
        digests, epsilon, out = entry.get("sha256"), entry.get("epsilon"), entry.get("out")
        # One file's digest may be text by itself, as it was written before there were many.
        digests = [digests] if isinstance(digests, str) else digests
        lists = digests, entry.get("columns"), entry.get("unchanged")
        good = isinstance(out, str) and all(is_list(each, str) for each in lists) and is_number(epsilon)
        if not good or not 0 < epsilon < math.inf:
            raise _not_a_ledger(path)
        sha256, columns, unchanged = map(tuple, lists)
        found.append(Release(sha256, columns, unchanged, float(epsilon), out))
    return found


def _not_a_ledger(path: Path) -> DataError:
    return DataError(
        f"{path.as_posix()}: not a ledger of releases, so that earlier ones cannot be counted; put it back as it was"
    )


def is_list(value: object, kind: type) -> bool:
    """Whether a value of JSON is a list of values of one kind."""
    return isinstance(value, list) and all(isinstance(entry, kind) for entry in value)

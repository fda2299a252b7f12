"""The ledger: what was released of which rows, and the one transaction in which anything is released.

Each release of the same rows adds its epsilon; after some tens of them at epsilon = 1, randomised response gives the
true values away. So `privatize` and `select` list what they release, and refuse to repeat it unasked.

What is compared is the SHA-256 digest of a file's bytes. It must not be published: whoever can guess the rows can check
the guess against it. It stands in a ledger that only its owner may read, by default one in each folder of true rows,
so that a file that was copied or renamed there is known again, and so is a folder that shares one file with another.

A ledger knows of the releases of these very bytes that were made with it, under whatever symbolic link. It cannot know
of releases of a copy in another folder (unless both use one ledger, --ledger), of the same rows in another order,
format or division into files, by another program, or from before it was deleted. Simulations are no releases.

**Transaction** (`release_once`). Under a lock beside the ledger: look for a repetition again; write the ledger to the
disk and let it take its name; then let the data take theirs. So whatever ends the process, and wherever, nothing is
there that was not counted, and no entry is lost: at worst something was counted that never appeared.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from envs.toml_reader import is_number, shown, text_of
from policysim.files.bad_rows import DataError
from policysim.files.many_files import file_digest
from policysim.files.terminal import complain, json_text
from policysim.files.whole_files import remove_empty
from policysim.question import EXIT_CHECK, OutputError
from policysim.question.formats import enough
from policysim.release.durable_files import LOCKS, sync, uninterrupted

with suppress(ImportError):
    import fcntl

NAME = "policysim-releases.json"
FORMAT = 2
PRIVATE = (
    "PRIVATE, as the data: a digest confirms a guess of the rows. Keep this file beside them, so that each release of "
    "the same rows is counted; publish it with nothing."
)
SHARED = "for rows that both hold, their epsilon add up too, which is not counted here"
DIGEST = re.compile("[0-9a-f]{64}")

# What one person may change: the values of a row, whose presence is public; or whether the row is there.
REPLACE, ADD_OR_REMOVE = "replace-one", "add-or-remove-one"
ADJACENCIES = (REPLACE, ADD_OR_REMOVE)

# For so long the lock of another run is waited for, and after so long that is said.
MOST_SECONDS, SILENT_SECONDS, PAUSE_SECONDS = 20.0, 1.0, 0.02


class RepeatedReleaseError(OutputError):
    """A release that was not asked for with --again; str() is one line for the user."""

    exit_code = EXIT_CHECK


@dataclass(frozen=True)
class Release:
    """One entry of a ledger; where two have the same `what` and `question`, the later repeats the earlier.

    Attributes
    ----------
    what : str
        The command that releases.
    data : str
        The name of the file, or of the folder of files.
    sha256 : tuple of str
        Digest of the bytes of each file.
    columns, unchanged : tuple of str
        The columns that are hidden up to epsilon, and those that are published as they are.
    epsilon : float
        The privacy loss, >= 0 and finite.
    adjacency : str
        One of `ADJACENCIES`: between which data the loss is at most epsilon.
    released : str
        What came out: the name of the private file or folder, or a choice.
    question : dict of str to str
        What was asked, so far as it makes one question another.
    date : str
        When, for people to read; nothing depends on it.
    """

    what: str
    data: str
    sha256: tuple[str, ...]
    columns: tuple[str, ...]
    unchanged: tuple[str, ...]
    epsilon: float
    adjacency: str
    released: str
    question: Mapping[str, str] = field(default_factory=dict)
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class Earlier:
    """What earlier releases of the same rows gave away already.

    Attributes
    ----------
    releases : int
        How many there were.
    epsilon, epsilon_in_all : float
        Their losses added up, without and with the present release, rounded up: inf if a column stood unchanged in one
        of them and is hidden in another one. Nobody is protected by what hides a value once the truth is out.
    """

    releases: int
    epsilon: float
    epsilon_in_all: float

    @property
    def warning(self) -> str:
        """What a reader must know, in one sentence or two."""
        times = "once" if self.releases == 1 else f"{self.releases} times"
        together = f"ε = {enough(self.epsilon_in_all, 6):g} in all with this one."
        if self.epsilon_in_all == math.inf:
            together = "and no ε covers a column that one of them randomises and another one leaves as it is."
        return f"These rows were released {times} before: {together}"


def ledger_path(data: Path) -> Path:
    """Where releases of a file, or of a folder's files, are listed unless it is said otherwise: in their folder.

    In the folder of the file itself, not of a symbolic link to it: all its names have one ledger.
    """
    itself = Path(os.path.realpath(data))  # Path.resolve fails where links go round in a circle
    return (itself if itself.is_dir() else itself.parent) / NAME


def digests(files: Sequence[Path]) -> tuple[str, ...]:
    """The SHA-256 of each file; DataError if one cannot be read."""
    found = []
    for file in files:
        try:
            found.append(file_digest(file))
        except OSError as error:
            raise DataError(f"{file.as_posix()}: cannot be read: {error.strerror}") from None
    return tuple(found)


def check_release(ledger: Path, release: Release, *, again: bool) -> None:
    """Refuse what `release_once` would refuse, before anything is computed; the same errors."""
    ledger = Path(os.path.realpath(ledger))
    with uninterrupted() as signals, _locked(ledger, signals):
        _admit(ledger, read_ledger(ledger), release, again=again)


def release_once(
    ledger: Path,
    release: Release,
    *,
    again: bool,
    prepare: Callable[[Earlier | None], Sequence[tuple[Path, Path]]] = lambda _: (),
) -> Earlier | None:
    """Count a release, let it appear, and say on stderr where it is listed: the ledger is on the disk before that.

    Parameters
    ----------
    ledger : Path
        Made if it is not there.
    release : Release
    again : bool
        Whether it may repeat an earlier one.
    prepare : callable, optional
        Writes what is still to be written, knowing of earlier releases, and returns what `appear` takes. That is done
        when the release is counted, and it stays counted if it fails.

    Returns
    -------
    Earlier or None
        What releases of the same bytes add to this one.

    Raises
    ------
    RepeatedReleaseError
        For a repetition without `again`.
    DataError
        If the ledger cannot be read or understood.
    OutputError
        If it cannot be locked or written, or something cannot take its name.
    """
    ledger = Path(os.path.realpath(ledger))  # a link to a ledger stays one
    if not math.isfinite(release.epsilon):
        raise DataError(f"{release.data}: its privacy loss must be finite to be counted, got {release.epsilon}")
    with uninterrupted(f"{ledger.as_posix()} lists the release") as signals, _locked(ledger, signals):
        releases = read_ledger(ledger)
        earlier = _admit(ledger, releases, release, again=again)
        moves = prepare(earlier)
        _write(ledger, [*releases, release])
        appear(moves)
    others = 0 if earlier else sum(each.data == release.data for each in releases)
    complain(
        f"{ledger.as_posix()} lists this release and is private: keep it with the data, and publish "
        "neither. A further release of the same rows adds its epsilon"
        + (f". It lists {others} of other content of {release.data}: {SHARED}" if others else "")
    )
    return earlier


def appear(moves: Sequence[tuple[Path, Path]]) -> None:
    """Give each (file or folder, name) its name: all of them, or OutputError and none."""
    done: list[tuple[Path, Path]] = []
    try:
        for path, name in moves:
            path.replace(name)
            done.append((path, name))
            sync(name.parent)
    except BaseException as error:
        for path, name in reversed(done):
            with suppress(OSError):
                name.rename(path)
        if isinstance(error, OSError):
            raise OutputError(f"cannot write {moves[-1][1].as_posix()}: {error.strerror or error}") from None
        raise


# Which releases are of the same rows.


def _same(releases: Sequence[Release], release: Release) -> list[Release]:
    """The releases with any of the same bytes."""
    return [each for each in releases if not set(each.sha256).isdisjoint(release.sha256)]


def _earlier(same: Sequence[Release], release: Release) -> Earlier | None:
    """What all earlier releases of the same bytes add to this one; None if there were none."""
    if not same:
        return None
    everything = [*same, release]
    # `select` reads a column under its name without spaces.
    public = {name.strip() for each in everything for name in each.unchanged}
    hidden = {name.strip() for each in everything for name in each.columns}
    if public & hidden:
        return Earlier(len(same), math.inf, math.inf)
    # Another value is a person less and a person more: where that is what is hidden, their loss counts twice.
    mixed = {each.adjacency for each in everything} != {ADD_OR_REMOVE}
    losses = [each.epsilon * (2 if mixed and each.adjacency == ADD_OR_REMOVE else 1) for each in everything]
    return Earlier(len(same), total(losses[:-1]), total(losses))


def _admit(ledger: Path, releases: Sequence[Release], release: Release, *, again: bool) -> Earlier | None:
    """What earlier releases add to this one, unless it repeats one of them and may not: RepeatedReleaseError."""
    same = _same(releases, release)
    repeated = [each for each in same if (each.what, each.question) == (release.what, release.question)]
    earlier = _earlier(same, release)
    if again or not repeated or earlier is None:
        return earlier
    last, cost = repeated[-1], f"adds its epsilon, {enough(earlier.epsilon_in_all, 6):g} in all with this one"
    if earlier.epsilon_in_all == math.inf:
        cost = "leaves no privacy to a column that one of them randomises and another one leaves as it is"
    raise RepeatedReleaseError(
        f"{release.data} was released before: {', '.join(last.columns)} at epsilon = {enough(last.epsilon, 6):g}, as "
        f"{last.released} ({earlier.releases} in {ledger.as_posix()}). A further release of the same rows {cost}; "
        "--again makes it all the same"
    )


def total(epsilons: Sequence[float]) -> float:
    """Their sum, never rounded down."""
    if math.inf in epsilons or sum(epsilons) == math.inf:
        return math.inf
    exact = sum((max(Fraction(epsilon), Fraction(repr(epsilon))) for epsilon in epsilons), Fraction(0))
    found = float(exact)
    return found if Fraction(found) >= exact or Fraction(repr(found)) >= exact else math.nextafter(found, math.inf)


# The file.


def read_ledger(path: Path) -> list[Release]:
    """The releases that a ledger lists, oldest first; none if there is no ledger.

    Raises
    ------
    DataError
        If it cannot be read or understood, with the reason: what was released before would not be counted.
    """
    try:
        document = json.loads(text_of(path))
        require(isinstance(document, dict), "it", "an object", document)
        require(document.get("format") == FORMAT, "format", f"{FORMAT}", document.get("format"))
        entries = document.get("releases")
        require(isinstance(entries, list), "releases", "a list", entries)
        return [_release(entry, number) for number, entry in enumerate(entries, start=1)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if type(error) is ValueError else "not valid JSON"
        raise DataError(
            f"{path.as_posix()}: not a ledger of releases: {reason}; earlier releases cannot be counted: put it back "
            "as it was"
        ) from None


def _release(entry: Any, number: int) -> Release:
    """One entry; ValueError with its number for what cannot be one."""
    keys = [key.name for key in fields(Release)]
    good = isinstance(entry, dict) and set(entry) == set(keys)
    require(good, f"release {number}", f"an object of {', '.join(keys)}", entry)
    for key, value in entry.items():
        if key == "epsilon":
            must, good = "a finite number >= 0", is_number(value, 0, sys.float_info.max)
        elif key == "sha256":
            must, good = "SHA-256 digests", is_list(value, str) and bool(value) and all(map(DIGEST.fullmatch, value))
        elif key in ("columns", "unchanged"):
            must, good = "a list of names", is_list(value, str)
        elif key == "adjacency":
            must, good = f"one of {', '.join(ADJACENCIES)}", value in ADJACENCIES
        elif key == "question":
            must, good = "an object of texts", isinstance(value, dict) and is_list([*value.values()], str)
        else:
            must, good = "text", isinstance(value, str)
        require(good, f"{key} of release {number}", must, value)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Release(**values)


def require(holds: bool, what: str, must: str, value: object) -> None:
    """ValueError that says what a value must be, unless it is."""
    if not holds:
        raise ValueError(f"{what} must be {must}, got {shown(value)}")


def is_list(value: object, kind: type) -> bool:
    """Whether a value of JSON is a list of values of one kind."""
    return isinstance(value, list) and all(isinstance(entry, kind) for entry in value)


# The steps of the transaction: what may fail, or be the last that a process does.


@contextmanager
def _locked(ledger: Path, signals: Sequence[int]) -> Iterator[None]:
    """The lock of a ledger: a file beside it, which the system unlocks when its process ends, however that comes.

    It is removed before it is unlocked. So whoever has locked a file that is no longer there locks another one. A
    signal ends the wait, but nothing else.
    """
    if ledger.is_dir():
        raise DataError(f"{ledger.as_posix()}: cannot be read: Is a directory")
    lock, start, told = ledger.with_name(f".{ledger.name}.lock"), time.monotonic(), False
    made = [place for place in lock.parents if not place.exists()]
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            if ledger.exists() and not ledger.stat().st_mode & 0o222:  # which would not keep it from being replaced
                raise PermissionError(errno.EACCES, "it is read-only")
            handle = _lock(lock)
        except OSError as error:
            raise _refusal("lock", ledger, error) from None
        if handle is not None:
            try:
                yield
            finally:
                with suppress(OSError):  # what stays there is nobody's
                    lock.unlink(missing_ok=True)
                os.close(handle)
                remove_empty(made)
            return
        waited = time.monotonic() - start
        if signals:
            raise KeyboardInterrupt
        if waited > MOST_SECONDS:
            raise OutputError(f"another run holds the lock of {ledger.as_posix()}: let it end first")
        if waited > SILENT_SECONDS and not told:
            complain(f"another run holds the lock of {ledger.as_posix()}; waiting")
            told = True
        time.sleep(PAUSE_SECONDS)


def _lock(lock: Path) -> int | None:
    """The lock's file, open and locked; None if it is another run's now; OSError where nothing can be locked."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except FileNotFoundError:
        return None  # another run, which ends, has removed the folder that it had made
    try:
        if not LOCKS:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(lock.stat(), os.fstat(handle)):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(handle)
        lock.unlink(missing_ok=True)
        raise
    os.close(handle)
    return None


def _write(ledger: Path, releases: Sequence[Release]) -> None:
    """Write the ledger, for its owner only, and let it take its name; OutputError if that fails."""
    part = ledger.with_name(f".{ledger.name}.new")
    document = {"private": PRIVATE, "format": FORMAT, "releases": [asdict(each) for each in releases]}
    try:
        part.unlink(missing_ok=True)  # of a run that was killed: under the lock there is no other
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            # The escapes of names that are no text are those of JSON.
            stream.write(json_text(document).encode(errors="backslashreplace"))
        sync(part)
        part.replace(ledger)
        sync(ledger.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise _refusal("write", ledger, error) from None


def _refusal(what: str, ledger: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot {what} {ledger.as_posix()}, which lists the releases: {error.strerror}; --ledger names another place"
    )

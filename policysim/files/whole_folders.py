"""Results on disk and screen: written whole or not at all, however a run ends; a progress bar, JSON, TOML values.

Several files take their names one after another. Before the first does, what is to be called what is on the disk in
`NAMES`, beside the files: a run that is killed after that is finished by the next one that writes there, and until
then it is `unfinished`, and not read.

Locks are `flock`'s, which the system lets go when a process ends, however it ends; where there is none (Windows),
nothing is locked and leftovers stay.
"""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from envs.records import Level
from envs.toml_reader import UNSEEN
from policysim.files.bad_rows import level_of
from policysim.files.terminal import say
from policysim.question import OutputError
from policysim.question.protocol import Progress

try:
    import fcntl
except ImportError:
    LOCKS = False
else:
    LOCKS = True


# Under which name files of a folder are written, and what says which place each takes.
FILES, NAMES = "files", "names.json"
FILES_PREFIX = f".{FILES}.part-"


def check_writable(folder: Path) -> None:
    """Make the folder and try to write into it, before anything is computed; OutputError if that fails.

    Folders that were not there are removed again: `write_files` makes them when there is something to write.
    """
    with _made(folder):
        pass


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A folder that is made and can be written, and that no other run writes at the same time.

    Folders that were not there, and in which nothing is written, are removed again.

    Raises
    ------
    OutputError
        If it cannot be written, or another run is at work in it.
    """
    with _made(folder):
        handle = os.open(folder, os.O_RDONLY) if LOCKS else None
        try:
            if handle is not None and not _locked(handle):
                raise OutputError(f"another run is writing to {folder}: let it end first, or name another folder")
            _remove_abandoned(folder, FILES_PREFIX)
            yield
        finally:
            if handle is not None:
                os.close(handle)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remove_empty(made)
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    try:
        yield
    finally:
        remove_empty(made)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, the innermost first, until one is not empty."""
    with suppress(OSError):  # the first that is not empty, or was never made, ends it
        for folder in folders:
            folder.rmdir()


def _locked(handle: int) -> bool:
    """Whether an open file or folder could be locked; where the file system knows no locks, as if it was."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files below a folder: all are first written whole in a folder of their own in it, then take their names.

    Parameters
    ----------
    folder : Path
        Made if needed.
    contents : mapping of relative path to bytes
        Other files in the folder stay as they are, and so does one that has this content.

    Raises
    ------
    OutputError
        If anything cannot be written; the old files are then unchanged.
    """
    if folder.is_dir():
        _remove_abandoned(folder, FILES_PREFIX)
    new: dict[Path, bytes] = {}
    for name, content in contents.items():
        target = folder / name
        with suppress(OSError):  # what cannot be read is written anew
            if target.stat().st_size == len(content) and target.read_bytes() == content:
                continue
        new[target] = content
    if not new:
        return
    made = [place for target in new for place in target.parents if not place.exists()]
    try:
        with folder_beside(folder / FILES) as stage:
            for number, content in enumerate(new.values()):
                write_synced(stage / str(number), content)
            take_names(stage, {str(number): target for number, target in enumerate(new)})
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    finally:
        for place in made:
            remove_empty([place])


def sync(path: Path) -> None:
    """Wait until a file's bytes, or the names in a folder, are on the disk: OSError if they cannot be."""
    if path.is_dir() and not LOCKS:
        return  # of such a system, too, which opens no folders
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems, mounted from elsewhere, keep folders safe by themselves and refuse to be told.
        if error.errno != errno.EINVAL or not path.is_dir():
            raise
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def take_names(stage: Path, targets: Mapping[str, Path]) -> None:
    """Let files of a folder take their places beside it: all of them do, or OSError and none.

    Parameters
    ----------
    stage : Path
        A `folder_beside`, with the files, which are on the disk.
    targets : mapping of str to Path
        For each file's name there, its place, in the folder of the stage or below.
    """
    for target in targets.values():
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    with uninterrupted("all was written"):
        if len(targets) > 1:
            names = {part: target.relative_to(stage.parent).as_posix() for part, target in targets.items()}
            write_synced(stage / "names", json.dumps(names).encode())
            (stage / "names").rename(stage / NAMES)
            sync(stage)
        old: dict[Path, Path | None] = {}
        try:
            for part, target in targets.items():
                old[target] = _kept(target, stage / f"old {part}")
                (stage / part).replace(target)
            for folder in {target.parent for target in targets.values()}:
                sync(folder)
        except OSError:
            for target, before in old.items():
                with suppress(OSError):
                    target.unlink() if before is None else before.replace(target)
            raise


def _kept(target: Path, place: Path) -> Path | None:
    """A second name for the file that is at a target, or a copy of it; None if none is."""
    if not os.path.lexists(target):
        return None
    try:
        os.link(target, place, follow_symlinks=False)
    except OSError:  # of a file system that knows no second names
        shutil.copy2(target, place, follow_symlinks=False)
    return place


def _finish(stage: Path) -> None:
    """Let the files of a run that was killed take the places that it had written down, if it came so far."""
    for part, name in _names(stage).items():
        # The folder may be a stranger's: what is moved comes from it, and stays in it.
        target = stage.parent / name
        if target.parent.resolve().is_relative_to(stage.parent.resolve()):
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # it has taken its place
                (stage / part).replace(target)


def _names(stage: Path) -> dict[str, str]:
    """The places of files that a run has written down; none where it has not, or where it is not its list."""
    try:
        names = json.loads((stage / NAMES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    found = names.items() if isinstance(names, dict) else ()
    return {part: name for part, name in found if Path(part).name == part and isinstance(name, str)}


def unfinished(target: Path) -> bool:
    """Whether a run was killed while what it had written beside this file or folder took its places."""
    stages = (path.parent for path in target.parent.glob(f"{glob.escape(f'.{target.name}.part-')}*/{NAMES}"))
    return any((stage / part).exists() for stage in stages for part in _names(stage))


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """An empty folder beside a file or folder, that only its owner may enter; removed with all that is in it.

    It is removed whether the process ends by itself, by Ctrl-C, SIGTERM or SIGHUP; what runs that were killed outright
    left there is removed first. Folders that are missing are made, and removed again if nothing came to be in them.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    made = [place for place in target.parents if not place.exists()]
    folder: Path | None = None
    with handled(INTERRUPTS[1:], signal.default_int_handler):
        try:
            with uninterrupted():
                folder, handle = _own_folder(target)
            yield folder
        finally:
            with handled(INTERRUPTS, lambda *_: None):
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)
                remove_empty(made)


def _own_folder(target: Path) -> tuple[Path, int]:
    """A new folder beside a target, and it opened and locked, by which others see that its owner is alive."""
    prefix = f".{target.name}.part-"
    while True:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _remove_abandoned(target.parent, prefix)
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
            handle = os.open(folder if LOCKS else os.devnull, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another run took it, or the folder above it, for one that nobody needs
        if not LOCKS or (_locked(handle) and folder.exists()):
            return folder, handle
        os.close(handle)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Finish what such folders hold, and remove them, but those whose writer is still alive."""
    for part in folder.iterdir() if LOCKS else ():
        if part.name.startswith(prefix):
            with suppress(OSError):
                handle = os.open(part, os.O_RDONLY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _finish(part)
                    shutil.rmtree(part)
                finally:
                    os.close(handle)


# What ends a process unless it is handled; Ctrl-C first, which Python handles itself.
INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def uninterrupted(done: str = "") -> Iterator[list[int]]:
    """Ctrl-C, SIGTERM and SIGHUP wait until this is done, in a list; then comes KeyboardInterrupt, which says so."""
    waiting: list[int] = []
    with handled(INTERRUPTS, lambda number, _: waiting.append(number)):
        yield waiting
    if waiting:
        raise KeyboardInterrupt(done)


@contextmanager
def handled(signals: Sequence[int], handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Handle signals in this way, but those that are ignored (nohup); only Python's first thread is told of any."""
    known = signals if threading.current_thread() is threading.main_thread() else ()
    before = {each: signal.getsignal(each) for each in known}
    ours = {each: old for each, old in before.items() if old not in (signal.SIG_IGN, None)}
    try:
        for each in ours:
            signal.signal(each, handler)
        yield
    finally:
        for each, old in ours.items():
            signal.signal(each, old)


# Work that is done sooner shows no progress bar.
PATIENCE_SECONDS = 2
# More steps are shown as 1.2k.
MOST_COUNTED = 100_000


@contextmanager
def progress_bar(unit: str = "step") -> Iterator[Progress]:
    """Progress as a bar on stderr, if that is a terminal and the work takes long enough to wonder.

    Each second it is drawn anew, so that its clock goes on however long a step takes.
    """
    # disable=None: tqdm itself asks whether stderr is a terminal.
    with tqdm(total=0, delay=PATIENCE_SECONDS, disable=None, leave=False, unit=unit, file=sys.stderr) as bar:
        done = threading.Event()

        def expect(steps: int) -> None:
            bar.total = (bar.total or 0) + steps
            bar.unit_scale = bar.total > MOST_COUNTED

        def clock() -> None:
            pause = float(PATIENCE_SECONDS)
            while not bar.disable and not done.wait(pause):
                bar.refresh()
                pause = 1.0

        thread = threading.Thread(target=clock, daemon=True)
        thread.start()
        try:
            yield Progress(bar.update, expect)
        finally:
            done.set()
            thread.join()


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as the only thing on stdout."""
    say(json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text; NaN is null, infinity is text."""
    text = json.dumps(json_values(dict(document)), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    # JSON has escaped the line ends within texts.
    return UNSEEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text)


def json_values(value: Any) -> Any:
    """JSON has neither NaN nor infinity: null and "inf" stand for them."""
    if isinstance(value, dict):
        return {key: json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(text: str) -> str:
    r"""A key, or text in a comment: bare if that can be, else quoted.

    Examples
    --------
    >>> print(toml_text("age"), toml_text("CD4 count"), toml_text('a"b\n'))
    age "CD4 count" "a\"b\n"
    """
    return text if _BARE.fullmatch(text) else toml_string(text)


def toml_string(text: str) -> str:
    """A basic string; all that cannot be printed is escaped."""
    # JSON escapes what TOML does, but for some signs that break lines elsewhere.
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in json.dumps(text, ensure_ascii=False))


def toml_number(value: float) -> str:
    """A number; whole ones without a point.

    Examples
    --------
    >>> toml_number(28.0), toml_number(0.5), toml_number(1e-7)
    ('28', '0.5', '1e-07')
    """
    return str(level_of(float(value)))


def toml_list(values: Iterable[Level | float]) -> str:
    """A list of numbers and texts."""
    return "[" + ", ".join(toml_string(v) if isinstance(v, str) else toml_number(v) for v in values) + "]"

"""What a release asks of files: they are on the disk, what is not yet released is out of sight, and signals clean up.

A folder that is in use is locked with `flock`, which the system lets go when a process ends, however it ends; where
there is none (Windows), leftovers stay.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from policysim.files.whole_files import remove_empty

try:
    import fcntl
except ImportError:
    LOCKS = False
else:
    LOCKS = True

# What ends a process unless it is handled; Ctrl-C first, which Python handles itself.
INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


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
    with handled(INTERRUPTS[1:], signal.default_int_handler):
        try:
            folder, handle = _own_folder(target)
            try:
                yield folder
            finally:
                with handled(INTERRUPTS, lambda *_: None):
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)
        finally:
            remove_empty(made)


def _own_folder(target: Path) -> tuple[Path, int]:
    """A new folder beside a target, and it opened and locked, by which others see that its owner is alive."""
    prefix = f".{target.name}.part-"
    while True:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _remove_abandoned(target.parent, prefix)
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
        except FileNotFoundError:
            continue  # another run took the folder above it for one that nobody needs
        try:
            handle = os.open(folder if LOCKS else os.devnull, os.O_RDONLY)
            if not LOCKS or (_locked(handle) and folder.exists()):
                return folder, handle
            os.close(handle)
        except FileNotFoundError:
            continue  # and now this one
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove such folders, but those whose writer is still alive."""
    for part in folder.iterdir() if LOCKS else ():
        if part.name.startswith(prefix):
            with suppress(OSError):
                handle = os.open(part, os.O_RDONLY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(part)
                finally:
                    os.close(handle)


def _locked(handle: int) -> bool:
    """Whether an open file or folder could be locked; where the file system knows no locks, as if it was."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


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

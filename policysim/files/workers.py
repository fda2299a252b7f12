"""Work on each of many files that are one table: here, in processes, or on a cluster.

Work on a part gives arrays of integers, and whoever asked adds them up. Sums of integers do not depend on their order,
so that neither the number of parts, nor who worked on them, nor what was done again can change a result.
"""

from __future__ import annotations

import functools
import hashlib
import io
import multiprocessing
import os
import re
import sys
import threading
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policysim.files.bad_rows import DataError
from policysim.files.cluster import on_cluster
from policysim.files.many_files import stamp
from policysim.files.whole_folders import write_files
from policysim.question.protocol import SILENT, Progress

# What is known of a part: arrays by name, of numbers or of text.
Arrays: TypeAlias = dict[str, NDArray[Any]]
Work: TypeAlias = Callable[[Path], Arrays]

# So often a part is given to a new process after it, or one beside it, ended the last.
MOST_ATTEMPTS = 3
# Of what is kept: a SHA-256.
NAME = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Workers:
    """Who works on parts.

    Attributes
    ----------
    processes : int
        On this machine; 1 is this process itself.
    cluster : str
        The address of a Dask scheduler, in place of processes; its workers must see the files under the same names.
    kept : Path or None
        A folder for what is known of each part, so that an interrupted run can be taken up; removed at the end.
    resume : bool
        Whether what an earlier run left there is taken.
    """

    processes: int = 1
    cluster: str = ""
    kept: Path | None = None
    resume: bool = False

    def map(
        self, work: Work, parts: Sequence[Path], key: str, progress: Progress = SILENT
    ) -> Generator[Arrays, None, None]:
        """Work on each part, in whatever order they end; a part whose worker died is worked on again.

        Parameters
        ----------
        work : callable
            What can be pickled: a function of a module, or a `functools.partial` of one.
        parts : sequence of Path
        key : str
            What the work depends on besides its part.
        progress : Progress, optional
            Told of each part.

        Raises
        ------
        DataError
            As `work` does, also for a part that changes or vanishes; for one whose workers die again and again.
        UsageError
            For a cluster that cannot be used.
        OutputError
            If what is kept cannot be written.
        """
        progress.expect(len(parts))
        kept = Kept(self.kept, key, resume=self.resume) if self.kept else None
        missing = []
        for part in parts:
            known = kept.of(part) if kept else None
            if known is None:
                missing.append(part)
            else:
                progress.advance()
                yield known
        whole = functools.partial(unchanged, work)
        worked: Iterator[tuple[Path, Arrays]] = ((part, whole(part)) for part in missing)
        if self.cluster and missing:
            worked = on_cluster(self.cluster, whole, missing)
        elif self.processes > 1 and len(missing) > 1:
            worked = in_processes(min(self.processes, len(missing)), whole, missing)
        for part, arrays in worked:
            if kept:
                kept.add(part, arrays)
            progress.advance()
            yield arrays
        if kept:
            kept.remove()


def unchanged(work: Work, part: Path) -> Arrays:
    """Work on a part that is the same file before and after: DataError if it changes."""
    before = stamp(part)
    arrays = work(part)
    if stamp(part) != before:
        raise DataError(f"{part.as_posix()}: was changed while it was read")
    return arrays


def in_processes(n_processes: int, work: Work, parts: Sequence[Path]) -> Iterator[tuple[Path, Arrays]]:
    """Work in so many processes. If one dies, all are replaced, and only what is missing is done again."""
    missing, attempts = list(parts), 0
    while missing:
        before = len(missing)
        with _pool(n_processes) as pool:
            for part, arrays in _as_completed(pool, work, tuple(missing), 2 * n_processes):
                missing.remove(part)
                yield part, arrays
        attempts = attempts + 1 if len(missing) == before else 1
        if missing and attempts == MOST_ATTEMPTS:
            raise DataError(
                f"{missing[0].as_posix()}: the processes that read it, or parts beside it, died {attempts} times: is "
                "there memory enough for so many workers?"
            )


@contextmanager
def _pool(n_processes: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends, with all its processes, also where one of them has died."""
    others = set(multiprocessing.active_children())
    # Not a fork: of a process with threads, whose locks nobody would open.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "policysim.logs.counted_log"])
    _start_server()
    pool = ProcessPoolExecutor(n_processes, mp_context=context, initializer=_end_with_parent)
    try:
        yield pool
    except BrokenProcessPool:
        # Python 3.11 would wait for ever for a process that was started just when another one died.
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
    finally:
        pool.shutdown(cancel_futures=True)


def _start_server() -> None:
    """Start the process that others are forked from, which takes modules from where this one does and nowhere else.

    By itself it would look into the current folder first.
    """
    wanted = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """Let this process end when the one that wants its work is killed: else it would wait for more for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _as_completed(
    pool: ProcessPoolExecutor, work: Work, parts: Sequence[Path], most: int
) -> Iterator[tuple[Path, Arrays]]:
    """At most so many parts are under way at a time, so that their arrays do not pile up here."""
    waiting: dict[Future[Arrays], Path] = {}
    rest = iter(parts)
    while True:
        for part in rest:
            try:
                waiting[pool.submit(work, part)] = part
            except (EOFError, ConnectionError) as error:  # the process that starts the others has died
                raise BrokenProcessPool from error
            if len(waiting) >= most:
                break
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future.result()


class Kept:
    """What is known of parts, a file each in a folder, under a name that depends on the part and on what was asked.

    Files of other parts, of parts that were changed since, and of other questions are not looked at.
    """

    def __init__(self, folder: Path, key: str, *, resume: bool) -> None:
        self._folder, self._key = folder, key
        if not resume:
            self.remove()

    def of(self, part: Path) -> Arrays | None:
        """What an earlier run left of this part; None if it left nothing."""
        try:
            content = (self._folder / self._name(part)).read_bytes()
            with np.load(io.BytesIO(content), allow_pickle=False) as found:
                return dict(found)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def add(self, part: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep what is known of a part, whole or not at all: OutputError if it cannot be written."""
        content = io.BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        write_files(self._folder, {self._name(part): content.getvalue()})

    def remove(self) -> None:
        """Remove what is kept, and the folder unless something else is in it."""
        with suppress(OSError):
            for path in self._folder.glob("*.npz"):
                if NAME.fullmatch(path.stem):
                    path.unlink()
            self._folder.rmdir()

    def _name(self, part: Path) -> str:
        told = "\n".join(map(str, (self._key, *stamp(part))))
        return f"{hashlib.sha256(told.encode()).hexdigest()}.npz"

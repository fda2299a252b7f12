"""Work on each of many files that are one table: here, in threads, or on a cluster.

What is known of the parts comes back in their order, whoever worked on them: a result cannot depend on who was faster.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from policysim.files.bad_rows import DataError
from policysim.files.cluster import on_cluster
from policysim.files.many_files import stamp
from policysim.question.protocol import SILENT, Progress

Found = TypeVar("Found")


@dataclass(frozen=True)
class Workers:
    """Who works on parts.

    Attributes
    ----------
    threads : int
        On this machine. Arrow reads and counts in several at a time; 1 is this thread itself.
    cluster : str
        The address of a Dask scheduler, in place of threads; its workers must see the files under the same names.
    """

    threads: int = 1
    cluster: str = ""

    def map(self, work: Callable[[Path], Found], parts: Sequence[Path], progress: Progress = SILENT) -> Iterator[Found]:
        """What work finds of each part, in the order of the parts; `progress` is told of each.

        Raises
        ------
        DataError
            As `work` does, also for a part that changes or vanishes; for one whose workers die again and again.
        UsageError
            For a cluster that cannot be used.
        """
        progress.expect(len(parts))
        whole = functools.partial(unchanged, work)
        threads = min(self.threads, len(parts))
        if self.cluster:
            results = on_cluster(self.cluster, whole, parts)
        else:
            results = in_threads(threads, whole, parts) if threads > 1 else map(whole, parts)
        for found in results:
            progress.advance()
            yield found


def unchanged(work: Callable[[Path], Found], part: Path) -> Found:
    """Work on a part that is the same file before and after: DataError if it changes."""
    before = stamp(part)
    found = work(part)
    if stamp(part) != before:
        raise DataError(f"{part.as_posix()}: was changed while it was read")
    return found


def in_threads(n_threads: int, work: Callable[[Path], Found], parts: Sequence[Path]) -> Iterator[Found]:
    """Work in so many threads. Who ends early ends the rest, but for the parts that are under way."""
    pool = ThreadPoolExecutor(n_threads)
    waiting: deque[Future[Found]] = deque()
    try:
        for part in parts:
            waiting.append(pool.submit(work, part))
            # What waits for its turn does not pile up.
            if len(waiting) == 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)

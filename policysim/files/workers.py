"""Work on each of many files that are one table: here, in threads, or by an existing Dask cluster.

What is known of the parts comes back in their order, whoever worked on them: a result cannot depend on who was faster.
The workers of a cluster must have this package and see the same files.

What a Dask scheduler sends is unpickled: whoever controls it, or answers in its place, runs code here. So it is reached
on this machine, or by TLS with the certificates of Dask's own configuration.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from policysim.files.bad_rows import DataError, first_line
from policysim.files.many_files import stamp
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress, UsageError

OURS = "policysim"
CERTIFICATES = "set distributed.comm.tls.ca-file, and cert and key of distributed.comm.tls.client"
CONNECT_SECONDS = 5
# As dask scheduler prints it; without a scheme it is tcp, whatever Dask's configuration says.
ADDRESS = re.compile(r"(?:(tcp|tls)://)?((?:([\w.-]+)|\[([0-9a-fA-F:.]+)\]):[0-9]{1,5})")

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


def on_cluster(address: str, work: Callable[[Path], Found], parts: Sequence[Path]) -> Iterator[Found]:
    """What work finds of each part, in the order of the parts, by the workers of a cluster; Dask does again what died.

    Raises
    ------
    UsageError
        If there is no cluster, or one without workers, or whose workers have not this version of the package.
    DataError
        As `work` does; for a part whose workers die again and again.
    """
    with optional():
        import distributed as package  # noqa: PLC0415 - takes a second

    distributed: Any = package  # which has no types of its own everywhere
    with _client(distributed, address) as client:
        check_versions(client, address)
        # Not pure: the same file may hold something else since another run.
        futures = client.map(work, [part.absolute() for part in parts], pure=False)
        for place, part in enumerate(parts):
            try:
                yield futures[place].result()
            except distributed.KilledWorker as error:
                raise DataError(
                    f"{part.as_posix()}: the workers of the cluster that read it died: {first_line(error)}"
                ) from None
            futures[place] = None  # the cluster may forget it


@contextmanager
def _client(distributed: Any, address: str) -> Iterator[Any]:
    """A client of the cluster, which is left running."""
    address = checked_address(address)
    if address.startswith("tls"):
        # Without them the client would not know whom it talks to; Dask itself says so in many lines.
        try:
            context = distributed.Security().get_connection_args("client")["ssl_context"]
        except (OSError, ValueError) as error:
            raise UsageError(f"--cluster {address}: Dask's certificates cannot be used: {first_line(error)}") from None
        if context is None:
            raise UsageError(f"--cluster {address}: Dask's configuration names no certificates: {CERTIFICATES}")
    try:
        asyncio.run(asyncio.wait_for(_greeted(distributed, address), 2 * CONNECT_SECONDS))
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except TimeoutError:
        raise UsageError(f"--cluster {address}: there is no Dask cluster: who listens there does not answer") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"--cluster {address}: there is no Dask cluster: {first_line(error)}") from None
    try:
        yield client
    finally:
        client.close()


def checked_address(address: str) -> str:
    """The address with its scheme; UsageError unless it is tls://, or tcp:// on this machine.

    Examples
    --------
    >>> checked_address("localhost:8786"), checked_address("tls://10.0.0.1:8786")
    ('tcp://localhost:8786', 'tls://10.0.0.1:8786')
    """
    found = ADDRESS.fullmatch(address)
    if not found:
        raise UsageError(f"--cluster must be tls://HOST:PORT, or tcp://HOST:PORT on this machine, got {address!r}")
    scheme, place, name, version_6 = found.groups()
    here = name == "localhost"
    with suppress(ValueError):  # a name
        here = here or ipaddress.ip_address(name or version_6).is_loopback
    if scheme != "tls" and not here:
        raise UsageError(
            f"--cluster {address}: tcp:// only goes to this machine, such as tcp://127.0.0.1:8786: whoever answers at "
            f"another one, or between, could run code here; use tls://{place}"
        )
    return f"{scheme or 'tcp'}://{place}"


async def _greeted(distributed: Any, address: str) -> None:
    """Greet the scheduler: somebody else who listens, such as its own dashboard, would let a client wait for ever."""
    options = distributed.Security().get_connection_args("client")
    comm = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **options)
    await comm.close()


def check_versions(client: Any, address: str) -> None:
    """UsageError for a cluster without workers, or whose workers have another version than this process, or none."""
    # A function of the standard library, which workers without this package know, too.
    found = client.run(version, OURS, on_error="return")
    if not found:
        raise UsageError(f"--cluster {address}: has no workers: start some with dask worker {address}")
    own = version(OURS)
    for worker, theirs in sorted(found.items()):
        if isinstance(theirs, PackageNotFoundError):
            raise UsageError(f"--cluster {address}: the worker {worker} has no package {OURS}: install {own} there")
        if isinstance(theirs, BaseException):
            raise UsageError(f"--cluster {address}: the worker {worker} does not answer: {first_line(theirs)}")
        if theirs != own:
            raise UsageError(f"--cluster {address}: the worker {worker} has {OURS} {theirs}, this is {own}")

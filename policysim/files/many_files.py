"""A table in many files: which they are, by what a file is known again, and who works on each of them.

That is this process, its threads, or an existing Dask cluster, whose workers must have this package and see the same
files. What is known of the parts comes back in their order, whoever worked on them: a result cannot depend on who was
faster.

What a Dask scheduler sends is unpickled: whoever controls it, or answers in its place, runs code here. So it is reached
on this machine, or by TLS with the certificates of Dask's own configuration.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
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
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress, UsageError

ENDINGS = (".csv", ".parquet")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
WILD = "*?["

OURS = "policysim"
CERTIFICATES = "set distributed.comm.tls.ca-file, and cert and key of distributed.comm.tls.client"
CONNECT_SECONDS = 5
# As dask scheduler prints it; without a scheme it is tcp, whatever Dask's configuration says.
ADDRESS = re.compile(r"(?:(tcp|tls)://)?((?:([\w.-]+)|\[([0-9a-fA-F:.]+)\]):[0-9]{1,5})")

Found = TypeVar("Found")


def is_many(name: str | Path) -> bool:
    """Whether a name stands for more than one file: a folder, or a pattern such as logs/*.parquet."""
    path = Path(name)
    try:
        return path.is_dir() or (not path.is_file() and any(sign in path.name for sign in WILD))
    except OSError:  # a name that is too long, or a folder that may not be entered
        return False


def is_file(path: Path) -> bool:
    """Whether a file is there, under a name that there can be."""
    try:
        return path.is_file()
    except OSError:
        return False


def files_of(name: str | Path) -> tuple[Path, ...]:
    """The files that a name stands for, sorted: those of a folder, those that fit a pattern, or the file itself.

    Of a folder, files that do not end in .csv or .parquet are left out, and so are those whose names begin with a dot
    or an underscore, which other tools leave beside data. But rows that are compressed are not left out in silence.

    Raises
    ------
    DataError
        If there are none, or one such as part.csv.gz.
    """
    path = Path(name)
    if not is_many(path):
        return (path,)
    found = path.iterdir() if path.is_dir() else path.parent.glob(path.name)
    visible = sorted(part for part in found if part.name[0] not in "._" and part.is_file())
    for part in visible:
        if part.suffix.lower() in COMPRESSED and Path(part.stem).suffix.lower() in ENDINGS:
            raise DataError(f"{part.as_posix()}: is compressed: unpack it, or move it elsewhere")
    parts = [part for part in visible if part.suffix.lower() in ENDINGS]
    if not parts:
        where = "in this folder" if path.is_dir() else "of this pattern"
        raise DataError(f"{path.as_posix()}: there is no file {where} that ends in {' or '.join(ENDINGS)}")
    return tuple(parts)


def stamp(part: Path) -> tuple[str, int, int]:
    """By what a part is known again: its name, size in bytes, time of change in ns; DataError if it is not there."""
    try:
        found = part.stat()
    except OSError as error:
        raise DataError(f"{part.as_posix()}: cannot be read: {error.strerror}") from None
    return part.absolute().as_posix(), found.st_size, found.st_mtime_ns


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def parts_digest(parts: Sequence[Path]) -> tuple[str, str]:
    """Many files in a word, such as "7 files", and the SHA-256 of their digests and names, a line each."""
    lines = "".join(f"{file_digest(part)}  {part.name}\n" for part in parts)
    return f"{len(parts):,} files", hashlib.sha256(lines.encode()).hexdigest()


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

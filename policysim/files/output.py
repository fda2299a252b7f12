"""Results on disk and screen: a folder written whole or not at all, a progress bar, one JSON document, TOML values."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from envs.records import Level
from policysim.files.bad_rows import level_of
from policysim.question import OutputError, say
from policysim.question.protocol import Progress


def check_writable(folder: Path) -> None:
    """Make the folder and try to write into it, before anything is computed; OutputError if that fails.

    Folders that were not there are removed again: `write_files` makes them when there is something to write.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for place in made:
            place.rmdir()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files below a folder: all are first written whole beside the old ones, then take their names.

    Parameters
    ----------
    folder : Path
        Made if needed.
    contents : mapping of relative path to bytes
        Other files in the folder stay as they are.

    Raises
    ------
    OutputError
        If anything cannot be written; the old files are then unchanged.
    """
    finished: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            finished.append((_write_beside(target, content), target))
        while finished:
            part, target = finished[-1]
            part.replace(target)
            finished.pop()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from None
    finally:
        for part, _ in finished:
            part.unlink(missing_ok=True)


def _write_beside(target: Path, content: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.part-", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o666 & ~_umask())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Work that is done sooner shows no progress bar.
PATIENCE_SECONDS = 2
# More steps are shown as 1.2k.
MOST_COUNTED = 100_000


@contextmanager
def progress_bar(unit: str = "step") -> Iterator[Progress]:
    """Progress as a bar on stderr, if that is a terminal and the work takes long enough to wonder."""
    # disable=None: tqdm itself asks whether stderr is a terminal.
    with tqdm(total=0, delay=PATIENCE_SECONDS, disable=None, leave=False, unit=unit, file=sys.stderr) as bar:

        def expect(steps: int) -> None:
            bar.total = (bar.total or 0) + steps
            bar.unit_scale = bar.total > MOST_COUNTED

        yield Progress(bar.update, expect)


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as the only thing on stdout."""
    say(json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text; NaN is null, infinity is text."""
    return json.dumps(json_values(dict(document)), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


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

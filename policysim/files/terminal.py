"""The one door through which text goes to standard output and to standard error.

What is not seen (`envs.toml_reader.UNSEEN`) is shown escaped: names of columns, values and files may hold such. Where
the reader of a stream is gone, as behind `| head -1`, no more is said, and the command ends with its own exit code.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO

from policysim.errors import OutputError

if TYPE_CHECKING:
    from policysim.progress import Progress

# Work that is done sooner shows no progress bar.
PATIENCE_SECONDS = 2
# More steps are shown as 1.2k.
MOST_COUNTED = 100_000


def open_streams() -> None:
    """Streams that were closed swallow what is written; a terminal without Greek letters gets question marks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # It takes the number of the closed one, which would else be that of the next file that is opened.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="replace")


def say(text: str) -> None:
    """Print a text; OutputError if standard output cannot be written, unless its reader is gone."""
    try:
        _write(sys.stdout, text)
    except OSError as error:
        raise OutputError(f"cannot write to standard output: {error.strerror}") from None


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as the only thing on stdout."""
    say(json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text; NaN is null, infinity is text."""
    from envs.toml_reader import UNSEEN  # noqa: PLC0415 - imports NumPy, see `visible`

    text = json.dumps(_json_values(dict(document)), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    # JSON has escaped the line ends within texts.
    return UNSEEN.sub(lambda match: match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1], text)


def _json_values(value: Any) -> Any:
    """JSON has neither NaN nor infinity: null and "inf" stand for them."""
    if isinstance(value, dict):
        return {key: _json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def complain(message: str) -> None:
    """Print a message on standard error, each of its lines behind `policysim: `."""
    warn("".join(f"policysim: {line}\n" for line in message.split("\n") if line))


def warn(text: str) -> None:
    """Print a text on standard error. If that fails, nothing can be printed."""
    try:
        _write(sys.stderr, text)
    except OSError:
        _silence(sys.stderr)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(visible(text))
        stream.flush()
    except BrokenPipeError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Let a stream write to nowhere, also what it still holds when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def visible(text: str) -> str:
    """Lines of text in which what is not seen is escaped."""
    if all(map(str.isprintable, text.split("\n"))):
        return text
    from envs.toml_reader import one_line  # noqa: PLC0415 - imports NumPy, which --help has no need of

    return one_line(text, but="\n")


def in_notebook() -> bool:
    """Whether a kernel of a notebook runs this."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def progress_bar(unit: str = "step") -> Iterator[Progress]:
    """Progress as a bar on stderr, if that is a terminal or a notebook and the work takes long enough to wonder.

    Each second it is drawn anew, so that its clock goes on however long a step takes.
    """
    from policysim.progress import Progress  # noqa: PLC0415 - --help has no need of either

    tqdm: Any
    notebook = in_notebook()
    if notebook and find_spec("ipywidgets"):
        from tqdm.notebook import tqdm  # noqa: PLC0415
    else:
        from tqdm import tqdm  # noqa: PLC0415

    # None: tqdm itself asks whether stderr is a terminal.
    disable = False if notebook else None
    with tqdm(total=0, delay=PATIENCE_SECONDS, disable=disable, leave=False, unit=unit, file=sys.stderr) as bar:
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

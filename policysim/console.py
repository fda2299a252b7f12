"""What every command shares: a progress bar on stderr, one JSON document on stdout, and the exit code of a check."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

# Work that is done sooner shows no progress bar.
PATIENCE_SECONDS = 2
EXIT_CHECK = 4


@contextmanager
def progress(total: int, unit: str = "run") -> Iterator[Callable[..., object]]:
    """A progress bar on stderr, if that is a terminal and the work takes long enough to wonder."""
    # disable=None: tqdm itself asks whether stderr is a terminal.
    with tqdm(
        total=total,
        delay=PATIENCE_SECONDS,
        disable=None,
        leave=False,
        unit=unit,
        unit_scale=total > 100_000,
        file=sys.stderr,
    ) as bar:
        yield bar.update


def print_json(document: dict[str, Any]) -> None:
    """Print a document as the only thing on stdout."""
    sys.stdout.write(json_text(document))


def json_text(document: dict[str, Any]) -> str:
    """A document as text; NaN is null, infinity is text."""
    return json.dumps(_plain(document), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: null and "inf" stand for them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value

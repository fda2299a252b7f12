"""What every command shares: a progress bar on stderr, one JSON document on stdout, and the exit code of a check."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from policysim.question.progress import Progress

# Work that is done sooner shows no progress bar.
PATIENCE_SECONDS = 2
# More steps are shown as 1.2k.
MOST_COUNTED = 100_000
EXIT_CHECK = 4


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
    sys.stdout.write(json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text; NaN is null, infinity is text."""
    return json.dumps(_plain(dict(document)), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: null and "inf" stand for them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value

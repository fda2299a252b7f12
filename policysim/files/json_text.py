"""JSON documents as text, which hides nothing: what is not seen is escaped, and infinity is text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from envs.toml_reader import UNSEEN
from policysim.files.terminal import say


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as the only thing on stdout."""
    say(json_text(document))


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text; NaN is null, infinity is text."""
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

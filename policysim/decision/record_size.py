"""How large the letters of a decision record may be on paper, so that all of it is on one sheet.

The lines are counted with the widths of a wide font: a browser whose letters are narrower leaves some room.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Points: A4 less the margins that the template has.
WIDTH, HEIGHT = 527.0, 765.0
LARGEST, SMALLEST, STEP = 9.0, 6.0, 0.1
# In font sizes: a line, a letter, a bold one; the column of the names of terms; the space around a heading, with it.
LINE, LETTER, BOLD, NAMES, HEADING = 1.25, 0.52, 0.59, 10.1, 2.1
# Between the rows of tables.
ROW = 0.3
# Characters of the last line, beside the inputs.
VERSIONS = 280
# Points, whatever the letters: a line to write on.
BLANK = 21.0


def print_size(values: Mapping[str, Any]) -> float:
    """Points, the largest at which everything fits; the smallest of all if nothing does.

    Parameters
    ----------
    values : mapping
        What the page shows, by `policysim.decision.record.record_values`.
    """
    sizes = [LARGEST - STEP * place for place in range(round((LARGEST - SMALLEST) / STEP) + 1)]
    return next((size for size in sizes if height(values, size) <= HEIGHT), SMALLEST)


def height(values: Mapping[str, Any], size: float) -> float:
    """Points that the page is high with letters of this size."""
    width = WIDTH / size

    def lines(text: str, room: float, letter: float = LETTER, scale: float = 1.0) -> float:
        return scale * LINE * max(1, math.ceil(scale * letter * _letters(text) / room))

    def rows(texts: Iterable[str]) -> float:
        return sum(lines(text, width - NAMES) + ROW for text in texts)

    inputs = " ".join(f"{name} {digest};" for name, digest in values["inputs"].items())
    formal = [text for text in values["formal"].values() if text]
    ems = [
        1.0 + 2.4 + lines(values["decided"], width - 2.5, BOLD, 1.6),
        lines(values["remark"], width - 2.5, BOLD) if values["remark"] else 0.0,
        lines(values["disclaimer"], width) + 0.5 + rows(formal),
        HEADING + sum(lines(text, width) + 0.3 for text in values["why"]),
        HEADING + rows(values["terms"].values()),
        HEADING
        + 2 * LINE
        + ROW
        + sum(_row(row, width, lines) for row in values["rows"])
        + 2 * LINE * values["certificate"],
        HEADING + sum(lines(text, width - 1.5) for text in values["not_guaranteed"]),
        HEADING + lines(values["methods"].paragraph, width - 1.5, LETTER, 0.94),
        0.3 + lines(" ".join(values["methods"].references), width - 1.5, LETTER, 0.82),
        HEADING + LINE + 1.0 + lines(f"{inputs}{' ' * VERSIONS}", width, LETTER, 0.85),
    ]
    blanks = values["signatures"] + sum(not text for text in values["formal"].values())
    return size * float(sum(ems)) + BLANK * int(blanks)


def _row(row: list[str], width: float, lines: Callable[..., float]) -> float:
    """Of the table of alternatives: its first and its last column may be broken."""
    return ROW + max(lines(row[0], 0.2 * width, BOLD), lines(row[-1], 0.14 * width, BOLD))


def _letters(text: str) -> float:
    """How wide a text is, in letters: those of Chinese are twice as wide."""
    return sum(1.9 if unicodedata.east_asian_width(sign) in "WF" else 1.0 for sign in text)

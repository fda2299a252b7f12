"""Lines of a screen: as wide as the terminal, and the rows of its tables."""

from __future__ import annotations

import shutil

# Characters of a line: as many as the terminal has, within these; the most where there is none.
NARROWEST, WIDEST = 40, 100


def line_width() -> int:
    """Characters that a line has room for; the environment's COLUMNS says how wide a terminal is, if it is set."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns))


def cells(values: list[str], widths: tuple[int, ...]) -> str:
    """One line: the first value to the left of its column, the others to the right of theirs."""
    first, *others = values
    # A value that is too wide moves the line; it never runs into its neighbour.
    padded = [f" {value}".rjust(width) for value, width in zip(others, widths[1:], strict=True)]
    return (first.ljust(widths[0]) + "".join(padded)).rstrip()

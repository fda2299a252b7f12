"""Lines and columns of plain text."""

from __future__ import annotations

import textwrap

WIDTH = 100


def wrap(text: str) -> list[str]:
    """Lines of at most WIDTH characters."""
    return textwrap.wrap(text, WIDTH)


def cells(values: list[str], widths: tuple[int, ...]) -> str:
    """One line: the first value to the left of its column, the others to the right of theirs."""
    first, *others = values
    # A value that is too wide moves the line; it never runs into its neighbour.
    padded = [f" {value}".rjust(width) for value, width in zip(others, widths[1:], strict=True)]
    return (first.ljust(widths[0]) + "".join(padded)).rstrip()

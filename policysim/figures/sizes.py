"""Sizes: for a page, for a column of a journal, for a slide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.style import context

from policysim.figures.glyphs import no_glyph_warnings
from policysim.figures.looks import STYLE
from policysim.figures.wrapping import LINE_SPACING, wrapped
from policysim.question.answer import SizeName

SIZES: tuple[SizeName, ...] = get_args(SizeName)
COLUMN_WIDTH = 3.5  # inches: a column of most journals
SLIDE = (13.33, 7.5)  # inches: a screen of 16:9
FONTS = {"page": 9.0, "column": 7.0, "slide": 14.0}  # points
# What grows and shrinks with the font.
SCALED = {
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "axes.linewidth": 0.8,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "xtick.major.size": 3.5,
    "xtick.major.width": 0.8,
    "ytick.major.size": 3.5,
    "ytick.major.width": 0.8,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.constrained_layout.h_pad": 0.07,
}


@dataclass(frozen=True)
class Canvas:
    """A figure to draw on, with what drawing depends on.

    Attributes
    ----------
    figure : Figure
        Empty.
    size : str
        "page", "column" or "slide".
    font : float
        Points.
    """

    figure: Figure
    size: SizeName
    font: float

    @property
    def narrow(self) -> bool:
        """Whether panels stand below each other."""
        return self.size == "column"

    @property
    def width(self) -> float:
        """Points."""
        return 72 * float(self.figure.get_figwidth())

    def head(self, words: str) -> None:
        """A title for the whole figure, at its left."""
        font = FontProperties(size=1.2 * self.font, weight="bold", family=rcParams["font.family"])
        text = wrapped(words, 0.97 * self.width, font)
        self.figure.suptitle(text, x=0.01, ha="left", fontproperties=font, linespacing=LINE_SPACING)


@contextmanager
def canvas(size: SizeName, *, page: tuple[float, float], column: float) -> Iterator[Canvas]:
    """A figure of one of the sizes, in the style of all figures while it is drawn.

    Parameters
    ----------
    size : str
        "page", "column" (3.5 inches wide) or "slide" (13.33 by 7.5 inches).
    page : tuple of float
        Width and height on a page, inches.
    column : float
        Height in a column, inches.

    Raises
    ------
    ValueError
        For another size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got size={size!r}.")
    inches = {"page": page, "column": (COLUMN_WIDTH, column), "slide": SLIDE}[size]
    with context([STYLE, _scaled(FONTS[size])]), no_glyph_warnings():
        yield Canvas(Figure(figsize=inches, layout="constrained"), size, FONTS[size])


def _scaled(font: float) -> dict[str, Any]:
    ratio = font / FONTS["page"]
    return {"font.size": font, **{name: value * ratio for name, value in SCALED.items()}}

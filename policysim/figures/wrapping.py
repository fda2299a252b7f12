"""Words that are broken into lines where they would be too wide."""

from __future__ import annotations

import math
import re

from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from policysim.figures.glyphs import measurable

# Boxes of text in a browser are 1.17 times the font size high, whatever is in them: lines must not touch.
LINE_SPACING = 1.42
LINE_HEIGHT = 1.2


def width_of(words: str, font: FontProperties) -> float:
    """How wide words are in one line, points."""
    width, _, _ = text_to_path.get_text_width_height_descent(measurable(words), font, False)
    return float(width)


def wrapped(words: str, width: float, font: FontProperties) -> str:
    """The words in lines of at most `width` points.

    Broken after spaces; after hyphens within a word that is too wide by itself; and anywhere within what still is. A
    single sign, such as a plus between two names, stays with the next word.
    """
    lines: list[str] = []
    for paragraph in words.split("\n"):
        line = ""
        for part in _parts(paragraph, width, font):
            if line and width_of((line + part).rstrip(), font) > width:
                lines.append(line.rstrip())
                line = ""
            line += part
        lines.append(line.rstrip())
    return "\n".join(lines)


def _parts(paragraph: str, width: float, font: FontProperties) -> list[str]:
    parts = _split([paragraph], r"(?:[^ ] +)?[^ ]* *", -1.0, font)
    for pattern in (r"[^ ]* *", r"[^\-]*\-* *"):
        parts = _split(parts, pattern, width, font)
    return [piece for part in parts for piece in _pieces(part, width, font)]


def _split(parts: list[str], pattern: str, width: float, font: FontProperties) -> list[str]:
    """The parts, those that are wider than `width` split where the pattern says."""
    return [
        piece
        for part in parts
        for piece in (re.findall(pattern, part) if width_of(part.rstrip(), font) > width else [part])
        if piece
    ]


def _pieces(part: str, width: float, font: FontProperties) -> list[str]:
    """A part in pieces of as many characters as fit, at least one."""
    pieces = [""]
    for sign in part:
        if sign != " " and pieces[-1] and width_of(pieces[-1] + sign, font) > width:
            pieces.append("")
        pieces[-1] += sign
    return pieces


def widest_word(words: str, font: FontProperties) -> float:
    """The width below which words are broken within a word, points."""
    return max((width_of(part.rstrip(), font) for part in _parts(words, math.inf, font)), default=0.0)


def show_wrapped(text: Text, words: str, width: float) -> bool:
    """Give a drawn text these words, broken into lines; whether that changed it."""
    lines = wrapped(words, width, text.get_fontproperties())
    changed = lines != text.get_text()
    text.set(text=lines, linespacing=LINE_SPACING)
    return changed

"""Words that are broken into lines where they would be too wide."""

from __future__ import annotations

import re

from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

# Boxes of text in a browser are 1.17 times the font size high, whatever is in them: lines must not touch.
LINE_SPACING = 1.42
LINE_HEIGHT = 1.2


def width_of(words: str, font: FontProperties) -> float:
    """How wide words are in one line, points."""
    width, _, _ = text_to_path.get_text_width_height_descent(words, font, False)
    return float(width)


def wrapped(words: str, width: float, font: FontProperties) -> str:
    """The words in lines of at most `width` points.

    Broken after spaces, and after hyphens within a word that is too wide by itself.
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
    parts: list[str] = []
    for word in re.findall(r"[^ ]* *", paragraph):
        parts += re.findall(r"[^\-]*\-* *", word) if width_of(word.rstrip(), font) > width else [word]
    return [part for part in parts if part]


def show_wrapped(text: Text, words: str, width: float) -> bool:
    """Give a drawn text these words, broken into lines; whether that changed it."""
    lines = wrapped(words, width, text.get_fontproperties())
    changed = lines != text.get_text()
    text.set(text=lines, linespacing=LINE_SPACING)
    return changed

"""Words that are broken into lines where they would be too wide.

Letters that the font of the figures lacks, such as Chinese ones: another font, and no warnings.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

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
    if width_of(part.rstrip(), font) <= width:
        return [part]
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


# Fonts with many letters, of which those that are installed are used.
FALLBACKS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR"),
    *("Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS"),
    *("Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Unifont"),
)
FULL_WIDTH = "\N{EM DASH}"


@cache
def _known() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


@cache
def _fallbacks() -> tuple[str, ...]:
    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in FALLBACKS if name in installed)


def measurable(words: str) -> str:
    """The words, with a dash that is as wide as the font is high for each letter that the font lacks.

    So wide are Chinese letters in every font: what fits on one machine fits on another.
    """
    if words.isascii():
        return words
    return "".join(sign if ord(sign) in _known() else FULL_WIDTH for sign in words)


def use_fallbacks(figure: Figure) -> None:
    """Draw the texts that need it with the fonts that are installed; the others stay as they are."""
    for text in figure.findobj(Text):
        if measurable(text.get_text()) != text.get_text():
            families = dict.fromkeys([*text.get_fontfamily(), *_fallbacks()])
            text.set_fontfamily(list(families))


@contextmanager
def no_glyph_warnings() -> Iterator[None]:
    """Where no font has a letter, a box is drawn in PNG and PDF; SVG has the letter itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        yield

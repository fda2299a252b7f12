"""Letters that the font of the figures lacks, such as Chinese ones: another font, and no warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

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

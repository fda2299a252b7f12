"""Lettering that fits: words in lines, fonts that have all letters, and plain numbers on log axes that do not touch."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from policysim.numbers import tick

# Boxes of text in a browser are 1.17 times the font size high, whatever is in them: lines must not touch.
LINE_SPACING = 1.42
LINE_HEIGHT = 1.2


@lru_cache(maxsize=1 << 12)
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


def cut(lines: str, most: int) -> str:
    """The first so many lines; an ellipsis ends the last one if there are more."""
    found = lines.split("\n")
    return lines if len(found) <= most else "\n".join([*found[: most - 1], f"{found[most - 1][:-1].rstrip()}…"])


def _parts(paragraph: str, width: float, font: FontProperties) -> list[str]:
    """What a line may be broken between: pieces that end with a space or a hyphen, or have as many signs as fit."""
    parts = [paragraph]
    for pattern, room in ((r"(?:[^ ] +)?[^ ]* *", -1.0), (r"[^ ]* *", width), (r"[^\-]*\-* *", width)):
        parts = [
            piece
            for part in parts
            for piece in (re.findall(pattern, part) if width_of(part.rstrip(), font) > room else [part])
            if piece
        ]
    pieces: list[str] = []
    for part in parts:
        if width_of(part.rstrip(), font) <= width:
            pieces.append(part)
            continue
        pieces.append("")
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


def measurable(words: str) -> str:
    """The words, with a dash that is as wide as the font is high for each letter that the font lacks.

    So wide are Chinese letters in every font: what fits on one machine fits on another.
    """
    if words.isascii():
        return words
    return "".join(sign if ord(sign) in _known() else FULL_WIDTH for sign in words)


def use_fallbacks(figure: Figure) -> None:
    """Draw the texts that need it with the fonts that are installed; the others stay as they are."""
    texts = [text for text in figure.findobj(Text) if measurable(text.get_text()) != text.get_text()]
    installed = {font.name for font in fontManager.ttflist} if texts else set()
    for text in texts:
        families = [*text.get_fontfamily(), *(name for name in FALLBACKS if name in installed)]
        text.set_fontfamily(list(dict.fromkeys(families)))


@contextmanager
def no_glyph_warnings() -> Iterator[None]:
    """Where no font has a letter, a box is drawn in PNG and PDF; SVG has the letter itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        yield


# With more ticks only those at powers of ten are kept, where a figure asks for that.
MOST_TICKS = 12
# So many numbers may be missing before an axis looks uneven.
FEW = 2


def set_epsilon_axis(axes: Axes, epsilons: pd.Series) -> None:
    """A log axis with plain numbers at the ticks within these epsilons."""
    axes.set_xscale("log")
    set_log_ticks(axes.xaxis, epsilons.min(), epsilons.max())
    axes.set_xlabel("ε (log scale); ← more private")


def set_log_ticks(axis: Axis, low: float, high: float, *, most: int | None = None) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, with plain numbers; at powers alone where that is more than `most`."""
    ticks = ticks_within(low, high)
    if most is not None and len(ticks) > most:
        ticks = [place for place in ticks if f"{place:e}".startswith("1.0000")]
    axis.set_ticks(ticks, labels=[tick(place) for place in ticks])
    axis.set_minor_locator(NullLocator())


def set_numbers(axis: Axis, form: str = ",.4g") -> None:
    """Numbers at the ticks with a true minus sign."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:{form}}".replace("-", "−")))


def ticks_within(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten from `low` to `high`, both > 0; the ends themselves where there are none.

    Examples
    --------
    >>> ticks_within(0.3, 7)
    [0.5, 1.0, 2.0, 5.0]
    >>> ticks_within(3, 4)
    [3, 4]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    nice = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    # What is off by rounding alone is within.
    return [place for place in nice if low * (1 - 1e-9) <= place <= high * (1 + 1e-9)] or sorted({low, high})


def fix_ticks(figure: Figure, font: float) -> None:
    """Make the ticks now; else they take their look, and their number, from the settings of whoever draws or saves."""
    for axis in figure.findobj(Axis):
        axis.set_tick_params(labelsize=axis.get_tick_params().get("labelsize", font))
        axis.get_ticklabels()
        for formatter in (axis.get_major_formatter(), axis.get_minor_formatter()):
            vars(formatter)["fix_minus"] = _with_minus


def _with_minus(text: str) -> str:
    """Numbers with a minus sign and no hyphen, whatever `axes.unicode_minus` says when a figure is saved."""
    return text.replace("-", "\N{MINUS SIGN}")


def thin_ticks(axes: Axes | SecondaryAxis) -> None:
    """Leave out numbers of log axes where they would touch; the figure must have been laid out."""
    for along, axis in enumerate((axes.xaxis, axes.yaxis)):
        # That of an axis on top of a log axis is "functionlog".
        if isinstance(axis.get_major_locator(), FixedLocator) and axis.get_scale() in ("log", "symlog", "functionlog"):
            texts = axis.get_majorticklabels()
            kept = _without_touching(texts, along)
            labels = [text.get_text() if text in kept else "" for text in texts]
            axis.set_ticks(list(axis.get_majorticklocs()), labels=labels)


def _without_touching(texts: list[Text], along: int) -> list[Text]:
    """All but a few, or else the powers of ten alone, if there is more than one of them."""
    boxes = {text: text.get_window_extent() for text in texts}
    # "100", "1,000", "0.1", "1e-07"
    powers = [text for text in texts if text.get_text().strip("0.,") == "1" or text.get_text().startswith("1e")]
    kept: list[Text] = []
    for text in [*powers, *(text for text in texts if text not in powers)]:
        for other in kept:
            first, second = sorted((boxes[text], boxes[other]), key=lambda box: float(box.min[along]))
            if first.max[along] + 0.25 * first.height > second.min[along]:
                break
        else:
            kept.append(text)
    alone = [text for text in kept if text in powers]
    return kept if len(texts) - len(kept) <= FEW or len(alone) < 2 else alone

"""Numbers in prose: words for people, and beside them the number itself for machines."""

from __future__ import annotations

import math
import re
from html import unescape

from markupsafe import Markup

from policysim.question import words


def six_digits(value: float) -> str:
    """The number of the files to six significant digits; empty for NaN, 0 for what rounding leaves of it."""
    if abs(value) < words.NEGLIGIBLE:
        return "0"
    return "" if math.isnan(value) else f"{float(words.in_digits(value)):.6g}"


def unmarked(text: Markup) -> str:
    """The words of markup; unlike `Markup.striptags`, with the spaces that do not break."""
    return unescape(re.sub(r"<[^>]*>", "", text))


def shown(value: float, text: str) -> Markup:
    """A number as an element of the page that says its value to six significant digits."""
    return Markup('<data value="{}">{}</data>').format(six_digits(value), text)


def percent(share: float) -> Markup:
    """A share in per cent."""
    return shown(share, words.percent(share))


def percent_up(share: float) -> Markup:
    """A share that nothing exceeds, in per cent."""
    return shown(share, words.percent_up(share))


def percent_1(share: float) -> Markup:
    """A share in per cent, to a tenth."""
    return shown(share, words.percent_1(share))


def rounded(value: float) -> Markup:
    """Two significant digits."""
    return shown(value, words.rounded(value))


def sensitivity(value: float) -> Markup:
    """A sensitivity or range: three digits."""
    return shown(value, words.sensitivity(value))


def percent_down(share: float) -> Markup:
    """A share that is reached, never above it."""
    return shown(share, words.percent_down(share))


def decimal(value: float) -> Markup:
    """A number that was rounded up, in all its digits."""
    return shown(value, words.decimal(value))


def rounded_down(value: float) -> Markup:
    """A lower bound, to three digits and never above it."""
    return shown(value, words.rounded_down(value, words.SENSITIVITY_DIGITS))


def plain(value: float) -> Markup:
    """A number that is exact as it stands, such as epsilon."""
    return shown(value, words.plain(value))


def guess_rate(rate: float) -> Markup:
    """A guess rate as so many of 100, rounded up."""
    return shown(rate, words.guess_rate(rate))


def of_hundred(share: float) -> Markup:
    """A share as so many of 100."""
    return shown(share, words.rounded(100 * share))


def percent_1_up(share: float) -> Markup:
    """A share that nothing exceeds, in per cent to a tenth."""
    return shown(share, words.percent_1_up(share))


def beside(value: float, scale: float) -> Markup:
    """A number with the decimals at which another has five digits."""
    return shown(value, words.beside(value, scale))


def events(rate: float, count: int) -> Markup:
    """A rate as so many of `count`."""
    return shown(rate, words.events(rate, count))


def more_events(rate: float, count: int) -> Markup:
    """A difference of rates, with its sign."""
    return shown(rate, words.events(rate, count, sign=True))


FILTERS = {
    "percent": percent,
    "percent_up": percent_up,
    "percent_1": percent_1,
    "rounded": rounded,
    "percent_down": percent_down,
    "rounded_down": rounded_down,
    "decimal": decimal,
    "sensitivity": sensitivity,
    "plain": plain,
    "guess_rate": guess_rate,
    "of_hundred": of_hundred,
    "percent_1_up": percent_1_up,
    "beside": beside,
    "events": events,
    "more_events": more_events,
}

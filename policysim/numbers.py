"""How a number becomes text, plain and in HTML: for screens, pages, figures, files and the script of a page.

Numbers have no more digits than the inputs support, which is two; bounds are rounded so that they claim less. Tables
are written with `written` and `to_csv`. Every printed number is formatted by a function of this module.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

DIGITS = 2
# Numbers in files for machines: more would differ from one processor to another.
DIGITS_OF_FILES = 8
MOST_COUNTED = 10_000_000
# Numbers below are written out.
MOST_WHOLE = 1e15
# Smaller numbers are what rounding leaves of 0.
NEGLIGIBLE = 1e-12
# Losses of utility below are ≈ 0.
LEAST_LOST = 1e-6
# Fewer events than this, in as many patients as show two digits, are not told from none.
LEAST_EVENTS = 0.01


def steady(value: float) -> float:
    """A number to eleven digits: one half way between two texts gets the same text whatever its last bits are.

    Examples
    --------
    >>> [f"{value:.2g}" for value in (0.125 - 1e-14, 0.125 + 1e-14)]
    ['0.12', '0.13']
    >>> [f"{steady(value):.2g}" for value in (0.125 - 1e-14, 0.125 + 1e-14)]
    ['0.12', '0.12']
    """
    return float(f"{value:.11g}")


def in_digits(value: float) -> str:
    """A number as files for machines have it."""
    return f"{value:.{DIGITS_OF_FILES}g}"


def rounded(value: float, *, sign: bool = False, digits: int = DIGITS) -> str:
    """Two significant digits, or so many, with thousands separators: 0.16, 3,900, ∞; – for NaN."""
    if math.isnan(value):
        return "–"
    if abs(value) < NEGLIGIBLE:
        return "0"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value = steady(value)
    near = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    if not 1e-4 <= abs(value) < MOST_WHOLE:
        return _minus(f"{value:{'+' if sign else ''}.1e}")
    # Rounding may carry into another digit (0.099 -> 0.1), so the digits shown are counted again.
    shown = max(0, digits - 1 - math.floor(math.log10(abs(near))))
    return _minus(f"{near:{'+' if sign else ''},.{shown}f}")


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """A lower bound with so many significant digits, never above it: "no mechanism does it below" stays true."""
    return _bound(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """An upper bound, or what is enough, with so many significant digits, never below it."""
    return _bound(value, digits, ROUND_CEILING)


def percent_up(share: float) -> str:
    """A share that nothing exceeds, as a whole percentage, never below it."""
    return _percent(share, ROUND_CEILING)


def percent_down(share: float) -> str:
    """A share that is reached, as a whole percentage, never above it."""
    return _percent(share, ROUND_FLOOR)


def _percent(share: float, side: str) -> str:
    if math.isnan(share) or abs(share) < NEGLIGIBLE:
        return percent(share)
    if not abs(100 * share) < MOST_WHOLE:
        return f"{_bound(100 * share, DIGITS, side)}\u00a0%"
    whole = (100 * _shortest(share)).quantize(Decimal(1), rounding=side)
    return _minus(f"{whole:z}\u00a0%")


def enough(value: float, digits: int) -> float:
    """The number that `rounded_up` shows."""
    return float(_in_digits(value, digits, ROUND_CEILING))


def not_above(value: float, digits: int) -> float:
    """The number that `rounded_down` shows."""
    return float(_in_digits(value, digits, ROUND_FLOOR))


def decimal(value: float) -> str:
    """A number that was rounded up, in all its digits and at least two: as a float, the text is exactly the number.

    Examples
    --------
    >>> decimal(3.0), decimal(3.22), decimal(12000.0), decimal(7e-06), decimal(float("inf"))
    ('3.0', '3.22', '12000', '7.0e-6', '∞')
    """
    if not math.isfinite(value) or value == 0:
        return rounded(value)
    number, places = _shortest(value), digits_of(value) - 1
    if not 1e-4 <= value < MOST_WHOLE:
        return f"{number:.{places}e}"
    return f"{number:.{max(0, places - number.adjusted())}f}"


def next_below(value: float) -> float:
    """The next smaller number in as many digits as `decimal` shows of a number above 0.

    Examples
    --------
    >>> next_below(3.3), next_below(3.22), next_below(10.0), next_below(180.0)
    (3.2, 3.21, 9.9, 170.0)
    """
    return float(Context(prec=digits_of(value)).next_minus(_shortest(value)))


def digits_of(value: float) -> int:
    """The significant digits that `decimal` shows."""
    return max(DIGITS, len(_shortest(value).normalize().as_tuple().digits))


def _bound(value: float, digits: int, side: str) -> str:
    if not math.isfinite(value) or abs(value) < NEGLIGIBLE:
        return rounded(value)
    near = _in_digits(value, digits, side)
    if not Decimal("1e-4") <= abs(near) < Decimal(MOST_WHOLE):
        return _minus(f"{float(near):.{digits - 1}e}")
    return _minus(f"{near:,.{max(0, digits - 1 - near.adjusted())}f}")


def _in_digits(value: float, digits: int, side: str) -> Decimal:
    """A number in so many digits, rounded to one side: the one place where bounds are rounded."""
    return Context(prec=digits, rounding=side).create_decimal(_shortest(value))


def _shortest(value: float) -> Decimal:
    """The shortest decimal that is this float: 0.45 is a little more than 45 %, by less than any value is known."""
    return Decimal(repr(float(value)))


def apart(rates: Iterable[float], count: int) -> int:
    """The fewest decimals, at most two, that show how far rates among `count` patients are apart, to half of it.

    Examples
    --------
    >>> apart([0.0053, 0.003002, 0.003], 100_000), apart([0.0053, 0.003], 100_000)
    (1, 0)
    """
    numbers = sorted(rate * count for rate in rates)
    pairs = [(a, b) for a, b in itertools.pairwise(numbers) if b - a >= LEAST_EVENTS]
    for places in range(2):
        if all(abs(round(b, places) - round(a, places) - (b - a)) <= (b - a) / 2 for a, b in pairs):
            return places
    return 2


def counted(rate: float, count: int, places: int) -> str:
    """How many events a rate means among `count` patients, with so many decimals."""
    return _minus(f"{steady(rate * count):z,.{places}f}")


def percent(share: float) -> str:
    """A share as a whole percentage, with a space that does not break."""
    return "–" if math.isnan(share) else _minus(f"{round(steady(100 * share))}\u00a0%")


def achieved(kept: float, most: float) -> str:
    r"""What is kept, and after a dash the most that any mechanism can; the latter only where it is proved.

    Examples
    --------
    >>> achieved(0.642, 0.7071), achieved(0.642, float("nan"))
    ('64–71\xa0%', '64\xa0%')
    """
    if math.isnan(kept) or math.isnan(most):
        return percent(kept)
    return f"{percent_down(kept).removesuffix(chr(160) + '%')}–{percent_up(most)}"


def percent_1(share: float) -> str:
    """A share in per cent, to a tenth."""
    # The z: what rounds to nothing has no sign.
    return "–" if math.isnan(share) else _minus(f"{steady(100 * share):z.1f}\u00a0%")


def plain(value: float) -> str:
    """A number that is exact as it stands, such as epsilon: 0.5, 5,000, 10,000,000, ∞; – for NaN."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    whole = value == round(value) and abs(value) < MOST_WHOLE
    return _minus(f"{value:z,.0f}" if whole else f"{value:,g}")


def decimals(half_width: float) -> int:
    """How many decimals show an interval's half width with two digits; 3 where there is none."""
    if not math.isfinite(half_width) or half_width <= NEGLIGIBLE:
        return 3
    return max(0, DIGITS - 1 - math.floor(math.log10(half_width)))


def interval(low: float, high: float, *, sign: bool = False) -> str:
    """Both ends of an interval, to two digits of its half width; – for none, 0 if both are."""
    if math.isnan(low) or math.isnan(high):
        return "–"
    if max(abs(low), abs(high)) < NEGLIGIBLE:
        return "0"
    shown = decimals((high - low) / 2)
    return " to ".join(_signed(end, shown, sign) for end in (low, high))


def supported_digits(value: float, low: float, high: float, *, sign: bool = False) -> str:
    """A number to the digits that its interval supports; – for none."""
    if math.isnan(value):
        return "–"
    if abs(value) < NEGLIGIBLE:
        return "0"
    return _signed(value, decimals((high - low) / 2), sign)


def _signed(value: float, places: int, sign: bool) -> str:
    """A number with so many places; what is exactly 0 has no sign."""
    plus = "+" if sign and abs(value) >= NEGLIGIBLE else ""
    return _minus(f"{steady(value):{plus}.{places}f}")


def with_interval(value: float, low: float, high: float, *, sign: bool = False) -> str:
    """An estimate with its interval, in words; what never differs has none."""
    if max(abs(value), abs(low), abs(high)) < NEGLIGIBLE:
        return "exactly 0"
    return f"{supported_digits(value, low, high, sign=sign)} (95\u00a0% interval {interval(low, high, sign=sign)})"


def several(number: int, noun: str) -> str:
    """1 number, 1,200 numbers."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def days(number: int) -> str:
    """1 day, 2 days."""
    return several(number, "day")


def population(rates: Iterable[float]) -> int:
    """The number of patients to count events among: 100,000, or the power of ten at which the rates show two digits."""
    largest = max((abs(rate) for rate in rates if math.isfinite(rate)), default=0.0)
    count = 100_000
    # Beyond one in ten million, differences are rounding and not patients.
    while 0 < largest * count < 10 and count < MOST_COUNTED:
        count *= 10
    return count


def _minus(text: str) -> str:
    return text.replace("-", "−")


# Shorter as a power of ten beyond these.
LEAST_PLAIN, MOST_PLAIN = 1e-5, 1e6


def tick(number: float) -> str:
    """A number >= 0 of an axis in at most six digits, with thousands separators.

    Examples
    --------
    >>> [tick(number) for number in (0.00005, 0.5, 20000.0, 2e-8, float("inf"))]
    ['0.00005', '0.5', '20,000', '2e-08', '∞']
    """
    if math.isinf(number):
        return "∞"
    if number and not LEAST_PLAIN <= number <= MOST_PLAIN:
        return f"{number:g}"
    whole, point, rest = np.format_float_positional(number, precision=6, fractional=False, trim="-").partition(".")
    return f"{int(whole):,}{point}{rest}"


def six_digits(value: float) -> str:
    """The number of the files to six significant digits; empty for NaN, 0 for what rounding leaves of it."""
    if abs(value) < NEGLIGIBLE:
        return "0"
    return "" if math.isnan(value) else f"{float(in_digits(value)):.6g}"


def to_places(value: float, places: int) -> str:
    """A number with so many decimals; ≈ 0 for what they do not show, 0 for none, – for NaN.

    Examples
    --------
    >>> to_places(0.0686, 3), to_places(0.0002, 3), to_places(0.0, 3)
    ('0.069', '≈ 0', '0')
    """
    if not math.isfinite(value) or abs(value) < NEGLIGIBLE:
        return rounded(value)
    near = steady(value)
    return _minus(f"{near:,.{places}f}") if round(near, places) else "≈ 0"


def lost(value: float, places: int) -> str:
    """The same of a loss of utility; with two digits where so many decimals do not show it, ≈ 0 only for next to none.

    Examples
    --------
    >>> lost(0.0686, 3), lost(0.000037, 3), lost(2e-7, 3), lost(0.0, 3)
    ('0.069', '0.000037', '≈ 0', '0')
    """
    text = to_places(value, places)
    if text != "≈ 0" or abs(value) < LEAST_LOST:
        return text
    return to_places(value, DIGITS - 1 - math.floor(math.log10(abs(value))))


def change(value: float, places: int) -> str:
    """The same with its sign."""
    text = to_places(value, places)
    return f"+{text}" if value > 0 and text != "≈ 0" else text


def about(value: float) -> str:
    """The size of a difference, to three digits and no finer than one from ten upwards: 16,500, 301, 7.3.

    Examples
    --------
    >>> about(-16524.3), about(30.07), about(7.29), about(0.002)
    ('16,500', '30', '7.3', '≈ 0')
    """
    size = abs(value)
    if not math.isfinite(size):
        return rounded(size)
    # Numbers that were subtracted are a little less than what stands in the table.
    size = steady(size)
    if size < 10:
        return "≈ 0" if NEGLIGIBLE <= size < LEAST_EVENTS else rounded(size)
    return f"{round(size, min(0, 2 - math.floor(math.log10(size)))):,.0f}"


def span(low: float, high: float, places: int) -> str:
    """From one share to another, of 100 and with so many decimals; one number where both are the same.

    Examples
    --------
    >>> span(0.041, 0.232, 0), span(0.098, 0.101, 0)
    ('4 to 23', '10')
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    ends = [_minus(f"{steady(100 * end):z.{places}f}") for end in (low, high)]
    return " to ".join(dict.fromkeys(ends))


def places_of_share(share: float) -> int:
    """The decimals of a belief in per cent: none from one per cent upwards."""
    return 0 if share >= 0.01 or share <= 0 else min(4, -math.floor(math.log10(100 * share)))


def rounded_weight(weight: float) -> str:
    """A weight as a study states it: 100, 0.2, 0.0333."""
    return plain(float(f"{weight:.3g}"))


def right(rate: float) -> str:
    """How often of 100 two patients are told apart, to a tenth; – for NaN."""
    return "–" if math.isnan(rate) else f"{steady(100 * rate):.1f}"


def share(part: float) -> str:
    r"""A share in per cent with two digits, for small ones, too.

    Examples
    --------
    >>> share(0.1), share(0.00047)
    ('10\xa0%', '0.047\xa0%')
    """
    return f"{rounded(100 * part)}\u00a0%"


def kept(share: float) -> str:
    r"""A share of the benefit as a whole percentage; to a tenth, and below 100, where not all is kept.

    Examples
    --------
    >>> kept(0.303), kept(0.99999), kept(1.0)
    ('30\xa0%', '99.9\xa0%', '100\xa0%')
    """
    text = percent(share)
    return percent_1(min(share, 0.999)) if share < 1 - NEGLIGIBLE and text == percent(1.0) else text


def least(epsilon: float) -> str:
    """A least epsilon, which was rounded up, in all its digits; none for inf."""
    return "none" if epsilon == math.inf else decimal(epsilon)


# The columns that hold what is proven: a lower bound is rounded down, an upper one up.
BOUNDS = {"least_loss": ROUND_FLOOR, "most_kept": ROUND_CEILING, "unbeatable": ROUND_CEILING}


# What begins as a formula of a spreadsheet does, and what of that is a number, or a sign alone; RE2 reads them, too.
FORMULA = r"^[=+\-@]"
SIGNED_NUMBER = r"^[+-](([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|inf|nan)?$"


def inert(cell: Any) -> Any:
    """A cell of a CSV file: an apostrophe stands before text that a spreadsheet would run.

    Examples
    --------
    >>> [inert(cell) for cell in ("=1+1", "-a", "-1.5", "-", "a-b", -2)]
    ["'=1+1", "'-a", '-1.5', '-', 'a-b', -2]
    """
    runs = isinstance(cell, str) and re.match(FORMULA, cell) and not re.fullmatch(SIGNED_NUMBER, cell)
    return f"'{cell}" if runs else cell


def to_csv(table: pd.DataFrame) -> bytes:
    """A table as a CSV file, the same bytes for the same table, with the numbers of `written`, and `inert` text."""
    rows = written(table)
    words = {name: rows[name].map(inert) for name in map(str, rows.select_dtypes(exclude="number"))}
    rows = rows.assign(**words).rename(columns=inert)
    return rows.to_csv(index=False, float_format=f"%.{DIGITS_OF_FILES}g", lineterminator="\n").encode()


def written(table: pd.DataFrame) -> pd.DataFrame:
    """A table with the numbers that its file has, and so with the same bits on all machines, or nearly all.

    What is drawn or put in order by them does not depend on the machine either. Bounds are rounded so that they claim
    less.
    """
    floats = table.select_dtypes("float")
    columns: dict[str, pd.Series] = {}
    for name in map(str, floats):
        columns[name] = floats[name].map(partial(_in_file, side=BOUNDS.get(name)), na_action="ignore")
    return table.assign(**columns)


def _in_file(value: float, side: str | None) -> float:
    """A number as files have it; a bound to its side, and to no more than thirteen decimals.

    What rounding leaves of 0 is below that.
    """
    near = float(in_digits(value))
    if side is None or not math.isfinite(value) or value in (0, near):
        return near
    exact = Decimal(value)
    places = min(DIGITS_OF_FILES - 1 - exact.adjusted(), 13)
    return float(exact.quantize(Decimal(1).scaleb(-places), rounding=side))

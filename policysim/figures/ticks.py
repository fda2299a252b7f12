"""Log axes with plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis, YAxis
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, NullLocator

# With more ticks only those at powers of ten are kept, where a figure asks for that.
MOST_TICKS = 12
# Shorter as a power of ten beyond these.
LEAST_PLAIN, MOST_PLAIN = 1e-5, 1e6
# So many numbers may be missing before an axis looks uneven.
FEW = 2


def set_epsilon_axis(axes: Axes, epsilons: pd.Series) -> None:
    """A log axis with plain numbers at the ticks within these epsilons."""
    axes.set_xscale("log")
    set_log_ticks(axes.xaxis, epsilons.min(), epsilons.max())
    axes.set_xlabel("ε (log scale): more private to the left")


def set_log_ticks(axis: Axis, low: float, high: float, *, most: int | None = None) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, with plain numbers; at powers alone where that is more than `most`."""
    ticks = ticks_within(low, high)
    if most is not None and len(ticks) > most:
        ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.0000")]
    axis.set_ticks(ticks, labels=[plain(tick) for tick in ticks])
    axis.set_minor_locator(NullLocator())


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
    return [tick for tick in nice if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)] or sorted({low, high})


def plain(number: float) -> str:
    """A number >= 0 in at most six digits, with thousands separators.

    Examples
    --------
    >>> [plain(number) for number in (0.00005, 0.5, 20000.0, 2e-8, float("inf"))]
    ['0.00005', '0.5', '20,000', '2e-08', '∞']
    """
    if math.isinf(number):
        return "∞"
    if number and not LEAST_PLAIN <= number <= MOST_PLAIN:
        return f"{number:g}"
    whole, point, rest = np.format_float_positional(number, precision=6, fractional=False, trim="-").partition(".")
    return f"{int(whole):,}{point}{rest}"


def thin_ticks(axes: Axes) -> None:
    """Leave out numbers of log axes where they would touch; the figure must have been laid out."""
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_locator(), FixedLocator) and axis.get_scale() == "log":
            thin(axis)


def thin(axis: Axis) -> None:
    """Leave out numbers of an axis where they would touch; the figure must have been laid out."""
    texts = axis.get_majorticklabels()
    kept = _without_touching(texts, int(isinstance(axis, YAxis)))
    labels = [text.get_text() if text in kept else "" for text in texts]
    axis.set_ticks(list(axis.get_majorticklocs()), labels=labels)


def _without_touching(texts: list[Text], along: int) -> list[Text]:
    """All but a few, or else the powers of ten alone, if there is more than one of them."""
    powers = [text for text in texts if _is_power(text.get_text())]
    kept: list[Text] = []
    for text in [*powers, *(text for text in texts if text not in powers)]:
        if not any(_touch(text, other, along) for other in kept):
            kept.append(text)
    alone = [text for text in kept if text in powers]
    return kept if len(texts) - len(kept) <= FEW or len(alone) < 2 else alone


def _is_power(number: str) -> bool:
    return number.strip("0.,") == "1" or number.startswith("1e")


def _touch(one: Text, other: Text, along: int) -> bool:
    first, second = sorted((text.get_window_extent() for text in (one, other)), key=lambda box: float(box.min[along]))
    return bool(first.max[along] + 0.25 * first.height > second.min[along])

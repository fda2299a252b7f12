"""The look that the figures of these studies share: markers, dashes, and stars for what a source prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FuncFormatter, NullLocator

from policysim.figures.looks import STYLE
from policysim.figures.ticks import TICKS

# Colours that colour-blind readers tell apart (Okabe & Ito 2008), never alone: (colour, marker, dashes).
LOOKS = (
    ("#D55E00", "D", "solid"),
    ("#0072B2", "o", "solid"),
    ("#009E73", "^", "dashed"),
    ("#CC79A7", "s", "dashdot"),
    ("#000000", "v", "dotted"),
    ("#56B4E9", "P", "solid"),
)
# What the source itself prints.
SOURCE_POINTS: dict[str, Any] = {
    "color": "#D55E00",
    "marker": "*",
    "linestyle": "none",
    "markersize": 12,
    "markeredgecolor": "black",
    "zorder": 4,
}
EPSILON = "ε (log scale): more private to the left"
MOST_TICKS = 12
MARKERS_PER_LINE = 8


@contextmanager
def panels(count: int = 1, *, width: float = 6.8, height: float = 4.2) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with panels side by side, in the style of all figures; on leaving, its legend is set below."""
    with context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = [figure.add_subplot(1, count, place + 1) for place in range(count)]
        yield figure, axes
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            columns = 2 if max(map(len, labels)) > 24 or count == 1 else 3
            figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def draw_lines(axes: Axes, table: pd.DataFrame, x: str, y: str = "value", *, points: Sequence[str] = ()) -> None:
    """A line for each name in the column "line", in the order of `LOOKS`; names in `points` get stars.

    Columns "low" and "high", where they hold numbers, are drawn as a band.
    """
    for place, name in enumerate(name for name in dict.fromkeys(table["line"]) if name not in points):
        rows = table[table["line"] == name]
        colour, marker, dashes = LOOKS[place % len(LOOKS)]
        if "low" in rows and rows["low"].notna().all():
            axes.fill_between(rows[x], rows["low"], rows["high"], color=colour, alpha=0.18, linewidth=0, zorder=1)
        every = max(1, len(rows) // MARKERS_PER_LINE)
        axes.plot(
            rows[x], rows[y], color=colour, marker=marker, linestyle=dashes, markevery=every, label=name, zorder=3
        )
    for name in points:
        rows = table[table["line"] == name]
        axes.plot(rows[x], rows[y], label=name, **SOURCE_POINTS)


def log_axis(axes: Axes, name: str, values: pd.Series) -> None:
    """A logarithmic axis ("x" or "y") with ticks at 1, 2 and 5, or at powers of ten alone where that is too many."""
    low, high = float(values.min()), float(values.max())
    ticks = [tick for tick in TICKS if low * 0.999 <= tick <= high * 1.001]
    if not ticks or len(ticks) > MOST_TICKS or low < min(TICKS) or high > max(TICKS):
        decades = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        ticks = [10.0**decade for decade in decades][:: 1 + len(decades) // MOST_TICKS]
    axis = axes.xaxis if name == "x" else axes.yaxis
    (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    axis.set_ticks(ticks, [f"{tick:,.15g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def share_axis(axes: Axes) -> None:
    """A vertical axis of probabilities."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}".replace("-", "−")))


def headed(axes: Axes, title: str, x: str, y: str) -> None:
    """Title and axis labels."""
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def grid(low: float, high: float, count: int) -> list[float]:
    """Values evenly spaced on the log scale, rounded to three digits so that tables are easy to read."""
    return [float(f"{value:.3g}") for value in np.geomspace(low, high, count)]

"""Small figures that stand for a whole report where many are shown: one panel, few lines, each named at its end.

They are drawn for the width of a card, some 300 CSS pixels, and have no title: a card has words of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import set_log_ticks, set_numbers, wrapped
from policysim.figures.looks import GREY, canvas, list_rows
from policysim.question.formats import percent, plain, rounded, with_interval

# Inches: with the letters of a page, 12 CSS pixels high where it is shown as large as it is.
INCHES: dict[str, Any] = {"page": (3.3, 2.0), "column": 2.0}
COLOURS = ("#0072B2", "#C84F00", "#009E73", "#CC79A7")
DASHES = ("solid", "dashed", "dashdot", "dotted")
# Of the width, what names beside lines may take; and names beside rows.
NAMES_SHARE, ROWS_SHARE = 0.38, 0.42
MOST_TICKS, MOST_LOG_TICKS = 4, 5
STEPS = [1, 2, 2.5, 5, 10]
# Of a card with rows: more would touch.
MOST_ROWS = 5

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """Lines over a number, most often epsilon.

    Attributes
    ----------
    lines : mapping of name to sequence of (x, y)
        One to four; a name of "" stands beside nothing.
    x, y : str
        What the axes are; y stands above the panel, on one line.
    log : str
        The axes that are logarithmic: "x", "y", "xy" or "".
    share : bool
        Whether y is a share, shown in per cent.
    dots : frozenset of str
        The lines that are single points.
    level : tuple of (str, float)
        A grey line across the panel, with its name; empty for none.
    out_of_reach : sequence of (x, y)
        From where on nothing is possible, rising: shaded in steps, each at its right end.
    mark : tuple of float, or None
        x and y of a point that is marked, with its y in words; None for none.
    limits : tuple of float
        Of y, if not by the data.
    diagonal : bool
        Whether a grey line marks where x and y are the same.
    """

    lines: Mapping[str, Points]
    x: str
    y: str
    log: str = "x"
    share: bool = False
    dots: frozenset[str] = frozenset()
    level: tuple[tuple[str, float], ...] = ()
    out_of_reach: Points = ()
    mark: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    diagonal: bool = False

    @property
    def seen(self) -> str:
        """Where each line begins and ends."""
        write = percent if self.share else rounded
        parts = []
        for name, line in self.lines.items():
            points = sorted(line)
            (first, before), (last, after) = points[0], points[-1]
            ends = f"{name or self.y}, from {write(before)} at {plain(first)} to {write(after)} at {plain(last)}"
            parts.append(f"{len(line)} points{f', {name}' if name else ''}" if name in self.dots else ends)
        parts += [f"{name}, level at {write(at)}" for name, at in self.level]
        scale = " (log scale)" if "x" in self.log else ""
        shaded = (
            "; shaded, what no mechanism that gives what it publishes reaches" if len(self.out_of_reach) > 1 else ""
        )
        marked = f"; marked, {write(self.mark[1])} at {plain(self.mark[0])}" if self.mark else ""
        what = f"{self.y[:1].upper()}{self.y[1:]} against {self.x.removesuffix(' (log scale)')}{scale}"
        return f"{what}: {'; '.join(parts)}{marked}{shaded}."

    def figure(self) -> Figure:
        """Drawn, the same at each size that files may have."""
        with canvas(**INCHES) as made:
            (axes,) = made.panels()
            ends = []
            for place, (name, line) in enumerate(self.lines.items()):
                xs, ys = np.array(sorted(line), dtype=np.float64).T
                look: dict[str, Any] = {"color": COLOURS[place % 4], "linestyle": DASHES[place % 4]}
                if name in self.dots:
                    look |= {"marker": "o", "linestyle": "none", "alpha": 0.8}
                    axes.plot(xs, ys, **look, zorder=3, markersize=3.5)
                else:
                    axes.plot(xs, ys, **look, linewidth=2.2, zorder=3, solid_capstyle="round")
                ends.append(LineEnd(name, float(xs[-1]), float(ys[-1]), float(ys.mean()), look))
            for name, at in self.level:
                look = {"color": GREY, "linestyle": "solid"}
                axes.axhline(at, **look, linewidth=1, zorder=1)
                ends.append(LineEnd(name, np.nan, at, at, look))
            self._frame(axes)
            if self.mark:
                words = percent(self.mark[1]) if self.share else rounded(self.mark[1])
                axes.plot(*self.mark, color="#000000", marker="o", markersize=6, zorder=4, clip_on=False)
                # Most lines rise: there is room at the right.
                axes.annotate(
                    words,
                    self.mark,
                    xytext=(0.9, 0),
                    textcoords="offset fontsize",
                    va="center",
                    fontweight="bold",
                    bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5},
                    zorder=5,
                )
            named = [end for end in ends if end.name]
            labels = EndLabels(made, axes, named, width=NAMES_SHARE * made.width)
            settle(made, [labels])
        return made.figure

    def _frame(self, axes: Axes) -> None:
        points = np.array([point for line in self.lines.values() for point in line], dtype=np.float64)
        for axis, letter, values in ((axes.xaxis, "x", points[:, 0]), (axes.yaxis, "y", points[:, 1])):
            if letter in self.log:
                (axes.set_xscale if letter == "x" else axes.set_yscale)("log")
                set_log_ticks(axis, float(values.min()), float(values.max()), most=MOST_LOG_TICKS)
            else:
                axis.set_major_locator(MaxNLocator(MOST_TICKS, steps=STEPS))
                set_numbers(axis)
        if self.limits:
            axes.set_ylim(*self.limits)
        if self.share:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if len(self.out_of_reach) > 1:
            xs, ys = np.array(self.out_of_reach, dtype=np.float64).T
            top = axes.get_ylim()[1]
            axes.fill_between(xs, np.minimum(ys, top), top, step="pre", color="#BBBBBB", alpha=0.45, linewidth=0)
            axes.set_ylim(top=top)
        if self.diagonal:
            axes.axline((0, 0), slope=1, color=GREY, linewidth=1, zorder=1)
        axes.set_xlabel(self.x)
        axes.set_title(self.y, loc="left", fontweight="normal")


@dataclass(frozen=True)
class Spans:
    """Estimates with intervals, one below the other, against a value that all are compared with.

    Attributes
    ----------
    rows : sequence of (name, value, low, high)
        From the top; at most five are drawn, the first.
    x : str
        What the axis is.
    y : str
        What is estimated, less what: 0, at which a line stands, is no difference.
    """

    rows: Sequence[tuple[str, float, float, float]]
    x: str
    y: str

    @property
    def seen(self) -> str:
        """Each estimate with its interval."""
        parts = [f"{name} {with_interval(*numbers, sign=True)}" for name, *numbers in self.rows[:MOST_ROWS]]
        return f"{self.y[:1].upper()}{self.y[1:]}: {'; '.join(parts)}."

    def figure(self) -> Figure:
        """Drawn, the same at each size that files may have."""
        rows = self.rows[:MOST_ROWS]
        with canvas(**INCHES) as made:
            (axes,) = made.panels()
            axes.axvline(0, color=GREY, linewidth=1, zorder=1)
            for place, (_, value, low, high) in enumerate(rows):
                axes.hlines(-place, low, high, color=COLOURS[0], linewidth=2.2, zorder=2)
                axes.plot(value, -place, color=COLOURS[0], marker="o", markersize=5, zorder=3)
            font = axes.yaxis.get_label().get_fontproperties()
            names = [wrapped(name, ROWS_SHARE * made.width, font) for name, *_ in rows]
            axes.set_yticks([-place for place in range(len(rows))], names)
            axes.set_ylim(-len(rows) + 0.4, 0.6)
            axes.spines["left"].set_visible(False)
            list_rows(axes)
            axes.xaxis.set_major_locator(MaxNLocator(MOST_TICKS - 1, steps=STEPS))
            set_numbers(axes.xaxis, ".4g")
            made.figure.suptitle(self.y, x=0.02, ha="left", fontsize="large", fontweight="normal")
            axes.set_xlabel(self.x)
            settle(made)
        return made.figure


# What a card shows.
CardPanel: TypeAlias = Curves | Spans

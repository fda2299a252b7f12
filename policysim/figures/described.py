"""Figures described by data: which columns of a tidy table are drawn, on which axes, with which words.

A drawing is panels in rows: lines with bands and stars; a new figure of this kind needs no code. A panel of another
kind is whatever draws a table on axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from policysim.figures.layout import settle
from policysim.figures.lettering import LINE_SPACING, MOST_TICKS, set_log_ticks, set_numbers, show_wrapped
from policysim.figures.looks import canvas
from policysim.question.answer import SizeName

# Colours that colour-blind readers tell apart (Okabe & Ito 2008), never alone: (colour, marker, dashes).
LOOKS = (
    ("#C84F00", "D", "solid"),
    ("#0072B2", "o", "solid"),
    ("#009E73", "^", "dashed"),
    ("#CC79A7", "s", "dashdot"),
    ("#000000", "v", "dotted"),
    ("#3A9AD9", "P", "solid"),
)
# What the source itself prints.
STAR: dict[str, Any] = {
    "color": "#C84F00",
    "marker": "*",
    "linestyle": "none",
    "markersize": 12,
    "markeredgecolor": "black",
    "zorder": 4,
}
LOG = "log scale"
EPSILON = f"ε ({LOG}); ← more private"
MARKERS_PER_LINE = 8
# In a column, the height of a panel as a share of that on a page, and what the legend needs, inches.
NARROW, BELOW = 0.72, 0.9
# So many lines of a legend have room below the panels.
LEGEND_LINES = 6


@dataclass(frozen=True)
class Lines:
    """Axes with a line for each name in the column "line", and a band where "low" and "high" hold numbers."""

    title: str
    x_label: str
    y_label: str
    x: str = "epsilon"  # the columns drawn
    y: str = "value"
    only: Mapping[str, str] = field(default_factory=dict)  # which rows are drawn: what columns must hold
    stars: tuple[str, ...] = ()  # lines that are single points which the source prints
    log: str = "x"  # the axes that are logarithmic: "x", "y", "xy" or ""
    limits: tuple[float, ...] = ()  # of the vertical axis, if not by the data
    least: float = -np.inf  # what is below is drawn there
    zero: bool = False  # whether a line marks 0
    diagonal: tuple[float, ...] = ()  # the ends, in x and y, of a line where both are the same
    bands: bool = True
    band: str = ""  # what the bands are, in the legend
    first: int = 0  # the look of the first line, a place in LOOKS

    def draw(self, axes: Axes, table: pd.DataFrame) -> None:
        """Draw the table's rows on the axes."""
        for column, wanted in self.only.items():
            table = table[table[column] == wanted]
        numbers = [name for name in (self.y, "low", "high") if name in table]
        table = table.assign(**{name: table[name].clip(lower=self.least) for name in numbers})
        if self.zero:
            axes.axhline(0, color="#555555", linewidth=1)
        if self.diagonal:
            axes.plot(self.diagonal, self.diagonal, color="#8A8A8A", linewidth=1)
        # Those that the source prints are the last.
        names = sorted(dict.fromkeys(table["line"]), key=lambda name: name in self.stars)
        for place, name in enumerate(names, self.first):
            rows = table[table["line"] == name]
            if name in self.stars:
                axes.plot(rows[self.x], rows[self.y], label=name, **STAR)
                continue
            colour, marker, dashes = LOOKS[place % len(LOOKS)]
            if self.bands and "low" in rows and rows["low"].notna().all():
                shade: dict[str, Any] = {"color": colour, "alpha": 0.18, "linewidth": 0, "zorder": 1}
                axes.fill_between(rows[self.x], rows["low"], rows["high"], label=self.band, **shade)
            look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dashes, "zorder": 3}
            every = max(1, len(rows) // MARKERS_PER_LINE)
            axes.plot(rows[self.x], rows[self.y], label=name, markevery=every, **look)
        if "x" in self.log:
            axes.set_xscale("log")
            set_log_ticks(axes.xaxis, table[self.x].min(), table[self.x].max(), most=MOST_TICKS)
        if "y" in self.log:
            axes.set_yscale("log")
            drawn = pd.Series(self.limits) if self.limits else pd.concat([table[name] for name in numbers])
            set_log_ticks(axes.yaxis, drawn.min(), drawn.max(), most=MOST_TICKS)
        else:
            set_numbers(axes.yaxis, ".4g")
        if self.limits:
            axes.set_ylim(*self.limits)
        x, y = (
            f"{words} ({LOG})".strip() if letter in self.log and LOG not in words else words
            for letter, words in (("x", self.x_label), ("y", self.y_label))
        )
        axes.set_title(self.title, loc="left")
        axes.set(xlabel=x, ylabel=y)


class Panel(Protocol):
    """What draws its part of a table on axes of its own."""

    def draw(self, axes: Axes, table: pd.DataFrame) -> None:
        """Draw the table's rows on the axes."""


@dataclass(frozen=True)
class Described:
    """A figure: a tidy table, and how it is drawn."""

    name: str  # its file name, without ending
    description: str  # what it shows, for readers who cannot see it; the caption too
    table: pd.DataFrame
    panels: tuple[Panel, ...]  # from left to right, row by row
    height: float = 4.2  # inches
    across: int = 0  # panels in a row; all of them by default
    shown: pd.DataFrame | None = None  # the numbers as the page has them; the table by default

    def figure(self, size: SizeName = "page") -> Figure:
        """Drawn, in the style of all figures; in a column the panels stand below each other.

        One legend for all panels: in the place that they leave, if they leave one, or below.

        Parameters
        ----------
        size : {"page", "column", "slide"}
            What the figure is for.
        """
        across = 1 if size == "column" else self.across or len(self.panels)
        down = math.ceil(len(self.panels) / across)
        height = self.height / math.ceil(len(self.panels) / (self.across or len(self.panels)))
        page = (6.8 if across == 1 else 9.6, self.height)
        with canvas(size=size, page=page, column=NARROW * height * down + BELOW) as made:
            figure = made.figure
            panels = made.panels(down * across, across)
            for axes, panel in zip(panels, self.panels, strict=False):
                panel.draw(axes, self.table)
            handles, labels = figure.axes[0].get_legend_handles_labels()
            legend = None
            columns = 1 if made.narrow else 2 if len(self.panels) == 1 or max(map(len, labels), default=0) > 24 else 3
            if len(self.panels) < down * across:
                for empty in panels[len(self.panels) : -1]:
                    empty.remove()
                panels[-1].axis("off")
                legend, columns = panels[-1].legend(handles, labels, loc="center", frameon=False), across
            elif len(handles) > 1:
                legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
            for text in legend.get_texts() if legend else ():
                show_wrapped(text, text.get_text(), 0.9 * made.width / columns - 4 * made.font)
            if legend and len(self.panels) == down * across:
                # Higher where the names of the legend, broken into lines, take more than what is usual.
                lines = math.ceil(sum(1 + text.get_text().count("\n") for text in legend.get_texts()) / columns)
                more = (lines - LEGEND_LINES) * LINE_SPACING * made.font / 72
                made.set_height(figure.get_figheight() + max(0.0, more))
            settle(made)
        return figure


def log_grid(low: float, high: float, count: int) -> list[float]:
    """Values evenly spaced on the log scale, rounded to three digits so that tables are easy to read."""
    return [float(f"{value:.3g}") for value in np.geomspace(low, high, count)]

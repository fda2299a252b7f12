"""Figures: each a function from a tidy table to a matplotlib Figure."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from policies.catalogue import CATALOGUE
from policysim.evaluate import ALL
from policysim.words import population

# Okabe & Ito (2008): eight colours that colour-blind readers tell apart; a marker goes with each, never colour alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
REFERENCE_LINES = {
    "greedy": ("best for each (greedy, no privacy)", "dashed"),
    "best-fixed": ("one treatment for all (best-fixed)", "solid"),
    "uniform": ("any treatment by lot (uniform)", "dotted"),
}
STYLE = Path(__file__).parent / "figures.mplstyle"
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def loss_vs_epsilon(table: pd.DataFrame) -> Figure:
    """Benefit kept and extra deaths against epsilon (log scale), a line per policy.

    Parameters
    ----------
    table : DataFrame
        From `compare`; the rows of everyone with 0 < epsilon < inf are drawn.

    Returns
    -------
    Figure
    """
    overall = table[(table["group"] == ALL) & (table["epsilon"] > 0) & np.isfinite(table["epsilon"])]
    count = population(overall["extra_deaths"])
    with context(STYLE):
        figure = Figure(figsize=(9.6, 4.8), layout="constrained")
        benefit, deaths = figure.subplots(1, 2)
        _draw(benefit, overall, "benefit_kept", lambda share: share)
        benefit.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        benefit.set_title("Benefit kept", loc="left", fontweight="bold")
        benefit.set_ylabel("0 %: one treatment for all; 100 %: best for each")
        _draw(deaths, overall, "extra_deaths", lambda rate: rate * count)
        deaths.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        deaths.set_title(f"Extra deaths per {count:,} patients", loc="left", fontweight="bold")
        deaths.set_ylabel("more than with the best treatment for each")
        handles, labels = benefit.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw(axes: Axes, overall: pd.DataFrame, column: str, scale: Callable[[pd.Series], pd.Series]) -> None:
    names = list(dict.fromkeys(overall["policy"]))
    for name in names:
        rows = overall[overall["policy"] == name].sort_values("epsilon")
        values = scale(rows[column])
        if name in REFERENCE_LINES:
            label, dashes = REFERENCE_LINES[name]
            axes.axhline(values.iloc[0], color="#555555", linestyle=dashes, linewidth=1.1, label=label, zorder=1)
        else:
            place = _place(name)
            axes.plot(
                rows["epsilon"], values, label=name, color=COLOURS[place % 8], marker=MARKERS[place % 8], clip_on=False
            )
    axes.set_xscale("log")
    low, high = overall["epsilon"].min(), overall["epsilon"].max()
    ticks = [tick for tick in TICKS if low <= tick <= high] or [low]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ε (log scale): more private to the left, more useful to the right")


def _place(name: str) -> int:
    """The same colour and marker for a policy in every figure."""
    private = [known for known in CATALOGUE if known not in REFERENCE_LINES]
    return private.index(name) if name in private else len(private)


def to_svg(figure: Figure) -> str:
    """The figure as SVG, the same bytes for the same figure."""
    buffer = io.StringIO()
    with context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "policysim"})
    return buffer.getvalue()


def to_png(figure: Figure) -> bytes:
    """The figure as PNG at 200 dots per inch."""
    buffer = io.BytesIO()
    with context(STYLE):
        figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()

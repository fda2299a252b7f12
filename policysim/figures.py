"""Figures: each a function from a tidy table to a matplotlib Figure."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from policies.catalogue import CATALOGUE
from policies.optimal import Optimal
from policysim.comparison import ACHIEVABLE, UNBEATABLE
from policysim.evaluate import ALL
from policysim.words import population

# In the order of the catalogue. Colours that colour-blind readers tell apart (Okabe & Ito 2008; wine from Tol 2021, an
# olive in place of yellow, which is too light for a line); a marker goes with each, never colour alone.
COLOURS = (
    "#0072B2", "#999999", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C7A00", "#D55E00", "#882255", "#000000",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
REFERENCE_LINES = {
    "greedy": ("best for each (greedy, no privacy)", "dashed"),
    "best-fixed": ("one treatment for all (best-fixed)", "solid"),
    "uniform": ("any treatment by lot (uniform)", "dotted"),
}
STYLE = Path(__file__).parent / "figures.mplstyle"
LABELS = {
    Optimal.name: "optimal (the limit)",
    ACHIEVABLE: "achievable (the limit is above)",
    UNBEATABLE: "unbeatable (the limit is below)",
}
TICKS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


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
        _shade_beyond_limit(benefit, overall)
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


def spent_vs_claimed(table: pd.DataFrame) -> Figure:
    """The exact privacy loss of each policy against the epsilon that it was given, both on log scales.

    Parameters
    ----------
    table : DataFrame
        From `compare`. Policies on the diagonal use all of their epsilon; those below it pay for privacy they do not
        give away.

    Returns
    -------
    Figure
    """
    overall = spenders(table)
    with context(STYLE):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        axes = figure.subplots()
        ends = [overall["epsilon"].min(), overall["epsilon"].max()]
        axes.plot(ends, ends, color="#555555", linestyle="dashed", linewidth=1.1, label="all of it (claim = exact)")
        for name, rows in overall.groupby("policy", sort=False):
            ordered = rows.sort_values("epsilon")
            axes.plot(ordered["epsilon"], ordered["epsilon_spent"], label=name, **look(str(name)))
        set_epsilon_axis(axes, overall["epsilon"])
        axes.set_yscale("log")
        ticks = [tick for tick in TICKS if ends[0] / 20 <= tick <= ends[1]] or [ends[0]]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_title("Privacy spent against privacy claimed", loc="left", fontweight="bold")
        axes.set_xlabel("ε claimed (log scale)")
        axes.set_ylabel("ε spent: exact privacy loss (log scale)")
        figure.legend(loc="outside right upper", frameon=False)
    return figure


def spenders(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of everyone whose policy spends some of a finite epsilon."""
    drawn = (table["epsilon"] > 0) & np.isfinite(table["epsilon"]) & (table["group"] == ALL)
    # Less than a billionth is rounding.
    spends = (table["epsilon_spent"] > 1e-9) & ~table["policy"].isin(REFERENCE_LINES)
    rows: pd.DataFrame = table.loc[drawn & spends]
    return rows


def _draw(axes: Axes, overall: pd.DataFrame, column: str, scale: Callable[[pd.Series], pd.Series]) -> None:
    names = list(dict.fromkeys(overall["policy"]))
    for name in names:
        rows = overall[overall["policy"] == name].sort_values("epsilon")
        values = scale(rows[column])
        if name in REFERENCE_LINES:
            label, dashes = REFERENCE_LINES[name]
            axes.axhline(values.iloc[0], color="#555555", linestyle=dashes, linewidth=1.1, label=label, zorder=1)
        else:
            axes.plot(rows["epsilon"], values, label=LABELS.get(name, name), **look(name))
    set_epsilon_axis(axes, overall["epsilon"])


def _shade_beyond_limit(axes: Axes, overall: pd.DataFrame) -> None:
    """Mark the region that no mechanism can reach: above the optimum, or above what is proven to be unbeatable."""
    names = set(overall["policy"])
    limit = UNBEATABLE if UNBEATABLE in names else Optimal.name
    rows = overall[overall["policy"] == limit].sort_values("epsilon")
    if len(rows) < 2:
        return
    top = 1.0
    axes.fill_between(rows["epsilon"], rows["benefit_kept"], top, color="#BBBBBB", alpha=0.45, linewidth=0, zorder=0)
    axes.annotate(
        "no mechanism can",
        (rows["epsilon"].iloc[0], top),
        xytext=(8, -10),
        textcoords="offset points",
        va="top",
        color="#333333",
        fontstyle="italic",
    )


def look(name: str) -> dict[str, Any]:
    """The same colour and marker for a policy in every figure; bounds are dashed."""
    known = [policy for policy in CATALOGUE if policy not in REFERENCE_LINES]
    shown = Optimal.name if name in (ACHIEVABLE, UNBEATABLE) else name
    place = known.index(shown) if shown in known else len(known)
    dashes = "dashed" if name == UNBEATABLE else "solid"
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": dashes,
        "clip_on": False,
    }


def set_epsilon_axis(axes: Axes, epsilons: pd.Series) -> None:
    """A log axis with plain numbers at the ticks within these epsilons."""
    axes.set_xscale("log")
    low, high = epsilons.min(), epsilons.max()
    ticks = [tick for tick in TICKS if low <= tick <= high] or [low]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ε (log scale): more private to the left, more useful to the right")


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

"""The figure of the study of where to put the noise: a panel for each set of hidden features."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import PercentFormatter

from policysim.figures.looks import STYLE, looks
from policysim.sources.drawing import log_axis
from policysim.sources.model import Drawing
from policysim.sources.randomise_or_decide import Constants
from policysim.sources.randomise_or_decide_curves import OTHERS, POLICIES, RECORD, SOURCE

NAME = "benefit-by-hidden-features"
COLUMNS = 2
DASHES = {RECORD: "solid", **dict.fromkeys(SOURCE, "dashed"), **dict.fromkeys(OTHERS, "dashdot")}
LABELS = {RECORD: "randomized-features: the record", "optimal": "optimal (the limit)"}
COINS = "two coins for each hidden feature"


def benefit_drawing(constants: Constants, table: pd.DataFrame) -> Drawing:
    """Benefit kept over epsilon, a panel per hidden set and a line per policy; two coins are marked."""
    coins = {hidden.name: constants.two_coins(hidden) for hidden in constants.hidden}
    marked = table.assign(
        two_coins=(table["policy"] == RECORD) & (table["epsilon"] == table["hidden"].map(coins)).astype(bool)
    )
    description = (
        "Benefit kept against ε, a panel for each set of hidden features. Solid: the record is "
        "randomised, then decided on. Dashed: the exponential mechanism, as the source has it and calibrated exactly; "
        "dash-dotted: other noise on the decision. 0 % is one treatment for all, which needs no privacy; nothing can "
        "be above the limit. Stars: two coins for each hidden feature."
    )
    return Drawing(NAME, description, marked, _draw)


def _draw(table: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(table["hidden"]))
    rows = -(-(len(names) + 1) // COLUMNS)
    with context(STYLE):
        figure = Figure(figsize=(6.8, 2.7 * rows), layout="constrained")
        grid = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False)
        places: Sequence[Axes] = list(grid.flat)
        for axes, name in zip(places, names, strict=False):
            _panel(axes, table[table["hidden"] == name], name)
        log_axis(places[0], "x", table["epsilon"])
        places[0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        for axes in places[len(names) :]:
            axes.axis("off")
        # What is above an empty place is the last of its column.
        for axes in places[len(names) - COLUMNS : len(names)]:
            axes.xaxis.set_tick_params(labelbottom=True)
            axes.set_xlabel("ε (log scale)")
        handles, labels = places[0].get_legend_handles_labels()
        places[-1].legend(handles, labels, loc="center", frameon=False)
        figure.supylabel("benefit kept", fontsize="medium")
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    axes.axhline(0, color="#555555", linewidth=1, label="one treatment for all")
    drawn = looks(POLICIES)
    for name in POLICIES:
        line = rows[rows["policy"] == name]
        axes.plot(
            line["epsilon"],
            line["benefit_kept"],
            color=drawn[name].colour,
            marker=drawn[name].marker,
            linestyle=DASHES.get(name, "dotted"),
            markersize=4,
            label=LABELS.get(name, name),
            zorder=4 if name == RECORD else 3,
        )
    coins = rows[rows["two_coins"]]
    axes.plot(
        coins["epsilon"],
        coins["benefit_kept"],
        color="white",
        marker="*",
        markersize=13,
        markeredgecolor="black",
        linestyle="none",
        label=COINS,
        zorder=5,
    )
    axes.set_title(f"Hidden: {title}", loc="left", fontweight="bold")

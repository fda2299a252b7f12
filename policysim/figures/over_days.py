"""A course of treatment: what is kept under each total budget, and at each horizon."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from policies.reference import BestFixed, Greedy, Uniform
from policysim.evaluate import ALL
from policysim.figures.curves import NAMES_SHARE, line_end, thin
from policysim.figures.end_labels import EndLabels
from policysim.figures.layout import settle
from policysim.figures.looks import GREY, look
from policysim.figures.sizes import Canvas, canvas
from policysim.figures.tables import checked, names_of, nonempty
from policysim.figures.ticks import plain, set_epsilon_axis
from policysim.processes import schedule
from policysim.processes.step_problems import catalogue_name, daily_name
from policysim.question.answer import SizeName
from policysim.words import days

NAME = "value_over_days"
# Drawn as levels: they do not depend on epsilon.
LEVELS = {
    BestFixed.name: ("one for all (best-fixed)", "solid"),
    schedule.NAME: ("a schedule for all (best-schedule)", "dashdot"),
    Greedy.name: ("best for each (greedy)", "dashed"),
    Uniform.name: ("by lot (uniform)", "dotted"),
}


def value_over_days(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """Benefit kept against the total epsilon at the longest horizon, and against the horizon at each total epsilon.

    Parameters
    ----------
    table : DataFrame
        From `compare_days`: policy, group, horizon, total_epsilon, benefit_kept.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        One panel more for each total epsilon, if there are several horizons.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, NAME, ["policy", "group", "horizon", "total_epsilon", "benefit_kept"])
    rows = table[(table["group"] == ALL) & (table["total_epsilon"] > 0) & (table["total_epsilon"] < float("inf"))]
    nonempty(rows, NAME, "of everyone with 0 < total_epsilon < inf")
    longest = rows["horizon"].max()
    totals = sorted(rows["total_epsilon"].unique()) if rows["horizon"].nunique() > 1 else []
    n_panels = 1 + len(totals)
    across = 1 if size == "column" else min(2, n_panels)
    down = -(-n_panels // across)
    height = 0.18 * rows["policy"].nunique() + 1.6
    with canvas(size, page=(9.6 if across > 1 else 7.2, height * down), column=0.8 * height * n_panels) as made:
        grid = list(made.figure.subplots(down, across, sharey=True, squeeze=False).flat)
        for empty in grid[n_panels:]:
            empty.remove()
        labels = [_by_epsilon(made, grid[0], rows[rows["horizon"] == longest], across)]
        grid[0].set_title(f"Benefit kept over {days(int(longest))}", loc="left", fontweight="bold")
        for axes, total in zip(grid[1:], totals, strict=False):
            labels.append(_by_horizon(made, axes, rows[rows["total_epsilon"] == total], across))
            axes.set_title(f"By horizon, at total ε = {plain(total)}", loc="left", fontweight="bold")
        settle(made, labels)
    return made.figure


def _by_epsilon(made: Canvas, axes: Axes, rows: pd.DataFrame, across: int) -> EndLabels:
    labels = _draw(made, axes, rows, "total_epsilon", across)
    set_epsilon_axis(axes, rows["total_epsilon"])
    axes.set_xlabel("total ε of the course (log scale)")
    return labels


def _by_horizon(made: Canvas, axes: Axes, rows: pd.DataFrame, across: int) -> EndLabels:
    labels = _draw(made, axes, rows, "horizon", across)
    horizons = sorted(rows["horizon"].unique())
    axes.set_xscale("log")
    axes.set_xticks(horizons, labels=[f"{day:g}" for day in horizons])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("days (log scale)")
    return labels


def _draw(made: Canvas, axes: Axes, rows: pd.DataFrame, along: str, across: int) -> EndLabels:
    ends = []
    for name in names_of(rows, "policy"):
        line = rows[(rows["policy"] == name) & rows["benefit_kept"].notna()].sort_values(along)
        if line.empty:
            continue
        if name in LEVELS:
            shown, dashes = LEVELS[name]
            drawn: dict[str, Any] = {"color": GREY, "linestyle": dashes}
            axes.plot(line[along], line["benefit_kept"], **drawn, linewidth=thin(), label=shown)
        else:
            shown, drawn = daily_name(name), look(catalogue_name(name))
            axes.plot(line[along], line["benefit_kept"], **drawn, label=shown)
        ends.append(line_end(shown, line[along], line["benefit_kept"], drawn))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(labelleft=True)
    return EndLabels(made, axes, ends, width=NAMES_SHARE * made.width / across)

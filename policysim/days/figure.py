"""The figure of a course: what is kept under each total budget, and at each horizon."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import NullLocator, PercentFormatter

from policies.reference import BestFixed, Greedy, Uniform
from policysim.evaluate import ALL
from policysim.figures import STYLE, look, set_epsilon_axis
from policysim.processes import schedule

# Drawn as levels: they do not depend on epsilon.
LEVELS = {
    BestFixed.name: ("the same treatment for all (best-fixed)", "solid"),
    schedule.NAME: ("one treatment for all each day (best-schedule)", "dashdot"),
    Greedy.name: ("best for each (greedy, no privacy)", "dashed"),
    Uniform.name: ("any treatment by lot (uniform)", "dotted"),
}


def course_figure(table: pd.DataFrame, horizon: int) -> Figure:
    """Benefit kept against the total epsilon at a horizon, and against the horizon at each total epsilon.

    Parameters
    ----------
    table : DataFrame
        From `compare_days`.
    horizon : int
        That of the left panel.

    Returns
    -------
    Figure
        One panel more for each total epsilon, if there are several horizons.
    """
    overall = table[(table["group"] == ALL) & (table["total_epsilon"] > 0)]
    totals = sorted(overall["total_epsilon"].unique())
    several = overall["horizon"].nunique() > 1
    with context(STYLE):
        figure = Figure(figsize=(9.6, 6.4 if several else 4.2), layout="constrained")
        rows = [1.15, 1] if several else [1]
        parts = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=rows)[:, 0]
        first = parts[0].subplots()
        _draw(first, overall[overall["horizon"] == horizon], "total_epsilon")
        set_epsilon_axis(first, overall["total_epsilon"])
        first.set_xlabel("total ε of the course (log scale): more private to the left, more useful to the right")
        first.set_title(f"Benefit kept over {horizon} days", loc="left", fontweight="bold")
        if several:
            panels = parts[1].subplots(1, len(totals), sharey=True, squeeze=False)[0]
            for axes, total in zip(panels, totals, strict=True):
                _draw(axes, overall[overall["total_epsilon"] == total], "horizon")
                days = sorted(overall["horizon"].unique())
                axes.set_xscale("log")
                axes.set_xticks(days, [str(day) for day in days])
                axes.xaxis.set_minor_locator(NullLocator())
                axes.set_xlabel("days (log scale)")
                axes.set_title(f"By horizon, at total ε = {total:g}", loc="left", fontweight="bold")
        handles, labels = first.get_legend_handles_labels()
        parts[0].legend(handles, labels, loc="outside right upper", frameon=False)
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, along: str) -> None:
    for name, of_policy in rows.groupby("policy", sort=False):
        ordered = of_policy.sort_values(along)
        if name in LEVELS:
            label, dashes = LEVELS[str(name)]
            axes.plot(ordered[along], ordered["benefit_kept"], color="#555555", linestyle=dashes, lw=1.1, label=label)
        else:
            shown = "optimal each day" if name == "optimal" else str(name)
            axes.plot(ordered[along], ordered["benefit_kept"], label=shown, **look(str(name)))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))

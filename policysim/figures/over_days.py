"""A course of treatment: what is kept under each total budget, and at each horizon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, catalogue_name
from policies.policy import Look
from policysim.figures.curves import (
    MOST_CURVES,
    NAMES_SHARE,
    checked,
    line_end,
    names_of,
    nonempty,
    telling,
    thin,
    undrawn,
)
from policysim.figures.layout import EndLabels, settle
from policysim.figures.lettering import plain, set_epsilon_axis
from policysim.figures.looks import GREY, Canvas, as_line, canvas, is_level, label, looks
from policysim.question.answer import SizeName
from policysim.question.words import ALL, BEST_SCHEDULE, days

NAME = "value_over_days"
# What has another name here, or is no policy of the catalogue.
LABELS = {Optimal.name: OPTIMAL_DAILY, BEST_SCHEDULE: "a schedule for all (best-schedule)"}
SCHEDULE_LOOK = Look(GREY, "h", "dashdot")


def value_over_days(table: pd.DataFrame, *, policies: Sequence[str] | None = None, size: SizeName = "page") -> Figure:
    """Benefit kept against the total epsilon at the longest horizon, and against the horizon at each total epsilon.

    Parameters
    ----------
    table : DataFrame
        From `compare_days`: policy, group, horizon, total_epsilon, benefit_kept.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        One panel more for each total epsilon, if there are several horizons.

    Raises
    ------
    ValueError
        For a table without these columns or rows, or a policy that it does not have.
    """
    checked(table, NAME, ["policy", "group", "horizon", "total_epsilon", "benefit_kept"])
    # Looks and references go by the names of the catalogue.
    table = table.assign(policy=[catalogue_name(str(name)) for name in table["policy"]])
    policies = None if policies is None else [catalogue_name(name) for name in policies]
    rows = table[(table["group"] == ALL) & (table["total_epsilon"] > 0) & (table["total_epsilon"] < float("inf"))]
    nonempty(rows, NAME, "of everyone with 0 < total_epsilon < inf")
    longest = rows["horizon"].max()
    names = _names(rows[rows["horizon"] == longest], policies)
    every = names_of(rows, "policy")
    note = undrawn(every, names)
    colours = {**looks([name for name in every if name != BEST_SCHEDULE]), BEST_SCHEDULE: SCHEDULE_LOOK}
    rows = rows[rows["policy"].isin(names)]
    totals = sorted(rows["total_epsilon"].unique()) if rows["horizon"].nunique() > 1 else []
    n_panels = 1 + len(totals)
    across = 1 if size == "column" else min(2, n_panels)
    down = -(-n_panels // across)
    height = 0.18 * rows["policy"].nunique() + 1.6
    with canvas(size, page=(9.6 if across > 1 else 7.2, height * down), column=0.8 * height * n_panels) as made:
        grid = list(made.figure.subplots(down, across, sharey=True, squeeze=False).flat)
        for empty in grid[n_panels:]:
            empty.remove()
        labels = [_by_epsilon(made, grid[0], rows[rows["horizon"] == longest], colours, across)]
        grid[0].set_title(f"Benefit kept over {days(int(longest))}", loc="left", fontweight="bold")
        for axes, total in zip(grid[1:], totals, strict=False):
            labels.append(_by_horizon(made, axes, rows[rows["total_epsilon"] == total], colours, across))
            axes.set_title(f"By horizon, at total ε = {plain(total)}", loc="left", fontweight="bold")
        if note:
            grid[0].set_xlabel(f"{grid[0].get_xlabel()}\n{note}")
        settle(made, labels)
    return made.figure


def _names(rows: pd.DataFrame, policies: Sequence[str] | None) -> list[str]:
    """Those to draw: beside one for all, one schedule for all is what others are read against."""
    if policies is not None or BEST_SCHEDULE not in names_of(rows, "policy"):
        return telling(rows, policies=policies, along="total_epsilon")
    others = rows[rows["policy"] != BEST_SCHEDULE]
    return [BEST_SCHEDULE, *telling(others, most=MOST_CURVES - 1, along="total_epsilon")]


def _by_epsilon(made: Canvas, axes: Axes, rows: pd.DataFrame, colours: Mapping[str, Look], across: int) -> EndLabels:
    labels = _draw(made, axes, rows, "total_epsilon", colours=colours, across=across)
    set_epsilon_axis(axes, rows["total_epsilon"])
    axes.set_xlabel("total ε of the course (log scale)")
    return labels


def _by_horizon(made: Canvas, axes: Axes, rows: pd.DataFrame, colours: Mapping[str, Look], across: int) -> EndLabels:
    labels = _draw(made, axes, rows, "horizon", colours=colours, across=across)
    horizons = sorted(rows["horizon"].unique())
    axes.set_xscale("log")
    axes.set_xticks(horizons, labels=[f"{day:g}" for day in horizons])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("days (log scale)")
    return labels


def _draw(
    made: Canvas, axes: Axes, rows: pd.DataFrame, along: str, *, colours: Mapping[str, Look], across: int
) -> EndLabels:
    ends = []
    for name in names_of(rows, "policy"):
        line = rows[(rows["policy"] == name) & rows["benefit_kept"].notna()].sort_values(along)
        if line.empty:
            continue
        level = is_level(name) or name == BEST_SCHEDULE
        shown, drawn = LABELS.get(name, label(name)), as_line(colours[name], level=level)
        width: dict[str, Any] = {"linewidth": thin()} if level else {}
        axes.plot(line[along], line["benefit_kept"], **drawn, **width, label=shown)
        ends.append(line_end(shown, line[along], line["benefit_kept"], drawn))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(labelleft=True)
    return EndLabels(made, axes, ends, width=NAMES_SHARE * made.width / across)

"""A course of treatment: what is kept under each total budget and at each horizon, and which way keeps most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, catalogue_name
from policysim.figures.benefit import shade_out_of_reach
from policysim.figures.curves import (
    MOST_CURVES,
    NAMES_SHARE,
    checked,
    line_end,
    merged,
    names_of,
    nonempty,
    over_epsilon,
    telling,
    thin,
    undrawn,
)
from policysim.figures.layout import EndLabels, settle
from policysim.figures.lettering import LINE_SPACING, set_epsilon_axis
from policysim.figures.looks import (
    COLOURS,
    GREY,
    Canvas,
    Look,
    Paper,
    as_line,
    canvas,
    is_level,
    label,
    look_of_action,
    looks,
    side_by_side,
)
from policysim.numbers import achieved, days, tick
from policysim.words import ALL, BEST_SCHEDULE, PLAN_ONCE, PLAN_TREE

NAME, MAP, PUBLISHED = "value_over_days", "ways_over_days", "published_over_days"
# What has another name here, or is no policy of the catalogue.
LABELS = {
    Optimal.name: OPTIMAL_DAILY,
    BEST_SCHEDULE: "a schedule for all (best-schedule)",
    PLAN_ONCE: "one choice of a schedule (plan-once)",
    PLAN_TREE: "reacting in a tree (plan-tree)",
}
SCHEDULE_LOOK = Look(GREY, "h", "dashdot")
ONCE_LOOK = Look("#882255", "*")
TREE_LOOK = Look("#0B6E4F", "P")
# What stands first, as others are read against it.
FIRST = (BEST_SCHEDULE, PLAN_ONCE, PLAN_TREE)
# So many panels there are at most of what is published, and hatches of treatments where colours are not seen.
VISIBLE = 0.01
MOST_GROUPS, HATCHES = 6, ("", "//", "\\\\", "xx", "--", "||")
# How opaque the fields of `ways_over_days` are that keep nothing and all: words on them can be read in both themes.
TINTS = (0.06, 0.42)


def value_over_days(table: pd.DataFrame, *, policies: Sequence[str] | None = None, **paper: Unpack[Paper]) -> Figure:
    """Benefit kept against the total epsilon at the longest horizon, and against the horizon at each total epsilon.

    Parameters
    ----------
    table : DataFrame
        From `compare_days`: policy, group, horizon, total_epsilon, benefit_kept.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        One panel more for each total epsilon, if there are several horizons. Where `most_kept` holds a number at two
        totals or more, what is above it is shaded: no mechanism can.

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
    colours = {
        **looks([name for name in every if name not in FIRST]),
        BEST_SCHEDULE: SCHEDULE_LOOK,
        PLAN_ONCE: ONCE_LOOK,
        PLAN_TREE: TREE_LOOK,
    }
    rows = rows[rows["policy"].isin(names)]
    totals = sorted(rows["total_epsilon"].unique()) if rows["horizon"].nunique() > 1 else []
    n_panels = 1 + len(totals)
    across = side_by_side(n_panels, 2, **paper)
    down = -(-n_panels // across)
    height = 0.18 * rows["policy"].nunique() + 1.6
    with canvas(page=(9.6 if across > 1 else 7.2, height * down), column=1.05 * height * down, **paper) as made:
        grid = made.panels(n_panels, across, sharey=True)
        about: dict[str, Any] = {"colours": colours, "across": across}
        labels = [_draw(made, grid[0], rows[rows["horizon"] == longest], "total_epsilon", **about)]
        title = f"Benefit kept over {days(int(longest))}"
        proven = table[table["horizon"] == longest].assign(epsilon=lambda rows: rows["total_epsilon"])
        shaded = shade_out_of_reach(grid[0], over_epsilon(proven), "most_kept", 1.0)
        notes = [shaded, undrawn(every, names, policies)]
        made.name(grid[0], title, "total ε of the course (log scale)", notes=notes)
        for axes, total in zip(grid[1:], totals, strict=False):
            labels.append(_draw(made, axes, rows[rows["total_epsilon"] == total], "horizon", **about))
            at = f"at total ε = {tick(total)}"
            made.name(axes, f"By horizon, {at}", "days (log scale)", alone=f"Benefit kept {at}")
        settle(made, labels)
    return made.drawn


def ways_over_days(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """The benefit kept at each horizon and total by the way to spend it that keeps most: a map, a field for each.

    Parameters
    ----------
    table : DataFrame
        From `policysim.course.days.ways`: horizon, total_epsilon, way, policy, benefit_kept, best,
        most_kept.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        In each field the mechanism, what it keeps, and after a dash what no mechanism exceeds; the more, the stronger
        the colour.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, MAP, ["horizon", "total_epsilon", "way", "policy", "benefit_kept", "best", "most_kept"])
    rows = nonempty(table[table["best"].astype(bool)], MAP, "that are the best of their field")
    horizons, totals = sorted(rows["horizon"].unique()), sorted(rows["total_epsilon"].unique())
    height = 0.55 * len(horizons) + 1.1
    page = (1.6 + 1.6 * max(3, len(totals)), height)
    with canvas(page=page, column=1.0 + 0.66 * len(horizons), **paper) as made:
        (axes,) = made.panels()
        field = (made.width - 5 * made.font) / len(totals)
        for _, row in rows.iterrows():
            place = totals.index(row["total_epsilon"]), horizons.index(row["horizon"])
            share = min(1.0, max(0.0, float(row["benefit_kept"])))
            tint: dict[str, Any] = {"facecolor": COLOURS[0], "alpha": TINTS[0] + (TINTS[1] - TINTS[0]) * share}
            axes.add_patch(Rectangle((place[0] - 0.5, place[1] - 0.5), 1, 1, linewidth=0, **tint))
            name = made.lines(str(row["policy"]), 0.94 * field, 2)
            kept = made.lines(achieved(float(row["benefit_kept"]), float(row["most_kept"])), 0.94 * field, 9)
            axes.text(*place, f"{name}\n{kept}", ha="center", va="center", linespacing=LINE_SPACING)
        for edge in range(1, max(len(totals), len(horizons))):
            line: dict[str, Any] = {"color": "white", "linewidth": 2 * thin()}
            if edge < len(totals):
                axes.axvline(edge - 0.5, **line)
            if edge < len(horizons):
                axes.axhline(edge - 0.5, **line)
        axes.set_xlim(-0.5, len(totals) - 0.5)
        axes.set_ylim(-0.5, len(horizons) - 0.5)
        axes.set_xticks(range(len(totals)), labels=[tick(total) for total in totals])
        axes.set_yticks(range(len(horizons)), labels=[f"{horizon:g}" for horizon in horizons])
        axes.tick_params(length=0)
        axes.grid(visible=False)
        title, total = "What keeps most, and how much", "total ε of the course"
        made.name(axes, title, f"{total}; the stronger the blue, the more of the benefit is kept", "days")
        settle(made)
    return made.drawn


def published_over_days(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """Draw the share of patients with each treatment on each day: for all, and where the first record matters most.

    Parameters
    ----------
    table : DataFrame
        "published" of `policysim.course.days.compare_days`: group, level, day, and p_ and its name for each treatment.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        A panel for everyone, and for the five groups at most that differ most from everyone, by the total variation
        added up over the days, and visibly.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, PUBLISHED, ["group", "level", "day"])
    chances = [name for name in map(str, table) if name.startswith("p_")]
    if not chances:
        raise ValueError(f"{PUBLISHED} needs a column p_NAME for each treatment.")
    rows = nonempty(table.dropna(subset=chances), PUBLISHED, "with a number")
    by_group = {
        (str(group), str(level)): each.set_index("day")[chances]
        for (group, level), each in rows.groupby(["group", "level"], sort=False)
    }
    everyone = by_group.pop((ALL, ALL))
    distance = {group: float((shares - everyone).abs().to_numpy().sum()) / 2 for group, shares in by_group.items()}
    apart = sorted((group for group in by_group if distance[group] > VISIBLE), key=lambda group: -distance[group])
    panels = [
        ("everyone", everyone),
        *((" ".join(filter(None, group)), by_group[group]) for group in apart[: MOST_GROUPS - 1]),
    ]
    given = [name for name in chances if any((each[name] > 0).any() for _, each in panels)]
    across = side_by_side(len(panels), 3, **paper)
    down = -(-len(panels) // across)
    with canvas(page=(9.6, 0.6 + 2.1 * down), column=1.0 + 1.5 * down, **paper) as made:
        for axes, (title, shares) in zip(
            made.panels(len(panels), across, sharex=True, sharey=True), panels, strict=True
        ):
            bottom = shares[given[0]] * 0
            for name in given:
                place = chances.index(name)
                axes.bar(
                    shares.index,
                    shares[name],
                    bottom=bottom,
                    width=0.9,
                    color=look_of_action(place)["color"],
                    hatch=HATCHES[place % len(HATCHES)],
                    edgecolor="white",
                    linewidth=0,
                    label=name.removeprefix("p_"),
                )
                bottom = bottom + shares[name]
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(visible=False)
            axes.tick_params(labelbottom=True)
            axes.set_title(title, loc="left")
            axes.set_xlabel("day")
        made.legend(width=0.25 * made.width, handles=made.axes[0].containers)
        settle(made)
    return made.drawn


def _names(rows: pd.DataFrame, policies: Sequence[str] | None) -> list[str]:
    """Those to draw: beside one for all, one schedule for all is what others are read against."""
    first = [name for name in FIRST if name in names_of(rows, "policy")]
    if policies is not None or not first:
        return telling(rows, policies=policies, along="total_epsilon")
    others = rows[~rows["policy"].isin(first)]
    return [*first, *telling(others, most=MOST_CURVES - len(first), along="total_epsilon")]


def _draw(
    made: Canvas, axes: Axes, rows: pd.DataFrame, along: str, *, colours: Mapping[str, Look], across: int
) -> EndLabels:
    """A line along total_epsilon or horizon for each policy that keeps something known."""
    ends = []
    for name in names_of(rows, "policy"):
        line = rows[(rows["policy"] == name) & rows["benefit_kept"].notna()].sort_values(along)
        if line.empty:
            continue
        level = is_level(name) or name == BEST_SCHEDULE
        shown, drawn = LABELS.get(name, label(name)), as_line(name, colours[name], level=level)
        width: dict[str, Any] = {"linewidth": thin()} if level else {}
        axes.plot(line[along], line["benefit_kept"], **drawn, **width, label=shown)
        ends.append(line_end(shown, line[along], line["benefit_kept"], drawn))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(labelleft=True)
    if along == "horizon":
        horizons = sorted(rows["horizon"].unique())
        axes.set_xscale("log")
        axes.set_xticks(horizons, labels=[f"{day:g}" for day in horizons])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        set_epsilon_axis(axes, rows["total_epsilon"])
    return EndLabels(made, axes, merged(ends), width=NAMES_SHARE * made.width / across)

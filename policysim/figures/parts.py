"""What a whole is made of: the benefit and the sensitivity, by outcome; and 1,000 patients, by how they fare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from policies.reference import BestFixed, Greedy
from policysim.figures.curves import MOST_CURVES, at_one_epsilon, checked, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.looks import COLOURS, GREY, ICONS_GID, POLICY_GID, canvas, label, list_rows
from policysim.question.answer import SizeName
from policysim.question.formats import NEGLIGIBLE, of_thousand, percent, rounded, sensitivity, tick
from policysim.question.words import ALL

# So many outcomes are told apart; the others are one.
MOST_OUTCOMES = 6
OTHERS = "all others"
AXIS = "utility per patient, against one treatment for all; left of 0: lost"
# Of the width, the names of the policies may take this much, and those of the parts this much: at the right, or below.
NAMES_SHARE, LEGEND_SHARE = 0.3, (0.2, 0.38)
# The palette of the parts, furthest apart first, and a hatch with each, so that none is told by its colour alone:
# of lines, since those of dots make an SVG ten times as large.
PARTS = tuple(zip((0, 7, 2, 4, 3, 5, 6), ("", "///", "|||", "\\\\\\", "xxx", "---", "+++"), strict=True))
# A part that is a smaller share of the longest bar cannot be seen.
LEAST = 1e-3
# The sum of a bar.
NET: dict[str, Any] = {
    "marker": "D", "color": "#000000", "markeredgecolor": "white", "markersize": 5, "linestyle": "none", "zorder": 4,
}  # fmt: skip


def benefit_parts(table: pd.DataFrame, *, policies: Sequence[str] | None = None, size: SizeName = "page") -> Figure:
    """What each policy gains over one treatment for all, and what that is made of: a stacked bar for each policy.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.scenario_outcomes`: policy, outcome, lost; best-fixed must be among the policies. What
        a policy gains in an outcome is what best-fixed loses in it, less what the policy loses.
    policies : sequence of str, optional
        Those to draw, however many; by default at most six, chosen by `policysim.figures.curves.telling`. The best
        treatment for each, which loses nothing, stands below them.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        What is gained is to the right of 0, what is lost to its left; a diamond and a number are the sum.

    Raises
    ------
    ValueError
        For a table without these columns or rows, or that lacks a policy asked for.
    """
    checked(table, "benefit_parts", ["policy", "outcome", "lost"])
    gains = nonempty(gained_by_outcome(table), "benefit_parts", "of a policy beside best-fixed")
    every = [name for name in names_of(gains, "policy") if name != Greedy.name]
    totals = gains.assign(value=gains.groupby("policy")["gained"].transform("sum"))
    names = telling(totals[totals["policy"].isin(every)], policies=policies, most=MOST_CURVES - 1) if every else []
    shown = [*names, *([Greedy.name] if policies is None else [])]
    # A column for each outcome that matters most somewhere, and one for all others; in what nobody loses or gains there
    # is nothing to see.
    rows = gains[gains["policy"].isin(shown)]
    grid = rows.pivot_table(index="policy", columns="outcome", values="gained", sort=False).loc[shown]
    largest = grid.abs().max().sort_values(ascending=False, kind="stable")
    ranked = [name for place, (name, gained) in enumerate(largest.items()) if gained or not place]
    # One that stands alone for all others has a name of its own.
    kept = ranked if len(ranked) <= MOST_OUTCOMES + 1 else ranked[:MOST_OUTCOMES]
    others = {} if len(kept) == len(ranked) else {OTHERS: grid.drop(columns=kept).sum(axis=1)}
    parts = grid[kept].assign(**others)
    with canvas(size, page=(8.2, 1.7 + 0.42 * len(shown)), column=2.8 + 0.36 * len(shown)) as made:
        (axes,) = made.panels()
        _stack(axes, parts)
        axes.axvline(0, color=GREY, linewidth=thin(), zorder=3)
        labels = [made.lines(label(name), NAMES_SHARE * made.width, 2) for name in shown]
        axes.set_yticks(range(len(shown)), labels=labels)
        axes.invert_yaxis()
        list_rows(axes)
        made.head("What the benefit is made of")
        axes.set_xlabel("\n".join(filter(None, [AXIS, undrawn(every, names)])))
        made.legend(width=LEGEND_SHARE[made.narrow] * made.width, ncols=2 if made.narrow else 1)
        settle(made)
    return made.figure


def gained_by_outcome(table: pd.DataFrame) -> pd.DataFrame:
    """What each policy gains over best-fixed in each outcome; greedy, which loses nothing, comes last.

    Parameters
    ----------
    table : DataFrame
        policy, outcome, lost; without best-fixed there is nothing to gain over, and no row.
    """
    fixed = table[table["policy"] == BestFixed.name].set_index("outcome")["lost"]
    others = table[~table["policy"].isin([BestFixed.name, Greedy.name]) & table["outcome"].isin(fixed.index)]
    best = fixed.reset_index().assign(policy=Greedy.name, lost=0.0)
    rows = pd.concat([others[["policy", "outcome", "lost"]], best[["policy", "outcome", "lost"]]], ignore_index=True)
    rows = rows.assign(gained=rows["outcome"].map(fixed) - rows["lost"])
    return rows[["policy", "outcome", "gained"]]


def _stack(axes: Axes, parts: pd.DataFrame) -> None:
    """The bars, and at the end of each the sum of its parts."""
    drawn: list[dict[str, Any]] = [
        {"color": COLOURS[colour], "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
        for (colour, hatch), _ in zip(PARTS, parts, strict=False)
    ]
    for look, name in zip(drawn, parts, strict=True):
        axes.barh([0], [0], label=str(name).replace("_", " "), **look)
    room = LEAST * float(parts.abs().to_numpy().sum(axis=1).max())
    for place, (policy, gained) in enumerate(parts.iterrows()):
        gid, right, left = POLICY_GID + str(policy), 0.0, 0.0
        for look, part in zip(drawn, gained, strict=True):
            if abs(part) <= room:
                continue
            start = right if part > 0 else left + part
            for bar in axes.barh([place], [abs(part)], left=start, height=0.66, **look):
                bar.set_gid(gid)
            right, left = right + max(part, 0.0), left + min(part, 0.0)
        total = float(gained.sum())
        words = rounded(total, sign=True) if abs(total) > NEGLIGIBLE else "0"
        axes.annotate(words, (right, place), xytext=(0.9, 0), textcoords="offset fontsize", va="center", gid=gid)
        axes.plot(total, place, **{**NET, "gid": gid})
    low, high = axes.get_xlim()
    axes.set_xlim(low - 0.04 * (high - low), high + 0.16 * (high - low))


ALONE, WITNESS = "of itself, between any two neighbours", "between the two neighbours that differ most in utility"


def sensitivity_by_weight(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """How much of the sensitivity comes from each outcome's weight.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.scenario_outcomes.sensitivity_by_outcome`: outcome, weight, sensitivity, contribution,
        share; NaN as the weight of what has none.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, "sensitivity_by_weight", ["outcome", "weight", "sensitivity", "contribution", "share"])
    names = [
        str(outcome).replace("_", " ") + ("" if pd.isna(weight) else f" (weight\u00a0{weight:g})")
        for outcome, weight in zip(table["outcome"], table["weight"], strict=True)
    ]
    places = range(len(table))
    with canvas(size, page=(7.2, 1.5 + 0.34 * len(table)), column=1.4 + 0.3 * len(table)) as made:
        (axes,) = made.panels()
        axes.barh(places, table["sensitivity"], height=0.7, color="#DDDDDD", label=ALONE)
        axes.barh(places, table["contribution"], height=0.36, color=COLOURS[0], label=WITNESS)
        for place, row in zip(places, table.to_dict("records"), strict=True):
            end = max(row["sensitivity"], row["contribution"], 0.0)
            share = "< 1\u00a0%" if 0 < row["share"] < 0.01 else percent(row["share"])
            words = f"{sensitivity(row['contribution'])} ({share} of Δ)"
            axes.annotate(words, (end, place), xytext=(0.5, 0), textcoords="offset fontsize", va="center")
        axes.set_yticks(places, labels=[made.lines(name, NAMES_SHARE * made.width, 2) for name in names])
        axes.invert_yaxis()
        list_rows(axes)
        delta = sensitivity(table["contribution"].sum())
        made.head(f"What drives the sensitivity Δ = {delta}")
        axes.set_xlabel("weight × difference in probability, units of utility")
        made.figure.legend(loc="outside lower center", frameon=False)
        settle(made)
    return made.figure


PATIENTS = 1000
ACROSS = {"page": 40, "column": 40, "slide": 50}
# The classes of the marks in their order: class on a page, words, colour, marker, its size in steps of the grid.
BETTER, SAME, WORSE, DIED = CLASSES = ("better", "same", "worse", "died")
WORDS = {
    BETTER: "score higher than untreated",
    SAME: "score the same as untreated",
    WORSE: "score lower than untreated",
    DIED: "die than under one treatment for all (of any of the above)",
}
LOOKS = {
    BETTER: ("#0072B2", "o", 0.78),
    SAME: ("#8A8A8A", "o", 0.42),
    WORSE: ("#C84F00", "s", 0.7),
    DIED: ("#000000", "s", 0.9),
}
# Of the width, the words beside the marks.
WORDS_SHARE = 0.4


def icon_array(table: pd.DataFrame, *, policy: str, size: SizeName = "page") -> Figure:
    """1,000 patients as marks: who scores higher than untreated, the same, or lower; and extra deaths.

    Parameters
    ----------
    table : DataFrame
        From `compare`, at one epsilon: policy, epsilon, group, better_than_untreated, worse_than_untreated and, where
        deaths are counted, extra_deaths.
    policy : str
        The one that is drawn.
    size : {"page", "column", "slide"}
        What the figure is for. In a column the words stand below the marks.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns, of several epsilons, or without this policy.
    """
    checked(table, "icon_array", ["policy", "epsilon", "group", "better_than_untreated", "worse_than_untreated"])
    everyone = table[(table["policy"] == policy) & (table["group"] == ALL)]
    rows = nonempty(everyone, "icon_array", f"of everyone under {policy}")
    row = at_one_epsilon(rows, "icon_array").iloc[0]
    counts, extra = icon_counts(row), float(row.get("extra_deaths", math.nan))
    lines = 4 if math.isnan(extra) else 7
    with canvas(size, page=(8.2, 3.6), column=2.25 + 0.13 * lines) as made:
        (axes,) = made.panels()
        axes.set_axis_off()
        across = ACROSS[size]
        axes.set_xlim(-0.5, across - 0.5)
        axes.set_ylim(PATIENTS / across - 0.5, -0.5)
        axes.set_aspect("equal", adjustable="box", anchor="NW")
        title = f"1,000 patients under {policy}, at ε = {tick(float(row['epsilon']))}"
        axes.set_title(title, loc="left", fontweight="bold", fontsize=1.1 * made.font)
        words = [f"{counts[name]:,} {WORDS[name]}" for name in (BETTER, SAME, WORSE)]
        if not math.isnan(extra):
            words.append(died_words(extra))
        handles = [Line2D([], [], **_look(name, 0.8 * made.font)) for name in CLASSES[: len(words)]]
        width = (1.0 if made.narrow else WORDS_SHARE) * made.width - 4 * made.font
        made.legend(handles=handles, labels=words, width=width, below="left", alignment="left", labelspacing=0.9)
        settle(made)
        # Row by row, in the order of the classes, now that it is known how large the grid is.
        step = axes.get_window_extent().width / across * 72 / made.figure.dpi
        ends = np.cumsum([counts[name] for name in (BETTER, SAME, WORSE)])
        bounds = [0, *np.minimum(ends, PATIENTS - counts[DIED]).tolist(), PATIENTS]
        for name, first, end in zip(CLASSES, bounds, bounds[1:], strict=False):
            places = np.arange(first, end)
            if len(places):
                marks = Line2D(places % across, places // across, **_look(name, step), gid=ICONS_GID + name)
                axes.add_line(marks)
    return made.figure


def died_words(extra: float) -> str:
    """How many of 1,000 patients die in addition, from the extra deaths per patient; or how many fewer."""
    return f"{rounded(PATIENTS * abs(extra))} {'fewer' if extra < 0 else 'more'} {WORDS[DIED]}"


def icon_counts(row: Mapping[Any, Any] | pd.Series) -> dict[str, int]:
    """How many of 1,000 patients are of each class, in the order of their marks.

    Of a row of a comparison: those better, as well and worse than untreated sum to 1,000 (`of_thousand`); those who die
    in addition are among them, and their marks are the last ones.
    """
    whole = of_thousand(float(row["better_than_untreated"]), float(row["worse_than_untreated"]))
    extra = float(row.get("extra_deaths", math.nan))
    died = 0 if math.isnan(extra) else min(PATIENTS, max(0, round(PATIENTS * extra)))
    return dict(zip(CLASSES, (*whole, died), strict=True))


def _look(name: str, step: float) -> dict[str, Any]:
    colour, marker, share = LOOKS[name]
    return {"color": colour, "marker": marker, "markersize": share * step, "markeredgewidth": 0, "linestyle": "none"}

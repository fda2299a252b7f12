"""What outcomes make of utility: of the benefit of each policy, and of the sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from policies.reference import BestFixed, Greedy
from policysim.figures.curves import MOST_CURVES, checked, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.lettering import cut, show_wrapped, wrapped
from policysim.figures.looks import COLOURS, GREY, POLICY_GID, canvas, label
from policysim.question.answer import SizeName
from policysim.question.formats import NEGLIGIBLE, percent, rounded, sensitivity

NAME = "benefit_parts"
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
    checked(table, NAME, ["policy", "outcome", "lost"])
    gains = nonempty(gained_by_outcome(table), NAME, "of a policy beside best-fixed")
    every = [name for name in names_of(gains, "policy") if name != Greedy.name]
    totals = gains.assign(value=gains.groupby("policy")["gained"].transform("sum"))
    names = telling(totals[totals["policy"].isin(every)], policies=policies, most=MOST_CURVES - 1) if every else []
    shown = [*names, *([Greedy.name] if policies is None else [])]
    parts = _parts(gains[gains["policy"].isin(shown)]).loc[shown]
    with canvas(size, page=(8.2, 1.7 + 0.42 * len(shown)), column=2.8 + 0.36 * len(shown)) as made:
        axes = made.figure.subplots()
        _stack(axes, parts)
        axes.axvline(0, color=GREY, linewidth=thin(), zorder=3)
        font = FontProperties(size=made.font, family=rcParams["font.family"])
        labels = [cut(wrapped(label(name), NAMES_SHARE * made.width, font), 2) for name in shown]
        axes.set_yticks(range(len(shown)), labels=labels)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        made.head("What the benefit is made of")
        axes.set_xlabel("\n".join(filter(None, [AXIS, undrawn(every, names)])))
        if made.narrow:
            legend = made.figure.legend(loc="outside lower center", ncols=2, frameon=False)
        else:
            legend = made.figure.legend(loc="outside right upper", frameon=False)
        for text in legend.get_texts():
            show_wrapped(text, text.get_text(), LEGEND_SHARE[made.narrow] * made.width)
            text.set_text(cut(text.get_text(), 3))
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


def _parts(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each policy, a column for each outcome that matters most somewhere, and one for all others.

    In what nobody loses or gains there is nothing to see.
    """
    grid = rows.pivot_table(index="policy", columns="outcome", values="gained", sort=False)
    most = grid.abs().max().sort_values(ascending=False, kind="stable")
    ranked = [name for place, (name, gained) in enumerate(most.items()) if gained or not place]
    # One that stands alone for all others has a name of its own.
    kept = ranked if len(ranked) <= MOST_OUTCOMES + 1 else ranked[:MOST_OUTCOMES]
    shown = grid[kept]
    return shown if len(kept) == len(ranked) else shown.assign(**{OTHERS: grid.drop(columns=kept).sum(axis=1)})


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


DRIVERS = "sensitivity_by_weight"
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
    checked(table, DRIVERS, ["outcome", "weight", "sensitivity", "contribution", "share"])
    names = [
        str(outcome).replace("_", " ") + ("" if pd.isna(weight) else f" (weight\u00a0{weight:g})")
        for outcome, weight in zip(table["outcome"], table["weight"], strict=True)
    ]
    places = range(len(table))
    with canvas(size, page=(7.2, 1.5 + 0.34 * len(table)), column=1.4 + 0.3 * len(table)) as made:
        axes = made.figure.subplots()
        axes.barh(places, table["sensitivity"], height=0.7, color="#DDDDDD", label=ALONE)
        axes.barh(places, table["contribution"], height=0.36, color=COLOURS[0], label=WITNESS)
        for place, row in zip(places, table.to_dict("records"), strict=True):
            end = max(row["sensitivity"], row["contribution"], 0.0)
            words = f"{sensitivity(row['contribution'])} ({_share(row['share'])} of Δ)"
            axes.annotate(words, (end, place), xytext=(0.5, 0), textcoords="offset fontsize", va="center")
        font = FontProperties(size=made.font, family=rcParams["font.family"])
        axes.set_yticks(places, labels=[cut(wrapped(name, NAMES_SHARE * made.width, font), 2) for name in names])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        delta = sensitivity(table["contribution"].sum())
        made.head(f"What drives the sensitivity Δ = {delta}")
        axes.set_xlabel("weight × difference in probability, units of utility")
        made.figure.legend(loc="outside lower center", frameon=False)
        settle(made)
    return made.figure


def _share(share: float) -> str:
    return "< 1\u00a0%" if 0 < share < 0.01 else percent(share)

"""What the benefit is made of, by outcome; and what hiding each feature costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from policies.reference import BestFixed, Greedy
from policysim.figures.curves import MOST_CURVES, at_one_epsilon, checked, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.looks import BLACK, COLOURS, DEATH, GREY, POLICY_GID, Paper, canvas, label, list_rows
from policysim.question.formats import NEGLIGIBLE, rounded, tick
from policysim.question.words import in_a_row

# So many outcomes are told apart; the others are one.
MOST_OUTCOMES = 6
OTHERS = "all others"
AXIS = "utility per patient, against one treatment for all; left of 0: lost"
# Of the width, the names of the policies may take this much, and those of the parts this much: at the right, or below.
NAMES_SHARE, LEGEND_SHARE = 0.3, (0.2, 0.38)
# The palette of the parts but deaths, furthest apart first, and a hatch with each, so that none is told by its colour
# alone: of lines, since those of dots make an SVG ten times as large.
PARTS = tuple(zip((0, 7, 2, 4, 3, 5, 6), ("", "///", "|||", "\\\\\\", "xxx", "---", "+++"), strict=True))
DEATHS = ("death", "deaths")
# A part that is a smaller share of the longest bar cannot be seen.
LEAST = 1e-3
# The sum of a bar.
NET: dict[str, Any] = {
    "marker": "D", "color": BLACK, "markeredgecolor": "white", "markersize": 5, "linestyle": "none", "zorder": 4,
}  # fmt: skip


def benefit_parts(table: pd.DataFrame, *, policies: Sequence[str] | None = None, **paper: Unpack[Paper]) -> Figure:
    """What each policy gains over one treatment for all, and what that is made of: a stacked bar for each policy.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.scenario_outcomes`: policy, outcome, lost; best-fixed must be among the policies. What
        a policy gains in an outcome is what best-fixed loses in it, less what the policy loses.
    policies : sequence of str, optional
        Those to draw, however many; by default at most six, chosen by `policysim.figures.curves.telling`. The best
        treatment for each, which loses nothing, stands below them.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
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
    with canvas(page=(8.2, 1.7 + 0.42 * len(shown)), column=1.6 + 0.36 * len(shown), **paper) as made:
        (axes,) = made.panels()
        _stack(axes, parts)
        axes.axvline(0, color=GREY, linewidth=thin(), zorder=3)
        labels = [made.lines(label(name), NAMES_SHARE * made.width, 2) for name in shown]
        axes.set_yticks(range(len(shown)), labels=labels)
        axes.invert_yaxis()
        list_rows(axes)
        made.head("What the benefit is made of")
        axes.set_xlabel(made.below(AXIS, undrawn(every, names, policies)))
        made.legend(width=LEGEND_SHARE[made.narrow] * made.width, ncols=2 if made.narrow else 1)
        settle(made)
    return made.drawn


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
    free = iter(PARTS)
    drawn: list[dict[str, Any]] = []
    for name in map(str, parts):
        # Deaths are darker than any other part.
        colour, hatch = (DEATH, "") if name in DEATHS else next((COLOURS[place], hatch) for place, hatch in free)
        drawn.append({"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3})
        axes.barh([0], [0], label=name.replace("_", " "), **drawn[-1])
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


PRICES = "price_bars"
# A price that is a smaller share of the dearest is no bar.
LEAST_PRICE = 0.01


def price_bars(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """What hiding each single feature costs at best: a bar for each, dearest first, and one for the whole record.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.prices.price_list`: hides, epsilon (one), loss, which is NaN for what the model does
        not use. What costs less than 1 % of the dearest is told in words.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given

    Raises
    ------
    ValueError
        For a table without these columns or rows, or of several epsilons.
    """
    checked(table, PRICES, ["hides", "epsilon", "loss"])
    at_one_epsilon(table, PRICES)
    priced = nonempty(table[table["loss"].notna()], PRICES, "with a price")
    priced = priced.assign(hides=[str(name).replace("_", " ") for name in priced["hides"]])
    most = float(priced["loss"].max())
    cheap = priced["loss"] < LEAST_PRICE * most
    rows = priced[~cheap].sort_values("loss", ascending=False, kind="stable")
    more = 0.3 * max(len(rows), 2)
    with canvas(page=(7.2, 1.3 + more), column=1.5 + more, **paper) as made:
        (axes,) = made.panels()
        for place, lost in enumerate(rows["loss"]):
            axes.barh([place], [lost], height=0.66, color=COLOURS[0])
            axes.annotate(rounded(lost), (lost, place), xytext=(0.5, 0), textcoords="offset fontsize", va="center")
        names = [made.lines(name, NAMES_SHARE * made.width, 2) for name in rows["hides"]]
        axes.set_yticks(range(len(names)), labels=names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0, 1.2 * most or 1.0)
        list_rows(axes)
        made.head(f"What hiding each feature costs at best, at ε = {tick(table['epsilon'].iloc[0])}")
        told = list(priced.loc[cheap, "hides"])
        note = f"Below {rounded(LEAST_PRICE * most)}: {in_a_row(told, 'and')}." if told else ""
        axes.set_xlabel(made.below("utility lost per patient, if all else is public", note))
        settle(made)
    return made.drawn

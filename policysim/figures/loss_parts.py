"""What outcomes make of utility: of the loss of each policy, and of the sensitivity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from policies.arrays import FloatArray
from policies.reference import Greedy
from policysim.figures.curves import checked, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.lettering import show_wrapped, wrapped
from policysim.figures.looks import COLOURS, GREY, canvas, label
from policysim.question.answer import SizeName
from policysim.question.words import NEGLIGIBLE, percent, rounded, sensitivity

NAME = "loss_by_outcome"
# So many outcomes are told apart; the others are one.
MOST_OUTCOMES = 6
OTHERS = "all others"
AXIS = "utility lost per patient, against the best treatment for each; left of 0: gained"
# Of the width, the names of the policies may take this much, and those of the parts this much: at the right, or below.
NAMES_SHARE, LEGEND_SHARE = 0.3, (0.2, 0.38)
# The palette of the parts, furthest apart first, and a hatch with each, so that none is told by its colour alone:
# of lines, since those of dots make an SVG ten times as large.
PARTS = tuple(zip((0, 7, 2, 4, 3, 5, 6), ("", "///", "|||", "\\\\\\", "xxx", "---", "+++"), strict=True))


def loss_by_outcome(table: pd.DataFrame, *, policies: Sequence[str] | None = None, size: SizeName = "page") -> Figure:
    """What the utility loss of each policy is made of: a bar for each, with what it gains to the left of 0.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.loss_by_outcome`: policy, outcome, lost. greedy is left out: losses are measured
        against it.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns or rows, or that lacks a policy asked for.
    """
    checked(table, NAME, ["policy", "outcome", "lost"])
    rows = nonempty(table[table["policy"] != Greedy.name], NAME, "of a policy other than greedy")
    every = names_of(rows, "policy")
    totals = rows.assign(loss=rows.groupby("policy")["lost"].transform("sum"))
    names = telling(totals, policies=policies)
    parts = _parts(rows[rows["policy"].isin(names)]).loc[names]
    with canvas(size, page=(8.2, 1.6 + 0.42 * len(names)), column=2.6 + 0.34 * len(names)) as made:
        axes = made.figure.subplots()
        _stack(axes, parts)
        axes.axvline(0, color=GREY, linewidth=thin(), zorder=3)
        font = FontProperties(size=made.font, family=rcParams["font.family"])
        shown = [wrapped(label(name), NAMES_SHARE * made.width, font) for name in names]
        axes.set_yticks(range(len(names)), labels=shown)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        made.head("What the loss is made of")
        axes.set_xlabel("\n".join(filter(None, [AXIS, undrawn(every, names)])))
        if made.narrow:
            legend = made.figure.legend(loc="outside lower center", ncols=2, frameon=False)
        else:
            legend = made.figure.legend(loc="outside right upper", frameon=False)
        for text in legend.get_texts():
            show_wrapped(text, text.get_text(), LEGEND_SHARE[made.narrow] * made.width)
        settle(made)
    return made.figure


def _parts(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each policy, a column for each outcome that matters most somewhere, and one for all others.

    In what nobody loses or gains there is nothing to see.
    """
    grid = rows.pivot_table(index="policy", columns="outcome", values="lost", sort=False)
    most = grid.abs().max().sort_values(ascending=False, kind="stable")
    ranked = [name for place, (name, lost) in enumerate(most.items()) if lost or not place]
    # One that stands alone for all others has a name of its own.
    kept = ranked if len(ranked) <= MOST_OUTCOMES + 1 else ranked[:MOST_OUTCOMES]
    shown = grid[kept]
    return shown if len(kept) == len(ranked) else shown.assign(**{OTHERS: grid.drop(columns=kept).sum(axis=1)})


def _stack(axes: Axes, parts: pd.DataFrame) -> None:
    """The bars, and at the end of each the sum of its parts."""
    right: FloatArray = np.zeros(len(parts))
    left: FloatArray = np.zeros(len(parts))
    for (colour, hatch), name in zip(PARTS, parts, strict=False):
        lost = parts[name].to_numpy(dtype=np.float64)
        start = np.where(lost > 0, right, left + lost)
        axes.barh(
            range(len(parts)), np.abs(lost), left=start, height=0.66, color=COLOURS[colour], hatch=hatch,
            edgecolor="white", linewidth=0.3, label=str(name).replace("_", " "),
        )  # fmt: skip
        right, left = right + np.maximum(lost, 0.0), left + np.minimum(lost, 0.0)
    for place, (end, total) in enumerate(zip(right, parts.sum(axis=1), strict=True)):
        words = rounded(float(total)) if abs(total) > NEGLIGIBLE else "0"
        axes.annotate(words, (end, place), xytext=(0.5, 0), textcoords="offset fontsize", va="center")
    axes.margins(x=0.08)


DRIVERS = "sensitivity_by_weight"
ALONE, WITNESS = "of itself, between any two neighbours", "between the two neighbours that differ most in utility"


def sensitivity_by_weight(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """How much of the sensitivity comes from each outcome's weight.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.prices.sensitivity_by_outcome`: outcome, weight, sensitivity, contribution, share; NaN
        as the weight of what has none.
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
        str(outcome).replace("_", " ") + ("" if pd.isna(weight) else f" (weight {weight:g})")
        for outcome, weight in zip(table["outcome"], table["weight"], strict=True)
    ]
    places = range(len(table))
    with canvas(size, page=(7.2, 1.5 + 0.3 * len(table)), column=1.3 + 0.24 * len(table)) as made:
        axes = made.figure.subplots()
        axes.barh(places, table["sensitivity"], height=0.7, color="#DDDDDD", label=ALONE)
        axes.barh(places, table["contribution"], height=0.36, color=COLOURS[0], label=WITNESS)
        for place, row in zip(places, table.to_dict("records"), strict=True):
            end = max(row["sensitivity"], row["contribution"], 0.0)
            words = f"{sensitivity(row['contribution'])} ({_share(row['share'])} of Δ)"
            axes.annotate(words, (end, place), xytext=(0.5, 0), textcoords="offset fontsize", va="center")
        axes.set_yticks(places, labels=names)
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

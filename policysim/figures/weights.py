"""What drives the sensitivity: which weight of the utility."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from policysim.figures.curves import checked
from policysim.figures.layout import settle
from policysim.figures.looks import COLOURS, canvas
from policysim.question.answer import SizeName
from policysim.question.words import percent, sensitivity

NAME = "sensitivity_by_weight"
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
    checked(table, NAME, ["outcome", "weight", "sensitivity", "contribution", "share"])
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

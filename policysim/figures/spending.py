"""What each policy spends of the epsilon that it is given."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from policysim.figures.curves import NAMES_SHARE, line_end, thin
from policysim.figures.end_labels import EndLabels
from policysim.figures.layout import settle
from policysim.figures.looks import GREY, look
from policysim.figures.sizes import canvas
from policysim.figures.tables import checked, names_of, nonempty, spenders
from policysim.figures.ticks import set_epsilon_axis, set_log_ticks
from policysim.question.answer import SizeName

NAME = "spent_vs_claimed"
DIAGONAL: dict[str, Any] = {"color": GREY, "linestyle": "dashed"}
ALL_OF_IT = "all of it (exact = claim)"


def spent_vs_claimed(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """The exact privacy loss of each policy against the epsilon that it was given, both on log scales.

    Parameters
    ----------
    table : DataFrame
        From `compare`: policy, epsilon, group, epsilon_spent. Policies on the diagonal use all of their epsilon; those
        below it pay for privacy they do not give away.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns, or in which no policy spends anything.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "epsilon_spent"])
    rows = nonempty(spenders(table), NAME, "of everyone whose policy spends some of 0 < epsilon < inf")
    names = names_of(rows, "policy")
    height = max(4.2, 0.19 * len(names) + 2.2)
    with canvas(size, page=(7.2, height), column=0.66 * height) as made:
        axes = made.figure.subplots()
        diagonal = pd.Series([rows["epsilon"].min(), rows["epsilon"].max()])
        axes.plot(diagonal, diagonal, **DIAGONAL, linewidth=thin(), label=ALL_OF_IT)
        ends = [line_end(ALL_OF_IT, diagonal, diagonal, DIAGONAL)]
        for name in names:
            line = rows[rows["policy"] == name].sort_values("epsilon")
            axes.plot(line["epsilon"], line["epsilon_spent"], label=name, **look(name))
            ends.append(line_end(name, line["epsilon"], line["epsilon_spent"], look(name)))
        set_epsilon_axis(axes, rows["epsilon"])
        axes.set_yscale("log")
        # Far below the diagonal there may be policies that spend next to nothing.
        low = max(rows["epsilon_spent"].min(), diagonal[0] / 20)
        set_log_ticks(axes.yaxis, low, diagonal[1])
        axes.set_title("Privacy spent against privacy claimed", loc="left", fontweight="bold")
        axes.set_xlabel("ε claimed (log scale)")
        axes.set_ylabel("ε spent: exact privacy loss (log scale)")
        settle(made, [EndLabels(made, axes, ends, width=NAMES_SHARE * made.width)])
    return made.figure

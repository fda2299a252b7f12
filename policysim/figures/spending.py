"""What each policy spends of the epsilon that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from policysim.figures.curves import (
    MOST_CURVES,
    NAMES_SHARE,
    checked,
    line_end,
    names_of,
    nonempty,
    spenders,
    telling,
    thin,
    undrawn,
)
from policysim.figures.layout import EndLabels, settle
from policysim.figures.looks import GREY, as_line, canvas, looks
from policysim.figures.ticks import set_epsilon_axis, set_log_ticks
from policysim.question.answer import SizeName

NAME = "spent_vs_claimed"
DIAGONAL: dict[str, Any] = {"color": GREY, "linestyle": "dashed"}
ALL_OF_IT = "all of it (exact = claim)"


def spent_vs_claimed(
    table: pd.DataFrame, *, policies: Sequence[str] | None = None, epsilon: float = 1.0, size: SizeName = "page"
) -> Figure:
    """The exact privacy loss of each policy against the epsilon that it was given, both on log scales.

    Parameters
    ----------
    table : DataFrame
        From `compare`: policy, epsilon, group, epsilon_spent. Policies on the diagonal use all of their epsilon; those
        below it pay for privacy they do not give away.
    policies : sequence of str, optional
        Those to draw, however many; by default at most six, chosen by `policysim.figures.curves.telling`.
    epsilon : float, optional
        Where that rule ranks policies.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns, in which no policy spends anything, or that lacks a policy asked for.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "epsilon_spent"])
    rows = nonempty(spenders(table), NAME, "of everyone whose policy spends some of 0 < epsilon < inf")
    every = names_of(rows, "policy")
    # The diagonal is one of the panel's lines.
    names = telling(rows, epsilon=epsilon, policies=policies, most=MOST_CURVES - 1)
    colours = looks(names_of(table, "policy"))
    rows = rows[rows["policy"].isin(names)]
    height = max(4.2, 0.19 * len(names) + 2.2)
    with canvas(size, page=(7.2, height), column=0.66 * height) as made:
        axes = made.figure.subplots()
        diagonal = pd.Series([rows["epsilon"].min(), rows["epsilon"].max()])
        axes.plot(diagonal, diagonal, **DIAGONAL, linewidth=thin(), label=ALL_OF_IT)
        ends = [line_end(ALL_OF_IT, diagonal, diagonal, DIAGONAL)]
        for name in names:
            line = rows[rows["policy"] == name].sort_values("epsilon")
            drawn = as_line(colours[name])
            axes.plot(line["epsilon"], line["epsilon_spent"], label=name, **drawn)
            ends.append(line_end(name, line["epsilon"], line["epsilon_spent"], drawn))
        set_epsilon_axis(axes, rows["epsilon"])
        axes.set_yscale("log")
        # Far below the diagonal there may be policies that spend next to nothing.
        low = max(rows["epsilon_spent"].min(), diagonal[0] / 20)
        set_log_ticks(axes.yaxis, low, diagonal[1])
        axes.set_title("Privacy spent against privacy claimed", loc="left", fontweight="bold")
        note = undrawn(every, names)
        axes.set_xlabel("ε claimed (log scale)" + (f"\n{note}" if note else ""))
        axes.set_ylabel("ε spent: exact privacy loss (log scale)")
        settle(made, [EndLabels(made, axes, ends, width=NAMES_SHARE * made.width)])
    return made.figure

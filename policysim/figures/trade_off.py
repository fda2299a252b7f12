"""How well any test tells two patients apart by a treatment: its two errors against each other."""

from __future__ import annotations

from typing import Unpack

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from policysim.figures.curves import checked
from policysim.figures.layout import settle
from policysim.figures.looks import COLOURS, GREY, Paper, canvas
from policysim.numbers import right

NAME = "trade_off"


def trade_off(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """Draw the errors that no test of two patients can beat, beside those of a coin.

    Parameters
    ----------
    table : DataFrame
        From `ps.trade_off`: type_1_error (rising) and type_2_error.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        The dot is a test with the least sum of errors: how often it tells two equally likely patients apart. A policy
        that hides everything lies on the dashed line of coin tosses, on which both errors add up to 1.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    rows = checked(table, NAME, ["type_1_error", "type_2_error"])
    least = float((rows["type_1_error"] + rows["type_2_error"]).min())
    with canvas(page=(4.6, 4.2), column=3.2, **paper) as made:
        (axes,) = made.panels()
        axes.plot([0, 1], [1, 0], color=GREY, linestyle="dashed")
        axes.annotate("a coin toss", (0.75, 0.25), xytext=(0.4, 0.4), textcoords="offset fontsize")
        axes.plot(rows["type_1_error"], rows["type_2_error"], color=COLOURS[0], clip_on=False)
        axes.plot(least / 2, least / 2, color=COLOURS[0], marker="o", clip_on=False)
        told = f"● two patients told apart\n{right(1 - least / 2)} times of 100"
        axes.annotate(told, (0.98, 0.96), color=COLOURS[0], ha="right", va="top")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        made.name(axes, "How well any test tells two patients apart", "type 1 error", "type 2 error")
        settle(made)
    return made.drawn

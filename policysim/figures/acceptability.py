"""The acceptability curve: in how many versions of a model an option is better, against what one outcome weighs."""

from __future__ import annotations

from typing import Unpack

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from policysim.figures.curves import checked, nonempty
from policysim.figures.layout import settle
from policysim.figures.lettering import set_numbers
from policysim.figures.looks import COLOURS, GREY, Paper, canvas
from policysim.words import SURE, UNLIKELY

NAME = "acceptability"


def acceptability(table: pd.DataFrame, *, stated: float, one: str, **paper: Unpack[Paper]) -> Figure:
    """In which share of the versions of a model B is better than A, against what one of the leading outcome weighs.

    Parameters
    ----------
    table : DataFrame
        weight (rising) and better, a share, as `policysim.decision.exchange.Exchange.acceptability` has it.
    stated : float
        What it weighs in the study.
    one : str
        What one of the leading outcome is called, such as "a death".
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    rows = nonempty(checked(table, NAME, ["weight", "better"]), NAME, "with a weight")
    with canvas(page=(7.2, 3.4), column=3.0, **paper) as made:
        (axes,) = made.panels()
        axes.axhspan(UNLIKELY, SURE, color=GREY, alpha=0.15, linewidth=0)
        axes.plot(rows["weight"], rows["better"], color=COLOURS[0])
        axes.axvline(stated, color=GREY, linestyle="dashed")
        axes.annotate("this study", (stated, 0.02), xytext=(0.4, 0), textcoords="offset fontsize")
        axes.set_ylim(0, 1)
        axes.set_xlim(0, float(rows["weight"].max()))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        set_numbers(axes.xaxis)
        axes.set_ylabel("versions in which B is better")
        made.head("Is B better than A?")
        axes.set_xlabel(made.below(f"what {one} weighs, in units of utility", ""))
        settle(made)
    return made.drawn

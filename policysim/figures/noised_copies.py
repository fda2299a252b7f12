"""What a reader of a published list learns, and the benefit kept if observers see the treatment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from policysim.figures.curves import NAMES_SHARE, checked, line_end, merged, nonempty, thin
from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import set_epsilon_axis, set_log_ticks
from policysim.figures.looks import GREY, Look, Paper, canvas, side_by_side
from policysim.words import NOISY_TABLE, NOISY_VALUES, PRIVATE_DRAW, PRIVATE_RECORD, SAME, TRUEST

NAME = "publishing"
COLUMNS = ["way", "epsilon", "true_share", "error_of_a_count", "benefit_kept", "common_share"]
LOOKS = {
    NOISY_TABLE: Look("#009E73", "D"),
    NOISY_VALUES: Look("#C84F00", "<"),
    TRUEST: Look("#CC79A7", "^", "dashed"),
    PRIVATE_DRAW: Look("#0072B2", "o"),
    PRIVATE_RECORD: Look("#882255", ">"),
}
# What does not depend on epsilon.
COMMONEST, BEST = "the commonest, always", "best for each, list randomised"
WHOSE = "if observers see the treatment"


def publishing(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """Draw what a reader of a randomised list learns against epsilon, and the benefit kept by a private draw.

    Parameters
    ----------
    table : DataFrame
        From `ways_to_publish`: way, epsilon, true_share, error_of_a_count, benefit_kept, common_share.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        A panel for the share of published treatments that are the given ones, with that of always publishing the
        commonest; one for the error of a count (log scale), where it is known; and one for the benefit kept by a
        private draw and a private record, where there is benefit. The best for each keeps all of it.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, NAME, COLUMNS)
    rows = nonempty(table[(table["epsilon"] > 0) & (table["epsilon"] < math.inf)], NAME, "with 0 < epsilon < inf")
    about = {
        "true_share": (
            "Share of true values",
            (NOISY_VALUES, TRUEST),
            {COMMONEST: float(rows["common_share"].iloc[0])},
        ),
        "error_of_a_count": ("Error of a count, patients", (NOISY_TABLE, NOISY_VALUES, TRUEST), {}),
        "benefit_kept": ("Benefit kept", (PRIVATE_DRAW, PRIVATE_RECORD), {BEST: 1.0, SAME: 0.0}),
    }
    # An error of 0 has no place on a logarithmic axis.
    there = {column: np.isfinite(rows[column]) for column in about}
    there["error_of_a_count"] &= rows["error_of_a_count"] > 0
    known = {
        column: (title, rows[rows["way"].isin(ways) & there[column]], levels)
        for column, (title, ways, levels) in about.items()
    }
    known = {column: panel for column, panel in known.items() if not panel[1].empty}
    if not known:
        raise ValueError(f"{NAME} has nothing to draw: its table has no numbers of randomised lists or private draws.")
    across = side_by_side(len(known), 3, **paper)
    with canvas(page=(3.4 * len(known), 3.2), column=2.3 * len(known), **paper) as made:
        labels = []
        for axes, (column, (title, shown, levels)) in zip(made.panels(len(known), across), known.items(), strict=True):
            ends = _draw(axes, shown, column, levels)
            labels.append(EndLabels(made, axes, ends, width=NAMES_SHARE * made.width / across))
            made.name(axes, title, "ε (log scale)", notes=[WHOSE] * (column == "benefit_kept"))
        settle(made, labels)
    return made.drawn


def _draw(axes: Axes, rows: pd.DataFrame, column: str, levels: Mapping[str, float]) -> list[LineEnd]:
    """A line over epsilon for each way that the column holds numbers of, and level lines."""
    ends: list[LineEnd] = []
    for way in rows["way"].unique():
        line, look = rows[rows["way"] == way].sort_values("epsilon"), LOOKS[way]
        drawn: dict[str, Any] = {"color": look.colour, "linestyle": look.dashes, "marker": look.marker}
        axes.plot(line["epsilon"], line[column], **drawn, clip_on=False, label=way)
        ends.append(line_end(way, line["epsilon"], line[column], drawn))
    for name, height in levels.items():
        level: dict[str, Any] = {"color": GREY, "linestyle": "dashed"}
        axes.axhline(height, **level, linewidth=thin(), label=name, zorder=1)
        ends.append(line_end(name, pd.Series([math.nan]), pd.Series([height]), level, at_edge=True))
    counts = column == "error_of_a_count"
    if counts:
        axes.set_yscale("log")
        set_log_ticks(axes.yaxis, rows[column].min(), rows[column].max(), most=6)
    else:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    set_epsilon_axis(axes, rows["epsilon"])
    return merged(ends, log=counts)

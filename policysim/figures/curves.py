"""Lines over epsilon, a panel at a time: what the figures over epsilon share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes

from policies.policy import Look
from policysim.figures.end_labels import LineEnd
from policysim.figures.looks import as_line, is_level, label
from policysim.figures.tables import names_of

# Of the width of a panel together with its names, the names may take this much.
NAMES_SHARE = 0.36


def draw_policies(
    axes: Axes,
    rows: pd.DataFrame,
    column: str,
    *,
    looks: Mapping[str, Look],
    scale: float = 1.0,
    labels: Mapping[str, str],
) -> list[LineEnd]:
    """A line over epsilon for each policy that the column holds numbers of; those without epsilon are level lines.

    Where the table has `column`_low and `column`_high, what is between them is shaded.
    """
    ends = []
    for name in names_of(rows, "policy"):
        line = rows[(rows["policy"] == name) & rows[column].notna()].sort_values("epsilon")
        if line.empty:
            continue
        reference = is_level(name)
        drawn = as_line(looks[name], level=reference)
        shown = labels.get(name, label(name))
        values = line[column] * scale
        if reference:
            axes.axhline(values.iloc[0], **drawn, linewidth=thin(), label=shown, zorder=1)
        else:
            axes.plot(line["epsilon"], values, **drawn, label=shown)
            draw_band(axes, line, column, scale=scale, colour=drawn["color"])
        ends.append(line_end(shown, line["epsilon"], values, drawn, at_edge=reference))
    return ends


def line_end(name: str, xs: pd.Series, ys: pd.Series, drawn: dict[str, Any], *, at_edge: bool = False) -> LineEnd:
    """Where a line ends; of two with the same end, the one that is higher on average comes higher."""
    x = np.nan if at_edge else float(xs.iloc[-1])
    return LineEnd(name, x, float(ys.iloc[-1]), float(ys.mean()), drawn)


def draw_band(axes: Axes, line: pd.DataFrame, column: str, *, scale: float = 1.0, colour: str) -> None:
    """Shade the interval of a line, if the table has one, between two thin lines."""
    if has_band(line, column):
        low, high = (line[f"{column}_{end}"] * scale for end in ("low", "high"))
        axes.fill_between(line["epsilon"], low, high, color=colour, alpha=0.09, linewidth=0, zorder=0.5)
        for edge in (low, high):
            axes.fill_between(line["epsilon"], edge, edge, color=colour, alpha=0.6, linewidth=0.5 * thin(), zorder=0.6)


def has_band(rows: pd.DataFrame, column: str) -> bool:
    """Whether the table has an interval of a column."""
    ends = [f"{column}_low", f"{column}_high"]
    return set(ends) <= set(rows.columns) and bool(rows[ends].notna().all(axis=1).any())


def thin() -> float:
    """The width of a line that is not a policy's."""
    return 0.7 * float(rcParams["lines.linewidth"])

"""How losses vary between patients: 50 dots a policy, each for 2 of 100 patients."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from policies.arrays import FloatArray, IntArray
from policies.reference import Greedy
from policysim.figures.curves import checked, names_of, nonempty
from policysim.figures.layout import settle
from policysim.figures.looks import canvas, looks
from policysim.figures.ticks import thin
from policysim.question.answer import SizeName
from policysim.question.words import NEGLIGIBLE, rounded

NAME = "patient_losses"
# Losses are heavy-tailed: the axis has a number at 1, 2 and 5 times powers of ten, no more than this many.
MOST_EDGES = 12
# Dots side by side between two numbers of the axis.
ACROSS = {"page": 8, "column": 5, "slide": 10}
MOST_STRIPS = 6
NONE = "none"
Stacked: TypeAlias = tuple[IntArray, IntArray, IntArray]
# Between who loses nothing and who loses something, in widths of a bin.
APART = 0.4


def patient_losses(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """A quantile dotplot of the patients' losses, a strip for each policy.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.example_patients.patient_losses`: policy, quantile, loss. Each row is a
        dot. greedy is left out: losses are measured against it.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        A dot lies between those two numbers of the axis between which its loss is; who loses nothing stands apart.

    Raises
    ------
    ValueError
        For a table without these columns or rows.

    References
    ----------
    Kay, Kola, Hullman & Munson (2016), When (ish) is my bus? User-centered visualizations of uncertainty in everyday,
    mobile predictive systems, section 4 (quantile dotplots).
    """
    checked(table, NAME, ["policy", "quantile", "loss"])
    table = nonempty(table[table["policy"] != Greedy.name], NAME, "of a policy other than greedy")
    policies = names_of(table, "policy")
    colours = looks(policies)
    edges = bin_edges(table["loss"].to_numpy(dtype=np.float64))
    # Many strips are too low for a slide, unless they stand in two columns.
    columns = 2 if size == "slide" and len(policies) > MOST_STRIPS else 1
    across = ACROSS.get(size, 1) // columns
    strips = {name: table[table["policy"] == name].sort_values("quantile") for name in policies}
    stacks = {name: stack(rows["loss"].to_numpy(dtype=np.float64), edges, across) for name, rows in strips.items()}
    heights = [1 + int(rows.max()) for _, _, rows in stacks.values()]
    page, column = (sum(title + dot * rows for rows in heights) for title, dot in ((0.36, 0.085), (0.3, 0.062)))
    with canvas(size, page=(7.2, 1.0 + page), column=1.0 + column) as made:
        panels = _strips(made.figure, heights, columns)
        for axes, name in zip(panels, policies, strict=True):
            _frame(axes, edges)
            words = name if columns > 1 else f"{name}: {_in_words(strips[name])}"
            axes.set_title(words, loc="left", fontsize="medium")
        each = 100 / len(strips[policies[0]])
        for axes in {panels[-1], panels[-(-len(panels) // columns) - 1]}:
            axes.set_xlabel(f"utility loss of a patient: each dot is {each:g} of 100 patients")
            axes.tick_params(which="both", labelbottom=True)
        made.head("How losses vary between patients")
        settle(made)
        thin(panels[-1].xaxis)
        for axes, name in zip(panels, policies, strict=True):
            _dots(axes, name, stacks[name], across, colours[name].colour)
    return made.figure


def _strips(figure: Figure, heights: list[int], columns: int) -> list[Axes]:
    """One below the other, in columns, the first of which is filled first."""
    down = -(-len(heights) // columns)
    ratios = [max(heights[place::down]) for place in range(down)]
    grid = figure.subplots(down, columns, sharex=True, squeeze=False, height_ratios=ratios).T.ravel()
    for empty in grid[len(heights) :]:
        empty.remove()
    return list(grid[: len(heights)])


def bin_edges(losses: FloatArray) -> FloatArray:
    """Rising numbers, 1, 2 and 5 times powers of ten, of which the last is above all losses.

    The first is at most the smallest loss that is not nothing, or 0.
    """
    some = losses[losses > NEGLIGIBLE]
    if not some.size:
        return np.array([0.0, 1.0])
    lowest, highest = math.floor(math.log10(some.min())), math.ceil(math.log10(some.max())) + 1
    nice = np.array([float(f"{digit}e{power}") for power in range(lowest, highest + 1) for digit in (1, 2, 5)])
    last = int(np.searchsorted(nice, some.max(), side="right"))
    first = max(0, int(np.searchsorted(nice, some.min(), side="right")) - 1)
    if last + 1 - first <= MOST_EDGES:
        return nice[first : last + 1]
    return np.array([0.0, *nice[last + 2 - MOST_EDGES : last + 1]])


def stack(losses: FloatArray, edges: FloatArray, across: int) -> Stacked:
    """Where each dot lies: its bin (-1 for no loss), its place in a row of `across`, its row from below.

    Parameters
    ----------
    losses : array, (n,)
        Rising.
    edges : array
        Of the bins: a loss lies in [edges[bin], edges[bin + 1]).
    across : int
        Dots in a row.
    """
    bins = np.where(losses > NEGLIGIBLE, np.searchsorted(edges, losses, side="right") - 1, -1)
    before = np.arange(len(losses)) - np.searchsorted(bins, bins, side="left")
    return bins, before % across, before // across


def _in_words(rows: pd.DataFrame) -> str:
    half = rows.loc[rows["quantile"] >= 0.5, "loss"].min()
    last = rows.iloc[-1]
    worst = f"the worst-off {100 * (1 - last['quantile']):g} % lose {rounded(last['loss'])} or more"
    return f"half lose {rounded(half)} or less, {worst}"


def _frame(axes: Axes, edges: FloatArray) -> None:
    """An axis with a number at each edge; who loses nothing is at its left."""
    axes.set_xticks(range(len(edges)), labels=[f"{edge:,g}" for edge in edges])
    axes.set_xticks([-APART - 0.5], labels=[NONE], minor=True)
    axes.tick_params(axis="x", which="minor", length=0, pad=rcParams["xtick.major.size"] + rcParams["xtick.major.pad"])
    axes.set_xlim(-APART - 1, len(edges) - 1)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=True, axis="x")


def _dots(axes: Axes, name: str, stacked: Stacked, across: int, colour: str) -> None:
    """Dots that touch neither each other nor those of the next bin; the layout must be fixed."""
    bins, places, rows = stacked
    box = axes.get_window_extent()
    low, high = axes.get_xlim()
    width = box.width / (high - low)  # of a bin, pixels
    step = min(0.94 * width / across, box.height / (1 + rows.max()))
    left = np.where(bins < 0, -APART - 1, bins) + 0.5
    xs = left + (places - (across - 1) / 2) * step / width
    axes.set_ylim(0, box.height / step)
    look_of_dots = {"color": colour, "markersize": 0.84 * step * 72 / axes.figure.dpi, "markeredgewidth": 0}
    axes.add_line(Line2D(xs, rows + 0.5, linestyle="none", marker="o", label=name, **look_of_dots))

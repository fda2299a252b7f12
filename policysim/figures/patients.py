"""Single patients: what a policy gives to examples of them, and how losses vary between them, 50 dots a policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from policies.arrays import FloatArray, IntArray
from policies.reference import Greedy
from policysim.figures.curves import MOST_CURVES, NAMES_SHARE, checked, line_end, names_of, nonempty, sparse
from policysim.figures.layout import NAME as NAME_AT
from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import set_epsilon_axis, thin, widest_word
from policysim.figures.looks import Canvas, canvas, look_of_action, looks
from policysim.question.answer import SizeName
from policysim.question.words import NEGLIGIBLE, rounded

NAME = "action_probabilities"
# The most that long names may take of the width of a panel.
MOST_SHARE = 0.5
# Panels side by side.
MOST = {"page": 3, "column": 1, "slide": 3}
COLUMNS = ["policy", "epsilon", "patient", "action", "probability"]


def action_probabilities(
    table: pd.DataFrame, *, actions: Sequence[str] | None = None, size: SizeName = "page"
) -> Figure:
    """The probability of each action over epsilon under one policy, a panel for each patient.

    Parameters
    ----------
    table : DataFrame
        policy (one), epsilon, patient (in words), action, probability; rows with 0 < epsilon < inf are drawn.
    actions : sequence of str, optional
        Those to draw, however many; by default the seven that any of these patients gets with the highest probability.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several policies, or that lacks an action asked for.
    """
    checked(table, NAME, COLUMNS)
    policies = names_of(table, "policy")
    if len(policies) > 1:
        raise ValueError(f"{NAME} draws one policy, its table has {len(policies)}: {', '.join(policies)}.")
    rows = nonempty(table[(table["epsilon"] > 0) & (table["epsilon"] < float("inf"))], NAME, "with 0 < epsilon < inf")
    every, drawn = names_of(rows, "action"), _drawn(rows, actions)
    patients = names_of(rows, "patient")
    # Four stand better in two rows of two.
    across = min(MOST.get(size, 1), len(patients) if len(patients) != 4 else 2)
    down = -(-len(patients) // across)
    with canvas(size, page=(9.6 if across > 1 else 4.8, 0.4 + 2.5 * down), column=0.3 + 1.75 * down) as made:
        grid = list(made.figure.subplots(down, across, sharey=True, squeeze=False).flat)
        for empty in grid[len(patients) :]:
            empty.remove()
        grid = grid[: len(patients)]
        labels = [
            _panel(made, axes, rows[rows["patient"] == patient], drawn, width=made.width / across)
            for axes, patient in zip(grid, patients, strict=True)
        ]
        for place, axes in enumerate(grid):
            # What has nothing below it shows its numbers.
            bottom = place + across >= len(patients)
            axes.tick_params(labelbottom=bottom)
            some = f"\nDrawn: {len(drawn)} of {len(every)} actions." if len(drawn) < len(every) else ""
            axes.set_xlabel(f"ε (log scale){some}" if bottom else "")
            axes.set_ylabel("" if place % across else "probability")
        made.head(f"What these patients get under {policies[0]}")
        settle(made, labels)
    return made.figure


def _drawn(rows: pd.DataFrame, actions: Sequence[str] | None) -> dict[str, int]:
    """The actions to draw, with their places among all, by which they have their looks."""
    every = names_of(rows, "action")
    missing = [name for name in actions or () if name not in every]
    if missing:
        raise ValueError(f"no action {missing[0]!r} in the table; it has {', '.join(every)}.")
    likeliest = rows.groupby("action")["probability"].max()
    chosen = sorted(every, key=lambda name: -likeliest[name])[:MOST_CURVES] if actions is None else actions
    return {name: place for place, name in enumerate(every) if name in chosen}


def _panel(made: Canvas, axes: Axes, rows: pd.DataFrame, actions: Mapping[str, int], *, width: float) -> EndLabels:
    ends: list[LineEnd] = []
    for action, place in actions.items():
        line = rows[rows["action"] == action].sort_values("epsilon")
        drawn = look_of_action(place)
        axes.plot(line["epsilon"], line["probability"], label=action, **drawn, markevery=sparse(len(line), len(ends)))
        ends.append(line_end(action, line["epsilon"], line["probability"], drawn))
    set_epsilon_axis(axes, rows["epsilon"])
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    # So far above that signs which reach below the line of a title do not touch the markers at 100 %.
    axes.set_title(str(rows["patient"].iloc[0]), loc="left", fontsize="medium", pad=0.9 * made.font)
    return EndLabels(made, axes, ends, width=_room(made, [end.name for end in ends], width))


def _room(made: Canvas, names: list[str], width: float) -> float:
    """What the names may take of the width of a panel: more where a word of theirs needs it, points."""
    font = FontProperties(size=made.font, family=rcParams["font.family"])
    needed = NAME_AT * made.font + 1.01 * max(widest_word(name, font) for name in names)
    return min(max(NAMES_SHARE * width, needed), MOST_SHARE * width)


LOSSES = "patient_losses"
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
        From `policysim.study.example_patients.patient_losses`: policy, quantile, loss. Each row is a
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
    checked(table, LOSSES, ["policy", "quantile", "loss"])
    table = nonempty(table[table["policy"] != Greedy.name], LOSSES, "of a policy other than greedy")
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

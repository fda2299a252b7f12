"""What a policy does to 1,000 patients, a mark for each: better, as well, or worse than untreated, and extra deaths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from policysim.figures.curves import checked, nonempty
from policysim.figures.layout import settle
from policysim.figures.lettering import show_wrapped
from policysim.figures.looks import canvas
from policysim.question.answer import SizeName
from policysim.question.formats import of_thousand, rounded, tick
from policysim.question.words import ALL

NAME = "icon_array"
PATIENTS = 1000
ACROSS = {"page": 40, "column": 40, "slide": 50}
# The classes of the marks in their order: class on a page, words, colour, marker, its size in steps of the grid.
BETTER, SAME, WORSE, DIED = CLASSES = ("better", "same", "worse", "died")
WORDS = {
    BETTER: "score higher than untreated",
    SAME: "score the same as untreated",
    WORSE: "score lower than untreated",
    DIED: "die than under the best treatment for each (of any of the above)",
}
LOOKS = {
    BETTER: ("#0072B2", "o", 0.78),
    SAME: ("#8A8A8A", "o", 0.42),
    WORSE: ("#C84F00", "s", 0.7),
    DIED: ("#000000", "s", 0.9),
}
# Of the width, the words beside the marks.
LEGEND_SHARE = 0.4
# How the identifier of the group of all marks begins; a page makes 1,000 marks of it that a script can recolour.
ICONS_GID = "icons."


def icon_array(table: pd.DataFrame, *, policy: str, size: SizeName = "page") -> Figure:
    """1,000 patients as marks: who scores higher than untreated, the same, or lower; and extra deaths.

    Parameters
    ----------
    table : DataFrame
        From `compare`, at one epsilon: policy, epsilon, group, better_than_untreated, worse_than_untreated and, where
        deaths are counted, extra_deaths.
    policy : str
        The one that is drawn.
    size : {"page", "column", "slide"}
        What the figure is for. In a column the words stand below the marks.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns, of several epsilons, or without this policy.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "better_than_untreated", "worse_than_untreated"])
    everyone = table[(table["policy"] == policy) & (table["group"] == ALL)]
    rows = nonempty(everyone, NAME, f"of everyone under {policy}")
    if len(rows) > 1:
        shown = ", ".join(tick(value) for value in sorted(rows["epsilon"]))
        raise ValueError(f"{NAME} draws one epsilon, its table has several: {shown}.")
    row = rows.iloc[0]
    counts, extra = icon_counts(row), float(row.get("extra_deaths", math.nan))
    lines = 4 if math.isnan(extra) else 7
    with canvas(size, page=(8.2, 3.6), column=2.25 + 0.13 * lines) as made:
        axes = made.figure.subplots()
        axes.set_axis_off()
        across = ACROSS[size]
        axes.set_xlim(-0.5, across - 0.5)
        axes.set_ylim(PATIENTS / across - 0.5, -0.5)
        axes.set_aspect("equal", adjustable="box", anchor="NW")
        title = f"1,000 patients under {policy}, at ε = {tick(float(row['epsilon']))}"
        axes.set_title(title, loc="left", fontweight="bold", fontsize=1.1 * made.font)
        words = [f"{counts[name]:,} {WORDS[name]}" for name in (BETTER, SAME, WORSE)]
        if not math.isnan(extra):
            words.append(died_words(extra))
        handles = [Line2D([], [], **_look(name, 0.8 * made.font)) for name in CLASSES[: len(words)]]
        about: dict[str, Any] = {"frameon": False, "alignment": "left", "labelspacing": 0.9}
        about["loc"] = "outside lower left" if made.narrow else "outside right upper"
        legend = made.figure.legend(handles, words, **about)
        for text in legend.get_texts():
            show_wrapped(text, text.get_text(), (1.0 if made.narrow else LEGEND_SHARE) * made.width - 4 * made.font)
        settle(made)
        _draw(axes, counts, across)
    return made.figure


def died_words(extra: float) -> str:
    """How many of 1,000 patients die in addition, from the extra deaths per patient; or how many fewer."""
    return f"{rounded(PATIENTS * abs(extra))} {'fewer' if extra < 0 else 'more'} {WORDS[DIED]}"


def icon_counts(row: Mapping[Any, Any] | pd.Series) -> dict[str, int]:
    """How many of 1,000 patients are of each class, in the order of their marks.

    Of a row of a comparison: those better, as well and worse than untreated sum to 1,000 (`of_thousand`); those who die
    in addition are among them, and their marks are the last ones.
    """
    whole = of_thousand(float(row["better_than_untreated"]), float(row["worse_than_untreated"]))
    extra = float(row.get("extra_deaths", math.nan))
    died = 0 if math.isnan(extra) else min(PATIENTS, max(0, round(PATIENTS * extra)))
    return dict(zip(CLASSES, (*whole, died), strict=True))


def _look(name: str, step: float) -> dict[str, Any]:
    colour, marker, share = LOOKS[name]
    return {"color": colour, "marker": marker, "markersize": share * step, "markeredgewidth": 0, "linestyle": "none"}


def _draw(axes: Axes, counts: Mapping[str, int], across: int) -> None:
    """The marks, row by row, in the order of the classes; the layout must be fixed."""
    step = axes.get_window_extent().width / across * 72 / axes.figure.dpi
    ends = np.cumsum([counts[name] for name in (BETTER, SAME, WORSE)])
    alive = PATIENTS - counts[DIED]
    bounds = [0, *np.minimum(ends, alive).tolist(), PATIENTS]
    for name, first, end in zip(CLASSES, bounds, bounds[1:], strict=False):
        places = np.arange(first, end)
        if len(places):
            marks = Line2D(places % across, places // across, **_look(name, step), gid=ICONS_GID + name)
            axes.add_line(marks)

"""What a policy gives to single patients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import PercentFormatter

from policysim.figures.curves import MOST_CURVES, NAMES_SHARE, checked, line_end, names_of, nonempty, sparse
from policysim.figures.layout import NAME as NAME_AT
from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import set_epsilon_axis, widest_word
from policysim.figures.looks import Canvas, canvas, look_of_action
from policysim.question.answer import SizeName

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
    with canvas(
        size,
        page=(9.6 if across > 1 else 4.8, 0.4 + 2.5 * down),
        column=0.3 + max(1.75, 1.1 + 0.19 * len(drawn)) * down,
    ) as made:
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

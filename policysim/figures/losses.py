"""How losses vary between patients: from who loses least to who loses most, a line for each policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from policies.arrays import FloatArray
from policies.reference import Greedy
from policysim.figures.curves import NAMES_SHARE, checked, line_end, merged, names_of, nonempty, sparse
from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import MOST_TICKS, set_log_ticks, ticks_within
from policysim.figures.looks import as_line, canvas, is_level, label, looks
from policysim.question.answer import SizeName
from policysim.question.formats import NEGLIGIBLE, tick

NAME = "patient_losses"
# Losses below this share of the largest are drawn as none.
LEAST = 1e-4
# Where the axis begins, and who loses nothing is drawn, as a share of the least loss that is drawn.
FLOOR = 0.5


def patient_losses(table: pd.DataFrame, *, size: SizeName = "page") -> Figure:
    """The utility that patients lose, from who loses least to who loses most, a line for each policy.

    Parameters
    ----------
    table : DataFrame
        From `policysim.study.example_patients.patient_losses`: policy, quantile, loss. greedy is left out: losses are
        measured against it.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        The quantiles of the losses as steps, each at its value: patients who lose the same make a level piece. Who
        loses nothing is at the bottom.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, NAME, ["policy", "quantile", "loss"])
    table = nonempty(table[table["policy"] != Greedy.name], NAME, "of a policy other than greedy")
    policies = names_of(table, "policy")
    colours = looks(policies)
    low, high = _span(table["loss"].to_numpy(dtype=np.float64))
    height = max(4.2, 0.19 * len(policies) + 2.2)
    with canvas(size, page=(7.2, height), column=max(3.0, 0.31 * len(policies) + 1.2)) as made:
        axes = made.figure.subplots()
        ends: list[LineEnd] = []
        for name in policies:
            rows = table[table["policy"] == name].sort_values("quantile")
            losses = rows["loss"].to_numpy(dtype=np.float64)
            xs, ys = steps(np.where(losses < low, FLOOR * low, losses))
            drawn = as_line(name, colours[name], level=is_level(name))
            places: dict[str, Any] = {} if is_level(name) else {"markevery": sparse(len(xs), len(ends))}
            axes.plot(xs, ys, label=label(name), **drawn, **places)
            end = line_end(label(name), pd.Series(xs[-1:]), pd.Series(ys[-1:]), drawn)
            ends.append(
                LineEnd(end.name, end.x, end.y, float(np.log(ys).mean()), drawn, tuple(np.interp(GRID, xs, ys)))
            )
        _frame(axes, low, high)
        settle(made, [EndLabels(made, axes, merged(ends, log=True), width=NAMES_SHARE * made.width)])
    return made.figure


# Where lines are compared: of 100 patients.
GRID = np.linspace(0.5, 99.5, 100)


def _span(losses: FloatArray) -> tuple[float, float]:
    """The least and the largest loss that have a place on the axis."""
    some = losses[losses > NEGLIGIBLE]
    if not some.size:
        return 1.0, 2.0
    return max(float(some.min()), LEAST * float(some.max())), float(some.max())


def steps(losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The corners of the steps: of 100 patients in the order of their losses, and the losses, which rise.

    Examples
    --------
    >>> [values.tolist() for values in steps(np.array([1.0, 1.0, 3.0, 4.0]))]
    [[0.0, 50.0, 50.0, 75.0, 75.0, 100.0], [1.0, 1.0, 3.0, 3.0, 4.0, 4.0]]
    """
    starts = np.flatnonzero(np.r_[True, np.diff(losses) != 0])
    edges = 100 * np.r_[starts, len(losses)] / len(losses)
    return np.repeat(edges, 2)[1:-1], np.repeat(losses[starts], 2)


def _frame(axes: Axes, low: float, high: float) -> None:
    """A log axis of losses, at whose bottom stands what is none."""
    axes.set_yscale("log")
    axes.set_ylim(0.9 * FLOOR * low, 1.1 * high)
    set_log_ticks(axes.yaxis, low, high, most=MOST_TICKS)
    ticks = [place for place in ticks_within(low, high) if place in axes.get_yticks()]
    axes.set_yticks([FLOOR * low, *ticks], labels=["none", *(tick(place) for place in ticks)])
    axes.set_xlim(0, 100)
    axes.set_xlabel("of 100 patients, from who loses least to who loses most")
    axes.set_ylabel("utility that a patient loses (log scale)")
    axes.set_title("How losses vary between patients", loc="left", fontweight="bold")

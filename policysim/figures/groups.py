"""Who bears the loss: a panel for each policy, and in it a dot for each group of patients; forest plots of trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.markers import CARETLEFT, CARETRIGHT
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from policies.policy import Look
from policies.reference import Greedy
from policysim.figures.curves import checked, has_band, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.lettering import LINE_HEIGHT, LINE_SPACING, cut, wrapped
from policysim.figures.looks import GREY, Canvas, as_dot, canvas, label, looks
from policysim.question.answer import SizeName
from policysim.question.formats import NEGLIGIBLE, percent, tick
from policysim.question.words import ALL, in_a_row, level_name

NAME, FOREST = "loss_by_group", "forest"
# Of the width, the names of the groups may take this much, and lines each.
NAMES_SHARE = 0.3
MOST_LINES = {"page": 2, "column": 2, "slide": 1}
# Panels side by side.
ACROSS = {"page": 4, "column": 2, "slide": 4}
# So many rows are drawn, in all panels that stand below each other on a slide.
MOST_ROWS = 24
# The height of a row whose name has one line, and two, inches.
ROW = {"page": (0.2, 0.33), "column": (0.19, 0.25), "slide": (0.2, 0.33)}
# Features whose groups lose what everyone loses, to within this share of the largest loss, are told in words.
FLAT = 0.02
LOST = "utility lost per patient, against the best treatment for each"
BAND = "Bars: 95\u00a0% intervals of the estimates (sampling error)."
# An interval so many times as wide as the median one does not set the scale: it ends in an arrow.
WIDE = 5
GOES_ON = "An arrow at the edge: the interval goes on; its ends are among the numbers."


@dataclass(frozen=True)
class Multiples:
    """What is drawn in small multiples: the rows of the groups, from above, and what their dots show."""

    column: str
    title: str
    axis: str
    notes: tuple[str, ...]
    colours: Mapping[str, Look]
    edges: tuple[float, float] | None = None  # of the axis, if it does not show all intervals whole


def loss_by_group(table: pd.DataFrame, *, policies: Sequence[str] | None = None, size: SizeName = "page") -> Figure:
    """The utility loss per patient of each group, a panel for each policy; the groups that lose most stand above.

    Parameters
    ----------
    table : DataFrame
        From `compare` with `by`, at one epsilon: policy, epsilon, group, level, share, loss. greedy is left out: losses
        are measured against it. Features that make no difference (`flat_features`) are said in words; no more than
        24 groups are drawn.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        The dashed line of a panel is the loss of everyone, its large dot the group that loses most.

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several epsilons, or that lacks a policy asked for.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "level", "share", "loss"])
    _check_epsilon(table, NAME)
    rows = table[(table["policy"] != Greedy.name) & table["loss"].notna()]
    rows = nonempty(rows, NAME, "of a policy other than greedy with a loss")
    every = names_of(rows, "policy")
    names = telling(rows, policies=policies)
    rows = rows[rows["policy"].isin(names)]
    flat = flat_features(rows)
    kept = rows[~rows["group"].isin(flat)]
    mean = kept[kept["group"] != ALL].groupby(["group", "level"], sort=False)["loss"].mean()
    order = list(mean.sort_values(ascending=False, kind="stable").index)
    notes = (
        "Dashed: everyone. Large: the group that loses most.",
        flat_words(flat),
        undrawn(every, names),
    )
    about = Multiples(
        "loss",
        f"Who bears the loss, at ε = {tick(table['epsilon'].iloc[0])}",
        LOST,
        notes,
        looks(names_of(table, "policy")),
    )
    return _multiples(kept, names, order, about, size)


def flat_features(rows: pd.DataFrame) -> list[str]:
    """The features whose groups all lose what everyone loses, under each policy, to within 2 % of the largest loss.

    Where that is so of every feature, none is left out.

    Parameters
    ----------
    rows : DataFrame
        Of a comparison at one epsilon, with the rows of everyone: policy, group, loss.
    """
    everyone = rows[rows["group"] == ALL].set_index("policy")["loss"]
    groups = rows[rows["group"] != ALL]
    apart = (groups["loss"] - groups["policy"].map(everyone)).abs().groupby(groups["group"], sort=False).max()
    flat = [str(name) for name, most in apart.items() if most <= FLAT * float(rows["loss"].abs().max())]
    return flat if len(flat) < len(apart) else []


def flat_words(flat: Sequence[str]) -> str:
    """The sentence in place of the groups of flat features; "" if there are none."""
    if not flat:
        return ""
    names = in_a_row([name.replace("_", " ") for name in flat], "and")
    return f"Not drawn, as all lose what everyone loses, to within {percent(FLAT)} of the largest loss: {names}."


def forest(table: pd.DataFrame, *, policies: Sequence[str] | None = None, size: SizeName = "page") -> Figure:
    """What each policy gains over the best single treatment, of everyone and of each group, with 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        From the comparison of a log, at one epsilon: policy, epsilon, group, level, share, difference, difference_low,
        difference_high.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure
        A panel for each policy; the line at 0 is the best single treatment, the same reference in all of them.

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several epsilons, or that lacks a policy asked for.
    """
    needed = ["policy", "epsilon", "group", "level", "share", "difference", "difference_low", "difference_high"]
    checked(table, FOREST, needed)
    _check_epsilon(table, FOREST)
    rows = nonempty(table[table["difference"].notna()], FOREST, "with a difference")
    every = names_of(rows, "policy")
    names = telling(rows, policies=policies)
    rows = rows[rows["policy"].isin(names)]
    order = list(dict.fromkeys(zip(rows["group"], rows["level"], strict=True)))
    axis = "mean outcome, minus that of one treatment for all"
    edges = reach(rows, "difference")
    notes = (BAND, GOES_ON if edges else "", undrawn(every, names))
    title = f"Against one treatment for all, at ε = {tick(table['epsilon'].iloc[0])}"
    about = Multiples("difference", title, axis, notes, looks(names_of(table, "policy")), edges)
    return _multiples(rows, names, order, about, size)


def _check_epsilon(table: pd.DataFrame, figure: str) -> None:
    if table["epsilon"].nunique() > 1:
        shown = ", ".join(tick(value) for value in sorted(table["epsilon"].unique()))
        raise ValueError(f"{figure} draws one epsilon, its table has several: {shown}.")


def worst_groups(rows: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """The group that loses most under each policy, as group and level.

    Parameters
    ----------
    rows : DataFrame
        policy, group, level, loss; everyone does not count, nor a policy under which nobody loses anything.
    """
    found = {}
    for name, of_policy in rows[rows["group"] != ALL].groupby("policy", sort=False):
        worst = of_policy.iloc[int(of_policy["loss"].to_numpy().argmax())]
        if worst["loss"] > NEGLIGIBLE:
            found[str(name)] = (str(worst["group"]), str(worst["level"]))
    return found


def _multiples(
    rows: pd.DataFrame,
    names: Sequence[str],
    order: Sequence[tuple[str, str]],
    about: Multiples,
    size: SizeName,
) -> Figure:
    colours = about.colours
    down = -(-len(names) // ACROSS.get(size, 1))
    across = -(-len(names) // down)
    left_out = len(order)
    order = order[: MOST_ROWS // down if size == "slide" else MOST_ROWS]
    left_out -= len(order)
    wide = 9.6 if across > 2 else 7.2
    # Whether names need two lines is known once they are measured, and they have to be for the height.
    with canvas(size, page=(wide, 1), column=1) as made:
        labels = _labels(made, order, rows)
    row = ROW[made.size][any("\n" in words for words in labels)]
    high = down * (0.62 + row * max(len(order), 2)) + 1.1
    with canvas(size, page=(wide, high), column=high + 0.4) as made:
        grid = list(made.figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
        for empty in grid[len(names) :]:
            empty.remove()
        panels = grid[: len(names)]
        places = {key: place for place, key in enumerate(order)}
        for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
            look = as_dot(name, colours[name])
            _panel(axes, rows[rows["policy"] == name], places, look, about)
            axes.xaxis.set_major_locator(MaxNLocator(2 if made.narrow else 4, min_n_ticks=2))
            axes.set_title(label(name), loc="left", fontsize="medium", fontweight="bold", gid=look["gid"])
            axes.tick_params(labelbottom=place + across >= len(names), length=0, axis="x")
        if about.edges:
            panels[0].set_xlim(about.edges)
        panels[0].set_yticks(range(len(labels)), labels=labels, linespacing=LINE_SPACING)
        made.head(about.title)
        missing = f"{left_out} more groups are in the table, and not drawn." if left_out else ""
        said = [about.axis, *filter(None, [*about.notes, missing])]
        font = FontProperties(size=made.font, family=rcParams["font.family"])
        words = "\n".join(wrapped(line, 0.95 * made.width, font) for line in said)
        made.figure.supxlabel(words, x=0.01, ha="left", fontproperties=font, linespacing=LINE_SPACING)
        settle(made)
        _fit(made, panels, len(order))
    return made.figure


def reach(rows: pd.DataFrame, column: str) -> tuple[float, float] | None:
    """The ends of the axis where single intervals are far wider than most; None where all are to be seen whole."""
    low, high = rows[f"{column}_low"], rows[f"{column}_high"]
    widths = high - low
    wide = widths > WIDE * widths[widths > 0].median()
    if not wide.any():
        return None
    ends = pd.concat([low[~wide], high[~wide], rows[column], pd.Series([0.0])]).dropna()
    room = 0.05 * (ends.max() - ends.min())
    return float(ends.min() - room), float(ends.max() + room)


def _panel(
    axes: Axes,
    rows: pd.DataFrame,
    places: Mapping[tuple[str, str], int],
    look: dict[str, Any],
    about: Multiples,
) -> None:
    """The dots of one policy, a row for each group."""
    keys = list(zip(rows["group"], rows["level"], strict=True))
    shown = rows[[key in places for key in keys]]
    heights = [places[key] for key in keys if key in places]
    for stripe in range(0, len(places), 2):
        axes.axhspan(stripe - 0.5, stripe + 0.5, color="#F3F3F3", linewidth=0, zorder=0)
    banded = has_band(shown, about.column)
    everyone = rows.loc[rows["group"] == ALL, about.column]
    if not banded and len(everyone):
        line = {"color": look["color"], "gid": look["gid"], "linestyle": "dashed", "linewidth": thin()}
        axes.axvline(float(everyone.iloc[0]), **line, zorder=1)
    if banded:
        low, high = (shown[f"{about.column}_{end}"].to_numpy() for end in ("low", "high"))
        if about.edges:
            _arrows(axes, heights, (low, high), about.edges, look)
            low, high = np.maximum(low, about.edges[0]), np.minimum(high, about.edges[1])
        axes.hlines(heights, low, high, color=look["color"], gid=look["gid"], linewidth=thin())
    axes.axvline(0, color=GREY, linewidth=thin(), zorder=1)
    axes.plot(shown[about.column], heights, label=str(rows["policy"].iloc[0]), **look)
    worst = {} if banded else worst_groups(rows)
    for name, key in worst.items():
        if key in places:
            at = float(shown.loc[[key == other for other in keys if other in places], about.column].iloc[0])
            large = 1.7 * float(rcParams["lines.markersize"])
            axes.plot(at, places[key], **{**look, "markersize": large}, label=f"_worst under {name}")
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}".replace("-", "−")))
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _arrows(
    axes: Axes,
    heights: Sequence[int],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    edges: tuple[float, float],
    look: dict[str, Any],
) -> None:
    """At the edges of a panel, a mark for each interval that goes on beyond."""
    beyond = (ends[0] < edges[0], ends[1] > edges[1])
    for edge, marker, rows in zip(edges, (CARETLEFT, CARETRIGHT), beyond, strict=True):
        at = [height for height, goes_on in zip(heights, rows, strict=True) if goes_on]
        if at:
            axes.plot([edge] * len(at), at, label="_goes on", **{**look, "marker": marker, "clip_on": False})


def _labels(made: Canvas, order: Sequence[tuple[str, str]], rows: pd.DataFrame) -> list[str]:
    """The names of the rows, in lines."""
    shares = {(group, level): share for group, level, share in rows[["group", "level", "share"]].to_numpy().tolist()}
    font = FontProperties(size=made.font, family=rcParams["font.family"])
    names = [
        "everyone" if group == ALL else f"{level_name(group, level)} ({_share(shares[(group, level)])})"
        for group, level in order
    ]
    return [cut(wrapped(name, NAMES_SHARE * made.width, font), MOST_LINES[made.size]) for name in names]


def _share(share: float) -> str:
    """A share of the patients in per cent; what is not none is not called 0\u00a0%."""
    return "<\u00a01\u00a0%" if 0 < share < 0.005 else percent(share)


def _fit(made: Canvas, panels: Sequence[Axes], n_rows: int) -> None:
    """Smaller names and dots where a row is too low for them; the figure must have been laid out."""
    row = panels[0].get_window_extent().height / made.figure.dpi * 72 / max(n_rows, 1)
    texts = panels[0].get_yticklabels()
    lines = max((text.get_text().count("\n") + 1 for text in texts), default=1)
    size = min(made.font, 0.98 * row / (LINE_HEIGHT + LINE_SPACING * (lines - 1)))
    for axes in panels:
        axes.tick_params(axis="y", labelsize=size)
        for dots in axes.get_lines():
            dots.set_markersize(min(float(dots.get_markersize()), 0.8 * row))

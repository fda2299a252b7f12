"""Who bears the loss, and who gets what: groups of patients, all of them in a row, and single ones; forest plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.markers import CARETLEFT, CARETRIGHT
from matplotlib.ticker import MaxNLocator, PercentFormatter

from policies.arrays import FloatArray
from policies.reference import Greedy
from policysim.figures.curves import (
    MOST_CURVES,
    NAMES_SHARE,
    at_one_epsilon,
    checked,
    has_band,
    line_end,
    merged,
    names_of,
    nonempty,
    sparse,
    telling,
    thin,
    undrawn,
)
from policysim.figures.layout import NAME as NAME_AT
from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import (
    LINE_HEIGHT,
    LINE_SPACING,
    MOST_TICKS,
    set_epsilon_axis,
    set_log_ticks,
    set_numbers,
    ticks_within,
    widest_word,
    wrapped,
)
from policysim.figures.looks import (
    GREY,
    Canvas,
    Paper,
    as_dot,
    as_line,
    canvas,
    difference_axis,
    is_level,
    label,
    list_rows,
    look_of_action,
    looks,
    side_by_side,
    size_of,
)
from policysim.numbers import NEGLIGIBLE, percent, tick
from policysim.words import ALL, SizeName, in_a_row, level_name

GROUPS, FOREST, ACTIONS = "loss_by_group", "forest", "action_probabilities"
# Of the width, the names of the groups may take this much, and lines each.
GROUPS_SHARE = 0.3
MOST_LINES = {"page": 2, "column": 2, "slide": 1}
# Panels side by side.
ACROSS = {"page": 4, "column": 2, "slide": 4}
# So many rows are drawn, in all panels that stand below each other on a slide.
MOST_ROWS = 24
# The height of a row whose name has one line, and two, inches.
ROW = {"page": (0.2, 0.33), "column": (0.19, 0.25), "slide": (0.2, 0.33)}
# Features whose groups lose what everyone loses, to within this share of the largest loss, are named in a line of text.
FLAT = 0.02
LOST = "utility lost per patient, against the best treatment for each"
BAND = "Bars: 95\u00a0% intervals of the estimates (sampling error)."
# An interval so many times as wide as the median one does not set the scale: it ends in an arrow.
WIDE = 5
GOES_ON = "An arrow at the edge: the interval goes on; its ends are among the numbers."


def loss_by_group(table: pd.DataFrame, *, policies: Sequence[str] | None = None, **paper: Unpack[Paper]) -> Figure:
    """The utility loss per patient of each group, a panel for each policy; the groups that lose most stand above.

    Parameters
    ----------
    table : DataFrame
        From `compare` with `by`, at one epsilon: policy, epsilon, group, level, share, loss. greedy is left out: losses
        are measured against it. Features that make no difference (`flat_features`) are said in words; no more than
        24 groups are drawn.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        The dashed line of a panel is the loss of everyone, its large dot the group that loses most.

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several epsilons, or that lacks a policy asked for.
    """
    checked(table, GROUPS, ["policy", "epsilon", "group", "level", "share", "loss"])
    at_one_epsilon(table, GROUPS)
    rows = table[(table["policy"] != Greedy.name) & table["loss"].notna()]
    rows = nonempty(rows, GROUPS, "of a policy other than greedy with a loss")
    every = names_of(rows, "policy")
    names = telling(rows, policies=policies)
    rows = rows[rows["policy"].isin(names)]
    flat = flat_features(rows)
    kept = rows[~rows["group"].isin(flat)]
    mean = kept[kept["group"] != ALL].groupby(["group", "level"], sort=False)["loss"].mean()
    order = list(mean.sort_values(ascending=False, kind="stable").index)
    same = ""
    if flat:
        flat_names = in_a_row([name.replace("_", " ") for name in flat], "and")
        same = (
            f"Not drawn, because all levels lose the same, to within {percent(FLAT)} of the largest loss: {flat_names}."
        )
    notes = ("Dashed: everyone. Large: the group that loses most.", same, undrawn(every, names, policies))
    return _multiples(
        table, kept, order, "loss", paper, names=names, title="Who bears the loss", axis=LOST, notes=notes
    )


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


def forest(table: pd.DataFrame, *, policies: Sequence[str] | None = None, **paper: Unpack[Paper]) -> Figure:
    """What each policy gains over the best single treatment, of everyone and of each group, with 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        From the comparison of a log, at one epsilon: policy, epsilon, group, level, share, difference, difference_low,
        difference_high.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        A panel for each policy; the line at 0 is the best single treatment, the same reference in all of them.

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several epsilons, or that lacks a policy asked for.
    """
    needed = ["policy", "epsilon", "group", "level", "share", "difference", "difference_low", "difference_high"]
    checked(table, FOREST, needed)
    at_one_epsilon(table, FOREST)
    rows = nonempty(table[table["difference"].notna()], FOREST, "with a difference")
    every = names_of(rows, "policy")
    names = telling(rows, policies=policies)
    rows = rows[rows["policy"].isin(names)]
    order = list(dict.fromkeys(zip(rows["group"], rows["level"], strict=True)))
    edges = reach(rows, "difference")
    notes = (BAND, GOES_ON if edges else "", undrawn(every, names, policies))
    title, axis = "Against one treatment for all", difference_axis(list(table))
    return _multiples(
        table, rows, order, "difference", paper, names=names, title=title, axis=axis, notes=notes, edges=edges
    )


def _multiples(
    table: pd.DataFrame,
    rows: pd.DataFrame,
    order: Sequence[tuple[str, str]],
    column: str,
    paper: Paper,
    *,
    names: Sequence[str],
    title: str,
    axis: str,
    notes: Sequence[str],
    edges: tuple[float, float] | None = None,
) -> Figure:
    """A panel for each policy, a row for each group from above; edges are the axis's if it does not show all whole.

    Of the `table`, which is of one epsilon, only these `rows` are drawn.
    """
    size, colours = size_of(**paper), looks(names_of(table, "policy"))
    down = -(-len(names) // ACROSS[size])
    across = -(-len(names) // down)
    shares = {(group, level): share for group, level, share in rows[["group", "level", "share"]].to_numpy().tolist()}
    with canvas(page=(9.6 if across > 2 else 7.2, 1), column=1, **paper) as made:
        fitting = ((made.highest - 1.5) / down - 0.62) / ROW[size][1]
        most = MOST_ROWS // down if size == "slide" else int(min(MOST_ROWS, max(fitting, 1)))
        left_out, order = len(order[most:]), order[:most]
        # Names with the share of the patients. Whether they need two lines is known once they are measured, and they
        # have to be for the height.
        labels = []
        for group, level in order:
            share = shares[(group, level)]
            # What is not none is not called 0 %.
            of_all = "<\u00a01\u00a0%" if 0 < share < 0.005 else percent(share)
            name = "everyone" if group == ALL else f"{level_name(group, level)} ({of_all})"
            labels.append(made.lines(name, GROUPS_SHARE * made.width, MOST_LINES[made.size]))
        row = ROW[made.size][any("\n" in words for words in labels)]
        made.set_height(down * (0.62 + row * max(len(order), 2)) + 1.1 + (0.4 if made.narrow else 0))
        panels = made.panels(len(names), across, sharex=True, sharey=True)
        places = {key: place for place, key in enumerate(order)}
        for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
            look = as_dot(name, colours[name])
            _panel(axes, rows[rows["policy"] == name], places, look, column, edges=edges)
            axes.xaxis.set_major_locator(MaxNLocator(2 if made.narrow else 4, min_n_ticks=2))
            axes.set_title(label(name), loc="left", fontsize="medium", gid=look["gid"])
            axes.tick_params(labelbottom=bool(made.given) or place + across >= len(names), length=0, axis="x")
        if edges:
            panels[0].set_xlim(edges)
        for axes in panels if made.given else ():
            axes.set_xlabel(axis)
        panels[0].set_yticks(range(len(labels)), labels=labels, linespacing=LINE_SPACING)
        made.head(f"{title}, at ε = {tick(table['epsilon'].iloc[0])}")
        missing = f"{left_out} more groups are in the table, and not drawn." if left_out else ""
        said = made.below(axis, *notes, missing).split("\n")
        font = FontProperties(size=made.font, family=rcParams["font.family"])
        words = "\n".join(wrapped(line, 0.95 * made.width, font) for line in said)
        if not made.given:
            made.figure.supxlabel(words, x=0.01, ha="left", fontproperties=font, linespacing=LINE_SPACING)
        settle(made)
        _fit(made, panels, len(order))
    return made.drawn


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
    column: str,
    *,
    edges: tuple[float, float] | None,
) -> None:
    """The dots of one policy, a row for each group."""
    keys = list(zip(rows["group"], rows["level"], strict=True))
    shown = rows[[key in places for key in keys]]
    heights = [places[key] for key in keys if key in places]
    for stripe in range(0, len(places), 2):
        axes.axhspan(stripe - 0.5, stripe + 0.5, color="#F3F3F3", linewidth=0, zorder=0)
    banded = has_band(shown, column)
    everyone = rows.loc[rows["group"] == ALL, column]
    if not banded and len(everyone):
        line = {"color": look["color"], "gid": look["gid"], "linestyle": "dashed", "linewidth": thin()}
        axes.axvline(float(everyone.iloc[0]), **line, zorder=1)
    if banded:
        low, high = (shown[f"{column}_{end}"].to_numpy() for end in ("low", "high"))
        if edges:
            # A mark at the edge for each interval that goes on beyond it.
            beyond = (low < edges[0], high > edges[1])
            for edge, marker, goes_on in zip(edges, (CARETLEFT, CARETRIGHT), beyond, strict=True):
                arrows = np.array(heights)[goes_on]
                if len(arrows):
                    drawn = {**look, "marker": marker, "clip_on": False}
                    axes.plot([edge] * len(arrows), arrows, label="_goes on", **drawn)
            low, high = np.maximum(low, edges[0]), np.minimum(high, edges[1])
        axes.hlines(heights, low, high, color=look["color"], gid=look["gid"], linewidth=thin())
    axes.axvline(0, color=GREY, linewidth=thin(), zorder=1)
    axes.plot(shown[column], heights, label=str(rows["policy"].iloc[0]), **look)
    groups = rows[rows["group"] != ALL]
    if not banded and len(groups):
        # The group that loses most, if anybody loses anything.
        worst = groups.iloc[int(groups["loss"].to_numpy().argmax())]
        key = (worst["group"], worst["level"])
        if worst["loss"] > NEGLIGIBLE and key in places:
            large = 1.7 * float(rcParams["lines.markersize"])
            axes.plot(worst[column], places[key], **{**look, "markersize": large}, label="_worst")
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    set_numbers(axes.xaxis)
    list_rows(axes)


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


# Losses below this share of the largest are drawn as none.
LEAST = 1e-4
# Where the axis begins, and who loses nothing is drawn, as a share of the least loss that is drawn.
FLOOR = 0.5
# Where lines are compared: of 100 patients.
GRID = np.linspace(0.5, 99.5, 100)


def patient_losses(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """The utility that patients lose, from who loses least to who loses most, a line for each policy.

    Parameters
    ----------
    table : DataFrame
        From `policysim.study.example_patients.loss_quantiles`: policy, quantile, loss. greedy is left out: losses are
        measured against it.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        The quantiles of the losses as steps, each at its value: patients who lose the same make a level piece. Who
        loses nothing is at the bottom.

    Raises
    ------
    ValueError
        For a table without these columns or rows.
    """
    checked(table, "patient_losses", ["policy", "quantile", "loss"])
    table = nonempty(table[table["policy"] != Greedy.name], "patient_losses", "of a policy other than greedy")
    policies = names_of(table, "policy")
    colours = looks(policies)
    # The least and the largest loss that have a place on the axis.
    some = table.loc[table["loss"] > NEGLIGIBLE, "loss"].astype(float)
    high = float(some.max()) if len(some) else 2.0
    low = max(float(some.min()), LEAST * high) if len(some) else 1.0
    height = max(4.2, 0.19 * len(policies) + 2.2)
    with canvas(page=(7.2, height), column=max(3.0, 0.31 * len(policies) + 1.2), **paper) as made:
        (axes,) = made.panels()
        ends: list[LineEnd] = []
        for name in policies:
            rows = table[table["policy"] == name].sort_values("quantile")
            losses = rows["loss"].to_numpy(dtype=np.float64)
            xs, ys = steps(np.where(losses < low, FLOOR * low, losses))
            drawn = as_line(name, colours[name], level=is_level(name))
            places: dict[str, Any] = {} if is_level(name) else {"markevery": sparse(len(xs), len(ends))}
            axes.plot(xs, ys, label=label(name), **drawn, **places)
            values = tuple(np.interp(GRID, xs, ys))
            ends.append(LineEnd(label(name), float(xs[-1]), float(ys[-1]), float(np.log(ys).mean()), drawn, values))
        # At the bottom of the log axis stands what is none.
        axes.set_yscale("log")
        axes.set_ylim(0.9 * FLOOR * low, 1.1 * high)
        set_log_ticks(axes.yaxis, low, high, most=MOST_TICKS)
        ticks = [place for place in ticks_within(low, high) if place in axes.get_yticks()]
        axes.set_yticks([FLOOR * low, *ticks], labels=["none", *(tick(place) for place in ticks)])
        axes.set_xlim(0, 100)
        made.name(
            axes,
            "How losses vary between patients",
            "of 100 patients, from who loses least to who loses most",
            "utility that a patient loses (log scale)",
        )
        settle(made, [EndLabels(made, axes, merged(ends, log=True), width=NAMES_SHARE * made.width)])
    return made.drawn


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


# The most that long names may take of the width of a panel.
MOST_SHARE = 0.5
COLUMNS = ["policy", "epsilon", "patient", "action", "probability"]


def action_probabilities(
    table: pd.DataFrame, *, actions: Sequence[str] | None = None, **paper: Unpack[Paper]
) -> Figure:
    """The probability of each action over epsilon under one policy, a panel for each patient.

    Parameters
    ----------
    table : DataFrame
        policy (one), epsilon, patient (in words), action, probability; rows with 0 < epsilon < inf are drawn.
    actions : sequence of str, optional
        Those to draw, however many; by default the seven that any of these patients gets with the highest probability.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several policies, or that lacks an action asked for.
    """
    checked(table, ACTIONS, COLUMNS)
    policies = names_of(table, "policy")
    if len(policies) > 1:
        raise ValueError(f"{ACTIONS} draws one policy, its table has {len(policies)}: {', '.join(policies)}.")
    finite = table[table["epsilon"].between(0, math.inf, inclusive="neither")]
    rows = nonempty(finite, ACTIONS, "with 0 < epsilon < inf")
    every, drawn = names_of(rows, "action"), _drawn(rows, actions)
    patients = names_of(rows, "patient")
    # Four stand better in two rows of two.
    across = side_by_side(len(patients), 2 if len(patients) == 4 else 3, **paper)
    down = -(-len(patients) // across)
    with canvas(
        page=(9.6 if across > 1 else 4.8, 0.4 + 2.5 * down),
        column=0.3 + max(1.75, 1.1 + 0.19 * len(drawn)) * down,
        **paper,
    ) as made:
        grid = made.panels(len(patients), across, sharey=True)
        left_out = len(drawn) < len(every) and actions is None
        some = f"Drawn: {len(drawn)} of {len(every)} actions." if left_out else ""
        labels = [
            _patient_panel(made, axes, rows[rows["patient"] == patient], drawn, width=made.width / across)
            for axes, patient in zip(grid, patients, strict=True)
        ]
        for place, axes in enumerate(grid):
            # What has nothing below it shows its numbers.
            bottom = place + across >= len(patients) or bool(made.given)
            axes.tick_params(labelbottom=bottom)
            axes.set_xlabel(made.below("ε (log scale)", some) if bottom else "")
            axes.set_ylabel("" if place % across else "probability")
        made.head(f"What these patients get under {policies[0]}")
        settle(made, labels)
    return made.drawn


def _drawn(rows: pd.DataFrame, actions: Sequence[str] | None) -> dict[str, int]:
    """The actions to draw, with their places among all, by which they have their looks."""
    every = names_of(rows, "action")
    missing = [name for name in actions or () if name not in every]
    if missing:
        raise ValueError(f"no action {missing[0]!r} in the table; it has {', '.join(every)}.")
    likeliest = rows.groupby("action")["probability"].max()
    chosen = sorted(every, key=lambda name: -likeliest[name])[:MOST_CURVES] if actions is None else actions
    return {name: place for place, name in enumerate(every) if name in chosen}


def _patient_panel(
    made: Canvas, axes: Axes, rows: pd.DataFrame, actions: Mapping[str, int], *, width: float
) -> EndLabels:
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
    patient = str(rows["patient"].iloc[0])
    axes.set_title(patient, loc="left", fontsize="medium", fontweight="normal", pad=0.9 * made.font)
    # More of the width of a panel where a word of the names needs it, points.
    font = FontProperties(size=made.font, family=rcParams["font.family"])
    needed = NAME_AT * made.font + 1.01 * max(widest_word(end.name, font) for end in ends)
    return EndLabels(made, axes, ends, width=min(max(NAMES_SHARE * width, needed), MOST_SHARE * width))


# So many markers has a line of an arm.
MARKERS_PER_LINE = 8


def line_by_arm(
    table: pd.DataFrame, along: str, *, title: str, axis_titles: tuple[str, str], size: SizeName = "page"
) -> Figure:
    """A number along another, a line for each arm.

    Parameters
    ----------
    table : DataFrame
        Columns line (the arm), value, and the other number; if the value has an interval low and high, bars show it,
        and on a grey line both numbers are equal.
    along : str
        The column of the other number.
    title, axis_titles : str, tuple of str
        Of the figure, and of its axes: along, and up.
    size : {"page", "column", "slide"}
        What the figure is for.
    """
    names = names_of(table, "line")
    with canvas(size=size, page=(6.8, 4.2), column=0.72 * 4.2 + 0.9) as made:
        (axes,) = made.panels()
        for place, name in enumerate(names):
            rows = table[table["line"] == name]
            every = max(1, len(rows) // MARKERS_PER_LINE)
            look = look_of_action(place)
            axes.plot(rows[along], rows["value"], label=name, markevery=every, **look, zorder=3)
            if "low" in rows:
                axes.vlines(rows[along], rows["low"], rows["high"], color=look["color"], linewidth=0.8)
        if "low" in table:
            ends = [table[along].min(), table[along].max()]
            axes.plot(ends, ends, color=GREY, linewidth=0.8, zorder=1)
        set_numbers(axes.yaxis, ".4g")
        axes.set_title(title, loc="left")
        axes.set(xlabel=axis_titles[0], ylabel=axis_titles[1])
        if len(names) > 1:
            columns = 1 if made.narrow else 2
            made.legend(width=0.9 * made.width / columns - 4 * made.font, ncols=columns, below=True)
        settle(made)
    return made.figure

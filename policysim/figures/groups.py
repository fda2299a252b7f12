"""Who bears the loss: a row for each group of patients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from policies.policy import Look
from policies.reference import Greedy
from policysim.figures.curves import checked, has_band, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.lettering import LINE_HEIGHT, LINE_SPACING, plain, show_wrapped, wrapped
from policysim.figures.looks import GREY, Canvas, as_dot, canvas, looks
from policysim.question.answer import SizeName
from policysim.question.words import ALL, NEGLIGIBLE, level_name, percent

NAME = "loss_by_group"
# Of the width, the names of the groups may take this much.
NAMES_SHARE = 0.34
# And the names of the policies this much: one column of them at the right, or two below.
LEGEND_SHARE = (0.24, 0.38)
AXIS = "utility loss per patient, against the best treatment for each"
BAND = "Bars: 95 % intervals of the estimates (sampling error)."


def loss_by_group(table: pd.DataFrame, *, policies: Sequence[str] | None = None, size: SizeName = "page") -> Figure:
    """The utility loss per patient of each group, a dot per policy; the worst-off group is said in words.

    Parameters
    ----------
    table : DataFrame
        From `compare` with `by`, at one epsilon: policy, epsilon, group, level, share, loss. Where there are loss_low
        and loss_high, they are drawn as bars. greedy is left out: losses are measured against it.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns or rows, of several epsilons, or that lacks a policy asked for.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "level", "share", "loss"])
    if table["epsilon"].nunique() > 1:
        shown = ", ".join(plain(value) for value in sorted(table["epsilon"].unique()))
        raise ValueError(f"{NAME} draws one epsilon, its table has several: {shown}.")
    rows = table[(table["policy"] != Greedy.name) & table["loss"].notna()]
    rows = nonempty(rows, NAME, "of a policy other than greedy with a loss")
    every = names_of(rows, "policy")
    names = telling(rows, policies=policies)
    rows = rows[rows["policy"].isin(names)]
    groups = rows.drop_duplicates(["group", "level"])
    lane = 0.055 * len(names) + 0.12
    page, column = max(0.5, lane) * len(groups), max(0.47, 0.8 * lane) * len(groups)
    with canvas(size, page=(7.8, 1.1 + page), column=1.2 + column + 0.07 * len(names)) as made:
        axes = made.figure.subplots()
        _draw_dots(axes, rows, groups, names, looks(names_of(table, "policy")))
        _name_groups(made, axes, groups, rows)
        made.head(f"Who bears the loss, at ε = {plain(table['epsilon'].iloc[0])}")
        said = [AXIS, *([BAND] if has_band(rows, "loss") else []), undrawn(every, names)]
        axes.set_xlabel("\n".join(filter(None, said)))
        about = {"frameon": False, "title": "In each row, from above:", "alignment": "left"}
        if made.narrow:
            legend = made.figure.legend(loc="outside lower center", ncols=2, **about)
        else:
            legend = made.figure.legend(loc="outside right upper", **about)
        for text in legend.get_texts():
            show_wrapped(text, text.get_text(), LEGEND_SHARE[made.narrow] * made.width)
        settle(made)
        _fit(made, axes, len(groups), len(names))
    return made.figure


def worst_groups(rows: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """The group that loses most under each policy: group and level, and the policies.

    Parameters
    ----------
    rows : DataFrame
        policy, group, level, loss; everyone does not count, nor a policy under which nobody loses anything.
    """
    found: dict[tuple[str, str], list[str]] = {}
    grouped = rows[rows["group"] != ALL]
    for name, of_policy in grouped.groupby("policy", sort=False):
        worst = of_policy.iloc[int(of_policy["loss"].to_numpy().argmax())]
        if worst["loss"] > NEGLIGIBLE:
            found.setdefault((str(worst["group"]), str(worst["level"])), []).append(str(name))
    return found


def _draw_dots(
    axes: Axes, rows: pd.DataFrame, groups: pd.DataFrame, policies: list[str], colours: Mapping[str, Look]
) -> None:
    """A row for each group, from above, and in it a lane for each policy."""
    lanes = np.linspace(-0.32, 0.32, len(policies)) if len(policies) > 1 else np.zeros(1)
    place = {key: i for i, key in enumerate(zip(groups["group"], groups["level"], strict=True))}
    for name, lane in zip(policies, lanes, strict=True):
        dots = rows[rows["policy"] == name]
        heights = [place[key] + lane for key in zip(dots["group"], dots["level"], strict=True)]
        drawn = as_dot(name, colours[name])
        if has_band(dots, "loss"):
            axes.hlines(heights, dots["loss_low"], dots["loss_high"], color=drawn["color"], linewidth=thin())
        axes.plot(dots["loss"], heights, label=name, **drawn)
    for i in range(0, len(place), 2):
        axes.axhspan(i - 0.5, i + 0.5, color="#F3F3F3", zorder=0)
    axes.axvline(0, color=GREY, linewidth=thin(), zorder=1)
    axes.set_ylim(len(place) - 0.5, -0.5)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0] if has_band(rows, "loss") else 0.0))
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _name_groups(made: Canvas, axes: Axes, groups: pd.DataFrame, rows: pd.DataFrame) -> None:
    worst, policies = worst_groups(rows), names_of(rows[rows["group"] != ALL], "policy")
    # With sampling error, who is worst off is an estimate too.
    mark = "largest estimate under" if has_band(rows, "loss") else "worst off under"
    font = FontProperties(size=made.font, family=rcParams["font.family"])
    names = []
    for group, level, share in zip(groups["group"], groups["level"], groups["share"], strict=True):
        everyone = group == ALL
        name = "everyone (100 % of patients)" if everyone else f"{level_name(group, level)} ({percent(share)})"
        of = worst.get((group, level), [])
        words = f"{name}\n{mark} {_listed(of, policies)}" if of else name
        names.append(wrapped(words, NAMES_SHARE * made.width, font))
    axes.set_yticks(range(len(names)), labels=names, linespacing=LINE_SPACING)


def _listed(names: Sequence[str], all_names: Sequence[str]) -> str:
    """Some of the policies, or all but some, whichever is shorter."""
    others = [name for name in all_names if name not in names]
    if len(names) > 1 and not others:
        return "every policy"
    return ", ".join(names) if len(names) <= len(others) + 1 else f"all but {', '.join(others)}"


def _fit(made: Canvas, axes: Axes, n_groups: int, n_policies: int) -> None:
    """Smaller names and dots where a row is too low for them; the figure must have been laid out."""
    row = axes.get_window_extent().height / made.figure.dpi * 72 / n_groups
    texts = axes.get_yticklabels()
    lines = max(text.get_text().count("\n") + 1 for text in texts)
    axes.tick_params(axis="y", labelsize=min(made.font, 0.98 * row / (LINE_HEIGHT + LINE_SPACING * (lines - 1))))
    for dots in axes.get_lines():
        dots.set_markersize(min(float(dots.get_markersize()), 1.3 * row / (n_policies + 1)))

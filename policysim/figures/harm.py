"""Benefit against harm: the frontier of all ε-private mechanisms at several ε, with the mechanisms compared on it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, PercentFormatter

from policies.optimal.optimum import Optimal
from policies.reference import BestFixed
from policysim.figures.curves import STAR, checked, names_of, nonempty, telling, thin, undrawn
from policysim.figures.layout import settle
from policysim.figures.lettering import cut, show_wrapped
from policysim.figures.looks import as_dot, canvas, is_level, label, looks
from policysim.question.answer import SizeName
from policysim.question.formats import population, tick
from policysim.question.words import ALL

NAME = "benefit_vs_harm"
MOST_DOTS = 5
EPSILON = "ε = "
FRONTIER = "the most that any ε-private choice keeps, a line for each ε"
# Of the width, the names of the mechanisms at the right.
LEGEND_SHARE = 0.26


def benefit_vs_harm(
    table: pd.DataFrame,
    mechanisms: pd.DataFrame,
    *,
    outcome: str = "deaths",
    policies: Sequence[str] | None = None,
    count: int | None = None,
    size: SizeName = "page",
) -> Figure:
    """The most that any ε-private mechanism keeps at so much harm, a line for each ε; a dot per mechanism and ε.

    Parameters
    ----------
    table : DataFrame
        From `frontier`: epsilon, benefit_kept, extra_OUTCOME.
    mechanisms : DataFrame
        From `compare`: policy, epsilon, group, benefit_kept, extra_OUTCOME; the rows of everyone at the epsilons of
        `table` are drawn.
    outcome : str
        What the harm is.
    policies : sequence of str, optional
        Those to draw; by default at most five, chosen by `policysim.figures.curves.telling`.
    count : int, optional
        Among how many patients the harm is counted; by default, so many that two digits are seen.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For tables without these columns or rows, or that lack a policy asked for.
    """
    harm = f"extra_{outcome}"
    checked(table, NAME, ["epsilon", "benefit_kept", harm])
    checked(mechanisms, NAME, ["policy", "epsilon", "group", "benefit_kept", harm])
    lines = nonempty(table[table["benefit_kept"].notna()], NAME, "with a share of the benefit")
    wanted = (mechanisms["group"] == ALL) & mechanisms["epsilon"].isin(lines["epsilon"])
    dots = mechanisms[wanted & mechanisms["benefit_kept"].notna() & mechanisms[harm].notna()]
    # The optimum is the end of each line; of what has no ε, one treatment for all is what the benefit is counted from.
    every = [name for name in names_of(dots, "policy") if name == BestFixed.name or not is_level(name)]
    every = [name for name in every if name != Optimal.name]
    names = telling(dots[dots["policy"].isin(every)], policies=policies, most=MOST_DOTS) if every else []
    colours = looks(names_of(mechanisms, "policy"))
    count = count or population([*lines[harm], *dots[harm]])
    with canvas(size, page=(7.8, 4.8), column=4.6 + 0.16 * len(names)) as made:
        axes = made.figure.subplots()
        ends = [_line(axes, line, harm, count) for _, line in lines.groupby("epsilon")]
        frontiers = axes.get_lines()
        frontiers[0].set_label(FRONTIER)
        for name in names:
            rows = dots[dots["policy"] == name].sort_values("epsilon")
            drawn = {**as_dot(name, colours[name]), **(STAR if name == BestFixed.name else {})}
            thread = {} if is_level(name) else {"linestyle": "dotted", "linewidth": 0.6 * thin()}
            axes.plot(count * rows[harm], rows["benefit_kept"], **{**drawn, **thread}, label=label(name))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}".replace("-", "−")))
        axes.grid(visible=True)
        axes.set_title("Benefit against harm", loc="left", fontweight="bold")
        note = undrawn(every, names)
        said = f"extra {outcome.replace('_', ' ')} per {count:,} patients, more than with the best treatment for each"
        axes.set_xlabel("\n".join(filter(None, [said, note])))
        axes.set_ylabel("benefit kept (0 %: one treatment for all)")
        if names:
            about = {"frameon": False, "alignment": "left", "title": "From dot to dot as ε grows:"}
            # The lines, of which the title does not speak, come last.
            about["handles"] = [line for line in axes.get_lines() if line not in frontiers] + [frontiers[0]]
            if made.narrow:
                legend = made.figure.legend(loc="outside lower center", **about)
            else:
                legend = made.figure.legend(loc="outside right upper", **about)
            for text in legend.get_texts():
                show_wrapped(text, text.get_text(), (0.8 if made.narrow else LEGEND_SHARE) * made.width)
                text.set_text(cut(text.get_text(), 3))
        settle(made)
        _share(ends)
    return made.figure


def _share(ends: Sequence[Annotation]) -> None:
    """Lines that end at the same place share a name: "ε = 4, 8"; the layout must be fixed."""
    kept: list[Annotation] = []
    for text in ends:
        box = text.get_window_extent()
        other = next((one for one in kept if one.get_window_extent().overlaps(box)), None)
        if other is None:
            kept.append(text)
        else:
            other.set_text(f"{other.get_text()}, {text.get_text().removeprefix(EPSILON)}")
            text.remove()


def _line(axes: Axes, line: pd.DataFrame, harm: str, count: int) -> Annotation:
    """The frontier at one ε, named at its optimum."""
    rows = line.sort_values(harm)
    xs, ys = count * rows[harm], rows["benefit_kept"]
    axes.plot(xs, ys, color="#000000", linewidth=thin(), marker=".", clip_on=False, zorder=3)
    words = f"{EPSILON}{tick(rows['epsilon'].iloc[0])}"
    # What crosses the words is paler than they are.
    box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5}
    at = (xs.iloc[-1], ys.iloc[-1])
    return axes.annotate(words, at, xytext=(0.35, 0.25), textcoords="offset fontsize", va="bottom", bbox=box, zorder=4)

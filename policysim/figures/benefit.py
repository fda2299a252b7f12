"""What each policy keeps and what harm it does, over epsilon and against each other, and what it spends of epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from policies.optimal.optimum import Optimal
from policies.policy import Look
from policies.reference import BestFixed
from policysim.figures.curves import (
    MOST_CURVES,
    NAMES_SHARE,
    SAME_LINE,
    SPENDS_NOTHING,
    STAR,
    checked,
    draw_policies,
    has_band,
    line_end,
    merged,
    names_of,
    nonempty,
    over_epsilon,
    sparse,
    spenders,
    telling,
    thin,
    undrawn,
)
from policysim.figures.layout import EndLabels, LineEnd, settle
from policysim.figures.lettering import set_epsilon_axis, set_log_ticks, set_numbers
from policysim.figures.looks import GREY, Canvas, as_dot, as_line, canvas, is_level, label, looks, name_panel
from policysim.question.answer import SizeName
from policysim.question.formats import NEGLIGIBLE, population, tick
from policysim.question.words import ACHIEVABLE, ALL, UNBEATABLE, attains, in_a_row

NAME = "frontier"
# On logged data the arm of best-fixed is chosen on other folds: it may not be the one estimated best.
CHOSEN_ELSEWHERE = "one for all, chosen on other patients (best-fixed)"
BEST_ARM: dict[str, Any] = {"color": "#000000", "linestyle": "dashdot"}
# What the table of a comparison calls a harm: its deaths first, its symptoms last.
EXTRA, DEATHS = "extra_", "extra_deaths"
HARMS = (DEATHS, "", "extra_symptoms")
ENDS = ("_low", "_high")
# Of 100 guesses, so many right: the numbers of the axis on top.
GUESSES = (50.1, 51, 52, 55, 60, 70, 80, 90, 95, 99, 99.9)
TOP = "right guesses of 100, at most"
# In narrow lines: the line that marks ε on a page is further to the right at most ε.
# The first of these that the region has room for.
OUT_OF_REACH = ("out of reach\nif what is given\nis published", "no ε-private\nchoice", "out of reach")
BAND = "Shaded: 95 % interval of the estimate (sampling error)."
# The bounds of the limit, where that is the limit of what is drawn and not of a model of it.
BOUNDS = {ACHIEVABLE: "achievable (the limit is above)", UNBEATABLE: "unbeatable (the limit is below)"}


@dataclass(frozen=True)
class Measure:
    """What one panel shows: a column of the table, times `scale`."""

    column: str
    title: str
    axis: str
    scale: float = 1.0


def frontier(
    table: pd.DataFrame,
    *,
    policies: Sequence[str] | None = None,
    epsilon: float = 1.0,
    count: int | None = None,
    size: SizeName = "page",
) -> Figure:
    """Benefit kept and harm against epsilon (log scale), a line per policy; above, what an observer can guess.

    The axis on top has the most that an observer of the treatment can guess right of 100 between two records that must
    look alike, 100 e^epsilon / (1 + e^epsilon). One treatment for all stands at the left with a star: it costs no
    privacy.

    Parameters
    ----------
    table : DataFrame
        From `compare`: policy, epsilon, group, benefit_kept and, for a second panel, extra_deaths, or where nobody can
        die another extra_OUTCOME that differs between policies. The rows of everyone with 0 < epsilon < inf are drawn.
        Where most_kept holds a number at two epsilons or more, what is above
        it is shaded: no mechanism reaches that, by a proof that `compare` has checked. Where there are benefit_kept_low
        and _high (logged data), they are drawn as a band; where benefit_kept holds no number, `difference` is drawn
        instead, with a line at 0 for the best single arm (named in best_arm), or else `loss`.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    epsilon : float, optional
        Where that rule ranks policies.
    count : int, optional
        Among how many patients extra deaths are counted; by default, so many that two digits are seen.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns or rows, or a policy that it does not have.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "benefit_kept"])
    rows = nonempty(over_epsilon(table), NAME, "of everyone with 0 < epsilon < inf")
    panels, colours = _panels(rows, count), looks(names_of(rows, "policy"))
    most = MOST_CURVES
    candidates = rows
    if panels[0].column == "difference":
        candidates, most = _beside_the_best_arm(rows), MOST_CURVES - 1
        if policies is not None:
            left = names_of(candidates, "policy")
            policies = [name for name in policies if name in left or name != BestFixed.name]
    names = telling(candidates, epsilon=epsilon, policies=policies, most=most)
    rows, note = rows[rows["policy"].isin(names)], undrawn(names_of(candidates, "policy"), names)
    exact = not any(has_band(rows, panel.column) for panel in panels)
    # The names are below each other; a column has its panels below each other too. As low as names allow: on a page
    # the figure stands on the first screen.
    height = max(3.75, 0.19 * rows["policy"].nunique() + 2.3)
    with canvas(
        size, page=(9.6 if len(panels) > 1 else 7.2, height), column=0.5 + _panel_of_column(rows) * len(panels)
    ) as made:
        axes = made.panels(len(panels), 1 if made.narrow else len(panels))
        labels = [
            _draw(made, place, rows, panel, colours=colours, exact=exact, note=note)
            for place, panel in zip(axes, panels, strict=True)
        ]
        settle(made, labels)
        if exact and panels[0].column == "benefit_kept":
            name_region(axes[0], out_of_reach(rows))
    return made.figure


def _panel_of_column(rows: pd.DataFrame) -> float:
    """The height of a panel in a column, inches: names have two lines there, and those of arms for all often three."""
    return max(3.0, 0.31 * rows["policy"].nunique() + 1.4) + (0.7 if "best_arm" in rows else 0.0)


def _panels(rows: pd.DataFrame, count: int | None) -> list[Measure]:
    benefit = Measure("benefit_kept", "Benefit kept", "0 %: one for all; 100 %: best for each")
    if rows["benefit_kept"].isna().all() and "difference" in rows:
        benefit = Measure(
            "difference", "Against one treatment for all", "mean outcome, minus that of one treatment for all"
        )
    elif rows["benefit_kept"].isna().all() and "loss" in rows:
        # Too little to say shares of it.
        benefit = Measure("loss", "Utility lost per patient", "against the best treatment for each")
    harm = harm_of(rows)
    if not harm or benefit.column == "difference":
        return [benefit]
    per = count if count and harm == DEATHS else population(rows[harm])
    title = f"Extra {harm.removeprefix(EXTRA).replace('_', ' ')} per {per:,} patients"
    return [benefit, Measure(harm, title, "more than with one for all", per)]


def harm_of(table: pd.DataFrame) -> str:
    """The column of the harm that a comparison shows: extra deaths where anybody can die, or else another outcome.

    Of the other outcomes, the first that differs between policies, symptoms last; "" if there is none.
    """
    found = [str(column) for column in table if str(column).startswith(EXTRA)]
    found = [column for column in found if not column.endswith(ENDS) and table[column].notna().any()]
    ranked = sorted(found, key=lambda column: HARMS.index(column) if column in HARMS else 1)
    for column in ranked:
        columns = [column, "expected_deaths"] if column == DEATHS and "expected_deaths" in table else [column]
        if (table[columns].abs().fillna(0) > NEGLIGIBLE).any(axis=None):
            return column
    return ""


def _draw(
    made: Canvas, axes: Axes, rows: pd.DataFrame, panel: Measure, *, colours: Mapping[str, Look], exact: bool, note: str
) -> EndLabels:
    shares = panel.column == "benefit_kept"
    labels: dict[str, str] = {}
    if exact and shares:
        # The limit is one of benefit, and not of deaths; on a log it is that of the fitted scores. Where it is proven
        # at each ε, the optimum is called so.
        optimum = rows[rows["policy"] == Optimal.name]
        most = optimum["most_kept"] if "most_kept" in optimum else [math.nan] * len(optimum)
        proven = all(attains(kept, bound) for kept, bound in zip(optimum["benefit_kept"], most, strict=True))
        labels = {Optimal.name: f"optimal ({'the limit' if proven else 'the best found'})", **BOUNDS}
    if panel.column == "difference":
        labels = {**labels, BestFixed.name: CHOSEN_ELSEWHERE}
        ends = draw_policies(axes, rows, panel.column, looks=colours, labels=labels)
        # The line at 0 is the arm whose mean outcome is estimated best.
        arms = list(rows["best_arm"].dropna().unique()) if "best_arm" in rows else []
        name = f"{arms[0]} for all" if len(arms) == 1 else "the best single arm"
        axes.axhline(0, **BEST_ARM, linewidth=thin(), label=name, zorder=1)
        ends.append(LineEnd(name, np.nan, 0.0, 0.0, BEST_ARM, (0.0,)))
    else:
        ends = draw_policies(axes, rows, panel.column, looks=colours, scale=panel.scale, labels=labels)
    if exact and shares:
        shade_out_of_reach(axes, out_of_reach(rows))
    set_epsilon_axis(axes, rows["epsilon"])
    if shares:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    elif panel.column.startswith(EXTRA):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    notes = (BAND if has_band(rows, panel.column) else "", note)
    name_panel(axes, panel.title, axes.get_xlabel(), panel.axis, notes=notes)
    if not made.narrow or axes is made.figure.axes[0]:
        guess_axis(axes, rows["epsilon"])
    columns = 1 if made.narrow else len(made.figure.axes)
    return EndLabels(made, axes, ends, width=NAMES_SHARE * made.width / columns)


def guess_axis(axes: Axes, epsilons: pd.Series) -> None:
    """An axis on top of one of epsilon: the most of 100 guesses that are right, 100 e^epsilon / (1 + e^epsilon)."""
    at = {guess: math.log(guess / (100 - guess)) for guess in GUESSES}
    within = {guess: place for guess, place in at.items() if epsilons.min() <= place <= epsilons.max()}
    if not within:
        only = float(epsilons.iloc[0])
        within = {float(f"{100 / (1 + math.exp(-only)):.3g}"): only}
    top = axes.secondary_xaxis("top")
    top.set_xticks(list(within.values()), labels=[f"{guess:g}" for guess in within])
    top.xaxis.set_minor_locator(NullLocator())
    top.set_xlabel(TOP, labelpad=0.65 * rcParams["font.size"])


def _beside_the_best_arm(rows: pd.DataFrame) -> pd.DataFrame:
    """Without best-fixed where its line would be that of the best arm, which is 0."""
    fixed = rows["policy"] == BestFixed.name
    span = np.ptp([0.0, *rows["difference"].dropna()])
    same = (rows.loc[fixed, "difference"].abs() <= SAME_LINE * span).all()
    kept: pd.DataFrame = rows[~fixed] if same else rows
    return kept


def out_of_reach(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of everyone that say, by a checked proof, what no mechanism keeps more than; a row for each epsilon.

    Fewer than two bound no region. In a table without the column `most_kept` nothing is proven.
    """
    rows = over_epsilon(table)
    if "most_kept" not in rows:
        return rows.iloc[:0]
    proven: pd.DataFrame = rows[rows["most_kept"].notna()]
    return proven.sort_values("epsilon").drop_duplicates("epsilon")


def shade_out_of_reach(axes: Axes, proven: pd.DataFrame) -> None:
    """Mark the region that no mechanism can reach: between two epsilons, by the proof at the larger, which holds."""
    if len(proven) > 1:
        axes.fill_between(
            proven["epsilon"],
            proven["most_kept"].clip(upper=1.0),
            1.0,
            step="pre",
            color="#BBBBBB",
            alpha=0.45,
            linewidth=0,
            zorder=0,
        )


def name_region(axes: Axes, proven: pd.DataFrame) -> None:
    """Say in the region what it is, if there is room for the words."""
    if len(proven) < 2:
        return
    epsilons, most = proven["epsilon"].tolist(), proven["most_kept"].clip(upper=1.0).tolist()
    start = epsilons[0]
    steps = [(x, y) for left, right, y in zip(epsilons, epsilons[1:], most[1:], strict=False) for x in (left, right)]
    region = Path(axes.transData.transform([(start, 1.0), *steps, (epsilons[-1], 1.0)]))
    for said in OUT_OF_REACH:
        words = axes.annotate(
            said,
            (start, 1.0),
            xytext=(0.4, -0.6),
            textcoords="offset fontsize",
            va="top",
            color="#000000",
            fontstyle="italic",
            # What crosses the words is paler than they are.
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.15 * rcParams["font.size"]},
        )
        box = words.get_window_extent()
        line = box.height / (1 + said.count("\n"))
        if region.contains_points(box.padded(0.2 * line).corners()).all():
            return
        words.remove()


SPENDING = "spent_vs_claimed"
DIAGONAL: dict[str, Any] = {"color": GREY, "linestyle": "dashed"}
# More policies than this are counted, and not named.
MOST_NAMED = 3
ALL_OF_IT = "all of it (exact = claim)"


def spent_vs_claimed(
    table: pd.DataFrame, *, policies: Sequence[str] | None = None, epsilon: float = 1.0, size: SizeName = "page"
) -> Figure:
    """The exact privacy loss of each policy against the epsilon that it was given, both on log scales.

    Parameters
    ----------
    table : DataFrame
        From `compare`: policy, epsilon, group, epsilon_spent. Policies on the diagonal use all of their epsilon; those
        below it pay for privacy they do not give away.
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    epsilon : float, optional
        Where that rule ranks policies.
    size : {"page", "column", "slide"}
        What the figure is for.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For a table without these columns, in which no policy spends anything, or that lacks a policy asked for.
    """
    checked(table, SPENDING, ["policy", "epsilon", "group", "epsilon_spent"])
    rows = nonempty(spenders(table), SPENDING, "of everyone whose policy spends some of 0 < epsilon < inf")
    every = names_of(rows, "policy")
    # The diagonal is one of the panel's lines.
    names = telling(rows, epsilon=epsilon, policies=policies, most=MOST_CURVES - 1)
    colours = looks(names_of(table, "policy"))
    rows = rows[rows["policy"].isin(names)]
    height = max(4.2, 0.19 * len(names) + 2.2)
    with canvas(size, page=(7.2, height), column=_panel_of_column(rows)) as made:
        (axes,) = made.panels()
        diagonal = pd.Series(sorted(rows["epsilon"].unique()))
        axes.plot(diagonal, diagonal, **DIAGONAL, linewidth=thin(), label=ALL_OF_IT)
        ends = [line_end(ALL_OF_IT, diagonal, diagonal, DIAGONAL)]
        for name in names:
            line = rows[rows["policy"] == name].sort_values("epsilon")
            drawn = as_line(name, colours[name])
            axes.plot(
                line["epsilon"], line["epsilon_spent"], label=name, **drawn, markevery=sparse(len(line), len(ends))
            )
            ends.append(line_end(name, line["epsilon"], line["epsilon_spent"], drawn))
        set_epsilon_axis(axes, rows["epsilon"])
        axes.set_yscale("log")
        # Far below the diagonal there may be policies that spend next to nothing.
        low = max(rows["epsilon_spent"].min(), diagonal.min() / 20)
        set_log_ticks(axes.yaxis, low, diagonal.max())
        name_panel(
            axes,
            "Privacy spent against privacy claimed",
            "ε claimed (log scale)",
            "ε spent: exact privacy loss (log scale)",
            notes=[undrawn(every, names)],
        )
        settle(made, [EndLabels(made, axes, merged(ends, log=True), width=NAMES_SHARE * made.width)])
    return made.figure


def nothing_spent(table: pd.DataFrame) -> str:
    """The sentence on policies that spend nothing at some epsilon, which has no place on a log axis; "" without any."""
    rows = over_epsilon(table)
    free = [name for name in names_of(rows, "policy") if not is_level(name)]
    nothing = rows["epsilon_spent"] <= SPENDS_NOTHING
    names = names_of(rows[rows["policy"].isin(free) & nothing], "policy")
    if len(names) > MOST_NAMED:
        return f"Log axes have no place for 0, which is what {len(names)} policies spend at some ε."
    said = []
    for name in names:
        mine = rows["policy"] == name
        last, others = float(rows.loc[mine & nothing, "epsilon"].max()), rows.loc[mine & ~nothing, "epsilon"]
        up_to = f"up to ε\u00a0=\u00a0{tick(last)}" if last < others.min() else "at some ε"
        said.append(f"{name} ({'at every ε' if others.empty else up_to})")
    spend = "spends" if len(names) == 1 else "spend"
    return f"Log axes have no place for 0, which is what {in_a_row(said, 'and')} {spend}." if said else ""


HARM = "benefit_vs_harm"
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
    checked(table, HARM, ["epsilon", "benefit_kept", harm])
    checked(mechanisms, HARM, ["policy", "epsilon", "group", "benefit_kept", harm])
    lines = nonempty(table[table["benefit_kept"].notna()], HARM, "with a share of the benefit")
    wanted = (mechanisms["group"] == ALL) & mechanisms["epsilon"].isin(lines["epsilon"])
    dots = mechanisms[wanted & mechanisms["benefit_kept"].notna() & mechanisms[harm].notna()]
    # The optimum is the end of each line; of what has no ε, one treatment for all is what the benefit is counted from.
    every = [name for name in names_of(dots, "policy") if name == BestFixed.name or not is_level(name)]
    every = [name for name in every if name != Optimal.name]
    names = telling(dots[dots["policy"].isin(every)], policies=policies, most=MOST_DOTS) if every else []
    colours = looks(names_of(mechanisms, "policy"))
    count = count or population([*lines[harm], *dots[harm]])
    with canvas(size, page=(7.8, 4.8), column=4.6 + 0.16 * len(names)) as made:
        (axes,) = made.panels()
        ends: list[Annotation] = []
        # What crosses the names is paler than they are.
        box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5}
        named: dict[str, Any] = {"xytext": (0.35, 0.25), "textcoords": "offset fontsize", "va": "bottom", "bbox": box}
        for _, group in lines.groupby("epsilon"):
            line = group.sort_values(harm)
            xs, ys = count * line[harm], line["benefit_kept"]
            axes.plot(xs, ys, color="#000000", linewidth=thin(), marker=".", clip_on=False, zorder=3)
            optimum = (xs.iloc[-1], ys.iloc[-1])
            ends.append(axes.annotate(f"{EPSILON}{tick(line['epsilon'].iloc[0])}", optimum, **named, zorder=4))
        frontiers = axes.get_lines()
        frontiers[0].set_label(FRONTIER)
        for name in names:
            rows = dots[dots["policy"] == name].sort_values("epsilon")
            drawn = {**as_dot(name, colours[name]), **(STAR if name == BestFixed.name else {})}
            thread = {} if is_level(name) else {"linestyle": "dotted", "linewidth": 0.6 * thin()}
            axes.plot(count * rows[harm], rows["benefit_kept"], **{**drawn, **thread}, label=label(name))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        set_numbers(axes.xaxis)
        axes.grid(visible=True)
        name_panel(
            axes,
            "Benefit against harm",
            f"extra {outcome.replace('_', ' ')} per {count:,} patients, more than with one treatment for all",
            "benefit kept (0 %: one treatment for all)",
            notes=[undrawn(every, names)],
        )
        if names:
            # The lines, of which the title does not speak, come last.
            handles = [*(drawn for drawn in axes.get_lines() if drawn not in frontiers), frontiers[0]]
            width = (0.8 if made.narrow else LEGEND_SHARE) * made.width
            made.legend(handles=handles, width=width, alignment="left", title="From dot to dot as ε grows:")
        settle(made)
        _share_names(ends)
    return made.figure


def _share_names(ends: Sequence[Annotation]) -> None:
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

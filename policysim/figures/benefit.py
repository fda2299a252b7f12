"""What each policy loses and what harm it does, over epsilon and against each other; what the benefit is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import Optimal
from policies.reference import BestFixed, Greedy
from policysim.figures.curves import (
    MOST_CURVES,
    SAME_LINE,
    STAR,
    at_one_epsilon,
    checked,
    draw_policies,
    has_band,
    names_of,
    nonempty,
    over_epsilon,
    telling,
    thin,
    undrawn,
)
from policysim.figures.layout import settle
from policysim.figures.lettering import set_epsilon_axis, set_numbers
from policysim.figures.looks import (
    BLACK,
    COLOURS,
    GREY,
    LEAD,
    POLICY_GID,
    Canvas,
    Look,
    Paper,
    as_dot,
    canvas,
    difference_axis,
    is_level,
    label,
    list_rows,
    looks,
)
from policysim.numbers import NEGLIGIBLE, population, rounded, tick
from policysim.words import ACHIEVABLE, ALL, UNBEATABLE, attains, capital, in_a_row

NAME = "frontier"
# On logged data the arm of best-fixed is chosen on other folds: it may not be the one estimated best.
CHOSEN_ELSEWHERE = "best single arm, chosen on other patients (best-fixed)"
BEST_ARM: dict[str, Any] = {"color": BLACK, "linestyle": "dashdot"}
# What others are read against is drawn strongly, in line widths; the others thinly.
STRONG, WEAK = 1.5, 0.6
FRAME = (BestFixed.name, Optimal.name, ACHIEVABLE, UNBEATABLE, Exponential.name, ExponentialFitted.name)
# How the columns of outcomes begin, and that of a sum of others.
EXPECTED = "expected_"
ENDS = ("_low", "_high")
# Of 100 guesses, so many right: the numbers of the axis on top.
GUESSES = (50.1, 51, 52, 55, 60, 70, 80, 90, 95, 99, 99.9)
TOP = "two patients told apart, times of 100, at most"
BAND = "Bands: 95 % interval of the estimate (sampling error)."
SHADED = "Shaded: beyond any private draw."
# The bounds of the limit, where that is the limit of what is drawn and not of a model of it.
BOUNDS = {ACHIEVABLE: "achievable (the limit is below)", UNBEATABLE: "unbeatable (the limit is above)"}
# Of the width, the names of the mechanisms: at the right, and below in a column.
LEGEND_SHARE = (0.2, 0.4)


def frontier(
    table: pd.DataFrame,
    *,
    policies: Sequence[str] | None = None,
    epsilon: float = 1.0,
    lead: str | None = None,
    titles: Mapping[str, str] | None = None,
    count: int | None = None,
    **paper: Unpack[Paper],
) -> Figure:
    """Draw utility lost and a harm, such as deaths, against epsilon (log scale), a line per policy.

    The axis at the right of utility lost has the benefit kept (0 %: the same treatment for everyone). The axis on top
    has how often of 100 an observer of the treatment can tell two records apart that must look alike, at most:
    100 e^epsilon / (1 + e^epsilon). The same treatment for everyone, which costs no privacy, has a star at the left.

    Parameters
    ----------
    table : DataFrame
        From `compare`: policy, epsilon, group, benefit_kept, loss and, for a second panel, the expected_OUTCOME of the
        lead, or where that is the same everywhere of another outcome that is not. The rows of everyone with
        0 < epsilon < inf are drawn. Without any number in benefit_kept its axis is left out. Where least_loss holds a
        number at two epsilons or more, what is below it is shaded: no mechanism reaches that, by a proof that `compare`
        has checked. Where there are loss_low and _high, they are drawn as a band. Of logged data (with `difference`,
        and no number in benefit_kept) `difference` is drawn instead, with a line at 0 for the best single arm (named in
        best_arm).
    policies : sequence of str, optional
        Those to draw, however many; by default at most seven, chosen by `policysim.figures.curves.telling`.
    epsilon : float, optional
        Where that rule ranks policies.
    lead : str, optional
        The outcome that leads.
    titles : mapping of str to str, optional
        What outcomes are called; by default their names.
    count : int, optional
        Among how many patients the lead is counted; by default, so many that two digits are seen.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given

    Raises
    ------
    ValueError
        For a table without these columns or rows, or a policy that it does not have.
    """
    checked(table, NAME, ["policy", "epsilon", "group", "benefit_kept"])
    rows = nonempty(over_epsilon(table), NAME, "of everyone with 0 < epsilon < inf")
    logged = "difference" in rows and rows["benefit_kept"].isna().all()
    candidates, most = (_beside_the_best_arm(rows), MOST_CURVES - 1) if logged else (rows, MOST_CURVES)
    if logged and policies is not None:
        left = names_of(candidates, "policy")
        policies = [name for name in policies if name in left or name != BestFixed.name]
    colours = looks(names_of(rows, "policy"))
    names = telling(candidates, epsilon=epsilon, policies=policies, most=most)
    note = undrawn(names_of(candidates, "policy"), names, policies)
    rows = rows[rows["policy"].isin(names)]
    harm = "" if logged or isinstance(paper.get("ax"), Axes) else harm_of(rows, lead)
    panels = 2 if harm else 1
    with canvas(page=(9.6 if harm else 7.2, 3.5), column=0.6 + 2.2 * panels + 0.8 * logged, **paper) as made:
        first, *others = made.panels(panels, 1 if made.narrow else panels)
        if logged:
            _draw_differences(made, first, rows, colours, note)
        else:
            _draw_losses(made, first, checked(rows, NAME, ["loss"]), colours, note)
        guess_axis(first, rows["epsilon"])
        for second in others:
            leads = harm == f"{EXPECTED}{lead}"
            per = count if count and leads else population(rows[harm])
            title = f"{capital(_title(harm, titles))} per {per:,} patients"
            _draw_harm(second, rows, harm, per, colours)
            made.name(second, title, second.get_xlabel(), colour=LEAD if leads else BLACK)
            if not made.narrow:
                guess_axis(second, rows["epsilon"])
        drawn = [line for line in first.get_lines() if not str(line.get_label()).startswith("_")]
        drawn.sort(key=lambda line: line.get_linewidth() < rcParams["lines.linewidth"])
        about: dict[str, Any] = (
            {"ncols": 2, "columnspacing": 1.0, "handlelength": 1.8, "handletextpad": 0.5} if made.narrow else {}
        )
        made.legend(handles=drawn, width=LEGEND_SHARE[made.narrow] * made.width, alignment="left", **about)
        settle(made)
    return made.drawn


def _widths(rows: pd.DataFrame) -> dict[str, float]:
    line = float(rcParams["lines.linewidth"])
    return {name: line * (STRONG if name in FRAME else WEAK) for name in names_of(rows, "policy")}


def _draw_losses(made: Canvas, axes: Axes, rows: pd.DataFrame, colours: Mapping[str, Look], note: str) -> None:
    """Utility lost, with what is proven about the limit, and the benefit kept at the right."""
    optimum, span = rows[rows["policy"] == Optimal.name], float(rows["loss"].max()) or 1.0
    least = optimum["least_loss"] if "least_loss" in optimum else [math.nan] * len(optimum)
    proven = all(attains(-lost / span, -low / span) for lost, low in zip(optimum["loss"], least, strict=True))
    labels = {Optimal.name: f"optimal ({'the limit' if proven else 'the best found'})", **BOUNDS}
    draw_policies(axes, rows, "loss", looks=colours, labels=labels, widths=_widths(rows))
    shaded = shade_out_of_reach(axes, rows, "least_loss", 0.0)
    set_epsilon_axis(axes, rows["epsilon"])
    axes.set_ylim(bottom=min(0.0, float(rows["loss"].min())))
    set_numbers(axes.yaxis)
    notes = (BAND if has_band(rows, "loss") else "", shaded, note)
    title, best = "Utility lost per patient", "against the best for each"
    made.name(axes, title, axes.get_xlabel(), best, alone=title, notes=notes)
    with_benefit = rows[rows["benefit_kept"].notna()]
    if with_benefit.empty:
        return
    # The benefit kept falls by 1 where as much is lost as there is to gain.
    most = with_benefit.iloc[int(with_benefit["loss"].to_numpy().argmax())]
    whole = float(most["loss"]) / (1 - float(most["benefit_kept"])) if most["loss"] > NEGLIGIBLE else 1.0

    def kept(lost: Any) -> Any:
        return 1 - lost / whole

    def lost(kept: Any) -> Any:
        return whole * (1 - kept)

    benefit = axes.secondary_yaxis("right", functions=(kept, lost))
    benefit.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    benefit.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    benefit.set_ylabel("benefit kept")


def _title(harm: str, titles: Mapping[str, str] | None) -> str:
    """What the outcome of a column is called."""
    outcome = harm.removeprefix(EXPECTED)
    return (titles or {}).get(outcome, outcome.replace("_", " "))


def _draw_harm(axes: Axes, rows: pd.DataFrame, harm: str, per: int, colours: Mapping[str, Look]) -> None:
    """An outcome, counted among so many patients."""
    draw_policies(axes, rows, harm, looks=colours, scale=per, labels={}, widths=_widths(rows))
    set_epsilon_axis(axes, rows["epsilon"])
    set_numbers(axes.yaxis, ",.6g")


def _draw_differences(made: Canvas, axes: Axes, rows: pd.DataFrame, colours: Mapping[str, Look], note: str) -> None:
    """Of logged data: against the arm whose mean outcome is estimated best, which is the line at 0."""
    arms = list(rows["best_arm"].dropna().unique()) if "best_arm" in rows else []
    name = f"{arms[0]} for all" if len(arms) == 1 else "the best single arm"
    axes.axhline(0, **BEST_ARM, linewidth=STRONG * rcParams["lines.linewidth"], label=name, zorder=1)
    labels = {BestFixed.name: CHOSEN_ELSEWHERE}
    draw_policies(axes, rows, "difference", looks=colours, labels=labels, widths=_widths(rows))
    set_epsilon_axis(axes, rows["epsilon"])
    notes = (BAND if has_band(rows, "difference") else "", note)
    made.name(axes, "Against one treatment for all", axes.get_xlabel(), difference_axis(list(rows)), notes=notes)


def harm_of(table: pd.DataFrame, lead: str | None = None) -> str:
    """The column of the harm that a comparison shows: of the lead where it differs between rows, or else of another.

    Of the other outcomes, the first that differs; "" if there is none.
    """
    found = [name for name in map(str, table) if name.startswith(EXPECTED) and not name.endswith(ENDS)]
    for name in sorted(found, key=lambda name: name != f"{EXPECTED}{lead}"):
        if table[name].max() - table[name].min() > NEGLIGIBLE:
            return name
    return ""


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


def shade_out_of_reach(axes: Axes, table: pd.DataFrame, column: str, best: float) -> str:
    """Shade what no mechanism can reach, by a checked proof; the note that says so, "" where nothing is proven.

    Parameters
    ----------
    axes : Axes
        Over epsilon.
    table : DataFrame
        epsilon and the column, where there is one: between two of its epsilons the proof at the larger holds.
    column : str
        What is proven: most_kept or least_loss. Fewer than two numbers bound no region.
    best : float
        What would be best of all: the region lies between that and what is proven.
    """
    proven = table[table[column].notna()] if column in table else table.iloc[:0]
    proven = proven.sort_values("epsilon").drop_duplicates("epsilon")
    if len(proven) < 2:
        return ""
    about: dict[str, Any] = {"color": "#BBBBBB", "alpha": 0.45, "linewidth": 0, "zorder": 0}
    # Numbers that were rounded towards what is possible do not go beyond what is best.
    bound = proven[column].clip(upper=best) if column == "most_kept" else proven[column].clip(lower=best)
    axes.fill_between(proven["epsilon"], bound, best, step="pre", **about)
    return SHADED


HARM = "benefit_vs_harm"
MOST_DOTS = 5
EPSILON = "ε = "
FRONTIER = "the most that any private draw keeps, a line for each ε"
# Of the width, the names of the mechanisms at the right, and below.
HARM_LEGEND = (0.26, 0.8)


def benefit_vs_harm(
    table: pd.DataFrame,
    mechanisms: pd.DataFrame,
    *,
    outcome: str | None = None,
    titles: Mapping[str, str] | None = None,
    policies: Sequence[str] | None = None,
    count: int | None = None,
    **paper: Unpack[Paper],
) -> Figure:
    """The most that any ε-private mechanism keeps at so much harm, a line for each ε; a dot per mechanism and ε.

    Parameters
    ----------
    table : DataFrame
        From `frontier`: epsilon, benefit_kept, expected_OUTCOME.
    mechanisms : DataFrame
        From `compare`: policy, epsilon, group, benefit_kept, expected_OUTCOME; the rows of everyone at the epsilons of
        `table` are drawn.
    outcome : str, optional
        What the harm is; by default the first OUTCOME of `table`.
    titles : mapping of str to str, optional
        What outcomes are called; by default their names.
    policies : sequence of str, optional
        Those to draw; by default at most five, chosen by `policysim.figures.curves.telling`.
    count : int, optional
        Among how many patients the harm is counted; by default, so many that two digits are seen.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given

    Raises
    ------
    ValueError
        For tables without these columns or rows, or that lack a policy asked for.
    """
    of_outcomes = [name for name in map(str, table) if name.startswith(EXPECTED)] if outcome is None else []
    harm = next(iter(of_outcomes), f"{EXPECTED}{outcome or 'OUTCOME'}")
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
    with canvas(page=(7.8, 4.8), column=3.8, **paper) as made:
        (axes,) = made.panels()
        ends: list[Annotation] = []
        # What crosses the names is paler than they are.
        box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5}
        named: dict[str, Any] = {"xytext": (0.35, 0.25), "textcoords": "offset fontsize", "va": "bottom", "bbox": box}
        for _, group in lines.groupby("epsilon"):
            line = group.sort_values(harm)
            xs, ys = count * line[harm], line["benefit_kept"]
            axes.plot(xs, ys, color=BLACK, linewidth=thin(), marker=".", clip_on=False, zorder=3)
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
        made.head(f"Benefit against {_title(harm, titles)}")
        made.name(
            axes,
            "",
            f"{_title(harm, titles)} per {count:,} patients",
            "benefit kept (0 %: one treatment for all)",
            notes=[undrawn(every, names, policies)],
        )
        axes.xaxis.label.set_color(LEAD)
        if names:
            # The lines, of which the title does not speak, come last.
            handles = [*(drawn for drawn in axes.get_lines() if drawn not in frontiers), frontiers[0]]
            width = HARM_LEGEND[made.narrow] * made.width
            made.legend(handles=handles, width=width, alignment="left", title="From dot to dot as ε grows:")
        settle(made)
        _share_names(ends)
    return made.drawn


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


# So many outcomes have parts of their own; the others are one.
MOST_OUTCOMES = 6
OTHERS = "all others"
AXIS = "utility per patient, against one treatment for all; left of 0: lost"
# Of the width, the names of the policies may take this much, and those of the parts this much: at the right, or below.
NAMES_SHARE, PARTS_LEGEND = 0.3, (0.2, 0.38)
# The palette of the parts but the lead, furthest apart first, and a hatch with each, so that none needs its colour
# alone: of lines, since those of dots make an SVG ten times as large.
PARTS = tuple(zip((0, 7, 2, 4, 3, 5, 6), ("", "///", "|||", "\\\\\\", "xxx", "---", "+++"), strict=True))
# A part that is a smaller share of the longest bar cannot be seen.
LEAST = 1e-3
# The sum of a bar.
NET: dict[str, Any] = {
    "marker": "D", "color": BLACK, "markeredgecolor": "white", "markersize": 5, "linestyle": "none", "zorder": 4,
}  # fmt: skip


def benefit_parts(
    table: pd.DataFrame, *, policies: Sequence[str] | None = None, lead: str | None = None, **paper: Unpack[Paper]
) -> Figure:
    """What each policy gains over one treatment for all, and what that is made of: a stacked bar for each policy.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.scenario_outcomes`: policy, outcome, lost; best-fixed must be among the policies. What
        a policy gains in an outcome is what best-fixed loses in it, less what the policy loses.
    policies : sequence of str, optional
        Those to draw, however many; by default at most six, chosen by `policysim.figures.curves.telling`. The best
        treatment for each, which loses nothing, stands below them.
    lead : str, optional
        The outcome that leads, as the table has it: it is darker than any other.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given
        What is gained is to the right of 0, what is lost to its left; a diamond and a number are the sum.

    Raises
    ------
    ValueError
        For a table without these columns or rows, or that lacks a policy asked for.
    """
    checked(table, "benefit_parts", ["policy", "outcome", "lost"])
    gains = nonempty(gained_by_outcome(table), "benefit_parts", "of a policy beside best-fixed")
    every = [name for name in names_of(gains, "policy") if name != Greedy.name]
    totals = gains.assign(value=gains.groupby("policy")["gained"].transform("sum"))
    names = telling(totals[totals["policy"].isin(every)], policies=policies, most=MOST_CURVES - 1) if every else []
    shown = [*names, *([Greedy.name] if policies is None else [])]
    # A column for each outcome that matters most somewhere, and one for all others; in what nobody loses or gains there
    # is nothing to see.
    rows = gains[gains["policy"].isin(shown)]
    grid = rows.pivot_table(index="policy", columns="outcome", values="gained", sort=False).loc[shown]
    largest = grid.abs().max().sort_values(ascending=False, kind="stable")
    ranked = [name for place, (name, gained) in enumerate(largest.items()) if gained or not place]
    # One that stands alone for all others has a name of its own.
    kept = ranked if len(ranked) <= MOST_OUTCOMES + 1 else ranked[:MOST_OUTCOMES]
    others = {} if len(kept) == len(ranked) else {OTHERS: grid.drop(columns=kept).sum(axis=1)}
    parts = grid[kept].assign(**others)
    with canvas(page=(8.2, 1.7 + 0.42 * len(shown)), column=1.6 + 0.36 * len(shown), **paper) as made:
        (axes,) = made.panels()
        _stack(axes, parts, lead)
        axes.axvline(0, color=GREY, linewidth=thin(), zorder=3)
        labels = [made.lines(label(name), NAMES_SHARE * made.width, 2) for name in shown]
        axes.set_yticks(range(len(shown)), labels=labels)
        axes.invert_yaxis()
        list_rows(axes)
        made.head("What the benefit is made of")
        axes.set_xlabel(made.below(AXIS, undrawn(every, names, policies)))
        made.legend(width=PARTS_LEGEND[made.narrow] * made.width, ncols=2 if made.narrow else 1)
        settle(made)
    return made.drawn


def gained_by_outcome(table: pd.DataFrame) -> pd.DataFrame:
    """What each policy gains over best-fixed in each outcome; greedy, which loses nothing, comes last.

    Parameters
    ----------
    table : DataFrame
        policy, outcome, lost; without best-fixed there is nothing to gain over, and no row.
    """
    fixed = table[table["policy"] == BestFixed.name].set_index("outcome")["lost"]
    others = table[~table["policy"].isin([BestFixed.name, Greedy.name]) & table["outcome"].isin(fixed.index)]
    best = fixed.reset_index().assign(policy=Greedy.name, lost=0.0)
    rows = pd.concat([others[["policy", "outcome", "lost"]], best[["policy", "outcome", "lost"]]], ignore_index=True)
    rows = rows.assign(gained=rows["outcome"].map(fixed) - rows["lost"])
    return rows[["policy", "outcome", "gained"]]


def _stack(axes: Axes, parts: pd.DataFrame, lead: str | None) -> None:
    """The bars, and at the end of each the sum of its parts."""
    free = iter(PARTS)
    drawn: list[dict[str, Any]] = []
    for name in map(str, parts):
        # The lead is darker than any other part.
        colour, hatch = (LEAD, "") if name == lead else next((COLOURS[place], hatch) for place, hatch in free)
        drawn.append({"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3})
        axes.barh([0], [0], label=name.replace("_", " "), **drawn[-1])
    room = LEAST * float(parts.abs().to_numpy().sum(axis=1).max())
    for place, (policy, gained) in enumerate(parts.iterrows()):
        gid, right, left = POLICY_GID + str(policy), 0.0, 0.0
        for look, part in zip(drawn, gained, strict=True):
            if abs(part) <= room:
                continue
            start = right if part > 0 else left + part
            for bar in axes.barh([place], [abs(part)], left=start, height=0.66, **look):
                bar.set_gid(gid)
            right, left = right + max(part, 0.0), left + min(part, 0.0)
        total = float(gained.sum())
        words = rounded(total, sign=True) if abs(total) > NEGLIGIBLE else "0"
        axes.annotate(words, (right, place), xytext=(0.9, 0), textcoords="offset fontsize", va="center", gid=gid)
        axes.plot(total, place, **{**NET, "gid": gid})
    low, high = axes.get_xlim()
    axes.set_xlim(low - 0.04 * (high - low), high + 0.16 * (high - low))


PRICES = "price_bars"
# A price that is a smaller share of the dearest is no bar.
LEAST_PRICE = 0.01


def price_bars(table: pd.DataFrame, **paper: Unpack[Paper]) -> Figure:
    """What hiding each single feature costs at best: a bar for each, dearest first, and one for the whole record.

    Parameters
    ----------
    table : DataFrame
        From `policysim.decision.prices.price_list`: hides, epsilon (one), loss, which is NaN for what the model does
        not use. A line of text names features below 1 % of the dearest.
    **paper : Paper
        What the figure is for: `size` of a report, or `ax`, `width_mm` and `style` of a paper (`looks.Paper`).

    Returns
    -------
    Figure, or the axes given

    Raises
    ------
    ValueError
        For a table without these columns or rows, or of several epsilons.
    """
    checked(table, PRICES, ["hides", "epsilon", "loss"])
    at_one_epsilon(table, PRICES)
    priced = nonempty(table[table["loss"].notna()], PRICES, "with a price")
    priced = priced.assign(hides=[str(name).replace("_", " ") for name in priced["hides"]])
    most = float(priced["loss"].max())
    cheap = priced["loss"] < LEAST_PRICE * most
    rows = priced[~cheap].sort_values("loss", ascending=False, kind="stable")
    more = 0.3 * max(len(rows), 2)
    with canvas(page=(7.2, 1.3 + more), column=1.5 + more, **paper) as made:
        (axes,) = made.panels()
        for place, lost in enumerate(rows["loss"]):
            axes.barh([place], [lost], height=0.66, color=COLOURS[0])
            axes.annotate(rounded(lost), (lost, place), xytext=(0.5, 0), textcoords="offset fontsize", va="center")
        names = [made.lines(name, NAMES_SHARE * made.width, 2) for name in rows["hides"]]
        axes.set_yticks(range(len(names)), labels=names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0, 1.2 * most or 1.0)
        list_rows(axes)
        made.head(f"What hiding each feature costs at best, at ε = {tick(table['epsilon'].iloc[0])}")
        cheap_names = list(priced.loc[cheap, "hides"])
        note = f"Below {rounded(LEAST_PRICE * most)}: {in_a_row(cheap_names, 'and')}." if cheap_names else ""
        axes.set_xlabel(made.below("utility lost per patient, if all else is public", note))
        settle(made)
    return made.drawn

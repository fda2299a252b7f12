"""The figures of the study of the most common disease."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from policies.arrays import FloatArray
from policysim.sources.common_disease import Constants, probabilities
from policysim.sources.drawing import EPSILON, draw_lines, grid, headed, log_axis, panels, share_axis
from policysim.sources.largest_industry import agreeing_gaps, fewest_candidates, gap_of_one
from policysim.sources.model import Drawing

PROBABILITIES, RELIABILITY, LARGER = "probabilities-vs-epsilon", "reliability-vs-epsilon", "larger-table"
PRINTED, ONE = "as the source prints it", "one runner-up alone, all others far behind"
EPSILONS = grid(0.01, 10, 61)
# To this many candidates beyond the fewest possible, all others being empty from some number on.
MORE_CANDIDATES = 80


def probabilities_drawing(constants: Constants) -> Drawing:
    """The probability of each candidate, over epsilon, with what the source prints."""
    counts, delta = constants.table, constants.sensitivity
    curves = np.array([probabilities(counts, epsilon, delta) for epsilon in EPSILONS])
    rows = [
        {"line": name, "epsilon": epsilon, "value": float(curves[i, place])}
        for place, name in enumerate(constants.counts)
        for i, epsilon in enumerate(EPSILONS)
    ]
    rows += [
        {"line": PRINTED, "epsilon": quote.epsilon, "value": float(text)}
        for quote in constants.probabilities
        for text in quote.printed.values()
        if quote.epsilon > 0
    ]
    description = "Probability of each candidate against ε, and the figures that the source prints."
    return Drawing(PROBABILITIES, description, pd.DataFrame(rows), _draw_probabilities)


def _draw_probabilities(table: pd.DataFrame) -> Figure:
    with panels() as (figure, (axes,)):
        draw_lines(axes, table, "epsilon", points=[PRINTED])
        log_axis(axes, "x", table["epsilon"])
        share_axis(axes)
        axes.set_ylim(0, 1.02)
        headed(axes, "Which candidate is chosen", EPSILON, "probability")
    return figure


def reliability_drawing(constants: Constants) -> Drawing:
    """How often the right candidate is chosen, over epsilon."""
    counts, delta = constants.table, constants.sensitivity
    right = int(counts.argmax())
    lines: dict[str, Callable[[float], FloatArray]] = {
        "the source (exponential mechanism)": lambda e: probabilities(counts, e, delta),
        "permute-and-flip": lambda e: probabilities(counts, e, delta, mechanism="permute-and-flip"),
        "exponential, if people come and go (monotone)": lambda e: probabilities(counts, e, delta, monotone=True),
        "the source, ten times as many people": lambda e: probabilities(10 * counts, e, delta),
    }
    rows = [
        {"line": name, "epsilon": epsilon, "value": float(choose(epsilon)[right])}
        for name, choose in lines.items()
        for epsilon in EPSILONS
    ]
    rows += [
        {"line": PRINTED, "epsilon": quote.epsilon, "value": float(quote.printed[constants.commonest])}
        for quote in constants.probabilities
        if quote.epsilon > 0 and constants.commonest in quote.printed and quote.where == "table"
    ]
    description = (
        f"Probability that {constants.commonest} is chosen, against ε, a line per mechanism, "
        f"from {1 / len(counts):g} (any of {len(counts)}) to 1."
    )
    return Drawing(RELIABILITY, description, pd.DataFrame(rows), _draw_reliability)


def _draw_reliability(table: pd.DataFrame) -> Figure:
    with panels() as (figure, (axes,)):
        draw_lines(axes, table, "epsilon", points=[PRINTED])
        log_axis(axes, "x", table["epsilon"])
        share_axis(axes)
        axes.set_ylim(0, 1.02)
        headed(axes, "Reliability of the right choice", EPSILON, "P(right candidate)")
    return figure


def larger_drawing(constants: Constants) -> Drawing:
    """Which tables agree with the draws from the larger one: number of candidates and gap to the runner-up."""
    larger = constants.larger
    fewest = fewest_candidates(larger)
    rows = []
    for candidates in range(fewest, fewest + MORE_CANDIDATES + 1):
        gaps = agreeing_gaps(larger, candidates)
        if gaps is not None:
            rows.append({"candidates": candidates, "low": gaps[0], "high": gaps[1], "one": gap_of_one(larger)})
    table = pd.DataFrame(rows)
    last = table.iloc[-1]
    description = (
        f"Gap between the largest industry and the runner-up, against the number of candidates: shaded where some "
        f"table of {larger.people:,} people agrees with {larger.right:,} right of {larger.runs:,} draws (at 95 %). "
        f"Below {fewest} candidates none does; from {_settled(table)} on, gaps of {last['low']:.0f} to "
        f"{last['high']:.0f} people do."
    )
    return Drawing(LARGER, description, table, _draw_larger)


def _settled(table: pd.DataFrame) -> int:
    """The number of candidates from which on the region no longer changes."""
    last = table.iloc[-1]
    same = (table["low"] == last["low"]) & (table["high"] == last["high"])
    return int(table.loc[same, "candidates"].min())


def _draw_larger(table: pd.DataFrame) -> Figure:
    with panels() as (figure, (axes,)):
        x = table["candidates"]
        axes.fill_between(x, table["low"], table["high"], color="#0072B2", alpha=0.2, linewidth=0)
        axes.plot(
            x,
            table["high"],
            color="#0072B2",
            marker="^",
            markevery=10,
            label="upper edge: as many runners-up as can be",
        )
        axes.plot(x, table["one"], color="#D55E00", linestyle="dashed", label=ONE)
        axes.plot(
            x,
            table["low"],
            color="#0072B2",
            marker="v",
            markevery=10,
            label="lower edge: one runner-up, the rest equal",
        )
        middle = int(len(table) * 0.62)
        axes.annotate(
            "agrees with the draws",
            (float(x.iloc[middle]), float(np.mean(table[["low", "high"]].iloc[middle]))),
            ha="center",
            fontstyle="italic",
        )
        first = float(x.iloc[0])
        axes.set_xlim(first - 12, float(x.iloc[-1]) + 2)
        axes.set_ylim(0, float(table["high"].max()) * 1.2)
        axes.annotate("no\ntable\nagrees", (first - 6, float(table["high"].max()) * 0.55), ha="center", color="#444444")
        headed(
            axes,
            "Which tables agree with what was drawn",
            "candidates in all (a public number)",
            "gap to the runner-up, people",
        )
    return figure

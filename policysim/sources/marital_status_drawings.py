"""The figures of the study of the marital status."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from policies.arrays import FloatArray
from policysim.sources.drawing import (
    EPSILON,
    SOURCE_POINTS,
    draw_lines,
    grid,
    headed,
    log_axis,
    panels,
    share_axis,
)
from policysim.sources.marital_status import Constants, probabilities, with_empty
from policysim.sources.model import Drawing
from policysim.sources.single_runs import binomial_run

DRAWS, RELIABILITY, CANDIDATES = "one-run", "reliability-vs-epsilon", "reliability-vs-candidates"
PRINTED = "as the source drew"
EPSILONS = grid(1e-4, 10, 61)
NUMBERS = [int(n) for n in grid(10, 10_000, 25)]
TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200)


def draws_drawing(constants: Constants) -> Drawing:
    """How often each candidate was drawn, beside what to expect."""
    quote = constants.draws[0]
    exact = probabilities(constants, constants.table, quote.epsilon)
    rows = []
    for place, name in enumerate(constants.counts):
        seen = quote.printed.get(name)
        run = binomial_run(quote.runs, float(exact[place]), int(seen or 0))
        rows.append(
            {
                "candidate": name,
                "expected": run.expected,
                "low": run.band[0],
                "high": run.band[1],
                "seen": float(seen) if seen else np.nan,
            }
        )
    description = (
        f"Of {quote.runs} draws: how many are expected for each candidate, where 95 % of such runs lie, and what the "
        "source drew."
    )
    return Drawing(DRAWS, description, pd.DataFrame(rows), _draw_draws)


def _draw_draws(table: pd.DataFrame) -> Figure:
    with panels(height=3.6) as (figure, (axes,)):
        places = np.arange(len(table))[::-1]
        axes.hlines(
            places, table["low"], table["high"], color="#0072B2", alpha=0.35, linewidth=8, label="95 % of such runs"
        )
        axes.plot(table["expected"], places, color="#0072B2", marker="o", linestyle="none", label="expected")
        axes.plot(table["seen"], places, label=PRINTED, **{**SOURCE_POINTS, "markersize": 9})
        for place, low, high, seen in zip(places, table["low"], table["high"], table["seen"], strict=True):
            text = f"{low:.0f} to {high:.0f}" + ("" if np.isnan(seen) else f", drew {seen:.0f}")
            axes.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), va="center")
        axes.set_yticks(places, list(table["candidate"]))
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks(TICKS, [str(tick) for tick in TICKS])
        axes.xaxis.minorticks_off()
        axes.set_xlim(-0.2, 260)
        axes.grid(axis="x")
        headed(
            axes, "One run of 200 draws" if table["high"].max() < 260 else "One run", "draws (log scale above 1)", ""
        )
    return figure


def reliability_drawing(constants: Constants) -> Drawing:
    """How often the right candidate is chosen, over epsilon."""
    counts = constants.table
    right = int(counts.argmax())
    lines: dict[str, Callable[[float], FloatArray]] = {
        f"the source: Δ = {constants.sensitivity:g}": lambda e: probabilities(constants, counts, e),
        f"Δ = {constants.true_sensitivity:g}": lambda e: probabilities(constants, counts, e, corrected=True),
        f"Δ = {constants.true_sensitivity:g}, people come and go (monotone)": lambda e: probabilities(
            constants, counts, e, corrected=True, monotone=True
        ),
    }
    rows = [
        {"line": name, "epsilon": epsilon, "value": float(choose(epsilon)[right])}
        for name, choose in lines.items()
        for epsilon in EPSILONS
    ]
    name = list(constants.counts)[right]
    rows += [
        {"line": PRINTED, "epsilon": quote.epsilon, "value": int(quote.printed[name]) / quote.runs}
        for quote in constants.draws
        if name in quote.printed
    ]
    description = (
        f"Probability that {name} is chosen, against ε. With the true sensitivity the same reliability costs a "
        f"{constants.overstated:,.0f}th of ε, and half of that if people come and go."
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


def candidates_drawing(constants: Constants) -> Drawing:
    """What candidates that nobody has cost in reliability, at the same epsilon."""
    right = int(constants.table.argmax())
    lines = {f"the source: Δ = {constants.sensitivity:g}, ε = {constants.epsilon:g}": (constants.epsilon, False)}
    for times in (2, 10):
        epsilon = times * constants.epsilon / constants.overstated
        lines[f"Δ = {constants.true_sensitivity:g}, ε = {epsilon:g}"] = (epsilon, True)
    table = pd.DataFrame(
        [
            {
                "line": name,
                "candidates": number,
                "value": float(
                    probabilities(constants, with_empty(constants, number), epsilon, corrected=corrected)[right]
                ),
            }
            for name, (epsilon, corrected) in lines.items()
            for number in [len(constants.counts), *NUMBERS]
        ]
    )
    description = (
        "Probability of the right candidate, against how many candidates there are, all others being values that "
        "nobody has. The privacy loss is the same for any number of candidates; the reliability is not."
    )
    return Drawing(CANDIDATES, description, table, _draw_candidates)


def _draw_candidates(table: pd.DataFrame) -> Figure:
    with panels() as (figure, (axes,)):
        draw_lines(axes, table, "candidates")
        log_axis(axes, "x", table["candidates"])
        share_axis(axes)
        axes.set_ylim(0, 1.02)
        headed(axes, "More candidates cost reliability, not privacy", "candidates (log scale)", "P(right candidate)")
    return figure

"""The figures of the study of the sock groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from policies.arrays import IntArray
from policysim.sources.drawing import EPSILON, draw_lines, grid, headed, log_axis, panels, share_axis
from policysim.sources.model import Drawing
from policysim.sources.sock_groups import NOTABLE, Constants, left_disparity, proportions, rarely
from policysim.words import rounded

DISPARITY, SIZE = "disparity-vs-epsilon", "disparity-vs-group-size"
PRINTED = "as the source prints it"
EPSILONS = grid(0.01, 30, 61)
SIZES = [int(size) for size in dict.fromkeys(np.geomspace(3, 1000, 40).round())]
# Sensitivity of a proportion if a person may come or go and n >= 1 is not public: from 1 of 1 to 1 of 2.
UNKNOWN_SIZE = 0.5


def disparity_drawing(constants: Constants) -> Drawing:
    """Disparity between the groups over epsilon, a line per calibration."""
    small, large = (constants.counts(name) for name in constants.by_size)
    people = constants.counts("all").sum()

    def split(counts: IntArray, epsilon: float) -> float:
        return rarely(counts, epsilon * float(counts.sum() / people), constants.sensitivity)

    lines: Mapping[str, Callable[[IntArray, float], float]] = {
        f"the source: Δ = {constants.sensitivity:g}, ε split by size": split,
        f"Δ = {constants.sensitivity:g}, whole ε for each group": lambda c, e: rarely(c, e, constants.sensitivity),
        "Δ = ½ (people may come and go), whole ε": lambda c, e: rarely(c, e, UNKNOWN_SIZE),
        "Δ = 1/n (a value may change), whole ε": rarely,
    }
    table = pd.DataFrame(
        [
            {"line": name, "epsilon": epsilon, "value": reported(small, epsilon) - reported(large, epsilon)}
            for name, reported in lines.items()
            for epsilon in EPSILONS
        ]
    )
    name, other = constants.by_size
    printed = {"line": PRINTED, "epsilon": constants.epsilon, "value": _printed_disparity(constants)}
    table = pd.concat([table, pd.DataFrame([printed])], ignore_index=True)
    _, peak, notable_until = left_disparity(constants)
    description = (
        f"P({constants.candidates[0]}) for {name} minus that for {other}, against ε, a line per calibration. "
        "The source's is above zero. With the whole ε for each group it is below zero; with Δ = 1/n, too, it is "
        f"largest at ε = {rounded(peak)} and less than {NOTABLE:g} from {rounded(notable_until)} on."
    )
    return Drawing(DISPARITY, description, table, _draw_disparity)


def _printed_disparity(constants: Constants) -> float:
    """As the source prints it, per group; NaN if it does not."""
    rare = constants.candidates[0]
    printed = {quote.data: float(quote.printed[rare]) for quote in constants.probabilities if rare in quote.printed}
    small, large = constants.by_size
    return printed.get(small, np.nan) - printed.get(large, np.nan)


def _draw_disparity(table: pd.DataFrame) -> Figure:
    with panels() as (figure, (axes,)):
        axes.axhline(0, color="#555555", linewidth=1)
        draw_lines(axes, table, "epsilon", points=[PRINTED])
        log_axis(axes, "x", table["epsilon"])
        share_axis(axes)
        headed(axes, "Disparity between the groups", EPSILON, "P(rare), small group − large group")
    return figure


def size_drawing(constants: Constants) -> Drawing:
    """Disparity over the size of the small group, one of whom has the rare value; the large group as it is."""
    small, large = constants.by_size
    other, rare = constants.counts(large), constants.candidates[0]

    def split(counts: IntArray, n: int) -> float:
        share = float(counts.sum()) / (n + float(other.sum()))
        return rarely(counts, constants.epsilon * share, constants.sensitivity)

    lines: dict[str, Callable[[IntArray, int], float]] = {
        f"the source: ε = {constants.epsilon:g}, Δ = {constants.sensitivity:g}, split": split
    }
    for epsilon in sorted({0.1, 1.0, constants.epsilon}):
        lines[f"ε = {epsilon:g}, Δ = 1/n, whole ε"] = partial(_whole, epsilon)
    lines["difference of the rates themselves"] = lambda counts, _: float(proportions(counts)[0])
    table = pd.DataFrame(
        [
            {"line": name, "size": n, "value": reported(np.array([1, n - 1]), n) - reported(other, n)}
            for name, reported in lines.items()
            for n in SIZES
        ]
    )
    description = (
        f"P({rare}) for a group of n people, one of them {rare}, minus that for the {other.sum()} people of {large}, "
        f"against n. {small} has n = {constants.counts(small).sum()}. With the source's calibration the "
        "smaller of the two groups is hit, whichever it is; with the right one a disparity is left only where ε times "
        "n is small."
    )
    return Drawing(SIZE, description, table, _draw_size)


def _whole(epsilon: float, counts: IntArray, _: int) -> float:
    return rarely(counts, epsilon)


def _draw_size(table: pd.DataFrame) -> Figure:
    with panels() as (figure, (axes,)):
        axes.axhline(0, color="#555555", linewidth=1)
        draw_lines(axes, table, "size")
        log_axis(axes, "x", table["size"])
        share_axis(axes)
        headed(
            axes,
            "Disparity over the size of one group",
            "n, people in the group that varies (log scale)",
            "P(rare), small group − large group",
        )
    return figure

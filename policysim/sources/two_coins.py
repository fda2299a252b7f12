"""Two-coin response: what it tells, and what it costs; a section of the study of age and sex."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from envs.toml_reader import Table
from policies.local import TwoCoin
from policysim.sources.drawing import SOURCE_POINTS, headed, panels
from policysim.sources.model import Drawing, Erratum, Section

TRUTH, RATE, LOSS = (
    "two coins: probability of the truth",
    "two coins: true rate, p the rate of positive responses",
    "two coins: ε",
)
NAME, CLAIMED = "two-coins", "as the source says"
# Probabilities of the truth that the figure shows; at 1 the loss is infinite.
TRUTHS = np.linspace(0.5, 0.98, 49)


def read_coins(table: Table) -> TwoCoin:
    """The two biases, mistakes noted in the table."""
    first, second = (table.number(name, low=0.01, high=0.99) for name in ("first", "second"))
    table.close()
    if first + (1 - first) * second <= 0.5:
        table.fail("the truth must be told more than half of the time", "first")
        return TwoCoin()
    return TwoCoin.truth_or_opposite(first, second)


def claims(coins: TwoCoin) -> Mapping[str, tuple[str, bool, str]]:
    """What is right, whether the source's claim holds, and why, by subject."""
    truth = float(coins.matrix[1, 1])
    slope, shift = 1 / float(coins.gap[1]), float(coins.lie[1] / coins.gap[1])
    return {
        TRUTH: (f"{truth:g}", bool(np.isclose(truth, 0.75)), ""),
        RATE: (f"{slope:g}p − {shift:g}", bool(np.isclose([slope, shift], [2, 0.5]).all()), ""),
        LOSS: (
            _loss(coins),
            coins.epsilon == 0,
            f"A report is {np.exp(coins.epsilon):g} times likelier for one answer.",
        ),
    }


def erratum(coins: TwoCoin) -> Erratum:
    """0-differential privacy would be a report that says nothing."""
    truth = float(coins.matrix[1, 1])
    return Erratum(
        "Randomised response with two coins is 0-differentially private.",
        f"A yes-or-no answer costs ε = {_loss(coins)}.",
        f"The truth is told with probability {truth:g}, so a report “yes” is {np.exp(coins.epsilon):g} times likelier "
        f"from somebody whose answer is yes: who thought yes and no equally likely is then {100 * truth:.0f} % sure. "
        "ε = 0 would need a fair coin in place of the truth, and its reports say nothing about anybody.",
        NAME,
    )


def section(coins: TwoCoin) -> Section:
    """The loss over the probability of the truth."""
    rows = [{"line": "exact loss", "truth": t, "value": TwoCoin(2 * t - 1, 0.5).epsilon} for t in map(float, TRUTHS)]
    truth = float(coins.matrix[1, 1])
    rows += [
        {"line": "these coins", "truth": truth, "value": coins.epsilon},
        {"line": CLAIMED, "truth": truth, "value": 0.0},
    ]
    description = (
        f"ε of one yes-or-no answer against the probability that it is the truth: ln(t / (1 − t)). It is 0 at a half "
        f"alone; these coins tell the truth with probability {truth:g} and cost {coins.epsilon:.4f}."
    )
    return Section("Two coins", drawing=Drawing(NAME, description, pd.DataFrame(rows), _draw))


def _loss(coins: TwoCoin) -> str:
    return f"{'ln 3 = ' if np.isclose(coins.epsilon, np.log(3)) else ''}{coins.epsilon:.4f}"


def _draw(table: pd.DataFrame) -> Figure:
    with panels(height=3.8) as (figure, (axes,)):
        exact = table[table["line"] == "exact loss"]
        axes.plot(exact["truth"], exact["value"], color="#0072B2")
        mine = table[table["line"] == "these coins"]
        axes.plot(mine["truth"], mine["value"], color="#0072B2", marker="o", markersize=8, linestyle="none")
        said = table[table["line"] == CLAIMED]
        axes.plot(said["truth"], said["value"], clip_on=False, **SOURCE_POINTS)
        for rows, text in ((mine, "these coins: {:.4f}"), (said, "as the source says: {:g}")):
            x, y = float(rows["truth"].iloc[0]), float(rows["value"].iloc[0])
            axes.annotate(text.format(y), (x, y), xytext=(-10, 8), textcoords="offset points", ha="right")
        axes.set_ylim(0, None)
        headed(axes, "What a yes-or-no answer costs", "probability of the truth", "ε")
    return figure

"""Two coins for each yes-or-no answer: how often the truth is told, and what that costs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from envs.toml_reader import Table
from policies.local import TwoCoin
from policysim.figures.described import Described, Lines
from policysim.sources.engine import Judgement

TRUTH, LOSS = "two coins: probability of the truth", "two coins: ε"
RATE = "two coins: true rate, p the rate of positive responses"
# What a source may say of them.
COIN_SUBJECTS = (TRUTH, RATE, LOSS)
COINS, CLAIMED = "two-coins", "as the source says"


def read_coins(table: Table) -> TwoCoin:
    """The two biases, mistakes noted in the table."""
    first, second = (table.number(name, low=0.01, high=0.99) for name in ("first", "second"))
    table.close()
    if first + (1 - first) * second <= 0.5:
        table.fail("the truth must be told more than half of the time", "first")
        return TwoCoin()
    return TwoCoin.truth_or_opposite(first, second)


def coin_judgements(coins: TwoCoin) -> dict[str, Judgement]:
    """What is right about two-coin response: what it tells, and what it costs."""
    truth, times = float(coins.matrix[1, 1]), f"{np.exp(coins.epsilon):g}"
    slope, shift = 1 / float(coins.gap[1]), float(coins.lie[1] / coins.gap[1])
    return {
        TRUTH: Judgement(f"{truth:g}", bool(np.isclose(truth, 0.75))),
        RATE: Judgement(f"{slope:g}p − {shift:g}", bool(np.isclose([slope, shift], [2, 0.5]).all())),
        LOSS: Judgement(
            f"{'ln 3 = ' if np.isclose(coins.epsilon, np.log(3)) else ''}{coins.epsilon:.4f}",
            coins.epsilon == 0,
            f"A report is {times} times likelier for one answer.",
            f"The truth is told with probability {truth:g}: a guess between yes and no that was even is right "
            f"{100 * truth:.0f} % of the time after a report “yes”. ε = 0 would need a fair coin in place of the "
            "truth, and its reports say nothing about anybody.",
            COINS,
        ),
    }


def coin_drawing(coins: TwoCoin) -> Described:
    """The loss over the probability of the truth."""
    truth = float(coins.matrix[1, 1])
    # At 1 the loss is infinite.
    truths = np.linspace(0.5, 0.98, 49).tolist()
    rows = [{"line": "exact loss", "truth": t, "value": TwoCoin(2 * t - 1, 0.5).epsilon} for t in truths]
    rows += [
        {"line": "these coins", "truth": truth, "value": coins.epsilon},
        {"line": CLAIMED, "truth": truth, "value": 0.0},
    ]
    description = (
        f"ε of one yes-or-no answer against the probability that it is the truth: ln(t / (1 − t)). It is 0 at a half "
        f"alone; these coins tell the truth with probability {truth:g} and cost {coins.epsilon:.4f}."
    )
    notes = ((truth, coins.epsilon, f"ε = {coins.epsilon:.4f}"), (truth, 0.0, "ε = 0"))
    title, x = "What a yes-or-no answer costs", "probability of the truth"
    panel = Lines(title, x, "ε", x="truth", stars=(CLAIMED,), log="", first=1, notes=notes)
    return Described(COINS, description, pd.DataFrame(rows), (panel,), height=3.8)

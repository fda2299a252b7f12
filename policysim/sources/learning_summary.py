"""From many repeats to means with intervals, and to one reliability curve each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
from scipy.stats import t

from policysim.sources.learning_runs import Judged
from policysim.sources.learning_scores import SCORES

CONFIDENCE = 0.95
# What is kept of a score: further down machines differ.
DECIMALS = 6
KEYS = ["private", "asked", "trained", "epsilon"]
# A bin with fewer outcomes, or fewer patients without it, says little.
LEAST_OUTCOMES = 10


def score_table(judged: Sequence[Judged]) -> pd.DataFrame:
    """Mean of each score over the repeats with its 95 % t interval.

    Returns
    -------
    DataFrame
        private, asked, trained, epsilon, score, mean, low, high. The interval is that of the mean over patients and
        reports; one repeat varies by the square root of the number of repeats more.
    """
    each = pd.DataFrame(
        [
            {**{key: getattr(one, key) for key in KEYS}, "score": name, "value": one.scores[name]}
            for one in judged
            for name in SCORES
        ]
    )
    grouped = each.groupby([*KEYS, "score"], sort=False)["value"]
    table = grouped.agg(["mean", "sem", "count"]).reset_index()
    reach = table["sem"] * t.ppf((1 + CONFIDENCE) / 2, table["count"] - 1)
    table["low"], table["high"] = table["mean"] - reach, table["mean"] + reach
    rounded = ["mean", "low", "high"]
    table[rounded] = table[rounded].round(DECIMALS)
    return table[[*KEYS, "score", *rounded]]


def reliability_table(judged: Sequence[Judged], private: str, epsilon: float) -> pd.DataFrame:
    """Mean prediction and rate of the outcome per bin of predictions, over the patients of all repeats.

    Returns
    -------
    DataFrame
        asked, trained, predicted, rate, patients: bins with enough outcomes, in the order of predictions.
    """
    chosen = [one for one in judged if one.private == private and one.epsilon == epsilon]
    frames = []
    for asked, trained in dict.fromkeys((one.asked, one.trained) for one in chosen):
        total = reduce(add, (one.bins for one in chosen if (one.asked, one.trained) == (asked, trained)))
        enough = (total.outcomes >= LEAST_OUTCOMES) & (total.patients - total.outcomes >= LEAST_OUTCOMES)
        patients = total.patients[enough]
        frames.append(
            pd.DataFrame(
                {
                    "asked": asked,
                    "trained": trained,
                    "predicted": np.round(total.predicted[enough] / patients, DECIMALS),
                    "rate": np.round(total.outcomes[enough] / patients, DECIMALS),
                    "patients": patients.astype(np.intp),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)

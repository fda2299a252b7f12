"""What can be looked at before a policy is believed.

Balance of the arms and propensities, as tables; and what may be wrong with a log, in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, chisquare

from policies.arrays import ROUNDING, FloatArray
from policysim.files.whole_folders import toml_string
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.log_source import ESTIMATE, LogSource, lot_words
from policysim.logs.treatments import lot
from policysim.trials.estimators import SMALLEST_ESS, effective_size, importance_weights
from policysim.trials.holes import where_caveats

POINTS = 41  # of each curve of propensities


def balance_of(log: Log, *, products: bool = False) -> pd.DataFrame:
    """How different the arms' patients are, before and after weighting by inverse propensities.

    The standardised difference of two arms is that of their means over the root of the mean of their variances, those
    before weighting (Austin 2009, Balance diagnostics for comparing the distribution of baseline covariates). Of a
    feature with levels each is a share; the largest over all pairs of arms counts.

    Parameters
    ----------
    products : bool, optional
        Whether products of each two of them are compared, too: where propensities are estimated, what decided on
        treatment may be two features together.

    Returns
    -------
    DataFrame
        `feature`, `level` ("" for the number itself of a feature that was cut), `before`, `after`.
    """
    data, columns = log.data, list(_columns(log))
    names = [(feature, level) for feature, level, _ in columns]
    values = np.column_stack([each for *_, each in columns])
    rounding = (10 * ROUNDING * np.abs(values).max(axis=0)) ** 2
    values = values - averaged(values, data.counts)
    if products:
        one, other = np.triu_indices(len(names), 1)
        apart = np.array([names[i][0] != names[j][0] for i, j in zip(one, other, strict=True)], dtype=np.bool_)
        rounding = np.append(rounding, rounding[one[apart]] * rounding[other[apart]])
        values = np.hstack([values, values[:, one[apart]] * values[:, other[apart]]])
        words = [": ".join(filter(None, name)) for name in names]
        names += [(f"{words[i]} × {words[j]}", "") for i, j in zip(one[apart], other[apart], strict=True)]
    arms = [data.of(data.actions == arm) for arm in range(data.n_actions)]
    rows = [values[data.actions == arm] for arm in range(data.n_actions)]
    plain = [averaged(own, arm.counts) for own, arm in zip(rows, arms, strict=True) if len(own)]
    squares = [averaged(own**2, arm.counts) for own, arm in zip(rows, arms, strict=True) if len(own)]
    weights = [arm.inverse_propensities for arm in arms]
    weighted = [each @ own / each.sum() for own, each in zip(rows, weights, strict=True) if len(own)]
    largest = np.zeros((2, len(names)))
    for i, j in combinations(range(len(plain)), 2):
        variance = (squares[i] - plain[i] ** 2 + squares[j] - plain[j] ** 2) / 2
        apart = np.abs([plain[i] - plain[j], weighted[i] - weighted[j]])
        spread = np.sqrt(np.where(variance > rounding, variance, np.inf))
        np.maximum(largest, apart / spread, out=largest)
    found = pd.DataFrame(names, columns=["feature", "level"])
    return found.assign(before=largest[0], after=largest[1])


def _columns(log: Log) -> Iterator[tuple[str, str, FloatArray]]:
    """What is compared: numbers that were cut, and each level but the first of the other features."""
    numbers = set() if log.raw is None else set(map(str, log.raw.columns))
    for name in log.space.names:
        if name in numbers and log.raw is not None:
            yield name, "", log.raw[name].to_numpy(dtype=np.float64)
            continue
        codes, labels = log.space.groups(name)
        mine = codes[log.records]
        for level, label in list(enumerate(labels))[1 if len(labels) == 2 else 0 :]:
            yield name, str(label), (mine == level).astype(np.float64)


# Beyond it arms are called imbalanced (Austin 2009).
IMBALANCE = 0.1


def imbalance_by_chance(data: LoggedData) -> float:
    """The chance that some two arms differ by more than `IMBALANCE` in one feature, were treatment by lot.

    The standardised difference of arms i and j is then about normal with variance 1 / n_i + 1 / n_j, n the effective
    sample sizes of their weights: a simulation with a fixed seed.
    """
    weights = [data.of(data.actions == arm).inverse_propensities for arm in range(data.n_actions)]
    sizes = np.array([each.sum() ** 2 / (each @ each) for each in weights if len(each)])
    draws = np.random.default_rng(0).normal(size=(20_000, len(sizes))) / np.sqrt(sizes)
    return float((np.ptp(draws, axis=1) > IMBALANCE).mean())


def propensities_of(data: LoggedData) -> pd.DataFrame:
    """How probable the treatments were that patients got: for each arm the share of its patients up to a propensity.

    Returns
    -------
    DataFrame
        `line` (arm), `propensity`, `value` (share of the arm's patients with at most this); without rows where no two
        patients of an arm differ.
    """
    rows: list[tuple[str, float, float]] = []
    varies = False
    for arm, name in enumerate(data.names):
        mine = data.of(data.actions == arm)
        own = mine.propensities
        if not len(own):
            continue
        varies |= bool(own.min() < own.max())
        ranks = np.linspace(0, 1, POINTS)
        points = np.unique(np.quantile(own, ranks, weights=mine.counts, method="inverted_cdf"))
        rows += [(name, float(point), float(averaged(own <= point, mine.counts))) for point in points]
    return pd.DataFrame(rows if varies else [], columns=["line", "propensity", "value"])


# A chance below which equal allocation is called doubtful; shared by all features that are looked at.
DOUBTFUL = 0.001
ESTIMATED = (
    "Propensities are estimated from the declared features: whatever else decided who got which treatment "
    "(confounding) biases every number here, and no interval covers that."
)

# Of fewer patients that an arm still has at the horizon, a Kaplan-Meier estimate there is rough.
FEWEST_FOLLOWED = 10


class LogCaveats(NamedTuple):
    """What may be wrong with a log, a sentence for each doubt.

    `errors` are signs of what no interval covers, doubtful allocation and treatments that some patients never get:
    beside them nothing is told. `others` are confounding, as far as propensities are estimated, and too few patients.
    """

    errors: Sequence[str] = ()
    others: Sequence[str] = ()


def log_caveats(log: Log, source: LogSource) -> LogCaveats:
    """The doubts about a log, as far as a study says how treatments were given."""
    data = log.data
    by_lot = np.full((data.n_rows, data.n_actions), 1 / data.n_actions)
    others = [ESTIMATED] if source.propensity == ESTIMATE else []
    ess = effective_size(importance_weights(data, by_lot), data.counts)
    if ess < SMALLEST_ESS:
        others.append(
            f"The effective sample size of the log is {ess:,.0f} (treatment by lot): below {SMALLEST_ESS} the 95 % "
            "intervals may cover less than they say."
        )
    others += [
        f"Only {followed:,} of {patients:,} patients of {name} are followed to the horizon: what is said of it rests "
        "on them."
        for name, patients, censored, followed in log.censored.itertuples(index=False)
        if followed < FEWEST_FOLLOWED and censored
    ]
    allocation = _allocation(log, source.propensity) if lot_words(source.propensity) else []
    return LogCaveats([*allocation, *where_caveats(data, by_lot, log.covariates)], others)


def _allocation(log: Log, propensity: str | tuple[float, ...]) -> list[str]:
    """Where a declared lot does not look like one: Pearson's chi-square tests of the arms, and of each feature."""
    k = log.data.n_actions
    doubtful = f"propensity = {lot_words(propensity) if isinstance(propensity, tuple) else toml_string(propensity)}"
    chances = lot(propensity, k)
    counts = log.data.by_action()
    # Rows without an outcome were allocated too.
    counts = counts + (np.array(log.missing) if log.n_read > log.data.n_patients else 0)
    found = []
    # Shares are what the arms have.
    chance = 1.0 if chances is None else float(chisquare(counts, counts.sum() * chances).pvalue)
    if chance < DOUBTFUL:
        shown = ", ".join(f"{name} {n:,}" for name, n in zip(log.data.names, counts, strict=True))
        found.append(
            f"{doubtful} is doubtful: the treatments have {shown} patients, which happens by lot with probability "
            f"{chance:.1g}."
        )
    for name in log.space.names:
        codes, labels = log.space.groups(name)
        crossed = np.zeros((len(labels), k))
        np.add.at(crossed, (codes[log.records], log.data.actions), 1 if log.data.counts is None else log.data.counts)
        crossed = crossed[crossed.sum(axis=1) > 0]
        if len(crossed) > 1:
            chance = float(chi2_contingency(crossed).pvalue)
            if chance < DOUBTFUL / len(log.space.names):
                found.append(
                    f"{doubtful} is doubtful: who got which treatment depends on {name} (by lot that would happen with "
                    f"probability {chance:.1g}); without the true propensities every number here is biased."
                )
    return found

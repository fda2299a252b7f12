"""What can be looked at before a policy is believed: calibration of the scores, balance of the arms, propensities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, averaged
from policysim.study.declared import LoggedStudy
from policysim.trials.arms import arm_means
from policysim.trials.splits import split_log

BINS = 3
FEWEST_IN_BIN = 10
IMBALANCE = 0.1  # a standardised difference that is called one (Austin 2009)
POINTS = 41  # of each curve of propensities


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Tables of a log, none of which knows a policy.

    Attributes
    ----------
    calibration : DataFrame
        See `calibration_of`.
    balance : DataFrame
        See `balance_of`.
    propensities : DataFrame
        See `propensities_of`; empty where all are the same in each arm.
    """

    calibration: pd.DataFrame
    balance: pd.DataFrame
    propensities: pd.DataFrame

    @classmethod
    def of(cls, log: Log, study: LoggedStudy) -> Diagnostics:
        """Compute all of them."""
        return cls(calibration_of(log, study), balance_of(log), propensities_of(log.data))


def calibration_of(log: Log, study: LoggedStudy) -> pd.DataFrame:
    """Scores beside what was seen, in thirds of each arm's patients by score.

    Each patient's score is that of the arm that they got, by an outcome model that was fitted without them.

    Returns
    -------
    DataFrame
        `line` (arm), `predicted` (mean score), `value` (mean outcome, weighted by inverse propensities), its 95 %
        interval `low`, `high` (see `arm_means`), and `patients`; thirds of fewer than ten patients are left out.
    """
    split = next(split_log(log, study))
    data = split.log.data
    scores = data.of_taken(split.scores)
    rows = []
    for arm, name in enumerate(data.names):
        own = np.flatnonzero(data.actions == arm)
        cuts = np.unique(_quantiles(scores[own], data.of(own).counts, np.arange(1, BINS) / BINS))
        of_bin = np.searchsorted(cuts, scores[own], side="left")
        for place in np.unique(of_bin):
            mine = own[of_bin == place]
            patients = data.of(mine)
            if patients.n_patients < FEWEST_IN_BIN:
                continue
            found = arm_means(patients, study.log.utility_range).iloc[arm]
            predicted = float(np.average(scores[mine], weights=_weights(patients)))
            rows.append((name, predicted, found["mean"], found["low"], found["high"], patients.n_patients))
    return pd.DataFrame(rows, columns=["line", "predicted", "value", "low", "high", "patients"])


def balance_of(log: Log) -> pd.DataFrame:
    """How different the arms' patients are, before and after weighting by inverse propensities.

    The standardised difference of two arms is that of their means over the root of the mean of their variances, those
    before weighting (Austin 2009, Balance diagnostics for comparing the distribution of baseline covariates). Of a
    feature with levels each is a share; the largest over all pairs of arms counts.

    Returns
    -------
    DataFrame
        `feature`, `level` ("" for the number itself of a feature that was cut), `before`, `after`.
    """
    data, rows = log.data, []
    arms = [data.actions == arm for arm in range(data.n_actions) if (data.actions == arm).any()]
    for feature, level, values in _columns(log):
        plain = [_mean_and_variance(values[own], data.of(own).counts) for own in arms]
        weighted = [float(np.average(values[own], weights=_weights(data.of(own)))) for own in arms]
        apart = []
        for one, other in combinations(range(len(arms)), 2):
            spread = np.sqrt((plain[one][1] + plain[other][1]) / 2)
            both = (plain[one][0] - plain[other][0], weighted[one] - weighted[other])
            apart.append([abs(each) / spread if spread > 0 else 0.0 for each in both])
        before, after = np.max(apart, axis=0).tolist() if apart else (0.0, 0.0)
        rows.append((feature, level, before, after))
    return pd.DataFrame(rows, columns=["feature", "level", "before", "after"])


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
        points = np.unique(_quantiles(own, mine.counts, np.linspace(0, 1, POINTS)))
        rows += [(name, float(point), float(averaged(own <= point, mine.counts))) for point in points]
    return pd.DataFrame(rows if varies else [], columns=["line", "propensity", "value"])


def _weights(data: LoggedData) -> FloatArray:
    """Inverse propensities, of all the patients of each row."""
    return 1 / data.propensities if data.counts is None else data.counts / data.propensities


def _mean_and_variance(values: FloatArray, counts: IntArray | None) -> tuple[float, float]:
    if counts is None:
        return float(values.mean()), float(values.var())
    mean = float(averaged(values, counts))
    return mean, float(averaged((values - mean) ** 2, counts))


def _quantiles(values: FloatArray, counts: IntArray | None, at: FloatArray) -> FloatArray:
    """As `numpy.quantile` of the values of all patients."""
    if counts is None:
        return np.asarray(np.quantile(values, at))
    order = np.argsort(values, kind="stable")
    ends, places = np.cumsum(counts[order]), at * (counts.sum() - 1)
    below, above = (
        values[order][np.searchsorted(ends, place, side="right")] for place in (np.floor(places), np.ceil(places))
    )
    found: FloatArray = below + (above - below) * (places - np.floor(places))
    return found


def balance_words(balance: pd.DataFrame) -> str:
    """The largest differences, in a sentence."""

    def worst(column: str) -> str:
        row = balance.iloc[int(balance[column].to_numpy().argmax())]
        level = f" = {row['level']}" if row["level"] else ""
        return f"{row[column]:.2f} ({row['feature']}{level})"

    same = np.allclose(balance["before"], balance["after"], rtol=0, atol=1e-9)
    found = worst("before") if same else f"{worst('before')} before weighting and {worst('after')} after"
    many = int((balance["after"] > IMBALANCE).sum())
    return (
        f"Balance of the arms: the largest standardised difference is {found}; {many} of {len(balance)} are above "
        f"{IMBALANCE:g}{'' if same else ' after weighting'}, from which arms are called imbalanced."
    )

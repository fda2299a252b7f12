"""Arms against each other: how far the highest mean is above each other one, and whether that shows the best arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.outcome_models import robust_values
from policysim.study.checks import LEVEL, Z
from policysim.trials.estimators import Moments, moments, one_more, snips

SIMULATED = 20_000


def difference_of_means(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """The difference of two independent means, each given with its interval, and the interval of the difference.

    By squaring and adding the reaches of the two intervals (Newcombe 1998, Statistics in Medicine 17:873, method 10;
    Zou & Donner 2008).

    Examples
    --------
    >>> difference_of_means((0.9, 0.86, 0.93), (0.5, 0.47, 0.54))
    (0.4, 0.343..., 0.442...)
    """
    (mean, low, high), (its, its_low, its_high) = one, other
    below, above = math.hypot(mean - low, its_high - its), math.hypot(high - mean, its - its_low)
    return mean - its, mean - its - below, mean - its + above


def against_highest(
    arms: pd.DataFrame, data: LoggedData | None = None, predicted: FloatArray | None = None
) -> pd.DataFrame:
    """The arm with the highest mean less each other one, with intervals after which it may be said which is the best.

    Parameters
    ----------
    arms : DataFrame
        `arm`, `mean`, `low` and `high`, as `arm_means` has them.
    data : LoggedData, optional
        What they are the means of; without it means are independent.
    predicted : array, (n_rows, k), optional
        What they are doubly robust by, if they are.

    Returns
    -------
    DataFrame
        `arm` (the highest), `than`, `value`, `low`, `high`: other arms from the next highest on. Among arms that are
        truly equal, an interval is above 0 in at most 5 % of logs, however many arms there are.

    Notes
    -----
    Where means are independent, the ordinary interval is that of `difference_of_means`. Doubly robust means are of the
    same rows, and clusters may have patients of several arms: then it is that of the mean of what a row adds to one
    less what it adds to the other. Scores that go up and down together make it narrower, as where a number predicts the
    outcome under both arms; opposite ones make it wider.

    Where the ordinary 95 % interval of each difference is above 0, the highest arm is the best, and these intervals are
    given: that an arm was picked for its mean needs no correction if it is better than all others at once (Gutmann &
    Maymin 1987, Is the selected population the best?). Otherwise some arms may still be worse than the highest, and
    their intervals hold together (multiple comparisons with the best, Hsu 1996, chapters 4 and 5): the reach of the
    ordinary interval is multiplied by q / 1.96. With normal means whose differences have these errors, and no
    difference, either the highest is better than all others by 1.96 errors of their difference, or some two arms are q
    errors apart, with probability 5 % in all. Hsu's own one-sided q would leave out arms that equal the best: of six
    equal arms some in 22 %. The joint distribution is simulated, as errors are unequal; of two arms q is 1.96.
    """
    ranked = arms.sort_values("mean", ascending=False, kind="stable")[["arm", "mean", "low", "high"]]
    (best, *highest), *others = ranked.itertuples(index=False, name=None)
    apart = [difference_of_means(highest, mean) for _, *mean in others]
    deviations = np.diag(((ranked["high"] - ranked["low"]) / 2).dropna().to_numpy())
    if data is not None and (predicted is not None or (data.clusters is not None and data.whole_clusters is None)):
        pairs = _pairs(data, means_and_deviations(data, predicted)[1])
        reaches = [_reach(pairs, best, arm) for arm, *_ in others]
        apart = [(value, value - reach, value + reach) for (value, *_), reach in zip(apart, reaches, strict=True)]
        deviations = _deviations(pairs)
    if not all(low > 0 for _, low, _ in apart):
        stretch = _errors_apart(deviations) / Z if len(deviations) > 2 else 1.0
        apart = [(value, *(value + stretch * (end - value) for end in ends)) for value, *ends in apart]
    rows = [(best, arm, *ends) for (arm, *_), ends in zip(others, apart, strict=True)]
    return pd.DataFrame(rows, columns=["arm", "than", "value", "low", "high"])


def means_and_deviations(data: LoggedData, predicted: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """The mean of each arm, (k,), NaN without rows, and what each row adds to its error, (n_rows, k).

    As in `arms.arm_means`: doubly robust with `predicted`, else weighted, so that an arm's error is of its own rows.
    """
    if predicted is not None:
        values = robust_values(data, predicted)
        means: FloatArray = averaged(values, data.counts)
        return means, values - means
    means, deviations = np.full(data.n_actions, np.nan), np.zeros((data.n_rows, data.n_actions))
    for arm in np.unique(data.actions):
        mine = data.of(rows := data.actions == arm)
        linearised = snips(1 / mine.propensities, mine.rewards, mine.counts)
        means[arm] = averaged(linearised, mine.counts)
        deviations[rows, arm] = (linearised - means[arm]) * data.n_patients / mine.n_patients
    return means, deviations


def _pairs(data: LoggedData, deviations: FloatArray) -> dict[tuple[str, str], Moments]:
    """The difference of the means of each two arms that have two patients, by their names."""
    known = [arm for arm, n in enumerate(data.by_action(data.known.weights > 0)) if n > 1]
    pairs = {}
    for one, other in combinations(known, 2):
        # Of a rare outcome an arm may have none, and then no variance.
        weights = np.where(np.isin(data.actions, (one, other)), 1 / data.propensities, 0.0)
        unseen = one_more(weights, data) if data.is_binary else 0.0
        apart = deviations[:, one] - deviations[:, other]
        pairs[data.names[one], data.names[other]] = moments(apart, data.counts, unseen, clusters=data.clusters)
    return pairs


def _reach(pairs: dict[tuple[str, str], Moments], one: str, other: str) -> float:
    """How far the 95 % interval of a difference reaches; NaN for an arm that is in no pair."""
    found = pairs.get((one, other)) or pairs.get((other, one))
    return found.quantile * found.standard_error if found else math.nan


def _deviations(pairs: dict[tuple[str, str], Moments]) -> FloatArray:
    """A matrix F with a row for each arm, such that arms i and j differ by a standard error of |F_i - F_j|.

    F F' is the covariance of the arms' deviations from their mean, by classical scaling (Torgerson 1952,
    Multidimensional scaling, equation 9).
    """
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    variances = np.zeros((len(names), len(names)))
    for (one, other), found in pairs.items():
        places = names.index(one), names.index(other)
        variances[places] = variances[places[::-1]] = found.standard_error**2
    centred = variances - variances.mean(axis=0)
    values, vectors = np.linalg.eigh(-(centred - centred.mean(axis=1, keepdims=True)) / 2)
    scaled: FloatArray = vectors * np.sqrt(np.maximum(values, 0))
    return scaled


def _errors_apart(deviations: FloatArray) -> float:
    """q of `against_highest`; row i of F, (k, m), times m standard normal numbers is the error of mean i."""
    means = np.random.default_rng(0).normal(size=(SIMULATED, deviations.shape[1])) @ deviations.T
    n_arms = len(deviations)
    widest, lead = np.zeros(SIMULATED), np.full((n_arms, SIMULATED), np.inf)
    for one, other in combinations(range(n_arms), 2):
        error = float(np.linalg.norm(deviations[one] - deviations[other]))
        apart = (means[:, one] - means[:, other]) / (error or math.inf)
        np.maximum(widest, np.abs(apart), out=widest)
        lead[one], lead[other] = np.minimum(lead[one], apart), np.minimum(lead[other], -apart)
    named = (lead > Z).any(axis=0)
    # So many of the others may still be further apart than q.
    left = max(0, round((1 - LEVEL) * SIMULATED) - int(named.sum()))
    return max(Z, float(np.sort(widest[~named])[-1 - left]))

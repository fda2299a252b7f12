"""Each arm of a log, had it been given to everyone, and a policy against one of them.

How many patients each arm had, and their mean reward with its interval; then the difference of a policy from one arm
for all, that was chosen on other patients. Arms against each other are in `contrasts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from policies.arrays import BoolArray, FloatArray, IntArray
from policies.mask import mask_classes
from policysim.files.bad_rows import DataError
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, averaged
from policysim.logs.log_source import EXCLUDE, LogSource
from policysim.logs.outcome_models import FEWEST_ROWS, robust_values
from policysim.logs.toml_text import toml_text
from policysim.report.findings import OUTCOME, UTILITY
from policysim.study.checks import UPPER
from policysim.trials.estimate_value import CrossFit, mean_of
from policysim.trials.estimators import (
    NOTHING,
    Moments,
    effective_size,
    importance_weights,
    moments,
    over_splits,
    overlap_caveats,
    snips,
)

UNBOUNDED = (-math.inf, math.inf)


def arm_means(
    data: LoggedData, limits: tuple[float, float] = UNBOUNDED, predicted: FloatArray | None = None
) -> pd.DataFrame:
    """The mean reward of each arm, had all patients been given it, with its 95 % interval.

    Parameters
    ----------
    data : LoggedData
        A log; its propensities say which patients each arm's rows stand for.
    limits : tuple of float, optional
        The lowest and the highest reward that are possible: no interval leaves them. Rewards of 0 and 1 need none.
    predicted : array, (n_rows, k), optional
        q(x, a) of each row, by a model that was fitted without it.

    Returns
    -------
    DataFrame, a row for each arm in the order of `data.names`
        `arm` (name), `rows` (patients who were given it), `mean` (in the reward's unit; NaN without rows), `low` and
        `high` (ends of the interval; NaN with fewer than two rows, or if no two rewards differ and any is possible).

    Notes
    -----
    The mean of an arm's rows, and its error, are those of self-normalised weights, `estimators.snips`: with equal
    propensities the plain mean and its usual standard error. The interval reaches further than 1.96 standard errors
    where rewards are skewed or few (`estimators.Moments.quantile`).

    Of rewards of 0 and 1 it is Wilson's, see `_wilson`; with `predicted`, where they are the same in all of an arm.

    With `predicted`, an arm's mean is that of its doubly robust values over all rows (Robins, Rotnitzky & Zhao 1994;
    Chernozhukov et al. 2018): where propensities are estimated, weighting by them alone is as wrong as they are, and
    this is wrong by the product of their error with that of the outcome model.

    Of clusters the variance is that of `estimators.clustered_moments`, with Student's t.

    Examples
    --------
    >>> import numpy as np
    >>> data = LoggedData(
    ...     np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.5, 0.5, 0.5, 0.5]), ("none", "pill")
    ... )
    >>> arm_means(data)[["arm", "rows", "mean"]].values.tolist()
    [['none', 3, 2.0], ['pill', 1, 5.0]]
    """
    values = None if predicted is None else robust_values(data, predicted)
    rows = []
    for arm, name in enumerate(data.names):
        mine = data.of(data.actions == arm)
        if not mine.n_patients:
            found = NOTHING
        elif values is None:
            found = weighted_mean(mine)
        else:
            found = moments(values[:, arm], data.counts, clusters=data.clusters)
        weighted_shares = data.is_binary and (values is None or not found.standard_error > 0)
        low, high = (_wilson if weighted_shares else _within)(found, mine, limits)
        rows.append((name, mine.n_patients, found.mean, low, high))
    return pd.DataFrame(rows, columns=["arm", "rows", "mean", "low", "high"])


def weighted_mean(patients: LoggedData) -> Moments:
    """The mean reward of some patients, each weighted by the inverse propensity; see `arm_means`."""
    linearised = snips(1 / patients.propensities, patients.rewards, patients.counts)
    return moments(linearised, patients.counts, clusters=patients.clusters)


def _within(found: Moments, arm: LoggedData, limits: tuple[float, float]) -> tuple[float, float]:
    """The 95 % interval of an arm's mean within the limits of rewards; NaN for fewer than two patients.

    If all of m rewards are the same, at most a share of 1 - .025^(1/m) of patients have another one, but for 2.5 %
    (Clopper & Pearson 1934): the interval holds the mean if these have any reward that is possible. It is NaN if any
    reward is.
    """
    if arm.n_patients < 2:
        return math.nan, math.nan
    low, high = found.interval
    if found.standard_error == 0:
        others = 1 - (1 - UPPER) ** (1 / _effective_units(1 / arm.propensities, arm))
        low, high = (found.mean + others * (limit - found.mean) for limit in limits)
        return (low, high) if math.isfinite(high - low) else (math.nan, math.nan)
    # A doubly robust mean may be beyond the limits.
    return min(found.mean, max(low, limits[0])), max(found.mean, min(high, limits[1]))


def _wilson(found: Moments, arm: LoggedData, _: tuple[float, float]) -> tuple[float, float]:
    """Wilson's (1927) 95 % interval of an arm's weighted share v: all p with (v - p)^2 <= z^2 p (1 - p) / m, in [0, 1].

    With equal weights m = n; else m = v (1 - v) / variance, the number of rows that would have this variance, but at
    most the effective sample size (sum w)^2 / sum w^2 (Kish 1965): an arm whose few heavy rows all failed has a small
    variance by luck. Where all rewards are the same, m is the effective sample size. So it is, too, of being free of an
    event under censoring (Rothman 1978, Estimation of confidence limits for the cumulative probability of survival in
    life table analysis), where the variance is Greenwood's.

    Of clusters z is Student's t with their degrees of freedom, and m smaller (Korn & Graubard 1998, Confidence
    intervals for proportions with small expected number of positive counts estimated from survey data); where all
    rewards are the same it is that of clusters.
    """
    if arm.n_patients < 2:
        return math.nan, math.nan
    weights = 1 / arm.propensities
    # Of outcomes that are made up for by a model the mean may be outside by a little.
    n, share, z = found.n, min(max(found.mean, 0.0), 1.0), found.student
    if found.standard_error == 0 or share in (0, 1):
        m = _effective_units(weights, arm)
    else:
        # The error of independent patients has n - 1, a share's n: with equal weights m is n.
        variance = found.standard_error**2 * (1 if arm.clusters is not None else (n - 1) / n)
        m = min(share * (1 - share) / variance, effective_size(weights, arm.counts))
    centre = (share + z**2 / (2 * m)) / (1 + z**2 / m)
    reach = z / (1 + z**2 / m) * float(np.sqrt(share * (1 - share) / m + (z / (2 * m)) ** 2))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def _effective_units(weights: FloatArray, arm: LoggedData) -> float:
    """The effective number of an arm's patients with an outcome, or of its clusters, by the weights of its rows."""
    known = weights * arm.known.weights
    if arm.clusters is None:
        return effective_size(known, arm.counts)
    return effective_size(np.bincount(arm.clusters, known).astype(np.float64))


def arms_of(log: Log, source: LogSource) -> pd.DataFrame:
    """Each outcome in each arm, had everyone been given it: outcome, arm, rows, missing, mean, 95 % interval low, high.

    `source` says what is done with rows without an outcome, and which outcomes are possible: no interval leaves them.
    The utility comes first: the outcome less what the arm costs. What is missing or censored is made up for by a model,
    as in `Log.shown`. Where outcomes are modelled for all rows (`Log.predicted`) means are doubly robust.
    """
    unit = source.utility_range == source.default_range
    excluded = np.array(log.missing if source.missing == EXCLUDE else (0,) * log.data.n_actions)
    rewarded = log.rewarded or (UTILITY if log.data.costs is None else OUTCOME)
    frames: list[pd.DataFrame] = []
    for name in dict.fromkeys([*([] if log.rewarded else [rewarded]), *log.outcomes]):
        values = log.outcomes.get(name, log.data.rewards)
        if name == rewarded:
            means = arm_means(log.data, source.utility_range, log.predicted)
        else:
            own = log.shown.get(name) or replace(log.data, rewards=values, observed=None).of(np.isfinite(values))
            at_horizon = source.follow_up and name not in source.outcome
            limits = source.ends_of(name) if unit and source.outcome.get(name) else UNBOUNDED
            means = arm_means(own, (0.0, 1.0) if at_horizon else limits, log.others_predicted.get(name))
        gaps = log.data.by_action(~np.isfinite(values))
        means.insert(0, "outcome", name)
        means.insert(3, "missing", excluded if name == rewarded or (name in log.shown and not gaps.any()) else gaps)
        if name == rewarded and log.data.costs is not None:
            ends = {end: means[end] - log.data.costs for end in ("mean", "low", "high")}
            frames.insert(0, means.assign(outcome=UTILITY, **ends))
        frames.append(means)
    return pd.concat(frames, ignore_index=True)


def utility_of_arms(log: Log, arms: pd.DataFrame) -> pd.DataFrame:
    """The rows of `arms_of` that are of the utility."""
    name = UTILITY if log.data.costs is not None else log.rewarded or UTILITY
    return arms[arms["outcome"] == name]


def refuse_single_patients(source: LogSource, log: Log) -> None:
    """DataError for an arm of one patient: it has no spread, and no model of it can be judged on others."""
    for arm in np.flatnonzero(log.data.by_action() == 1).tolist():
        name = log.data.names[arm]
        value = next((value for value, own in source.treatments if own == name), name)
        raise DataError(
            f"{log.single.get(name, next(iter(source.files.values())).as_posix())}: {source.treatment or 'treatment'}: "
            f"{name} has this patient alone: leave the row out, or join the arm to another by one name in [data], "
            f"treatments = {{ {toml_text(value)} = ... }}"
        )


@dataclass(frozen=True)
class ArmDifference:
    """How much better a policy is than one arm for all who may get the same, chosen on other folds.

    Attributes
    ----------
    value : float
        The mean over folds of the policy's value less that of the arm that did best in the other folds; per patient, in
        the reward's unit; > 0 if the policy is better.
    interval : tuple of float
        Its 95 % interval.
    arm : str
        The one that is chosen for most patients; where not all may get the same, that of each group.
    warnings : tuple of str
        Where the log hardly knows what the arm does to some patients.
    """

    value: float
    interval: tuple[float, float]
    arm: str
    warnings: tuple[str, ...]


# Random splits, and the folds of each.
SPLITS, FOLDS = 10, 5


def difference_from_one_arm(
    data: LoggedData,
    probabilities: FloatArray,
    admissible: BoolArray | None = None,
    *,
    seed: int = 0,
    estimator: str = "dr",
    fitted: CrossFit | None = None,
    clip: float | None = None,
) -> ArmDifference:
    """The value of a policy minus that of one arm for all, on the same rows.

    Nobody knows which arm is the best, and the one that did best in these rows has had luck in them. So each fold's
    rows are compared with the arm that did best in the others: no row has a part in what it is compared with. The
    difference is the mean of what the rows add under the policy less what they add under that arm: rows on which both
    agree cancel. Ten random splits say together what it is (`estimators.over_splits`): where arms are nearly equal,
    which of them is chosen depends on the split, and the interval covers that.

    Parameters
    ----------
    data : LoggedData
        At least two rows.
    probabilities : array, (n_rows, k)
        p(a|x) of the policy for each row.
    admissible : array of bool, (n_rows, k), optional
        The arms that each row may get. Patients who may get the same arms then have a comparison arm of their own.
    seed : int
        Decides which rows share a fold.
    estimator : str
        "ips", "snips", "dm" or "dr", for the policy and for the arm.
    fitted : CrossFit, optional
        Outcome models; needed for "dm" and "dr".
    clip : float, optional
        The most that an importance weight may be.
    """
    allowed = np.ones((data.n_rows, data.n_actions), dtype=np.bool_) if admissible is None else admissible
    groups, rng = mask_classes(allowed), np.random.default_rng(seed)
    found, shares = [], np.zeros((data.n_rows, data.n_actions))
    for _ in range(SPLITS):
        dealt, rows, folds = data.dealt(min(FOLDS, data.n_units), rng)
        one = np.zeros_like(shares)
        chosen = arms_elsewhere(dealt, folds, allowed[rows], groups[rows])
        np.add.at(one, (rows, chosen), 1.0 if dealt.counts is None else dealt.counts)
        one /= np.maximum(one.sum(axis=1, keepdims=True), 1)
        shares += one / SPLITS
        found.append(mean_of(estimator, data, [probabilities, one], fitted, clip))
    arm_names, warnings, names = [], [], np.array(data.names)
    for group in np.unique(groups):
        mine = groups == group
        arm, may = int(shares[mine].sum(axis=0).argmax()), allowed[mine.argmax()]
        arm_names.append(
            data.names[arm] if may.all() else f"{data.names[arm]} for patients who may get {', '.join(names[may])}"
        )
        n_rows = data.by_action(mine)[arm]
        if n_rows < FEWEST_ROWS:
            warnings.append(f"too few rows got {data.names[arm]} ({n_rows}): the interval may be too narrow.")
    caveats = overlap_caveats(data, averaged(shares, data.counts), importance_weights(data, shares))
    warnings += [f"one arm for all: {each}" for each in caveats]
    value, *ends, _ = over_splits(found)
    return ArmDifference(value, (ends[0], ends[1]), "; ".join(arm_names), tuple(warnings))


def arms_elsewhere(data: LoggedData, folds: IntArray, allowed: BoolArray, groups: IntArray) -> IntArray:
    """For each row the arm that did best in the other folds of its group, by the weighted mean reward, (n_rows,)."""
    shape = int(groups.max()) + 1, int(folds.max()) + 1, data.n_actions
    cells = np.ravel_multi_index((groups, folds, data.actions), shape)
    weights = data.inverse_propensities
    rewards, total = (
        np.bincount(cells, each, math.prod(shape)).reshape(shape) for each in (weights * data.rewards, weights)
    )
    rewards, total = (each.sum(axis=1, keepdims=True) - each for each in (rewards, total))
    # An arm that nobody got elsewhere comes after all that somebody got, and one that is not allowed last.
    means = np.divide(rewards, total, out=np.full(shape, -np.finfo(np.float64).max), where=total > 1e-9 * total.max())
    means = data.less_costs(means)
    may = allowed[[int((groups == group).argmax()) for group in range(shape[0])]]
    best: IntArray = np.where(may[:, None, :], means, -np.inf).argmax(axis=2)
    return best[groups, folds]

"""The arms of a log before any model, and a policy against the best of them.

How many patients each arm had, and their mean reward with its interval; then the difference of a policy from the best
single arm. Nobody knows which arm that is, so the policy is compared with each, and the interval holds for the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policies.arrays import FloatArray, IntArray
from policies.mask import BoolArray, mask_classes
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData, summed
from policysim.logs.log_source import EXCLUDE, LogSource, default_range
from policysim.logs.outcome_models import FEWEST_ROWS
from policysim.study.checks import Z
from policysim.trials.estimate_value import CrossFit, estimator_named
from policysim.trials.estimators import NOTHING, importance_weights, moments, overlap_caveats, snips


def arm_means(data: LoggedData, limits: tuple[float, float] | None = None) -> pd.DataFrame:
    """The mean reward of each arm, had all patients been given it, with its 95 % interval.

    Parameters
    ----------
    data : LoggedData
        A log; its propensities say which patients each arm's rows stand for.
    limits : tuple of float, optional
        The lowest and the highest reward that are possible: no interval leaves them. Rewards of 0 and 1 need none.

    Returns
    -------
    DataFrame, a row for each arm in the order of `data.names`
        `arm` (name), `rows` (patients who were given it), `mean` (in the reward's unit; NaN without rows), `low` and
        `high` (ends of the interval; NaN with fewer than two rows, or if no two rewards differ, unless all of the log's
        are 0 or 1).

    Notes
    -----
    With w = 1 / propensity, the mean of an arm's n rows is v = sum w r / sum w (Hajek 1971), and its variance
    n / (n - 1) sum w^2 (r - v)^2 / (sum w)^2, the delta method's (Owen 2013, Monte Carlo theory, methods and examples,
    equation 9.9). With equal propensities they are the plain mean and its usual squared standard error. The interval
    reaches further than 1.96 standard errors where rewards are skewed or few (`estimators.Moments.quantile`).

    Of rewards of 0 and 1 it is Wilson's (1927): all shares p with (v - p)^2 <= z^2 p (1 - p) / m, which are within
    [0, 1]. With equal weights m = n; else m = v (1 - v) / variance, the number of rows that would have this variance,
    or, where all rewards are the same, the effective sample size (sum w)^2 / sum w^2 (Kish 1965). So it is, too, of
    being free of an event under censoring (Rothman 1978, Estimation of confidence limits for the cumulative
    probability of survival in life table analysis), where the variance is Greenwood's.

    Examples
    --------
    >>> import numpy as np
    >>> data = LoggedData(
    ...     np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.5, 0.5, 0.5, 0.5]), ("none", "pill")
    ... )
    >>> arm_means(data)[["arm", "rows", "mean"]].values.tolist()
    [['none', 3, 2.0], ['pill', 1, 5.0]]
    """
    rows = []
    for arm, name in enumerate(data.names):
        mine = data.of(data.actions == arm)
        rewards, weights, counts, n = mine.rewards, 1 / mine.propensities, mine.counts, mine.n_patients
        found = moments(snips(weights, rewards, counts), counts) if n else NOTHING
        low = high = np.nan
        if n > 1 and data.is_binary:
            low, high = _wilson(found.mean, found.standard_error, weights * mine.known.weights, counts)
        elif n > 1 and found.standard_error > 0:
            reach = found.quantile * found.standard_error
            low, high = found.mean - reach, found.mean + reach
            if limits is not None:
                low, high = max(low, limits[0]), min(high, limits[1])
        rows.append((name, n, found.mean, low, high))
    return pd.DataFrame(rows, columns=["arm", "rows", "mean", "low", "high"])


def _wilson(share: float, error: float, weights: FloatArray, counts: IntArray | None) -> tuple[float, float]:
    """Wilson's 95 % interval of a weighted share; its n that of a plain share with the same error."""
    n = len(weights) if counts is None else int(counts.sum())
    if error == 0:
        m = float(summed(weights, counts)) ** 2 / float(weights @ (weights if counts is None else weights * counts))
    else:
        # The error has n - 1, a share's n: with equal weights m is n.
        m = share * (1 - share) / (error**2 * (n - 1) / n)
    centre = (share + Z**2 / (2 * m)) / (1 + Z**2 / m)
    reach = Z / (1 + Z**2 / m) * float(np.sqrt(share * (1 - share) / m + (Z / (2 * m)) ** 2))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def arms_of(log: Log, source: LogSource) -> pd.DataFrame:
    """Each outcome in each arm before any model: outcome, arm, rows, missing, mean, and its 95 % interval low, high.

    `source` says what is done with rows without an outcome (those that are excluded are in no other count), and which
    outcomes are possible: no interval leaves them.
    """
    unit = source.utility_range == default_range(source.outcome)
    shown = dict(log.outcomes)
    if not any(np.array_equal(values, log.data.rewards) for values in shown.values()):
        shown = {"utility": log.data.rewards, **shown}
    excluded = np.array(log.missing if source.missing == EXCLUDE else (0,) * log.data.n_actions)
    frames = []
    for name, values in shown.items():
        known = np.isfinite(values)
        without = log.data.by_action(~known)
        data = log.data
        observed = data.observed if np.array_equal(values, data.rewards) else None
        own = replace(data, rewards=values, observed=None).of(known)
        own = replace(own, observed=observed)
        limits = (0.0, 1.0) if unit and source.outcome.get(name) else None
        if np.array_equal(values, data.rewards):
            limits = source.utility_range
        means = arm_means(own, limits)
        means.insert(0, "outcome", name)
        means.insert(3, "missing", excluded + without)
        frames.append(means)
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class ArmDifference:
    """How much better a policy is than giving everyone the best single arm, of those that they may get.

    Attributes
    ----------
    value : float
        Minus the arm that is estimated best; per patient, in the reward's unit; > 0 if the policy is better.
    interval : tuple of float
        Of the difference to the truly best arm, whichever that is: at least 95 % of such intervals hold it.
    arm : str
        The one that is estimated best; where not all may get the same, that of each group.
    warnings : tuple of str
        Where the log hardly knows what an arm does to some patients.
    """

    value: float
    interval: tuple[float, float]
    arm: str
    warnings: tuple[str, ...]


def difference_from_best_arm(
    data: LoggedData,
    probabilities: FloatArray,
    admissible: BoolArray | None = None,
    *,
    estimator: str = "dr",
    fitted: CrossFit | None = None,
    clip: float | None = None,
) -> ArmDifference:
    """The value of a policy minus that of the best single arm, on the same rows.

    Parameters
    ----------
    data : LoggedData
        At least two rows. Arms that none of them got are not compared: the log knows nothing of them.
    probabilities : array, (n_rows, k)
        p(a|x) of the policy for each row.
    admissible : array of bool, (n_rows, k), optional
        Which arms each row may get. Those who may get the same then have a best single arm of their own.
    estimator : str
        "ips", "snips", "dm" or "dr", for the policy and for the arms.
    fitted : CrossFit, optional
        Outcome models; needed for "dm" and "dr".
    clip : float, optional
        The most that an importance weight may be.

    Returns
    -------
    ArmDifference

    Notes
    -----
    The difference to an arm is the mean over the rows of the policy's contribution minus that of giving everyone this
    arm, and its standard error that of this mean, made wider where the rows are skewed (`estimators.Moments.quantile`):
    rows on which both agree cancel. The direct method has no contributions: its difference is the direct method of the
    difference of probabilities, which it is linear in, with its jackknife error and degrees of freedom. The differences
    to all arms together bound that to the best one (`arms.against_best`).

    With c groups that may not get the same, the difference is the sum over the groups, of which each is bounded with
    the c-th part of the tail (Bonferroni): in a group's differences the other rows keep to the policy, and cancel.
    """
    kind, names = estimator_named(estimator), np.array(data.names)
    groups = _groups(data, admissible)
    best, chosen, warnings = [], [], []
    for rows, arms in groups:
        # The policy with an arm for these rows; for all rows, one row in memory.
        own = (np.broadcast_to(arm, probabilities.shape) for arm in np.eye(data.n_actions)[arms])
        others = (arm if rows is None else np.where(rows[:, None], arm, probabilities) for arm in own)
        found, n = kind.differences(data, probabilities, others, fitted, clip)
        best.append(against_best([value for value, _ in found], [error for _, error in found], n, TAIL / len(groups)))
        arm = data.names[arms[best[-1].arm]]
        chosen.append(arm if rows is None else f"{arm} for those who may get {', '.join(names[arms])}")
        warnings += [warning for each in arms for warning in _caveats(data, each, rows)]
    return ArmDifference(
        value=sum(each.value for each in best),
        interval=(sum(each.interval[0] for each in best), sum(each.interval[1] for each in best)),
        arm="; ".join(chosen),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _groups(data: LoggedData, admissible: BoolArray | None) -> list[tuple[BoolArray | None, IntArray]]:
    """The rows that may get the same arms, and those of them that the log knows; None: all rows may get all.

    Who may get one arm alone has no choice: there no policy differs from it.
    """
    if admissible is None:
        return [(None, np.flatnonzero(data.by_action()))]
    codes = mask_classes(admissible)
    found: list[tuple[BoolArray | None, IntArray]] = []
    for code in range(int(codes.max()) + 1):
        rows = codes == code
        allowed = admissible[rows.argmax()]
        known: IntArray = np.flatnonzero(allowed & (data.by_action(rows) > 0))
        if allowed.sum() > 1:
            found.append((rows, known if len(known) else np.flatnonzero(allowed)))
    return found


def _caveats(data: LoggedData, arm: int, rows: BoolArray | None) -> list[str]:
    """What overlap lacks for giving these rows an arm, in words about that arm."""
    mine = data if rows is None else data.of(rows)
    everyone: FloatArray = np.broadcast_to(np.eye(data.n_actions)[arm], (mine.n_rows, mine.n_actions))
    found = overlap_caveats(mine, everyone[0], importance_weights(mine, everyone).raw)
    n_rows = mine.by_action()[arm]
    if n_rows < FEWEST_ROWS:
        found.append(f"too few rows got it ({n_rows}) to know how rewards vary: the interval may be too narrow.")
    who = "everyone" if rows is None else "all who may get the same"
    return [f"giving {who} {data.names[arm]}: {warning}" for warning in found]


TAIL = 0.025  # of a 95 % interval, on each side


@dataclass(frozen=True)
class AgainstBest:
    """A policy's value minus that of the best arm.

    Attributes
    ----------
    value : float
        Minus the arm that is estimated best. On average a little too small: the largest of several estimates is too
        large.
    interval : tuple of float
        At least 95 % of such intervals hold the difference to the truly best arm, whichever that is.
    arm : int
        The one that is estimated best.
    """

    value: float
    interval: tuple[float, float]
    arm: int


def against_best(differences: Sequence[float], errors: Sequence[float], n: int, tail: float = TAIL) -> AgainstBest:
    """From the differences to each arm to the difference to the best one.

    With d_a the policy's value minus that of arm a, the difference to the best arm is min d_a. Its lower end is
    min(d_a - t s_a): the policy is better than the best arm only if it is better than every one, and no correction is
    needed (intersection-union test; Berger 1982). Its upper end is min(d_a + t' s_a), t' for 0.025 / k in place of
    0.025 (Bonferroni), as each of the k bounds has to hold.

    Parameters
    ----------
    differences, errors : sequence of float, k
        Estimates d_a and their standard errors s_a.
    n : int
        Rows that they rest on; the quantiles are those of Student's t with n - 1 degrees of freedom.
    tail : float, optional
        The most that may be beyond either end; 0.025 for 95 %.

    Examples
    --------
    >>> against_best([0.5, 0.1], [0.0, 0.0], 100)
    AgainstBest(value=0.1, interval=(0.1, 0.1), arm=1)
    """
    apart, spread = np.asarray(differences, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    arm = int(apart.argmin())
    low = float((apart + stdtrit(n - 1, tail) * spread).min())
    high = float((apart - stdtrit(n - 1, tail / len(apart)) * spread).min())
    return AgainstBest(float(apart[arm]), (low, high), arm)

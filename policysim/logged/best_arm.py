"""A policy against the best single arm: the arm is chosen on some rows of a log, and both are evaluated on others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from policies.arrays import FloatArray, IntArray
from policysim.offpolicy.caveats import overlap_caveats
from policysim.offpolicy.cross_fitting import CrossFit, direct_method
from policysim.offpolicy.estimation import UPPER, contributions
from policysim.offpolicy.estimators import moments
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.weights import importance_weights

FOLDS = 5


@dataclass(frozen=True)
class ArmDifference:
    """How much better a policy is than giving everyone the best single arm.

    Attributes
    ----------
    value : float
        Per patient, in the reward's unit; > 0 if the policy is better.
    standard_error : float
        Of the value.
    interval : tuple of float
        Lower and upper end of the 95 % interval.
    arms : tuple of str
        The arm that was chosen for each fold; the same each time if the log is clear about it.
    warnings : tuple of str
        Where the log hardly knows what an arm does to some patients.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    arms: tuple[str, ...]
    warnings: tuple[str, ...]


def difference_from_best_arm(
    data: LoggedData,
    probabilities: FloatArray,
    *,
    estimator: str = "dr",
    fitted: CrossFit | None = None,
    clip: float | None = None,
    seed: int = 0,
) -> ArmDifference:
    """The value of a policy minus that of the best single arm, on the same rows.

    Which arm is best is not known: the largest of several estimates is too large, as it was chosen for that (van
    Hasselt 2010, Double Q-learning, section 2). So the rows are split into five folds, and in each stands the arm whose
    weighted mean (`arms.arm_means`) is largest on the rows outside of it.

    Parameters
    ----------
    data : LoggedData
        At least two rows.
    probabilities : array, (n_rows, k)
        p(a|x) of the policy for each row.
    estimator : str
        "ips", "snips", "dm" or "dr", for both.
    fitted : CrossFit, optional
        Outcome models; needed for "dm" and "dr".
    clip : float, optional
        The most that an importance weight may be.
    seed : int
        Decides which rows share a fold.

    Returns
    -------
    ArmDifference

    Notes
    -----
    The value is the mean over all rows of the policy's contribution minus the arm's, and the standard error that of
    this mean: rows on which both agree cancel, so it is far smaller than the two errors added. The direct method has no
    contributions: its difference is the direct method of the difference of probabilities, which it is linear in.
    """
    folds: IntArray = np.random.default_rng(seed).permutation(data.n_rows) % min(FOLDS, data.n_rows)
    best = [_best_arm(data, folds != fold) for fold in range(int(folds.max()) + 1)]
    arm_of: IntArray = np.array(best)[folds]
    if estimator == "dm" and fitted is not None:
        value, error = direct_method(probabilities - _one_hot(arm_of, data.n_actions), fitted)
        quantile = float(stdtrit(len(fitted.models) - 1, UPPER))
    else:
        own = _contributions(data, probabilities, estimator, fitted, clip)
        found = moments(own - _of_arms(data, arm_of, estimator, fitted, clip))
        value, error, quantile = found.mean, found.standard_error, found.quantile
    return ArmDifference(
        value=value,
        standard_error=error,
        interval=(value - quantile * error, value + quantile * error),
        arms=tuple(data.names[arm] for arm in best),
        warnings=tuple(warning for arm in sorted(set(best)) for warning in _caveats(data, arm)),
    )


def _best_arm(data: LoggedData, rows: NDArray[np.bool_]) -> int:
    """The arm with the largest weighted mean among some rows; one that none of them was given is not considered."""
    weights = rows / data.propensities
    totals = np.bincount(data.actions, weights=weights, minlength=data.n_actions)
    sums = np.bincount(data.actions, weights=weights * data.rewards, minlength=data.n_actions)
    return int(np.argmax(np.divide(sums, totals, out=np.full_like(sums, -np.inf), where=totals > 0)))


def _of_arms(
    data: LoggedData, arm_of: IntArray, estimator: str, fitted: CrossFit | None, clip: float | None
) -> FloatArray:
    """What each row adds to the value of its fold's arm."""
    added = np.empty(data.n_rows)
    for arm in np.unique(arm_of):
        everyone = _one_hot(np.full(data.n_rows, arm), data.n_actions)
        rows = arm_of == arm
        added[rows] = _contributions(data, everyone, estimator, fitted, clip)[rows]
    return added


def _contributions(
    data: LoggedData, probabilities: FloatArray, estimator: str, fitted: CrossFit | None, clip: float | None
) -> FloatArray:
    weights = importance_weights(data, probabilities, clip)
    return contributions(data, probabilities, weights, estimator=estimator, fitted=fitted)


def _one_hot(arms: IntArray, n_actions: int) -> FloatArray:
    """The policy that gives each row its arm, (n_rows, k)."""
    table: FloatArray = np.zeros((len(arms), n_actions))
    table[np.arange(len(arms)), arms] = 1
    return table


def _caveats(data: LoggedData, arm: int) -> list[str]:
    """What overlap lacks for giving everyone an arm, in words about that arm."""
    everyone = _one_hot(np.full(data.n_rows, arm), data.n_actions)
    found = overlap_caveats(data, everyone[0], importance_weights(data, everyone).raw)
    return [f"giving everyone {data.names[arm]}: {warning}" for warning in found]

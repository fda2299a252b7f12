"""A policy against the best single arm: nobody knows which arm that is, so it is compared with each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policysim.logged.simultaneous import against_best
from policysim.offpolicy.caveats import overlap_caveats
from policysim.offpolicy.cross_fitting import CrossFit, direct_method
from policysim.offpolicy.estimation import contributions
from policysim.offpolicy.estimators import Z, moments
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.outcome_models import FEWEST_ROWS
from policysim.offpolicy.weights import importance_weights


@dataclass(frozen=True)
class ArmDifference:
    """How much better a policy is than giving everyone the best single arm.

    Attributes
    ----------
    value : float
        Minus the arm that is estimated best; per patient, in the reward's unit; > 0 if the policy is better.
    interval : tuple of float
        Of the difference to the truly best arm, whichever that is: at least 95 % of such intervals hold it.
    arm : str
        The one that is estimated best.
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
    to all arms together bound that to the best one (`simultaneous.against_best`).
    """
    arms: IntArray = np.unique(data.actions)
    if estimator == "dm" and fitted is not None:
        found = [direct_method(probabilities - _everyone(data, arm), fitted) for arm in arms]
        n = len(fitted.models)
    else:
        own = _contributions(data, probabilities, estimator, fitted, clip)
        found = [
            _mean_and_error(own - _contributions(data, _everyone(data, arm), estimator, fitted, clip)) for arm in arms
        ]
        n = data.n_rows
    best = against_best([value for value, _ in found], [error for _, error in found], n)
    return ArmDifference(
        value=best.value,
        interval=best.interval,
        arm=data.names[arms[best.arm]],
        warnings=tuple(warning for arm in arms for warning in _caveats(data, arm)),
    )


def _mean_and_error(differences: FloatArray) -> tuple[float, float]:
    found = moments(differences)
    return found.mean, found.standard_error * found.quantile / Z


def _contributions(
    data: LoggedData, probabilities: FloatArray, estimator: str, fitted: CrossFit | None, clip: float | None
) -> FloatArray:
    weights = importance_weights(data, probabilities, clip)
    return contributions(data, probabilities, weights, estimator=estimator, fitted=fitted)


def _everyone(data: LoggedData, arm: int) -> FloatArray:
    """The policy that gives each row this arm, (n_rows, k); one row in memory."""
    table: FloatArray = np.broadcast_to(np.eye(data.n_actions)[arm], (data.n_rows, data.n_actions))
    return table


def _caveats(data: LoggedData, arm: int) -> list[str]:
    """What overlap lacks for giving everyone an arm, in words about that arm."""
    everyone = _everyone(data, arm)
    found = overlap_caveats(data, everyone[0], importance_weights(data, everyone).raw)
    n_rows = np.count_nonzero(data.actions == arm)
    if n_rows < FEWEST_ROWS:
        found.append(f"too few rows got it ({n_rows}) to know how rewards vary: the interval may be too narrow.")
    return [f"giving everyone {data.names[arm]}: {warning}" for warning in found]

"""The arms of a log before any model: how many patients each had, and their mean reward with its interval."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policysim.offpolicy.estimators import Moments, Z, moments, snips
from policysim.offpolicy.logged import LoggedData


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
    or, where all rewards are the same, the effective sample size (sum w)^2 / sum w^2 (Kish 1965).

    Examples
    --------
    >>> import numpy as np
    >>> data = LoggedData(
    ...     np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.5, 0.5, 0.5, 0.5]), ("none", "pill")
    ... )
    >>> arm_means(data)[["arm", "rows", "mean"]].values.tolist()
    [['none', 3, 2.0], ['pill', 1, 5.0]]
    """
    binary = bool(np.isin(data.rewards, (0.0, 1.0)).all())
    return pd.DataFrame([_row(data, arm, name, limits, binary) for arm, name in enumerate(data.names)])


def _row(data: LoggedData, arm: int, name: str, limits: tuple[float, float] | None, binary: bool) -> dict[str, object]:
    own = data.actions == arm
    rewards, weights = data.rewards[own], 1 / data.propensities[own]
    rows = len(rewards)
    found = moments(snips(weights, rewards)) if rows else Moments(0, np.nan, np.nan)
    low = high = np.nan
    if rows > 1 and binary:
        low, high = _wilson(found.mean, found.standard_error, weights)
    elif rows > 1 and found.standard_error > 0:
        reach = found.quantile * found.standard_error
        low, high = found.mean - reach, found.mean + reach
        if limits is not None:
            low, high = max(low, limits[0]), min(high, limits[1])
    return {"arm": name, "rows": rows, "mean": found.mean, "low": low, "high": high}


def _wilson(share: float, error: float, weights: FloatArray) -> tuple[float, float]:
    """Wilson's 95 % interval of a weighted share; its n that of a plain share with the same error."""
    n = len(weights)
    if error == 0:
        m = float(weights.sum()) ** 2 / float(weights @ weights)
    else:
        # The error has n - 1, a share's n: with equal weights m is n.
        m = share * (1 - share) / (error**2 * (n - 1) / n)
    centre = (share + Z**2 / (2 * m)) / (1 + Z**2 / m)
    reach = Z / (1 + Z**2 / m) * float(np.sqrt(share * (1 - share) / m + (Z / (2 * m)) ** 2))
    return max(0.0, centre - reach), min(1.0, centre + reach)

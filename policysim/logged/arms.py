"""The arms of a log before any model: how many patients each had, and their mean reward with its interval."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policysim.offpolicy.estimators import Moments, moments, snips
from policysim.offpolicy.logged import LoggedData


def arm_means(data: LoggedData) -> pd.DataFrame:
    """The mean reward of each arm, had all patients been given it, with its 95 % interval.

    Parameters
    ----------
    data : LoggedData
        A log; its propensities say which patients each arm's rows stand for.

    Returns
    -------
    DataFrame, a row for each arm in the order of `data.names`
        `arm` (name), `rows` (patients who were given it), `mean` (in the reward's unit; NaN without rows), `low` and
        `high` (ends of the interval; NaN with fewer than two rows, or if no two rewards differ).

    Notes
    -----
    With w = 1 / propensity, the mean of an arm's n rows is v = sum w r / sum w (Hajek 1971), and its variance
    n / (n - 1) sum w^2 (r - v)^2 / (sum w)^2, the delta method's (Owen 2013, Monte Carlo theory, methods and examples,
    equation 9.9). With equal propensities they are the plain mean and its usual squared standard error. The interval
    reaches further than 1.96 standard errors where rewards are skewed or few (`estimators.Moments.quantile`).

    Examples
    --------
    >>> import numpy as np
    >>> data = LoggedData(
    ...     np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.5, 0.5, 0.5, 0.5]), ("none", "pill")
    ... )
    >>> arm_means(data)[["arm", "rows", "mean"]].values.tolist()
    [['none', 3, 2.0], ['pill', 1, 5.0]]
    """
    return pd.DataFrame([_row(data, arm, name) for arm, name in enumerate(data.names)])


def _row(data: LoggedData, arm: int, name: str) -> dict[str, object]:
    own = data.actions == arm
    rows = int(np.count_nonzero(own))
    found = _mean(data.rewards[own], data.propensities[own]) if rows else Moments(0, np.nan, np.nan)
    reach = found.quantile * found.standard_error if rows > 1 and found.standard_error > 0 else np.nan
    return {"arm": name, "rows": rows, "mean": found.mean, "low": found.mean - reach, "high": found.mean + reach}


def _mean(rewards: FloatArray, propensities: FloatArray) -> Moments:
    """The moments of one arm's weighted mean."""
    return moments(snips(1 / propensities, rewards))

"""How well any test tells two patients apart by a treatment: the privacy profile of a policy, and its two errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from envs.toml_reader import is_number
from policies.arrays import FloatArray, logs_of
from policies.fitted import FittedPolicy, require_fitted
from policies.privacy_profile import Profile, profile
from policysim.numbers import enough
from policysim.study.sweep import checked_epsilons, checked_numbers

# Two corners nearer than this are one, and so is a delta with one that is smaller by this part of it.
ROUNDING = 1e-12
DELTA_WANTED = "a number from 0 to 1"


def privacy_profile(
    fitted: FittedPolicy,
    *,
    epsilons: Sequence[float] | float | None = None,
    deltas: Sequence[float] | float | None = None,
) -> pd.DataFrame:
    """delta(epsilon) of a policy: for each epsilon the smallest delta at which it is (epsilon, delta)-private.

    delta(epsilon) is the largest P_x(S) - e^epsilon P_x'(S) over neighbours x, x' and sets S of actions. It is convex
    and piecewise linear in e^epsilon. At epsilon = 0 it is the largest total variation TV: an observer tells two
    equally likely neighbours apart (1 + TV) / 2 of the time (`guess_rate`). It is 0 from the exact loss on.

    Parameters
    ----------
    fitted : FittedPolicy
        A policy on a problem (`Policy.fit`).
    epsilons : sequence of float, optional
        Values >= 0, inf allowed: delta at each.
    deltas : sequence of float, optional
        Values from 0 to 1: the smallest epsilon at each.

    Returns
    -------
    DataFrame
        `epsilon` and `delta`, by rising epsilon. Without `epsilons` and `deltas` the corners, between which delta is
        linear in e^epsilon: from epsilon = 0 to the exact loss, where delta is 0. Where a treatment rules a record out,
        the loss is infinite, and the last two rows have the delta from which on an epsilon is finite.

    Raises
    ------
    ValueError
        For something else than a fitted policy, a problem with a single record, both `epsilons` and `deltas`, numbers
        out of their range, or a delta at which no epsilon is finite.
    NotApplicableError
        A ValueError, where both the sets of actions and the pairs of neighbours are too many.

    References
    ----------
    Balle, Barthe & Gaboardi (2020), Privacy profiles and amplification by subsampling, Journal of Privacy and
    Confidentiality 10(1).

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem, make_policy
    >>> problem = DecisionProblem([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.5, 0.3, 0.2], AnyRecord())
    >>> fitted = make_policy("randomized-response", epsilon=1.0).fit(problem)
    >>> privacy_profile(fitted).round(4).to_numpy().tolist()
    [[0.0, 0.3642], [1.0, 0.0]]
    >>> privacy_profile(fitted, deltas=0.1).round(4).to_numpy().tolist()
    [[0.8094, 0.1]]
    """
    found, loss = _profile_of(fitted, "privacy_profile"), fitted.epsilon_spent
    if epsilons is not None and deltas is not None:
        raise ValueError("give epsilons or deltas, not both.")
    if deltas is not None:
        wanted = _checked_deltas(deltas, float(found.delta_at(math.inf)) if loss == math.inf else 0.0)
        return pd.DataFrame({"epsilon": np.minimum(_epsilons_at(found, wanted), loss), "delta": wanted})
    values = _corners(found, loss) if epsilons is None else np.array(checked_epsilons(epsilons))
    # From the exact loss on it is 0, whatever the rounding of sums.
    over = (values >= loss) & (loss < math.inf)
    return pd.DataFrame({"epsilon": values, "delta": np.where(over, 0.0, found.delta_at(values))})


def trade_off(fitted: FittedPolicy) -> pd.DataFrame:
    """The errors that no test of two neighbours by one action can beat: the f of f-differential privacy.

    An observer guesses for which of two neighbours x' and x an action was chosen. The type 1 error is how often x is
    guessed though it was x'; the type 2 error is how often x' is guessed though it was x. The result is the largest
    trade-off function below those of all neighbours, in both directions: the lower convex envelope of all tests.

    Parameters
    ----------
    fitted : FittedPolicy
        A policy on a problem (`Policy.fit`).

    Returns
    -------
    DataFrame
        `type_1_error` and `type_2_error`, by rising type 1 error: the corners, between which the curve is straight. It
        is its own mirror image. The first slope is -e^loss, with the exact loss. Where a treatment rules a record out,
        the curve begins below 1, at 1 - delta for the delta from which on an epsilon is finite. The least sum of both
        errors is 1 - TV, with the largest total variation TV: two patients are told apart (1 + TV) / 2 of the time.

    Raises
    ------
    ValueError
        For something else than a fitted policy, or a problem with a single record.
    NotApplicableError
        A ValueError, where both the sets of actions and the pairs of neighbours are too many.

    Notes
    -----
    f(t) = max over epsilon >= 0 of max(0, 1 - delta - e^epsilon t, e^-epsilon (1 - delta - t)) with delta(epsilon) of
    `privacy_profile`. As that is piecewise linear, each of its lines h - e^epsilon l is a corner (l, 1 - h) of f.

    References
    ----------
    Dong, Roth & Su (2022), Gaussian differential privacy, Journal of the Royal Statistical Society B 84:3, section 2
    (proposition 2.12: f and the profile are duals).

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem, make_policy
    >>> problem = DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], AnyRecord())
    >>> trade_off(make_policy("randomized-response", epsilon=1.0).fit(problem)).round(4).to_numpy().tolist()
    [[0.0, 1.0], [0.2689, 0.2689], [1.0, 0.0]]
    """
    found = _profile_of(fitted, "trade_off")
    kept = np.diff(found.powers, prepend=-1.0) > ROUNDING
    low, high = found.false_alarms[kept], found.powers[kept]
    certain = int(low[:2].max() == 0 < high.max())
    # What rules a record out gives power without an error: then (0, 1) is above the curve, and (1, 0) stays its end.
    low, high = low[certain:], high[certain:]
    mirrored = int(1 - high[-1] - low[-1] <= ROUNDING)
    one = [*low, *(1 - high[::-1][mirrored:]), *[1.0] * certain]
    two = np.array([*(1 - high), *low[::-1][mirrored:], *[0.0] * certain])
    # 1 - power has an error of 1e-16, and a false alarm has none: behind a corner that rounds to 0 none is higher.
    falls = two < np.minimum.accumulate([math.inf, *two[:-1]])
    falls[-1] = True
    return pd.DataFrame({"type_1_error": one, "type_2_error": two})[falls].reset_index(drop=True)


def _profile_of(fitted: FittedPolicy, asks: str) -> Profile:
    """The profile of a fitted policy that a function, `asks`, looks at."""
    problem = require_fitted(fitted, asks).problem
    return profile(logs_of(fitted.probabilities), problem.adjacency)


def _corners(found: Profile, loss: float) -> FloatArray:
    """The epsilons at which the line that is highest changes, rising, from 0 to the exact loss."""
    with np.errstate(divide="ignore"):
        changes = np.log(np.diff(found.powers)) - np.log(np.diff(found.false_alarms))
    # The last one is the exact loss, whatever the rounding of sums.
    return np.minimum([0.0, *changes[:0:-1], *([loss] if len(changes) else [])], loss)


def _epsilons_at(found: Profile, deltas: FloatArray) -> FloatArray:
    """The smallest epsilon >= 0 at which no line h - e^epsilon l is above delta, at each of these, (n,)."""
    above = np.maximum(found.powers - deltas[:, None], 0.0)
    # What has no false alarms has no slope by which rounding could be told.
    ratios = np.where(above > ROUNDING * found.powers, np.inf, 0.0)
    with np.errstate(over="ignore"):
        np.divide(above, found.false_alarms, out=ratios, where=found.false_alarms > 0)
    return logs_of(np.maximum(ratios.max(axis=1), 1.0))


def _checked_deltas(deltas: Sequence[float] | float, least: float) -> FloatArray:
    """Distinct deltas from 0 to 1, falling; ValueError for others, and for one at which no epsilon is finite."""
    within = partial(is_number, low=0.0, high=1 + ROUNDING)
    wanted = np.minimum(checked_numbers(deltas, "delta", within, DELTA_WANTED, DELTA_WANTED), 1.0)[::-1]
    if wanted[-1] < least * (1 - ROUNDING):
        raise ValueError(
            f"no epsilon is finite at delta = {wanted[-1]:g}: a treatment rules a record out. Give a delta of at least "
            f"{enough(least, 6):g}."
        )
    return wanted

"""Rows between public floors and ceilings: private whatever computed them, and nearly the best that privacy allows.

Let w_a >= 0 be public floors, one for each action, with sum w <= 1 <= e^epsilon sum w. If all rows of a policy lie in
the box

    w_a <= p(a|x) <= e^epsilon w_a,

the policy is epsilon-private for any two records: p(a|x) <= e^epsilon w_a <= e^epsilon p(a|x'). Nothing is asked of how
a row was computed: no sensitivity, no calibration, no list of all records. So one box serves new patients, continuous
features and the scores of any model.

The exponential mechanism in a box weighs each floor by how little the record regrets the action:

    p(a|x) = clip(lambda_x w_a exp(-s r(x, a)),  w_a,  e^epsilon w_a),    r(x, a) = max_b u(x, b) - u(x, a),

with the lambda_x at which the row sums to 1. Its floors are those of the optimum, w = ceilings / e^epsilon
(`policies.optimal.ceilings`), which depend on the prior and the utilities alone; both are public. As the sharpness s
grows, a row pours what the floors leave into the actions in the order of preference: it becomes the optimum.

Base measures: McSherry & Talwar (2007), Mechanism design via differential privacy. Rows of two values, apart by
e^epsilon: Kairouz, Oh & Viswanath (2016), Extremal mechanisms for local differential privacy.
The same clip between multiples of a public measure, by bisection and for another aim (the least divergence from a given
distribution): Park, Asoodeh & Lee (2024), arXiv 2410.22699.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, Frozen, IntArray, as_floats, blocks, read_only

# Floors and sharpness are published. They have so many significant digits, floors as logarithms.
DIGITS = 6
# Decimals of the smallest numbers: powers of ten further on are no floats.
FINEST = 300
# The sharpness times the mean regret, for each unit of epsilon. The larger, the nearer to the optimum; the smaller, the
# less a small difference of two scores decides.
SHARPNESS = 8.0
# e^epsilon is a float. What is as private as this is more private than any larger epsilon asks for.
LARGEST_EPSILON = 700.0
# What a sum of floors may miss its bounds by: rounding.
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Boxes(Frozen):
    """The public parameters of N classes of records, whose members are hidden among each other; k actions.

    Attributes
    ----------
    epsilon : float
        >= 0, at most `LARGEST_EPSILON`.
    log_floors : array, (k, N)
        log w_a; -inf for an action that nobody of the class gets.
    sharpness : array, (N,)
        s, per unit of utility; inf pours in the order of preference, and ties share.
    """

    epsilon: float
    log_floors: FloatArray
    sharpness: FloatArray

    def __post_init__(self) -> None:
        """No floor of a box changes."""
        read_only(self.log_floors)
        read_only(self.sharpness)


def published_boxes(log_floors: FloatArray, sharpness: FloatArray, epsilon: float) -> Boxes:
    """Boxes whose parameters are short enough to be published.

    Parameters
    ----------
    log_floors : array, (k, N)
        Rounded to `DIGITS` digits, and then moved together until e^-epsilon <= sum w <= 1 holds again.
    sharpness : array, (N,)
        Rounded to `DIGITS` digits.
    epsilon : float
        > 0.
    """
    epsilon = min(epsilon, LARGEST_EPSILON)
    floors = rounded(log_floors)
    totals = np.logaddexp.reduce(floors, axis=0)
    return Boxes(epsilon, floors - np.maximum(totals, 0.0) - np.minimum(totals + epsilon, 0.0), rounded(sharpness))


def response_boxes(n_actions: int, sharpness: float, epsilon: float) -> Boxes:
    """The box of one class with the floors of randomised response, 1 / (e^epsilon + k - 1), for a finite epsilon."""
    epsilon = min(epsilon, LARGEST_EPSILON)
    floor = -np.logaddexp(epsilon, np.log(n_actions - 1))
    return Boxes(epsilon, np.full((n_actions, 1), floor), rounded(np.array([sharpness])))


def checked_floors(floors: ArrayLike, epsilon: float) -> FloatArray:
    """Floors, (k,), as a user gives them; ValueError for negative ones, and sums above 1 or below e^-epsilon."""
    values = as_floats(floors, "floors")
    if values.ndim != 1 or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"floors must be one number >= 0 for each action, got {values.tolist()!r}.")
    total, least = float(values.sum()), float(np.exp(-epsilon))
    if not least * (1 - SUM_TOLERANCE) <= total <= 1 + SUM_TOLERANCE:
        raise ValueError(
            f"floors must sum to at least e^-epsilon = {least:.6g} and at most 1, got a sum of {total:.6g}."
        )
    return values


def rounded(values: FloatArray | float) -> FloatArray:
    """To `DIGITS` significant digits, and no finer than `FINEST`; infinite values as they are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.where(np.isfinite(values) & (values != 0), DIGITS - 1 - np.floor(np.log10(np.abs(values))), 0.0)
        scale = 10.0 ** np.minimum(places, FINEST)
        short: FloatArray = np.where(np.isfinite(values), np.rint(values * scale) / scale, values)
    return short


def regrets_of(scores: FloatArray) -> FloatArray:
    """max_b u(x, b) - u(x, a) >= 0 for scores of any kind, (k, ...), the larger the better.

    NaN counts as the worst score, and infinite scores of one sign as ties. So a regret may be inf, but no NaN.
    """
    comparable = np.where(np.isnan(scores), -np.inf, scores)
    best = comparable.max(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        regrets: FloatArray = np.where(comparable == best, 0.0, best - comparable)
    return regrets


def log_rows(regrets: FloatArray, boxes: Boxes, order: IntArray | None = None) -> FloatArray:
    """log p(a|x) of the exponential mechanism in the box of each class.

    Parameters
    ----------
    regrets : array, (k, N, size)
        r(x, a) >= 0 of the members of each class, in units of utility; inf is allowed.
    boxes : Boxes
    order : array of int, (k, N, size), optional
        The actions by rising regret, if the caller has them: sorting takes a tenth of the time.

    Returns
    -------
    array, (k, N, size)
        Each entry lies in [log w_a, log w_a + epsilon], whatever the rounding.

    Notes
    -----
    Let the actions of a row be sorted by regret, and t = log lambda. Action a leaves its floor at t = s r_a, and
    reaches its ceiling at t = s r_a + epsilon. Two actions that are further apart than epsilon never move at the same
    time, so that it does not matter how much further apart they are: gaps are cut at epsilon, and no regret is too
    large. Between two of these 2k breakpoints the sum of the row is C + D e^t, with C of the actions that rest and D of
    those that move.
    """
    logs, order = np.empty_like(regrets), by_regret(regrets) if order is None else order
    for some in blocks(regrets.shape[2]):
        _fill_rows(logs[:, :, some], regrets[:, :, some], boxes, order[:, :, some])
    return logs


def by_regret(regrets: FloatArray) -> IntArray:
    """The actions of each record by rising regret, (k, ...); of equal ones the first comes first."""
    order: IntArray = np.argsort(regrets, axis=0, kind="stable")
    return order


def _fill_rows(logs: FloatArray, regrets: FloatArray, boxes: Boxes, order: IntArray) -> None:
    """`log_rows` of some members of each class, into `logs`."""
    epsilon = boxes.epsilon
    floors = np.take_along_axis(np.broadcast_to(boxes.log_floors[:, :, None], regrets.shape), order, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.diff(np.take_along_axis(regrets, order, axis=0), axis=0)
        gaps = np.where(np.isnan(gaps) | (gaps == 0), 0.0, np.minimum(boxes.sharpness[:, None] * gaps, epsilon))
    starts = np.concatenate([np.zeros_like(regrets[:1]), np.cumsum(gaps, axis=0)])
    above = np.clip(_log_lambda(starts, floors, epsilon) - starts, 0.0, epsilon)
    np.put_along_axis(logs, order, np.minimum(floors + above, floors + epsilon), axis=0)


def _log_lambda(starts: FloatArray, log_floors: FloatArray, epsilon: float) -> FloatArray:
    """The t at which each row sums to 1: the breakpoints below and above it by bisection, then in closed form."""
    breakpoints = np.sort(np.concatenate([starts, starts + epsilon]), axis=0)
    below = np.zeros(starts.shape[1:], dtype=np.intp)
    above = np.full_like(below, len(breakpoints) - 1)
    while (above - below).max() > 1:
        middle = (below + above) // 2
        t = np.take_along_axis(breakpoints, middle[None], axis=0)[0]
        low = np.exp(log_floors + np.clip(t - starts, 0.0, epsilon)).sum(axis=0) <= 1
        below, above = np.where(low, middle, below), np.where(low, above, middle)
        above = np.maximum(above, np.minimum(below + 1, len(breakpoints) - 1))
    low_t, high_t = (np.take_along_axis(breakpoints, place[None], axis=0)[0] for place in (below, above))
    masses = np.exp(log_floors + np.clip(low_t - starts, 0.0, epsilon))
    moves = (starts <= low_t) & (high_t <= starts + epsilon)
    moving = np.where(moves, masses, 0.0).sum(axis=0)
    resting = np.where(moves, 0.0, masses).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.log(1 - resting) - np.log(moving)
    between: FloatArray = np.clip(np.where(np.isfinite(step), low_t + step, low_t), low_t, high_t)
    return between

"""Where overlap fails: groups of patients to whom the log seems never to give an action."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.offpolicy.covariates import MOST_LEVELS, is_real
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.weights import largest_weights

# Standard deviations beyond which a group's share is called missing. A sum of independent weights >= 0 falls z of them
# (with E w^2 for the variance) below its mean with probability at most exp(-z^2 / 2) (Maurer 2003, A bound on the
# deviation probability for sums of non-negative random variables, theorem 2.1): 4e-6, of a few hundred groups 1e-3.
SURPRISE = 5.0
FEW_NUMBERS = 10  # so many different numbers are levels; more are cut at their quartiles
FEWEST_ROWS = 10  # of fewer patients a group is no finding
LOOKED_AT = 10_000  # rows from which cuts are made


def support_caveats(
    log: LoggedData, probabilities: FloatArray, weights: FloatArray, frame: pd.DataFrame
) -> dict[int, str]:
    """For each action that a group of patients seems never to get a sentence: the group where that is plainest.

    Groups are the levels of each covariate that at least 10 patients have, and quarters of one with many numbers. If
    the log's policy could take action a wherever the evaluated one does, w 1{a logged} would sum over any group to
    about the sum of p(a|x), with a second moment of at most that sum times the largest w. Only sums that are far too
    small are told.

    Parameters
    ----------
    log : LoggedData
        Its actions.
    probabilities : array, (n_rows, k)
        p(a|x) of the evaluated policy.
    weights : array, (n_rows,)
        Importance weights, before clipping.
    frame : DataFrame, n_rows
        Covariates; rows in which one is missing are in none of its groups, and columns of many words make no groups.
    """
    largest = largest_weights(log, weights)
    found = []
    for position, name in enumerate(frame.columns):
        codes, labels = _groups(frame.iloc[:, position], str(name))
        expected, reached, given = _sums(log, probabilities, weights, codes, len(labels))
        # Of an action that is never logged, or only with weights of 0, nothing is known here; that is told elsewhere.
        spread = np.sqrt(expected * largest)
        surprise = np.divide(expected - reached, spread, out=np.zeros_like(spread), where=spread > 0)
        surprise[given.sum(axis=1) < FEWEST_ROWS] = 0
        for group, action in np.argwhere(surprise > SURPRISE).tolist():
            said = (
                f"overlap fails for {log.names[action]} where {labels[group]}: the log gives it to "
                f"{given[group, action]:,} of {given[group].sum():,} patients there, and the evaluated policy puts "
                f"{expected[group, action] / log.n_rows:.1%} of its probability on that."
            )
            found.append((action, surprise[group, action], said))
    return {action: said for action, _, said in sorted(found)}  # the last of each action stays


def _sums(
    log: LoggedData, probabilities: FloatArray, weights: FloatArray, groups: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Over groups and actions, (n_groups, k): sums of p(a|x), sums of weights, and numbers of rows."""
    # Rows of group -1 make a first row of each table, which is dropped.
    shape = n_groups + 1, log.n_actions
    cells = (groups + 1) * log.n_actions + log.actions
    expected: FloatArray = np.empty(shape)
    for action, column in enumerate(probabilities.T):
        expected[:, action] = np.bincount(groups + 1, column, shape[0])
    reached: FloatArray = np.bincount(cells, weights, shape[0] * shape[1]).reshape(shape).astype(np.float64)
    given: IntArray = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return expected[1:], reached[1:], given[1:]


def _groups(column: pd.Series, name: str) -> tuple[IntArray, list[str]]:
    """The group of each row, -1 for none, and the groups in words."""
    if is_real(column) and column.iloc[:: max(1, len(column) // LOOKED_AT)].nunique() > FEW_NUMBERS:
        return _quarters(column.to_numpy(dtype=np.float64, na_value=np.nan), name)
    try:
        codes, levels = pd.factorize(column)
    except TypeError:  # of lists, for instance
        return np.full(len(column), -1), []
    if len(levels) > MOST_LEVELS:
        return np.full(len(column), -1), []
    return codes.astype(np.intp), [f"{name} = {level}" for level in levels]


def _quarters(numbers: FloatArray, name: str) -> tuple[IntArray, list[str]]:
    """Numbers cut at their quartiles, about."""
    finite = np.isfinite(numbers)
    some = numbers[finite][:: max(1, len(numbers) // LOOKED_AT)]
    cuts = np.unique(np.quantile(some, (0.25, 0.5, 0.75)))
    quarters: IntArray = np.where(finite, np.searchsorted(cuts, numbers, side="right"), -1)
    words = [f"{cut:g}" for cut in cuts.tolist()]
    between = [f"{low} <= {name} < {high}" for low, high in pairwise(words)]
    return quarters, [f"{name} < {words[0]}", *between, f"{name} >= {words[-1]}"]

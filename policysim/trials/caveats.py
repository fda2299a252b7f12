"""What may be wrong with an estimate, in words.

Where overlap fails: groups of patients to whom the log seems never to give an action.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policysim.logs.log_frame import MOST_LEVELS, LoggedData, counted, is_real
from policysim.trials.estimators import ImportanceWeights, Moments, largest_weights

# What the interval of the direct method leaves out, whatever the log.
MODEL_BIAS = (
    "the interval of the direct method covers chance and the fit, not the error of the outcome model itself: where the "
    "model is wrong it may miss the value, however many rows there are. The doubly robust estimate has no such error "
    "where the propensities are right."
)
# Below it intervals of the doubly robust and the weighted estimates may cover less than 93 %.
SMALLEST_ESS = 200
# Skewness^2 / n beyond which intervals covered less than 93 % in simulations (docs/off-policy-coverage.md), although
# they are made wider for skewness: that of the population is not in a sample that lacks its rare rows.
MOST_SKEWNESS = 0.1
# Standard deviations beyond which a share of the evaluated policy is called missing: 1 false alarm in 2,000 for each
# action, were sums of its weights normal.
SURPRISE = 3.5


def overlap_caveats(log: LoggedData, shares: FloatArray, weights: FloatArray) -> list[str]:
    """Actions that the evaluated policy takes and the log does not, or not where the policy does.

    If every action that the policy takes had a chance in the log, the mean of w 1{a logged} would be the mean of p(a|x)
    for each action a, with a variance of at most (mean of p) (largest w) / n. A smaller mean is what lacks support; a
    larger one says that propensities are too small. `shares` are the means of p, (k,); weights those before clipping.
    """
    own = weights if log.counts is None else weights * log.counts
    reached = np.bincount(log.actions, weights=own, minlength=log.n_actions) / log.n_patients
    taken = log.by_action()
    spread = np.sqrt(shares * largest_weights(log, weights) / log.n_patients)
    said = []
    for action, (name, share) in enumerate(zip(log.names, shares, strict=True)):
        missing = share - reached[action]
        surprising = abs(missing) > SURPRISE * spread[action]
        if share > 0 and not taken[action]:
            said.append(
                f"no overlap: the log never takes {name}, on which the evaluated policy puts {share:.1%} of its "
                "probability; the log says nothing about that part."
            )
        elif surprising and missing > 0:
            said.append(
                f"overlap fails for {name}: about {missing:.1%} of the evaluated policy's probability is on patients "
                f"to whom the log seems never to give {name} (or propensities are too large)."
            )
        elif surprising:
            said.append(
                f"propensities of {name} seem too small: its weights sum to {reached[action] / share:.2f} times what "
                "they should."
            )
    return said


def weight_caveats(weights: ImportanceWeights, clip: float | None) -> list[str]:
    """Too few effective rows; clipping."""
    said = []
    if weights.ess < SMALLEST_ESS:
        said.append(
            f"effective sample size {weights.ess:,.0f} of {weights.n_patients:,} rows: below {SMALLEST_ESS} the 95 % "
            "interval may cover less than it says."
        )
    if weights.clipped_share > 0:
        said.append(
            f"clip={clip:g} cuts off {weights.clipped_share:.1%} of the weight: the estimate is biased, and the "
            "interval does not allow for that."
        )
    return said


def spread_caveats(found: Moments) -> list[str]:
    """Contributions too skewed for an interval of this kind, or that do not vary at all."""
    if found.standard_error == 0:
        return ["nothing varies from row to row: the standard error of 0 is no sign of certainty."]
    if found.skewness**2 > MOST_SKEWNESS * found.n:
        return [
            f"a few rows decide (skewness {found.skewness:.1f} in {found.n:,} rows), as with rare and large losses: "
            "the 95 % interval may cover less than it says."
        ]
    return []


def model_caveats(log: LoggedData, shares: FloatArray, thin: tuple[int, ...]) -> list[str]:
    """Actions with too few rows to model."""
    names = [log.names[action] for action in thin if shares[action] > 0]
    if not names:
        return []
    return [f"too few rows to model the outcome of {', '.join(names)}: a mean stands in for it."]


# Standard deviations beyond which a group's share is called missing. A sum of independent weights >= 0 falls z of them
# (with E w^2 for the variance) below its mean with probability at most exp(-z^2 / 2) (Maurer 2003, A bound on the
# deviation probability for sums of non-negative random variables, theorem 2.1): 4e-6, of a few hundred groups 1e-3.
SURPRISE_OF_GROUP = 5.0
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
        for group, action in np.argwhere(surprise > SURPRISE_OF_GROUP).tolist():
            said = (
                f"overlap fails for {log.names[action]} where {labels[group]}: the log gives it to "
                f"{given[group, action]:,} of {given[group].sum():,} patients there, and the evaluated policy puts "
                f"{expected[group, action] / log.n_patients:.1%} of its probability on that."
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
        expected[:, action] = np.bincount(groups + 1, column if log.counts is None else column * log.counts, shape[0])
    own = weights if log.counts is None else weights * log.counts
    reached: FloatArray = np.bincount(cells, own, shape[0] * shape[1]).reshape(shape).astype(np.float64)
    given: IntArray = counted(cells, log.counts, shape[0] * shape[1]).reshape(shape)
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

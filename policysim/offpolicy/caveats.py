"""What may be wrong with an estimate, in words."""

from __future__ import annotations

import numpy as np

from policies.arrays import FloatArray
from policysim.offpolicy.estimators import Moments
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.weights import Weights, largest_weights

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
    reached = np.bincount(log.actions, weights=weights, minlength=log.n_actions) / log.n_rows
    taken = np.bincount(log.actions, minlength=log.n_actions)
    spread = np.sqrt(shares * largest_weights(log, weights) / log.n_rows)
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


def weight_caveats(weights: Weights, clip: float | None) -> list[str]:
    """Too few effective rows; clipping."""
    said = []
    if weights.ess < SMALLEST_ESS:
        said.append(
            f"effective sample size {weights.ess:,.0f} of {len(weights.raw):,} rows: below {SMALLEST_ESS} the 95 % "
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

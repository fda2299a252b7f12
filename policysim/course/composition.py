"""How the decisions of several days add up: three sums, each of which is proved, and the smallest of them.

All of them hold if the days' policies are used on states that an observer does not see, that depend on earlier actions,
and if a policy is chosen after seeing what earlier days published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from policies.accounting import Use, compose
from policies.arrays import FloatArray
from policysim.question.extras import optional

Composition = Literal["basic", "exact-losses", "zero-concentrated", "loss-distributions"]

# Orders of the Renyi divergence for the conversion. Any set of orders is valid. dp-accounting's own ends at 1024 and
# so converts no rho, however small, to less than epsilon 0.006 at delta 1e-6.
SMALLEST_ORDER = 1.02
ORDERS: tuple[float, ...] = tuple((1 + np.geomspace(SMALLEST_ORDER - 1, 1e6, 360)).tolist())

# Losses of days that differ are rounded up to multiples of a step: their sum is this many of them, or this many a day.
STEPS, STEPS_A_DAY = 4096, 32
# Sums of so many probabilities may exceed what a formula says by their last digits.
SAFE = 1 - 1e-9


def composed(uses: Sequence[Use], delta: float) -> tuple[Composition, float]:
    """The smallest epsilon for which uses on one patient are (epsilon, delta)-private together, and what proves it.

    The plainest of equals. "exact-losses": losses add up (`policies.accounting.compose`), with delta = 0.
    "zero-concentrated": their rho add up (`Use.rho`), and are converted. "loss-distributions": products of the pairs
    that dominate each use (`Use.pair`) dominate all uses together.

    Parameters
    ----------
    uses : sequence of Use
        One a day.
    delta : float
        In [0, 1); with 0 losses add up.

    Examples
    --------
    Thirty days of randomised response, by any policy with these losses, and by one among four actions:

    >>> from policies.accounting import response_variation
    >>> composed([Use(0.37)] * 30, 1e-6)[1] < 10 < composed([Use(0.38)] * 30, 1e-6)[1]
    True
    >>> composed([Use(0.477, variation=response_variation(0.477, 4))] * 30, 1e-6)[1] < 10
    True
    """
    totals: dict[Composition, float] = {"exact-losses": compose(use.loss for use in uses)}
    if delta > 0 and totals["exact-losses"] > 0:
        totals["zero-concentrated"] = converted_epsilon(math.fsum(use.rho for use in uses), delta)
        totals["loss-distributions"] = distribution_epsilon([use.pair for use in uses], delta)
    total = min(totals.values())
    return next(name for name, proved in totals.items() if proved * SAFE <= total), total


def converted_epsilon(rho: float, delta: float) -> float:
    """The epsilon of (epsilon, delta)-privacy that rho-zero-concentrated privacy implies, by dp-accounting.

    The events are added up here: rho is the sum over all uses, and the accountant's `count` is never used. In
    dp-accounting 0.6.0 one of its accountants ignores it for randomised response.

    Parameters
    ----------
    rho : float
        >= 0, inf allowed.
    delta : float
        In (0, 1).
    """
    if rho == math.inf:
        return math.inf
    # It takes a second to import, and only a delta needs it.
    with optional():
        from dp_accounting import ZCDpEvent  # type: ignore[import-untyped]  # noqa: PLC0415
        from dp_accounting.rdp import RdpAccountant  # type: ignore[import-untyped]  # noqa: PLC0415

    return float(RdpAccountant(ORDERS).compose(ZCDpEvent(rho)).get_epsilon(delta))


def distribution_epsilon(pairs: Sequence[tuple[float, float]], delta: float) -> float:
    """The least epsilon, to 1e-9, at which a product of pairs (`Use.pair`) has a hockey-stick divergence of delta.

    The log-ratio of a product is the sum of the pairs', which each take three values: a loss, its negative, and 0. Its
    distribution is found by adding positive numbers only, without rounding but for the last digits; losses that are not
    multiples of the largest are rounded up to a multiple of a part of it, and a pair of a larger loss and the same
    variation dominates. Then the divergence is the sum over losses L > epsilon of P(L) (1 - e^(epsilon - L)).

    Parameters
    ----------
    pairs : sequence of (float, float)
        Loss and total variation of each.
    delta : float
        In (0, 1).

    References
    ----------
    Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy, ICML, theorem 3.3: the sum for
    randomised response. Sommer, Meiser & Mohammadi (2019), Privacy loss classes, PoPETs: distributions of the loss.
    """
    rest = [(loss, variation) for loss, variation in pairs if loss > 0 and variation > 0]
    largest = max((loss for loss, _ in rest), default=0.0)
    if largest in (0.0, math.inf):
        return largest
    losses = np.array([loss for loss, _ in rest])
    parts = 1
    if losses.min() < largest:
        # A power of 2: halves, quarters and so on of the largest loss are multiples.
        parts = 2 ** math.ceil(math.log2(max(STEPS, STEPS_A_DAY * len(rest)) * largest / losses.sum()))
    steps = np.ceil(losses * (SAFE * parts / largest)).astype(int)
    step = largest / parts / SAFE
    distribution = np.ones(1)
    for count, (_, variation) in zip(steps.tolist(), rest, strict=True):
        plus = variation / -math.expm1(-count * step)
        minus = plus * math.exp(-count * step)
        longer = np.zeros(len(distribution) + 2 * count)
        longer[: -2 * count] += minus * distribution
        longer[2 * count :] += plus * distribution
        longer[count:-count] += max(0.0, 1 - plus - minus) * distribution
        distribution = longer
    return _least_epsilon(distribution, step, delta * SAFE)


def _least_epsilon(distribution: FloatArray, step: float, delta: float) -> float:
    """The least epsilon, to 1e-9 and never below it, whose divergence is at most delta; 0 if that is.

    `distribution` is that of the loss under P at multiples of the step, as many below 0 as above.
    """
    half = len(distribution) // 2
    losses, chances = np.arange(1, half + 1) * step, distribution[half + 1 :]

    def divergence(epsilon: float) -> float:
        first = int(epsilon / step)
        return float(np.dot(chances[first:], -np.expm1(np.minimum(epsilon - losses[first:], 0.0))))

    low, high = 0.0, float(losses[-1])
    if divergence(0.0) <= delta:
        return 0.0
    while high - low > (1 - SAFE) * high:
        middle = (low + high) / 2
        low, high = (low, middle) if divergence(middle) <= delta else (middle, high)
    return high

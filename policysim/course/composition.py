"""What several uses on one patient reveal together: the smallest epsilon that one of three ways to add up proves."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from typing import Literal

import numpy as np

from policies.accounting import Use, compose, of_each_class
from policies.arrays import ROUNDING, FloatArray
from policies.privacy_profile import Profile
from policysim.course.affordable import SAFE
from policysim.errors import optional

Composition = Literal["basic", "exact-losses", "zero-concentrated", "loss-distributions"]

# Orders of the Renyi divergence for the conversion. Any set of orders is valid. dp-accounting's own ends at 1024 and
# so converts no rho, however small, to less than epsilon 0.006 at delta 1e-6.
SMALLEST_ORDER = 1.02
ORDERS: tuple[float, ...] = tuple((1 + np.geomspace(SMALLEST_ORDER - 1, 1e6, 360)).tolist())

# The step of losses is at most this share of their root mean square, and one of so many parts of their largest sum.
STEP, STEPS = 0.05, 8192
# Losses that are rarer than this share of delta, over the number of uses, count as infinite.
RARE = 1e-9
# What the rounding of Fourier transforms adds to a delta at most, for each use.
NOISE = 1e-15


def composed(uses: Sequence[Use], delta: float) -> tuple[Composition, float]:
    """The smallest epsilon for which uses on one patient are (epsilon, delta)-private together, and what proves it.

    The plainest of equals. "exact-losses": losses add up (`policies.accounting.compose`), with delta = 0.
    "zero-concentrated": their rho add up (`Use.rho`), and are converted. "loss-distributions": products of the pairs
    that dominate each use (`Profile.pair`) dominate all uses together.

    Parameters
    ----------
    uses : sequence of Use
        One a day.
    delta : float
        In [0, 1); with 0 losses add up.

    Examples
    --------
    Thirty days of randomised response, by any policy with these losses, and by one among four actions:

    >>> from policies.accounting import bounded_use, policy_use
    >>> composed([bounded_use(0.37)] * 30, 1e-6)[1] < 10 < composed([bounded_use(0.38)] * 30, 1e-6)[1]
    True
    >>> from policies import AnyRecord, DecisionProblem, make_policy
    >>> four = DecisionProblem(np.eye(4), np.full(4, 0.25), AnyRecord())
    >>> composed([policy_use(make_policy("randomized-response", epsilon=0.477), four)] * 30, 1e-6)[1] < 10
    True
    """
    totals: dict[Composition, float] = {"exact-losses": compose(use.loss for use in uses)}
    if delta > 0 and totals["exact-losses"] > 0:
        totals["zero-concentrated"] = converted_epsilon(compose(use.rho for use in uses), delta)
        totals["loss-distributions"] = distribution_epsilon([use.profile for use in uses], delta)
    total = min(totals.values())
    return next(name for name, proved in totals.items() if proved * SAFE <= total), total


def composed_in_classes(days: Sequence[Sequence[Use]], delta: float) -> tuple[Composition, float, tuple[Use, ...]]:
    """`composed` in the public class that spends most, and its uses.

    Parameters
    ----------
    days : sequence of sequence of Use
        What each day reveals within each class; a single one is that of all (`policies.accounting.of_each_class`).
    delta : float
        As for `composed`.
    """
    by_loss = sorted(((summed_loss(uses), uses) for uses in of_each_class(days)), key=itemgetter(0), reverse=True)
    most: tuple[Composition, float, tuple[Use, ...]] = ("exact-losses", 0.0, by_loss[0][1])
    for summed, uses in by_loss:
        # No way to add up finds more than the sum of losses.
        if summed > most[1]:
            most = max(most, (*composed(uses, delta), uses), key=itemgetter(1))
    return most


def summed_loss(uses: Sequence[Use]) -> float:
    """The sum of their losses."""
    return compose(use.loss for use in uses)


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


def distribution_epsilon(profiles: Sequence[Profile], delta: float) -> float:
    """The least epsilon at which uses with these profiles are (epsilon, delta)-private together, by dp-accounting.

    The pair of each profile dominates its use, and the product of the pairs dominates all uses together. Losses are
    moved to multiples of a step: each is split between the two beside it so that both of its probabilities stay what
    they are, and the new pair dominates the old one. So the result is never too small; it is less than .3 % too large.

    Parameters
    ----------
    profiles : sequence of Profile
        One a use.
    delta : float
        In (0, 1). Below `NOISE` a use this way proves nothing: inf.

    References
    ----------
    Sommer, Meiser & Mohammadi (2019), Privacy loss classes, PoPETs: distributions of the loss.
    Doroshenko, Ghazi, Kamath, Kumar & Manurangsi (2022), Connect the dots: tighter discrete approximations of privacy
    loss distributions, PoPETs.
    """
    alike: dict[bytes, list[Profile]] = defaultdict(list)
    for each in profiles:
        if each.powers[-1] > 0:
            alike[each.powers.tobytes() + each.false_alarms.tobytes()].append(each)
    parts = [(len(uses), *_losses(uses[0], delta * RARE / len(profiles))) for uses in alike.values()]
    if not parts:
        return 0.0
    finite = sum(count * math.log1p(-min(impossible, 1 - ROUNDING)) for count, _, _, impossible in parts)
    if -math.expm1(finite) + NOISE * len(profiles) >= delta * SAFE:
        return math.inf
    most = max(losses.max() for _, losses, _, _ in parts)
    if most == 0:
        return 0.0
    largest_sum = sum(count * losses.max() for count, losses, _, _ in parts)
    squares = sum(count * float(chances @ losses**2) for count, losses, chances, _ in parts)
    wanted = min(STEP * math.sqrt(squares / len(profiles)), largest_sum / STEPS)
    # The largest loss is a multiple of it, so that equal uses of randomised response stay what they are.
    step = float(most / math.ceil(most / wanted))
    # It takes a second to import, and only a delta needs it.
    with optional():
        from dp_accounting.pld import privacy_loss_distribution  # type: ignore[import-untyped]  # noqa: PLC0415

    total = privacy_loss_distribution.identity(step)
    for count, losses, chances, impossible in parts:
        upper = _on_multiples(losses, chances, step)
        # The quotient of the two is a little below the multiple, to which it is rounded up.
        lower = {place: chance - (place - 0.001) * step for place, chance in upper.items()}
        # What `lower` lacks has an infinite loss.
        upper[math.inf] = math.log(impossible) if impossible > 0 else -math.inf
        one = privacy_loss_distribution.from_two_probability_mass_functions(
            lower, upper, value_discretization_interval=step
        )
        # Not `count` of an accountant, which one of dp-accounting 0.6 ignores for randomised response.
        total = total.compose(one.self_compose(count))
    return float(total.get_epsilon_for_delta(delta * SAFE - NOISE * len(profiles)))


def _losses(profile: Profile, rare: float) -> tuple[FloatArray, FloatArray, float]:
    """The losses of a profile's pair, their probabilities, (m,) each, and that of an infinite loss, or of rare ones."""
    p, q = profile.pair
    kept = (p > rare) & (q > 0)
    return np.log(p[kept]) - np.log(q[kept]), p[kept], float(p[~kept].sum())


def _on_multiples(losses: FloatArray, chances: FloatArray, step: float) -> dict[float, float]:
    """The logarithm of the probability of each multiple of a step; `chances` are those of the losses, (m,) each."""
    below = np.floor(losses / step)
    above = chances * np.clip(np.expm1(below * step - losses) / math.expm1(-step), 0.0, 1.0)
    places, place = np.unique(np.concatenate([below, below + 1]), return_inverse=True)
    sums = np.bincount(place, np.concatenate([chances - above, above]))
    return {float(multiple): math.log(chance) for multiple, chance in zip(places, sums, strict=True) if chance > 0}

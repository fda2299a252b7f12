"""What each day may spend, so that several decisions on one patient stay within one privacy budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from policies.accounting import compose
from policies.arrays import non_negative
from policies.log_range import log_range
from policies.policy import Policy
from policies.problem import DecisionProblem

Composition = Literal["basic", "zero-concentrated"]

# The search for the daily epsilon ends when this share of rho is spent, or when the best one found is this share of
# one that overspends. It also ends after MAX_TRIES: only a rho that jumps takes so many.
ENOUGH = 0.99
MAX_TRIES = 10
GROWTH = 16.0
# Sums over days may exceed what a formula says by their last digits.
SAFE = 1 - 1e-9

# Orders of the Renyi divergence for the conversion. Any set of orders is valid. dp-accounting's own ends at 1024 and
# so converts no rho, however small, to less than epsilon 0.006 at delta 1e-6.
SMALLEST_ORDER = 1.02
ORDERS: tuple[float, ...] = tuple((1 + np.geomspace(SMALLEST_ORDER - 1, 1e6, 360)).tolist())


@dataclass(frozen=True)
class DailyBudget:
    """What one decision a day may spend.

    Attributes
    ----------
    policy : Policy
        The policy of each day, with the daily epsilon in it.
    days : int
        The number of decisions, H.
    epsilon : float
        The daily epsilon. That of a policy which takes none is its guarantee: 0, or inf for greedy.
    composition : {"basic", "zero-concentrated"}
        What proves it.
    total_epsilon : float
        The days together are (total_epsilon, delta)-private, with the delta of the budget.
    rho : float or None
        The sum of the days' rho; None under basic composition, which does not need it.
    """

    policy: Policy
    days: int
    epsilon: float
    composition: Composition
    total_epsilon: float
    rho: float | None = None


@dataclass(frozen=True)
class PrivacyBudget:
    """A bound (epsilon, delta) on what all decisions on one patient reveal together.

    Two ways to add up are known, and both hold if the policy of each day is chosen after seeing what the earlier days
    published. Basic: losses add, with delta = 0. Zero-concentrated: rho = eta^2 / 8 adds, with eta from the day's own
    table (`policies.log_range`), and the sum is converted to (epsilon, delta) by dp-accounting. Whichever lets more
    through is used.

    Parameters
    ----------
    epsilon : float
        The total loss, >= 0; inf for no limit.
    delta : float, optional
        The probability with which it may be exceeded, in [0, 1). With 0, only basic composition is left.

    Raises
    ------
    ValueError
        For an epsilon or a delta out of range.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, theorem 3.16 and section 3.5: basic.
    Bun & Steinke (2016), Concentrated differential privacy, lemma 1.7: rho adds up.
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, proposition 12: the conversion.

    Examples
    --------
    >>> PrivacyBudget(7.0).daily_epsilon(14)
    0.5
    >>> round(PrivacyBudget(7.0, 1e-6).daily_epsilon(1000), 3)
    0.041
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Check epsilon and delta."""
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))
        delta = non_negative(self.delta, "delta")
        if delta >= 1:
            raise ValueError(f"delta must be < 1, got delta={self.delta!r}.")
        object.__setattr__(self, "delta", delta)

    @property
    def rho(self) -> float:
        """The largest rho that the conversion allows; 0 without a delta."""
        return _largest_rho(self.epsilon, self.delta)

    def total(self, epsilons: Iterable[float], rhos: Iterable[float] = ()) -> float:
        """The smallest epsilon that uses have together at this delta, of both ways to add up.

        Parameters
        ----------
        epsilons : iterable of float
            The loss of each use, >= 0.
        rhos : iterable of float, optional
            The rho of each use (`policies.accounting.concentrated_rho`), in any order; without them, basic only.

        Raises
        ------
        ValueError
            For a loss or a rho that is not >= 0, or another number of rhos than of losses.

        Examples
        --------
        >>> budget = PrivacyBudget(10.0, 1e-6)
        >>> budget.total([0.1] * 1000)
        100.0
        >>> round(budget.total([0.1] * 1000, [0.1**2 / 8] * 1000), 2)
        8.85
        """
        epsilons, rhos = list(epsilons), [non_negative(rho, "rho") for rho in rhos]
        if rhos and len(rhos) != len(epsilons):
            raise ValueError(f"there must be a rho for each of {len(epsilons)} epsilons, got {len(rhos)}.")
        basic = compose(epsilons)
        return min(basic, converted_epsilon(math.fsum(rhos), self.delta)) if rhos and self.delta > 0 else basic

    def daily_epsilon(self, days: int, *, eta_per_epsilon: float = 2.0) -> float:
        """The daily epsilon for any policy with eta <= eta_per_epsilon * epsilon, whatever its table.

        Parameters
        ----------
        days : int
            The number of decisions, >= 1.
        eta_per_epsilon : float, optional
            2 holds for every policy, 1 for the exponential mechanism calibrated by range.

        Raises
        ------
        ValueError
            For days < 1 or an eta_per_epsilon that is not > 0 and finite.
        """
        if not 0 < eta_per_epsilon < math.inf:
            raise ValueError(f"eta_per_epsilon must be > 0 and finite, got eta_per_epsilon={eta_per_epsilon!r}.")
        if isinstance(days, bool) or not isinstance(days, Integral) or days < 1:
            raise ValueError(f"days must be a whole number >= 1, got days={days!r}.")
        concentrated = math.sqrt(8 * self.rho / days) / eta_per_epsilon * SAFE
        return max(self.epsilon / days, concentrated)

    def daily(self, policy: Policy, problems: Sequence[DecisionProblem]) -> DailyBudget:
        """The largest epsilon that a policy may have on every day.

        Parameters
        ----------
        policy : Policy
            Its epsilon is replaced.
        problems : sequence of DecisionProblem
            One a day. The patient may be any record of that day's domain: either the adjacency is any-record, or the
            record does not change. They are read one after the other, once for each epsilon that is tried.

        Returns
        -------
        DailyBudget
            Of zero-concentrated composition only if the tables themselves, at the epsilon returned, stay within rho.

        Raises
        ------
        ValueError
            For no days at all, or (with a delta) a policy that cannot be used on a problem.

        Notes
        -----
        With a delta, the first try is the better of epsilon / H and of what eta = 2 epsilon allows. Every further one
        scales by sqrt(rho allowed / rho) and keeps a bracket, until 99 % of rho is spent or the bracket is within
        1 %. A try needs one table a day, or none where eta has a formula. It takes one try where epsilon / H is the
        better, 2 where eta is nearly proportional to epsilon, at most 11. Where rho jumps or falls with epsilon, the
        result is valid but may not be the largest.

        Examples
        --------
        >>> from policies import AnyRecord, make_policy
        >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
        >>> budget = PrivacyBudget(1.0, 1e-6)
        >>> found = budget.daily(make_policy("exponential-bounded-range"), [problem] * 100)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('zero-concentrated', 0.044, 1.0)
        """
        days = len(problems)
        least = self.daily_epsilon(days)
        if not policy.uses_epsilon:
            return DailyBudget(policy, days, policy.guarantee, "basic", compose([policy.guarantee] * days))
        basic = self.epsilon / days

        def spent(epsilon: float) -> float:
            day = replace(policy, epsilon=epsilon)
            return math.fsum(log_range(day, problem) ** 2 / 8 for problem in problems)

        if 0 < self.rho < math.inf:
            epsilon, rho = _most_affordable(spent, self.rho, least, basic)
            if epsilon > basic:
                total = min(compose([epsilon] * days), converted_epsilon(rho, self.delta))
                return DailyBudget(replace(policy, epsilon=epsilon), days, epsilon, "zero-concentrated", total, rho)
        return DailyBudget(replace(policy, epsilon=basic), days, basic, "basic", self.epsilon)


def _most_affordable(
    spent: Callable[[float], float], allowed: float, start: float, beaten: float
) -> tuple[float, float]:
    """The largest epsilon found, and its rho, with spent(epsilon) <= allowed; (0, 0) if none above `beaten` is.

    What is returned was spent(...) itself; that rho rises with epsilon is only used to choose what to try.
    """
    epsilon, best, best_rho, worst = start, 0.0, 0.0, math.inf
    for attempt in range(MAX_TRIES):
        rho = spent(epsilon)
        if attempt == 0 and rho == 0 and (free := spent(math.inf)) <= allowed:
            return math.inf, free
        if rho <= allowed:
            best, best_rho = epsilon, rho
        else:
            worst = epsilon
        if best_rho >= ENOUGH * allowed or best >= ENOUGH * worst or worst <= beaten:
            break
        epsilon = _next_try(epsilon, rho, allowed, best, worst)
    return best, best_rho


def _next_try(epsilon: float, rho: float, allowed: float, best: float, worst: float) -> float:
    """Where rho would be what is allowed if it were proportional to epsilon^2, within the bracket."""
    scaled = epsilon * math.sqrt(allowed / rho) * SAFE if rho > 0 else math.inf
    if best < scaled < worst:
        return scaled
    if worst == math.inf:
        return best * GROWTH
    return math.sqrt(best * worst) if best > 0 else worst / GROWTH


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
    # It takes a second to import.
    from dp_accounting import ZCDpEvent  # type: ignore[import-untyped]  # noqa: PLC0415
    from dp_accounting.rdp import RdpAccountant  # type: ignore[import-untyped]  # noqa: PLC0415

    return float(RdpAccountant(ORDERS).compose(ZCDpEvent(rho)).get_epsilon(delta))


@cache
def _largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho (to 1e-9 relative) whose converted epsilon is at most `epsilon`; 0 if there is none."""
    if delta == 0 or epsilon == math.inf:
        return 0.0 if delta == 0 else math.inf
    # A Renyi divergence below -log(1 - delta^2) has a total variation below delta: epsilon 0.
    lowest = max(delta**2 / 2, 1e-300)
    if converted_epsilon(lowest, delta) > epsilon:
        return 0.0
    # Orders from SMALLEST_ORDER convert rho to more than rho - 5, except below -log(1 - delta^2) < 37.
    ends = math.log(lowest), math.log(epsilon + 40)
    rho = math.exp(brentq(lambda log: converted_epsilon(math.exp(log), delta) - epsilon, *ends, xtol=1e-10))
    while converted_epsilon(rho, delta) > epsilon:
        rho *= SAFE
    return rho

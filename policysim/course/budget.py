"""What each day may spend, so that several decisions on one patient stay within one privacy budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import TypeAlias

from scipy.optimize import brentq

from policies.accounting import Use, compose
from policies.arrays import non_negative
from policies.masked import MaskedProblem
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.course.allocation import most_affordable, spend
from policysim.course.composition import SAFE, Composition, composed, converted_epsilon, distribution_epsilon
from policysim.course.process import InfiniteLossWarning, Process
from policysim.course.step_problems import optimal_course

Decisions: TypeAlias = "Process | Sequence[DecisionProblem] | Sequence[MaskedProblem]"


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
    composition : {"basic", "exact-losses", "zero-concentrated", "loss-distributions"}
        What proves it: the sum of the days' epsilons, the sum of the exact losses of the days' own tables, the sum of
        their rho, or the product of the pairs of distributions that dominate them.
    total_epsilon : float
        The days together are (total_epsilon, delta)-private, with the delta of the budget.
    rho : float or None
        The sum of the days' rho if it is the proof, else None.
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

    (epsilon, delta)-private: for any two records x, x' and any set S of what may be published on all days,
    P(S | x) <= e^epsilon P(S | x') + delta. delta is no probability that the loss exceeds epsilon: that probability
    may be several times larger, and if it is at most delta, (epsilon, delta) follows, but not the other way round.

    Three ways to add up are known, and all hold if the policy of each day is chosen after seeing what the earlier days
    published. Losses add, with delta = 0: each day counts its epsilon, or the exact loss of its own table, which may be
    less. Zero-concentrated: rho adds (`policies.accounting.bounded_range_rho`, with eta from the day's own table), and
    the sum is converted to (epsilon, delta) by dp-accounting. Distributions of the privacy loss: the product of the
    pairs of distributions that dominate the days (`policies.accounting.Use.pair`). Whichever lets most through is used.

    Parameters
    ----------
    epsilon : float
        The total loss, >= 0; inf for no limit.
    delta : float, optional
        By how much a probability may be above e^epsilon times that under another record, in [0, 1). With 0, only
        basic composition is left.

    Raises
    ------
    ValueError
        For an epsilon or a delta out of range.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy: definition 2.4; basic
    composition, theorem 3.16 and section 3.5.
    Bun & Steinke (2016), Concentrated differential privacy, lemma 1.7: rho adds up.
    Zhu, Dong & Wang (2022), Optimal accounting of differential privacy via characteristic function, theorem 10:
    dominating pairs.
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, proposition 12: the conversion.

    Examples
    --------
    >>> PrivacyBudget(7.0).daily_epsilon(14)
    0.5
    >>> round(PrivacyBudget(7.0, 1e-6).daily_epsilon(1000), 3)
    0.043
    >>> round(PrivacyBudget(10.0, 1e-6).daily_epsilon(30), 3)
    0.37
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
        """The smallest epsilon that uses have together at this delta, of all ways to add up.

        Parameters
        ----------
        epsilons : iterable of float
            The loss of each use, >= 0.
        rhos : iterable of float, optional
            The rho of each use (`policies.accounting.bounded_range_rho`), in any order.

        Raises
        ------
        ValueError
            For a loss or a rho that is not >= 0, or another number of rhos than of losses.

        Examples
        --------
        >>> PrivacyBudget(10.0).total([0.1] * 1000)
        100.0
        >>> budget = PrivacyBudget(10.0, 1e-6)
        >>> round(budget.total([0.1] * 1000), 2)
        19.34
        >>> round(budget.total([0.1] * 1000, [0.1**2 / 8] * 1000), 2)
        8.85
        """
        losses = [non_negative(epsilon, "epsilon") for epsilon in epsilons]
        parts = [non_negative(rho, "rho") for rho in rhos]
        if parts and len(parts) != len(losses):
            raise ValueError(f"there must be a rho for each of {len(losses)} epsilons, got {len(parts)}.")
        if self.delta == 0:
            return compose(losses)
        totals = [compose(losses), distribution_epsilon([Use(loss).pair for loss in losses], self.delta)]
        return min(totals + ([converted_epsilon(math.fsum(parts), self.delta)] if parts else []))

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
        return _largest_daily(self.epsilon, self.delta, int(days), min(float(eta_per_epsilon), 2.0))

    def daily(self, policy: Policy, problems: Decisions) -> DailyBudget:
        """The largest epsilon that a policy may have on every day.

        Parameters
        ----------
        policy : Policy
            Its epsilon is replaced.
        problems : Process, or sequence of DecisionProblem or MaskedProblem
            One a day. The patient may be any record of that day's domain: either the adjacency is any-record, or the
            record does not change. They are read one after the other, once for each epsilon that is tried.

        Returns
        -------
        DailyBudget
            With the same epsilon on every day, at least epsilon / H. It is above that only if the tables themselves,
            at the epsilon returned, stay within the budget.

        Raises
        ------
        ValueError
            For no days at all, or a policy that cannot be used on a problem.

        Notes
        -----
        The first try is the better of epsilon / H and of what eta = 2 epsilon allows (`most_affordable`). A try needs
        one table a day. It takes one try where every day loses its epsilon, 2 or 3 where the losses are nearly
        proportional to epsilon, at most 11. It ends within 1 % of the budget or of an epsilon that is not affordable.
        Where losses jump or fall with epsilon, the result is valid but may not be the largest.

        More is not always better: a policy that trusts the Q-values of another continuation may be worth less at a
        larger epsilon, and equal days may be worth less than unequal ones (`policysim.compare` with `total_epsilons`).

        Examples
        --------
        >>> from policies import AnyRecord, make_policy
        >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
        >>> budget = PrivacyBudget(1.0, 1e-6)
        >>> found = budget.daily(make_policy("exponential-bounded-range"), [problem] * 100)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('loss-distributions', 0.048, 0.997)

        The textbook calibration loses half of its epsilon here, and so may have twice as much:

        >>> found = PrivacyBudget(1.0).daily(make_policy("exponential"), [problem] * 10)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('exact-losses', 0.2, 1.0)
        """
        decided = _each_day(policy, problems)
        days = len(decided)
        least, even = self.daily_epsilon(days), self.epsilon / days
        if not policy.uses_epsilon:
            return DailyBudget(policy, days, policy.guarantee, "basic", compose([policy.guarantee] * days))
        if even == math.inf:
            return DailyBudget(replace(policy, epsilon=even), days, even, "basic", self.epsilon)
        tried: dict[float, tuple[Use, ...]] = {}

        def share(epsilon: float) -> float:
            tried[epsilon] = spend(policy, decided, [epsilon] * days)
            found = self.share(tried[epsilon])
            # Days that are promised an equal part of the budget stay within it, whatever the last digits of the sum.
            within = epsilon <= even and compose(use.loss for use in tried[epsilon]) <= self.epsilon / SAFE
            return min(found, 1.0) if within else found

        epsilon = max(even, most_affordable(share, least, even))
        return self._proved(policy, days, epsilon, tried.get(epsilon, (Use(math.inf),)))

    def share(self, uses: Sequence[Use]) -> float:
        """What share of the budget uses spend, at most 1 if and only if they stay within it.

        Beyond 1 it is a guess: of the ways to add up, the one that asks for least.
        """
        shares = [_ratio(compose(use.loss for use in uses), self.epsilon)]
        if self.delta > 0 and shares[0] > 0:
            shares.append(math.sqrt(_ratio(math.fsum(use.rho for use in uses), self.rho)))
            if self.epsilon > 0:
                shares.append(distribution_epsilon([use.pair for use in uses], self.delta) / self.epsilon)
        return min(shares)

    def _proved(self, policy: Policy, days: int, epsilon: float, uses: Sequence[Use]) -> DailyBudget:
        """The daily budget of an epsilon, by the composition that proves the smallest total; the plainest of equals."""
        composition, total = composed(uses, self.delta)
        if epsilon <= self.epsilon / days:
            basic = min(self.epsilon, compose([epsilon] * days))
            if basic * SAFE <= total:
                composition, total = "basic", min(basic, total)
        rho = math.fsum(use.rho for use in uses) if composition == "zero-concentrated" else None
        return DailyBudget(replace(policy, epsilon=epsilon), days, epsilon, composition, total, rho)


def _each_day(policy: Policy, problems: Decisions) -> Sequence[DecisionProblem | MaskedProblem]:
    """The decision of each day; of a process those under optimal continuation. ValueError for masks that are hidden."""
    if not isinstance(problems, Sequence):
        if not hasattr(problems, "continuation") or problems.horizon is None:
            raise ValueError(
                "problems must be the decisions of the days, or a process with a horizon such as "
                f"TabularMDP(..., horizon=30), got {problems!r}."
            )
        problems = optimal_course(problems).decisions(policy)
    # Others are made when they are asked for.
    given = problems if isinstance(problems, tuple | list) else ()
    if any(isinstance(day, MaskedProblem) and day.told_apart for day in given):
        raise ValueError(f"no budget can be kept: {InfiniteLossWarning.EXPLAINED}")
    return problems


def _ratio(part: float, whole: float) -> float:
    """What share of the whole a part is; none of it if there is nothing to share."""
    if whole == 0 or part == math.inf:
        return 0.0 if part == 0 else math.inf
    return part / whole


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


@cache
def _largest_daily(epsilon: float, delta: float, days: int, eta_per_epsilon: float) -> float:
    """The largest daily epsilon that one of the ways to add up allows, whatever the tables."""
    even = epsilon / days
    if delta == 0 or even == math.inf:
        return even
    rho = _largest_rho(epsilon, delta) / days * SAFE

    def within_rho(each: float) -> bool:
        return Use(each, eta_per_epsilon * each).rho <= rho

    def within_distributions(each: float) -> bool:
        return distribution_epsilon([Use(each, eta_per_epsilon * each).pair] * days, delta) <= epsilon

    # rho is at most eta^2 / 8.
    found = max(even, math.sqrt(8 * rho) / eta_per_epsilon * SAFE)
    return _last(within_distributions, _last(within_rho, found))


def _last(holds: Callable[[float], bool], start: float) -> float:
    """The largest number found, to 1e-9, at which something holds that stops to hold; `start` if it does not there."""
    low, high = start, 2 * start
    if start == 0 or not holds(start):
        return start
    while holds(high):
        low, high = high, 2 * high
    while high - low > (1 - SAFE) * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

"""What each day may spend, so that several decisions on one patient stay within one privacy budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from policies.accounting import compose
from policies.arrays import non_negative
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.course.allocation import SAFE, Spent, most_affordable, spend
from policysim.question.extras import optional

Composition = Literal["basic", "exact-losses", "zero-concentrated"]

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
    composition : {"basic", "exact-losses", "zero-concentrated"}
        What proves it: the sum of the days' epsilons, the sum of the exact losses of the days' own tables, or the sum
        of their rho.
    total_epsilon : float
        The days together are (total_epsilon, delta)-private, with the delta of the budget.
    rho : float or None
        The sum of the days' rho; None where the sum of epsilons or losses is the proof.
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

    Two ways to add up are known, and both hold if the policy of each day is chosen after seeing what the earlier days
    published. Basic: losses add, with delta = 0; each day counts its epsilon, or the exact loss of its own table,
    which may be less. Zero-concentrated: rho = eta^2 / 8 adds, with eta from the day's own table
    (`policies.accounting`), and the sum is converted to (epsilon, delta) by dp-accounting. Whichever lets more through
    is used.

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
            With the same epsilon on every day, at least epsilon / H. It is above that only if the tables themselves,
            at the epsilon returned, stay within the budget.

        Raises
        ------
        ValueError
            For no days at all, or a policy that cannot be used on a problem.

        Notes
        -----
        The first try is the better of epsilon / H and of what eta = 2 epsilon allows (`most_affordable`). A try needs
        one table a day, or none where loss and eta have a formula. It takes one try where every day loses its
        epsilon, 2 or 3 where the losses are nearly proportional to epsilon, at most 11. It ends within 1 % of the
        budget or of an epsilon that is not affordable. Where losses jump or fall with epsilon, the result is valid
        but may not be the largest.

        More is not always better: a policy that trusts the Q-values of another continuation may be worth less at a
        larger epsilon. Whoever compares budgets may use what a smaller one allows.

        Examples
        --------
        >>> from policies import AnyRecord, make_policy
        >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
        >>> budget = PrivacyBudget(1.0, 1e-6)
        >>> found = budget.daily(make_policy("exponential-bounded-range"), [problem] * 100)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('zero-concentrated', 0.044, 1.0)

        The textbook calibration loses half of its epsilon here, and so may have twice as much:

        >>> found = PrivacyBudget(1.0).daily(make_policy("exponential"), [problem] * 10)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('exact-losses', 0.2, 1.0)
        """
        days = len(problems)
        least, even = self.daily_epsilon(days), self.epsilon / days
        if not policy.uses_epsilon:
            return DailyBudget(policy, days, policy.guarantee, "basic", compose([policy.guarantee] * days))
        if even == math.inf:
            return DailyBudget(replace(policy, epsilon=even), days, even, "basic", self.epsilon)
        tried: dict[float, Spent] = {}

        def share(epsilon: float) -> float:
            tried[epsilon] = spend(policy, problems, [epsilon] * days)
            found = min(_ratio(tried[epsilon].loss, self.epsilon), math.sqrt(_ratio(tried[epsilon].rho, self.rho)))
            # Days that are promised an equal part of the budget stay within it, whatever the last digits of the sum.
            return min(found, 1.0) if epsilon <= even and tried[epsilon].loss <= self.epsilon / SAFE else found

        epsilon = max(even, most_affordable(share, least, even))
        return self._proved(policy, days, epsilon, tried.get(epsilon, Spent(math.inf, math.inf)))

    def spending(self, policy: Policy, problems: Sequence[DecisionProblem], epsilon: float) -> DailyBudget:
        """What a policy spends in all with this epsilon on every day, whether or not the budget affords it.

        Parameters
        ----------
        policy, problems
            As for `daily`.
        epsilon : float
            Of each day.

        Examples
        --------
        >>> from policies import AnyRecord, make_policy
        >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
        >>> PrivacyBudget(1.0).spending(make_policy("randomized-response"), [problem] * 4, 0.5).total_epsilon
        2.0
        """
        days = len(problems)
        return self._proved(policy, days, epsilon, spend(policy, problems, [epsilon] * days))

    def _proved(self, policy: Policy, days: int, epsilon: float, spent: Spent) -> DailyBudget:
        """The daily budget of an epsilon, by the composition that proves the smallest total; the plainest of equals."""
        totals: dict[Composition, float] = {"exact-losses": spent.loss, "zero-concentrated": math.inf}
        if self.delta > 0:
            totals["zero-concentrated"] = converted_epsilon(spent.rho, self.delta)
        if epsilon <= self.epsilon / days:
            totals = {"basic": min(self.epsilon, compose([epsilon] * days)), **totals}
        total = min(totals.values())
        composition = next(name for name, proved in totals.items() if proved * SAFE <= total)
        rho = spent.rho if composition == "zero-concentrated" else None
        return DailyBudget(replace(policy, epsilon=epsilon), days, epsilon, composition, total, rho)


def _ratio(part: float, whole: float) -> float:
    """What share of the whole a part is; none of it if there is nothing to share."""
    if whole == 0 or part == math.inf:
        return 0.0 if part == 0 else math.inf
    return part / whole


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

"""What each day may spend, so that several decisions on one patient stay within one privacy budget.

The days add up in three ways, each of which is proved, and the smallest sum counts. All of them hold if the days'
policies are used on states that an observer does not see, that depend on earlier actions, and if a policy is chosen
after seeing what earlier days published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq

from envs.treatment_response import is_whole
from policies.accounting import Use, compose, policy_use
from policies.arrays import FloatArray, IntArray, non_negative
from policies.masked import MaskedProblem
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.course.planning import optimal_course
from policysim.course.process import InfiniteLossWarning, Process
from policysim.errors import optional

Composition = Literal["basic", "exact-losses", "zero-concentrated", "loss-distributions"]

# Orders of the Renyi divergence for the conversion. Any set of orders is valid. dp-accounting's own ends at 1024 and
# so converts no rho, however small, to less than epsilon 0.006 at delta 1e-6.
SMALLEST_ORDER = 1.02
ORDERS: tuple[float, ...] = tuple((1 + np.geomspace(SMALLEST_ORDER - 1, 1e6, 360)).tolist())

# Losses of days that differ are rounded up to multiples of a step: their sum is this many of them, or this many a day.
STEPS, STEPS_A_DAY = 4096, 32
# Sums of so many probabilities may exceed what a formula says by their last digits.
SAFE = 1 - 1e-9
# The search ends when this share of the budget is spent, or when the best epsilon found is this share of one that
# overspends. It also ends after MAX_TRIES: only a spending that jumps takes so many.
ENOUGH = 0.99
MAX_TRIES = 10
GROWTH = 16.0
Decisions: TypeAlias = "Process | Sequence[DecisionProblem] | Sequence[MaskedProblem]"


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
    # The least epsilon, never below it, whose divergence is at most delta. The distribution is that of the loss under P
    # at multiples of the step, as many below 0 as above.
    half = len(distribution) // 2
    above, chances = np.arange(1, half + 1) * step, distribution[half + 1 :]

    def divergence(epsilon: float) -> float:
        first = int(epsilon / step)
        return float(np.dot(chances[first:], -np.expm1(np.minimum(epsilon - above[first:], 0.0))))

    low, high = 0.0, float(above[-1])
    if divergence(0.0) <= delta * SAFE:
        return 0.0
    while high - low > (1 - SAFE) * high:
        middle = (low + high) / 2
        low, high = (low, middle) if divergence(middle) <= delta * SAFE else (middle, high)
    return high


def spend(
    policy: Policy, problems: Sequence[DecisionProblem | MaskedProblem], epsilons: Sequence[float]
) -> tuple[Use, ...]:
    """What a policy reveals on each day by the day's own table, if it has epsilons[d] on day d.

    Parameters
    ----------
    policy : Policy
        Its epsilon is replaced.
    problems : sequence of DecisionProblem or MaskedProblem
        One a day; each is read once.
    epsilons : sequence of float
        One a day.
    """
    uses = []
    for problem, epsilon in zip(problems, epsilons, strict=True):
        at = replace(policy, epsilon=epsilon)
        if isinstance(problem, MaskedProblem):
            uses.append(problem.use(at, problem.tables(at)[0]))
        else:
            uses.append(policy_use(at, problem))
    return tuple(uses)


def most_affordable(share: Callable[[float], float], start: float, beaten: float, tries: int = MAX_TRIES) -> float:
    """The largest epsilon found with share(epsilon) <= 1; 0 if none above `beaten` is.

    Each try scales the last one to where the share would be 1 if it were proportional to epsilon, and keeps a bracket.
    What is returned was tried itself: that the share rises with epsilon is only used to choose what to try. Where it
    jumps or falls, the result is affordable but may not be the largest.

    Parameters
    ----------
    share : callable
        From a daily epsilon to the share of the budget that it spends.
    start : float
        What to try first.
    beaten : float
        An epsilon that is affordable anyway.
    tries : int, optional
        How many at most.
    """
    epsilon, best, best_share, worst = start, 0.0, 0.0, math.inf
    for attempt in range(tries):
        found = share(epsilon)
        if attempt == 0 and found == 0 and share(math.inf) <= 1:
            return math.inf
        if found <= 1:
            best, best_share = epsilon, found
        else:
            worst = epsilon
        if epsilon == 0 or best_share >= ENOUGH or best >= ENOUGH * worst or worst <= beaten:
            break
        scaled = epsilon / found * SAFE if found > 0 else math.inf
        if best < scaled < worst:
            epsilon = scaled
        elif worst == math.inf:
            epsilon = best * GROWTH
        else:
            epsilon = math.sqrt(best * worst) if best > 0 else worst / GROWTH
    return best


def buy_most(gains: FloatArray, costs: FloatArray, budget: float) -> IntArray:
    """Which level each day buys so that all gain much within a budget, (H,); -1 for none.

    Of each day's levels those count that no mixture of others beats (the upper concave hull over the costs). Steps from
    one to the next are bought in the order of their gain per cost as long as they fit; or the one level that gains most
    alone, if that is more. So the gain is at least half of the largest possible (the greedy rule of the knapsack).

    Parameters
    ----------
    gains, costs : array, (H, n_levels)
        What each level gains on each day, and what it costs, >= 0.
    budget : float
        What all days may cost together.

    Examples
    --------
    >>> buy_most(np.array([[1.0, 3.0], [1.0, 1.5]]), np.array([[1.0, 2.0], [1.0, 2.0]]), 3.0).tolist()
    [1, 0]
    """
    steps = []
    for day, (gain, cost) in enumerate(zip(gains, costs, strict=True)):
        before, at = (0.0, 0.0), 0
        while True:
            rising = [(g - before[1], c - before[0], i) for i, (g, c) in enumerate(zip(gain, cost, strict=True))]
            rising = [step for step in rising if step[0] > 0 and step[1] >= 0 and cost[step[2]] <= budget]
            if not rising:
                break
            g, c, level = max(rising, key=lambda step: (step[0] / step[1] if step[1] > 0 else math.inf, step[0]))
            # Steps of a day come in their order, since their gain per cost falls.
            steps.append((-g / c if c > 0 else -math.inf, day, at, level, c))
            before, at = (float(cost[level]), float(gain[level])), at + 1
    bought, left, closed = np.full(len(gains), -1), budget, set()
    for _, day, _, level, cost_of_step in sorted(steps):
        if day in closed or cost_of_step > left:
            closed.add(day)
            continue
        bought[day], left = level, left - cost_of_step
    together = sum(float(gains[day, level]) for day, level in enumerate(bought) if level >= 0)
    alone = np.where(costs <= budget, gains, 0.0)
    if alone.size and alone.max() > together:
        best = divmod(int(alone.argmax()), alone.shape[1])
        bought = np.full(len(gains), -1)
        bought[best[0]] = best[1]
    return bought


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
        if not is_whole(days) or days < 1:
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
        >>> found = budget.daily(make_policy("exponential-fitted"), [problem] * 100)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('loss-distributions', 0.024, 1.0)

        The textbook calibration loses half of its epsilon here, and so may have twice as much:

        >>> found = PrivacyBudget(1.0).daily(make_policy("exponential"), [problem] * 10)
        >>> found.composition, round(found.epsilon, 3), round(found.total_epsilon, 3)
        ('exact-losses', 0.2, 1.0)
        """
        if isinstance(problems, Sequence):
            decided: Sequence[DecisionProblem | MaskedProblem] = problems
        elif hasattr(problems, "continuation") and problems.horizon is not None:
            # Those under optimal continuation.
            decided = optimal_course(problems).decisions(policy)
        else:
            raise ValueError(
                "problems must be the decisions of the days, or a process with a horizon such as "
                f"TabularMDP(..., horizon=30), got {problems!r}."
            )
        # Others are made when they are asked for.
        given = decided if isinstance(decided, tuple | list) else ()
        if any(isinstance(day, MaskedProblem) and day.told_apart for day in given):
            raise ValueError(f"no budget can be kept: {InfiniteLossWarning.EXPLAINED}")
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
        uses = tried.get(epsilon, (Use(math.inf),))
        # What proves the smallest total; the plainest of equals.
        composition, total = composed(uses, self.delta)
        if epsilon <= even:
            basic = min(self.epsilon, compose([epsilon] * days))
            if basic * SAFE <= total:
                composition, total = "basic", min(basic, total)
        rho = math.fsum(use.rho for use in uses) if composition == "zero-concentrated" else None
        return DailyBudget(replace(policy, epsilon=epsilon), days, epsilon, composition, total, rho)

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

"""What each day may spend, so that several decisions on one patient stay within one privacy budget.

The days add up in three ways, each of which is proved, and the smallest sum counts. All of them hold if the days'
policies are used on states that an observer does not see, that depend on earlier actions, and if a policy is chosen
after seeing what earlier days published, as long as what each day may reveal is fixed beforehand. Where even that is
chosen on the way, losses alone add up (`PrivacyBudget.spend`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from envs.toml_reader import SIZES, is_epsilon, one_line, shown
from envs.treatment_response import is_whole
from policies.accounting import Use, bounded_use, compose, largest_use, of_each_class, policy_uses
from policies.adjacency import Adjacency, AnyRecord, public_classes, require_adjacency
from policies.arrays import non_negative, probability_table
from policies.fitted import FittedPolicy
from policies.mask import listed_among
from policies.masked import MaskedProblem
from policies.policy import ClaimError, Policy
from policies.privacy_loss import privacy_loss
from policies.problem import DecisionProblem
from policysim.course.affordable import SAFE, most_affordable
from policysim.course.composition import (
    Composition,
    composed_in_classes,
    converted_epsilon,
    distribution_epsilon,
    summed_loss,
)
from policysim.course.planning import optimal_course
from policysim.course.process import InfiniteLossWarning, Process
from policysim.study.checks import claim_fault
from policysim.study.sweep import at

Decisions: TypeAlias = "Process | Sequence[DecisionProblem] | Sequence[MaskedProblem]"


def spend(
    policy: Policy,
    problems: Sequence[DecisionProblem | MaskedProblem],
    epsilons: Sequence[float],
    *,
    classes_stay: bool = False,
) -> tuple[tuple[Use, ...], ...]:
    """What a policy reveals on each day by the day's own table, if it has epsilons[d] on day d.

    Of each day within each public class if nobody changes it, else the largest over all classes alone.

    Parameters
    ----------
    policy : Policy
        Its epsilon is replaced, if it takes one.
    problems : sequence of DecisionProblem or MaskedProblem
        One a day; each is read once.
    epsilons : sequence of float
        One a day.
    classes_stay : bool, optional
        Whether a patient is in the same public class on all days.

    Raises
    ------
    ClaimError
        If a day's table reveals more than the policy claims.
    ValueError
        If states of a day that are to be hidden among each other allow different actions.
    """
    uses = []
    for problem, epsilon in zip(problems, epsilons, strict=True):
        on_day = at(policy, epsilon)
        if isinstance(problem, MaskedProblem):
            if problem.told_apart:
                raise ValueError(f"no budget can be kept: {InfiniteLossWarning.EXPLAINED}")
            of_day = problem.uses(on_day, problem.tables(on_day)[0])
        elif isinstance(problem, DecisionProblem):
            of_day = policy_uses(on_day, problem)
        else:
            raise ValueError(f"the decision of each day must be a DecisionProblem, got {one_line(shown(problem))}.")
        uses.append(claimed_uses(on_day, of_day if classes_stay else (largest_use(of_day),)))
    return tuple(uses)


def claimed_uses(policy: Policy, uses: tuple[Use, ...]) -> tuple[Use, ...]:
    """The same uses of a policy; ClaimError if the loss of one is above what the policy claims."""
    if fault := claim_fault(policy, max(use.loss for use in uses)):
        raise ClaimError(fault)
    return uses


def _known_classes(problems: Sequence[DecisionProblem | MaskedProblem]) -> bool:
    """Whether a record is in the same public class on each of these days; of states (`MaskedProblem`) nobody knows."""
    records = [problem for problem in problems if isinstance(problem, DecisionProblem)]
    if len(records) < len(problems):
        return False
    sizes = {id(problem.adjacency): (problem.adjacency, problem.n_records) for problem in records}
    of_days = [public_classes(*each) for each in sizes.values()]
    several = [classes for classes in of_days if classes.max() > 0]
    return all(np.array_equal(classes, several[0]) for classes in several)


@dataclass(frozen=True)
class DailyBudget:
    """What one decision a day may spend.

    Attributes
    ----------
    policy : Policy
        The policy of each day, with the daily epsilon in it.
    budget : PrivacyBudget
        Within which all days are to stay.
    decisions : sequence of DecisionProblem or MaskedProblem
        One a day.
    classes_stay : bool
        Whether a patient is in the same public class on all days.
    """

    policy: Policy
    budget: PrivacyBudget
    decisions: Sequence[DecisionProblem | MaskedProblem] = field(repr=False)
    classes_stay: bool = False

    @property
    def days(self) -> int:
        """The number of decisions, H."""
        return len(self.decisions)

    @property
    def epsilon(self) -> float:
        """The daily epsilon. That of a policy which takes none is its guarantee: 0, or inf for greedy."""
        return self.policy.epsilon if self.policy.uses_epsilon else self.policy.claimed

    @cached_property
    def uses(self) -> tuple[tuple[Use, ...], ...]:
        """What each day reveals by its own table (`spend`), within each class if classes stay."""
        return spend(self.policy, self.decisions, [self.policy.epsilon] * self.days, classes_stay=self.classes_stay)

    @property
    def composition(self) -> Composition:
        """What proves the total: a name of `policysim.course.composition`.

        "basic" is the sum of what the days promise, "exact-losses" that of the exact losses of their own tables,
        "zero-concentrated" that of their rho, "loss-distributions" the product of the pairs of distributions that
        dominate them.
        """
        return self._proof[0]

    @property
    def total_epsilon(self) -> float:
        """The days together are (total_epsilon, delta)-private, with the delta of the budget."""
        return self._proof[1]

    @property
    def rho(self) -> float | None:
        """The sum of the days' rho if it is the proof, else None."""
        composition, _, uses = self._proof
        return compose(use.rho for use in uses) if composition == "zero-concentrated" else None

    @cached_property
    def _proof(self) -> tuple[Composition, float, Sequence[Use]]:
        """What proves the smallest total; the plainest of equals."""
        promised, whole = compose([self.policy.claimed] * self.days), self.budget.epsilon
        if self.epsilon == math.inf or not self.policy.uses_epsilon:
            return "basic", promised, ()
        composition, total, uses = composed_in_classes(self.uses, self.budget.delta)
        # Days that are promised an equal part of the budget stay within it, whatever the last digits of the sum.
        if self.policy.claimed <= whole / self.days and min(whole, promised) * SAFE <= total:
            return "basic", min(whole, promised, total), uses
        return composition, total, uses


@dataclass(frozen=True)
class PrivacyBudget:
    """A bound (epsilon, delta) on what all decisions on one patient reveal together.

    (epsilon, delta)-private: for any two records x, x' and any set S of what may be published on all days,
    P(S | x) <= e^epsilon P(S | x') + delta. delta is no probability that the loss exceeds epsilon: that probability
    may be several times larger, and if it is at most delta, (epsilon, delta) follows, but not the other way round.

    Three ways to add up are known, and all hold if the policy of each day is chosen after seeing what the earlier days
    published, but what each may reveal (loss, range and profile) is fixed beforehand. Losses add, with delta = 0: each
    day counts its epsilon, or the exact loss of its own table, which may be less. Zero-concentrated: rho adds
    (`policies.accounting.bounded_range_rho`, with eta from the day's own table), and the sum is converted to
    (epsilon, delta) by dp-accounting. Distributions of the privacy loss: the product of the pairs of distributions that
    dominate the days (`policies.privacy_profile.Profile.pair`), by dp-accounting. Whichever lets most through is used.

    For a stay of unknown length, with an epsilon that is chosen day by day, the budget is an odometer: `spend` counts
    the exact loss of each table before a treatment is drawn by it, and `left` says what remains. That adds losses, with
    delta = 0, of the patient's own public class if the caller says which it is. Distributions of the loss do not add up
    so: with an epsilon chosen on the way, two courses that each have delta = .05 had .0592 together. Sums of rho are a
    filter, and only within a total that was fixed beforehand. What was spent belongs to the object, and so to its
    copies; `dataclasses.replace` makes a new budget of which nothing is spent, and the days that `daily` plans are
    counted only once they are spent.

    Parameters
    ----------
    epsilon : float
        The total loss: 0, from 1e-50 to 1e50, or inf for no limit.
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
    Rogers, Roth, Ullman & Vadhan (2016), Privacy odometers and filters: pay-as-you-go composition, NeurIPS: sums of
    epsilon hold if each is chosen on the way. Feldman & Zrnic (2021), Individual privacy accounting via a Renyi filter,
    NeurIPS: so does a sum of rho, within a total that is fixed beforehand.

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
    _spent: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check epsilon and delta."""
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))
        if not is_epsilon(self.epsilon):
            raise ValueError(f"epsilon must be {SIZES}, got epsilon={self.epsilon!r}.")
        delta = non_negative(self.delta, "delta")
        if delta >= 1:
            raise ValueError(f"delta must be < 1, got delta={self.delta!r}.")
        object.__setattr__(self, "delta", delta)

    @property
    def rho(self) -> float:
        """The largest rho that the conversion allows; 0 without a delta."""
        return _largest_rho(self.epsilon, self.delta)

    def spend(
        self,
        used: FittedPolicy | Policy | ArrayLike,
        on: DecisionProblem | Adjacency | None = None,
        *,
        record: int | None = None,
    ) -> float:
        """Count the exact loss of a decision on the patient, before a treatment is drawn; returns the loss.

        Parameters
        ----------
        used : FittedPolicy, Policy or array, (n_records, n_actions)
            What the treatment is drawn by. It may be chosen from public data and the treatments so far, its epsilon
            too, and from nothing else: not from the patient's records.
        on : DecisionProblem or Adjacency, optional
            The problem of a `Policy`; the neighbours of an array, by default any two records.
        record : int, optional
            The number of a record that shares with the patient's, on this day, all that is public: only what is
            revealed within that public class counts. By default the largest loss of all classes does, since the
            patient may be in another one on another day.

        Raises
        ------
        ValueError
            If it reveals more than is left, or for a record that there is not. Then nothing is counted, and nothing
            may be drawn.
        ClaimError
            If a policy reveals more than it claims.

        Examples
        --------
        >>> budget = PrivacyBudget(2.0)
        >>> round(budget.spend([[0.75, 0.25], [0.25, 0.75]]), 3), round(budget.left(), 3)
        (1.099, 0.901)

        Of four records in two public classes only the first two get different treatments. To the others it shows
        nothing:

        >>> from policies import Sensitive
        >>> table, hidden = [[0.6, 0.4], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5]], Sensitive((2, 2), (1,))
        >>> [round(budget.spend(table, hidden, record=record), 3) for record in (1, 2)]
        [0.405, 0.0]
        """
        if isinstance(used, Policy):
            if not isinstance(on, DecisionProblem):
                raise ValueError(f"spend needs the problem that {used.name} decides: spend(policy, problem).")
            policy, used = used, used.fit(on)
            if fault := claim_fault(policy, used.epsilon_spent):
                raise ClaimError(fault)
        if isinstance(used, FittedPolicy):
            table, adjacency, loss = used.probabilities, used.problem.adjacency, used.epsilon_spent
        else:
            table = probability_table(used, "probabilities")
            adjacency = require_adjacency(AnyRecord() if on is None else on)
            loss = privacy_loss(table, adjacency).epsilon
        if record is not None:
            if not is_whole(record) or not 0 <= record < len(table):
                raise ValueError(f"record must be a whole number from 0 to {len(table) - 1}, got record={record!r}.")
            classes = public_classes(adjacency, len(table))
            rows = np.flatnonzero(classes == classes[record])
            loss = min(loss, privacy_loss(table[rows], listed_among(rows, adjacency, len(table))).epsilon)
        if compose([*self._spent, loss]) * SAFE > self.epsilon:
            raise ValueError(
                f"this decision reveals {loss:.6g}, and {self.left():.6g} of the total of {self.epsilon:g} is left."
            )
        self._spent.append(loss)
        return loss

    def left(self) -> float:
        """What further decisions on the patient may reveal together, after all that was spent."""
        return max(0.0, self.epsilon - compose(self._spent)) if self._spent else self.epsilon

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
        totals = [compose(losses), distribution_epsilon([bounded_use(loss).profile for loss in losses], self.delta)]
        return min(totals + ([converted_epsilon(compose(parts), self.delta)] if parts else []))

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
            record does not change. They are read one after the other, once for each epsilon that is tried. So a patient
            is in one public class on all days of a list of `DecisionProblem`, and of a process that never leads from
            one to another: the days are added within each class, and the largest sum counts. Else the largest use of
            each day does (a list of `MaskedProblem`, and public masks that change).

        Returns
        -------
        DailyBudget
            With the same epsilon on every day, at least epsilon / H. It is above that only if the tables themselves,
            at the epsilon returned, stay within the budget.

        Raises
        ------
        ValueError
            For no days at all, what is no policy or no problem, or a policy that cannot be used on a problem.
        ClaimError
            For a policy whose own table reveals more on some day than it claims.

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
        if not isinstance(policy, Policy):
            raise ValueError(f"policy must be one such as make_policy('exponential'), got {policy!r}.")
        if isinstance(problems, Sequence):
            decided: Sequence[DecisionProblem | MaskedProblem] = problems
            stay = _known_classes(problems)
        elif hasattr(problems, "continuation") and problems.horizon is not None:
            # Those under optimal continuation.
            decided, stay = optimal_course(problems).decisions(policy), len(problems.by_class()) > 1
        else:
            raise ValueError(
                "problems must be the decisions of the days, or a process with a horizon such as "
                f"TabularMDP(..., horizon=30), got {problems!r}."
            )
        first = DailyBudget(policy, self, decided, stay)
        least, even = self.daily_epsilon(first.days), self.epsilon / first.days
        if not policy.uses_epsilon:
            spend(policy, decided, [policy.epsilon] * first.days)  # finds a broken claim
            return first
        if even == math.inf:
            return replace(first, policy=replace(policy, epsilon=even))
        tried: dict[float, DailyBudget] = {}

        def found(epsilon: float) -> DailyBudget:
            if epsilon not in tried:
                tried[epsilon] = replace(first, policy=replace(policy, epsilon=epsilon))
            return tried[epsilon]

        def share(epsilon: float) -> float:
            uses = found(epsilon).uses
            # Days that are promised an equal part of the budget stay within it, whatever the last digits of the sum.
            largest = max(map(summed_loss, of_each_class(uses)))
            within = epsilon <= even and largest <= self.epsilon / SAFE
            return min(self.share(uses), 1.0) if within else self.share(uses)

        # An equal part of the budget is affordable without a look, unless the policy guarantees less privacy than that.
        safe = even if replace(policy, epsilon=even).claimed <= even else 0.0
        return found(max(safe, most_affordable(share, least, safe)))

    def share(self, days: Sequence[Sequence[Use]]) -> float:
        """What share of the budget days spend, at most 1 if and only if they stay within it in each public class.

        Beyond 1 it is a guess: of the ways to add up, the one that asks for least.

        Parameters
        ----------
        days : sequence of sequence of Use
            What each day reveals within each class; a single one is that of all.
        """
        return max(map(self._share, of_each_class(days)))

    def _share(self, uses: Sequence[Use]) -> float:
        """The share of one class."""
        shares = [_ratio(summed_loss(uses), self.epsilon)]
        if self.delta > 0 and shares[0] > 0:
            shares.append(math.sqrt(_ratio(compose(use.rho for use in uses), self.rho)))
            if self.epsilon > 0:
                shares.append(distribution_epsilon([use.profile for use in uses], self.delta) / self.epsilon)
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
        return bounded_use(each, eta_per_epsilon * each).rho <= rho

    def within_distributions(each: float) -> bool:
        return distribution_epsilon([bounded_use(each, eta_per_epsilon * each).profile] * days, delta) <= epsilon

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

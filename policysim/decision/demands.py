"""The smallest epsilon at which a policy of one decision is good enough: what is demanded, and the search for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from envs.toml_reader import FINITE, is_number, number_wanted
from policies.arrays import ROUNDING, FloatArray, rounded_sum
from policies.catalogue import is_built_in
from policies.optimal.bounds import InfeasibleError, bounds_on
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.numbers import DIGITS, enough, not_above
from policysim.progress import SILENT, Progress
from policysim.study.checks import BROKEN, checked_tables
from policysim.study.gain import best_fixed_loss, by_lot_loss, gain_of, weighted_regrets
from policysim.study.sweep import evaluate_each, evaluated_on
from policysim.words import ALL, KEEP

# The margin where no policy keeps the bounds: any number below 0, and finite.
INFEASIBLE = -1.0
# Between which numbers each demand must be.
RANGES = {"max_loss": (0.0, FINITE), "keep": (-FINITE, 1.0), "max_extra_lead": (-FINITE, FINITE)}
# A bound on an outcome that is exceeded by no more is kept, as a share of the largest outcome: what rounding and the
# programme that finds the optimum within bounds leave.
KEPT = 1e-11


@dataclass(frozen=True)
class Demand:
    """What a policy must reach: limits are rounded up, so that what is met but for the rounding of sums is met.

    Attributes
    ----------
    loss : float
        The most expected utility that may be lost against the best action for each record; inf if none is demanded.
        It never depends on a constant that is added to a record's utilities, however large.
    at_most : mapping of str to float
        The most of an outcome that is expected per patient, as it was asked for.
    kept : mapping of str to float
        The same with `KEPT`: what is no more than this counts as kept.
    value : float
        The least expected utility that `loss` leaves, V(greedy) - loss, as a float: -inf if none is demanded.
    """

    loss: float
    at_most: Mapping[str, float]
    kept: Mapping[str, float]
    value: float

    def margin(self, problem: DecisionProblem, probabilities: FloatArray) -> float:
        """At least 0 if and only if a policy meets the demand; p(a|x) is (n_records, n_actions)."""
        spare = [most - problem.expectation(name, probabilities) for name, most in self.kept.items()]
        gained = self.loss - expected_loss(problem, probabilities)
        # What is spare of bounds that are kept does not matter: of the best within them, it is 0.
        return gained if gained < math.inf and all(left >= 0 for left in spare) else min([gained, *spare])

    def within(self, policy: Policy, problem: DecisionProblem) -> Policy:
        """The policy to be searched: an optimum within these bounds, and within its own; any other as it is."""
        if not self.at_most:
            return policy
        if isinstance(policy, OptimalSafe):
            own = policy.limits_on(problem) or {}
            stated = {bound.name: bound.limit for bound in bounds_on(problem, own, None)}
            tighter = {name: most for name, most in self.at_most.items() if most < stated.get(name, math.inf)}
            return replace(policy, at_most={**own, **tighter})
        return Optimal(policy.epsilon, at_most=dict(self.at_most)) if policy == Optimal(policy.epsilon) else policy


def expected_loss(problem: DecisionProblem, probabilities: FloatArray) -> float:
    """V(greedy) - V of a policy, summed from what each record loses; p(a|x) is (n_records, n_actions)."""
    # np.sum adds pairwise: its error stays far below ROUNDING at any number of records.
    columns = zip(weighted_regrets(problem), probabilities.T, strict=True)
    return sum(float(np.sum(weighted * chosen)) for weighted, chosen in columns)


def make_demand(
    problem: DecisionProblem,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_lead: float | None = None,
    at_most: Mapping[str, float | str] | None = None,
) -> Demand:
    """The demand that all given limits make together; the same parameters as `policysim.smallest_epsilon`."""
    limits = {"max_loss": max_loss, "keep": keep, "max_extra_lead": max_extra_lead}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given and not at_most:
        raise ValueError(f"at least one demand is needed: {', '.join(limits)} or at_most.")
    for name, limit in given.items():
        if not is_number(limit, *RANGES[name]):
            raise ValueError(f"{name} must be {number_wanted(*RANGES[name])}, got {name}={limit!r}.")
    allowed = []
    most = {bound.name: bound.limit for bound in bounds_on(problem, at_most, None)}
    if keep is not None:
        allowed.append((1 - Fraction(keep)) * best_fixed_loss(problem))
    if max_loss is not None:
        allowed.append(Fraction(max_loss) * by_lot_loss(problem))
    if max_extra_lead is not None:
        lead = problem.lead
        if lead is None:
            raise ValueError("max_extra_lead needs a problem with an outcome that leads.")
        for_all = rounded_sum(problem.prior * problem.of_best_fixed(problem.outcomes[lead]))
        most[lead] = min(for_all + max_extra_lead, most.get(lead, math.inf))
    # Larger by ROUNDING, which is more than was lost when it was computed.
    loss = float(min(allowed) + Fraction(ROUNDING) * abs(min(allowed))) if allowed else math.inf
    greedy = float(problem.prior @ problem.utilities.max(axis=1))
    kept = {name: limit + KEPT * float(np.abs(problem.outcomes[name]).max()) for name, limit in most.items()}
    return Demand(loss, most, kept, greedy - loss)


def demand_curve(problem: DecisionProblem, demand: Demand, policy: Policy) -> Curve:
    """By how much a policy meets a demand, over epsilon; looked at on a grid where that may fall."""
    template = demand.within(policy, problem)
    on = evaluated_on(template, problem)

    def margin(epsilon: float) -> float:
        try:
            return demand.margin(on, replace(template, epsilon=epsilon).probabilities(on))
        except InfeasibleError:
            return INFEASIBLE

    curve = Curve(template.name, margin)
    # Outcomes may rise again at a larger epsilon, but under the optimum within the bounds: more is allowed there.
    if demand.at_most and template != demand.within(Optimal(template.epsilon), problem):
        curve.scan()
    return curve


def least_epsilon(problem: DecisionProblem, demand: Demand, policy: Policy) -> float:
    """The least epsilon at which a policy meets a demand, to 1e-4; its claim was checked there (`checked_tables`)."""
    found = demand_curve(problem, demand, policy).first_reaching(0.0)
    template = demand.within(policy, problem)
    checked_tables(replace(template, epsilon=found), evaluated_on(template, problem))
    return found


def _holds(problem: DecisionProblem, policy: Policy, epsilon: float) -> bool:
    """Whether a policy is what it says of itself at an epsilon; taken for granted of what is built in."""
    try:
        return is_built_in(policy) or bool(checked_tables(replace(policy, epsilon=epsilon), problem))
    except BROKEN:
        return False


def value_curve(problem: DecisionProblem, template: Policy, comparison: pd.DataFrame) -> Curve:
    """What a policy that spends epsilon is worth over epsilon; what a comparison knows is not computed again.

    The least epsilon at which it is worth at least v is `.least_reaching(v)`.
    """
    rows = comparison[(comparison["group"] == ALL) & (comparison["policy"] == template.name)]
    on = evaluated_on(template, problem)

    def value(epsilon: float) -> float:
        try:
            return on.value(replace(template, epsilon=epsilon).probabilities(on))
        except InfeasibleError:
            # A policy that there is not is worth no more than the worst treatment for each.
            return float(problem.prior @ problem.utilities.min(axis=1))

    return Curve(template.name, value, dict(zip(rows["epsilon"], rows["value"], strict=True)))


def least_epsilons(
    problem: DecisionProblem, policies: Sequence[Policy], comparison: pd.DataFrame, progress: Progress = SILENT
) -> pd.DataFrame:
    """From which epsilon each policy is worth more than one treatment for all, and keeps `KEEP` of the benefit.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    policies : sequence of Policy
        Those that spend epsilon and can be used on it; their epsilon is replaced.
    comparison : DataFrame
        Of them, at some epsilons: what is known there is not computed again.
    progress : Progress, optional
        Reports each policy.

    Returns
    -------
    DataFrame
        policy, better_from, keeps_from: beyond rounding (`Gain.beaten_from`), the least of two digits. 0 where every
        epsilon above 0 will do, inf where none reaches it; keeps_from is NaN where shares of the benefit say little
        (`Gain.has_shares`), and both where a policy that is not built in breaks its claim there.
    """
    gain = gain_of(problem)
    enough = make_demand(problem, keep=KEEP).value if gain.has_shares else math.nan

    def search(template: Policy) -> tuple[float, float]:
        curve = value_curve(problem, template, comparison)
        found = curve.least_reaching(gain.beaten_from), curve.least_reaching(enough)
        broken = [epsilon for epsilon in found if 0 < epsilon < math.inf and not _holds(problem, template, epsilon)]
        return (math.nan, math.nan) if broken else found

    # The longest first: those that are computed on all records.
    longest = sorted(policies, key=lambda template: -evaluated_on(template, problem).n_records)
    found = evaluate_each(longest, search, progress)
    rows = [(policy.name, *found[policy]) for policy in policies]
    return pd.DataFrame(rows, columns=["policy", "better_from", "keeps_from"])


# Relative accuracy of the epsilon that is found, and the range that is searched: calibration by sensitivity can need
# thousands where the utilities have a long tail.
TOLERANCE = 1e-4
LOWEST, HIGHEST = 1e-6, 1e9
STEP = 4.0
# Where outcomes are limited, every epsilon from here to there, in such ratios, is looked at first.
SCAN_FROM, SCAN_TO, SCANNED = 0.01, 200.0, 1.15
# A decimal of so many digits, and any of fewer, is the only one of its length that is the same float.
EXACT_DIGITS = 15


class UnreachableError(ValueError):
    """No epsilon makes the policy good enough."""


def fewest_digits(epsilon: float, holds: Callable[[float], bool]) -> float:
    """An epsilon that was found, rounded up to the fewest digits, two or more, at which what is asked for holds.

    Parameters
    ----------
    epsilon : float
        The least that was found, to `TOLERANCE`, which is four digits: a little less may hold, too.
    holds : callable
        From an epsilon to whether everything that is asked for holds there.

    Returns
    -------
    float
        What `policysim.numbers.decimal` prints exactly; `epsilon` itself where no decimal near it holds.
    """
    for digits in range(DIGITS, EXACT_DIGITS + 1):
        for decimal in sorted({enough(epsilon * (1 - TOLERANCE), digits), enough(epsilon, digits)}):
            if holds(decimal):
                return decimal
    return epsilon


@dataclass(frozen=True, eq=False)
class Curve:
    """Something that rises with epsilon; no epsilon is evaluated twice.

    Attributes
    ----------
    name : str
        What it is of, for messages.
    measure : callable
        From an epsilon to the number that should be large.
    known : mapping of float to float
        The measure at some epsilons, from an earlier evaluation.
    """

    name: str
    measure: Callable[[float], float]
    known: Mapping[float, float] = field(default_factory=dict)

    @cached_property
    def _measured(self) -> dict[float, float]:
        """What is known, and whatever is evaluated."""
        return dict(self.known)

    def __call__(self, epsilon: float) -> float:
        """The measure at an epsilon."""
        if epsilon not in self._measured:
            self._measured[epsilon] = self.measure(epsilon)
        return self._measured[epsilon]

    def first_reaching(self, needed: float, *, near: float = 1.0) -> float:
        """The least epsilon, to 1e-4 relative and never below it, with a measure >= needed.

        UnreachableError if there is none.
        """
        return self.between(needed, near=near)[1]

    def least_reaching(self, needed: float) -> float:
        """The least decimal of two digits with a measure >= needed, of a measure that rises.

        0 where every epsilon above 0 will do; inf where none does, and NaN where what is needed is. Where the measure
        falls again a decimal may have more digits (`fewest_digits`).
        """
        if not math.isfinite(needed):
            return needed
        try:
            low, high = self._bracket(needed, 1.0)
        except UnreachableError:
            return math.inf
        # The search ends here where every epsilon above 0 will do.
        if high <= STEP * LOWEST:
            return 0.0
        high = fewest_digits(high, lambda decimal: self(decimal) >= needed)
        while True:
            middle = math.sqrt(low * high)
            between = [at for at in (enough(middle, DIGITS), not_above(middle, DIGITS)) if low < at < high]
            if not between:
                return high
            low, high = (low, between[0]) if self(between[0]) >= needed else (between[0], high)

    def scan(self) -> None:
        """Evaluate a grid of epsilons: a measure that may fall as epsilon rises is not to be searched by steps alone.

        What lies between two neighbours of the grid, a ratio of `SCANNED` apart, may be missed.
        """
        for step in range(1 + round(math.log(SCAN_TO / SCAN_FROM) / math.log(SCANNED))):
            self(SCAN_FROM * SCANNED**step)

    def between(self, needed: float, *, near: float = 1.0) -> tuple[float, float]:
        """Two epsilons at most 1e-4 apart, relative: the first does not reach what is needed, the second does.

        (0, 0) if every epsilon does. UnreachableError if none does. Where no epsilon is known, the search begins at
        `near`, if it is positive and finite. A measure that wavers by more than its slope may leave them further apart.
        """
        low, high = self._bracket(needed, near)
        if low < LOWEST:
            return low, high
        # exp(log(low)) may differ from low in the last digit, where a measure that is flat may have crossed already.
        first, last = math.log(low), math.log(high)
        ends = {first: low, last: high}
        root = brentq(lambda log: self(ends.get(log, math.exp(log))) - needed, first, last, xtol=TOLERANCE / 4)
        # The root is known to within TOLERANCE / 4: step to the sides. A measure that wavers leaves the bracket.
        for side in (-TOLERANCE / 2, 0.0, TOLERANCE / 2):
            epsilon = math.exp(root + side)
            if self(epsilon) >= needed:
                high = min(high, epsilon)
                break
            low = max(low, epsilon)
        return low, high

    def _bracket(self, needed: float, near: float) -> tuple[float, float]:
        """Two of the epsilons that are known, or of steps from `near`, between which the demand begins to be met."""
        if self(0.0) >= needed:
            return 0.0, 0.0
        finite = [epsilon for epsilon in self._measured if 0 < epsilon < math.inf]
        high = min((epsilon for epsilon in finite if self(epsilon) >= needed), default=math.nan)
        low = max((epsilon for epsilon in finite if not epsilon >= high and self(epsilon) < needed), default=math.nan)
        if math.isnan(high):
            high = (near if 0 < near < HIGHEST else 1.0) if math.isnan(low) else low * STEP
            while self(high) < needed:
                if high > HIGHEST:
                    raise UnreachableError(f"{self.name} does not reach the demand at any epsilon up to {HIGHEST:g}.")
                low, high = high, high * STEP
        if math.isnan(low):
            low = high / STEP
            while self(low) >= needed and low >= LOWEST:
                low, high = low / STEP, low
        return (low if self(low) < needed else 0.0), high

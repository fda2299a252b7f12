"""The smallest epsilon at which a policy is good enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from policies.arrays import ROUNDING, FloatArray, rounded_sum
from policies.catalogue import make_policy
from policies.optimal.bounds import InfeasibleError, bounds_on
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.question.formats import DIGITS, enough
from policysim.study.sweep import best_fixed_loss, by_lot_loss, evaluated_on, weighted_regrets

# Relative accuracy of the epsilon that is found, and the range that is searched: calibration by sensitivity can need
# thousands where the utilities have a long tail.
TOLERANCE = 1e-4
LOWEST, HIGHEST = 1e-6, 1e9
STEP = 4.0
# The margin where no policy keeps the bounds: any number below 0, and finite.
INFEASIBLE = -1.0
# A bound on an outcome that is exceeded by no more is kept, as a share of the largest outcome: what rounding and the
# programme that finds the optimum within bounds leave.
KEPT = 1e-11
# Where outcomes are limited, every epsilon from here to there, in such ratios, is looked at first.
SCAN_FROM, SCAN_TO, SCANNED = 0.01, 200.0, 1.15
# A decimal of so many digits, and any of fewer, is the only one of its length that is the same float.
EXACT_DIGITS = 15


class UnreachableError(ValueError):
    """No epsilon makes the policy good enough."""


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
        spare = [most - expected_outcome(problem, probabilities, name) for name, most in self.kept.items()]
        gained = self.loss - expected_loss(problem, probabilities)
        # What is spare of bounds that are kept does not matter: of the best within them, it is 0.
        return gained if gained < math.inf and all(left >= 0 for left in spare) else min([gained, *spare])

    def within(self, policy: Policy) -> Policy:
        """The policy to be searched: the optimum within these bounds for the optimum, any other as it is."""
        nothing_else = self.at_most and policy == Optimal(policy.epsilon)
        return Optimal(policy.epsilon, at_most=dict(self.at_most)) if nothing_else else policy

    def may_fall(self, policy: Policy) -> bool:
        """Whether a policy that meets the demand may miss it at a larger epsilon: outcomes rise and fall with it.

        What is searched as the optimum within the bounds never does: a larger epsilon allows more.
        """
        return bool(self.at_most) and policy != self.within(Optimal(policy.epsilon))


def expected_loss(problem: DecisionProblem, probabilities: FloatArray) -> float:
    """V(greedy) - V of a policy, summed from what each record loses; p(a|x) is (n_records, n_actions)."""
    # np.sum adds pairwise: its error stays far below ROUNDING at any number of records.
    columns = zip(weighted_regrets(problem), probabilities.T, strict=True)
    return sum(float(np.sum(weighted * chosen)) for weighted, chosen in columns)


def expected_deaths(problem: DecisionProblem, probabilities: FloatArray) -> float:
    """Deaths per patient under a policy; p(a|x) is (n_records, n_actions)."""
    return expected_outcome(problem, probabilities, "deaths")


def expected_outcome(problem: DecisionProblem, probabilities: FloatArray, name: str) -> float:
    """An outcome per patient under a policy; p(a|x) is (n_records, n_actions)."""
    columns = zip(problem.outcomes[name].T, probabilities.T, strict=True)
    return sum(float(np.dot(problem.prior, outcome * chosen)) for outcome, chosen in columns)


def make_demand(
    problem: DecisionProblem,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_deaths: float | None = None,
    at_most: Mapping[str, float | str] | None = None,
) -> Demand:
    """The demand that all given limits make together; the same parameters as `smallest_epsilon`."""
    limits = {"max_loss": max_loss, "keep": keep, "max_extra_deaths": max_extra_deaths}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given and not at_most:
        raise ValueError(f"at least one demand is needed: {', '.join(limits)} or at_most.")
    for name, limit in given.items():
        if not math.isfinite(limit):
            raise ValueError(f"{name} must be a finite number, got {name}={limit!r}.")
    allowed = []
    most = {bound.name: bound.limit for bound in bounds_on(problem, at_most, None)}
    if keep is not None:
        allowed.append((1 - Fraction(keep)) * best_fixed_loss(problem))
    if max_loss is not None:
        allowed.append(Fraction(max_loss) * by_lot_loss(problem))
    if max_extra_deaths is not None:
        if "deaths" not in problem.outcomes:
            raise ValueError("max_extra_deaths needs a problem whose outcomes have deaths.")
        best = np.take_along_axis(problem.outcomes["deaths"], problem.best_actions[:, None], axis=1)[:, 0]
        deaths = rounded_sum(problem.prior * best) + max_extra_deaths
        most["deaths"] = min(deaths, most.get("deaths", math.inf))
    loss = _with_rounding(min(allowed)) if allowed else math.inf
    greedy = float(problem.prior @ problem.utilities.max(axis=1))
    kept = {name: limit + KEPT * float(np.abs(problem.outcomes[name]).max()) for name, limit in most.items()}
    return Demand(loss, most, kept, greedy - loss)


def _with_rounding(limit: Fraction) -> float:
    """A limit made larger by ROUNDING, which is more than was lost when it was computed."""
    return float(limit + Fraction(ROUNDING) * abs(limit))


def smallest_epsilon(
    problem: DecisionProblem,
    policy: str | Policy,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_deaths: float | None = None,
    at_most: Mapping[str, float | str] | None = None,
) -> float:
    """Find the least epsilon at which a policy is good enough, to 1e-4 relative and never below what is needed.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    policy : str or Policy
        A name from the catalogue, or a policy whose epsilon is replaced.
    max_loss : float, optional
        The largest normalised loss allowed: (V(greedy) - V) / (V(greedy) - V(uniform)) <= max_loss.
    keep : float, optional
        The least benefit kept: (V - V(best-fixed)) / (V(greedy) - V(best-fixed)) >= keep.
    max_extra_deaths : float, optional
        The most deaths per patient beyond those of greedy; needs a problem with the outcome "deaths".
    at_most : mapping of str to float or "one for all", optional
        The most of an outcome of the problem that is expected per patient; "one for all" is what the best single action
        for all leads to. At least one of the four is required, and all that are given must be met.

    Returns
    -------
    float
        0 if every epsilon will do.

    Raises
    ------
    UnreachableError
        A ValueError: no epsilon up to 1e9 will do.
    ValueError
        For a demand that is not a finite number, or none given.

    Notes
    -----
    The value of each policy of the catalogue does not fall as epsilon rises. Deaths may rise: a policy that is worth
    more can cost more lives. With `max_extra_deaths` or `at_most` the demand is met at the epsilon found, and not just
    below it; that it is met nowhere below is known for a grid of epsilons in ratios of 1.15 only. "optimal" is searched
    as the optimum within these bounds, for which it is known of every epsilon.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> round(smallest_epsilon(problem, "randomized-response", keep=0.8), 3)  # log 9
    2.197
    """
    demand = make_demand(problem, max_loss=max_loss, keep=keep, max_extra_deaths=max_extra_deaths, at_most=at_most)
    return demand_curve(problem, demand, make_policy(policy) if isinstance(policy, str) else policy).first_reaching(0.0)


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
        What `policysim.question.words.decimal` prints exactly; `epsilon` itself where no decimal near it holds.
    """
    for digits in range(DIGITS, EXACT_DIGITS + 1):
        for decimal in sorted({enough(epsilon * (1 - TOLERANCE), digits), enough(epsilon, digits)}):
            if holds(decimal):
                return decimal
    return epsilon


def demand_curve(problem: DecisionProblem, demand: Demand, policy: Policy) -> Curve:
    """By how much a policy meets a demand, over epsilon; looked at on a grid where that may fall."""
    template = demand.within(policy)
    on = evaluated_on(template, problem)

    def margin(epsilon: float) -> float:
        try:
            return demand.margin(on, replace(template, epsilon=epsilon).probabilities(on))
        except InfeasibleError:
            return INFEASIBLE

    curve = Curve(template.name, margin)
    if demand.may_fall(template):
        curve.scan()
    return curve


class Curve:
    """Something that rises with epsilon; no epsilon is evaluated twice.

    Parameters
    ----------
    name : str
        What it is of, for messages.
    measure : callable
        From an epsilon to the number that should be large.
    known : mapping of float to float, optional
        The measure at some epsilons, from an earlier evaluation.
    """

    def __init__(
        self, name: str, measure: Callable[[float], float], known: Mapping[float, float] | None = None
    ) -> None:
        self._name = name
        self._measure = measure
        self._known = dict(known or {})

    def __call__(self, epsilon: float) -> float:
        """The measure at an epsilon."""
        if epsilon not in self._known:
            self._known[epsilon] = self._measure(epsilon)
        return self._known[epsilon]

    def first_reaching(self, needed: float, *, near: float = 1.0) -> float:
        """The least epsilon, to 1e-4 relative and never below it, with a measure >= needed.

        UnreachableError if there is none.
        """
        return self.between(needed, near=near)[1]

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
        if self(0.0) >= needed:
            return 0.0, 0.0
        low, high = self._bracket(needed, near if 0 < near < HIGHEST else 1.0)
        if low < LOWEST:
            return (low if self(low) < needed else 0.0), high
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
        """Two epsilons between which the demand begins to be met, found among the known or by steps from `near`."""
        finite = [epsilon for epsilon in self._known if 0 < epsilon < math.inf]
        high = min((epsilon for epsilon in finite if self(epsilon) >= needed), default=math.nan)
        low = max((epsilon for epsilon in finite if not epsilon >= high and self(epsilon) < needed), default=math.nan)
        if math.isnan(high):
            high = near if math.isnan(low) else low * STEP
            while self(high) < needed:
                if high > HIGHEST:
                    raise UnreachableError(f"{self._name} does not reach the demand at any epsilon up to {HIGHEST:g}.")
                low, high = high, high * STEP
        if math.isnan(low):
            low = high / STEP
            while self(low) >= needed and low >= LOWEST:
                low, high = low / STEP, low
        return low, high

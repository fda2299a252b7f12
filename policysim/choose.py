"""Which epsilon, which mechanism: the least epsilon of each policy that meets what is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from policies.arrays import FloatArray
from policies.catalogue import make_policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.limit import Limit
from policysim.search import Curve, Demand, UnreachableError, expected_deaths, make_demand
from policysim.sweep import N_THREADS, checked_tables


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    Attributes
    ----------
    keep, max_loss : float or None
        Shares, as in `smallest_epsilon`.
    max_extra_deaths : float or None
        Per patient.
    max_guess : float or None
        The most often, in [1/2, 1], that the better guess between two equally likely neighbours may be right.
    """

    keep: float | None = None
    max_loss: float | None = None
    max_extra_deaths: float | None = None
    max_guess: float | None = None

    @property
    def max_epsilon(self) -> float:
        """The epsilon at which the better guess is right `max_guess` of the time: e^eps / (1 + e^eps)."""
        if self.max_guess is None or self.max_guess >= 1:
            return math.inf
        return math.log(self.max_guess / (1 - self.max_guess))

    def demand(self, problem: DecisionProblem) -> Demand:
        """The demand on value and deaths."""
        return make_demand(problem, keep=self.keep, max_loss=self.max_loss, max_extra_deaths=self.max_extra_deaths)


@dataclass(frozen=True)
class Choice:
    """One policy at the least epsilon that meets the demand.

    `epsilon` is inf, and the rest NaN, where no epsilon does; `allowed` says whether the wished limit on guessing
    allows that epsilon.
    """

    policy: str
    epsilon: float
    benefit_kept: float
    extra_deaths: float
    right_guesses: float
    allowed: bool


@dataclass(frozen=True)
class Choices:
    """The answer to a wish.

    Attributes
    ----------
    wish : Wish
        What was asked for.
    rows : list of Choice
        The policy that needs least first.
    one_for_all : Choice or None
        The best single treatment for all, if that meets the wish already: it costs no privacy, so nothing else is
        to be chosen.
    limit : float
        No mechanism meets the demand at a smaller epsilon than this; inf if none does at any.
    certificate : dict or None
        Where no mechanism can: the proof, from the dual of the linear programme.
    """

    wish: Wish
    rows: list[Choice]
    one_for_all: Choice | None
    limit: float
    certificate: dict[str, Any] | None

    @property
    def possible(self) -> bool:
        """Whether some mechanism could do what is asked for."""
        return self.one_for_all is not None or (self.limit <= self.wish.max_epsilon and self.limit < math.inf)

    @property
    def least(self) -> Choice | None:
        """The policy that needs the least epsilon, if any is allowed; one treatment for all needs none."""
        return self.one_for_all or next((row for row in self.rows if row.allowed), None)


def choose(
    problem: DecisionProblem, wish: Wish, policies: list[str], advance: Callable[[], object] = lambda: None
) -> Choices:
    """Find what each policy needs.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided; with the outcome "deaths" if the wish limits them.
    wish : Wish
        What is asked for.
    policies : list of str
        Names from the catalogue.
    advance : callable, optional
        Called after each policy and after the limit.

    Raises
    ------
    ValueError
        For a demand that is no number, or none.
    ClaimError
        For a policy of another package whose exact privacy loss, at the epsilon that was found, exceeds its claim.
    """
    demand = wish.demand(problem)
    _ = problem.sensitivity, problem.best_actions  # computed once, before the threads share them

    def row(name: str) -> Choice:
        choice = _choice(problem, demand, name, wish.max_epsilon)
        advance()
        return choice

    with ThreadPoolExecutor(N_THREADS) as pool:
        rows = sorted(pool.map(row, policies), key=lambda choice: choice.epsilon)
    limit = Limit(problem, demand)
    least = limit.smallest_epsilon()
    advance()
    fixed = BestFixed().probabilities(problem)
    one_for_all = _row(problem, BestFixed.name, fixed, 0.0) if demand.margin(problem, fixed) >= 0 else None
    impossible = one_for_all is None and wish.max_epsilon < least
    certificate = limit.certificate(wish.max_epsilon) if impossible else None
    return Choices(wish, rows, one_for_all, least, certificate)


def number_of_steps(policies: list[str]) -> int:
    """How often `choose` will call `advance`."""
    return len(policies) + 1


def _choice(problem: DecisionProblem, demand: Demand, name: str, max_epsilon: float) -> Choice:
    def table_at(epsilon: float) -> FloatArray:
        return make_policy(name, epsilon=epsilon).probabilities(problem)

    try:
        epsilon = Curve(name, lambda at: demand.margin(problem, table_at(at))).first_reaching(0.0)
    except UnreachableError:
        return Choice(name, math.inf, math.nan, math.nan, math.nan, allowed=False)
    _, table = checked_tables(make_policy(name, epsilon=epsilon), problem)
    return _row(problem, name, table, epsilon, max_epsilon)


def _row(
    problem: DecisionProblem, name: str, table: FloatArray, epsilon: float, max_epsilon: float = math.inf
) -> Choice:
    """What a table of probabilities, which needs that epsilon, keeps and costs."""
    best = Greedy().probabilities(problem)
    fixed = problem.value(BestFixed().probabilities(problem))
    gain = problem.value(best) - fixed
    return Choice(
        policy=name,
        epsilon=epsilon,
        benefit_kept=(problem.value(table) - fixed) / gain if gain > 0 else math.nan,
        extra_deaths=(
            expected_deaths(problem, table) - expected_deaths(problem, best)
            if "deaths" in problem.outcomes
            else math.nan
        ),
        right_guesses=1 / (1 + math.exp(-epsilon)),
        allowed=epsilon <= max_epsilon,
    )

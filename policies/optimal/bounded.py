"""The epsilon-private policy of highest value within bounds on expected outcomes and on shares of actions.

By Lagrange: at the right multipliers mu the optimum of the utilities u - mu . outcome (for a share, minus mu from the
column of its action), or a mixture of several optima at the same mu, is the best within the bounds, and no
epsilon-private policy within the bounds has a higher value than the optimum there plus mu . bound. A mixture of tables
of epsilon-private policies is epsilon-private. `policies.optimal.mixtures` finds the multipliers and the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray, non_negative
from policies.distinct import distinct_rows
from policies.optimal.bounds import Bound, InfeasibleError, bounds_on, outcome_of
from policies.optimal.by_class import ByClass
from policies.optimal.classes import of_groups, one_clique
from policies.optimal.mixtures import KEPT, Column, Mixture, SomeRows, best_mixture
from policies.optimal.oracles import ByOrder, ByProgramme, Constant, Groups, Row, Weighted, neighbours
from policies.optimal.penalties import Term, cost_tables, penalised_groups, powers_of_two
from policies.problem import DecisionProblem, once_per_problem

# Rounds up to six digits.
_UP = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class BoundedOptimum:
    """The best within bounds; n records, k actions.

    Attributes
    ----------
    log_probabilities : array, (n, k)
        An epsilon-private policy within the bounds.
    value : float
        Its value.
    bound : float
        No epsilon-private policy within the bounds has a higher value, up to float rounding (`bounded_certificate` is
        the proof without). It is `value` but for rounding; under one-feature, but for the solver's tolerances.
    multipliers : mapping of str to float
        By how much the value grows per unit of each bound, by the name of its outcome or action, >= 0; 0 where it does
        not bind.
    """

    log_probabilities: FloatArray
    value: float
    bound: float
    multipliers: Mapping[str, float]


def bounded_optimum(
    problem: DecisionProblem,
    epsilon: float,
    *,
    at_most: Mapping[str, float | str] | None = None,
    capacity: Mapping[str, float] | None = None,
) -> BoundedOptimum:
    """The best epsilon-private policy that keeps the bounds; where the optimum itself keeps them, that.

    Parameters
    ----------
    problem : DecisionProblem
    epsilon : float
        >= 0; at inf, the best policy of all within the bounds.
    at_most : mapping of str to float or "one for all", optional
        The largest expected value per patient of outcomes of the problem; "one for all" is that of giving everybody
        the action that is best for all.
    capacity : mapping of str to float, optional
        The largest share of patients who may get an action, in [0, 1].

    Raises
    ------
    ValueError
        For an unknown name, or a limit that is no number.
    InfeasibleError
        If no epsilon-private policy keeps the bounds.
    NotApplicableError
        Under one-feature, for more records than the whole programme takes, or for a list of records at epsilon = 0.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> harm = [[0.0, 0.1], [0.0, 0.1]]
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes={"harm": harm})
    >>> found = bounded_optimum(problem, 1.0, at_most={"harm": 0.02})
    >>> round(found.value, 6), round(problem.outcomes["harm"][0] @ np.exp(found.log_probabilities[0]), 6)
    (0.592423, 0.029242)
    """
    epsilon = non_negative(epsilon, "epsilon")
    programme = BoundedProgramme(problem, epsilon, bounds_on(problem, at_most, capacity))
    found = programme.solve()
    logs = programme.table(found)
    value = problem.value(np.exp(logs))
    return BoundedOptimum(logs, value, max(value, programme.value(found.bound)), programme.multipliers(found))


def bounded_logs(problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...]) -> FloatArray:
    """`BoundedOptimum.log_probabilities` alone."""
    programme = BoundedProgramme(problem, epsilon, bounds)
    return programme.table(programme.solve())


def require_feasible(problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...]) -> None:
    """InfeasibleError if no epsilon-private policy keeps the bounds; quick where one action for all does."""
    programme = BoundedProgramme(problem, epsilon, bounds)
    if not any((column.expectations[1:] <= programme.limits).all() for column in programme.constants):
        programme.solve()


@once_per_problem
def _penalised(problem: DecisionProblem, penalties: tuple[tuple[str, float], ...]) -> DecisionProblem:
    utilities = problem.utilities
    for name, penalty in penalties:
        utilities = utilities - penalty * outcome_of(problem, name)
    return problem.with_utilities(utilities)


def penalised(problem: DecisionProblem, penalties: Mapping[str, float]) -> DecisionProblem:
    """The problem with utilities less penalty x outcome, for each outcome named; the same for the same penalties.

    Raises
    ------
    ValueError
        For an unknown outcome.
    """
    return _penalised(problem, tuple(sorted((str(name), float(penalty)) for name, penalty in penalties.items())))


def penalised_point(problem: DecisionProblem, epsilon: float, outcome: str, penalty: float) -> tuple[float, float]:
    """The value, and the expected outcome, of the optimum for utilities less penalty x outcome; one of them, if tied.

    Where all records are neighbours, the pass over records depends on the penalty alone and is made once for all
    epsilons, and there is no table.

    Raises
    ------
    ValueError
        For an unknown outcome, an epsilon < 0 or a penalty that is not finite and >= 0.
    NotApplicableError
        Under one-feature, for more records than the whole programme takes.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> harm = [[0.0, 0.5], [0.0, 0.5]]
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes={"harm": harm})
    >>> [tuple(round(number, 4) for number in penalised_point(problem, 1.0, "harm", p)) for p in (0.0, 1e3)]
    [(0.7311, 0.25), (0.5, 0.0)]
    """
    epsilon = non_negative(epsilon, "epsilon")
    bounds = bounds_on(problem, {outcome: 0.0}, None)
    if np.isinf(non_negative(penalty, "penalty")):
        raise ValueError("penalty must be finite, got penalty=inf.")
    programme = BoundedProgramme(problem, epsilon, bounds)
    lost, harmed = programme.oracle.best(np.array([1.0, penalty]) * programme.scales)[0].expectations * programme.scales
    return programme.value(0.0) - float(lost), float(harmed) + bounds[0].limit - bounds[0].room


class BoundedProgramme:
    """The rows of the master programme: the utility lost against the best action for each, and what is bounded.

    Rows are divided by powers of two, so that prices are changed to the units of the problem and back exactly.
    """

    def __init__(self, problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...]) -> None:
        self.problem, self.epsilon, self.bounds = problem, epsilon, bounds
        partitions = neighbours(problem, epsilon)
        self._whole = len(partitions) == 1 and one_clique(partitions[0])
        self._terms: tuple[Term, ...] = (None, *(b.name if b.action is None else b.action for b in bounds))
        self._costs = cost_tables(problem, self._whole)
        self._means = [self._costs.means(term) for term in self._terms]
        spreads = powers_of_two(np.array([mean.spread for mean in self._means]))
        self.scales = np.where(spreads > 0, spreads, 1.0)
        self.limits = np.array([bound.room for bound in bounds]) / self.scales[1:]
        self.oracle: ByOrder | ByClass | ByProgramme
        rows = [
            Row(self._costs.prior, self._costs.columns(t), s) for t, s in zip(self._terms, self.scales, strict=True)
        ]
        if self._whole:
            self.oracle = ByOrder(epsilon, self._groups, self._nearby)
        elif len(partitions) == 1:
            self.oracle = ByClass(epsilon, partitions[0], self._weighted, rows)
        else:
            self.oracle = ByProgramme(problem, epsilon, self._weighted, rows)

    @cached_property
    def constants(self) -> list[Column]:
        """One action for all: private at any epsilon."""
        k, means = self.problem.n_actions, np.stack([mean.to_all for mean in self._means], axis=1) / self.scales
        return [Column(row, Constant(action, k)) for action, row in enumerate(means)]

    def solve(self) -> Mixture:
        """The best mixture within the bounds; InfeasibleError if there is none."""
        first, least = self.oracle.best(np.eye(len(self._terms))[0])
        if (first.expectations[1:] <= self.limits).all():
            # The optimum keeps the bounds: no multiplier is needed.
            return Mixture(((1.0, first),), float(first.expectations[0]), least, np.eye(len(self._terms))[0])
        margins = np.array([mean.rounding for mean in self._means[1:]]) / self.scales[1:]
        found = best_mixture(self.oracle, [*self.constants, first], self.limits, margins)
        if found is None:
            raise InfeasibleError(self._what_is_possible())
        return found

    def table(self, mixture: Mixture) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions)."""
        logs = self.oracle.table(mixture.parts, len(self._costs.prior))
        found = distinct_rows(self.problem) if self._whole else None
        return logs if found is None else of_groups(logs, found.row)

    def value(self, loss: float) -> float:
        """The value of a policy, from its first row."""
        greedy = float(self.problem.prior @ self.problem.utilities.max(axis=1))
        return greedy - float(self.scales[0]) * loss

    def multipliers(self, mixture: Mixture) -> dict[str, float]:
        """In units of utility per unit of what is bounded."""
        units = self.scales[0] / self.scales[1:]
        return dict(zip((b.name for b in self.bounds), (mixture.prices[1:] * units).tolist(), strict=True))

    def _what_is_possible(self) -> str:
        """Of each bound, the least that an epsilon-private policy can do, by itself and with the others kept."""
        which = "this bound" if len(self.bounds) == 1 else "all of these bounds"
        found = [f"{bound} (the least possible is {self._least(place)})" for place, bound in enumerate(self.bounds)]
        return f"no policy keeps {which} at epsilon={self.epsilon:g}: {', '.join(found)}."

    def _least(self, place: int) -> str:
        rows = np.array([place, *(other for other in range(len(self.bounds)) if other != place)]) + 1
        column, least = self.oracle.best(np.eye(len(self._terms))[rows[0]])
        alone = self._in_words(place, float(column.expectations[rows[0]]))
        if len(rows) == 1:
            return alone
        # As a loss it must not be negative.
        shifts = np.where(np.arange(len(rows)) == 0, min(least, float(column.expectations[rows[0]])), 0.0)
        oracle = SomeRows(self.oracle, rows, shifts, len(self._terms))
        columns = [oracle.of(known) for known in [*self.constants, column]]
        within = best_mixture(oracle, columns, self.limits[rows[1:] - 1])
        if within is None:
            return f"{alone}, and the others cannot be kept either"
        return f"{alone}, or {self._in_words(place, within.value + float(shifts[0]))} with the others kept"

    def _in_words(self, place: int, expectation: float) -> str:
        """A number that can be asked for: six digits, rounded up, and 0 where it is rounding."""
        bound, scale = self.bounds[place], float(self.scales[place + 1])
        found = bound.limit - bound.room + (expectation - KEPT) * scale
        return f"{float(_UP.create_decimal(found)):g}" if abs(found) > 2 * KEPT * scale else "0"

    def _nearby(self, prices: FloatArray) -> FloatArray:
        """Multipliers that are powers of two: the optimum at another epsilon asks for the same."""
        units = self.scales[0] / self.scales[1:]
        return np.concatenate([prices[:1], powers_of_two(prices[1:] * units) / units])

    def _priced(self, prices: FloatArray) -> tuple[tuple[Term, float], ...]:
        """The terms with their prices in the units of the problem."""
        return tuple(zip(self._terms, (prices / self.scales).tolist(), strict=True))

    def _groups(self, prices: FloatArray) -> Groups:
        priced = self._priced(prices)
        unit = priced[0][1] or max(price for _, price in priced)
        groups = penalised_groups(self.problem, tuple((term, price / unit) for term, price in priced))
        sets = None if groups.sets is None else (groups.sets[0], groups.sets[1] * unit)
        return groups._replace(worths=groups.worths / self.scales, sets=sets)

    def _weighted(self, prices: FloatArray) -> Weighted:
        priced = self._priced(prices)
        if prices[1:].any():
            return Weighted(lambda records: -self._costs.priced(priced, records), self._costs.prior, 1.0, floored=True)
        # The optimum itself, to the last bit.
        return Weighted(lambda records: self.problem.utilities.T[:, records], self._costs.prior, priced[0][1])

"""What a policy costs, term by term, and the records summed by the order of their actions at some prices of the terms.

A term is the utility lost (None), an outcome by its name, or the share of an action by its position. Utilities are
counted from the best action for each record, outcomes from the one that is best for all: what these have in common
takes no digits, and one action for all keeps its own outcomes without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from policies.arrays import ROUNDING, FloatArray
from policies.distinct import distinct_rows
from policies.optimal.classes import by_order, order_codes
from policies.optimal.oracles import Groups
from policies.problem import DecisionProblem, once_per_problem

Term: TypeAlias = str | int | None
Columns: TypeAlias = tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class CostTables:
    """The terms as tables, over all records or over the distinct rows.

    Attributes
    ----------
    utilities : array, (n, k)
        Of these rows.
    outcomes : mapping of str to array, (n, k)
    prior : array, (n,)
    fixed : int
        The action from which outcomes are counted.
    """

    utilities: FloatArray
    outcomes: dict[str, FloatArray]
    prior: FloatArray
    fixed: int
    _known: dict[Term, Columns] = field(default_factory=dict)

    def columns(self, term: Term) -> Columns:
        """The cost of each action for each record, k arrays (n,); a share costs the same for all, (1,)."""
        if term not in self._known:
            self._known[term] = tuple(self._columns(term))
        return self._known[term]

    def _columns(self, term: Term) -> list[FloatArray]:
        if isinstance(term, int):
            return [np.full(1, float(action == term)) for action in range(self.utilities.shape[1])]
        if term is None:
            best = self.utilities.max(axis=1)
            return [best - column for column in self.utilities.T]
        outcome = self.outcomes[term]
        return [column - outcome[:, self.fixed] for column in outcome.T]

    def expected(self, term: Term, probabilities: FloatArray) -> float:
        """The cost of a table of probabilities, (n, k) or (1, k) for the same row for all."""
        pairs = zip(self.columns(term), probabilities.T, strict=True)
        return sum(float(np.sum(self.prior * column * chosen)) for column, chosen in pairs)

    def priced(self, prices: tuple[tuple[Term, float], ...]) -> FloatArray:
        """The sum of the terms times their prices, (k, n)."""
        total = np.zeros(self.utilities.shape[::-1])
        for term, price in prices:
            if price:
                for action, column in enumerate(self.columns(term)):
                    total[action] += price * column
        return total

    def spread(self, term: Term) -> float:
        """What a term ranges over: of the utility, what one action for all loses."""
        columns = self.columns(term)
        if isinstance(term, int):
            return 1.0
        if term is None:
            return float(self.prior @ columns[self.fixed])
        return float(self.prior @ (np.max(columns, axis=0) - np.min(columns, axis=0)))

    def rounding(self, term: Term) -> float:
        """More than what rounding makes of the expectation of an outcome or a share."""
        if isinstance(term, int):
            return 10 * ROUNDING
        assert term is not None
        return 10 * ROUNDING * float(self.prior @ np.abs(self.outcomes[term]).max(axis=1))


@once_per_problem
def cost_tables(problem: DecisionProblem, merged: bool) -> CostTables:
    """The tables of a problem, over the distinct rows if `merged`."""
    found = distinct_rows(problem) if merged else None
    utilities, outcomes, prior = problem.utilities, dict(problem.outcomes), problem.prior
    if found is not None:
        utilities = np.asfortranarray(utilities[found.first])
        outcomes = {name: np.asfortranarray(table[found.first]) for name, table in outcomes.items()}
        prior = found.summed(prior)
    return CostTables(utilities, outcomes, prior, problem.best_fixed_action)


@once_per_problem
def penalised_groups(problem: DecisionProblem, prices: tuple[tuple[Term, float], ...]) -> Groups:
    """The distinct rows by the order of their actions at these prices; the worths are those of each term.

    At the price of utility alone the groups are those of `by_order`, in which the optimum itself is computed.
    """
    costs = cost_tables(problem, True)
    if any(price for term, price in prices if term is not None):
        utilities = -costs.priced(prices)
        codes, first = order_codes(utilities)
        columns, sets = utilities[:, None, first], None
    else:
        found, groups = distinct_rows(problem), by_order(problem)
        codes = groups.codes if found is None else groups.codes[found.first]
        columns, sets = groups.columns, (groups.sets, groups.set_weights)
    count = columns.shape[2]
    mass = np.bincount(codes, costs.prior, minlength=count)
    worths = np.empty((count, len(columns), len(prices)))
    for place, (term, _) in enumerate(prices):
        for action, column in enumerate(costs.columns(term)):
            weighted = mass * column if len(column) == 1 else np.bincount(codes, costs.prior * column, minlength=count)
            worths[:, action, place] = weighted
    return Groups(codes.astype(np.min_scalar_type(count)), columns, worths, sets)


def powers_of_two(numbers: FloatArray) -> FloatArray:
    """The power of two next to each number > 0; 0 stays 0."""
    with np.errstate(divide="ignore"):
        return np.where(numbers > 0, np.exp2(np.rint(np.log2(numbers))), 0.0)

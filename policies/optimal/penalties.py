"""What a policy costs, term by term, and the records summed by the order of their actions at some prices of the terms.

A term is the utility lost (None), an outcome by its name, or the share of an action by its position. Utilities are
counted from the best action for each record, outcomes from the one that is best for all: what these have in common
takes no digits, and one action for all keeps its own outcomes without rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from policies.arrays import ROUNDING, FloatArray, IntArray, blocks
from policies.distinct import distinct_rows
from policies.optimal.classes import by_order, order_codes
from policies.optimal.oracles import Groups
from policies.problem import DecisionProblem, once_per_problem

Term: TypeAlias = str | int | None
# The unit of utility is what there is to gain, but at least this share of what the utilities range over.
_LEAST_GAIN = 1e-6
Columns: TypeAlias = tuple[FloatArray, ...]


class Means(NamedTuple):
    """Expectations of a term.

    Attributes
    ----------
    to_all : array, (k,)
        Its cost if everybody gets the same action.
    spread : float
        What it ranges over; of the utility, what one action for all loses, but for `_LEAST_GAIN`.
    rounding : float
        More than what rounding makes of its expectation; 0 for the utility.
    """

    to_all: FloatArray
    spread: float
    rounding: float


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
    _columns_known: dict[Term, Columns] = field(default_factory=dict)
    _means: dict[Term, Means] = field(default_factory=dict)
    _tables: dict[tuple[Term, ...], FloatArray] = field(default_factory=dict)

    def columns(self, term: Term) -> Columns:
        """The cost of each action for each record, k arrays (n,); a share costs the same for all, (1,)."""
        if term not in self._columns_known:
            self._columns_known[term] = tuple(self._columns(term, slice(None)))
        return self._columns_known[term]

    def _columns(self, term: Term, records: IntArray | slice) -> Iterator[FloatArray]:
        """The same for some records, of any shape; made anew each time, so that nothing is kept."""
        if isinstance(term, int):
            yield from (np.full(1, float(action == term)) for action in range(self.utilities.shape[1]))
        elif term is None:
            own = [column[records] for column in self.utilities.T]
            best = reduce(np.maximum, own)
            yield from (best - column for column in own)
        else:
            outcome = self.outcomes[term]
            of_fixed = outcome[:, self.fixed][records]
            yield from (column[records] - of_fixed for column in outcome.T)

    def side_by_side(self, terms: tuple[Term, ...]) -> FloatArray:
        """The columns of several terms as one table, (n, k x terms), row-major: each action's terms in turn."""
        if terms not in self._tables:
            table = np.empty((len(self.prior), self.utilities.shape[1], len(terms)))
            for place, term in enumerate(terms):
                for rows in blocks(len(table)):
                    for action, column in enumerate(self._columns(term, rows)):
                        table[rows, action, place] = column
            self._tables[terms] = table.reshape(len(table), -1)
        return self._tables[terms]

    def priced(self, prices: tuple[tuple[Term, float], ...], records: IntArray | None = None) -> FloatArray:
        """The sum of the terms times their prices, (k, *shape of the records); of all, (k, n), by default."""
        shape = self.prior.shape if records is None else records.shape
        total = np.zeros((self.utilities.shape[1], *shape))
        if records is not None:
            self._add(prices, records, total)
        else:
            for rows in blocks(len(self.prior)):
                self._add(prices, rows, total[:, rows])
        return total

    def _add(self, prices: tuple[tuple[Term, float], ...], records: IntArray | slice, total: FloatArray) -> None:
        for term, price in prices:
            if price:
                for action, cost in enumerate(self._columns(term, records)):
                    total[action] += price * cost

    def means(self, term: Term) -> Means:
        """Its expectations, computed once."""
        if term not in self._means:
            self._means[term] = self._found(term)
        return self._means[term]

    def _found(self, term: Term) -> Means:
        columns = list(self._columns(term, slice(None)))
        if isinstance(term, int):
            return Means(np.array([float(column[0]) for column in columns]), 1.0, 10 * ROUNDING)
        to_all = np.array([float(np.sum(self.prior * column)) for column in columns])
        low, high = reduce(np.minimum, columns), reduce(np.maximum, columns)
        spread = float(np.sum(self.prior * (high - low)))
        if term is None:
            return Means(to_all, max(float(to_all[self.fixed]), _LEAST_GAIN * spread), 0.0)
        largest = reduce(np.maximum, map(np.abs, self.outcomes[term].T))
        return Means(to_all, spread, 10 * ROUNDING * float(self.prior @ largest))


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
        utilities = costs.priced(prices)
        np.negative(utilities, out=utilities)
        codes, members = order_codes(utilities)
        columns, sets = utilities[:, None, members], None
    else:
        found, groups = distinct_rows(problem), by_order(problem)
        codes = groups.codes if found is None else groups.codes[found.first]
        columns, sets = groups.columns, (groups.sets, groups.set_weights)
    n_actions, _, count = columns.shape
    terms = tuple(term for term, _ in prices)
    tabled = [place for place, term in enumerate(terms) if not isinstance(term, int)]
    # One pass over the rows: each is added to its group, all columns of all tables at once.
    grouping = sparse.csc_array((costs.prior, codes, np.arange(len(codes) + 1)), shape=(count, len(codes)))
    worths = np.zeros((count, n_actions, len(terms)))
    sums = np.asarray(grouping @ costs.side_by_side(tuple(terms[place] for place in tabled)))
    worths[:, :, tabled] = sums.reshape(count, n_actions, len(tabled))
    for place, term in enumerate(terms):
        if isinstance(term, int):
            worths[:, term, place] = np.bincount(codes, costs.prior, minlength=count)
    return Groups(codes.astype(np.min_scalar_type(count)), columns, worths, sets)


def powers_of_two(numbers: FloatArray) -> FloatArray:
    """The power of two next to each number > 0; 0 stays 0."""
    with np.errstate(divide="ignore"):
        return np.where(numbers > 0, np.exp2(np.rint(np.log2(numbers))), 0.0)

"""The rows of the master programme, for records that allow the same actions: what a policy costs them, term by term.

A term is the utility lost (None), an outcome by its name, or the share of an action by its position. Utilities are
counted from the best action for each record, outcomes from the one that is best for all: what these have in common
takes no digits, and one action for all keeps its own outcomes without rounding. The records are summed by the order of
their actions at some prices of the terms.

For given ceilings the best row of probabilities depends on the order of a record's actions alone, whatever the prior:
where all records are neighbours, one pass over the records serves all priors, prices and epsilons.

Where records allow different actions, each set that allows the same is a problem of its own (`Side`), with neighbours
among itself alone. What is bounded, or bad, is bounded and bad for all of them together: for given prices the best of
all private policies is the best of each set (`Joint`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from policies.arrays import ROUNDING, FloatArray, IntArray, blocks
from policies.distinct import distinct_rows
from policies.optimal.bounds import Bound, Priors
from policies.optimal.classes import by_order, of_groups, order_codes
from policies.optimal.mixtures import Column, MixtureParts, Oracle
from policies.optimal.oracles import ByClass, ByOrder, ByProgramme, Constant, CostRow, OrderGroups, Weighted, hiding_of
from policies.policy import one_hot_logs
from policies.problem import DecisionProblem, MaskClass, once_per_problem

Term: TypeAlias = str | int | None
# The unit of utility is what there is to gain, but at least this share of what the utilities range over.
_LEAST_GAIN = 1e-6
TermColumns: TypeAlias = tuple[FloatArray, ...]


class TermMeans(NamedTuple):
    """Expectations of a term.

    Attributes
    ----------
    to_all : array, (k,)
        Its cost if everybody gets the same action.
    spread : float
        What it ranges over; of the utility, what one action for all loses, but for `_LEAST_GAIN`. In the worst case
        over several priors, what there is to gain under one of them.
    rounding : float
        More than what rounding makes of its expectation; 0 for the utility, but in the worst case.
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
    outcomes: Mapping[str, FloatArray]
    prior: FloatArray
    fixed: int
    _columns_known: dict[Term, TermColumns] = field(default_factory=dict, init=False)
    _means: dict[Term, TermMeans] = field(default_factory=dict, init=False)
    _tables: dict[tuple[Term, ...], FloatArray] = field(default_factory=dict, init=False)
    _outcome_tables: dict[str, FloatArray] = field(default_factory=dict, init=False)

    def outcome(self, name: str) -> FloatArray:
        """The table of an outcome, (n, k); made once."""
        if name not in self._outcome_tables:
            self._outcome_tables[name] = self.outcomes[name]
        return self._outcome_tables[name]

    def columns(self, term: Term) -> TermColumns:
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
            outcome = self.outcome(term)
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
        parts: Sequence[tuple[IntArray | slice, FloatArray]] = (
            [(rows, total[:, rows]) for rows in blocks(len(self.prior))] if records is None else [(records, total)]
        )
        for some, sums in parts:
            for term, price in prices:
                if price:
                    for action, cost in enumerate(self._columns(term, some)):
                        sums[action] += price * cost
        return total

    def means(self, term: Term) -> TermMeans:
        """Its expectations, computed once."""
        if term in self._means:
            return self._means[term]
        columns = list(self._columns(term, slice(None)))
        if isinstance(term, int):
            found = TermMeans(np.array([float(column[0]) for column in columns]), 1.0, 10 * ROUNDING)
        else:
            to_all = np.array([float(np.sum(self.prior * column)) for column in columns])
            low, high = reduce(np.minimum, columns), reduce(np.maximum, columns)
            spread = float(np.sum(self.prior * (high - low)))
            if term is None:
                found = TermMeans(to_all, max(float(to_all[self.fixed]), _LEAST_GAIN * spread), 0.0)
            else:
                largest = reduce(np.maximum, map(np.abs, self.outcome(term).T))
                found = TermMeans(to_all, spread, 10 * ROUNDING * float(self.prior @ largest))
        self._means[term] = found
        return found

    def loss_under(self, prior: FloatArray) -> TermMeans:
        """The expectations of the utility lost under another prior of these rows, (n,)."""
        to_all = np.array([float(np.sum(prior * column)) for column in self.columns(None)])
        largest = np.abs(self.utilities).max(axis=1)
        return TermMeans(to_all, float(to_all.min()), ROUNDING * float(prior @ largest))


@once_per_problem
def cost_tables(problem: DecisionProblem, merged: bool) -> CostTables:
    """The tables of a problem, over the distinct rows if `merged`."""
    found = distinct_rows(problem) if merged else None
    utilities, outcomes, prior = problem.utilities, problem.outcomes, problem.prior
    if found is not None:
        utilities, outcomes = np.asfortranarray(utilities[found.first]), outcomes.of_records(found.first)
        prior = found.summed(prior)
    return CostTables(utilities, outcomes, prior, problem.best_fixed_action)


@once_per_problem
def penalised_groups(problem: DecisionProblem, prices: tuple[tuple[Term, float], ...]) -> OrderGroups:
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
        codes, groups = _preferences(problem), by_order(problem)
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
    return OrderGroups(codes.astype(np.min_scalar_type(count)), columns, worths, sets)


def _preferences(problem: DecisionProblem) -> IntArray:
    """The group in `by_order` of each distinct row."""
    found, codes = distinct_rows(problem), by_order(problem).codes
    return codes if found is None else codes[found.first]


@once_per_problem
def summed_priors(problem: DecisionProblem, priors: Priors, merged: bool) -> Priors:
    """Priors of the records as those of the rows of `cost_tables`."""
    found = distinct_rows(problem) if merged else None
    return priors if found is None else Priors(map(found.summed, priors))


@once_per_problem
def groups_under(problem: DecisionProblem, priors: Priors) -> OrderGroups:
    """The distinct rows by the order of their utilities; the worths are the utility lost under each prior."""
    codes, groups = _preferences(problem), by_order(problem)
    count, rows = groups.columns.shape[2], summed_priors(problem, priors, True)
    worths = np.empty((count, problem.n_actions, len(priors)))
    for action, lost in enumerate(cost_tables(problem, True).columns(None)):
        for place, prior in enumerate(rows):
            worths[:, action, place] = np.bincount(codes, prior * lost, count)
    return OrderGroups(codes, groups.columns, worths)


def powers_of_two(numbers: FloatArray) -> FloatArray:
    """The power of two next to each number > 0; 0 stays 0."""
    with np.errstate(divide="ignore"):
        return np.where(numbers > 0, np.exp2(np.rint(np.log2(numbers))), 0.0)


def spread_units(spreads: FloatArray) -> FloatArray:
    """The power of two next to what each row ranges over; 1 where it is the same for all."""
    powers = powers_of_two(spreads)
    return np.where(powers > 0, powers, 1.0)


def gain_units(gains: FloatArray, roundings: FloatArray) -> FloatArray:
    """What there is to gain under each prior; the least gain of others where it is only rounding, 1 where all are."""
    exist = gains > roundings
    return np.where(exist, gains, gains[exist].min() if exist.any() else 1.0)


class ClassRows(ABC):
    """The rows of records that allow the same actions, and their oracle.

    Parameters
    ----------
    problem : DecisionProblem
        Of these records, without a mask.
    epsilon : float
    terms : sequence of Term
        What each row costs.
    priors : Priors or None
        Of each row, over the records; that of the problem by default.

    Attributes
    ----------
    spreads, roundings : array, (n_rows,)
        As in `TermMeans`.
    scales : array, (n_rows,)
        What the rows are divided by.
    oracle : Oracle
    """

    def __init__(self, problem: DecisionProblem, epsilon: float, terms: Sequence[Term], priors: Priors | None) -> None:
        partitions = hiding_of(problem, epsilon)
        self.problem, self._terms = problem, terms
        self._whole = len(partitions) == 1 and partitions[0].whole
        self.costs = cost_tables(problem, self._whole)
        if priors is None:
            self._priors = (self.costs.prior,) * len(terms)
        else:
            self._priors = summed_priors(problem, priors, self._whole)
        self._row_means = self._means()
        self.spreads = np.array([mean.spread for mean in self._row_means])
        self.roundings = np.array([mean.rounding for mean in self._row_means])
        self.scales = self._scales()
        self.oracle: Oracle
        if self._whole:
            self.oracle = ByOrder(epsilon, self._groups, self._nearby)
        elif len(partitions) == 1:
            self.oracle = ByClass(epsilon, partitions[0], self._weighted, self._cost_rows())
        else:
            self.oracle = ByProgramme(problem, epsilon, self._weighted, self._cost_rows())

    @abstractmethod
    def _means(self) -> list[TermMeans]:
        """The expectations of each row."""

    @abstractmethod
    def _scales(self) -> FloatArray:
        """What the rows are divided by, (n_rows,)."""

    @abstractmethod
    def _groups(self, prices: FloatArray) -> OrderGroups:
        """The records by the order of their actions at these prices of the rows."""

    @abstractmethod
    def _weighted(self, prices: FloatArray) -> Weighted:
        """The weighted sum of the rows as a decision."""

    def _nearby(self, prices: FloatArray) -> FloatArray:
        """Prices near to these, for which groups are likely to be known."""
        return prices

    def _cost_rows(self) -> list[CostRow]:
        rows = zip(self._priors, self._terms, self.scales, strict=True)
        return [CostRow(prior, self.costs.columns(term), scale) for prior, term, scale in rows]

    @cached_property
    def constants(self) -> list[Column]:
        """One action for all: private at any epsilon."""
        k, means = self.problem.n_actions, np.stack([mean.to_all for mean in self._row_means], axis=1) / self.scales
        return [Column(row, Constant(action, k)) for action, row in enumerate(means)]

    def table(self, parts: MixtureParts) -> FloatArray:
        """log p(a|x) of a mixture of columns of the oracle, (n_records, n_actions)."""
        logs = self.oracle.table(parts, len(self.costs.prior))
        found = distinct_rows(self.problem) if self._whole else None
        return logs if found is None else of_groups(logs, found.row)


class BoundRows(ClassRows):
    """The utility lost under the problem's prior, and what is bounded.

    Rows are divided by powers of two, so that prices are changed to the units of the problem and back exactly.
    """

    def __init__(self, problem: DecisionProblem, epsilon: float, bounds: Sequence[Bound]) -> None:
        """Within these bounds, of which shares are those of the problem's actions."""
        terms = [bound.name if bound.action is None else bound.action for bound in bounds]
        super().__init__(problem, epsilon, [None, *terms], None)

    def _means(self) -> list[TermMeans]:
        return [self.costs.means(term) for term in self._terms]

    def _scales(self) -> FloatArray:
        return spread_units(self.spreads)

    def _nearby(self, prices: FloatArray) -> FloatArray:
        """Multipliers that are powers of two: the optimum at another epsilon asks for the same."""
        units = self.scales[0] / self.scales[1:]
        return np.concatenate([prices[:1], powers_of_two(prices[1:] * units) / units])

    def _groups(self, prices: FloatArray) -> OrderGroups:
        # In the units of the problem.
        own: list[float] = (prices / self.scales).tolist()
        unit = own[0] or max(own)
        priced = ((term, price / unit) for term, price in zip(self._terms, own, strict=True))
        groups = penalised_groups(self.problem, tuple(priced))
        sets = None if groups.sets is None else (groups.sets[0], groups.sets[1] * unit)
        return groups._replace(worths=groups.worths / self.scales, sets=sets)

    def _weighted(self, prices: FloatArray) -> Weighted:
        priced = tuple(zip(self._terms, (prices / self.scales).tolist(), strict=True))
        if prices[1:].any():
            return Weighted(lambda records: -self.costs.priced(priced, records), self.costs.prior, 1.0, floored=True)
        # The optimum itself, to the last bit.
        return Weighted(lambda records: self.problem.utilities.T[:, records], self.costs.prior, priced[0][1])


class LossRows(ClassRows):
    """The utility lost under each of several priors, divided by what there is to gain under it."""

    def __init__(self, problem: DecisionProblem, epsilon: float, priors: Priors) -> None:
        """Under these priors of the records."""
        self._over_records = priors
        super().__init__(problem, epsilon, [None] * len(priors), priors)

    def _means(self) -> list[TermMeans]:
        return [self.costs.loss_under(prior) for prior in self._priors]

    def _scales(self) -> FloatArray:
        return gain_units(self.spreads, self.roundings)

    def _groups(self, prices: FloatArray) -> OrderGroups:
        groups = groups_under(self.problem, self._over_records)
        return groups._replace(worths=groups.worths / self.scales)

    def _weighted(self, prices: FloatArray) -> Weighted:
        """The problem under the mixture of the priors."""
        mixed = (prices / self.scales) @ np.stack(self._priors)
        total = float(mixed.sum())
        return Weighted(lambda records: self.problem.utilities.T[:, records], mixed / total, total)


@dataclass(frozen=True, eq=False)
class Side:
    """A set of records with a choice, as the master programme sees it.

    Attributes
    ----------
    part : MaskClass
    own : ClassRows
        Its own rows.
    rows : array of int, (m,)
        Which rows of the master programme these are; in the others it has nothing.
    factors : array, (m,)
        What one unit of its own rows adds to those of the master programme, > 0.
    """

    part: MaskClass
    own: ClassRows
    rows: IntArray
    factors: FloatArray

    @property
    def best_for_all(self) -> Column:
        """Of one of its own actions for all, that which is best."""
        return self.own.constants[self.own.problem.best_fixed_action]


@dataclass(frozen=True, eq=False)
class Joint(Oracle):
    """The oracle for all sides together; its recipes are the columns of the sides, one each.

    Attributes
    ----------
    sides : sequence of Side
    n_rows, n_actions : int
    only : array of int, (n_records,)
        The action of records without a choice.
    """

    sides: Sequence[Side]
    n_rows: int
    n_actions: int
    only: IntArray

    @property
    def precision(self) -> float:
        """That of the least precise."""
        return max((side.own.oracle.precision for side in self.sides), default=0.0)

    def nearby(self, prices: FloatArray) -> FloatArray:
        """As of the only side that has all rows, or the same."""
        if len(self.sides) == 1 and len(self.sides[0].rows) == self.n_rows:
            (side,) = self.sides
            return side.own.oracle.nearby(prices * side.factors) / side.factors
        return prices

    def best(self, prices: FloatArray) -> tuple[Column, float]:
        """The optimum, and what the weighted sum is at least for every private policy."""
        columns, least = [], 0.0
        for side in self.sides:
            own = prices[side.rows] * side.factors
            if own.any():
                column, proven = side.own.oracle.best(own)
                columns.append(column)
                least += proven
            else:
                columns.append(side.best_for_all)
        return self._together(columns), least

    def constants(self) -> list[Column]:
        """One action for all who allow it, and the best for all on the other sides; and the best on all sides."""
        best = [side.best_for_all for side in self.sides]
        found = [self._together(best)]
        for action in range(self.n_actions):
            places = [np.flatnonzero(side.part.columns == action) for side in self.sides]
            chosen = [
                side.own.constants[int(place[0])] if len(place) else column
                for side, place, column in zip(self.sides, places, best, strict=True)
            ]
            found.append(self._together(chosen))
        return found

    def _together(self, columns: Sequence[Column]) -> Column:
        expectations = np.zeros(self.n_rows)
        for side, column in zip(self.sides, columns, strict=True):
            expectations[side.rows] += side.factors * column.expectations
        return Column(expectations, tuple(columns))

    def table(self, parts: MixtureParts, n_records: int) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions); -inf at actions that are not allowed."""
        logs = one_hot_logs(self.only, self.n_actions)
        for place, side in enumerate(self.sides):
            # A side may have the same column in several parts.
            own: dict[int, tuple[float, Column]] = {}
            for weight, together in parts:
                column = together.recipe[place]
                before, _ = own.get(id(column), (0.0, column))
                own[id(column)] = before + weight, column
            of_side = side.own.table(list(own.values()))
            logs[side.part.rows] = -np.inf
            for action, found in zip(side.part.columns, of_side.T, strict=True):
                logs[side.part.rows, action] = found
        return logs

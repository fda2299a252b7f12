"""The epsilon-private policy of highest value within bounds, or of the largest worst-case benefit over several priors.

By Lagrange: at the right multipliers mu the optimum of the utilities u - mu . outcome (for a share, minus mu from the
column of its action), or a mixture of several optima at the same mu, is the best within the bounds, and no
epsilon-private policy within the bounds has a higher value than the optimum there plus mu . bound. A mixture of tables
of epsilon-private policies is epsilon-private. `policies.optimal.mixtures` finds the multipliers and the weights.

The rows of that master programme are what a policy costs, term by term: the utility lost (None), an outcome by its
name, or the share of an action by its position. Utilities are counted from the best action for each record, outcomes
from the one that is best for all: what these have in common takes no digits, and one action for all keeps its own
outcomes without rounding. The records are summed by the order of their actions at some prices of the terms.

In the worst case over several priors it has a row for each: the utility lost under that prior. Under prior j, V_j(p) is
the value of a policy, best_j that of the best action for each record and fixed_j that of the best single action for
all, under which benefit kept is 1 and 0:

    max t  such that  V_j(p) >= fixed_j + t (best_j - fixed_j) for each j:  best_j - V_j(p) <= (1 - t) unit_j

with unit_j = best_j - fixed_j. Under a prior where nothing is to be gained (best_j = fixed_j but for rounding), that
would leave one action for all as the only policy. There the loss itself is bounded: unit_j is the smallest of the gains
of the other priors, so that nobody loses more utility there than those lose who have least to gain; without any other
prior, 1 unit of utility. For given ceilings the best row depends on the order of its actions alone, whatever the prior:
where all records are neighbours, one pass over the records serves all priors, prices and epsilons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from functools import cached_property, reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from numpy.typing import ArrayLike

from policies.arrays import ROUNDING, FloatArray, IntArray, blocks, conditional, non_negative
from policies.distinct import distinct_rows
from policies.mask import same_masks
from policies.optimal.bounds import Bound, InfeasibleError, Priors, bounds_on, checked_priors, priors_on
from policies.optimal.classes import by_order, greedy_value, of_groups, order_codes
from policies.optimal.mixtures import KEPT, Column, Mixture, MixtureParts, Oracle, SomeRows, best_mixture
from policies.optimal.oracles import (
    ByClass,
    ByOrder,
    ByProgramme,
    Constant,
    CostRow,
    Joint,
    OrderGroups,
    Side,
    Weighted,
    hiding_of,
)
from policies.problem import DecisionProblem, MaskClass, once_per_problem


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
        No epsilon-private policy within the bounds has a higher value, up to float rounding (`optimal_certificate` with
        the multipliers for weights is a proof without). It is `value` but for rounding; under one-feature, but for the
        solver's tolerances.
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
    >>> round(found.value, 4), np.exp(found.log_probabilities).round(4).tolist()  # a fifth of all get the second
    (0.5924, [[0.7076, 0.2924], [0.8924, 0.1076]])
    """
    epsilon = non_negative(epsilon, "epsilon")
    programme = programme_of(problem, epsilon, bounds_on(problem, at_most, capacity))
    found = programme.solve()
    logs = programme.table(found.parts)
    value = problem.value(np.exp(logs))
    return BoundedOptimum(logs, value, max(value, programme.value(found.bound)), programme.multipliers(found))


@dataclass(frozen=True)
class RobustOptimum:
    """The best in the worst case; n records, k actions, J priors.

    Attributes
    ----------
    log_probabilities : array, (n, k)
        An epsilon-private policy.
    kept : float
        t: the least benefit that it keeps under any of the priors, as a share; see the head of the module.
    bound : float
        No epsilon-private policy has a higher one, up to float rounding.
    weights : array, (J,)
        Of the priors, with a sum of 1: under their mixture with these weights, no epsilon-private policy loses less.
    """

    log_probabilities: FloatArray
    kept: float
    bound: float
    weights: FloatArray


def robust_optimum(
    problem: DecisionProblem, epsilon: float, priors: Sequence[ArrayLike] | None = None
) -> RobustOptimum:
    """The best epsilon-private policy in the worst case over priors.

    Parameters
    ----------
    problem : DecisionProblem
        Its own prior is not used.
    epsilon : float
        >= 0; inf gives greedy.
    priors : sequence of array, (n,) each, optional
        At least one; those of the problem by default.

    Raises
    ------
    ValueError
        For a prior that is no distribution over the records.
    NotApplicableError
        If neither the problem has priors nor any are given; under one-feature, for more records than the whole
        programme takes, or for a list of records at epsilon = 0.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> found = robust_optimum(problem, 1.0, [[0.8, 0.2], [0.2, 0.8]])  # one for all errs in a fifth, this in more
    >>> round(found.kept, 4), np.exp(found.log_probabilities).round(4).tolist()
    (-0.3447, [[0.2689, 0.7311], [0.7311, 0.2689]])
    """
    epsilon = non_negative(epsilon, "epsilon")
    losses = priors_on(problem, None if priors is None else checked_priors(priors))
    programme = programme_of(problem, epsilon, (), losses)
    found = programme.solve()
    logs = programme.table(found.parts)
    return RobustOptimum(logs, 1 - found.value, 1 - min(found.bound, found.value), found.prices)


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
    programme = programme_of(problem, epsilon, bounds)
    lost, harmed = programme.oracle.best(np.array([1.0, penalty]) * programme.scales)[0].expectations * programme.scales
    return programme.value(0.0) - float(lost), float(harmed) + bounds[0].limit - bounds[0].room


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
    outcomes: dict[str, FloatArray]
    prior: FloatArray
    fixed: int
    _columns_known: dict[Term, TermColumns] = field(default_factory=dict)
    _means: dict[Term, TermMeans] = field(default_factory=dict)
    _tables: dict[tuple[Term, ...], FloatArray] = field(default_factory=dict)

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
                largest = reduce(np.maximum, map(np.abs, self.outcomes[term].T))
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
    utilities, outcomes, prior = problem.utilities, dict(problem.outcomes), problem.prior
    if found is not None:
        utilities = np.asfortranarray(utilities[found.first])
        outcomes = {name: np.asfortranarray(table[found.first]) for name, table in outcomes.items()}
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


# Rounds up to six digits.
_UP = Context(prec=6, rounding=ROUND_CEILING)


class BoundedProgramme:
    """The rows of the master programme: the utility lost against the best action for each, and what is bounded.

    Rows are divided by powers of two, so that prices are changed to the units of the problem and back exactly. In the
    worst case over `priors`, nothing is bounded, and there is a row for the utility lost under each, divided by what
    there is to gain under it.
    """

    def __init__(
        self, problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...], priors: Priors | None = None
    ) -> None:
        self.problem, self.epsilon, self.bounds, self.priors = problem, epsilon, bounds, priors
        partitions = hiding_of(problem, epsilon)
        self._whole = len(partitions) == 1 and partitions[0].whole
        self._terms: tuple[Term, ...] = (None, *(b.name if b.action is None else b.action for b in bounds))
        self._costs = cost_tables(problem, self._whole)
        self._row_priors = Priors([self._costs.prior] * len(self._terms))
        if priors is None:
            self._measure([self._costs.means(term) for term in self._terms])
        else:
            self._terms, self._row_priors = (None,) * len(priors), summed_priors(problem, priors, self._whole)
            self._measure([self._costs.loss_under(prior) for prior in self._row_priors])
        self.oracle: Oracle
        if self._whole:
            self.oracle = ByOrder(epsilon, self._groups, self._nearby)
        elif len(partitions) == 1:
            self.oracle = ByClass(epsilon, partitions[0], self._weighted, self._rows())
        else:
            self.oracle = ByProgramme(problem, epsilon, self._weighted, self._rows())

    def _rows(self) -> list[CostRow]:
        rows = zip(self._row_priors, self._terms, self.scales, strict=True)
        return [CostRow(prior, self._costs.columns(term), scale) for prior, term, scale in rows]

    def _measure(self, means: Sequence[TermMeans]) -> None:
        """The scales of the rows, and the limits, from what each term ranges over."""
        self.means = means
        spreads = np.array([mean.spread for mean in means])
        if self.priors is None:
            units = powers_of_two(spreads)
            self.scales = np.where(units > 0, units, 1.0)
        else:
            gains = spreads > [mean.rounding for mean in means]
            self.scales = np.where(gains, spreads, spreads[gains].min() if gains.any() else 1.0)
        self.limits = np.array([bound.room for bound in self.bounds]) / self.scales[self.n_losses :]

    @property
    def n_losses(self) -> int:
        """How many of the rows are losses; they come first."""
        return 1 if self.priors is None else len(self.priors)

    @cached_property
    def constants(self) -> list[Column]:
        """One action for all: private at any epsilon."""
        k, means = self.problem.n_actions, np.stack([mean.to_all for mean in self.means], axis=1) / self.scales
        return [Column(row, Constant(action, k)) for action, row in enumerate(means)]

    def solve(self) -> Mixture:
        """The best mixture within the bounds; InfeasibleError if there is none."""
        n_losses = self.n_losses
        alike = np.r_[np.full(n_losses, 1 / n_losses), np.zeros(len(self.bounds))]
        first, least = self.oracle.best(alike)
        if n_losses == 1 and (first.expectations[1:] <= self.limits).all():
            # The optimum keeps the bounds: no multiplier is needed.
            return Mixture(((1.0, first),), float(first.expectations[0]), least, alike)
        margins = np.array([mean.rounding for mean in self.means[n_losses:]]) / self.scales[n_losses:]
        found = best_mixture(self.oracle, [*self.constants, first], self.limits, margins)
        if found is None:
            raise InfeasibleError(self.what_is_possible())
        return found

    def table(self, parts: MixtureParts) -> FloatArray:
        """log p(a|x) of a mixture of columns of the oracle, (n_records, n_actions)."""
        logs = self.oracle.table(parts, len(self._costs.prior))
        found = distinct_rows(self.problem) if self._whole else None
        return logs if found is None else of_groups(logs, found.row)

    def value(self, loss: float) -> float:
        """The value of a policy, from its first row."""
        return greedy_value(self.problem) - float(self.scales[0]) * loss

    def multipliers(self, mixture: Mixture) -> dict[str, float]:
        """In units of utility per unit of what is bounded."""
        units = self.scales[0] / self.scales[1:]
        return dict(zip((b.name for b in self.bounds), (mixture.prices[1:] * units).tolist(), strict=True))

    def what_is_possible(self) -> str:
        """Of each bound, the least that an epsilon-private policy can do, by itself and with the others kept."""
        which = "this bound" if len(self.bounds) == 1 else "all of these bounds"
        found = [f"{bound} (the least possible is {self._least(place)})" for place, bound in enumerate(self.bounds)]
        return f"no policy keeps {which} at epsilon={self.epsilon:g}: {', '.join(found)}."

    def _least(self, place: int) -> str:
        rows = np.array([place, *(other for other in range(len(self.bounds)) if other != place)]) + 1
        column, least = self.oracle.best(np.eye(len(self.scales))[rows[0]])
        alone = self._in_words(place, float(column.expectations[rows[0]]))
        if len(rows) == 1:
            return alone
        # As a loss it must not be negative.
        shifts = np.where(np.arange(len(rows)) == 0, min(least, float(column.expectations[rows[0]])), 0.0)
        oracle = SomeRows(self.oracle, rows, shifts, len(self.scales))
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
        if self.priors is not None:  # one pass over the records serves all prices
            return prices
        units = self.scales[0] / self.scales[1:]
        return np.concatenate([prices[:1], powers_of_two(prices[1:] * units) / units])

    def _groups(self, prices: FloatArray) -> OrderGroups:
        if self.priors is not None:
            groups = groups_under(self.problem, self.priors)
            return groups._replace(worths=groups.worths / self.scales)
        # In the units of the problem.
        own: list[float] = (prices / self.scales).tolist()
        unit = own[0] or max(own)
        priced = ((term, price / unit) for term, price in zip(self._terms, own, strict=True))
        groups = penalised_groups(self.problem, tuple(priced))
        sets = None if groups.sets is None else (groups.sets[0], groups.sets[1] * unit)
        return groups._replace(worths=groups.worths / self.scales, sets=sets)

    def _weighted(self, prices: FloatArray) -> Weighted:
        if self.priors is not None:
            mixed = (prices / self.scales) @ np.stack(self._row_priors)
            total = float(mixed.sum())
            return Weighted(lambda records: self.problem.utilities.T[:, records], mixed / total, total)
        priced = tuple(zip(self._terms, (prices / self.scales).tolist(), strict=True))
        if prices[1:].any():
            return Weighted(lambda records: -self._costs.priced(priced, records), self._costs.prior, 1.0, floored=True)
        # The optimum itself, to the last bit.
        return Weighted(lambda records: self.problem.utilities.T[:, records], self._costs.prior, priced[0][1])


def programme_of(
    problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...], priors: Priors | None = None
) -> BoundedProgramme:
    """The master programme of a problem within bounds, or in the worst case over priors.

    An action of capacity 0 is not allowed, unless some records allow no other: a price that keeps it from each single
    patient would be larger than all numbers that matter.
    """
    never = {bound.action for bound in bounds if bound.action is not None and bound.limit == 0}
    if never or problem.admissible is not None:
        left = _classes(problem, frozenset(never))
        if left is not None:
            return MaskedProgramme(problem, epsilon, bounds, left, priors)
        if problem.admissible is not None:
            return MaskedProgramme(problem, epsilon, bounds, problem.classes, priors)
    return BoundedProgramme(problem, epsilon, bounds, priors)


@once_per_problem
def _classes(problem: DecisionProblem, never: frozenset[int]) -> tuple[MaskClass, ...] | None:
    """The classes of a problem without some of its actions; None if that leaves nothing to some records."""
    if not never:
        return problem.classes
    every = np.ones(problem.utilities.shape, dtype=np.bool_) if problem.admissible is None else problem.admissible
    mask = every & ~np.isin(np.arange(problem.n_actions), list(never))
    if not mask.any(axis=1).all():
        return None
    return tuple(MaskClass.of(problem, *found) for found in same_masks(mask, problem.adjacency))


class MaskedProgramme(BoundedProgramme):
    """The rows summed over the sets of records that allow the same actions, each of which has a programme of its own.

    Outcomes are counted from the action that is best for all of a set.
    """

    def __init__(
        self,
        problem: DecisionProblem,
        epsilon: float,
        bounds: tuple[Bound, ...],
        classes: tuple[MaskClass, ...],
        priors: Priors | None = None,
    ) -> None:
        self.problem, self.epsilon, self._asked, self._classes, self.priors = problem, epsilon, bounds, classes, priors
        # The action that is best for all of each set.
        fixed = np.empty(problem.n_records, dtype=np.intp)
        for part in classes:
            fixed[part.rows] = part.columns[0 if part.problem is None else part.problem.best_fixed_action]
        self.bounds = tuple(self._from_here(bound, fixed) for bound in bounds)
        n_rows = self.n_losses + len(bounds)
        parts, spreads, roundings = [], np.zeros(n_rows), np.zeros(n_rows)
        for part in classes:
            own, rows, shares = self._of_class(part)
            if own is not None:
                spreads[rows] += shares * [mean.spread for mean in own.means]
                roundings[rows] += shares * [mean.rounding for mean in own.means]
                parts.append((part, own, rows, shares))
        self._measure([TermMeans(np.zeros(0), *of) for of in zip(spreads.tolist(), roundings.tolist(), strict=True)])
        sides = [
            Side(part, own.oracle, rows, shares * own.scales / self.scales[rows], own.constants, own.table)
            for part, own, rows, shares in parts
        ]
        self._joint = Joint(sides, n_rows, problem.n_actions, fixed)
        self.oracle = self._joint

    def _of_class(self, part: MaskClass) -> tuple[BoundedProgramme | None, IntArray, FloatArray]:
        """The programme of a class, which of the rows it has, and its share of the patients in each; None for none."""
        if part.problem is None:
            return None, np.zeros(0, dtype=np.intp), np.zeros(0)
        if self.priors is not None:
            # The priors under which nobody of the class comes have no say in it.
            shares = np.array([_share(prior, part) for prior in self.priors])
            rows = np.flatnonzero(shares)
            own_priors = Priors(conditional(self.priors[row], part.rows) for row in rows)
            own = BoundedProgramme(part.problem, self.epsilon, (), own_priors) if len(rows) else None
            return own, rows, shares[rows]
        # Its own rows are the first, outcomes, and shares of its own actions.
        known = [place for place, bound in enumerate(self._asked) if bound.action in (None, *part.columns)]
        actions = part.columns.tolist()
        renumbered = (
            bound if bound.action is None else replace(bound, action=actions.index(bound.action))
            for bound in (self._asked[place] for place in known)
        )
        rows = np.array([0, *known])
        rows[1:] += 1
        share = _share(self.problem.prior, part)
        return BoundedProgramme(part.problem, self.epsilon, tuple(renumbered)), rows, np.full(len(rows), share)

    @cached_property
    def constants(self) -> list[Column]:
        """One action for all, as far as it is allowed."""
        return self._joint.constants()

    def table(self, parts: MixtureParts) -> FloatArray:
        """log p(a|x) of a mixture of columns of the oracle, (n_records, n_actions)."""
        return self._joint.table(parts, self.problem.n_records)

    def value(self, loss: float) -> float:
        """The value of a policy, from its first row."""
        utilities, best = self.problem.utilities, np.empty(self.problem.n_records)
        for part in self._classes:
            best[part.rows] = utilities[np.ix_(part.rows, part.columns)].max(axis=1)
        return float(self.problem.prior @ best) - float(self.scales[0]) * loss

    def multipliers(self, mixture: Mixture) -> dict[str, float]:
        """In units of utility per unit of what is bounded."""
        prices = super().multipliers(mixture)
        never = [bound for bound in self.bounds if bound.action is not None and not self._allows(bound.action)]
        if never:
            # What is left out costs so much that one of the others is better for every record: whoever gets it, even
            # privately, may get that instead.
            own = [0.0 if bound in never else prices[bound.name] for bound in self.bounds]
            terms = (
                (b.name if b.action is None else b.action, price) for b, price in zip(self.bounds, own, strict=True)
            )
            costs = cost_tables(self.problem, False).priced(((None, 1.0), *terms))
            for bound in never:
                worse = [(costs[part.columns] - costs[bound.action])[:, part.rows] for part in self._classes]
                prices[bound.name] = max(0.0, *(float(each.max(axis=1).min()) for each in worse))
        return prices

    def what_is_possible(self) -> str:
        """Of each bound, the least that an epsilon-private policy can do, by itself and with the others kept."""
        if all(self._allows(bound.action) for bound in self.bounds if bound.action is not None):
            return super().what_is_possible()
        if self.problem.admissible is None:
            return BoundedProgramme(self.problem, self.epsilon, self._asked).what_is_possible()
        return MaskedProgramme(self.problem, self.epsilon, self._asked, self.problem.classes).what_is_possible()

    def _allows(self, action: int) -> bool:
        """Whether anybody may get an action that somebody allows."""
        allowed = self.problem.admissible is None or self.problem.admissible[:, action].any()
        return not allowed or any((part.columns == action).any() for part in self._classes)

    def _from_here(self, bound: Bound, fixed: IntArray) -> Bound:
        """The room beyond what the rows are counted from."""
        if bound.action is not None:
            none_else = [part for part in self._classes if part.problem is None and part.columns[0] == bound.action]
            return replace(bound, room=bound.room - sum(_share(self.problem.prior, part) for part in none_else))
        outcome = self.problem.outcomes[bound.name]
        before = self.problem.of_best_fixed(outcome) - np.take_along_axis(outcome, fixed[:, None], axis=1)[:, 0]
        return replace(bound, room=bound.room + float(self.problem.prior @ before))


def _share(prior: FloatArray, part: MaskClass) -> float:
    """Of the patients; 1 exactly if it is all."""
    return 1.0 if len(part.rows) == len(prior) else float(prior[part.rows].sum())

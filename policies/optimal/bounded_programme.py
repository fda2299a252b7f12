"""The master programme of the best within bounds: its rows, its oracle, and what is possible if it has no solution."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray
from policies.distinct import distinct_rows
from policies.optimal.bounds import Bound, InfeasibleError
from policies.optimal.by_class import ByClass
from policies.optimal.classes import of_groups, one_clique
from policies.optimal.mixtures import KEPT, Column, Mixture, SomeRows, best_mixture
from policies.optimal.oracles import (
    ByOrder,
    ByProgramme,
    Constant,
    Groups,
    Parts,
    Row,
    TableOracle,
    Weighted,
    neighbours,
)
from policies.optimal.penalties import Means, Term, cost_tables, penalised_groups, powers_of_two
from policies.problem import DecisionProblem

# Rounds up to six digits.
_UP = Context(prec=6, rounding=ROUND_CEILING)


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
        self._measure([self._costs.means(term) for term in self._terms])
        self.oracle: TableOracle
        if self._whole:
            self.oracle = ByOrder(epsilon, self._groups, self._nearby)
        elif len(partitions) == 1:
            self.oracle = ByClass(epsilon, partitions[0], self._weighted, self._rows())
        else:
            self.oracle = ByProgramme(problem, epsilon, self._weighted, self._rows())

    def _rows(self) -> list[Row]:
        terms = zip(self._terms, self.scales, strict=True)
        return [Row(self._costs.prior, self._costs.columns(term), scale) for term, scale in terms]

    def _measure(self, means: Sequence[Means]) -> None:
        """The scales of the rows, and the limits, from what each term ranges over."""
        self.means = means
        spreads = powers_of_two(np.array([mean.spread for mean in means]))
        self.scales = np.where(spreads > 0, spreads, 1.0)
        self.limits = np.array([bound.room for bound in self.bounds]) / self.scales[1:]

    @cached_property
    def constants(self) -> list[Column]:
        """One action for all: private at any epsilon."""
        k, means = self.problem.n_actions, np.stack([mean.to_all for mean in self.means], axis=1) / self.scales
        return [Column(row, Constant(action, k)) for action, row in enumerate(means)]

    def solve(self) -> Mixture:
        """The best mixture within the bounds; InfeasibleError if there is none."""
        first, least = self.oracle.best(np.eye(len(self.scales))[0])
        if (first.expectations[1:] <= self.limits).all():
            # The optimum keeps the bounds: no multiplier is needed.
            return Mixture(((1.0, first),), float(first.expectations[0]), least, np.eye(len(self.scales))[0])
        margins = np.array([mean.rounding for mean in self.means[1:]]) / self.scales[1:]
        found = best_mixture(self.oracle, [*self.constants, first], self.limits, margins)
        if found is None:
            raise InfeasibleError(self.what_is_possible())
        return found

    def table(self, parts: Parts) -> FloatArray:
        """log p(a|x) of a mixture of columns of the oracle, (n_records, n_actions)."""
        logs = self.oracle.table(parts, len(self._costs.prior))
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

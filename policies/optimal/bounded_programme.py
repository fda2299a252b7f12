"""The master programme of the best within bounds: its rows, its oracle, and what is possible if it has no solution."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context
from functools import cached_property

import numpy as np

from policies.arrays import FloatArray
from policies.distinct import distinct_rows
from policies.optimal.bounds import Bound, InfeasibleError, expected_for_all
from policies.optimal.by_class import ByClass
from policies.optimal.classes import of_groups, one_clique
from policies.optimal.mixtures import KEPT, Column, Mixture, SomeRows, best_mixture
from policies.optimal.oracles import ByOrder, ByProgramme, Constant, Groups, Row, Weighted, neighbours
from policies.optimal.penalties import Term, cost_tables, penalised_groups, powers_of_two
from policies.problem import DecisionProblem, once_per_problem

# Rounds up to six digits.
_UP = Context(prec=6, rounding=ROUND_CEILING)


@once_per_problem
def _only(problem: DecisionProblem, actions: tuple[int, ...]) -> DecisionProblem:
    """The problem with these actions alone."""
    return DecisionProblem(
        problem.utilities[:, actions],
        problem.prior,
        problem.adjacency,
        [problem.actions[action] for action in actions],
        records=problem.records,
        outcomes={name: table[:, actions] for name, table in problem.outcomes.items()},
    )


def _moved(bound: Bound, problem: DecisionProblem, actions: tuple[int, ...]) -> Bound:
    """A bound on a problem as one on the problem with these actions alone."""
    if bound.action is not None:
        return replace(bound, action=actions.index(bound.action))
    means = expected_for_all(problem, bound.name)
    fixed = actions[_only(problem, actions).best_fixed_action]
    return replace(bound, room=bound.room + float(means[problem.best_fixed_action] - means[fixed]))


class BoundedProgramme:
    """The rows of the master programme: the utility lost against the best action for each, and what is bounded.

    Rows are divided by powers of two, so that prices are changed to the units of the problem and back exactly. Actions
    of capacity 0 are left out, unless the others are fewer than two: a price that keeps them from each single patient
    would be larger than all numbers that matter.
    """

    def __init__(
        self, problem: DecisionProblem, epsilon: float, bounds: tuple[Bound, ...], *, leave_out: bool = True
    ) -> None:
        self._asked, self._all_bounds, self.epsilon = problem, bounds, epsilon
        never = {bound.action for bound in bounds if bound.action is not None and bound.limit == 0}
        self._kept = tuple(action for action in range(problem.n_actions) if action not in never)
        if leave_out and never and len(self._kept) > 1:
            problem = _only(problem, self._kept)
            bounds = tuple(_moved(b, self._asked, self._kept) for b in bounds if b.action not in never)
        else:
            self._kept = tuple(range(problem.n_actions))
        self.problem, self.bounds = problem, bounds
        partitions = neighbours(problem, epsilon)
        self._whole = len(partitions) == 1 and one_clique(partitions[0])
        self._terms: tuple[Term, ...] = (None, *(b.name if b.action is None else b.action for b in bounds))
        self._costs = cost_tables(problem, self._whole)
        self._means = [self._costs.means(term) for term in self._terms]
        spreads = powers_of_two(np.array([mean.spread for mean in self._means]))
        self.scales = np.where(spreads > 0, spreads, 1.0)
        self.limits = np.array([bound.room for bound in bounds]) / self.scales[1:]
        self.oracle: ByOrder | ByClass | ByProgramme
        if self._whole:
            self.oracle = ByOrder(epsilon, self._groups, self._nearby)
        elif len(partitions) == 1:
            self.oracle = ByClass(epsilon, partitions[0], self._weighted, self._rows())
        else:
            self.oracle = ByProgramme(problem, epsilon, self._weighted, self._rows())

    def _rows(self) -> list[Row]:
        terms = zip(self._terms, self.scales, strict=True)
        return [Row(self._costs.prior, self._costs.columns(term), scale) for term, scale in terms]

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
            asked = BoundedProgramme(self._asked, self.epsilon, self._all_bounds, leave_out=False)
            raise InfeasibleError(asked.what_is_possible())
        return found

    def table(self, mixture: Mixture) -> FloatArray:
        """log p(a|x) of a mixture, (n_records, n_actions)."""
        logs = self.oracle.table(mixture.parts, len(self._costs.prior))
        found = distinct_rows(self.problem) if self._whole else None
        logs = logs if found is None else of_groups(logs, found.row)
        if len(self._kept) == self._asked.n_actions:
            return logs
        table = np.full((len(logs), self._asked.n_actions), -np.inf, order="F")
        table[:, self._kept] = logs
        return table

    def value(self, loss: float) -> float:
        """The value of a policy, from its first row."""
        greedy = float(self.problem.prior @ self.problem.utilities.max(axis=1))
        return greedy - float(self.scales[0]) * loss

    def multipliers(self, mixture: Mixture) -> dict[str, float]:
        """In units of utility per unit of what is bounded."""
        units = self.scales[0] / self.scales[1:]
        prices = dict(zip((b.name for b in self.bounds), (mixture.prices[1:] * units).tolist(), strict=True))
        if len(self._kept) == self._asked.n_actions:
            return prices
        # What is left out costs so much that one of the others is better for every record: whoever gets it, even
        # privately, may get that instead.
        left = cost_tables(self._asked, self._whole)
        terms = tuple((b.name if b.action is None else b.action, prices.get(b.name, 0.0)) for b in self._all_bounds)
        costs = left.priced(((None, 1.0), *terms))
        for bound in self._all_bounds:
            if bound.action not in (None, *self._kept):
                most = min(float((costs[other] - costs[bound.action]).max()) for other in self._kept)
                prices[bound.name] = max(most, 0.0)
        return {bound.name: prices[bound.name] for bound in self._all_bounds}

    def what_is_possible(self) -> str:
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

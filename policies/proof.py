"""Proofs of what no epsilon-private policy can do: what makes one, and `Certificate.holds`, which decides it.

A certificate claims that sum over x, a of prior(x) p(a|x) z(x, a) >= bound under every epsilon-private policy p. Here z
is a sum of weight times quantity: the utility lost against the best action of the record, and outcomes. Only this claim
and its multipliers are read from it; all else is derived from the problem, whose floats count as exact.

Records that agree outside the axes of d partitions of one grid are at most d steps between neighbours apart, and each
step multiplies a probability by e^epsilon at most (`policies.adjacency`). They form a class K, in which each action has
a ceiling M with q M_Ka <= p(a|x) <= M_Ka, for any q <= e^(-d epsilon). Those whose actions have one order by z form a
group g: averaging p over a group leaves it private, so its rows count as equal. With c_ga the sum of prior(x) z(x, a)
over a group, and alpha, beta >= 0 with sum_g alpha_ga <= q sum_g beta_ga over the groups of each class, for each a,

    sum p c >= sum p c + sum alpha (p - M) + sum beta (q M - p) >= sum_g min_a (c_ga + alpha_ga - beta_ga)

by weak duality. It is decided in rational numbers, without tolerance, from c rounded down: of problems of at most
`MAX_ENTRIES` entries from its exact value, of larger ones as `_costs` proves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from policies.adjacency import Partition
from policies.arrays import FloatArray, IntArray
from policies.problem import DecisionProblem, once_per_problem

# The quantity that is no outcome: max u(x, .) - u(x, a). And quantities with their weights.
LOST = "utility lost"
Objective: TypeAlias = tuple[tuple[str, float], ...]

# Records times actions up to which costs are exact, and groups times actions that a certificate has at most.
MAX_ENTRIES = 1 << 15

# Half the distance from 1 to the next float; and more than what underflow takes from a product.
_HALF_ULP, _UNDERFLOW = 2.0**-53, 2.0**-1070

# e^-epsilon is computed to so many decimal digits and lowered in the last but one; beyond the largest it counts as 0.
_DIGITS, _LARGEST_EPSILON = 40, 1000.0


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof that the objective is at least `bound` under every epsilon-private policy; G groups, k actions.

    Attributes
    ----------
    problem : str
        `DecisionProblem.digest` of what it is about.
    epsilon : float
        What it is a proof for, and so for every smaller one.
    objective : mapping of str to float
        The weights, >= 0, of `LOST` and of outcomes.
    hidden : tuple of int
        The partitions of the adjacency, by their places, that make the classes; d is how many are named.
    alpha, beta : array, (G, k)
        The multipliers of p <= M and of q M <= p, in the order of `grouped`; in units of the objective, as `bound` is.
    bound : float
        The claim.
    """

    problem: str
    epsilon: float
    objective: Mapping[str, float]
    hidden: tuple[int, ...]
    alpha: FloatArray
    beta: FloatArray
    bound: float

    def holds(self, problem: DecisionProblem) -> bool:
        """Whether this is a proof for the problem; False for whatever is malformed."""
        least = self.proven(problem)
        number = _at_least(-math.inf, self.bound) and math.isfinite(self.bound)
        return least is not None and number and Fraction(self.bound) <= least

    def proven(self, problem: DecisionProblem) -> Fraction | None:
        """The largest bound that the multipliers prove; None if they prove nothing of the problem."""
        if not (type(self.problem) is str and self.problem == problem.digest and _at_least(0, self.epsilon)):
            return None
        try:
            hidden, objective = tuple(self.hidden), tuple(self.objective.items())
            if len(set(hidden)) < len(hidden) or not all(_at_least(0, weight) for _, weight in objective):
                return None
            with np.errstate(over="ignore", invalid="ignore"):
                groups = grouped(problem, hidden, objective)
            if not groups.costs.shape == self.alpha.shape == self.beta.shape:
                return None
            (costs, alpha, beta), unit = as_integers(groups.costs, self.alpha, self.beta)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None
        used, freed = (sums_of(table, groups.classes) for table in (alpha, beta))
        q = floor_of(self.epsilon) ** len(hidden)
        if (alpha < 0).any() or (beta < 0).any() or (q.denominator * used > q.numerator * freed).any():
            return None
        return Fraction((costs + alpha - beta).min(axis=1).sum()) * unit


def _at_least(low: float, number: Any) -> bool:
    return isinstance(number, float) and number >= low


@dataclass(frozen=True, eq=False)
class ClassOrders:
    """The records by class and, in each class, by the order of their actions; sorted by both."""

    codes: IntArray  # the group of each record, (n_records,)
    classes: IntArray  # the class of each group, (G,)
    orders: IntArray  # the actions by z in float64, (G, k): the least first, and the first of equals
    costs: FloatArray  # at most c, (G, k)


@once_per_problem
def grouped(problem: DecisionProblem, hidden: tuple[int, ...], objective: Objective) -> ClassOrders:
    """The groups; ValueError for more than fit `MAX_ENTRIES`, or where no number of steps joins a class."""
    partitions, k = problem.adjacency.partitions(problem.n_records), problem.n_actions
    most, together = MAX_ENTRIES // k, partitions[hidden[0]]
    if len(hidden) > 1:
        if not all(type(partitions[i]) is Partition and partitions[i].shape == together.shape for i in hidden):
            # Records of a list that differ in two features need no record between them.
            raise ValueError(f"there is no certificate for {problem.adjacency.name} over a list of records.")
        together = Partition(together.shape, tuple({axis for place in hidden for axis in partitions[place].axes}))
    cliques = together.by_clique(np.arange(problem.n_records))
    codes = np.empty(problem.n_records, dtype=np.intp)
    codes[cliques] = np.arange(len(cliques))[:, None]
    weights = [weight for _, weight in objective]
    tables = [problem.utilities if name == LOST else problem.outcomes[name] for name, _ in objective]
    floats = _objective(objective, weights, tables)
    classes, orders = codes, np.argsort(floats, axis=1, kind="stable")
    for column in orders.T[:-1] if len(cliques) <= most else ():
        codes = np.unique(codes * k + column, return_inverse=True)[1]
    some = np.unique(codes, return_index=True)[1]
    if len(some) > most:
        raise ValueError(f"a certificate takes at most {most} groups of records with {k} actions, got {len(some)}.")
    if len(floats) > most:
        if any(problem.outcomes[name].min() < 0 for name, _ in objective if name != LOST):
            raise ValueError(f"a certificate takes at most {most} records with outcomes below 0, got {len(floats)}.")
        return ClassOrders(codes, classes[some], orders[some], _costs(problem.prior, floats, len(objective), codes))
    (prior, exact, *entries), unit = as_integers(problem.prior, np.array(weights), *tables)
    sums = sums_of(prior[:, None] * _objective(objective, exact, entries), codes)
    # Division rounds once, so that the next float below is not above.
    whole = unit.denominator**3
    below = [[math.nextafter(cost / whole, -math.inf) if cost else 0.0 for cost in row] for row in sums]
    return ClassOrders(codes, classes[some], orders[some], np.array(below))


def _objective(objective: Objective, weights: Sequence[Any], tables: Sequence[Any]) -> Any:
    """The table z, (n_records, k), of floats or of integers: weight times quantity, added in the order given."""
    total: Any = 0
    for (name, _), weight, table in zip(objective, weights, tables, strict=True):
        total = total + weight * (table.max(axis=1, keepdims=True) - table if name == LOST else table)
    return total


def _costs(prior: FloatArray, floats: FloatArray, count: int, codes: IntArray) -> FloatArray:
    """c of the groups, (G, k), rounded down, from z of J quantities in floats, (n_records, k), none of them below 0.

    So an entry of z has at most J + 1 roundings, relative, and a cost, with the prior and a sum over m records, at most
    m + J + 1: it is too large by (1 + u)^(m + J + 1), u = 2^-53. With the factor 1 - (m + J + 16) u and its own three
    roundings (itself, the product, the difference) (1 + u)^(m + J + 4) (1 - (m + J + 16) u) < 1 is left. Underflow
    adds at most 2^-1075 to each of the J + 1 products of a record.
    """
    records = np.bincount(codes)[:, None]
    sums = np.stack([np.bincount(codes, prior * column) for column in floats.T], axis=1)
    return np.maximum((1 - (records + count + 16) * _HALF_ULP) * sums - records * ((count + 1) * _UNDERFLOW), 0.0)


def as_integers(*tables: FloatArray) -> tuple[list[Any], Fraction]:
    """Finite floats as exact integers (arrays of objects) in one unit, a power of two; and that unit."""
    ratios = [[number.as_integer_ratio() for number in table.ravel().tolist()] for table in tables]
    largest = max((below for each in ratios for _, below in each), default=1)
    whole = ([above * (largest // below) for above, below in each] for each in ratios)
    exact = [np.array(each, dtype=object).reshape(table.shape) for each, table in zip(whole, tables, strict=True)]
    return exact, Fraction(1, largest)


def sums_of(table: Any, places: IntArray) -> Any:
    """The sum of the rows of each place, exactly: integers, (n_rows, k) to (n_places, k)."""
    totals = np.zeros((int(places.max()) + 1, table.shape[1]), dtype=object)
    np.add.at(totals, places, table)
    return totals


def floor_of(epsilon: float) -> Fraction:
    """At most e^-epsilon, by less than 1e-38 of it; 0 beyond 1,000. `decimal` must round its exponential correctly."""
    if epsilon > _LARGEST_EPSILON:
        return Fraction(0)
    power = Context(prec=_DIGITS, Emin=-(10**9), Emax=10**9).exp(Decimal(-epsilon))
    return Fraction(power) * (1 - Fraction(1, 10 ** (_DIGITS - 2))) if epsilon else Fraction(1)


def float_below(number: Fraction) -> float:
    """The largest float that is not larger."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)

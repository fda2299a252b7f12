"""A proof that every epsilon-private policy loses something, small enough to be checked by a script that knows nothing.

The records are put into groups g, and the groups into classes K of records that are all neighbours of each other: one
class under any-record, one for each public part of the record under sensitive. Let c_ga be what the group loses if all
its records get action a: the sum of prior(x) (max u(x, .) - u(x, a)). Averaging a private policy over the records of a
group leaves it private, so every epsilon-private policy has ceilings M_Ka with

    q M_Ka <= p_ga <= M_Ka   and   sum_a p_ga = 1,   for any q <= e^-epsilon.

Weak duality: for alpha, beta >= 0 with sum_g alpha_ga <= q sum_g beta_ga over the groups of each class, for each a,
and lambda_g <= c_ga + alpha_ga - beta_ga for each a,

    sum p c >= sum p c + sum alpha (p - M) + sum beta (q M - p) >= sum_g lambda_g,

so that the sum of lambda is a bound on what every epsilon-private policy loses against the best action for each record.

What makes it a proof in spite of floating point: `optimal_certificate` rounds every number against the claim (c and
lambda down, q down), and `Certificate.holds` decides all inequalities above in rational arithmetic, without tolerance.
Differences of utilities are taken record by record, so a constant added to all utilities weakens nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from policies.adjacency import Partition
from policies.arrays import FloatArray, IntArray, non_negative
from policies.listed import Listed
from policies.optimal.classes import by_order, hiding_partitions, one_clique, solve_classes, solve_orders
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem, once_per_problem

# Groups times actions that a certificate holds at most: exact arithmetic takes a tenth of a second for them.
MAX_ENTRIES = 1 << 15

# Half the distance from 1 to the next float: no operation is off by more, relative to its result.
_ROUNDING = 2.0**-53

# More than what underflow takes from a product.
_UNDERFLOW = 2.0**-1070

# Products and sums of larger numbers are normal floats.
_SMALLEST = 2.0**-900

# e^-epsilon is computed to this many decimal digits, and lowered in the last but one.
_DIGITS = 40

# Beyond it e^-epsilon is 0 in float64.
_LARGEST_EPSILON = 1000.0


@dataclass(frozen=True)
class Certificate:
    """A proof that every epsilon-private policy loses at least `bound`; G groups, k actions.

    Attributes
    ----------
    epsilon : float
        What it is a proof for; it holds for every smaller epsilon too.
    class_epsilon : float
        epsilon, or under one-feature what it comes to between any two records of a class.
    q : float
        At most e^-class_epsilon.
    actions : tuple of str
        Names, (k,).
    codes : array of int, (n_records,)
        The group of each record.
    classes : array of int, (G,)
        The class of each group.
    orders : array of int, (G, k)
        The actions of each group, best first.
    records : array of int, (G,)
        How many records each group has.
    priors : array, (G,)
        How probable each group is.
    costs : array, (G, k)
        c, in units of utility: at most what the group loses if it gets the action.
    alpha, beta : array, (G, k)
        The multipliers of p <= M and q M <= p, in units of utility. If (epsilon, delta)-privacy is asked for, each
        unit of beta can be undercut by delta e^-epsilon.
    charges : array, (G,)
        lambda, in units of utility: the loss that the proof charges to each group.
    bound : float
        At most the sum of the charges, in units of utility.
    """

    epsilon: float
    class_epsilon: float
    q: float
    actions: tuple[str, ...]
    codes: IntArray
    classes: IntArray
    orders: IntArray
    records: IntArray
    priors: FloatArray
    costs: FloatArray
    alpha: FloatArray
    beta: FloatArray
    charges: FloatArray
    bound: float

    def holds(self, problem: DecisionProblem) -> bool:
        """Whether this is a proof for the problem: all inequalities of the module's head, in rational arithmetic.

        That the costs are not above those of the problem is decided from its floats as exact numbers while it has at
        most `MAX_ENTRIES` of them. For more, it rests on the error bound that is stated in `optimal_certificate`.
        """
        return self._is_feasible() and (problem.utilities.size > MAX_ENTRIES or self._costs_at_most(problem))

    def _is_feasible(self) -> bool:
        if not (
            self.q >= 0 and self.class_epsilon >= self.epsilon and Fraction(self.q) <= floor_of(self.class_epsilon)
        ):
            return False
        if (self.alpha < 0).any() or (self.beta < 0).any():
            return False
        (costs, alpha, beta, charges), unit = _as_integers(self.costs, self.alpha, self.beta, self.charges)
        if (charges[:, None] > costs + alpha - beta).any() or Fraction(self.bound) > sum(charges.tolist()) * unit:
            return False
        q = Fraction(self.q)
        used, freed = (_sums(table, self.classes) for table in (alpha, beta))
        return not (q.denominator * used > q.numerator * freed).any()

    def _costs_at_most(self, problem: DecisionProblem) -> bool:
        best = problem.utilities.max(axis=1, keepdims=True)
        (utilities, best), unit = _as_integers(problem.utilities, best)
        # Prior and costs are in one unit, which cancels out.
        prior, costs = _as_integers(problem.prior, self.costs)[0]
        totals = _sums(prior[:, None] * (best - utilities), self.codes)
        return not (unit.denominator * costs > unit.numerator * totals).any()

    def document(self) -> dict[str, Any]:
        """The proof for JSON; the group to which most loss is charged comes first.

        `epsilon`, `class_epsilon`, `q`, `actions` and `bound` as above, and `groups`. Each group has `class`, `order`
        (names of the actions, best first), `records`, `prior`, `lambda` and, in the order of `actions`, `costs`,
        `alpha` and `beta`.
        """
        return {
            "epsilon": self.epsilon,
            "class_epsilon": self.class_epsilon,
            "q": self.q,
            "actions": list(self.actions),
            "bound": self.bound,
            "groups": [
                {
                    "class": int(self.classes[g]),
                    "order": [self.actions[action] for action in self.orders[g]],
                    "records": int(self.records[g]),
                    "prior": float(self.priors[g]),
                    "lambda": float(self.charges[g]),
                    "costs": self.costs[g].tolist(),
                    "alpha": self.alpha[g].tolist(),
                    "beta": self.beta[g].tolist(),
                }
                for g in np.argsort(-self.charges, kind="stable")
            ],
        }


def optimal_certificate(problem: DecisionProblem, epsilon: float) -> Certificate:
    """Prove how much every epsilon-private policy loses against the best action for each record.

    The statement is about the published floats, taken as exact numbers: sum over x, a of
    prior(x) p(a|x) (max u(x, .) - u(x, a)) >= bound for every epsilon-private p. Costs are sums of terms that are not
    negative, each with two roundings; a sum over m records is off by less than (m + 2) 2^-53, relative (Higham 2002,
    Accuracy and stability of numerical algorithms, section 4.2), and is lowered by (m + 16) 2^-53.

    Under any-record and sensitive the bound is the optimum but for rounding. Under one-feature it is the best of those
    that follow from hiding one feature alone at epsilon, or all d of them at d epsilon.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    epsilon : float
        >= 0; inf proves that nothing better than the best action for each exists.

    Raises
    ------
    NotApplicableError
        A ValueError: for more than `MAX_ENTRIES` groups times actions, for more than 62 actions, or for one-feature
        over a list of records.
    ValueError
        If epsilon is negative or not a number.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> proof = optimal_certificate(problem, 1.0)  # the optimum errs with probability 1 / (1 + e)
    >>> proof.holds(problem), round(proof.bound, 6)
    (True, 0.268941)
    """
    epsilon = non_negative(epsilon, "epsilon")
    partitions = hiding_partitions(problem.adjacency, problem.n_records)
    if len(partitions) == 1:
        return _of_classes(problem, partitions[0], epsilon, epsilon)
    if isinstance(problem.adjacency, Listed):
        raise NotApplicableError(f"there is no certificate for {problem.adjacency.name} over a list of records.")
    # Records that differ in d features are d steps apart, and each step multiplies a probability by e^epsilon at most.
    all_hidden = math.nextafter(epsilon * len(partitions), math.inf)
    found = [_of_classes(problem, Partition((problem.n_records,), (0,)), epsilon, all_hidden)]
    if problem.utilities.size <= MAX_ENTRIES:
        found += [_of_classes(problem, partition, epsilon, epsilon) for partition in partitions]
    return max(found, key=lambda certificate: certificate.bound)


def floor_of(epsilon: float) -> Fraction:
    """A rational number that is at most e^-epsilon, by less than 1e-38 of it; 0 beyond 1,000.

    `decimal` rounds its exponential correctly, as its specification demands, and takes the float as it is.
    """
    if epsilon > _LARGEST_EPSILON:
        return Fraction(0)
    if epsilon == 0:
        return Fraction(1)
    power = Context(prec=_DIGITS, Emin=-(10**9), Emax=10**9).exp(Decimal(-epsilon))
    return Fraction(power) * (1 - Fraction(1, 10 ** (_DIGITS - 2)))


def rounded_down(number: Fraction) -> float:
    """The largest float that is not larger."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def _as_integers(*tables: FloatArray) -> tuple[list[Any], Fraction]:
    """Finite floats as exact Python integers (arrays of objects) in one unit, a power of two; and that unit."""
    parts = [np.frexp(table) for table in tables]
    least = min((int(powers[mantissas != 0].min()) for mantissas, powers in parts if mantissas.any()), default=0)
    whole = [
        np.ldexp(mantissas, 53).astype(np.int64).astype(object)
        * np.left_shift(1, np.where(mantissas != 0, powers - least, 0).astype(object))
        for mantissas, powers in parts
    ]
    return whole, Fraction(2) ** (least - 53)


def _sums(table: Any, places: IntArray) -> Any:
    """The sum of the rows of each place, exactly: integers, (n_rows, k) to (n_places, k)."""
    totals = np.zeros((int(places.max()) + 1, table.shape[1]), dtype=object)
    np.add.at(totals, places, table)
    return totals


@dataclass(frozen=True)
class _Groups:
    """What a certificate says of the groups at any epsilon: the attributes of the same names."""

    codes: IntArray
    classes: IntArray
    orders: IntArray
    records: IntArray
    priors: FloatArray
    costs: FloatArray


@once_per_problem
def _groups(problem: DecisionProblem, partition: Partition) -> _Groups:
    """All records of one order if there is one class, else each record by itself; NotApplicableError for too many."""
    whole = one_clique(partition)
    n_groups = len(by_order(problem).orders) if whole else problem.n_records
    if n_groups * problem.n_actions > MAX_ENTRIES:
        raise NotApplicableError(
            f"a certificate takes at most {MAX_ENTRIES // problem.n_actions} groups of records with "
            f"{problem.n_actions} actions, got {n_groups}."
        )
    if whole:
        codes, orders = by_order(problem).codes, by_order(problem).orders
        classes = np.zeros(n_groups, dtype=np.intp)
    else:
        codes = np.arange(problem.n_records)
        orders = np.argsort(-problem.utilities, axis=1, kind="stable")
        cliques = partition.by_clique(codes)
        classes = np.empty(n_groups, dtype=np.intp)
        classes[cliques] = np.arange(len(cliques))[:, None]
    records = np.bincount(codes)
    priors = np.bincount(codes, problem.prior).astype(np.float64)
    return _Groups(codes, classes, orders, records, priors, _costs(problem, codes, records))


def _of_classes(problem: DecisionProblem, partition: Partition, epsilon: float, class_epsilon: float) -> Certificate:
    """The certificate for a partition of which each clique is a class."""
    groups = _groups(problem, partition)
    costs, classes, orders = groups.costs, groups.classes, groups.orders
    q = rounded_down(floor_of(class_epsilon))
    alpha, beta = _multipliers(costs, orders, _shares(problem, partition, orders, class_epsilon))
    alpha = _feasible(alpha, beta, classes, q)
    # Three roundings, each of a number that is at most the sum of the three terms.
    exact = (costs + alpha) - beta - 8 * _ROUNDING * (costs + alpha + beta)
    charges = exact.min(axis=1)
    return Certificate(
        epsilon=epsilon,
        class_epsilon=class_epsilon,
        q=q,
        actions=tuple(problem.actions),
        codes=groups.codes,
        classes=classes,
        orders=orders,
        records=groups.records,
        priors=groups.priors,
        costs=costs,
        alpha=alpha,
        beta=beta,
        charges=charges,
        bound=math.nextafter(math.fsum(charges), -math.inf),
    )


def _costs(problem: DecisionProblem, codes: IntArray, records: IntArray) -> FloatArray:
    """c, (n_groups, k), never above what is true."""
    best = problem.utilities.max(axis=1)
    sums = [np.bincount(codes, problem.prior * (best - column)) for column in problem.utilities.T]
    lowered = (1 - (records + 16) * _ROUNDING)[:, None] * np.stack(sums, axis=1)
    costs: FloatArray = np.maximum(lowered - records[:, None] * _UNDERFLOW, 0.0)
    return costs


def costs_are_of(certificate: Certificate, problem: DecisionProblem) -> bool:
    """Whether the costs are at most those that `optimal_certificate` computes for the problem."""
    codes = certificate.codes
    if codes.shape != (problem.n_records,) or codes.min() < 0 or codes.max() >= len(certificate.costs):
        return False
    records = np.bincount(codes, minlength=len(certificate.costs))
    return bool((certificate.costs <= _costs(problem, codes, records)).all())


def _shares(problem: DecisionProblem, partition: Partition, orders: IntArray, epsilon: float) -> FloatArray:
    """The share in [0, 1] of each weight w_gT that goes into alpha, (n_groups, k).

    Entry (g, j) is for the set T of the actions of g down to its (j+1)-th best. Any shares make a proof; those of the
    optimum make the best one.
    """
    if np.isinf(epsilon):
        return np.zeros(orders.shape)
    prefixes = np.bitwise_or.accumulate(np.left_shift(1, orders), axis=1)
    if one_clique(partition):
        masks, weights, solution = solve_orders(problem, epsilon)
        return _share(masks, weights[0], solution.amounts[0], prefixes)
    shares = np.zeros(orders.shape)
    for solved in solve_classes(problem, partition, epsilon):
        for members, weights, amounts in zip(solved.records, solved.weights, solved.solution.amounts, strict=True):
            shares[members] = _share(solved.masks, weights, amounts, prefixes[members])
    return shares


def _share(masks: IntArray, weights: FloatArray, amounts: FloatArray, prefixes: IntArray) -> FloatArray:
    """amounts / weights at the sets given by `prefixes`, of the shape of these; 0 for sets that do not matter."""
    share = np.divide(amounts, weights, out=np.zeros(len(masks)), where=weights > 0)
    places = np.minimum(np.searchsorted(masks, prefixes), len(masks) - 1)
    shares: FloatArray = np.where(masks[places] == prefixes, np.clip(share, 0.0, 1.0)[places], 0.0)
    return shares


def _multipliers(costs: FloatArray, orders: IntArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alpha and beta, (n_groups, k), >= 0."""
    gaps = np.zeros_like(costs)
    gaps[:, :-1] = np.maximum(np.diff(np.take_along_axis(costs, orders, axis=1), axis=1), 0.0)
    used = gaps * shares
    left = gaps - used
    alpha, beta = np.empty_like(gaps), np.empty_like(gaps)
    # An action is in the sets from its own place on, and outside the sets before it.
    np.put_along_axis(alpha, orders, used[:, ::-1].cumsum(axis=1)[:, ::-1], axis=1)
    np.put_along_axis(beta, orders, left.cumsum(axis=1) - left, axis=1)
    return alpha, np.maximum(beta, 0.0)


def _feasible(alpha: FloatArray, beta: FloatArray, classes: IntArray, q: float) -> FloatArray:
    """Alpha made smaller where its sums, whatever their rounding, might exceed q times those of beta."""
    size = np.bincount(classes)[:, None]
    used, freed = (np.stack([np.bincount(classes, column) for column in table.T], axis=1) for table in (alpha, beta))
    most = q * freed * (1 - (2 * size + 16) * _ROUNDING)
    fits = np.divide(most, used, out=np.ones_like(used), where=used > 0)
    lowered: FloatArray = alpha * (np.minimum(fits, 1.0) * (1 - 8 * _ROUNDING))[classes]
    # Near the smallest floats a rounding is more than its share; that little proves nothing.
    return np.where(lowered > _SMALLEST, lowered, 0.0)

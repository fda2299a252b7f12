"""The epsilon-private policy of the largest worst-case benefit kept over several priors that patients may come from.

Under prior j, V_j(p) is the value of a policy, best_j that of the best action for each record and fixed_j that of the
best single action for all, under which benefit kept is 1 and 0:

    max t  such that  V_j(p) >= fixed_j + t (best_j - fixed_j) for each j:  best_j - V_j(p) <= (1 - t) unit_j

with unit_j = best_j - fixed_j. Under a prior where nothing is to be gained (best_j = fixed_j but for rounding), that
would leave one action for all as the only policy. There the loss itself is bounded: unit_j is the smallest of the gains
of the other priors, so that nobody loses more utility there than those lose who have least to gain; without any other
prior, 1 unit of utility.

For given ceilings the best row depends on the order of its actions alone, whatever the prior: where all records are
neighbours, one pass over the records serves all priors, prices and epsilons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import ROUNDING, FloatArray, IntArray, non_negative, probability_vector
from policies.optimal.classes import by_order
from policies.optimal.mixtures import Column, best_mixture
from policies.optimal.oracles import (
    ByClass,
    ByOrder,
    ByProgramme,
    Constant,
    CostRow,
    Joint,
    OrderGroups,
    Side,
    TableOracle,
    Weighted,
    hiding_of,
)
from policies.policy import NotApplicableError
from policies.problem import DecisionProblem, MaskClass, once_per_problem


@dataclass(frozen=True, eq=False)
class _Stakes:
    """What is at stake under J priors: all of it that does not depend on epsilon.

    Attributes
    ----------
    priors : array, (J, n)
    regrets : tuple of array, (k, n)
        max u - u, by columns.
    units : array, (J,)
    """

    priors: FloatArray
    regrets: tuple[FloatArray, ...]
    units: FloatArray

    @classmethod
    def of(cls, problem: DecisionProblem, priors: FloatArray) -> _Stakes:
        """Under these priors, (J, n)."""
        best = problem.utilities.max(axis=1)
        regrets = tuple(best - column for column in problem.utilities.T)
        gains = np.zeros(len(priors))
        for part in problem.classes or (None,):
            rows, columns = (slice(None), range(problem.n_actions)) if part is None else (part.rows, part.columns)
            gains += [min(float(prior[rows] @ regrets[column][rows]) for column in columns) for prior in priors]
        exists = gains > ROUNDING * (priors @ np.abs(problem.utilities).max(axis=1))
        units = np.where(exists, gains, gains[exists].min() if exists.any() else 1.0)
        return cls(priors, regrets, units)

    def among(self, part: MaskClass, rows: IntArray) -> _Stakes:
        """Those of a class, under some of the priors; the units are those of all."""
        regrets = tuple(self.regrets[action][part.rows] for action in part.columns)
        return _Stakes(self.priors[np.ix_(rows, part.rows)], regrets, self.units[rows])

    @property
    def rows(self) -> list[CostRow]:
        """What is lost under each prior."""
        return [CostRow(prior, self.regrets, float(unit)) for prior, unit in zip(self.priors, self.units, strict=True)]

    def groups(self, problem: DecisionProblem) -> OrderGroups:
        """By the order of their utilities."""
        found = by_order(problem)
        count = len(found.orders)
        worths = np.stack(
            [[np.bincount(found.codes, prior * column, count) for prior in self.priors] for column in self.regrets]
        )
        return OrderGroups(found.codes, found.columns, np.ascontiguousarray(worths.transpose(2, 0, 1)) / self.units)

    def weighted(self, problem: DecisionProblem, prices: FloatArray) -> Weighted:
        """The problem under the mixture of the priors."""
        mixed = (prices / self.units) @ self.priors
        total = float(mixed.sum())
        return Weighted(lambda records: problem.utilities.T[:, records], mixed / total, total)


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
    oracle: TableOracle
    if problem.admissible is None:
        oracle, columns = _oracle(problem, epsilon, None if priors is None else _stakes(problem, priors))
    else:
        oracle, columns = _joint(problem, epsilon, _stakes(problem, priors))
    n_priors = len(columns[0].expectations)
    columns.append(oracle.best(np.full(n_priors, 1 / n_priors))[0])
    found = best_mixture(oracle, columns, np.zeros(0))
    assert found is not None  # nothing limits it
    logs = oracle.table(found.parts, problem.n_records)
    return RobustOptimum(logs, 1 - found.value, 1 - min(found.bound, found.value), found.prices)


def _oracle(problem: DecisionProblem, epsilon: float, stakes: _Stakes | None) -> tuple[TableOracle, list[Column]]:
    """The oracle of a problem without a mask, and one action for all; at the stakes of its own priors by default."""
    partitions = hiding_of(problem, epsilon)
    oracle: TableOracle
    if len(partitions) == 1 and partitions[0].whole:
        groups = _known_groups(problem) if stakes is None else stakes.groups(problem)
        oracle = ByOrder(epsilon, lambda _: groups)
        constants = groups.worths.sum(axis=0)
    else:
        stakes = _stakes(problem, None) if stakes is None else stakes
        weighted = partial(stakes.weighted, problem)
        lost = [[float(prior @ column) for prior in stakes.priors] for column in stakes.regrets]
        constants = np.array(lost) / stakes.units
        if len(partitions) == 1:
            oracle = ByClass(epsilon, partitions[0], weighted, stakes.rows)
        else:
            oracle = ByProgramme(problem, epsilon, weighted, stakes.rows)
    return oracle, [Column(row, Constant(action, problem.n_actions)) for action, row in enumerate(constants)]


def _joint(problem: DecisionProblem, epsilon: float, stakes: _Stakes) -> tuple[TableOracle, list[Column]]:
    """The oracle of a problem with a mask: the sets of records that allow the same, at the stakes of all."""
    sides = []
    for part in problem.classes:
        if part.problem is not None:
            # The priors under which nobody of the set comes have no say in it.
            rows = np.flatnonzero(stakes.priors[:, part.rows].any(axis=1))
            oracle, constants = _oracle(part.problem, epsilon, stakes.among(part, rows))
            table = partial(oracle.table, n_records=len(part.rows))
            sides.append(Side(part, oracle, rows, np.ones(len(rows)), constants, table))
    joint = Joint(sides, len(stakes.priors), problem.n_actions, problem.best_fixed_actions)
    return joint, joint.constants()


def require_priors(problem: DecisionProblem) -> None:
    """NotApplicableError for a problem with no other priors."""
    if not problem.priors:
        raise NotApplicableError("optimal-robust needs the priors that patients may come from: the problem has none.")


def _stakes(problem: DecisionProblem, priors: Sequence[ArrayLike] | None) -> _Stakes:
    if priors is None:
        require_priors(problem)
        return _Stakes.of(problem, np.stack(list(problem.priors.values())))
    tables = [probability_vector(prior, f"priors[{i}]", problem.n_records) for i, prior in enumerate(priors)]
    return _Stakes.of(problem, np.stack(tables))


@once_per_problem
def _known_groups(problem: DecisionProblem) -> OrderGroups:
    return _stakes(problem, None).groups(problem)

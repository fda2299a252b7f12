"""The optimum where all records are neighbours: they only matter by the order in which they prefer the actions.

Averaging an epsilon-private policy over the records of one order leaves it private, and for given ceilings the best row
depends on nothing but the order. So at most k! groups stand for any number of records, whatever epsilon is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.optimal_ceilings import Ceilings, best_ceilings, ceiling_logs
from policies.optimal_sets import class_weights, members_of, preferences
from policies.per_problem import once_per_problem
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class Orders:
    """The records by the order of their actions.

    Attributes
    ----------
    codes : array of int, (n_records,)
        The group of each record.
    orders : array of int, (n_groups, k)
        Best action first.
    columns : array, (k, 1, n_groups)
        The utilities of one record of each group.
    sets : array of int, (n_sets,)
        The sets of actions that matter, as bit masks.
    set_weights : array, (1, n_sets)
        w_T, summed over the records from the gaps between their own actions, which is exact where sums of utilities
        of 1e6 would not be.
    """

    codes: IntArray
    orders: IntArray
    columns: FloatArray
    sets: IntArray
    set_weights: FloatArray


@once_per_problem
def by_order(problem: DecisionProblem) -> Orders:
    """Group the records of a problem."""
    codes = np.zeros(problem.n_records, dtype=np.intp)
    for mask in preferences(problem.utilities.T)[0]:
        # Renumbered at each action, so that the codes stay below n_records k at any number of actions.
        codes = np.unique(codes * problem.n_actions + np.bitwise_count(mask) - 1, return_inverse=True)[1]
    _, first = np.unique(codes, return_index=True)
    typical = problem.utilities[first]
    orders = np.argsort(-typical, axis=1, kind="stable")
    sets, set_weights = class_weights(problem.utilities.T[:, None, :], problem.prior[None, :])
    columns = np.ascontiguousarray(typical.T[:, None, :])
    return Orders(codes, orders, columns, sets, set_weights)


def solve_orders(problem: DecisionProblem, epsilon: float) -> tuple[IntArray, FloatArray, Ceilings]:
    """The sets of actions, (S,), their weights w_T, (1, S), and the optimum; epsilon finite, >= 0."""
    groups = by_order(problem)
    members = members_of(groups.sets, problem.n_actions)
    return groups.sets, groups.set_weights, best_ceilings(members, groups.set_weights, epsilon)


def order_logs(problem: DecisionProblem, epsilon: float) -> FloatArray:
    """log p(a|x) of the optimum if all records are neighbours, (n_records, n_actions), column-major."""
    codes = by_order(problem).codes
    table = np.empty((problem.n_records, problem.n_actions), order="F")
    for column, logs in zip(table.T, group_logs(problem, epsilon).T, strict=True):
        np.take(logs, codes, out=column)
    return table


def group_logs(problem: DecisionProblem, epsilon: float) -> FloatArray:
    """The distinct rows of `order_logs`, (n_groups, n_actions): all that its privacy depends on."""
    groups = by_order(problem)
    ceilings = solve_orders(problem, epsilon)[2].ceilings
    rows: FloatArray = ceiling_logs(groups.columns, ceilings, epsilon)[:, 0, :].T
    return rows

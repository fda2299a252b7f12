"""The optimum where every record has one clique of neighbours: any-record and sensitive, class by class.

Within a class all records are neighbours, and they only matter by the order in which they prefer the actions: averaging
an epsilon-private policy over the records of one order leaves it private, and for given ceilings the best row depends
on nothing but the order. So at most k! groups stand for any number of records, whatever epsilon is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.adjacency import Adjacency, Partition
from policies.arrays import FloatArray, IntArray
from policies.distinct import distinct_rows
from policies.optimal.ceilings import Ceilings, best_ceilings, ceiling_logs, class_weights, comes_before, members_of
from policies.policy import one_hot_logs
from policies.problem import DecisionProblem, once_per_problem

# Records, and weights w_T, that are handled at a time.
_RECORDS, _WEIGHTS = 1 << 15, 1 << 19


@dataclass(frozen=True)
class SolvedClasses:
    """Some of the classes and their optimum.

    Attributes
    ----------
    records : array of int, (n_classes, size)
        The members of each class.
    columns : array, (k, n_classes, size)
        Their utilities.
    masks : array of int, (S,)
        The sets of actions, as bit masks.
    weights : array, (n_classes, S)
        w_T, for priors divided by `units`.
    solution : Ceilings
        In the units of the weights.
    units : array, (n_classes,)
        The largest prior of each class; 0 for a class that never comes.
    """

    records: IntArray
    columns: FloatArray
    masks: IntArray
    weights: FloatArray
    solution: Ceilings
    units: FloatArray


def solve_classes(problem: DecisionProblem, partition: Partition, epsilon: float) -> Iterator[SolvedClasses]:
    """Solve the cliques of a partition, some thousands at a time; but for those where one action is best for all.

    These lose nothing by it, whatever epsilon is (`agreed_actions`).

    Parameters
    ----------
    problem : DecisionProblem
        Its own adjacency is not used.
    partition : Partition
        Its cliques are the classes.
    epsilon : float
        Finite, >= 0.

    Raises
    ------
    ValueError
        For more than 62 actions.
    """
    contested = agreed_actions(problem, partition) < 0
    cliques = partition.by_clique(np.arange(problem.n_records))[contested]
    yield from solve_cliques(lambda records: _columns(problem, records), problem.prior, cliques, epsilon)


def solve_cliques(
    columns: Callable[[IntArray], FloatArray], prior: FloatArray, cliques: IntArray, epsilon: float
) -> Iterator[SolvedClasses]:
    """Solve classes, (N, size) records, in their order; `columns` gives utilities of records, (k, *their shape)."""
    if len(cliques):
        n_actions = len(columns(cliques[:1]))
        step = max(1, min(_RECORDS // cliques.shape[1], _WEIGHTS >> min(n_actions, 20)))
        for start in range(0, len(cliques), step):
            records = cliques[start : start + step]
            utilities, priors = columns(records), prior[records]
            units = priors.max(axis=1)
            # A class that never comes is still protected; it is solved as if its members were equally likely.
            scaled = np.where(units[:, None] > 0, priors, 1.0) / np.where(units > 0, units, 1.0)[:, None]
            # The cliques of a list are filled up with repetitions of their last row: these weigh nothing.
            scaled[:, 1:][records[:, 1:] == records[:, :-1]] = 0.0
            masks, weights = class_weights(utilities, scaled)
            solution = best_ceilings(members_of(masks, n_actions), weights, epsilon)
            yield SolvedClasses(records, utilities, masks, weights, solution, units)


@once_per_problem
def agreed_actions(problem: DecisionProblem, partition: Partition) -> NDArray[np.int8]:
    """The first action that is best for all members of each clique, (n_cliques,); -1 where there is none."""
    records = partition.by_clique(np.arange(problem.n_records))
    return agreed_among(_columns(problem, records), problem.prior[records])


def agreed_among(columns: FloatArray, priors: FloatArray) -> NDArray[np.int8]:
    """As `agreed_actions`, for utilities (k, N, size) and priors (N, size) of the members.

    Members that never come have no say, unless all never come.
    """
    best = columns.max(axis=0)
    never = priors == 0
    never &= ~never.all(axis=1, keepdims=True)
    agreed = np.full(len(priors), -1, dtype=np.int8)
    for action in reversed(range(len(columns))):
        agreed[((columns[action] == best) | never).all(axis=1)] = action
    return agreed


def _columns(problem: DecisionProblem, records: IntArray) -> FloatArray:
    return np.stack([column[records] for column in problem.utilities.T])


def class_logs(problem: DecisionProblem, partition: Partition, epsilon: float) -> FloatArray:
    """log p(a|x) of the optimum if the cliques of this partition are the neighbours, (n_records, n_actions)."""
    if partition.whole:
        # All that its privacy depends on are the distinct rows, one of each group.
        groups = by_order(problem)
        solution = best_ceilings(members_of(groups.sets, problem.n_actions), groups.set_weights, epsilon)
        return of_groups(ceiling_logs(groups.columns, solution.ceilings, epsilon)[:, 0, :].T, groups.codes)
    agreed = np.empty(problem.n_records, dtype=np.intp)
    agreed[partition.by_clique(np.arange(problem.n_records))] = agreed_actions(problem, partition)[:, None]
    table = one_hot_logs(agreed, problem.n_actions)
    for solved in solve_classes(problem, partition, epsilon):
        for action, logs in enumerate(ceiling_logs(solved.columns, solved.solution.ceilings, epsilon)):
            table[solved.records, action] = logs
    return table


def greedy_value(problem: DecisionProblem) -> float:
    """The value of the best action for each record, which loses nothing."""
    return float(problem.prior @ problem.utilities.max(axis=1))


def hiding_partitions(adjacency: Adjacency, n_records: int) -> tuple[Partition, ...]:
    """The partitions that hide something: those with cliques of two or more records, or else the first."""
    partitions = adjacency.partitions(n_records)
    hiding = tuple(part for part in partitions if part.n_pairs > 0)
    return hiding or partitions[:1]


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
    found, utilities, prior = distinct_rows(problem), problem.utilities.T, problem.prior
    if found is not None:
        utilities, prior = np.stack([column[found.first] for column in utilities]), found.summed(prior)
    codes, members = order_codes(utilities)
    typical = utilities[:, members]
    orders = np.argsort(-typical.T, axis=1, kind="stable")
    sets, set_weights = class_weights(utilities[:, None, :], prior[None, :])
    columns = np.ascontiguousarray(typical[:, None, :])
    return Orders(codes if found is None else codes[found.row], orders, columns, sets, set_weights)


def order_codes(columns: FloatArray) -> tuple[IntArray, IntArray]:
    """Number the orders of preference among records: the group of each record, (n,), and a record of each group.

    Parameters
    ----------
    columns : array, (k, n)
        Utilities; of equal ones the first action precedes.
    """
    n_actions, n_records = columns.shape
    codes, count = np.zeros(n_records, dtype=np.intp), 1
    for action in range(n_actions - 1):
        # How many of the later actions precede this one: with those of the actions before, this tells the orders apart.
        codes *= n_actions - action
        count *= n_actions - action
        for other in range(action + 1, n_actions):
            codes += comes_before(columns, other, action)
        if count > n_records:
            codes, members = renumbered(codes, count)
            count = len(members)
    return renumbered(codes, count)


def renumbered(codes: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Codes below `count` by their rank among those that occur, and a place where each occurs."""
    if count > 4 * len(codes) + 64:
        known, ranks = np.unique(codes, return_inverse=True)
        count = len(known)
    else:
        rank = np.cumsum(np.bincount(codes, minlength=count) > 0) - 1
        ranks, count = rank[codes], int(rank[-1]) + 1
    where = np.empty(count, dtype=np.intp)
    where[ranks] = np.arange(len(ranks))
    return ranks, where


def of_groups(rows: FloatArray, codes: IntArray) -> FloatArray:
    """The row of each record's group, (n_groups, k) to (n_records, k), column-major."""
    table = np.empty((len(codes), rows.shape[1]), order="F")
    for column, found in zip(table.T, rows.T, strict=True):
        np.take(found, codes, out=column)
    return table

"""Each distinct row once: what is the same for many records is computed for one of them.

A policy that looks at a record's utilities alone (`Policy.row_wise`) gives records with the same utilities the same
probabilities; of the built-in scenario's 1,310,720 rows, 420,608 are distinct. Let w(r) be the prior of all records
with row r. If all records are neighbours of each other, then

- every maximum over neighbours (Delta, Gamma, the loss of a table with a row for each
  distinct row) is a maximum over pairs of distinct rows: how often a row occurs does not matter;
- every expectation is a sum over distinct rows with the weights w, and so is what a policy learns from the prior.

Rows are merged only where every bit of every utility and of every outcome agrees. So tables, sensitivities and losses
are those of the records, bit by bit, and only sums with w are rounded anew. Rows that agree after a shift stay apart,
because Delta is not shift-invariant. Under one-feature and sensitive, records with the same row have different
neighbours: there a problem is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policies.adjacency import AnyRecord
from policies.arrays import Changed, FloatArray, IntArray, equal_rows
from policies.policy import Policy
from policies.problem import DecisionProblem, once_per_problem
from policies.records import SomeRecords
from policies.sensitivity import Sensitivity


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The m distinct rows of a problem, in the order in which they first occur.

    Attributes
    ----------
    first : array of int, (m,)
        The first record with each row.
    row : array of int, (n_records,)
        The row of each record.
    """

    first: IntArray
    row: IntArray

    def summed(self, weights: FloatArray) -> FloatArray:
        """The sum over the records with each row, (n_records,) to (m,), of weights >= 0 that sum to at most 1.

        Rounded once or so, however many records share a row: the weights are split at 2^-53, and sums of multiples of
        that up to 1 are exact.
        """
        coarse = np.ldexp(np.rint(np.ldexp(weights, 53)), -53)
        sums = np.bincount(self.row, coarse) + np.bincount(self.row, weights - coarse)
        return sums.astype(np.float64, copy=False)


@dataclass(frozen=True)
class _FirstRecords(SomeRecords):
    """A row goes by the name of its first record."""

    names = ()

    def groups(self, feature: str) -> tuple[IntArray, tuple[str, ...]]:
        raise ValueError(f"unknown group {feature!r}: the records of one row may be of several groups.")


@once_per_problem
def distinct_rows(problem: DecisionProblem) -> DistinctRows | None:
    """The distinct rows of utilities, outcomes and mask, whatever the adjacency; None if no two records share one."""
    if isinstance(problem.records, _FirstRecords):
        return None  # each has a row of its own
    columns = [*(column.view(np.uint64) for column in problem.utilities.T), *problem.outcomes.keys_of_rows()]
    if problem.admissible is not None:
        columns += [column.astype(np.uint64) for column in problem.admissible.T]
    found = equal_rows(columns)
    return None if found is None else DistinctRows(*found)


def once_each(policy: Policy, problem: DecisionProblem) -> DecisionProblem:
    """The problem that a policy is computed on: that of the distinct rows, where this is proved to be the same.

    Its value, expected outcomes, privacy loss and sensitivity are those of the problem, and a table on it has the row
    `distinct_rows(problem).row[x]` for record x. Elsewhere it is the problem itself: for a policy that does not
    declare itself `row_wise`, where not all records are neighbours of each other, and where all rows are distinct.
    """
    partitions = problem.adjacency.partitions(problem.n_records)
    if policy.row_wise and len(partitions) == 1 and partitions[0].whole:
        return _problem_of_rows(problem) or problem
    return problem


def reweighted(on: DecisionProblem, problem: DecisionProblem, prior: FloatArray) -> DecisionProblem:
    """`on`, from `once_each` of the problem, for other patients: the prior is that of the problem's records."""
    found = None if on is problem else distinct_rows(problem)
    return on.with_prior(prior if found is None else found.summed(prior))


@once_per_problem
def _problem_of_rows(problem: DecisionProblem) -> DecisionProblem | None:
    found = distinct_rows(problem)
    if found is None:
        return None
    rows = DecisionProblem(
        problem.utilities[found.first],
        found.summed(problem.prior),
        AnyRecord(),
        problem.actions,
        records=_FirstRecords(problem.records, found.first),
        outcomes=problem.outcomes.of_records(found.first),
        priors=Changed(problem.priors, found.summed),
        admissible=None if problem.admissible is None else problem.admissible[found.first],
        lead=problem.lead,
    )
    # What is known of all records is not computed again: a sum that is rounded anew might pick another best action.
    rows.__dict__["fixed_values"] = problem.fixed_values
    whole = problem.sensitivity
    first, second = (
        replace(witness, record=int(found.row[witness.record]), neighbour=int(found.row[witness.neighbour]))
        for witness in (whole.witness, whole.range_witness)
    )
    rows.__dict__["sensitivity"] = Sensitivity(rows.utilities, first, second)
    return rows

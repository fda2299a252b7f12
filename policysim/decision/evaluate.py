"""Exact evaluation of action probabilities: value, rates and expected outcomes, overall and per group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from policies.arrays import FloatArray, IntArray, blocks
from policies.distinct import distinct_rows
from policies.problem import DecisionProblem
from policysim.question.words import ALL, Group


class Evaluator:
    """Evaluates tables of action probabilities on one problem.

    Parameters
    ----------
    problem : DecisionProblem
        Utilities, prior and outcomes.
    by : sequence of str, optional
        Features whose levels are evaluated one by one, beside everyone.

    Attributes
    ----------
    groups : list of Group
        Everyone first.
    metrics : list of str
        What `means` computes.
    """

    def __init__(self, problem: DecisionProblem, by: Sequence[str] = ()) -> None:
        self.problem = problem
        self.metrics = [
            "value",
            "best_action_rate",
            "worse_than_untreated",
            *(f"p_{action}" for action in problem.actions),
            *(f"expected_{name}" for name in problem.outcomes),
        ]
        levels = [problem.records.groups(feature) for feature in by]
        sizes = [len(labels) for _, labels in levels]
        self._n_cells = int(np.prod(sizes, dtype=np.intp))
        self._cells = _joint(levels, problem.n_records)
        mass = self._per_cell(problem.prior)
        self._membership, named = _membership(by, [labels for _, labels in levels], sizes)
        self._shares = self._membership @ mass
        self.groups = [Group(*name, float(share)) for name, share in zip(named, self._shares, strict=True)]

    def means(self, probabilities: FloatArray, on: DecisionProblem | None = None) -> FloatArray:
        """The mean of each metric in each group, (n_groups, n_metrics); NaN for a group of probability 0.

        Parameters
        ----------
        probabilities : array, (n_records, n_actions)
            p(a|x).
        on : DecisionProblem, optional
            What the table is of: this problem, or that of its distinct rows (`policies.distinct.once_each`).
        """
        whole = on is None or on is self.problem
        table = self.problem if on is None else on
        weights = self._weights if whole else self._weights_of_rows
        totals = np.zeros((self._n_cells, len(self.metrics)))
        for rows, of_cells in zip(blocks(table.n_records), weights, strict=True):
            totals += of_cells @ _metrics(table, rows, probabilities[rows])
        sums: FloatArray = self._membership @ totals
        means = np.full_like(sums, np.nan)
        return np.divide(sums, self._shares[:, None], out=means, where=self._shares[:, None] > 0)

    def magnitudes(self) -> FloatArray:
        """Each group's mean of a record's largest |utility|, (n_groups,): the scale of the rounding of values."""
        largest = np.maximum(self.problem.utilities.max(axis=1), -self.problem.utilities.min(axis=1))
        sums: FloatArray = self._membership @ self._per_cell(self.problem.prior * largest)
        return np.divide(sums, self._shares, out=np.full_like(sums, np.nan), where=self._shares > 0)

    @cached_property
    def _weights(self) -> list[sparse.csc_array]:
        """The prior of each record in its cell, (n_cells, n_records), in blocks of records."""
        parts = []
        for rows in blocks(self.problem.n_records):
            cells = self._cells[rows]
            entries = (self.problem.prior[rows], cells, np.arange(len(cells) + 1))
            parts.append(sparse.csc_array(entries, (self._n_cells, len(cells))))
        return parts

    @cached_property
    def _weights_of_rows(self) -> list[sparse.csc_array]:
        """The prior of the records with each distinct row in each cell, (n_cells, m), in blocks of rows."""
        found = distinct_rows(self.problem)
        assert found is not None  # else there is no other problem
        shape = (self._n_cells, len(found.first))
        weights = sparse.coo_array((self.problem.prior, (self._cells, found.row)), shape).tocsc()
        return [weights[:, rows] for rows in blocks(shape[1])]

    def _per_cell(self, weights: FloatArray) -> FloatArray:
        if self._n_cells == 1:
            return np.array([weights.sum()])
        totals: FloatArray = np.bincount(self._cells, weights, self._n_cells).astype(np.float64, copy=False)
        return totals


def _metrics(problem: DecisionProblem, rows: slice, probabilities: FloatArray) -> FloatArray:
    """Each metric of some records, (m, n_metrics); p(a|x) is (m, n_actions)."""
    utilities, best = problem.utilities[rows], problem.best_actions[rows]
    columns = [
        (probabilities * utilities).sum(axis=1),
        probabilities[np.arange(len(best)), best],
        # "Untreated" is the first action.
        (probabilities * (utilities < utilities[:, :1])).sum(axis=1),
        *probabilities.T,
        *((probabilities * expected[rows]).sum(axis=1) for expected in problem.outcomes.values()),
    ]
    return np.stack(columns, axis=1)


def _joint(levels: list[tuple[IntArray, tuple[str, ...]]], n_records: int) -> IntArray:
    """The cell of each record in the product of all groupings: each record is counted once, whatever the groups."""
    cells = np.zeros(n_records, dtype=np.intp)
    for codes, labels in levels:
        cells = cells * len(labels) + codes
    return cells


def _membership(
    by: Sequence[str], labels: list[tuple[str, ...]], sizes: list[int]
) -> tuple[NDArray[np.float64], list[tuple[str, str]]]:
    """Which cells make up which group, (n_groups, n_cells) of 0 and 1, and the groups' names; everyone first."""
    codes = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=np.intp)
    rows = [np.ones(codes.shape[1])]
    names = [(ALL, ALL)]
    for feature, feature_labels, code in zip(by, labels, codes, strict=True):
        for position, label in enumerate(feature_labels):
            rows.append((code == position).astype(np.float64))
            names.append((feature, label))
    return np.array(rows), names

"""Exact evaluation of action probabilities: value, rates and expected outcomes, overall and per group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray, blocks
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
        mass = self._per_cell(self._cells, problem.prior)
        self._membership, named = _membership(by, [labels for _, labels in levels], sizes)
        self._shares = self._membership @ mass
        self.groups = [Group(*name, float(share)) for name, share in zip(named, self._shares, strict=True)]

    def means(self, probabilities: FloatArray) -> FloatArray:
        """The mean of each metric in each group, (n_groups, n_metrics); NaN for a group of probability 0.

        Parameters
        ----------
        probabilities : array, (n_records, n_actions)
            p(a|x).
        """
        totals = np.zeros((self._n_cells, len(self.metrics)))
        for rows in blocks(self.problem.n_records):
            cells = self._cells[rows]
            for metric, column in enumerate(self._weighted(rows, probabilities[rows])):
                totals[:, metric] += self._per_cell(cells, column)
        sums: FloatArray = self._membership @ totals
        means = np.full_like(sums, np.nan)
        return np.divide(sums, self._shares[:, None], out=means, where=self._shares[:, None] > 0)

    def magnitudes(self) -> FloatArray:
        """Each group's mean of a record's largest |utility|, (n_groups,): the scale of the rounding of values."""
        largest = np.maximum(self.problem.utilities.max(axis=1), -self.problem.utilities.min(axis=1))
        sums: FloatArray = self._membership @ self._per_cell(self._cells, self.problem.prior * largest)
        return np.divide(sums, self._shares, out=np.full_like(sums, np.nan), where=self._shares > 0)

    def _weighted(self, rows: slice, probabilities: FloatArray) -> list[FloatArray]:
        """Each metric of some records, times their prior."""
        problem = self.problem
        utilities = problem.utilities[rows]
        weighted = probabilities * problem.prior[rows, None]
        best = problem.best_actions[rows, None]
        # "Untreated" is the first action.
        worse = utilities < utilities[:, :1]
        return [
            (weighted * utilities).sum(axis=1),
            np.take_along_axis(weighted, best, axis=1)[:, 0],
            (weighted * worse).sum(axis=1),
            *weighted.T,
            *((weighted * expected[rows]).sum(axis=1) for expected in problem.outcomes.values()),
        ]

    def _per_cell(self, cells: IntArray, weights: FloatArray) -> FloatArray:
        if self._n_cells == 1:
            return np.array([weights.sum()])
        totals: FloatArray = np.bincount(cells, weights=weights, minlength=self._n_cells).astype(np.float64, copy=False)
        return totals


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

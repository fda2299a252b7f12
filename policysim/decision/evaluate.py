"""Exact evaluation of action probabilities: value, rates and expected outcomes, overall and per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from policies.arrays import FloatArray, IntArray, blocks
from policies.distinct import distinct_rows
from policies.problem import DecisionProblem
from policysim.question.words import ALL
from policysim.study.sweep import Group


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
            "better_than_untreated",
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
        kinds, weights = self._of_records if whole else self._of_rows
        expected = (table.utilities, *table.outcomes.values())
        totals = np.zeros((self._n_cells * len(kinds.best), len(expected) + table.n_actions))
        for rows, of_cells in zip(blocks(table.n_records), weights, strict=True):
            totals += of_cells @ _columns([each[rows] for each in expected], probabilities[rows])
        by_kind = totals.reshape(self._n_cells, len(kinds.best), -1)
        (value, *outcomes), chosen = by_kind[..., : len(expected)].sum(axis=1).T, by_kind[..., len(expected) :]
        rates = [np.einsum("cka,ka->c", chosen, flags) for flags in (kinds.best, kinds.worse, kinds.better)]
        sums: FloatArray = self._membership @ np.stack([value, *rates, *chosen.sum(axis=1).T, *outcomes], axis=1)
        means = np.full_like(sums, np.nan)
        return np.divide(sums, self._shares[:, None], out=means, where=self._shares[:, None] > 0)

    def magnitudes(self) -> FloatArray:
        """Each group's mean of a record's largest |utility|, (n_groups,): the scale of the rounding of values."""
        largest = np.maximum(self.problem.utilities.max(axis=1), -self.problem.utilities.min(axis=1))
        sums: FloatArray = self._membership @ self._per_cell(self.problem.prior * largest)
        return np.divide(sums, self._shares, out=np.full_like(sums, np.nan), where=self._shares > 0)

    @cached_property
    def _of_records(self) -> tuple[_Kinds, list[sparse.csc_array]]:
        """The kinds of records, and the prior of each record in its cell and kind, in blocks of records."""
        kinds, parts = _Kinds.of(self.problem), []
        places, shape = self._cells * len(kinds.best) + kinds.codes, self._n_cells * len(kinds.best)
        for rows in blocks(self.problem.n_records):
            entries = (self.problem.prior[rows], places[rows], np.arange(len(places[rows]) + 1))
            parts.append(sparse.csc_array(entries, (shape, len(places[rows]))))
        return kinds, parts

    @cached_property
    def _of_rows(self) -> tuple[_Kinds, list[sparse.csc_array]]:
        """The same for the distinct rows: the prior of the records with each row, in blocks of rows."""
        kinds, found = _Kinds.of(self.problem), distinct_rows(self.problem)
        assert found is not None  # else there is no other problem
        places, shape = self._cells * len(kinds.best) + kinds.codes, self._n_cells * len(kinds.best)
        weights = sparse.coo_array((self.problem.prior, (places, found.row)), (shape, len(found.first))).tocsc()
        return kinds, [weights[:, rows] for rows in blocks(len(found.first))]

    def _per_cell(self, weights: FloatArray) -> FloatArray:
        if self._n_cells == 1:
            return np.array([weights.sum()])
        totals: FloatArray = np.bincount(self._cells, weights, self._n_cells).astype(np.float64, copy=False)
        return totals


@dataclass(frozen=True)
class _Kinds:
    """Records with the same best, worse and better actions than the first: rates are sums of p(a|x) over them.

    Attributes
    ----------
    codes : array of int, (n_records,)
        The kind of each record.
    best, worse, better : arrays of 0 and 1, (n_kinds, n_actions)
        Which action is best; which are worse, and which better, than the first, which is "untreated".
    """

    codes: IntArray
    best: FloatArray
    worse: FloatArray
    better: FloatArray

    @classmethod
    def of(cls, problem: DecisionProblem) -> _Kinds:
        """The kinds of a problem's records."""
        untreated, *others = problem.utilities.T
        codes = _renumbered(problem.best_actions)
        for column in others:
            codes = _renumbered(3 * codes + (column < untreated) + 2 * (column > untreated))
        typical = np.empty(int(codes.max()) + 1, dtype=np.intp)
        typical[codes] = np.arange(len(codes))
        utilities = problem.utilities[typical]
        best = np.arange(problem.n_actions) == problem.best_actions[typical, None]
        than_untreated = (utilities < utilities[:, :1], utilities > utilities[:, :1])
        return cls(codes, *(flags.astype(np.float64) for flags in (best, *than_untreated)))


def _renumbered(codes: IntArray) -> IntArray:
    """Those of the codes that occur, in their order, as 0, 1, ..."""
    occurs = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    occurs[codes] = True
    numbers: IntArray = np.cumsum(occurs)[codes] - 1
    return numbers


def _columns(expected: list[FloatArray], probabilities: FloatArray) -> FloatArray:
    """The expectation of each table given the record, and p(a|x), (m, n_tables + n_actions)."""
    columns = np.empty((len(probabilities), len(expected) + probabilities.shape[1]))
    for place, table in enumerate(expected):
        np.einsum("na,na->n", probabilities, table, out=columns[:, place])
    columns[:, len(expected) :] = probabilities
    return columns


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

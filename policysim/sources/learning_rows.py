"""Patients who are alike, counted together: what classifiers are trained on and judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.local import KAry, privatize
from policysim.sources.learning_patients import Patients, Split


@dataclass(frozen=True)
class Rows:
    """Distinct rows of a table of patients.

    Attributes
    ----------
    public : array, (m, d)
        Public columns as numbers.
    parts : array, (m,)
        The code of the public part.
    codes : array, (m,)
        The code of the private part, or of its report.
    design : array, (k, e)
        What the codes say, as numbers.
    outcomes : array, (m,)
        0 or 1.
    weights : array, (m,)
        How many patients have this row.
    """

    public: FloatArray
    parts: IntArray
    codes: IntArray
    design: FloatArray
    outcomes: IntArray
    weights: FloatArray

    @property
    def columns(self) -> FloatArray:
        """All columns, codes taken at their word: (m, d + e)."""
        return np.hstack([self.public, self.design[self.codes]])

    @property
    def rate(self) -> float:
        """Share of patients with the outcome."""
        return float(self.weights @ self.outcomes / self.weights.sum())


def true_rows(split: Split, patients: Patients) -> Rows:
    """The table as it is."""
    return _rows(split, *split.parts(patients.records), patients.outcomes)


def reported_rows(split: Split, patients: Patients, channel: KAry, rng: np.random.Generator) -> Rows:
    """The table with a joint report in place of the private columns. A simulation, not a release."""
    parts, values = split.parts(patients.records)
    return _rows(split, parts, np.asarray(privatize(values, channel, rng=rng), dtype=np.intp), patients.outcomes)


def _rows(split: Split, parts: IntArray, codes: IntArray, outcomes: IntArray) -> Rows:
    keys, weights = np.unique((parts * split.n_values + codes) * 2 + outcomes, return_counts=True)
    part = keys // 2 // split.n_values
    return Rows(
        public=split.public_design(part),
        parts=part,
        codes=keys // 2 % split.n_values,
        design=split.private_design,
        outcomes=keys % 2,
        weights=weights.astype(np.float64),
    )

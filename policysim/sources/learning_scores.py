"""How good predicted probabilities are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray

SCORES = ("accuracy", "auc", "brier", "calibration_error")
# Bins of predictions: finer near 0, as the outcome is rare.
EDGES = np.array([0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1])


@dataclass(frozen=True)
class Bins:
    """Predictions against what came true, per bin: patients, sum of predictions, outcomes; each (n_bins,)."""

    patients: FloatArray
    predicted: FloatArray
    outcomes: FloatArray

    def __add__(self, other: Bins) -> Bins:
        """The bins of both."""
        return Bins(self.patients + other.patients, self.predicted + other.predicted, self.outcomes + other.outcomes)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the mean over patients of |mean prediction - rate| of their bin.

        Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning.
        """
        return float(np.abs(self.predicted - self.outcomes).sum() / self.patients.sum())


def bins(predicted: FloatArray, outcomes: IntArray, weights: FloatArray) -> Bins:
    """Patients, (m,) rows that stand for `weights` of them each, sorted into the bins of their predictions."""
    place = np.clip(np.searchsorted(EDGES, predicted, side="right") - 1, 0, len(EDGES) - 2)
    return Bins(*(_sums(place, column) for column in (weights, weights * predicted, weights * outcomes)))


def _sums(place: IntArray, column: FloatArray) -> FloatArray:
    sums: FloatArray = np.bincount(place, weights=column, minlength=len(EDGES) - 1).astype(np.float64, copy=False)
    return sums


def scores(predicted: FloatArray, outcomes: IntArray, weights: FloatArray) -> dict[str, float]:
    """Accuracy at 1/2, area under the ROC curve, Brier score and expected calibration error.

    Examples
    --------
    >>> rounded = scores(np.array([0.9, 0.2, 0.2]), np.array([1, 0, 1]), np.array([1.0, 1.0, 1.0]))
    >>> {name: round(value, 4) for name, value in rounded.items()}
    {'accuracy': 0.6667, 'auc': 0.75, 'brier': 0.23, 'calibration_error': 0.2333}
    """
    # scikit-learn takes half a second to import, which no other study needs.
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    total = weights.sum()
    return {
        "accuracy": float(weights @ ((predicted > 0.5) == outcomes) / total),
        "auc": float(roc_auc_score(outcomes, predicted, sample_weight=weights)),
        "brier": float(weights @ (predicted - outcomes) ** 2 / total),
        "calibration_error": bins(predicted, outcomes, weights).calibration_error,
    }

"""A channel that randomises each feature of a record on its own: k-ary response along the axes of a product space.

Along an axis with m levels and a share e of epsilon, K = (p - q) I + q 1 1^T with q = 1 / (e^e + m - 1) and p = e^e q.
K is symmetric, so the law of reports given a record and the weights of records given a report are the same product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray, IntArray

# Neighbouring axes are multiplied into one matrix of at most this size: fewer passes over memory, few extra products.
LARGEST_MATRIX = 128

# Where even the least likely report has this log-probability, no sum of products can underflow.
LOG_SAFE = -600.0


@dataclass(frozen=True)
class FeatureChannel:
    """Independent k-ary responses on the features of a record.

    Parameters
    ----------
    shape : tuple of int
        Levels of each feature; records are numbered in C order over this shape.
    shares : tuple of float
        The share of epsilon of each feature, >= 0; inf for one that is reported as it is.
    """

    shape: tuple[int, ...]
    shares: tuple[float, ...]

    @cached_property
    def log_lies(self) -> FloatArray:
        """log q: the log-probability of each wrong level, per feature; -inf where nothing is changed."""
        return np.where(self._unchanged, -np.inf, -self._finite_shares - self._log_odds)

    @cached_property
    def log_stays(self) -> FloatArray:
        """log(p - q) = log(1 - m q), per feature: a record stays with p - q, or else is drawn anew."""
        with np.errstate(divide="ignore"):
            log_stays: FloatArray = np.log(-np.expm1(-self._finite_shares)) - self._log_odds
        return np.where(self._unchanged, 0.0, log_stays)

    @property
    def log_least(self) -> float:
        """The log-probability of the least likely report that is possible."""
        return float(self.log_lies[np.isfinite(self.log_lies)].sum())

    def apply(self, column: FloatArray) -> FloatArray:
        """sum over y of K(y|x) column[y] for every x; (n_records,) to (n_records,). All terms have column's signs."""
        for levels, matrix, stay, lie in self._groups:
            # Contract the first group of axes and move it to the end: after all groups the order is as it was.
            grid = column.reshape(levels, -1)
            rotated = (stay * grid + lie * grid.sum(axis=0)).T if matrix is None else grid.T @ matrix
            column = np.ascontiguousarray(rotated).reshape(-1)
        return column

    def apply_to_logs(self, column: FloatArray) -> FloatArray:
        """The same for logarithms of terms >= 0: slower, and safe where `apply` would underflow."""
        for levels, log_stay, log_lie in zip(self.shape, self.log_stays, self.log_lies, strict=True):
            grid = column.reshape(levels, -1)
            if log_lie > -np.inf:
                grid = np.logaddexp(grid + log_stay, np.logaddexp.reduce(grid, axis=0) + log_lie)
            column = np.ascontiguousarray(grid.T).reshape(-1)
        return column

    def sample(self, records: IntArray, rng: np.random.Generator) -> IntArray:
        """One report for each record index, (m,): with probability m q a level is drawn anew, else it stays."""
        reported = []
        for place, levels, stay in zip(
            np.unravel_index(records, self.shape), self.shape, np.exp(self.log_stays), strict=True
        ):
            redrawn = rng.random(len(records)) >= stay
            reported.append(np.where(redrawn, rng.integers(levels, size=len(records)), place))
        reports: IntArray = np.ravel_multi_index(tuple(reported), self.shape)
        return reports

    @cached_property
    def _unchanged(self) -> NDArray[np.bool_]:
        unchanged: NDArray[np.bool_] = np.isinf(np.array(self.shares)) | (np.array(self.shape) == 1)
        return unchanged

    @cached_property
    def _finite_shares(self) -> FloatArray:
        return np.where(self._unchanged, 0.0, self.shares)

    @cached_property
    def _log_odds(self) -> FloatArray:
        """log(1 + (m - 1) e^-e), which is -log p."""
        log_odds: FloatArray = np.log1p((np.array(self.shape) - 1) * np.exp(-self._finite_shares))
        return log_odds

    @cached_property
    def _groups(self) -> list[tuple[int, FloatArray | None, float, float]]:
        """(levels, matrix, stay, lie) for runs of axes; a long axis has no matrix, only its p - q and q."""
        groups: list[tuple[int, FloatArray | None, float, float]] = []
        run = np.ones((1, 1))
        for levels, stay, lie in zip(self.shape, np.exp(self.log_stays), np.exp(self.log_lies), strict=True):
            if len(run) > 1 and len(run) * levels > LARGEST_MATRIX:
                groups.append((len(run), run, 1.0, 0.0))
                run = np.ones((1, 1))
            if levels > LARGEST_MATRIX:
                groups.append((levels, None, float(stay), float(lie)))
            else:
                run = np.kron(run, stay * np.eye(levels) + lie)
        return [*groups, (len(run), run, 1.0, 0.0)]

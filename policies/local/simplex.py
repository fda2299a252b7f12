"""The nearest proportions: Euclidean projection onto the probability simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray


def project_onto_simplex(points: ArrayLike) -> FloatArray:
    """The proportions nearest to each point: max(x - t, 0), with the t that makes them sum to 1.

    Parameters
    ----------
    points : array, (..., k)
        Finite numbers.

    Returns
    -------
    array, (..., k)
        >= 0, summing to 1.

    Raises
    ------
    ValueError
        For numbers that are not finite, or none.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer & Chandra (2008), Efficient projections onto the l1-ball, figure 1.
    Wang & Carreira-Perpinan (2013), Projection onto the probability simplex, algorithm 1.

    Examples
    --------
    >>> project_onto_simplex([0.75, 0.5, -0.25])
    array([0.625, 0.375, 0.   ])
    """
    x: FloatArray = np.asarray(points, dtype=np.float64)
    if x.ndim < 1 or x.shape[-1] < 1 or not np.isfinite(x).all():
        raise ValueError(f"points must be (..., k) finite numbers, got {points!r}.")
    x = x - x.max(axis=-1, keepdims=True)  # moving a point along (1, ..., 1) changes nothing, and large ones round less
    falling = -np.sort(-x, axis=-1)
    shifts = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, x.shape[-1] + 1)
    kept = np.sum(falling > shifts, axis=-1, keepdims=True)
    return np.maximum(x - np.take_along_axis(shifts, kept - 1, axis=-1), 0)

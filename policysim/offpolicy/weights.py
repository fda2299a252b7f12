"""Importance weights: how much more often the evaluated policy would have done what was done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np

from policies.arrays import FloatArray
from policysim.offpolicy.logged import LoggedData


@dataclass(frozen=True, eq=False)
class Weights:
    """Importance weights of a log's rows under an evaluated policy.

    Attributes
    ----------
    raw : array, (n_rows,)
        w = probability of the logged action under the evaluated policy / its propensity.
    used : array, (n_rows,)
        min(w, clip), with which the estimates are made; `raw` itself without a clip.
    """

    raw: FloatArray
    used: FloatArray

    @cached_property
    def ess(self) -> float:
        """The effective sample size (sum w)^2 / sum w^2 of the weights in use (Kish 1965); 0 if all weights are 0."""
        square = float(self.used @ self.used)
        return float(self.used.sum()) ** 2 / square if square > 0 else 0.0

    @property
    def largest(self) -> float:
        """The largest weight, before clipping."""
        return float(self.raw.max())

    @property
    def clipped_share(self) -> float:
        """The share of the weight that clipping cut off: 1 - sum min(w, clip) / sum w."""
        total = float(self.raw.sum())
        return 1 - float(self.used.sum()) / total if self.used is not self.raw and total > 0 else 0.0


def importance_weights(log: LoggedData, probabilities: FloatArray, clip: float | None = None) -> Weights:
    """The weights of a log's rows for p(a|x) of the evaluated policy, (n_rows, k).

    Parameters
    ----------
    clip : float, optional
        The most that a weight may be (Ionides 2008, Truncated importance sampling): less variance, but a bias.

    Raises
    ------
    ValueError
        For a clip that is not > 0 and finite.
    """
    if clip is not None and not _is_bound(clip):
        raise ValueError(f"clip must be > 0 and finite, got clip={clip!r}.")
    raw = log.of_taken(probabilities) / log.propensities
    return Weights(raw, raw if clip is None else np.minimum(raw, clip))


def largest_weights(log: LoggedData, weights: FloatArray) -> FloatArray:
    """The largest weight of each action's rows, (k,); 0 of an action that is never logged."""
    # A product with 0 and 1 is three times as fast as picking an action's rows.
    return np.array([(weights * (log.actions == action)).max() for action in range(log.n_actions)])


def _is_bound(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and 0 < float(value) < np.inf

"""OffPolicyEstimate: a value with what it takes to judge it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OffPolicyEstimate:
    """What a policy is worth, estimated from a log.

    Attributes
    ----------
    value : float
        The expected reward per patient, in the reward's unit.
    standard_error : float
        Of the value, in the same unit.
    interval : tuple of float
        Lower and upper end of the 95 % interval: value -+ q standard errors, q = 1.96 or more if the rows are skewed
        (`estimators.Moments.quantile`), or for "dm" that of Student's t with K - 1 degrees of freedom.
    ess : float
        Effective sample size (sum w)^2 / sum w^2 of the importance weights.
    largest_weight : float
        Before clipping.
    clipped_share : float
        The share of the total weight that clipping cut off; 0 without a clip.
    warnings : tuple of str
        What may be wrong with it, a sentence each: missing overlap first.
    estimator : str
        "ips", "snips", "dm" or "dr".
    n_rows : int
        Rows of the log.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    ess: float
    largest_weight: float
    clipped_share: float
    warnings: tuple[str, ...]
    estimator: str
    n_rows: int

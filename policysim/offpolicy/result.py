"""OffPolicyEstimate: a value with what it takes to judge it."""

from __future__ import annotations

from dataclasses import dataclass

from policies.html_table import html_table


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

    def _repr_html_(self) -> str:
        """What a notebook shows: the value with its interval, what it rests on, and what may be wrong with it."""
        rows: list[tuple[str, object]] = [
            ("value per patient", self.value),
            ("standard error", self.standard_error),
            ("95 % interval", f"{self.interval[0]:.6g} to {self.interval[1]:.6g}"),
            ("rows", self.n_rows),
            ("effective sample size", self.ess),
            ("largest weight", self.largest_weight),
            ("clipped share of the weight", self.clipped_share),
            *(("warning", warning) for warning in self.warnings),
        ]
        return html_table(f"value estimated from a log ({self.estimator})", rows)

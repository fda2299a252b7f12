"""Outcomes of which some are missing or censored, made numbers for all rows that may be averaged.

Whether an outcome is observed is modelled by the treatment and the covariates, as are the outcome itself and the
hazards of censoring (`outcome_models`, `censoring`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from policies.arrays import BoolArray, FloatArray, IntArray
from policysim.logs.adjusters import Covariates
from policysim.logs.censoring import by_arm
from policysim.logs.log_frame import LoggedData, Observed
from policysim.logs.log_source import CONSTANT
from policysim.logs.outcome_models import FEWEST_ROWS, PRODUCTS, predicted_without
from policysim.logs.treatments import dealt_parts, estimate_propensities


@dataclass(frozen=True, eq=False)
class Incomplete:
    """What the outcomes of a log are modelled by.

    Attributes
    ----------
    data : LoggedData
        Treatments, propensities and counts of all rows with a treatment; its rewards are not looked at.
    covariates : Covariates
        Without a column, an arm's outcomes are modelled by the arm alone.
    parts : array of int, (n_rows,)
        Rows of the same part are predicted by models that were fitted without them.
    known_chances : dict of bytes to array, (n_rows,)
        How probably outcomes are observed, by which are.
    """

    data: LoggedData
    covariates: Covariates
    parts: IntArray
    known_chances: dict[bytes, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, data: LoggedData, covariates: Covariates, seen: BoolArray, parts: IntArray | None = None) -> Incomplete:
        """With rows dealt into parts so that each has its share of an arm's outcomes, observed and not."""
        if parts is None:
            parts = dealt_parts(2 * data.actions + seen, clusters=data.clusters)
        return cls(data, covariates, parts)

    def predicted(self, data: LoggedData, name: str) -> FloatArray:
        """q(x, a) of each row, fitted without its part to what is known by an outcome model, (n_rows, k)."""
        covariates = self.covariates.rows
        return predicted_without(name if covariates.shape[1] else CONSTANT, covariates, data, self.parts)

    def completed(self, outcomes: FloatArray, known: Observed, seen: BoolArray) -> LoggedData:
        """The log with numbers for all rows, made from those that have an outcome.

        The outcome is modelled by ridge regression with pairwise products. Parameters are those of
        `with_missing`.
        """
        if seen.all():
            return replace(self.data, rewards=outcomes, observed=known)
        chances = self._chances(seen)
        weights = np.where(seen, known.weights / chances, 0.0)
        fitted_to = replace(self.data, observed=Observed(np.where(seen, known.rewards, 0.0), weights))
        predicted = self.data.of_taken(self.predicted(fitted_to, PRODUCTS))
        return replace(fitted_to, rewards=with_missing(outcomes, seen, chances, predicted))

    def _chances(self, seen: BoolArray) -> FloatArray:
        """`estimate_observed`, once for outcomes that are missing in the same rows."""
        key = seen.tobytes()
        if key not in self.known_chances:
            parts = None if self.data.counts is None else self.parts
            self.known_chances[key] = estimate_observed(self.covariates, self.data, seen, parts)
        return self.known_chances[key]

    def column(self, outcomes: FloatArray) -> LoggedData:
        """The same of a column, NaN where it is missing."""
        seen = ~np.isnan(outcomes)
        if seen.all():
            return replace(self.data, rewards=outcomes, observed=None)
        return self.completed(outcomes, Observed(outcomes, seen.astype(np.float64)), seen)

    def at_horizons(self, followed: pd.DataFrame, horizons: Sequence[float]) -> tuple[list[LoggedData], pd.DataFrame]:
        """Being free of an event at each horizon; and how much is censored, `censoring.CENSORING`.

        `followed` is what `censoring.read_times` read.
        """
        pseudo_outcomes, table = by_arm(followed, horizons, self.data, self.covariates.rows, self.parts)
        seen = followed["time"].notna().to_numpy()
        return [self.completed(pseudo, known, seen) for pseudo, known in pseudo_outcomes], table


def estimate_observed(
    covariates: Covariates, data: LoggedData, observed: BoolArray, parts: IntArray | None = None
) -> FloatArray:
    """The probability that the outcome of each row is observed, given its treatment and covariates, (n_rows,).

    In each arm by the stacked classifiers of `estimate_propensities`, cross-fitted: where few outcomes are missing, a
    single regression with many columns makes some of these probabilities tiny. In an arm where fewer than ten outcomes
    are missing, or fewer than ten are not, or all of either are in one part, it is the share of those that are
    observed. Arguments are those of `estimate_propensities`; `observed` says which rows have an outcome. Only in these
    the number is of use: in the others it is the probability that the outcome is missing.
    """
    chances = np.ones(data.n_rows)
    for action in np.unique(data.actions):
        rows = np.flatnonzero(data.actions == action)
        codes = observed[rows].astype(np.intp)
        arm = replace(data.of(rows), actions=codes, names=("missing", "observed"))
        sizes = arm.by_action()
        parts_of_arm = dealt_parts(codes, clusters=arm.clusters) if parts is None else parts[rows]
        # A part must leave some of both to the others: of clusters, one may have all that are missing.
        in_one_part = min(len(np.unique(parts_of_arm[codes == code])) for code in (0, 1)) < 2
        if in_one_part or sizes.min() < FEWEST_ROWS or not covariates.patients.shape[1]:
            chances[rows] = sizes[codes] / sizes.sum()
        else:
            chances[rows] = estimate_propensities(covariates.of(rows), arm, parts_of_arm)
    return chances


def with_missing(outcomes: FloatArray, seen: BoolArray, chances: FloatArray, predicted: FloatArray) -> FloatArray:
    """One number for each row, also for those without an outcome, whose mean is that of the outcomes of all, (n_rows,).

    Parameters
    ----------
    outcomes : array, (n_rows,)
        Any number where it is missing. Under censoring, `censoring.pseudo_outcomes`.
    seen : array of bool, (n_rows,)
        Which rows have one.
    chances : array, (n_rows,)
        r(a, x), the probability that the outcome is observed (`estimate_observed`).
    predicted : array, (n_rows,)
        q(x, a) of the treatment that was given, fitted without the row.

    Notes
    -----
    It is q(x, a) + R (Y - q(x, a)) / r(a, x), R whether the outcome Y is observed: its mean given treatment and
    covariates is that of the outcome if either r or q is right (Robins, Rotnitzky & Zhao 1994). In a doubly robust
    score, q(x, .) again, a residual then has the weight R / (e r) in place of 1 / e, and rows without an outcome count
    for the score's direct part.
    """
    pseudo = predicted.copy()
    pseudo[seen] += (outcomes[seen] - predicted[seen]) / chances[seen]
    return pseudo

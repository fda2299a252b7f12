"""Outcomes of which some are missing or censored, made numbers for all rows that may be averaged.

Whether an outcome is observed is modelled by the treatment and the covariates, as are the outcome itself and the
hazards of censoring: `treatments.estimate_observed`, `outcome_models`, `hazards`.
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
from policysim.logs.outcome_models import PRODUCTS, predicted_without, with_missing
from policysim.logs.treatments import dealt_parts, estimate_observed


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
        `outcome_models.with_missing`.
        """
        if seen.all():
            return replace(self.data, rewards=outcomes, observed=known)
        chances = self._chances(seen)
        weights = np.where(seen, known.weights / chances, 0.0)
        fitted_to = replace(self.data, observed=Observed(np.where(seen, known.rewards, 0.0), weights))
        predicted = self.data.of_taken(self.predicted(fitted_to, PRODUCTS))
        return replace(fitted_to, rewards=with_missing(outcomes, seen, chances, predicted))

    def _chances(self, seen: BoolArray) -> FloatArray:
        """`treatments.estimate_observed`, once for outcomes that are missing in the same rows."""
        key = seen.tobytes()
        if key not in self.known_chances:
            self.known_chances[key] = estimate_observed(
                self.covariates.patients,
                self.covariates.groups,
                self.data.actions,
                seen,
                counts=self.data.counts,
                parts=None if self.data.counts is None else self.parts,
                clusters=self.data.clusters,
            )
        return self.known_chances[key]

    def column(self, outcomes: FloatArray) -> LoggedData:
        """The same of a column, NaN where it is missing."""
        seen = ~np.isnan(outcomes)
        if seen.all():
            return replace(self.data, rewards=outcomes, observed=None)
        return self.completed(outcomes, Observed(outcomes, seen.astype(np.float64)), seen)

    def at_horizons(
        self, times: tuple[FloatArray, IntArray], horizons: Sequence[float]
    ) -> tuple[list[LoggedData], pd.DataFrame]:
        """Being free of an event at each horizon; and how much is censored, `censoring.CENSORING`.

        `times` are NaN in rows that have none; with them, what happened then.
        """
        seen = ~np.isnan(times[0])
        rows = np.flatnonzero(seen)
        followed = times[0][rows], times[1][rows]
        covariates = self.covariates.rows[rows]
        found, table = by_arm(followed, horizons, self.data.of(rows), covariates, self.parts[rows])
        completed = []
        for pseudo, known in found:
            whole = np.zeros((3, len(seen)))
            whole[:, rows] = pseudo, known.rewards, known.weights
            completed.append(self.completed(whole[0], Observed(whole[1], whole[2]), seen))
        return completed, table

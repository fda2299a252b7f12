"""How much sooner an event comes to some patients than to others of their arm: proportional hazards (Cox 1972).

What follows from hazards, survival and weights for censoring, is in `censoring`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from policies.arrays import ROUNDING, BoolArray, FloatArray, IntArray
from policysim.logs.outcome_models import one_thread, with_products

# Ridge penalties of the slopes, in events.
PENALTIES = (300.0, 30.0, 3.0)
# Of fewer events, or fewer patients without one, no slope is fitted.
FEWEST = 10
# Of more rows, slopes are fitted to so many, drawn at random: their error is then far below that of the arm.
MOST_FITTED = 20_000


def relative_hazards(
    covariates: FloatArray, ranks: IntArray, happened: BoolArray, parts: IntArray, counts: IntArray | None = None
) -> FloatArray:
    """The logarithm of each patient's hazard over that of a mean patient of the arm, (n,), by a model without the row.

    Parameters
    ----------
    covariates : array, (n, n_covariates)
        Of the patients of one arm.
    ranks : array of int, (n,)
        The order of their times; equal ones are ties.
    happened : array of bool, (n,)
        Whether what the hazard is of happened then.
    parts : array of int, (n,)
        Rows of the same part are predicted by a model that was fitted without them.
    counts : array of int, (n,), optional
        How many patients each row stands for.

    Returns
    -------
    array, (n,)
        All 0 where no model predicts held-out rows better than the arm alone does: then everything that is made of
        them is what Kaplan and Meier's estimators say.

    Notes
    -----
    Ridge regression by the partial likelihood, ties as Breslow (1974) has them; on the covariates, or on their pairwise
    products as well. Penalty and covariates are those of the largest cross-validated partial likelihood (Verweij & van
    Houwelingen 1993, Cross-validation in survival analysis).
    """
    each = np.ones(len(ranks)) if counts is None else counts.astype(np.float64)
    nothing = np.zeros(len(ranks))
    centre, spread = covariates.mean(axis=0), covariates.std(axis=0)
    varies = spread > 10 * ROUNDING * np.abs(centre)
    if not varies.any() or min(float(each[happened].sum()), float(each[~happened].sum())) < FEWEST:
        return nothing
    scaled = (covariates[:, varies] - centre[varies]) / spread[varies]
    designs = {design.shape[1]: design for design in (scaled, with_products(scaled))}
    rows = np.arange(len(ranks))
    if len(rows) > MOST_FITTED:
        rows = np.sort(np.random.default_rng(0).choice(len(ranks), MOST_FITTED, replace=False))
    whole = Likelihood.of(ranks[rows], happened[rows], each[rows])
    folds = [(part, parts == part, rows[parts[rows] != part]) for part in np.unique(parts)]
    fitted = [(own, rest, Likelihood.of(ranks[rest], happened[rest], each[rest])) for _, own, rest in folds]
    best, found = (
        sum(whole.of_slopes(nothing[rows]) - some.of_slopes(nothing[rest]) for _, rest, some in fitted),
        nothing,
    )
    for design in designs.values():
        slopes = np.zeros((len(fitted), design.shape[1]))
        for penalty in PENALTIES:
            gained, relative = 0.0, np.zeros(len(ranks))
            for place, (own, rest, some) in enumerate(fitted):
                with one_thread():  # of so small products
                    slopes[place] = some.fit(design[rest], penalty, slopes[place])
                gained += whole.of_slopes(design[rows] @ slopes[place]) - some.of_slopes(design[rest] @ slopes[place])
                relative[own] = design[own] @ slopes[place]
            if gained > best:
                best, found = gained, relative
    return found


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Cox's partial likelihood of some rows.

    Attributes
    ----------
    place : array of int, (n,)
        Of each row among the distinct times.
    events : array, (n,)
        How many patients of the row the event happened to.
    each : array, (n,)
        How many patients the row stands for.
    at_time : array, (m,)
        How many events there are at each time.
    """

    place: IntArray
    events: FloatArray
    each: FloatArray
    at_time: FloatArray

    @classmethod
    def of(cls, ranks: IntArray, happened: BoolArray, each: FloatArray) -> Likelihood:
        """From the order of times, whether it was the event, and how many patients each row stands for."""
        place = np.unique(ranks, return_inverse=True)[1]
        events = np.where(happened, each, 0.0)
        at_time: FloatArray = np.bincount(place, events).astype(np.float64)
        return cls(place, events, each, at_time)

    def of_slopes(self, relative: FloatArray) -> float:
        """The logarithm of the likelihood, where hazards are exp(relative) times that of the arm, (n,)."""
        at_risk = self._at_risk(self.each * np.exp(relative))
        seen = self.at_time > 0
        return float(self.events @ relative - self.at_time[seen] @ np.log(at_risk[seen]))

    def fit(self, design: FloatArray, penalty: float, start: FloatArray) -> FloatArray:
        """The slopes of the largest likelihood less penalty / 2 times the sum of their squares, (n_columns,)."""

        def loss(slopes: FloatArray) -> tuple[float, FloatArray]:
            relative = np.clip(design @ slopes, -30, 30)
            hazards = self.each * np.exp(relative)
            at_risk = self._at_risk(hazards)
            seen = self.at_time > 0
            value = self.events @ relative - self.at_time[seen] @ np.log(at_risk[seen])
            increments = np.divide(self.at_time, at_risk, out=np.zeros(len(at_risk)), where=seen)
            residuals = self.events - hazards * np.cumsum(increments)[self.place]
            return float(penalty / 2 * slopes @ slopes - value), penalty * slopes - design.T @ residuals

        fitted: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
        return fitted

    def _at_risk(self, hazards: FloatArray) -> FloatArray:
        """The hazards of all who are at risk at each time, (m,)."""
        summed: FloatArray = np.bincount(self.place, hazards)[::-1].cumsum()[::-1]
        return summed

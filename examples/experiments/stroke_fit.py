"""Hazards and weights of the scenario `stroke`, fitted to patients of the International Stroke Trial.

The hazards are those of the language of scenarios: P(event) = 1 - exp(-baseline R ratio), R the product of the relative
risks by features and the ratio that of the treatment. This is complementary log-log regression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from examples.experiments.stroke_trial import (
    ARMS,
    DEATH,
    DEFICITS,
    EVENTS,
    FEATURES,
    OUTCOMES,
    FloatArray,
    given,
    indicators,
    levels_of,
)

# Standard deviation of the normal prior of a log relative risk: 95 % of them within a quarter and four.
PRIOR_SPREAD = np.log(2)
TOLERANCE = 1e-9  # of a logarithm
# What each state at six months loses (0 recovered, 1 dead): the stated value, and the ends of the range. Means of
# 1 - utility of the modified Rankin scale: 1 and 2 are not recovered but independent, 3 to 5 dependent.
LOSSES = {
    "stated": {"recovered": 0.0, "not recovered": 0.165, "dependent": 0.673, "dead": 1.0},
    "mild": {"recovered": 0.0, "not recovered": 0.09, "dependent": 0.35, "dead": 1.0},
    "severe": {"recovered": 0.0, "not recovered": 0.24, "dependent": 1.0, "dead": 1.0},
}
Z = 1.96  # of a 95 % interval


# Columns of a design before the indicators of levels: the constant, and a drug each.
N_FIXED = 1 + len(ARMS["a3"])


def design_of(levels: FloatArray, treated: NDArray[np.bool_]) -> FloatArray:
    """What hazards are fitted to: a constant, who got each drug, (n, 2), and the indicators of all levels."""
    return np.column_stack([np.ones(len(levels)), treated, levels])


def precision_of(design: FloatArray) -> FloatArray:
    """Of the priors: none for the constant and for treatments."""
    return np.repeat([0.0, PRIOR_SPREAD**-2], [N_FIXED, design.shape[1] - N_FIXED])


@dataclass(frozen=True)
class Fit:
    """Complementary log-log regression: estimates, their covariance, and the log-likelihood that they attain."""

    estimates: FloatArray
    covariance: FloatArray
    log_likelihood: float


def fit(
    design: FloatArray,
    happened: FloatArray,
    precision: FloatArray,
    counts: FloatArray | None = None,
    start: FloatArray | None = None,
) -> Fit:
    """P = 1 - exp(-exp(design @ b)) by Fisher's scoring, with independent normal priors of mean 0 on b.

    The score of a patient is (y - P) h / P and the information h² exp(-h) / P, with h = exp(design @ b).

    Parameters
    ----------
    design : array, (n, p)
        Its first column is constant.
    happened : array, (n,)
        0 or 1; of rows that are several patients, how many of them had the event.
    precision : array, (p,)
        1 / variance of the priors; 0 where there is none.
    counts : array, (n,), optional
        How many patients a row is; one by default.
    start : array, (p,), optional
        Where the search begins; at no effects by default.
    """
    counts = np.ones(len(happened)) if counts is None else counts

    def log_posterior(coefficients: FloatArray) -> float:
        hazard = np.exp(design @ coefficients)
        likelihood = happened @ np.log(-np.expm1(-hazard)) - (counts - happened) @ hazard
        return float(likelihood - precision @ coefficients**2 / 2)

    found = np.zeros(design.shape[1]) if start is None else start
    if start is None:
        found[0] = np.log(-np.log1p(-happened.sum() / counts.sum()))
    for _ in range(100):
        hazard = np.exp(design @ found)
        chance = -np.expm1(-hazard)
        score = design.T @ ((happened - counts * chance) * hazard / chance) - precision * found
        information = (design.T * (counts * hazard**2 * np.exp(-hazard) / chance)) @ design + np.diag(precision)
        step = np.linalg.solve(information, score)
        if np.abs(step).max() < TOLERANCE:
            return Fit(found, np.linalg.inv(information), log_posterior(found) + float(precision @ found**2) / 2)
        step *= min(1.0, 2.0 / np.abs(step).max())
        # A step that goes too far is shortened.
        while log_posterior(found + step) < log_posterior(found) and np.abs(step).max() > TOLERANCE:
            step /= 2
        found = found + step
    raise ArithmeticError("the fit does not converge")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def exp(cls, log: float, variance: float) -> Estimate:
        """From a logarithm and its variance."""
        return cls(*np.exp(log + np.sqrt(variance) * np.array([0, -Z, Z])))

    def __str__(self) -> str:
        """As the file has it."""
        return f"{{ value = {self.value:.3g}, interval = [{self.low:.3g}, {self.high:.3g}] }}"


@dataclass(frozen=True)
class Hazard:
    """What was fitted to an outcome: baseline of the most common levels, ratios of treatments, relative risks."""

    baseline: Estimate
    ratios: Mapping[str, Estimate]
    risks: Mapping[str, list[float]]
    combined: float  # p-value of a departure from the product of the two ratios in those who got both
    estimates: FloatArray  # of the regression that it is made of


def most_common(patients: pd.DataFrame) -> dict[str, int]:
    """The place of the most common level of each feature."""
    return {feature: int(indicators(patients, [feature]).sum(axis=0).argmax()) for feature in FEATURES}


def relative_risks(estimates: FloatArray, references: Mapping[str, int]) -> dict[str, list[float]]:
    """Of each level, against the reference of its feature."""
    risks, start = {}, N_FIXED
    for feature in FEATURES:
        logs = estimates[start : start + len(levels_of(feature))]
        risks[feature] = np.exp(logs - logs[references[feature]]).tolist()
        start += len(logs)
    return risks


def reference_row(references: Mapping[str, int]) -> FloatArray:
    """The row of a design for an untreated patient with the reference of each feature."""
    own = [np.arange(len(levels_of(feature))) == references[feature] for feature in FEATURES]
    return np.concatenate([[1.0], np.zeros(N_FIXED - 1), *own])


def fit_hazard(patients: pd.DataFrame, outcome: str) -> Hazard:
    """The hazard of an outcome."""
    design = design_of(indicators(patients), given(patients))
    happened = patients[outcome].to_numpy(dtype=np.float64)
    precision = precision_of(design)
    found = fit(design, happened, precision)
    with_both = fit(np.column_stack([design, design[:, 1] * design[:, 2]]), happened, np.append(precision, 0.0))
    references = most_common(patients)
    reference = reference_row(references)
    return Hazard(
        baseline=Estimate.exp(float(reference @ found.estimates), float(reference @ found.covariance @ reference)),
        ratios={
            drug: Estimate.exp(float(found.estimates[1 + place]), float(found.covariance[1 + place, 1 + place]))
            for place, drug in enumerate(ARMS["a3"])
        },
        risks=relative_risks(found.estimates, references),
        combined=float(chi2.sf(max(0.0, 2 * (with_both.log_likelihood - found.log_likelihood)), 1)),
        estimates=found.estimates,
    )


def refits(patients: pd.DataFrame, found: Mapping[str, Hazard], seed: int, draws: int) -> Iterator[dict[str, Any]]:
    """Everything that is fitted, fitted again to patients who are drawn anew, with replacement, within each arm.

    All arms are drawn at once, and all outcomes are fitted to the same patients: what is estimated together, or against
    the same controls, moves together (the bootstrap; Efron & Tibshirani 1993). What a state at six months loses is
    drawn, too: evenly between the mild end and the severe one.

    Parameters
    ----------
    patients : DataFrame
        As records.
    found : mapping of str to Hazard
        Each outcome's, fitted to them: where the search begins.
    seed, draws : int

    Yields
    ------
    dict
        The estimates of each outcome, (p,), by its name, and "weights", a mapping of event to number.
    """
    rng = np.random.default_rng(seed)
    # Patients who are alike, and in one arm, are one row of the fit.
    design, row = np.unique(design_of(indicators(patients), given(patients)), axis=0, return_inverse=True)
    precision, columns = precision_of(design), {each: patients[each].to_numpy(dtype=np.float64) for each in OUTCOMES}
    arms, lost = [np.flatnonzero(patients["arm"] == arm) for arm in ARMS], Lost.of(patients)
    mild, severe = ({**LOSSES[end]} for end in ("mild", "severe"))
    for _ in range(draws):
        drawn = np.concatenate([rng.choice(of_arm, len(of_arm)) for of_arm in arms])
        often = np.bincount(row[drawn], minlength=len(design)).astype(np.float64)
        there, at = often > 0, rng.random()
        refit: dict[str, Any] = {}
        for outcome, column in columns.items():
            happened = np.bincount(row[drawn], weights=column[drawn], minlength=len(design))
            start = found[outcome].estimates
            refit[outcome] = fit(design[there], happened[there], precision, often[there], start).estimates
        losses = {state: mild[state] + at * (severe[state] - mild[state]) for state in mild}
        counts = np.bincount(drawn, minlength=len(patients)).astype(np.float64)
        yield {**refit, "weights": lost.weights(losses, counts)}


def telling_deficits(columns: pd.DataFrame, patients: pd.DataFrame) -> list[str]:
    """The deficits that tell about death beside the other features, chosen in steps.

    Each step takes the deficit whose three answers raise the likelihood most, while twice the gain is more than 2 log
    of the number of deaths: the Bayesian information criterion for events (Volinsky & Raftery 2000).

    Parameters
    ----------
    columns : DataFrame
        The trial's own.
    patients : DataFrame
        The same patients as records.
    """
    others = indicators(patients, [feature for feature in FEATURES if feature not in ("arm_weakness", "hemianopia")])
    happened = patients[DEATH].to_numpy(dtype=np.float64)

    def likelihood(chosen: Sequence[str]) -> float:
        answers = [(columns[name] == answer).to_numpy(dtype=np.float64) for name in chosen for answer in "NYC"]
        design = design_of(np.column_stack([others, *answers]), given(patients))
        return fit(design, happened, precision_of(design)).log_likelihood

    taken: list[str] = []
    while True:
        found = {name: likelihood([*taken, name]) for name in DEFICITS if name not in taken}
        best = max(found, key=lambda name: found[name])
        if 2 * (found[best] - likelihood(taken)) <= 2 * np.log(happened.sum()):
            return taken
        taken.append(best)


@dataclass(frozen=True)
class Lost:
    """What patients whose state at six months is known had lost by then, and what it is regressed on.

    Attributes
    ----------
    known : array of bool, (n,)
        Of all patients, those whose state is known.
    design : array, (m, p)
        Their outcomes within 14 days, then the indicators of all levels.
    states : Series, (m,)
        Their states.
    """

    known: NDArray[np.bool_]
    design: FloatArray
    states: pd.Series

    @classmethod
    def of(cls, patients: pd.DataFrame) -> Lost:
        """Of some patients."""
        known = patients["outcome_6m"].notna().to_numpy()
        own = patients[known]
        design = np.column_stack([own[list(OUTCOMES)].to_numpy(dtype=np.float64), indicators(own)])
        return cls(known, design, own["outcome_6m"])

    def regression(self, losses: Mapping[str, float], counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Least squares, each patient so often: the coefficients, their solver (p, m), and the residuals (m,)."""
        weighted = self.design.T * counts[self.known]
        solver = np.linalg.pinv(weighted @ self.design, hermitian=True) @ weighted
        lost = self.states.map(losses).to_numpy(dtype=np.float64)
        estimates = solver @ lost
        return estimates, solver, lost - self.design @ estimates

    def weights(self, losses: Mapping[str, float], counts: FloatArray) -> dict[str, float]:
        """What each event costs beside a death within 14 days, never less than nothing."""
        estimates = self.regression(losses, counts)[0]
        of_death = estimates[OUTCOMES.index(DEATH)]
        return {event: max(0.0, float(estimates[OUTCOMES.index(event)] / of_death)) for event in EVENTS}


def fit_weights(patients: pd.DataFrame) -> dict[str, Estimate]:
    """What an event costs beside a death within 14 days, which costs 1.

    Least squares of what was lost at six months on all outcomes and the features, as in the utility, where outcomes add
    up. A weight is the coefficient of the event over that of death; the interval holds the 95 % intervals of all
    `LOSSES` (delta method, with variances that do not assume equal ones).
    """
    found: dict[str, list[Estimate]] = {event: [] for event in EVENTS}
    lost = Lost.of(patients)
    for losses in LOSSES.values():
        estimates, solver, residuals = lost.regression(losses, np.ones(len(patients)))
        covariance = (solver * residuals**2) @ solver.T
        death = OUTCOMES.index(DEATH)
        for place, event in enumerate(EVENTS):
            weight = float(estimates[place] / estimates[death])
            slope = np.zeros(len(estimates))
            slope[[place, death]] = np.array([1, -weight]) / estimates[death]
            error = Z * float(np.sqrt(slope @ covariance @ slope))
            found[event].append(Estimate(weight, weight - error, weight + error))
    return {
        event: Estimate(each[0].value, min(e.low for e in each), max(e.high for e in each))
        for event, each in found.items()
    }

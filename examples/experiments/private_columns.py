"""Patients with public and private columns, what their reports say, and logistic regression corrected for the reports.

The parts of learning_on_private_columns.py that are not about this one experiment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax

from envs.cohort import PatientSampler, prior
from envs.records import RecordSpace
from envs.scenario import DEATH, Scenario
from envs.treatment_response import ResponseModel
from policies.local import KAry, privatize

Array = NDArray[Any]
# scikit-learn's own default for logistic regression: half the sum of squared coefficients, no intercept.
PENALTY = 1.0
# Until the gradient per patient is this small, in steps that remember more than L-BFGS's usual ten.
OPTIONS = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-6, "ftol": 1e-13, "maxcor": 20}
# Columns that are hardly ever 1 are scaled by no more than this.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True)
class Split:
    """The features of a record in a public and a private part, each numbered in C order."""

    space: RecordSpace  # all features
    columns: tuple[str, ...]  # the private ones

    @property
    def private_axes(self) -> tuple[int, ...]:
        """Where the private features are."""
        return tuple(self.space.axis(name) for name in self.columns)

    @property
    def public_axes(self) -> tuple[int, ...]:
        """Where the others are."""
        return tuple(axis for axis in range(len(self.space.shape)) if axis not in self.private_axes)

    def sizes(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The levels of some features."""
        return tuple(self.space.shape[axis] for axis in axes)

    @property
    def n_values(self) -> int:
        """k: the combinations of private levels."""
        return math.prod(self.sizes(self.private_axes))

    def channel(self, epsilon: float) -> KAry:
        """One joint report of all private columns."""
        return KAry.joint(self.sizes(self.private_axes), epsilon)

    def parts(self, records: Array) -> tuple[Array, Array]:
        """Public and private part of each record, (m,) and (m,)."""
        codes = self.space.codes(records)
        return (
            np.ravel_multi_index(tuple(codes[:, self.public_axes].T), self.sizes(self.public_axes)),
            np.ravel_multi_index(tuple(codes[:, self.private_axes].T), self.sizes(self.private_axes)),
        )

    def by_parts(self, column: Array) -> Array:
        """A column over all records as (public parts, private values)."""
        grid = np.moveaxis(column.reshape(self.space.shape), self.private_axes, range(-len(self.private_axes), 0))
        return grid.reshape(-1, self.n_values)

    def public_design(self, parts: Array) -> Array:
        """Public parts as numbers, (m, d): an indicator of each level but the first of each feature."""
        return indicators(parts, self.sizes(self.public_axes))

    @cached_property
    def private_design(self) -> Array:
        """The same of every private value, (k, e)."""
        return indicators(np.arange(self.n_values), self.sizes(self.private_axes))


def indicators(codes: Array, sizes: Sequence[int]) -> Array:
    """Joint codes as 0 and 1: an indicator of each level but the first of each feature.

    Examples
    --------
    >>> indicators(np.array([0, 3, 5]), (2, 3)).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """
    places = np.unravel_index(codes, tuple(sizes))
    return np.column_stack(
        [place == level for place, size in zip(places, sizes, strict=True) for level in range(1, size)]
    ).astype(np.float64)


@dataclass(frozen=True)
class Patients:
    """Sampled patients: record indices and whether the outcome came, both (m,)."""

    records: Array
    outcomes: Array


class Ward:
    """Where untreated patients come from.

    Parameters
    ----------
    scenario : Scenario
        Who comes, and what becomes of them.
    outcome : sequence of str
        What is to be foreseen: any of these transient flags, or death.

    Attributes
    ----------
    prior : array, (n_records,)
        The probability of every record.
    """

    def __init__(self, scenario: Scenario, outcome: Sequence[str]) -> None:
        self.scenario = scenario
        self.outcome = tuple(outcome)
        self.prior = prior(scenario)
        self._response = ResponseModel(scenario)
        self._sampler = PatientSampler.of(self.prior)

    def draw(self, count: int, rng: np.random.Generator) -> Patients:
        """Fresh patients, untreated."""
        records = self._sampler.records(rng.random(count))
        became = self._response.sample(records, np.zeros(count, dtype=np.intp), rng)
        places = [self.scenario.outcomes.index(name) for name in self.outcome]
        came: Array = np.asarray(became[:, places].any(axis=1), dtype=np.intp)
        return Patients(records, came)

    @cached_property
    def chance(self) -> Array:
        """P(outcome | record), exactly, (n_records,): 1 - P(none of its flags is left, and no death where it counts).

        The flags are independent and hazards add, so each flag that may be there multiplies the chance of survival.
        """
        response = self._response
        space = self.scenario.space
        hazard = response.hazard(DEATH, 0)
        counts = DEATH in self.outcome
        none = np.exp(-hazard.level) if counts else np.ones((1,) * len(space.shape))
        for place, flag in enumerate(self.scenario.transient):
            left = response.presence[0][place]
            if flag in self.outcome:
                none = none * (1 - left)
            elif counts and hazard.kappa[place] > 0:
                none = none * (1 + left * np.expm1(-hazard.slope * hazard.kappa[place]))
        return np.broadcast_to(1 - none, space.shape).ravel()

    def chance_given_record(self, split: Split) -> Array:
        """The same as (public parts, private values): what no classifier can improve on if it knows the record."""
        return split.by_parts(self.chance)

    def chance_given_report(self, split: Split, channel: KAry) -> Array:
        """P(outcome | public part, report), exactly, (public parts, k); 0 where nobody comes: the limit for reports."""
        weight = split.by_parts(self.prior)
        whole = weight @ channel.matrix
        with_outcome = (weight * split.by_parts(self.chance)) @ channel.matrix
        return np.divide(with_outcome, whole, out=np.zeros_like(whole), where=whole > 0)


@dataclass(frozen=True)
class Rows:
    """Distinct rows of a table of patients: patients who are alike are counted together."""

    public: Array  # (m, d) public columns as numbers
    parts: Array  # (m,) the code of the public part
    codes: Array  # (m,) the code of the private part, or of its report
    design: Array  # (k, e) what the codes say, as numbers
    outcomes: Array  # (m,) 0 or 1
    weights: Array  # (m,) how many patients have this row

    @property
    def columns(self) -> Array:
        """All columns, codes taken at their word: (m, d + e)."""
        return np.hstack([self.public, self.design[self.codes]])

    @property
    def rate(self) -> float:
        """Share of patients with the outcome."""
        return float(self.weights @ self.outcomes / self.weights.sum())


def true_rows(split: Split, patients: Patients) -> Rows:
    """The table as it is."""
    return _rows(split, *split.parts(patients.records), patients.outcomes)


def reported_rows(split: Split, patients: Patients, channel: KAry, rng: np.random.Generator) -> Rows:
    """The table with a joint report in place of the private columns. A simulation, not a release."""
    parts, values = split.parts(patients.records)
    return _rows(split, parts, np.asarray(privatize(values, channel, rng=rng), dtype=np.intp), patients.outcomes)


def _rows(split: Split, parts: Array, codes: Array, outcomes: Array) -> Rows:
    keys, weights = np.unique((parts * split.n_values + codes) * 2 + outcomes, return_counts=True)
    part = keys // 2 // split.n_values
    return Rows(
        public=split.public_design(part),
        parts=part,
        codes=keys // 2 % split.n_values,
        design=split.private_design,
        outcomes=keys % 2,
        weights=weights.astype(np.float64),
    )


@dataclass(frozen=True)
class Corrected:
    """P(outcome | public, private) and P(private | public), both logistic, learned from reports of the private part."""

    intercept: float  # of the outcome
    public: Array  # (d,) its coefficients
    private: Array  # (e,)
    shares: Array  # (d + 1, k) of the private values, intercepts first: P(private | public) is their softmax
    channel: Array  # (k, n_reports) p(report | private value)
    design: Array  # (k, e) the private values as numbers

    def known(self, public: Array, values: Array) -> Array:
        """P(outcome) of patients whose private values are known, (m,)."""
        chance: Array = expit(self.intercept + public @ self.public + (self.design @ self.private)[values])
        return chance

    def posterior(self, public: Array, reports: Array) -> Array:
        """P(private value | public, report) by Bayes, (m, k)."""
        joint = softmax(self.shares[0] + public @ self.shares[1:], axis=1) * self.channel[:, reports].T
        posterior: Array = joint / joint.sum(axis=1, keepdims=True)
        return posterior

    def reported(self, public: Array, reports: Array) -> Array:
        """P(outcome) of patients of whom only the report is known, (m,)."""
        chance = expit(self.intercept + (public @ self.public)[:, None] + self.design @ self.private)
        expected: Array = (self.posterior(public, reports) * chance).sum(axis=1)
        return expected


def fit_corrected(rows: Rows, channel: Array) -> Corrected:
    """Maximise the likelihood of what was seen, sum over v of P(v | public) p(report | v) P(outcome | public, v).

    The private value is never seen and is summed out, as for any covariate that is measured with a known error
    (Carroll, Ruppert, Stefanski & Crainiceanu 2006, Measurement error in nonlinear models, chapter 8). The estimate is
    consistent if both parts are logistic, whatever epsilon; how much it varies depends on epsilon. The likelihood may
    have several maxima: the search starts where the private columns have no effect.

    Parameters
    ----------
    rows : Rows
        Patients with reports in place of their private columns.
    channel : array, (k, n_reports)
        p(report | value).
    """
    likelihood = _Likelihood(rows, channel)
    found = minimize(likelihood, likelihood.start, jac=True, method="L-BFGS-B", options=OPTIONS)
    return likelihood.unscaled(found.x)


class _Likelihood:
    """The penalised negative log-likelihood per patient, in public columns that are scaled to vary alike.

    Parameters are, in a row: the outcome's intercept and public coefficients (d + 1), its private ones (e), and
    those of the shares (d + 1, k).
    """

    def __init__(self, rows: Rows, channel: Array) -> None:
        total = float(rows.weights.sum())
        self._centre: Array = rows.weights @ rows.public / total
        spread: Array = np.sqrt(rows.weights @ (rows.public - self._centre) ** 2 / total)
        self._spread = np.maximum(spread, LEAST_SPREAD)
        self._rows = np.column_stack([np.ones(len(rows.public)), (rows.public - self._centre) / self._spread])
        self._channel, self._design = channel, rows.design
        self._reported = np.ascontiguousarray(channel[:, rows.codes].T)
        self._sign = np.where(rows.outcomes == 1, 1.0, -1.0)[:, None]
        self._share = (rows.weights / total)[:, None]
        # The intercepts are free.
        self._penalty = np.concatenate([[0.0], PENALTY / self._spread**2]) / total
        self._private_penalty = PENALTY / total
        self._rate = rows.rate

    @property
    def start(self) -> Array:
        """No column has an effect."""
        d, (k, e) = self._rows.shape[1], self._design.shape
        start = np.zeros(d + e + d * k)
        start[0] = np.log(self._rate / (1 - self._rate))
        return start

    def _parts(self, parameters: Array) -> tuple[Array, Array, Array]:
        d, (k, e) = self._rows.shape[1], self._design.shape
        return parameters[:d], parameters[d : d + e], parameters[d + e :].reshape(d, k)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """The value and its gradient."""
        public, private, shares = self._parts(parameters)
        prior = softmax(self._rows @ shares, axis=1)
        seen = expit(self._sign * ((self._rows @ public)[:, None] + self._design @ private))
        joint = prior * self._reported * seen
        evidence = joint.sum(axis=1, keepdims=True)
        posterior = self._share * joint / evidence
        residual = posterior * self._sign * (1 - seen)
        penalties = (
            self._penalty @ public**2
            + self._private_penalty * private @ private
            + (self._penalty[:, None] * shares**2).sum()
        )
        value = float(penalties) / 2 - float(self._share[:, 0] @ np.log(evidence[:, 0]))
        gradient = (
            self._penalty * public - self._rows.T @ residual.sum(axis=1),
            self._private_penalty * private - residual.sum(axis=0) @ self._design,
            (self._penalty[:, None] * shares + self._rows.T @ (self._share * prior - posterior)).ravel(),
        )
        return value, np.concatenate(gradient)

    def unscaled(self, parameters: Array) -> Corrected:
        """The parameters for the public columns as they are."""
        public, private, shares = self._parts(parameters)
        slopes, share_slopes = public[1:] / self._spread, shares[1:] / self._spread[:, None]
        return Corrected(
            intercept=float(public[0] - self._centre @ slopes),
            public=slopes,
            private=private,
            shares=np.vstack([shares[0] - self._centre @ share_slopes, share_slopes]),
            channel=self._channel,
            design=self._design,
        )

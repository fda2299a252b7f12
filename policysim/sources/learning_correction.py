"""Logistic regression on private columns, corrected: maximum likelihood through the channel that made the reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from policies.arrays import FloatArray, IntArray
from policysim.sources.learning_rows import Rows

# scikit-learn's own default for logistic regression: half the sum of squared coefficients, no intercept.
PENALTY = 1.0
# Until the gradient per patient is this small, in steps that remember more than L-BFGS's usual ten.
OPTIONS = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-6, "ftol": 1e-13, "maxcor": 20}
# Columns that are hardly ever 1 are scaled by no more than this.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True)
class Corrected:
    """P(outcome | public, private) and P(private | public), both logistic, learned from reports of the private part.

    Attributes
    ----------
    intercept : float
        Of the outcome.
    public, private : array, (d,) and (e,)
        Its coefficients.
    shares : array, (d + 1, k)
        Coefficients of the private values, intercepts first: P(private | public) is their softmax.
    channel : array, (k, n_reports)
        p(report | private value).
    design : array, (k, e)
        The private values as numbers.
    """

    intercept: float
    public: FloatArray
    private: FloatArray
    shares: FloatArray
    channel: FloatArray
    design: FloatArray

    def known(self, public: FloatArray, values: IntArray) -> FloatArray:
        """P(outcome) of patients whose private values are known, (m,)."""
        chance: FloatArray = expit(self.intercept + public @ self.public + (self.design @ self.private)[values])
        return chance

    def posterior(self, public: FloatArray, reports: IntArray) -> FloatArray:
        """P(private value | public, report) by Bayes, (m, k)."""
        joint = softmax(self.shares[0] + public @ self.shares[1:], axis=1) * self.channel[:, reports].T
        posterior: FloatArray = joint / joint.sum(axis=1, keepdims=True)
        return posterior

    def reported(self, public: FloatArray, reports: IntArray) -> FloatArray:
        """P(outcome) of patients of whom only the report is known, (m,)."""
        chance = expit(self.intercept + (public @ self.public)[:, None] + self.design @ self.private)
        expected: FloatArray = (self.posterior(public, reports) * chance).sum(axis=1)
        return expected


def fit_corrected(rows: Rows, channel: FloatArray) -> Corrected:
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
    found = minimize(likelihood, likelihood.start, jac=True, method="L-BFGS-B", options=OPTIONS)  # type: ignore[call-overload]  # an option
    return likelihood.unscaled(found.x)


class _Likelihood:
    """The penalised negative log-likelihood per patient, in public columns that are scaled to vary alike.

    Parameters are, in a row: the outcome's intercept and public coefficients (d + 1), its private ones (e), and
    those of the shares (d + 1, k).
    """

    def __init__(self, rows: Rows, channel: FloatArray) -> None:
        total = float(rows.weights.sum())
        self._centre: FloatArray = rows.weights @ rows.public / total
        spread: FloatArray = np.sqrt(rows.weights @ (rows.public - self._centre) ** 2 / total)
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
    def start(self) -> FloatArray:
        """No column has an effect."""
        d, (k, e) = self._rows.shape[1], self._design.shape
        start = np.zeros(d + e + d * k)
        start[0] = np.log(self._rate / (1 - self._rate))
        return start

    def _parts(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        d, (k, e) = self._rows.shape[1], self._design.shape
        return parameters[:d], parameters[d : d + e], parameters[d + e :].reshape(d, k)

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
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

    def unscaled(self, parameters: FloatArray) -> Corrected:
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

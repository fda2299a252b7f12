"""Repeated splits: policies are made from one part of a log, and evaluated on patients that had no part in that.

Means of held-out contributions with their errors, and what repeated splits say together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policysim.files.bad_rows import DataError
from policysim.logs.load_log import Log
from policysim.logs.log_frame import averaged
from policysim.question.protocol import SILENT, Progress
from policysim.study.checks import UPPER, guess_rate_of
from policysim.study.declared import LoggedStudy, build_adjacency
from policysim.study.study_problem import fit_problem
from policysim.trials.estimate_value import row_values
from policysim.trials.estimators import Moments, doubly_robust, moments

REPEATS = 10
FOLDS = 5
FEWEST_PATIENTS = 10


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A policy on the patients of a log, each treated by the version of it that was made without that patient.

    Attributes
    ----------
    contributions : array, (n_rows,)
        The doubly robust value of the policy is their mean.
    probabilities : array, (n_rows, n_actions)
        p(a|x) of each patient.
    weights : array, (n_rows,)
        Importance weights.
    epsilon_spent : float
        The exact privacy loss of the versions, the largest, over all declared records.
    guess_rate : float
        How often the best guess between two neighbours is right, likewise; NaN where that takes too long.
    """

    contributions: FloatArray
    probabilities: FloatArray
    weights: FloatArray
    epsilon_spent: float
    guess_rate: float


@dataclass(frozen=True, eq=False)
class Split:
    """A log, split at random into folds.

    Attributes
    ----------
    log : Log
        All of it. Of a counted log, each row is divided among the folds.
    folds : array, (n_rows,)
        The fold of each row.
    problems : tuple of DecisionProblem
        Number j is fitted to the rows outside fold j.
    scores : array, (n_rows, n_actions)
        u(x, a) of each row, fitted without it.
    """

    log: Log
    folds: IntArray
    problems: tuple[DecisionProblem, ...]
    scores: FloatArray

    def evaluate(self, policy: Policy) -> HeldOut:
        """Make the policy for each fold from all others, and see what it is worth there."""
        probabilities = np.empty_like(self.scores)
        losses, rates = [], []
        for fold, problem in enumerate(self.problems):
            rows = self.folds == fold
            logs, table = policy.tables(problem)
            probabilities[rows] = table[self.log.records[rows]]
            losses.append(privacy_loss_of_logs(logs, problem.adjacency).epsilon)
            rates.append(guess_rate_of(table, problem, losses[-1]))
        weights = self.log.data.of_taken(probabilities) / self.log.data.propensities
        worst, guessed = float(np.max(losses)), float(np.max(rates))
        return HeldOut(self._contributions(probabilities, weights), probabilities, weights, worst, guessed)

    def arm(self, arm: int) -> FloatArray:
        """The contributions of giving everyone the same arm, (n_rows,)."""
        probabilities = np.zeros_like(self.scores)
        probabilities[:, arm] = 1.0
        return self._contributions(probabilities, (self.log.data.actions == arm) / self.log.data.propensities)

    def _contributions(self, probabilities: FloatArray, weights: FloatArray) -> FloatArray:
        data = self.log.data
        direct = row_values(probabilities, self.scores)
        return doubly_robust(weights, data.rewards, direct, data.of_taken(self.scores))


def require_patients(log: Log) -> None:
    """DataError for arms that too few patients had: what a model says of an arm that nobody got is a guess."""
    counts = log.data.by_action()
    few = [f"{name} has {n}" for name, n in zip(log.data.names, counts, strict=True) if n < FEWEST_PATIENTS]
    if few:
        raise DataError(
            f"each treatment needs at least {FEWEST_PATIENTS} patients with an outcome, {', '.join(few)}: leave it out "
            "of [data.treatments] and of the log."
        )


def split_log(log: Log, study: LoggedStudy, progress: Progress = SILENT) -> Iterator[Split]:
    """`REPEATS` independent random splits into `FOLDS` folds, from the study's seed.

    Raises
    ------
    ValueError
        Names an arm with fewer than `FEWEST_PATIENTS` rows.
    """
    require_patients(log)
    progress.expect(REPEATS * FOLDS)
    rng = np.random.default_rng(study.seed)
    adjacency = build_adjacency(study)
    for _ in range(REPEATS):
        dealt, folds = log.dealt(FOLDS, rng)
        scores = np.empty((dealt.data.n_rows, log.data.n_actions))
        problems = []
        for fold in range(FOLDS):
            mine = folds == fold
            problem = fit_problem(dealt, ~mine, study, adjacency)
            scores[mine] = problem.utilities[dealt.records[mine]]
            problems.append(problem)
            progress.advance()
        yield Split(dealt, folds, tuple(problems), scores)


@dataclass(frozen=True)
class SplitMean:
    """A number with its standard error.

    Attributes
    ----------
    value, standard_error : float
        NaN where there is no such number: no patients, or a share of what may be nothing.
    n : int
        Patients that it rests on.
    skewness, kurtosis : float
        Of what it is the mean of; kurtosis above that of normal numbers.
    """

    value: float
    standard_error: float
    n: int
    skewness: float = 0.0
    kurtosis: float = 0.0

    @property
    def quantile(self) -> float:
        """How many standard errors the 95 % interval reaches: Student's t, and more where the patients are skewed.

        The latter as for `policysim evaluate` (`estimators.Moments.quantile`): of a rare outcome, intervals by
        Student's t cover less than 90 % (benchmarks/offpolicy.py --coverage).
        """
        skewed = Moments(self.n, self.value, self.standard_error, self.skewness, self.kurtosis).quantile
        return max(float(stdtrit(self.n - 1, UPPER)), skewed)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval; (NaN, NaN) for fewer than two patients."""
        if self.n < 2:
            return np.nan, np.nan
        reach = self.quantile * self.standard_error
        return self.value - reach, self.value + reach

    @property
    def widened_error(self) -> float:
        """The standard error that, with Student's t, gives the interval."""
        return self.standard_error * self.quantile / float(stdtrit(self.n - 1, UPPER)) if self.n > 1 else np.nan


NOTHING = SplitMean(np.nan, np.nan, 0)


def minus(one: FloatArray, other: FloatArray) -> FloatArray:
    """One - other, (m,), exactly 0 where they are equal but for rounding."""
    apart = one - other
    apart[np.abs(apart) <= ROUNDING * (np.abs(one) + np.abs(other))] = 0.0
    return apart


def mean(contributions: FloatArray, counts: IntArray | None = None) -> SplitMean:
    """The mean of contributions, (m,), each of so many patients; the standard error is that of a mean."""
    n = len(contributions) if counts is None else int(counts.sum())
    if n < 2:
        return SplitMean(float(contributions[0]), np.nan, 1) if n else NOTHING
    found = moments(contributions, counts)
    return SplitMean(found.mean, found.standard_error, n, found.skewness, found.kurtosis)


def share(part: FloatArray, whole: FloatArray, counts: IntArray | None = None) -> SplitMean:
    """mean(part) / mean(whole), with the delta method's error: of the mean of (part - ratio whole) / mean(whole)."""
    below = float(averaged(whole, counts)) if len(whole) else 0.0
    if below == 0:
        return NOTHING
    ratio = float(averaged(part, counts)) / below
    apart = mean(minus(part, ratio * whole), counts)
    return SplitMean(ratio, abs(apart.standard_error / below), apart.n, apart.skewness, apart.kurtosis)


def over_repeats(estimates: Sequence[SplitMean]) -> SplitMean:
    """What independent random splits of the same patients say together.

    The mean, with the variance mean(s_r^2 + (v_r - mean)^2), so that it also covers how much depends on the split
    (Chernozhukov et al. 2018, Double/debiased machine learning, definition 3.3). Means and not medians, so
    that the difference of two values is the value of their difference. Skewness and kurtosis are means, too.
    """
    values = np.array([estimate.value for estimate in estimates])
    errors = np.array([estimate.standard_error for estimate in estimates])
    if np.isnan(values).any():
        return NOTHING
    centre = float(values.mean())
    # The mean of equal numbers is off by rounding.
    apart = minus(values, np.full_like(values, centre))
    return SplitMean(
        centre,
        float(np.sqrt(np.mean(errors**2 + apart**2))),
        estimates[0].n,
        float(np.mean([estimate.skewness for estimate in estimates])),
        float(np.mean([estimate.kurtosis for estimate in estimates])),
    )

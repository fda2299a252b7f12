"""Repeated splits: policies are made from one part of a log, and evaluated on patients that had no part in that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policysim.logged.fitting import fit_problem
from policysim.logs.trial import Log
from policysim.offpolicy.cross_fitting import row_values
from policysim.offpolicy.estimators import doubly_robust
from policysim.question.progress import SILENT, Progress
from policysim.study import LoggedStudy, build_adjacency

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
    """

    contributions: FloatArray
    probabilities: FloatArray
    weights: FloatArray
    epsilon_spent: float


@dataclass(frozen=True, eq=False)
class Split:
    """A log, split at random into folds.

    Attributes
    ----------
    log : Log
        All of it.
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
        spent = 0.0
        for fold, problem in enumerate(self.problems):
            rows = self.folds == fold
            logs, table = policy.tables(problem)
            probabilities[rows] = table[self.log.records[rows]]
            spent = max(spent, privacy_loss_of_logs(logs, problem.adjacency).epsilon)
        weights = self.log.data.of_taken(probabilities) / self.log.data.propensities
        return HeldOut(self._contributions(probabilities, weights), probabilities, weights, spent)

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
    """ValueError for arms that too few patients had: what a model says of an arm that nobody got is a guess."""
    counts = np.bincount(log.data.actions, minlength=log.data.n_actions)
    few = [f"{name} has {n}" for name, n in zip(log.data.names, counts, strict=True) if n < FEWEST_PATIENTS]
    if few:
        raise ValueError(
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
    n_rows = log.data.n_rows
    require_patients(log)
    progress.expect(REPEATS * FOLDS)
    rng = np.random.default_rng(study.seed)
    adjacency = build_adjacency(study)
    for _ in range(REPEATS):
        folds: IntArray = rng.permutation(n_rows) % FOLDS
        scores = np.empty((n_rows, log.data.n_actions))
        problems = []
        for fold in range(FOLDS):
            mine = folds == fold
            problem = fit_problem(log, ~mine, study, adjacency)
            scores[mine] = problem.utilities[log.records[mine]]
            problems.append(problem)
            progress.advance()
        yield Split(log, folds, tuple(problems), scores)

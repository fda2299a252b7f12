"""Repeated splits: policies are made from one part of a log, and evaluated on patients that had no part in that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from policysim.study import LoggedStudy, build_adjacency

REPEATS = 10
FOLDS = 5


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
        data = self.log.data
        probabilities = np.empty_like(self.scores)
        spent = 0.0
        for fold, problem in enumerate(self.problems):
            rows = self.folds == fold
            logs, table = policy.tables(problem)
            probabilities[rows] = table[self.log.records[rows]]
            spent = max(spent, privacy_loss_of_logs(logs, problem.adjacency).epsilon)
        weights = data.of_taken(probabilities) / data.propensities
        direct = row_values(probabilities, self.scores)
        found = doubly_robust(weights, data.rewards, direct, data.of_taken(self.scores))
        return HeldOut(found, probabilities, weights, spent)


def split_log(log: Log, study: LoggedStudy, advance: Callable[[], object] = lambda: None) -> Iterator[Split]:
    """`REPEATS` independent random splits into `FOLDS` folds, from the study's seed; `advance` is called for each fit.

    Raises
    ------
    ValueError
        If the log has fewer rows than folds.
    """
    n_rows = log.data.n_rows
    if n_rows < FOLDS:
        raise ValueError(f"the log must have at least {FOLDS} rows with an outcome, got {n_rows}.")
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
            advance()
        yield Split(log, folds, tuple(problems), scores)

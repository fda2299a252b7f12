"""The policies that others are measured against: no privacy, no information, one action for all or for all alike."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import public_classes
from policies.arrays import FloatArray, IntArray, probability_table
from policies.policy import NotApplicableError, Policy, one_hot_logs
from policies.problem import DecisionProblem


@dataclass(frozen=True)
class Greedy(Policy):
    """The best action for each record (the first of equals): the highest value, and no privacy."""

    name = "greedy"
    uses_prior = False
    row_wise = True  # reads which action of the row is best
    uses_epsilon = False
    guarantee = np.inf  # none

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """0 for the best action, -inf for the others."""
        return one_hot_logs(problem.best_actions, problem.n_actions)


@dataclass(frozen=True)
class Uniform(Policy):
    """Every action with the same probability."""

    name = "uniform"
    uses_prior = False
    row_wise = True  # reads nothing
    uses_epsilon = False
    guarantee = 0.0  # it reveals nothing

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """-log k everywhere."""
        return np.full((problem.n_records, problem.n_actions), -np.log(problem.n_actions), order="F")


@dataclass(frozen=True)
class BestFixed(Policy):
    """One action for all: the one with the highest value under the prior.

    Where records do not allow every action, it is the best for all records that allow the same.

    Parameters
    ----------
    action : int, optional
        Instead this one, by its position, for all records that allow it.
    """

    action: int | None = None
    name = "best-fixed"
    row_wise = True  # reads means under the prior
    across_masks = True
    uses_epsilon = False
    guarantee = 0.0  # it reveals nothing

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """0 for the constant action, -inf for the others."""
        if problem.admissible is not None:
            actions = problem.best_fixed_actions
            if self.action is not None:
                actions = np.where(problem.admissible[:, self.action], self.action, actions)
            return one_hot_logs(actions, problem.n_actions)
        logs = np.full((problem.n_records, problem.n_actions), -np.inf, order="F")
        logs[:, problem.best_fixed_action if self.action is None else self.action] = 0.0
        return logs


# Expectations per patient that differ by less are the same.
SAME = 1e-9


@dataclass(frozen=True)
class SameForAlike(Policy):
    """One action for all who are alike in what is public (`public_classes`), and allow the same: it reveals nothing.

    It is not in the catalogue: it has no epsilon to compare it at, and where nothing is public it is one action for
    all, which has a name there already. Reports of one decision make it themselves.

    Parameters
    ----------
    by_lead : bool, optional
        Give each class what leads to the least of the outcome that leads: of actions that differ by no more than 1e-9
        per patient of the class the best by utility. Otherwise, and where no outcome leads, the best by utility.
    """

    by_lead: bool = True
    name = "same-for-alike"
    row_wise = True  # reads means under the prior
    uses_epsilon = False
    guarantee = 0.0  # it reveals nothing beyond the class, which is public

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """0 for the action of the record's class, -inf for the others."""
        classes = public_classes(problem.adjacency, problem.n_records)
        patients = np.bincount(classes, problem.prior)
        # A class that never comes counts its records alike.
        weights = np.where(patients[classes] > 0, problem.prior, 1.0)
        value = _class_means(problem.utilities, classes, weights)
        if self.by_lead and problem.lead is not None:
            lead = _class_means(problem.outcomes[problem.lead], classes, weights)
            value[lead > lead.min(axis=1, keepdims=True) + SAME] = -np.inf
        return one_hot_logs(value.argmax(axis=1)[classes], problem.n_actions)


@dataclass(frozen=True, eq=False)
class OwnTable(Policy):
    """A table of probabilities that somebody made elsewhere; it claims no privacy, and its exact loss says what it has.

    Parameters
    ----------
    table : array, (n_records, n_actions)
        p(a|x), in the order of the records; rows sum to 1 within 1e-6.
    """

    table: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    name = "own-table"
    uses_epsilon = False
    uses_prior = False
    guarantee = np.inf  # none is claimed

    @classmethod
    def named(cls, name: str, table: ArrayLike) -> OwnTable:
        """A table under a name of its own, as policies have one by their class."""
        kind: type[OwnTable] = type(name, (cls,), {"name": name})
        return kind(table=probability_table(table, name))

    def _check(self, problem: DecisionProblem) -> None:
        if self.table.shape != problem.utilities.shape:
            raise NotApplicableError(
                f"the table {self.name!r} must have a row for each record and a column for each action, "
                f"{problem.utilities.shape}, got {self.table.shape}"
            )

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """The logarithms of the table."""
        self._check(problem)
        with np.errstate(divide="ignore"):
            return np.log(self.table)


def _class_means(table: FloatArray, classes: IntArray, weights: FloatArray) -> FloatArray:
    """The means of a table, (n_records, n_actions), in each class, (n_classes, n_actions)."""
    sums = np.column_stack([np.bincount(classes, weights * column) for column in table.T])
    return sums / np.bincount(classes, weights)[:, None]

"""A decision where some records do not allow every action: any policy, on each set of records that allow the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.accounting import Use, log_ratio_range, response_variation
from policies.adjacency import Adjacency, AnyRecord
from policies.arrays import FloatArray, IntArray
from policies.listed import Listed
from policies.mask import BoolArray, admissible_mask
from policies.named_records import Records
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem, MaskClass
from policies.randomized_response import RandomizedResponse


@dataclass(frozen=True, eq=False)
class MaskedProblem:
    """A decision problem under any-record in which each record allows some of the actions (`masked_problem`).

    An action that a record does not allow has probability 0, whatever the policy. So records that do not allow the
    same actions can be told apart by the action, except where nobody gets what only some allow. Every policy decides
    within each class of records that allow the same, as if these were all records there are.

    Attributes
    ----------
    problem : DecisionProblem
        With its mask; records that allow the same are neighbours.
    mask_public : bool
        Whether what a record allows is public: then only records of one class are hidden among each other.
    """

    problem: DecisionProblem
    mask_public: bool

    @property
    def whole(self) -> DecisionProblem | None:
        """The plain problem, if every record allows every action."""
        return self.problem if self.problem.admissible is None else None

    @property
    def classes(self) -> tuple[MaskClass, ...]:
        """The classes otherwise."""
        return self.problem.mask_classes

    def tables(self, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x), (n_records, n_actions), column-major; -inf and 0 at actions that are not allowed."""
        return policy.tables(self.problem)

    def epsilon_spent(self, logs: FloatArray) -> float:
        """The exact privacy loss of a table log p(a|x), (n_records, n_actions).

        Over records that allow the same actions if that is public; otherwise over all records, and infinite where
        somebody gets an action that somebody else does not allow.
        """
        return privacy_loss_of_logs(logs, self._hidden).epsilon

    def use(self, policy: Policy, logs: FloatArray) -> Use:
        """What a policy's table log p(a|x), (n_records, n_actions), reveals: its loss as above, eta and variation."""
        tables = [logs[np.ix_(part.rows, part.columns)] for part in self.classes] if self.mask_public else []
        tables = tables or [logs]
        losses = [privacy_loss_of_logs(table, AnyRecord()).epsilon for table in tables]
        variation = 1.0
        if isinstance(policy, RandomizedResponse):
            fewest = min((table.shape[1] for table, loss in zip(tables, losses, strict=True) if loss > 0), default=2)
            variation = response_variation(policy.epsilon, fewest)
        return Use(max(losses), max(log_ratio_range(table, AnyRecord()) for table in tables), variation)

    @property
    def _hidden(self) -> Adjacency:
        """Who is hidden among whom."""
        return self.problem.adjacency if self.mask_public else AnyRecord()

    def value(self, distribution: FloatArray, probabilities: FloatArray) -> float:
        """The expected utility of p(a|x), (n_records, n_actions), under a distribution of the records, (n_records,).

        Records that allow one action only have no choice, and count as 0.
        """
        expected = (probabilities * self.problem.utilities).sum(axis=1)
        if self.problem.admissible is not None:
            expected = np.where(self.problem.admissible.sum(axis=1) > 1, expected, 0.0)
        return float(distribution @ expected)

    def best_actions(self) -> IntArray:
        """The first action of highest utility among those that each record allows, (n_records,)."""
        return self.problem.best_actions

    def with_prior(self, prior: FloatArray) -> MaskedProblem:
        """The same problem with another prior, (n_records,); the tables are shared."""
        return replace(self, problem=self.problem.with_prior(prior))


def masked_problem(
    utilities: FloatArray,
    prior: FloatArray,
    admissible: BoolArray | None,
    *,
    mask_public: bool = False,
    actions: Sequence[str] | None = None,
    records: Records | None = None,
) -> MaskedProblem:
    """The decision problem of records of which each allows some of the actions.

    Parameters
    ----------
    utilities : array, (n_records, n_actions)
        Anything may stand at actions that are not allowed, and at the only one of a record.
    prior : array, (n_records,)
        The probability of each record; sums to 1. Within a class of probability 0 all records count as equally likely.
    admissible : array of bool, (n_records, n_actions), or None
        As `admissible_mask` gives it.
    mask_public : bool, optional
        Whether it is public which actions a record allows.
    actions, records : optional
        As in `DecisionProblem`.

    Raises
    ------
    ValueError
        For utilities to choose between that are not finite (names the first), or a prior that is no distribution.

    Examples
    --------
    The third record does not allow the second action, and is told apart by it:

    >>> from policies.randomized_response import RandomizedResponse
    >>> utilities, prior = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), np.full(3, 1 / 3)
    >>> problem = masked_problem(utilities, prior, np.array([[True, True], [True, True], [True, False]]))
    >>> logs, probabilities = problem.tables(RandomizedResponse(1.0))
    >>> probabilities.round(3).tolist()
    [[0.269, 0.731], [0.731, 0.269], [1.0, 0.0]]
    >>> problem.epsilon_spent(logs)
    inf
    """
    mask = admissible_mask(admissible, np.shape(utilities))
    adjacency: Adjacency = AnyRecord()
    if mask is not None:
        adjacency = Listed(mask, [()], AnyRecord.name)
        # A record that has no choice may have no utility either.
        utilities = np.where(mask & (mask.sum(axis=1) > 1)[:, None], utilities, 0.0)
    problem = DecisionProblem(utilities, prior, adjacency, actions, records=records, admissible=mask)
    return MaskedProblem(problem, mask_public)

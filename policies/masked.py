"""A decision in classes: any policy, on each set of records that share what is public of them and allow the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.accounting import Use, table_use
from policies.adjacency import AnyRecord
from policies.arrays import BoolArray, FloatArray, IntArray, conditional
from policies.mask import mask_classes
from policies.policy import Policy, tables_by_class
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem, MaskClass
from policies.records import NumberedRecords, Records, SomeRecords


@dataclass(frozen=True, eq=False)
class MaskedProblem:
    """A decision problem in which the records are in public classes, or allow some of the actions (`masked_problem`).

    Any two records of one public class are hidden among each other; without classes, any two records are. Of two
    records of different classes nothing is claimed: who sees the action knows the class anyway. An action that a record
    does not allow has probability 0, whatever the policy. So the action identifies records of one public class that do
    not allow the same actions, except where nobody gets what only some allow. Every policy decides within
    each class of records that share what is public of them and allow the same, as if these were all records there are.

    Attributes
    ----------
    whole : DecisionProblem or None
        The plain problem, if any two records are hidden among each other and every record allows every action.
    classes : tuple of MaskClass
        The classes otherwise.
    hidden : tuple of tuples of int
        Which of the classes are hidden among each other: those of one public class.
    n_records, n_actions : int
    """

    whole: DecisionProblem | None
    classes: tuple[MaskClass, ...]
    hidden: tuple[tuple[int, ...], ...]
    n_records: int
    n_actions: int

    @property
    def told_apart(self) -> bool:
        """Whether records that are to be hidden among each other allow different actions."""
        return len(self.classes) > len(self.hidden)

    def tables(self, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x), (n_records, n_actions), column-major; -inf and 0 at actions that are not allowed."""
        if self.whole is not None:
            return policy.tables(self.whole)
        return tables_by_class(policy, self.classes, (self.n_records, self.n_actions))

    def epsilon_spent(self, logs: FloatArray) -> float:
        """The exact privacy loss of a table log p(a|x), (n_records, n_actions).

        Over records of one public class, and infinite where one of them gets an action that another does not allow.
        """
        return max(self.losses(logs))

    def losses(self, logs: FloatArray) -> tuple[float, ...]:
        """The exact privacy loss as above within each public class, in their order."""
        return tuple(privacy_loss_of_logs(table, AnyRecord()).epsilon for table in self._hidden(logs))

    def uses(self, policy: Policy, logs: FloatArray) -> tuple[Use, ...]:
        """What a policy's table log p(a|x), (n_records, n_actions), reveals within each public class, in their order.

        Whether somebody stays in a class from one decision to the next is not known here.
        """
        return tuple(table_use(policy, table, AnyRecord()) for table in self._hidden(logs))

    def _hidden(self, logs: FloatArray) -> list[FloatArray]:
        """The parts of a table whose rows are hidden among each other."""
        if self.whole is not None:
            return [logs]
        tables = []
        for together in self.hidden:
            parts = [self.classes[place] for place in together]
            if len(parts) == 1:
                tables.append(logs[np.ix_(parts[0].rows, parts[0].columns)])
            else:
                tables.append(logs[np.concatenate([part.rows for part in parts])])
        return tables

    def value(self, distribution: FloatArray, probabilities: FloatArray) -> float:
        """The expected utility of p(a|x), (n_records, n_actions), under a distribution of the records, (n_records,).

        Records that allow one action only have no choice, and count as 0.
        """
        if self.whole is not None:
            return float(distribution @ (probabilities * self.whole.utilities).sum(axis=1))
        return sum(
            float(distribution[part.rows] @ (probabilities[np.ix_(part.rows, part.columns)] * of.utilities).sum(axis=1))
            for part in self.classes
            if (of := part.problem) is not None
        )

    def best_actions(self) -> IntArray:
        """The first action of highest utility among those that each record allows, (n_records,)."""
        if self.whole is not None:
            return self.whole.best_actions
        best = np.empty(self.n_records, dtype=np.intp)
        for part in self.classes:
            best[part.rows] = part.columns[0 if part.problem is None else part.problem.best_actions]
        return best

    def with_prior(self, prior: FloatArray) -> MaskedProblem:
        """The same problem with another prior, (n_records,); the tables are shared."""
        whole = None if self.whole is None else self.whole.with_prior(prior)
        classes = tuple(
            part
            if part.problem is None
            else replace(part, problem=part.problem.with_prior(conditional(prior, part.rows)))
            for part in self.classes
        )
        return replace(self, whole=whole, classes=classes)


def masked_problem(
    utilities: FloatArray,
    prior: FloatArray,
    admissible: BoolArray | None,
    *,
    classes: IntArray | None = None,
    actions: Sequence[str] | None = None,
    records: Records | None = None,
) -> MaskedProblem:
    """The decision problem of records in public classes, of which each allows some of the actions.

    Parameters
    ----------
    utilities : array, (n_records, n_actions)
        Anything may stand at actions that are not allowed, and at the only one of a record.
    prior : array, (n_records,)
        The probability of each record; sums to 1. Within a class of probability 0 all records count as equally likely.
    admissible : array of bool, (n_records, n_actions), or None
        As `admissible_mask` gives it.
    classes : array of int, (n_records,), optional
        The public class of each record: only records of one class are hidden among each other. By default all are. If
        it is public which actions a record allows, `mask_classes` gives them.
    actions, records : optional
        As in `DecisionProblem`.

    Raises
    ------
    ValueError
        For utilities to choose between that are not finite (names the first), or a prior that is no distribution.

    Examples
    --------
    The third record does not allow the second action, so that action excludes it:

    >>> from policies.randomized_response import RandomizedResponse
    >>> utilities, prior = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), np.full(3, 1 / 3)
    >>> problem = masked_problem(utilities, prior, np.array([[True, True], [True, True], [True, False]]))
    >>> logs, probabilities = problem.tables(RandomizedResponse(1.0))
    >>> probabilities.round(3).tolist()
    [[0.269, 0.731], [0.731, 0.269], [1.0, 0.0]]
    >>> problem.epsilon_spent(logs)
    inf
    """
    known = NumberedRecords() if records is None else records
    if admissible is None and (classes is None or not classes.any()):
        problem = DecisionProblem(utilities, prior, AnyRecord(), actions, records=known)
        return MaskedProblem(problem, (), (), problem.n_records, problem.n_actions)
    allowed = np.ones(utilities.shape, dtype=np.bool_) if admissible is None else admissible
    bad = np.argwhere(allowed & ~np.isfinite(utilities) & (allowed.sum(axis=1) > 1)[:, None])
    if bad.size:
        row, action = (int(i) for i in bad[0])
        raise ValueError(f"utilities must be finite, got utilities[{row}, {action}]={float(utilities[row, action])}.")
    names = [f"a{i}" for i in range(allowed.shape[1])] if actions is None else list(actions)
    parts: list[MaskClass] = []
    hidden: dict[int, list[int]] = {}
    for rows in _members(classes, admissible, len(allowed)):
        columns: IntArray = np.flatnonzero(allowed[rows[0]])
        problem_of_class = None
        if len(columns) > 1:
            problem_of_class = DecisionProblem(
                utilities[np.ix_(rows, columns)],
                conditional(prior, rows),
                AnyRecord(),
                [names[action] for action in columns],
                records=SomeRecords(known, rows),
            )
        hidden.setdefault(0 if classes is None else int(classes[rows[0]]), []).append(len(parts))
        parts.append(MaskClass(rows, columns, problem_of_class))
    return MaskedProblem(None, tuple(parts), tuple(map(tuple, hidden.values())), *allowed.shape)


def _members(classes: IntArray | None, admissible: BoolArray | None, n_records: int) -> list[IntArray]:
    """The records of each public class that allow the same, rising."""
    masks = np.zeros(n_records, dtype=np.intp) if admissible is None else mask_classes(admissible)
    codes = masks if classes is None else classes * (int(masks.max()) + 1) + masks
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)

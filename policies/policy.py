"""Policy: a way to choose actions, with what it guarantees.

Where records do not allow every action, each set of records that allow the same is a problem of its own. The public
methods of a policy stand in this class alone. They ask a mechanism about each of `DecisionProblem.classes`, which have
no mask, and put the answers together. Neighbours allow the same actions, so a table that is epsilon-private within each
class is so as a whole. The classes are public, as the prior is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, final

import numpy as np

from policies.adjacency import Adjacency
from policies.arrays import SUM_TOLERANCE, FloatArray, Frozen, IntArray, blocks, non_negative
from policies.fitted import FittedPolicy
from policies.problem import DecisionProblem, MaskClass
from policies.sampler import draw_actions

# Below exp(-745) a float64 is 0.
LOG_SMALLEST = -745.0

# The public methods of a policy. A mechanism implements that of the same name with an underscore before it.
Answer = TypeVar("Answer")
PUBLIC_METHODS = ("check", "log_probabilities", "probabilities", "tables", "loss_bound", "sample")


class NotApplicableError(ValueError):
    """A policy that cannot be used on a problem; str() says why."""


class ClaimError(Exception):
    """A policy reveals more than it claims, or claims nothing; str() says which, and how much or why."""


class NoTableError(ValueError):
    """A policy that gives no table of probabilities; str() says which, and why, `fault` only why."""

    def __init__(self, policy: str, fault: str) -> None:
        super().__init__(f"{policy} gives no table of probabilities: {fault}")
        self.fault = fault


class InadmissibleError(ValueError):
    """A policy that gives a record an action that it does not allow; str() names them."""


@dataclass(frozen=True)
class Policy(Frozen):
    """A way to choose actions.

    A mechanism has a `name` and a docstring, and implements `_log_probabilities`. It may also implement `_tables` or
    `_probabilities`, where these take less work, `_check` and `_loss_bound`. Each of them gets problems without a
    mask.

    The public methods of the same names stand in this class alone. They split a problem by what its records allow, so
    that no mechanism can give a record an action that it does not allow. A class that replaces a public method could;
    therefore Python makes no object of such a class (TypeError). A mechanism that has to look at
    `DecisionProblem.admissible` says `across_masks`, and what it answers is checked against the mask.

    A class that derives from `Policy` itself may implement `log_probabilities` in place of `_log_probabilities`. All
    that uses a policy asks `tables`, `probabilities` or `sample`, which split the problem first.

    A mechanism has no words and no colours: those of the built-in ones stand in `policies/descriptions.toml` and with
    the figures.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, >= 0; inf asks for no privacy. Policies that have none ignore it.

    Attributes
    ----------
    name : str
        In the catalogue, studies and tables: lower-case letters and digits, with hyphens between.
    uses_epsilon, uses_prior : bool
        Whether it depends on epsilon, and on the prior; both True unless a class says otherwise.
    row_wise : bool
        Whether, where all records are neighbours of each other, records with the same utilities and outcomes get the
        same probabilities, and how many such records there are matters only through the sum of their prior: then each
        distinct row is computed once (`policies.distinct`). It is believed of built-in classes alone.
    across_masks : bool
        Whether it looks at `DecisionProblem.admissible` itself. False unless a class says otherwise: then it decides
        for each set of records that allow the same actions as a problem of its own.

    Raises
    ------
    ValueError
        For an epsilon that is not >= 0.
    TypeError
        For a class that replaces another public method, or implements no probabilities.
    NoTableError
        From these methods, for a mechanism of another package that fails, whatever it raises.
    InadmissibleError
        From these methods, for a mechanism that says `across_masks` and gives a record what it does not allow.
    """

    epsilon: float = np.inf
    name: ClassVar[str]
    uses_epsilon: ClassVar[bool] = True
    uses_prior: ClassVar[bool] = True
    row_wise: ClassVar[bool] = False
    across_masks: ClassVar[bool] = False

    def __new__(cls, *_values: Any, **_options: Any) -> Self:
        """An object of a class that leaves the public methods as they are."""
        fault = class_fault(cls)
        if fault:
            raise TypeError(fault)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check epsilon."""
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))

    @property
    def guarantee(self) -> float:
        """The privacy loss that this policy claims never to exceed, under the problem's adjacency."""
        return self.epsilon

    @final
    @property
    def claimed(self) -> float:
        """The guarantee, >= 0; ClaimError for that of another package if it fails or is no such number."""
        try:
            return non_negative(self.guarantee, "guarantee")
        except Exception as error:
            if not _is_foreign(self):
                raise
            raise ClaimError(f"{self.at_epsilon} claims no privacy loss: {in_one_line(error)}") from error

    @property
    def at_epsilon(self) -> str:
        """The name, with the epsilon if it takes one, as messages have it."""
        return f"{self.name} at ε = {self.epsilon:g}" if self.uses_epsilon else self.name

    def among(self, actions: IntArray, n_actions: int) -> Policy:
        """The same policy on these of the actions alone; ValueError for what does not fit n_actions."""
        return self

    @final
    def check(self, problem: DecisionProblem) -> None:
        """NotApplicableError if the policy cannot be used on a problem; cheaper than finding out by using it."""
        if self._splits(problem):
            for _, policy, own in decisions_of(self, problem.classes, problem.n_actions):
                policy.check(own)
        else:
            # One of another package that fails is named where its table is asked for.
            with suppress(NoTableError):
                self._asked(self._check, problem)

    def log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """log p(a|x), (n_records, n_actions), column-major; -inf where an action is never taken."""
        if self._splits(problem):
            return self.tables(problem)[0]
        return self._admissible(problem, self._asked(self._log_probabilities, problem), -np.inf)

    @final
    def probabilities(self, problem: DecisionProblem) -> FloatArray:
        """p(a|x), (n_records, n_actions), column-major; rows sum to 1."""
        if self._splits(problem):
            return self.tables(problem)[1]
        return self._admissible(problem, self._asked(self._probabilities, problem), 0.0)

    @final
    def tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """log p(a|x) and p(a|x) together, as above.

        A policy of another package is not trusted that these are probabilities, and the same by each of its methods:
        NoTableError.
        """
        if self._splits(problem):
            return tables_by_class(self, problem.classes, (problem.n_records, problem.n_actions))
        logs, probabilities = self._asked(self._tables, problem)
        logs = self._admissible(problem, logs, -np.inf)
        probabilities = self._admissible(problem, probabilities, 0.0)
        if _is_foreign(self) and (fault := table_fault(self, problem, logs, probabilities)):
            raise NoTableError(self.at_epsilon, fault)
        return logs, probabilities

    @final
    def fit(self, problem: DecisionProblem) -> FittedPolicy:
        """The policy on a problem, computed once: probabilities, what they reveal and are worth, and draws from them.

        Examples
        --------
        >>> from policies import AnyRecord, make_policy
        >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
        >>> make_policy("randomized-response", epsilon=1).fit(problem).probabilities.round(3).tolist()
        [[0.269, 0.731], [0.731, 0.269]]
        """
        return FittedPolicy(problem, self)

    @final
    def loss_bound(self, problem: DecisionProblem) -> float:
        """An upper bound on the expected utility loss known from theory; NaN where there is none.

        With a mask, the mean over the sets of records that allow the same; a record without a choice loses nothing.
        """
        if not self._splits(problem):
            return self._asked(self._loss_bound, problem)
        total = 0.0
        for part, policy, own in decisions_of(self, problem.classes, problem.n_actions):
            share = float(problem.prior[part.rows].sum())
            if share > 0:
                total += share * policy.loss_bound(own)
        return total

    @final
    def sample(self, problem: DecisionProblem, records: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw an action for each record number, (m,), from the exact table. For simulation, not for a release."""
        return draw_actions(self.probabilities(problem)[records], rng)

    def _asked(self, method: Callable[[DecisionProblem], Answer], problem: DecisionProblem) -> Answer:
        """What a mechanism answers; NoTableError for one of another package that fails."""
        try:
            return method(problem)
        except (NotApplicableError, NoTableError, InadmissibleError):
            raise
        except Exception as error:
            if not _is_foreign(self):
                raise
            raise NoTableError(self.at_epsilon, in_one_line(error)) from error

    def _check(self, problem: DecisionProblem) -> None:
        """As `check`."""

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        """As `log_probabilities`, which a class may implement in its place."""
        return self.log_probabilities(problem)

    def _probabilities(self, problem: DecisionProblem) -> FloatArray:
        """As `probabilities`."""
        return self._tables(problem)[1]

    def _tables(self, problem: DecisionProblem) -> tuple[FloatArray, FloatArray]:
        """As `tables`; a mechanism may know p without exponentiating again."""
        logs = self._log_probabilities(problem)
        with np.errstate(over="ignore"):  # of what is no logarithm of a probability, as is found out elsewhere
            return logs, np.exp(logs)

    def _loss_bound(self, problem: DecisionProblem) -> float:
        """As `loss_bound`."""
        return np.nan

    def _splits(self, problem: DecisionProblem) -> bool:
        """Whether each set of records that allow the same actions is decided as a problem of its own."""
        return problem.admissible is not None and not self.across_masks

    def _admissible(self, problem: DecisionProblem, table: FloatArray, never: float) -> FloatArray:
        """A table, which has `never` at every action that a record does not allow; InadmissibleError otherwise."""
        if problem.admissible is not None and np.shape(table) == problem.admissible.shape:
            wrong = np.argwhere((table != never) & ~problem.admissible)
            if wrong.size:
                raise self._inadmissible(problem, *map(int, wrong[0]))
        return table

    def _inadmissible(self, problem: DecisionProblem, record: int, action: int) -> InadmissibleError:
        return InadmissibleError(
            f"{self.name} gives {problem.actions[action]} to [{problem.records.describe(record)}], who must not get "
            "it: a mechanism that says across_masks must keep to DecisionProblem.admissible"
        )


def in_one_line(error: BaseException) -> str:
    """The type of an error and what it says."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".:")


def class_fault(kind: type[Policy]) -> str:
    """What is wrong with a class as a mechanism, in one line; "" for nothing."""
    name = kind.__name__
    replaced = [method for method in PUBLIC_METHODS if getattr(kind, method) is not getattr(Policy, method)]
    implemented = kind._log_probabilities is not Policy._log_probabilities
    if replaced == ["log_probabilities"] and not implemented:
        return ""  # the simplest mechanism, see `Policy`
    if replaced:
        return f"{name} replaces {replaced[0]}, which keeps a policy to what records allow; implement _{replaced[0]}"
    if not implemented:
        return f"the class {name} lacks _log_probabilities"
    # What the class itself implements would never be asked.
    owner = next(base for base in kind.__mro__ if {"_log_probabilities", "_tables"} & vars(base).keys())
    if kind._tables is not Policy._tables and "_tables" not in vars(owner):
        return f"{name} implements _log_probabilities, but inherits _tables, which is asked first; implement _tables"
    return ""


def _is_foreign(policy: Policy) -> bool:
    """Whether a policy's class is from elsewhere; those of this package are tested to be what they say."""
    return type(policy).__module__.partition(".")[0] != __name__.partition(".")[0]


def table_fault(policy: Policy, problem: DecisionProblem, logs: FloatArray, probabilities: FloatArray) -> str:
    """Why what a policy gives is no table of probabilities, or not the same one everywhere; empty if all is well."""
    if fault := _sums_fault(logs, problem):
        return fault
    kind, given = type(policy), [probabilities]
    if kind._tables is not Policy._tables:
        with np.errstate(over="ignore"):
            given.append(np.exp(policy._asked(policy._log_probabilities, problem)))
    if kind._probabilities is not Policy._probabilities:
        given.append(policy._asked(policy._probabilities, problem))
    for table in given:
        if np.shape(table) != logs.shape or not np.allclose(np.exp(logs), table, rtol=0, atol=SUM_TOLERANCE):
            return "its probabilities are not those of its logarithms"
    return ""


def _sums_fault(logs: FloatArray, problem: DecisionProblem) -> str:
    """Why an array is no table of log-probabilities for the problem; empty if it is one."""
    if np.shape(logs) != problem.utilities.shape:
        return f"its table has shape {np.shape(logs)} instead of {problem.utilities.shape}"
    for rows in blocks(problem.n_records):
        # Rows of NaN or of huge logs fail the comparison too.
        with np.errstate(over="ignore"):
            sums = np.exp(logs[rows]).sum(axis=1)
        bad = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE))
        if bad.size:
            record = problem.records.describe(rows.start + int(bad[0]))
            return f"its probabilities sum to {float(sums[bad[0]]):.9g} for [{record}]"
    return ""


def decisions_of(
    policy: Policy, classes: Sequence[MaskClass], n_actions: int
) -> Iterator[tuple[MaskClass, Policy, DecisionProblem]]:
    """Each class with a choice, the policy on the actions that it allows, and the problem of its records."""
    for part in classes:
        if part.problem is not None:
            yield part, policy.among(part.columns, n_actions), part.problem


def tables_by_class(
    policy: Policy, classes: Sequence[MaskClass], shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """log p(a|x) and p(a|x), (n_records, n_actions), column-major, from those of each class with a choice."""
    logs, probabilities = np.full(shape, -np.inf, order="F"), np.zeros(shape, order="F")
    for part in classes:
        if part.problem is None:
            logs[part.rows, part.columns[0]], probabilities[part.rows, part.columns[0]] = 0.0, 1.0
    for part, on_class, own in decisions_of(policy, classes, shape[1]):
        log_table, table = on_class.tables(own)
        for place, action in enumerate(part.columns):
            logs[part.rows, action] = log_table[:, place]
            probabilities[part.rows, action] = table[:, place]
    return logs, probabilities


def two_values(actions: IntArray, n_actions: int, chosen: float, other: float) -> FloatArray:
    """A table, (n_records, n_actions), of one value for each record's own action and another for all others."""
    table = np.empty((len(actions), n_actions), order="F")
    for action, column in enumerate(table.T):
        column[:] = other
        np.copyto(column, chosen, where=actions == action)
    return table


def one_hot_logs(actions: IntArray, n_actions: int) -> FloatArray:
    """The log-probability table of a deterministic choice, (n_records, n_actions)."""
    return two_values(actions, n_actions, 0.0, -np.inf)


def drop_unreachable(logs: FloatArray, adjacency: Adjacency) -> None:
    """Set log p(a|x) to -inf, in place, where a is out of reach for everyone who is hidden among each other.

    Out of reach means a probability that is 0 in float64. Where one partition makes all neighbours, what happens in
    a clique is public up to who in it was asked, so this is a public change of the base measure of that clique.
    Otherwise cliques overlap and an action is dropped for everyone or for no one. Without it, rounding at
    log p = -1e15 would pass for privacy loss.
    """
    partitions = adjacency.partitions(len(logs))
    shape, axes = (partitions[0].shape, partitions[0].axes) if len(partitions) == 1 else ((len(logs),), (0,))
    for column in logs.T:
        grid = column.reshape(shape)
        lost = grid.max(axis=axes, keepdims=True) < LOG_SMALLEST
        if lost.any():
            np.copyto(grid, -np.inf, where=lost)

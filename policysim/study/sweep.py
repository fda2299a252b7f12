"""What every comparison over epsilon shares: which policies at which epsilon, whose groups, and one table of it all.

A kind of question supplies an evaluator, which makes of each policy at each epsilon an `Evaluation`, and a table of
`Columns`; `tabulate` makes the rows of it, and `evaluate_each` does the work side by side.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from envs.toml_reader import SIZES, is_epsilon, is_number
from policies.arrays import FloatArray, IntArray
from policies.catalogue import WITHOUT_LEAD, is_built_in, make_policy
from policies.distinct import distinct_rows, once_each
from policies.fitted import FittedPolicy
from policies.optimal.bounds import InfeasibleError
from policies.optimal.ceilings import MAX_ACTIONS
from policies.optimal.optimum import Optimal, OptimalSafe
from policies.policy import NotApplicableError, Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy, SameForAlike, Uniform
from policysim.progress import SILENT, Progress
from policysim.words import ALL

Job = TypeVar("Job", bound=Hashable)
Result = TypeVar("Result")
# numpy releases the interpreter's lock in its loops, and each job needs about 0.1 GB at 1.3 million records.
N_THREADS = min(4, os.cpu_count() or 1)
# The default curve: 24 values from "hides almost everything" to "hides almost nothing".
# fmt: off
EPSILONS = (
    0.05, 0.07, 0.1, 0.14, 0.2, 0.27, 0.37, 0.5, 0.65, 0.8, 1.0, 1.3,
    1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0, 10.0, 12.5, 16.0, 20.0,
)
# fmt: on
EPSILON_WANTED = "a number >= 0"
# What policies are measured against.
REFERENCES = (Greedy(), BestFixed(), Uniform())


def asked_for(
    policies: Sequence[str | Policy | FittedPolicy] | None, epsilons: Sequence[float] | float | None, by: Sequence[str]
) -> tuple[list[Policy], tuple[float, ...]]:
    """The policies, each once, and the epsilons, rising; ValueError for something else than lists, or an empty one."""
    if isinstance(policies, str) or isinstance(by, str):
        raise ValueError(f"policies and by must be lists, got policies={policies!r} and by={by!r}.")
    asked = WITHOUT_LEAD if policies is None else list(policies)
    if not asked:
        raise ValueError("policies must not be empty.")
    named: list[Any] = [item.policy if isinstance(item, FittedPolicy) else item for item in asked]
    templates = list(dict.fromkeys(make_policy(item) if isinstance(item, str) else item for item in named))
    return templates, checked_epsilons(EPSILONS if epsilons is None else epsilons)


def checked_epsilons(values: Iterable[float] | float) -> tuple[float, ...]:
    """Rising, distinct epsilons of a list or a number; ValueError if it is empty, or for what is none (`SIZES`)."""
    return checked_numbers(values, "epsilon", is_epsilon, EPSILON_WANTED, SIZES)


def checked_numbers(
    values: Iterable[float] | float, name: str, fits: Callable[[object], bool], wanted: str, sizes: str
) -> tuple[float, ...]:
    """Rising, distinct numbers; a ValueError says what is `wanted`, and of a number >= 0 which `sizes` there are."""
    values = values if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise ValueError(f"{name} must be {wanted}, got an empty list")
    for value in listed:
        if not fits(value):
            raise ValueError(f"{name} must be {sizes if is_number(value, 0) else wanted}, got {value!r}")
    return tuple(sorted({float(value) for value in listed}))


def at(template: Policy, epsilon: float) -> Policy:
    """The policy at an epsilon, or itself if it takes none."""
    return replace(template, epsilon=epsilon) if template.uses_epsilon else template


def at_each(template: Policy, epsilons: Sequence[float]) -> list[Policy]:
    """The policies to evaluate: one that ignores epsilon only once."""
    return list(dict.fromkeys(at(template, epsilon) for epsilon in epsilons))


def usable_policies(
    policies: Sequence[Policy], problem: DecisionProblem, *, named: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the policies that can be used on a problem, and why others cannot.

    Parameters
    ----------
    policies : sequence of Policy
        At the smallest epsilon that matters: bounds that can be kept there can be kept at all larger ones.
    problem : DecisionProblem
        What is to be decided.
    named : bool
        Whether each was asked for by name.

    Raises
    ------
    NotApplicableError
        For a policy that cannot be used and was asked for by name. The optimum of few actions never is: what cannot be
        computed of the limit is bounded instead. Nor is the safe one beside others, where there is no bound to keep:
        where nothing is stated, and no outcome that leads can happen, it is the optimum, and is left out without a
        word.
    """
    kept, left_out = [], []
    alone = len(policies) == 1
    for policy in policies:
        if isinstance(policy, OptimalSafe) and not (
            alone or policy.at_most or policy.capacity or happening_lead(problem)
        ):
            continue
        try:
            policy.check(evaluated_on(policy, problem))
        except NotApplicableError as error:
            if policy.name != Optimal.name or problem.n_actions > MAX_ACTIONS:
                beside = isinstance(policy, OptimalSafe) and not isinstance(error, InfeasibleError) and not alone
                if named and not beside:
                    raise
                left_out.append(f"{policy.name}, as {error}")
                continue
        kept.append(policy.name)
    return tuple(kept), tuple(left_out)


def happening_lead(problem: DecisionProblem) -> str | None:
    """The outcome that leads a problem; None where none does, and where no treatment may end in it."""
    return problem.lead if problem.lead is not None and problem.outcomes[problem.lead].any() else None


def with_references(names: Sequence[str]) -> tuple[str, ...]:
    """The names with those of `REFERENCES` before them: what others are measured against is in every table."""
    return tuple(dict.fromkeys([*(policy.name for policy in REFERENCES), *names]))


def evaluated_on(policy: Policy, problem: DecisionProblem) -> DecisionProblem:
    """The problem of the distinct rows where a policy is the same on it (`policies.distinct`), else the problem itself.

    What is not built in is evaluated on every record: what it declares of itself is not trusted.
    """
    return once_each(policy, problem) if is_built_in(policy) or type(policy) is SameForAlike else problem


def rows_on(on: DecisionProblem, problem: DecisionProblem) -> IntArray:
    """The row of each record in the problem that a policy is evaluated on (`evaluated_on`), (n_records,)."""
    found = None if on is problem else distinct_rows(problem)
    return np.arange(problem.n_records) if found is None else found.row


def prepare(problem: DecisionProblem) -> None:
    """Compute what most policies look at once, before threads share the problem."""
    for each in (problem, *(part.problem for part in problem.classes)):
        if each is not None:
            _ = each.sensitivity, each.best_actions


def applies(policy: Policy, problem: DecisionProblem) -> bool:
    """Whether a policy can be used on a problem."""
    try:
        policy.check(evaluated_on(policy, problem))
    except NotApplicableError:
        return False
    return True


@dataclass(frozen=True)
class Group:
    """One group of patients: a level of a feature, or everyone.

    Attributes
    ----------
    feature, level : str
        Both "all" for everyone.
    share : float
        Its probability under the prior.
    """

    feature: str
    level: str
    share: float


class Groups(list[Group]):
    """Everyone, and the patients with each level of some features: who is in which, and what each adds up to.

    Parameters
    ----------
    by : sequence of str
        Features.
    levels_of : callable
        From a feature to the level of each record, (n,), and the labels of the levels.
    weights : array, (n,)
        How many patients, or which share of them, each record stands for.

    Attributes
    ----------
    cells : array of int, (n,)
        The cell of each record in the product of all features: each record is counted once, whatever the groups.
    membership : array of 0 and 1, (n_groups, n_cells)
        Which cells make up which group; everyone first.
    sizes : array, (n_groups,)
        The weight of each group.
    """

    def __init__(
        self, by: Sequence[str], levels_of: Callable[[str], tuple[IntArray, tuple[str, ...]]], weights: FloatArray
    ) -> None:
        levels = [levels_of(feature) for feature in by]
        shape = [len(labels) for _, labels in levels]
        self.cells: IntArray = np.zeros(len(weights), dtype=np.intp)
        for codes, labels in levels:
            self.cells = self.cells * len(labels) + codes
        self._n_cells = math.prod(shape)
        places = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), dtype=np.intp)
        names, rows = [(ALL, ALL)], [np.ones(self._n_cells)]
        for feature, (_, labels), place in zip(by, levels, places, strict=True):
            names += [(feature, label) for label in labels]
            rows += [(place == level).astype(np.float64) for level in range(len(labels))]
        self.membership: FloatArray = np.array(rows)
        self.sizes = self.totals(weights)
        shares = self.sizes / self.sizes[0] if self.sizes[0] else self.sizes
        super().__init__(Group(*name, float(share)) for name, share in zip(names, shares, strict=True))

    def totals(self, values: FloatArray) -> FloatArray:
        """The sum of (n,) values in each group, (n_groups,)."""
        if self._n_cells == 1:
            return np.array([values.sum()])
        sums = np.bincount(self.cells, values, self._n_cells)
        # Not a product, in which an infinite sum would be NaN in groups that it is not of.
        totals: FloatArray = np.where(self.membership > 0, sums, 0.0).sum(axis=1)
        return totals

    def rows(self, place: int) -> IntArray:
        """The records of a group."""
        found: IntArray = np.flatnonzero(self.membership[place][self.cells] > 0)
        return found


class Evaluation(Protocol):
    """One policy at one epsilon, evaluated: what the columns of a comparison are computed from."""

    @property
    def policy(self) -> str:
        """The name of the policy, as the table has it."""

    @property
    def epsilon(self) -> float:
        """As it was asked for."""

    @property
    def groups(self) -> Sequence[Group]:
        """Those that it has rows of, everyone first."""


AnyEvaluation = TypeVar("AnyEvaluation", bound=Evaluation)
# What a column holds of one evaluation: a value for all its groups, or one for each.
ColumnValue: TypeAlias = float | str | Sequence[float] | FloatArray


# How each column is computed, in their order. A name that ends in "_" is the beginning of several: the mapping that is
# found has the ends of their names ("a1"); so it may for any other ("_low").
Columns: TypeAlias = dict[str, Callable[[AnyEvaluation], ColumnValue | Mapping[str, ColumnValue]]]


def tabulate(evaluations: Iterable[AnyEvaluation], columns: Columns[AnyEvaluation]) -> pd.DataFrame:
    """The rows of a comparison: policy, epsilon, group, level, share and the columns, a row for each group.

    Parameters
    ----------
    evaluations : iterable of Evaluation
        In the order of the rows.
    columns : dict of str to callable
        `Columns`.
    """
    cells: dict[str, list[Any]] = defaultdict(list)
    n_rows = 0
    for each in evaluations:
        groups = each.groups
        found: dict[str, Any] = {
            "policy": each.policy,
            "epsilon": each.epsilon,
            "group": [group.feature for group in groups],
            "level": [group.level for group in groups],
            "share": [group.share for group in groups],
        }
        for column, of in columns.items():
            values = of(each)
            ends = values if isinstance(values, Mapping) else {"": values}
            found |= {f"{column}{end}": value for end, value in ends.items()}
        for name, value in found.items():
            # What earlier evaluations do not have is empty there.
            missing = [math.nan] * (n_rows - len(cells[name]))
            cells[name] += [*missing, *([value] * len(groups) if np.ndim(value) == 0 else value)]
        n_rows += len(groups)
    return pd.DataFrame({name: [*listed, *[math.nan] * (n_rows - len(listed))] for name, listed in cells.items()})


def evaluate_each(
    jobs: Iterable[Job], evaluate: Callable[[Job], Result], progress: Progress = SILENT
) -> dict[Job, Result]:
    """Evaluate each policy, or whatever it is, once, side by side; progress counts them.

    Each in one thread: more of BLAS would wait for each other.
    """
    each = list(dict.fromkeys(jobs))
    progress.expect(len(each))
    results = {}
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(N_THREADS) as pool:
        for job, result in zip(each, pool.map(evaluate, each), strict=True):
            results[job] = result
            progress.advance()
    return results

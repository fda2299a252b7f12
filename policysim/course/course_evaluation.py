"""Exact evaluation of a policy over the days of a process: what it is worth, what it causes, what it reveals.

The columns of a comparison over days, one line of `COLUMNS` each, and one function where it is computed here, are
computed of a `CourseEvaluation`: what one policy over all days gives the patients of each group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from policies.accounting import of_each_class
from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.records import SomeRecords
from policysim.course import occupancy
from policysim.course.course_limit import ProvenLimit
from policysim.course.planning import DailyDecisions, expected, require_tabular
from policysim.course.planning_infinite import EndlessError, chain_values
from policysim.course.process import Process, counts_of, outcomes_of, q_table
from policysim.course.schedules import DayAction, at_given, following
from policysim.study.gain import excess, ratio
from policysim.study.sweep import Columns, Group, Groups

# The ends of so many schedules are remembered.
ENDS = 8
# What a share of the gain may be too small by, and more.
SLACK = 1e-12
NO_LIMIT = ProvenLimit(math.nan, "", "")
# From a day to log p(a|x) and p(a|x), (n, k): asked for once a day, since those of all days may not fit into memory.
DailyTables = Callable[[int], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class CourseResult:
    """One policy, evaluated over a course.

    Attributes
    ----------
    value : array, (n_groups,)
        The expected return per patient of each group.
    outcomes : mapping of str to array, (n_groups,)
        The expectation of each outcome over the whole course, not discounted. What is counted among everyone alone is
        NaN in all other groups.
    losses : tuple of tuple of float
        The exact privacy loss of the decision on each day, within each public class if nobody changes it, else the
        largest alone; of the one decision that is repeated without a horizon.
    """

    value: FloatArray
    outcomes: Mapping[str, FloatArray]
    losses: tuple[tuple[float, ...], ...]

    @property
    def spent(self) -> tuple[float, ...]:
        """The exact privacy loss of each day, in any class."""
        return tuple(map(max, self.losses))

    @property
    def spent_in_all(self) -> float:
        """The sum over the days, in the class where it is largest."""
        return max(map(math.fsum, of_each_class(self.losses)))


class ProcessEvaluator:
    """Evaluates policies on one process.

    Parameters
    ----------
    process : Process
        With `outcomes`, a mapping of names to (n, k) expectations of one step, if it has any.
    course : DailyDecisions
        Its decisions: they know who is hidden among whom.
    by : sequence of str, optional
        Features of the first state whose levels are evaluated one by one, beside everyone.

    Attributes
    ----------
    process : Process
    priors : callable
        Those of the course (`DailyDecisions`).
    classes_stay : bool
        Whether there are public classes, and nobody changes from one to another.
    groups : Groups
        Of the first states, everyone first.
    """

    def __init__(self, process: Process, course: DailyDecisions, by: Sequence[str] = ()) -> None:
        self.process, self.priors = process, course.priors
        self._first = course.plain[0]  # who is hidden among whom is the same on every day
        self.classes_stay = len(process.by_class()) > 1
        self._before = lru_cache(ENDS)(self._before_end)
        self._outcomes = tuple(outcomes_of(process))
        # Outcomes are counted, not discounted.
        counted = ((table, 1.0) for table in outcomes_of(process).values())
        self._channels = [(process.rewards, process.discount), *counted]
        # Several first records may share a state; their groups are their own.
        merged: Any = getattr(process, "first_records", None)
        first = process if merged is None else merged
        present: IntArray = np.flatnonzero(first.initial)
        self._present = present if merged is None else merged.state[present]
        self._weights = first.initial[present]
        self._records = SomeRecords(first.records, present)
        self.groups = self.grouped(by)

    def grouped(self, by: Sequence[str]) -> Groups:
        """The first states by the levels of some features, everyone first."""
        return Groups(by, self._records.groups, self._weights)

    def of_schedule(self, schedule: tuple[DayAction, ...]) -> CourseResult:
        """Evaluate giving everybody the action of the day, or that of the own public class: it costs no privacy."""
        result = self.result(self._before(schedule), [(0.0,)] * len(schedule))
        return self.with_everyone(result, lambda: occupancy.of_days(self.process, schedule.__getitem__)[1])

    def evaluate(self, tables: DailyTables) -> CourseResult:
        """Evaluate a policy: NaN (or -inf, inf) for a value that does not exist, and for empty groups."""
        if self.process.horizon is None:
            logs, probabilities = tables(0)
            try:
                values = chain_values(require_tabular(self.process), probabilities)
            except EndlessError:
                values = np.full(len(self.process.initial), np.nan)
            return self.result([values], [self._losses(logs)])
        result = self.backward(lambda day, _: tables(day))
        return self.with_everyone(result, lambda: occupancy.of_days(self.process, lambda day: tables(day)[1])[1])

    def backward(
        self, decide: Callable[[int, FloatArray], tuple[FloatArray, FloatArray]], end: tuple[DayAction, ...] = ()
    ) -> CourseResult:
        """Go back through the days of a finite horizon: the value of each first state, so also of groups.

        Parameters
        ----------
        decide : callable
            Gives log p(a|x) and p(a|x), (n, k), from the day and its Q-values, (n, k), under what it chose for the days
            that follow.
        end : tuple of int, optional
            What everybody gets on the last days, of which `decide` is then not asked.
        """
        process = self.process
        values = self._before(end).copy()
        losses: list[tuple[float, ...]] = [(0.0,)] * len(end)
        for day in reversed(range((process.horizon or 0) - len(end))):
            q_values = q_table(process, values[0])
            logs, probabilities = decide(day, q_values)
            losses.append(self._losses(logs))
            values[0] = expected(process, probabilities, q_values)
            for metric, (table, discount) in enumerate(self._channels[1:], start=1):
                later = self.process.continuation(values[metric])
                values[metric] = 0.0
                for action, chances in enumerate(probabilities.T):
                    values[metric] += chances * (table[:, action] + discount * later[:, action])
        return self.result(values, losses[::-1])

    def _losses(self, logs: FloatArray) -> tuple[float, ...]:
        """What a table log p(a|x), (n, k), reveals within each class, or in all of them where these may change."""
        losses = self._first.losses(logs)
        return losses if self.classes_stay else (max(losses),)

    def _before_end(self, end: tuple[DayAction, ...]) -> FloatArray:
        """What is counted from each state, (n_metrics, n), before everybody gets these actions on the last days."""
        if not end:
            return np.zeros((len(self._channels), len(self.process.initial)))
        action, later = end[0], self._before(end[1:])
        rows = [
            at_given(self.process, table, action) + discount * following(self.process, row, action)
            for (table, discount), row in zip(self._channels, later, strict=True)
        ]
        return np.stack(rows)

    def result(self, counted: Iterable[FloatArray], losses: Sequence[tuple[float, ...]]) -> CourseResult:
        """The means in each group of what is counted from each state, (n,) each: the return, then the outcomes.

        NaN for a group of probability 0.
        """
        value, *others = (self.means(values, self.groups) for values in counted)
        return CourseResult(value, dict(zip(self._outcomes, others, strict=False)), tuple(losses))

    def with_everyone(self, result: CourseResult, occupied: Callable[[], FloatArray]) -> CourseResult:
        """The result, and what the process counts among everyone alone; `occupied` as of `process.counts_of`.

        For each group they would take too long, as in one decision.
        """
        return self.with_counts(result, counts_of(self.process, occupied))

    def with_counts(self, result: CourseResult, everyone: Mapping[str, float]) -> CourseResult:
        """The result, and what was counted among everyone alone."""
        others = np.full(len(self.groups) - 1, np.nan)
        added = {name: np.append(mean, others) for name, mean in everyone.items() if name not in result.outcomes}
        return replace(result, outcomes={**result.outcomes, **added})

    def means(self, values: FloatArray, groups: Groups) -> FloatArray:
        """The mean in each group, (n_groups,), of what first states have, (n,)."""
        sizes = np.where(groups.sizes > 0, groups.sizes, np.nan)
        found: FloatArray = groups.totals(self._weights * values[self._present]) / sizes
        return found


@dataclass(frozen=True, eq=False)
class CourseReferences:
    """What policies are measured against over the days of one process.

    Where states differ in what they allow, and that never changes, `fixed` is the best for all who allow the same.

    Attributes
    ----------
    horizon : float
        The number of decisions; inf for a process that goes on until it ends.
    groups : sequence of Group
        Of the first states, everyone first.
    best, uniform : CourseResult
        Of these policies.
    fixed : CourseResult or None
        Of the best constant action, if any has a value.
    """

    horizon: float
    groups: Sequence[Group]
    best: CourseResult
    uniform: CourseResult
    fixed: CourseResult | None


@dataclass(frozen=True, eq=False)
class CourseEvaluation:
    """One policy over all days, at one epsilon of a decision or within one total, evaluated.

    Attributes
    ----------
    policy, epsilon : str, float
        As the table has them.
    result : CourseResult
        What it gives, and what it reveals.
    references : References
        Of the same process.
    continuation : {"private", "optimal"}
        What the Q-values expect of the days that follow.
    total : float or None
        What all days may spend together; None where nobody has set that.
    total_spent : float
        What they spend at most at the delta of the total.
    composition : str
        What proves it.
    limit : ProvenLimit
        What no mechanism within the total exceeds, for everyone; of nothing where that is not asked for.
    """

    policy: str
    epsilon: float
    result: CourseResult
    references: CourseReferences
    continuation: str = "optimal"
    total: float | None = None
    total_spent: float = math.nan
    composition: str = ""
    limit: ProvenLimit = NO_LIMIT

    @property
    def groups(self) -> Sequence[Group]:
        """Everyone first."""
        return self.references.groups

    @property
    def best(self) -> FloatArray:
        """What the best policy is worth to each group, (n_groups,)."""
        return self.references.best.value

    @property
    def fixed(self) -> FloatArray:
        """What the best constant action is worth to each group, (n_groups,); NaN where there is none."""
        fixed = self.references.fixed
        return np.full(len(self.groups), np.nan) if fixed is None else fixed.value


def loss(of: CourseEvaluation) -> FloatArray:
    """V(best) - V."""
    return excess(of.best, of.result.value, np.abs(of.best))


def normalized_loss(of: CourseEvaluation) -> FloatArray:
    """Loss / (V(best) - V(uniform)); NaN where that is rounding."""
    return ratio(loss(of), of.best - of.references.uniform.value, np.abs(of.best))


def benefit_kept(of: CourseEvaluation) -> FloatArray:
    """(V - V(fixed)) / (V(best) - V(fixed)); NaN where that is rounding."""
    scale = np.abs(of.best)
    return ratio(excess(of.result.value, of.fixed, scale), of.best - of.fixed, scale)


def extra(of: CourseEvaluation) -> dict[str, FloatArray]:
    """E(outcome) - E(outcome under the best constant action), of each; NaN where there is none."""
    fixed = of.references.fixed
    for_all = (
        {name: np.full(len(of.groups), np.nan) for name in of.result.outcomes} if fixed is None else fixed.outcomes
    )
    return {
        name: excess(mean, for_all[name], np.maximum(abs(mean), abs(for_all[name])))
        for name, mean in of.result.outcomes.items()
    }


def epsilon_spent(of: CourseEvaluation) -> float:
    """The largest exact privacy loss of one decision."""
    return max(of.result.spent)


def total_epsilon(of: CourseEvaluation) -> float:
    """The total as it was asked for; else the sum of the exact losses of all days, inf or 0 without a horizon."""
    return _all_days(of) if of.total is None else of.total


def _all_days(of: CourseEvaluation) -> float:
    total = of.result.spent_in_all
    return total if of.references.horizon < math.inf or total == 0 else math.inf


def hides(of: CourseEvaluation) -> str:
    """Whether any two courses of states, the state of each decision only, or nothing is hidden."""
    return "course" if _all_days(of) < math.inf else "one state" if epsilon_spent(of) < math.inf else "nothing"


def unbeatable(of: CourseEvaluation) -> FloatArray:
    """The value that no mechanism within the total exceeds, for everyone."""
    return np.where(np.arange(len(of.groups)) == 0, of.limit.value, np.nan)


def most_kept(of: CourseEvaluation) -> FloatArray:
    """The share of the benefit that this is, rounded up by more than what a difference and a quotient lose."""
    gain = np.where(of.best - of.fixed > ROUNDING * np.abs(of.best), of.best - of.fixed, np.nan)
    # Nothing keeps more than the best for each.
    most: FloatArray = np.minimum((unbeatable(of) - of.fixed) / gain + SLACK, 1.0)
    return most


# A name that ends in "_" is the beginning of several, of each outcome.
_ALWAYS: Columns[CourseEvaluation] = {
    "horizon": attrgetter("references.horizon"),
    "value": attrgetter("result.value"),
    "loss": loss,
    "normalized_loss": normalized_loss,
    "benefit_kept": benefit_kept,
    "expected_": attrgetter("result.outcomes"),
    "extra_": extra,
    "epsilon_spent": epsilon_spent,
    "total_epsilon": total_epsilon,
    "hides": hides,
}
_CONTINUATION: Columns[CourseEvaluation] = {"continuation": attrgetter("continuation")}
COLUMNS: Columns[CourseEvaluation] = _ALWAYS | _CONTINUATION
# Where all days share a total.
COLUMNS_OF_TOTALS: Columns[CourseEvaluation] = {
    **_ALWAYS,
    "total_spent": attrgetter("total_spent"),
    "composition": attrgetter("composition"),
    **_CONTINUATION,
}
# Where it is known besides what no mechanism exceeds within a total.
COLUMNS_OF_LIMITS: Columns[CourseEvaluation] = {
    **COLUMNS_OF_TOTALS,
    "unbeatable": unbeatable,
    "most_kept": most_kept,
    "most_kept_hides": attrgetter("limit.hides"),
    "most_kept_proof": attrgetter("limit.proof"),
}

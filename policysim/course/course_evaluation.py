"""Exact evaluation of a policy over the days of a process: what it is worth, what it causes, what it reveals.

One treatment for all of a public class that may change by the day: it looks at nobody, and costs no privacy at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.arrays import FloatArray, IntArray
from policies.policy import constant_logs, two_values
from policysim.course.chain import EndlessError, chain_values
from policysim.course.planning import expected
from policysim.course.process import Process
from policysim.course.step_problems import DailyDecisions, q_table, require_tabular
from policysim.question.words import ALL, Group

# From a day to log p(a|x) and p(a|x), (n, k): asked for once a day, one day ahead, so that two days are held at a time.
DailyTables = Callable[[int], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class CourseResult:
    """One policy, evaluated over a course.

    Attributes
    ----------
    means : array, (n_groups, n_metrics)
        The expected return, then each outcome over the whole course, per patient of the group.
    spent : tuple of float
        The exact privacy loss of the decision on each day; of the one decision that is repeated without a horizon.
    """

    means: FloatArray
    spent: tuple[float, ...]


def _one_ahead(tables: DailyTables, days: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The tables of each day; the next day's are made while this day's are used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(tables, 0)
        for day in range(days):
            current = coming.result()
            if day + 1 < days:
                coming = pool.submit(tables, day + 1)
            yield current


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
    groups : list of Group
        Everyone first.
    metrics : list of str
    """

    def __init__(self, process: Process, course: DailyDecisions, by: Sequence[str] = ()) -> None:
        self.process, self._course = process, course
        outcomes: Mapping[str, FloatArray] = getattr(process, "outcomes", {})
        self.metrics = ["value", *(f"expected_{name}" for name in outcomes)]
        # Outcomes are counted, not discounted.
        self._channels = [(process.rewards, process.discount), *((table, 1.0) for table in outcomes.values())]
        # Several first records may share a state; their groups are their own.
        merged: Any = getattr(process, "first_records", None)
        first = process if merged is None else merged
        present: IntArray = np.flatnonzero(first.initial)
        self._present = present if merged is None else merged.state[present]
        self._weights = first.initial[present]
        levels = [(feature, *first.records.groups(feature)) for feature in by]
        self._levels = [(codes[present], len(labels)) for _, codes, labels in levels]
        names = [(ALL, ALL), *((feature, label) for feature, _, labels in levels for label in labels)]
        self._shares = self._totals(np.ones(len(process.initial)))
        self.groups = [Group(*name, float(share)) for name, share in zip(names, self._shares, strict=True)]

    def evaluate(self, tables: DailyTables) -> CourseResult:
        """Evaluate a policy: NaN (or -inf, inf) for a value that does not exist, and for empty groups."""
        if self.process.horizon is None:
            return self._without_horizon(*tables(0))
        return self.backward(lambda day, _: tables(day)) if self._levels else self._forward(tables)

    def _forward(self, tables: DailyTables) -> CourseResult:
        """Follow everyone through the days: one push a day, whatever is counted."""
        process, mass, totals, spent = self.process, self.process.initial, np.zeros(len(self._channels)), []
        for day, (logs, probabilities) in enumerate(_one_ahead(tables, process.horizon or 0)):
            spent.append(self._course.plain[day].epsilon_spent(logs))
            for action, chances in enumerate(probabilities.T):
                flow = mass * chances
                for metric, (table, discount) in enumerate(self._channels):
                    totals[metric] += discount**day * np.dot(flow, table[:, action])
            mass = process.push(mass, probabilities)
        return CourseResult(totals[None, :], tuple(spent))

    def backward(self, decide: Callable[[int, FloatArray], tuple[FloatArray, FloatArray]]) -> CourseResult:
        """Go back through the days of a finite horizon: what each first state is worth; groups can be told apart.

        `decide` gives log p(a|x) and p(a|x), (n, k), from the day and its Q-values, (n, k), under what it chose for the
        days that follow.
        """
        process = self.process
        values = np.zeros((len(self._channels), len(process.initial)))
        spent = []
        for day in reversed(range(process.horizon or 0)):
            q_values = q_table(process, values[0])
            logs, probabilities = decide(day, q_values)
            spent.append(self._course.plain[day].epsilon_spent(logs))
            values[0] = expected(process, probabilities, q_values)
            for metric, (table, discount) in enumerate(self._channels[1:], start=1):
                later = self.process.continuation(values[metric])
                values[metric] = 0.0
                for action, chances in enumerate(probabilities.T):
                    values[metric] += chances * (table[:, action] + discount * later[:, action])
        return CourseResult(np.stack([self.means(row) for row in values], axis=1), tuple(reversed(spent)))

    def _without_horizon(self, logs: FloatArray, probabilities: FloatArray) -> CourseResult:
        try:
            values = chain_values(require_tabular(self.process), probabilities)
        except EndlessError:
            values = np.full(len(self.process.initial), np.nan)
        return CourseResult(self.means(values)[:, None], (self._course.plain[0].epsilon_spent(logs),))

    def means(self, values: FloatArray) -> FloatArray:
        """The mean of (n,) values in each group; NaN for a group of probability 0."""
        means = np.full(len(self._shares), np.nan)
        np.divide(self._totals(values), self._shares, out=means, where=self._shares > 0)
        return means

    def _totals(self, values: FloatArray) -> FloatArray:
        weighted = self._weights * values[self._present]
        sums = [np.bincount(codes, weights=weighted, minlength=size) for codes, size in self._levels]
        totals: FloatArray = np.concatenate([[weighted.sum()], *sums])
        return totals


def schedule_tables(process: Process, schedule: ArrayLike) -> DailyTables:
    """log p and p of each day, (n, k), of giving everybody the action of the day.

    `schedule` is one for all, (H,), or one for each public class of the process, (n_classes, H).
    """
    of_classes = np.atleast_2d(schedule)

    def of_day(day: int) -> tuple[FloatArray, FloatArray]:
        if len(of_classes) > 1:
            actions = of_classes[process.classes, day]
            logs, chances = (two_values(actions, len(process.actions), *pair) for pair in ((0.0, -np.inf), (1.0, 0.0)))
            return logs, chances
        row = np.full(len(process.actions), -np.inf)
        row[of_classes[0, day]] = 0.0
        logs = constant_logs(row, len(process.initial))
        return logs, np.exp(logs)

    return of_day

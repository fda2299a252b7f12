"""The comparison of policies over totals of epsilon, which all decisions of a process spend together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import Any

import pandas as pd

from policies.arrays import non_negative
from policies.policy import Policy
from policysim.course.budget import PrivacyBudget
from policysim.course.composition import SAFE
from policysim.course.course_comparison import CourseReferences, asked_for_on, course_rows, evaluate_all
from policysim.course.course_evaluation import CourseResult, ProcessEvaluator
from policysim.course.private_planner import CourseWithin, PrivatePlanner
from policysim.course.process import InfiniteLossWarning, Process
from policysim.course.step_problems import optimal_course
from policysim.question.protocol import SILENT, Progress
from policysim.study.sweep import N_THREADS


def compare_totals(
    process: Process,
    *,
    total_epsilons: Sequence[float],
    delta: float = 0.0,
    policies: Sequence[str | Policy] | None = None,
    by: Sequence[str] = (),
    advance: Callable[[], object] | Progress = SILENT,
) -> pd.DataFrame:
    """Evaluate policies exactly over the whole course of a process, within totals of epsilon.

    Each policy spends a total on the days on which it buys most, under its own continuation
    (`policysim.course.private_planner.PrivatePlanner.within`). On days that have nothing of it everybody gets the
    same action (of those who allow the same), which may change by the day and costs no privacy. A larger total is
    never worth less.

    Parameters
    ----------
    process : Process
        With a horizon: a `TabularMDP`, or treatment over days.
    total_epsilons : sequence of float
        What all decisions on one patient may reveal together, >= 0.
    delta : float, optional
        Of (epsilon, delta)-privacy, in [0, 1) (`PrivacyBudget`): by how much the probability of any set of published
        courses may be above e^epsilon times that under another course of states. It is not the probability that more
        than epsilon is lost.
    policies, by, advance
        As for `policysim.compare`; `advance` is told of each policy and total.

    Returns
    -------
    DataFrame
        One row per policy, total and group, with the columns of
        `policysim.course.course_comparison.compare_process`, where

        epsilon : the largest that one day has
        total_epsilon, delta : as asked for

        and

        total_spent : what the course spends at most at this delta; of a policy that takes no epsilon the sum of its
            losses, which may be above the total (greedy: inf)
        composition : what proves it (`policysim.course.composition.composed`)
        hides : "course" is the guarantee of `compare_process` within total_spent and delta: for any set S of published
            courses, q(S|s) <= e^total_spent q(S|s') + delta

    Raises
    ------
    ValueError
        For a process without a horizon, or whose states are told apart by what they allow; a total that is not >= 0, a
        delta out of range; and as `policysim.compare` does.
    """
    if not hasattr(process, "continuation"):
        raise ValueError(f"compare takes a DecisionProblem or a process, such as a TabularMDP, got {process!r}.")
    totals = _checked(total_epsilons)
    delta = PrivacyBudget(0.0, delta).delta
    if process.horizon is None:
        raise ValueError(
            "total_epsilons need a horizon: without one every loss adds up to infinity. Give the process a horizon, or "
            "ask about epsilons of one decision."
        )
    templates, _ = asked_for_on(process, policies, totals, by)
    course = optimal_course(process)
    if course.plain[0].told_apart:
        raise ValueError(f"total_epsilons cannot be kept: {InfiniteLossWarning.EXPLAINED}")
    evaluator = ProcessEvaluator(process, course, by)
    progress = Progress.of(advance)
    progress.expect(len(templates) * len(totals))
    plain = [template for template in templates if not template.uses_epsilon]
    references, results = evaluate_all(evaluator, course, plain, lambda: None)
    planner = PrivatePlanner(evaluator)
    rows = partial(rows_at_totals, planner, totals=totals, delta=delta, references=references, advance=progress.advance)
    with ThreadPoolExecutor(N_THREADS) as pool:
        return pd.concat(pool.map(rows, templates, map(results.get, templates)), ignore_index=True).assign(delta=delta)


def rows_at_totals(
    planner: PrivatePlanner,
    template: Policy,
    result: CourseResult | None,
    *,
    totals: Sequence[float],
    delta: float,
    references: CourseReferences,
    advance: Callable[[], object],
) -> pd.DataFrame:
    """The rows of one policy at each total, rising, a group each.

    Parameters
    ----------
    planner : PrivatePlanner
        Of the process.
    template : Policy
        Its epsilon is replaced.
    result : CourseResult or None
        Of a policy that takes no epsilon: what it is worth at every total.
    totals : sequence of float
    delta : float
    references : CourseReferences
    advance : callable
        Called after each total.
    """
    evaluator, frames = planner.evaluator, []
    found: Iterable[CourseWithin | CourseResult]
    found = planner.within(template, totals, delta) if result is None else repeat(result)
    for total, one in zip(totals, found, strict=False):
        if isinstance(one, CourseWithin):
            largest = max((policy.epsilon for policy in one.course.policies if policy.uses_epsilon), default=0.0)
            rows = course_rows(evaluator, template, largest, one.course.result, references)
            # Above the total only by the rounding of a sum.
            assert one.total_spent * SAFE <= total
            spent, composition, continuation = min(one.total_spent, total), one.composition, "private"
        else:
            rows = course_rows(evaluator, template, template.guarantee, one, references)
            spent, composition, continuation = math.fsum(one.spent), "exact-losses", "optimal"
        frames.append(
            rows.assign(total_epsilon=total, total_spent=spent, composition=composition, continuation=continuation)
        )
        advance()
    return pd.concat(frames, ignore_index=True)


def _checked(totals: Any) -> tuple[float, ...]:
    """The totals, rising."""
    if isinstance(totals, str) or not isinstance(totals, Iterable) or not (listed := list(totals)):
        raise ValueError(f"total_epsilons must be a list of numbers >= 0, got total_epsilons={totals!r}.")
    return tuple(sorted({non_negative(total, "total_epsilons") for total in listed}))

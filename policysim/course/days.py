"""Treatment over days against the total privacy budget: which mechanism, at which total epsilon and horizon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.arrays import ROUNDING
from policies.catalogue import CATALOGUE, make_policy
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.privacy_loss import privacy_loss_of_logs
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.course.budget import DailyBudget, PrivacyBudget
from policysim.course.class_schedules import ClassSchedules
from policysim.course.course_comparison import CourseReferences, course_rows, evaluate_all
from policysim.course.course_evaluation import CourseResult, ProcessEvaluator, schedule_tables
from policysim.course.course_limit import first_day_limit
from policysim.course.once import SCHEDULES
from policysim.course.step_problems import DailyDecisions, optimal_course
from policysim.course.treatment_course import TreatmentCourse, build_course
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ALL, PLAN_ONCE
from policysim.question.words import BEST_SCHEDULE as SCHEDULE
from policysim.study.declared import ScenarioStudy
from policysim.study.sweep import N_THREADS

# How many horizons are compared: one day, the whole course, and between them in equal ratios.
N_HORIZONS = 4
# How often a daily epsilon that is worth less than a smaller one is halved.
HALVINGS = 3
# What a share of the gain may be too small by, and more.
SLACK = 1e-12


@dataclass(frozen=True)
class DaysQuestion:
    """What is asked about treatment over days.

    Attributes
    ----------
    horizon : int
        Days.
    totals : tuple of float
        Total epsilons of a patient's course, rising.
    delta : float
        Of (epsilon, delta)-privacy (`PrivacyBudget`): by how much the probability of any set of published courses
        may be above e^epsilon times that under another record. With 0 only basic composition is used.
    length_public : bool
        Whether when a patient's stay ends is declared public.
    """

    horizon: int
    totals: tuple[float, ...]
    delta: float
    length_public: bool

    @property
    def horizons(self) -> tuple[int, ...]:
        """The horizons that are compared, rising; the last one is `horizon`."""
        steps = [round(self.horizon ** (i / (N_HORIZONS - 1))) for i in range(N_HORIZONS)]
        return tuple(sorted({*steps, self.horizon}))


def compare_days(study: ScenarioStudy, question: DaysQuestion, progress: Progress = SILENT) -> pd.DataFrame:
    """Evaluate the study's policies exactly over the whole course, at each horizon and total epsilon.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario, utility, policies and groups.
    question : DaysQuestion
        Horizons and budgets.
    progress : Progress, optional
        Told of the days that were evaluated.

    Returns
    -------
    DataFrame
        One row per horizon, policy, total epsilon and group, with the columns of
        `policysim.course.course_comparison.compare_process`. Beside the study's policies, of which the optimum of each
        day is called "optimal-daily", there are "best-schedule", one schedule for all, and "plan-once", the optimum
        among public schedules (`policysim.course.once`), whose epsilon is that of its one choice. About privacy:

        horizon : days
        total_epsilon : the budget of the course, with the question's delta
        epsilon : the epsilon of one day: the largest that the total affords, or a smaller one (that of a smaller
            total, 0, or a half) whose course is worth more; so `value` for everyone never falls as the total rises
        composition : what proves the total (`PrivacyBudget.daily`), whichever lets more through; "one-choice" for
            plan-once, of which nothing adds up
        epsilon_spent : the largest exact privacy loss of one day
        total_spent : what the course spends at most: the sum of the days' exact losses, or what their rho converts to
        unbeatable : for everyone, the value that no mechanism within the total exceeds (`course_limit`), rounded up
        most_kept : the share of the benefit that this is, rounded up

    Raises
    ------
    ValueError
        For a horizon or adjacency that `build_course` refuses.
    """
    progress.expect(sum(question.horizons) * (2 + sum(_number_of_steps(name, question) for name in study.policies)))
    frames = [_at_horizon(study, question, horizon, progress) for horizon in question.horizons]
    return pd.concat(frames, ignore_index=True)


def _at_horizon(study: ScenarioStudy, question: DaysQuestion, horizon: int, progress: Progress) -> pd.DataFrame:
    process = _course(study, horizon, length_public=question.length_public)
    course = optimal_course(process)
    evaluator = ProcessEvaluator(process, course, study.by)
    searches = [_Search(study.policy(name), question, course, evaluator) for name in study.policies]
    family = ClassSchedules.of(process, held=1)
    first = family.best()
    schedule = evaluator.evaluate(schedule_tables(process, first))
    progress.advance(horizon)
    once = _Once(evaluator, family.problem(family.found(first, SCHEDULES, question.totals)))
    once_at = {total: once.at(total) for total in question.totals}
    progress.advance(horizon)

    def search(name: str) -> _Search:
        found = _Search(make_policy(name), question, course, evaluator)
        progress.advance(horizon)
        return found

    with ThreadPoolExecutor(N_THREADS) as pool:
        searches = list(pool.map(search, study.policies))
    asked = [budget.policy for searched in searches for budget in searched.budgets]
    policies = list(dict.fromkeys(asked))
    references, results = evaluate_all(evaluator, course, policies, lambda: progress.advance(horizon))
    progress.advance(horizon * (len(asked) - len(policies)))
    frames = []
    for total in question.totals:
        rows = course_rows(evaluator, BestFixed(), 0.0, schedule, references).assign(policy=SCHEDULE)
        frames.append(rows.assign(total_epsilon=total, total_spent=0.0, composition="basic"))
    for total in question.totals:
        rows = course_rows(evaluator, BestFixed(), total, once_at[total], references).assign(policy=PLAN_ONCE)
        spent = min(total, *once_at[total].spent)  # above the total by the rounding of a logarithm
        frames.append(rows.assign(total_epsilon=total, total_spent=spent, composition="one-choice"))
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(lambda searched: list(searched.never_falling(results)), searches))
    for searched, budgets in zip(searches, found, strict=True):
        for total, budget in budgets:
            result = results[budget.policy]
            rows = course_rows(evaluator, searched.template, budget.epsilon, result, references)
            rows["total_epsilon"] = total
            rows["total_spent"] = min(budget.total_epsilon, math.fsum(result.spent))
            rows["composition"] = budget.composition
            frames.append(rows)
    table = pd.concat(frames, ignore_index=True)
    limits = {total: first_day_limit(course, process.initial, total, question.delta) for total in question.totals}
    return _with_limits(table, limits, references)


def _course(study: ScenarioStudy, horizon: int, *, length_public: bool) -> TreatmentCourse:
    """The course, of merged records if that is the same for all policies that are compared (`policies.distinct`)."""
    course = build_course(study, horizon, length_public=length_public)
    policies = [make_policy(name) for name in study.policies]
    same = all(type(policy) in CATALOGUE.built_in.values() and policy.row_wise for policy in policies)
    return course.merged() if same else course


def _with_limits(table: pd.DataFrame, limits: Mapping[float, float], references: CourseReferences) -> pd.DataFrame:
    """The table with what no mechanism exceeds at each total, for everyone: `unbeatable` and `most_kept`."""
    unbeatable = table["total_epsilon"].map(limits).where(table["group"] == ALL)
    best = float(references.best.means[0, 0])
    fixed = math.nan if references.fixed is None else float(references.fixed.means[0, 0])
    gain = best - fixed if best - fixed > ROUNDING * abs(best) else math.nan
    # Rounded up by more than what a difference and a quotient lose; and nothing keeps more than the best for each.
    most = np.minimum((unbeatable - fixed) / gain + SLACK, 1.0)
    return table.assign(unbeatable=unbeatable, most_kept=most)


class _Once:
    """One private choice of a schedule at each total: the optimum among the public schedules of a horizon."""

    def __init__(self, evaluator: ProcessEvaluator, problem: DecisionProblem) -> None:
        self._evaluator, self._problem = evaluator, problem

    def at(self, total: float) -> CourseResult:
        """The choice of this epsilon, evaluated."""
        problem, policy = self._problem, make_policy(Optimal.name, epsilon=total)
        logs, chances = policy.tables(problem)
        tables = [problem.utilities, *problem.outcomes.values()]
        means = [self._evaluator.means(np.einsum("nm,nm->n", chances, table)) for table in tables]
        loss = privacy_loss_of_logs(logs, problem.adjacency).epsilon
        return CourseResult(np.stack(means, axis=1), (loss,))


class _Search:
    """The daily budget of one policy at each total: the one whose course is worth most.

    A policy that trusts the Q-values of another continuation may be worth less with more epsilon. So at each total
    the largest daily epsilon competes with what was best at the smaller totals, all of which it affords too, and at
    first with 0; where it is worth less than these, its halves are tried as well. The choice looks at the model and
    the prior only, which are public.
    """

    def __init__(
        self, template: Policy, question: DaysQuestion, course: DailyDecisions, evaluator: ProcessEvaluator
    ) -> None:
        self.template = template
        self._question, self._course, self._evaluator = question, course, evaluator
        self._problems = course.decisions(template)
        self._nothing = PrivacyBudget(0.0).spending(template, self._problems, 0.0) if template.uses_epsilon else None
        self._largest = [
            PrivacyBudget(total, question.delta).daily(template, self._problems) for total in question.totals
        ]

    @property
    def budgets(self) -> list[DailyBudget]:
        """What is evaluated in any case, in the order of their totals, 0 first."""
        return [*([] if self._nothing is None else [self._nothing]), *self._largest]

    def never_falling(self, results: dict[Policy, CourseResult]) -> Iterator[tuple[float, DailyBudget]]:
        """Each total, rising, and its budget; what else is evaluated joins the results."""
        best = self.budgets[0]
        for total, budget in zip(self._question.totals, self._largest, strict=True):
            found = budget
            for _ in range(HALVINGS):
                if self._worth(found, results) >= self._worth(best, results):
                    break
                half = self._half(total, found)
                if half is None:
                    break
                found = half
            if self._worth(found, results) >= self._worth(best, results):
                best = found
            yield total, best

    def _half(self, total: float, budget: DailyBudget) -> DailyBudget | None:
        """With half of the daily epsilon; None for none, or if its tables spend more than the total."""
        if not 0 < budget.epsilon < math.inf:
            return None
        within = PrivacyBudget(total, self._question.delta)
        half = within.spending(self.template, self._problems, budget.epsilon / 2)
        return half if half.total_epsilon <= total else None

    def _worth(self, budget: DailyBudget, results: dict[Policy, CourseResult]) -> float:
        policy = budget.policy
        if policy not in results:
            decisions = self._course.decisions(policy)
            results[policy] = self._evaluator.evaluate(lambda day: decisions[day].tables(policy))
        return float(results[policy].means[0, 0])


def _number_of_steps(name: str, question: DaysQuestion) -> int:
    """The search of its budgets, and an evaluation of each."""
    return 1 + len(question.totals) + make_policy(name).uses_epsilon

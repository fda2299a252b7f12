"""Treatment over days against the total privacy budget: which mechanism, at which total epsilon and horizon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from policies.catalogue import make_policy
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.processes.budget import DailyBudget, PrivacyBudget
from policysim.processes.comparison import course_rows, evaluate_all
from policysim.processes.evaluation import ProcessEvaluator
from policysim.processes.schedule import NAME as SCHEDULE
from policysim.processes.schedule import best_schedule, schedule_tables
from policysim.processes.step_problems import Course, optimal_course
from policysim.processes.treatment_course import build_course
from policysim.question.progress import SILENT, Progress
from policysim.study import ScenarioStudy

# How many horizons are compared: one day, the whole course, and between them in equal ratios.
N_HORIZONS = 4


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
        One row per horizon, policy (and `policysim.processes.schedule`), total epsilon and group, with the columns of
        `policysim.processes.comparison.compare_process`, where the optimum of each day is called "optimal-daily", and
        these about privacy:

        horizon : days
        total_epsilon : the budget of the course, with the question's delta
        epsilon : the epsilon of one day: of what this total and the smaller ones of the question allow, the one whose
            course is worth most, so that `value` for everyone never falls as the total rises
        composition : what proves the total (`PrivacyBudget.daily`), whichever lets more through
        epsilon_spent : the largest exact privacy loss of one day
        total_spent : what the course spends at most: the sum of the days' exact losses, or what their rho converts to

    Raises
    ------
    ValueError
        For a horizon or adjacency that `build_course` refuses.
    """
    progress.expect(sum(question.horizons) * (1 + len(list(_asked(study, question)))))
    frames = [_at_horizon(study, question, horizon, progress) for horizon in question.horizons]
    return pd.concat(frames, ignore_index=True)


def _asked(study: ScenarioStudy, question: DaysQuestion) -> Iterator[tuple[Policy, float]]:
    for name in study.policies:
        for total in question.totals:
            yield make_policy(name), total


def _at_horizon(study: ScenarioStudy, question: DaysQuestion, horizon: int, progress: Progress) -> pd.DataFrame:
    process = build_course(study, horizon, length_public=question.length_public)
    course = optimal_course(process)
    budgets = [
        (template, total, PrivacyBudget(total, question.delta).daily(template, _problems(course, template)))
        for template, total in _asked(study, question)
    ]
    evaluator = ProcessEvaluator(process, course, study.by)
    start = [problem.best_fixed_action for problem in _problems(course, BestFixed())]
    schedule = evaluator.evaluate(schedule_tables(process, best_schedule(process, start)))
    progress.advance(horizon)
    policies = list(dict.fromkeys(budget.policy for _, _, budget in budgets))
    references, results = evaluate_all(evaluator, course, policies, lambda: progress.advance(horizon))
    progress.advance(horizon * (len(budgets) - len(policies)))
    chosen = _never_falling(budgets, {policy: float(result.means[0, 0]) for policy, result in results.items()})
    frames = []
    for total in question.totals:
        rows = course_rows(evaluator, BestFixed(), 0.0, schedule, references).assign(policy=SCHEDULE)
        frames.append(rows.assign(total_epsilon=total, total_spent=0.0, composition="basic"))
    for template, total, budget in chosen:
        rows = course_rows(evaluator, template, budget.epsilon, results[budget.policy], references)
        rows["total_epsilon"] = total
        rows["total_spent"] = min(budget.total_epsilon, math.fsum(results[budget.policy].spent))
        rows["composition"] = budget.composition
        frames.append(rows)
    return pd.concat(frames, ignore_index=True)


def _never_falling(
    budgets: Sequence[tuple[Policy, float, DailyBudget]], values: Mapping[Policy, float]
) -> Iterator[tuple[Policy, float, DailyBudget]]:
    """For each policy and total the daily budget that is worth most of those that this total allows.

    What a smaller total allows stays within a larger one, and a policy that trusts Q-values of another continuation
    may be worth less with more epsilon. The choice looks at the model and the prior only, which are public.
    """
    best: dict[Policy, DailyBudget] = {}
    for template, total, budget in budgets:  # of each policy by rising total
        known = best.get(template, budget)
        best[template] = known if values[known.policy] > values[budget.policy] else budget
        yield template, total, best[template]


def _problems(course: Course, policy: Policy) -> list[DecisionProblem]:
    """The decision of each day; every patient allows every treatment."""
    problems = [day.whole for day in course.decisions(policy)]
    assert all(problem is not None for problem in problems)
    return [problem for problem in problems if problem is not None]
